#!/bin/sh
# Publishes the file that a command makes, only while this attempt still holds its claim.
#
#   exec = ["sh", "publish.sh", "/out", "gdalwarp", "-if", "GTiff", "-t_srs", "EPSG:3857", "{path}"]     # in pipeline.toml
#   CLAIM_STORE=sqlite:claims.db; export CLAIM_STORE
#   firstclaim run --store "$CLAIM_STORE" inbox/
#
# The command gets the file to write as its last argument. A worker that was frozen, or killed without its command, may
# come here long after another attempt has taken the job over and published its own file. So there are three lines of defence:
#
# 1. Each attempt writes a file of its own, /out/JOB.ATTEMPT. No attempt can touch another's.
# 2. The shared name /out/JOB is moved to that file only if the claim is still held, by a rename: whoever reads it
#    finds one whole file or another.
# 3. Between the question and the rename there is a moment in which the claim can be lost, and then a late attempt may move
#    the shared name back. Where that must not be, read by the record instead, which only the attempt writes
#    that ends the job:  firstclaim claims show --json JOB | jq -r .result.stdout
set -eu
folder=$1
shift
job=$FIRSTCLAIM_JOB_ID
own=$job.$FIRSTCLAIM_JOB_ATTEMPT

"$@" "$folder/.$own"
mv "$folder/.$own" "$folder/$own"

ln -s "$own" "$folder/.$own.link"
if ! firstclaim claims held --store "$CLAIM_STORE" "$job" "$FIRSTCLAIM_JOB_OWNER" >&2; then
    rm "$folder/.$own.link"
    exit 1
fi
mv -f "$folder/.$own.link" "$folder/$job"

# What a job prints is recorded with its end: this names the file that counts.
printf %s "$own"
