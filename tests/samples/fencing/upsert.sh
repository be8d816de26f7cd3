#!/bin/sh
# Keeps what a command prints as the row of its job in PostgreSQL, unless a later attempt has written it already.
#
#   exec = ["sh", "upsert.sh", "ogrinfo", "-json", "{path}"]     # in pipeline.toml
#   RESULTS_URL=postgres://loader@db.example/geo; export RESULTS_URL
#   firstclaim run inbox/
#
# The attempt is a fencing token: it only grows. The row keeps the highest one that has written, and the condition is
# decided inside the statement, so there is no moment between question and write. `>=`, not `>`: an attempt whose reply was
# lost may write again. Values go in as psql's variables, quoted by psql (:'…'): keys of objects are other people's text.
set -eu
body=$("$@")
written=$(psql --no-psqlrc --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 \
    --set=job="$FIRSTCLAIM_JOB_ID" --set=attempt="$FIRSTCLAIM_JOB_ATTEMPT" \
    --set=object="$FIRSTCLAIM_JOB_URI" --set=body="$body" "$RESULTS_URL" <<'SQL'
INSERT INTO results (job, attempt, object, body) VALUES (:'job', :'attempt', :'object', :'body')
ON CONFLICT (job) DO UPDATE SET attempt = excluded.attempt, object = excluded.object, body = excluded.body
WHERE excluded.attempt >= results.attempt
RETURNING attempt
SQL
)
if [ -z "$written" ]; then
    echo "attempt $FIRSTCLAIM_JOB_ATTEMPT is late: a later one has written the row" >&2
    exit 1
fi
