--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: firstclaim_claims; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.firstclaim_claims (
    key text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    attempt bigint DEFAULT 0 NOT NULL,
    owner text,
    revision text,
    claimed_at timestamp(0) with time zone NOT NULL,
    lease_until timestamp(3) with time zone,
    waiting_until timestamp(3) with time zone,
    finished_at timestamp(0) with time zone,
    expires_at timestamp(0) with time zone,
    object_provider text,
    object_account text,
    object_container text,
    object_key text,
    object_raw_key text,
    token_kind text,
    token_value text,
    pipeline_name text DEFAULT ''::text NOT NULL,
    pipeline_version text DEFAULT ''::text NOT NULL,
    scheme text DEFAULT ''::text NOT NULL,
    params_digest text DEFAULT ''::text NOT NULL,
    contract_digest text DEFAULT ''::text NOT NULL,
    redrives bigint DEFAULT 0 NOT NULL,
    reason text,
    error text,
    result text,
    body bytea,
    released_at timestamp(0) with time zone,
    released_from text,
    released_attempt bigint
);


--
-- Name: firstclaim_schema; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.firstclaim_schema (
    version integer NOT NULL
);


--
-- Name: ingest_ledger; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.ingest_ledger (
    upload_key text NOT NULL COLLATE pg_catalog."C",
    source_path text NOT NULL,
    claimed_at timestamp with time zone DEFAULT now() NOT NULL,
    completed_at timestamp with time zone,
    job_key text,
    owner text,
    attempt bigint,
    full_digest text,
    released_at timestamp with time zone
);


--
-- Data for Name: firstclaim_claims; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.firstclaim_claims VALUES ('351714eb14120adf939437e6cc477b4612632c2ce631c8fcc9432bd9f4646b5e', 'done', 1, 'c7422bb7cc85f9930563f9cb0a0cda37', 'c7422bb7cc85f9930563f9cb0a0cda37.2', '2026-12-03 06:36:27+00', NULL, NULL, '2026-12-03 06:36:27+00', '2126-12-04 06:36:27+00', 's3', NULL, 'geo-in', 'in/done 1.tif', 'in/done+1.tif', 'etag', 'e1', 'upgrade', '1', 'strict', '2f5d626ace1c99d6318e725f2bd114e775cc24b50146c287d0a3fa996be62551', '20a4518e2b951d089b13011d3e3b09d0655237593f78bd768aed01699ecd2fdc', 0, NULL, NULL, '{"exit":0,"stdout":"{\"rows\": 7}\n"}', NULL, NULL, NULL, NULL);
INSERT INTO public.firstclaim_claims VALUES ('7fc55bd90c5a1f5515665f1c503c46901c0315b63fd1af349baec508ed01990c', 'rejected', 1, '3a3e2c085c7e2136afdab4b3d942b017', '3a3e2c085c7e2136afdab4b3d942b017.2', '2026-12-03 06:36:27+00', NULL, NULL, '2026-12-03 06:36:27+00', NULL, 's3', NULL, 'geo-in', 'in/umlautä"␛0.tif', 'in/umlaut%C3%A4%22%00.tif', 'version-id', 'v.1', 'upgrade', '1', 'strict', '2f5d626ace1c99d6318e725f2bd114e775cc24b50146c287d0a3fa996be62551', '20a4518e2b951d089b13011d3e3b09d0655237593f78bd768aed01699ecd2fdc', 0, 'permanent', 'the object''s key or container holds a NUL character, so no command can be given it', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.firstclaim_claims VALUES ('604dfdf0ec3fdc06f1ca906280c9225631327f9eaa1c4264e380edb6bcb4c4be', 'done', 1, '7e81767d312ac361c0f37616c39d6a85', '7e81767d312ac361c0f37616c39d6a85.2', '2026-12-03 06:36:27+00', NULL, NULL, '2026-12-03 06:36:27+00', '2026-12-03 06:36:29+00', 's3', NULL, 'geo-in', 'in/over.tif', NULL, 'etag', 'e1', 'upgrade', '1', 'strict', '2f5d626ace1c99d6318e725f2bd114e775cc24b50146c287d0a3fa996be62551', '20a4518e2b951d089b13011d3e3b09d0655237593f78bd768aed01699ecd2fdc', 0, NULL, NULL, '{"exit":0,"stdout":"{\"rows\": 7}\n"}', NULL, NULL, NULL, NULL);
INSERT INTO public.firstclaim_claims VALUES ('2ab5f3159e7503f7519ecd5caa460cb48e70f2f5c08c8cf156ba55c097ea2686', 'failed', 3, 'bfa026e556649e92a058083cb56132b9', 'bfa026e556649e92a058083cb56132b9.3', '2026-12-03 06:36:28+00', NULL, NULL, '2026-12-03 06:36:28+00', NULL, 's3', NULL, 'geo-in', 'in/fails.tif', NULL, 'etag', 'e1', 'upgrade', '1', 'strict', '2f5d626ace1c99d6318e725f2bd114e775cc24b50146c287d0a3fa996be62551', '20a4518e2b951d089b13011d3e3b09d0655237593f78bd768aed01699ecd2fdc', 0, NULL, 'the command "sh" exited with code 1 and wrote to standard error last:
no such layer', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.firstclaim_claims VALUES ('2b92ac21bfe47e03e18a0e833b5002f37da101dc0820f38954ebf2429543a9b8', 'rejected', 2, '12e30bf1ca84ff5e801a808cba0b1fe3', '12e30bf1ca84ff5e801a808cba0b1fe3.2', '2026-12-03 06:36:28+00', NULL, NULL, '2026-12-03 06:36:29+00', NULL, 's3', NULL, 'geo-in', 'in/fails-too.tif', NULL, 'etag', 'e1', 'upgrade', '1', 'strict', '2f5d626ace1c99d6318e725f2bd114e775cc24b50146c287d0a3fa996be62551', '20a4518e2b951d089b13011d3e3b09d0655237593f78bd768aed01699ecd2fdc', 0, 'exhausted', 'all 2 attempts are used up; the last one: the command "sh" exited with code 1 and wrote to standard error last:
no such layer', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.firstclaim_claims VALUES ('d046aad5c2eceb36ccee2f4dc3fdd0c752562d56b365f3892f9bf787684ff4ef', 'rejected', 1, 'c01c61057e0015d32fa6f04e110bc601', 'c01c61057e0015d32fa6f04e110bc601.2', '2026-12-03 06:36:29+00', NULL, NULL, '2026-12-03 06:36:29+00', NULL, 's3', NULL, 'geo-in', 'in/never.tif', NULL, 'etag', 'e1', 'upgrade', '1', 'strict', '2f5d626ace1c99d6318e725f2bd114e775cc24b50146c287d0a3fa996be62551', '20a4518e2b951d089b13011d3e3b09d0655237593f78bd768aed01699ecd2fdc', 0, 'permanent', 'the command "sh" exited with code 65 and wrote to standard error last:
not a raster', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.firstclaim_claims VALUES ('2c6452581264413df1461a19a0bb4b096e278e7be593b6ce32f900714f2628ad', 'rejected', 0, 'dc1196e5f256bbb7425dacc37b622a43', 'dc1196e5f256bbb7425dacc37b622a43.1', '2026-12-03 06:36:29+00', NULL, NULL, '2026-12-03 06:36:29+00', NULL, 's3', NULL, 'other', 'in/not-allowed.tif', NULL, 'etag', 'e1', 'upgrade', '1', 'strict', '2f5d626ace1c99d6318e725f2bd114e775cc24b50146c287d0a3fa996be62551', '20a4518e2b951d089b13011d3e3b09d0655237593f78bd768aed01699ecd2fdc', 0, 'not-allowed', 's3://other/in/not-allowed.tif lies in a container that is not on the allow-list', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.firstclaim_claims VALUES ('5b85ac4e52f995f65f86124e014dd6cc11c4ed2fdb39e46f0dd6746b00d346fd', 'rejected', 0, '58bd52efe38e57f4cc93384d3ca9f174', '58bd52efe38e57f4cc93384d3ca9f174.1', '2026-12-03 06:36:29+00', NULL, NULL, '2026-12-03 06:36:29+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'upgrade', '1', 'strict', '2f5d626ace1c99d6318e725f2bd114e775cc24b50146c287d0a3fa996be62551', '20a4518e2b951d089b13011d3e3b09d0655237593f78bd768aed01699ecd2fdc', 0, 'unreadable', 'the event is not UTF-8 text: invalid utf-8 sequence of 1 bytes from index 21', NULL, '\x7b226e6f7468696e67223a20227765206b6e6f7720ff227d', NULL, NULL, NULL);
INSERT INTO public.firstclaim_claims VALUES ('63cc48b071630a96824235b9f76a9e92d2a2b12562cf5301f2cd57660076d9e6', 'waiting', 0, 'a3155f66dc3d2528f1dfb609eaae3423', 'a3155f66dc3d2528f1dfb609eaae3423.1', '2026-12-03 06:36:29+00', NULL, '2026-12-03 06:38:29.359+00', NULL, NULL, 'azure', 'acct', 'geo-in', 'in/roads.shp', NULL, NULL, NULL, 'upgrade', '1', 'strict', '2f5d626ace1c99d6318e725f2bd114e775cc24b50146c287d0a3fa996be62551', '20a4518e2b951d089b13011d3e3b09d0655237593f78bd768aed01699ecd2fdc', 0, NULL, 'its commit has an event of its own', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.firstclaim_claims VALUES ('69b3d3299bd99eb43ec4789cf251b97589e3e1c574a8b8ca4cecfcacbc770ce1', 'failed', 1, '4481eff98b3c3dd703a3d5024da21344', '4481eff98b3c3dd703a3d5024da21344.1', '2026-12-03 06:36:29+00', NULL, NULL, '2026-12-03 06:36:29+00', NULL, 's3', NULL, 'geo-in', 'in/never-2.tif', NULL, 'etag', 'e1', 'upgrade', '1', 'strict', '2f5d626ace1c99d6318e725f2bd114e775cc24b50146c287d0a3fa996be62551', '20a4518e2b951d089b13011d3e3b09d0655237593f78bd768aed01699ecd2fdc', 0, 'released', 'the command "sh" exited with code 65 and wrote to standard error last:
not a raster', NULL, NULL, '2026-12-03 06:36:29+00', 'rejected', 1);
INSERT INTO public.firstclaim_claims VALUES ('fa366335c8efadbcabd4354d33e77d7fe239e0f471dabbe517082ee2de06585e', 'failed', 3, 'fa6e5fa80395c6248ef0d2d7bf6c69cd', 'fa6e5fa80395c6248ef0d2d7bf6c69cd.1', '2026-12-03 06:36:30+00', NULL, '2026-12-03 06:51:30.097+00', '2026-12-03 06:36:30+00', NULL, 's3', NULL, 'geo-in', 'in/fails-3.tif', NULL, 'etag', 'e1', 'upgrade', '1', 'strict', '2f5d626ace1c99d6318e725f2bd114e775cc24b50146c287d0a3fa996be62551', '20a4518e2b951d089b13011d3e3b09d0655237593f78bd768aed01699ecd2fdc', 1, 'released', 'the command "sh" exited with code 1 and wrote to standard error last:
no such layer', NULL, NULL, '2026-12-03 06:36:30+00', 'failed', 3);
INSERT INTO public.firstclaim_claims VALUES ('821f90ae64e6ba1259c0353978006f2ebbdd80e964a894a97366ed94a4f6244c', 'processing', 1, 'b1bc96cc80e713d09ada3a13715edbcf', 'b1bc96cc80e713d09ada3a13715edbcf.1', '2026-12-03 06:36:30+00', '2026-12-03 06:36:31.124+00', NULL, NULL, NULL, 's3', NULL, 'geo-in', 'in/killed.tif', NULL, 'etag', 'e1', 'upgrade', '1', 'strict', '2f5d626ace1c99d6318e725f2bd114e775cc24b50146c287d0a3fa996be62551', '20a4518e2b951d089b13011d3e3b09d0655237593f78bd768aed01699ecd2fdc', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: firstclaim_schema; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.firstclaim_schema VALUES (2);


--
-- Data for Name: ingest_ledger; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Name: firstclaim_claims firstclaim_claims_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.firstclaim_claims
    ADD CONSTRAINT firstclaim_claims_pkey PRIMARY KEY (key);


--
-- Name: ingest_ledger ingest_ledger_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.ingest_ledger
    ADD CONSTRAINT ingest_ledger_pkey PRIMARY KEY (upload_key);


--
-- Name: firstclaim_claims_by_status; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX firstclaim_claims_by_status ON public.firstclaim_claims USING btree (status, claimed_at, key);


--
-- Name: ingest_ledger_foreign; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ingest_ledger_foreign ON public.ingest_ledger USING btree (claimed_at, upload_key) WHERE ((completed_at IS NULL) AND (job_key IS NULL));


--
-- Name: ingest_ledger_open; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ingest_ledger_open ON public.ingest_ledger USING btree (claimed_at, upload_key) WHERE ((completed_at IS NULL) AND (job_key IS NOT NULL));


--
-- PostgreSQL database dump complete
--


