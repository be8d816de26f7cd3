"""The same with the idempotency utility of Powertools for AWS Lambda."""

import logging
import os
import subprocess

from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)

from claims import TTL_SECONDS, identity, records

logger = logging.getLogger()
logger.setLevel(logging.INFO)
store = DynamoDBPersistenceLayer(table_name=os.environ["DEDUP_TABLE"], key_attr="job_id")
config = IdempotencyConfig(expires_after_seconds=TTL_SECONDS)


@idempotent_function(data_keyword_argument="event", persistence_store=store, config=config)
def once(event):
    """Runs the job, for the first of equal events."""
    subprocess.run(["true"], check=True)
    return {"done": True}


def handler(event, context):
    """Called by Lambda."""
    config.register_lambda_context(context)
    for record in records(event):
        once(event=identity(record))
        logger.info("settled: %s", record["s3"]["object"]["key"])
    return {"batchItemFailures": []}
