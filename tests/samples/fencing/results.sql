-- The table that upsert.sh writes to: a row a job, with the highest attempt that has written it.
CREATE TABLE results (
    job     text    PRIMARY KEY,
    attempt integer NOT NULL,
    object  text    NOT NULL,
    body    text    NOT NULL
);
