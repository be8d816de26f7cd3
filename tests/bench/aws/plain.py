"""The published Python handler's way with boto3: a conditional PutItem, the job, then `done`."""

import logging
import os
import subprocess

import boto3

from claims import claim, identity, records, set_done

logger = logging.getLogger()
logger.setLevel(logging.INFO)
TABLE = os.environ["DEDUP_TABLE"]
dynamodb = boto3.client("dynamodb")
boto3.client("s3")  # it has one, to read the object with


def handler(event, _context):
    """Called by Lambda."""
    processed = skipped = 0
    for record in records(event):
        job_id, bucket, key = identity(record)
        if not claim(dynamodb, TABLE, job_id, bucket, key):
            logger.info("duplicate: %s %s", job_id, key)
            skipped += 1
            continue
        subprocess.run(["true"], check=True)
        set_done(dynamodb, TABLE, job_id)
        logger.info("done: %s %s", job_id, key)
        processed += 1
    logger.info("processed %d, skipped %d", processed, skipped)
    return {"batchItemFailures": []}
