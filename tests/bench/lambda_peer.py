"""Two Python functions beside ours, and the loop that runs one: lambda_peer.py plain|powertools.

`plain` makes the writes of the published handler (a conditional PutItem, then `done`) with boto3; `powertools` leaves them to
Powertools for AWS Lambda. The job of either is the process `true`, as it is of our function. The loop is the least that speaks
the runtime API: Lambda's own for Python does more.
"""

import hashlib
import http.client
import json
import logging
import os
import subprocess
import sys
import time
import urllib.parse

logger = logging.getLogger(__name__)
TABLE = os.environ["DEDUP_TABLE"]
TTL_SECONDS = 1_209_600


def address(record):
    """Bucket, decoded key and ETag of a record of S3's."""
    s3 = record["s3"]
    key = urllib.parse.unquote_plus(s3["object"]["key"])
    return s3["bucket"]["name"], key, s3["object"].get("eTag", "").strip('"')


def job():
    """What is run for a new object."""
    subprocess.run(["true"], check=True)


def plain():
    """The published handler's way."""
    import boto3
    from botocore.exceptions import ClientError

    dynamodb = boto3.client("dynamodb")
    boto3.client("s3")  # it has one, to read the object with

    def claim(job_id, bucket, key):
        now = int(time.time())
        item = {
            "job_id": {"S": job_id},
            "bucket": {"S": bucket},
            "key": {"S": key},
            "status": {"S": "processing"},
            "claimed_at": {"N": str(now)},
            "expires_at": {"N": str(now + TTL_SECONDS)},
        }
        try:
            dynamodb.put_item(TableName=TABLE, Item=item, ConditionExpression="attribute_not_exists(job_id)")
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                return False
            raise
        return True

    def done(job_id):
        dynamodb.update_item(
            TableName=TABLE,
            Key={"job_id": {"S": job_id}},
            UpdateExpression="SET #s = :d, finished_at = :t",
            ExpressionAttributeNames={"#s": "status"},
            ExpressionAttributeValues={":d": {"S": "done"}, ":t": {"N": str(int(time.time()))}},
        )

    def handler(event, _context):
        processed, skipped = 0, 0
        for record in event.get("Records", []):
            bucket, key, etag = address(record)
            job_id = hashlib.sha256("\n".join((bucket, key, etag)).encode()).hexdigest()
            if not claim(job_id, bucket, key):
                logger.info("duplicate: %s %s", job_id, key)
                skipped += 1
                continue
            job()
            done(job_id)
            logger.info("done: %s %s", job_id, key)
            processed += 1
        return {"processed": processed, "skipped": skipped}

    return handler


def powertools():
    """The same by a library."""
    from aws_lambda_powertools.utilities.idempotency import (
        DynamoDBPersistenceLayer,
        IdempotencyConfig,
        idempotent_function,
    )

    store = DynamoDBPersistenceLayer(table_name=TABLE, key_attr="job_id")
    config = IdempotencyConfig(expires_after_seconds=TTL_SECONDS)

    @idempotent_function(data_keyword_argument="identity", persistence_store=store, config=config)
    def once(identity):
        job()
        return {"done": True}

    def handler(event, context):
        config.register_lambda_context(context)
        for record in event.get("Records", []):
            once(identity=address(record))
        return {"processed": len(event["Records"])}

    return handler


class Context:
    """The part of Lambda's context that is asked for."""

    def __init__(self, deadline):
        self.deadline = deadline

    def get_remaining_time_in_millis(self):
        """Until the invocation's end."""
        return max(0, self.deadline - int(time.time() * 1000))


def main():
    logging.basicConfig(level=logging.INFO)
    logging.getLogger("botocore").setLevel(logging.WARNING)
    handler = {"plain": plain, "powertools": powertools}[sys.argv[1]]()
    api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
    root = "/2018-06-01/runtime/invocation"
    while True:
        api.request("GET", f"{root}/next")
        response = api.getresponse()
        event = json.loads(response.read())
        context = Context(int(response.headers["Lambda-Runtime-Deadline-Ms"]))
        answer = json.dumps(handler(event, context))
        api.request("POST", f"{root}/{response.headers['Lambda-Runtime-Aws-Request-Id']}/response", answer)
        api.getresponse().read()


if __name__ == "__main__":
    main()
