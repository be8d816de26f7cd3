"""A handler that claims in DynamoDB with the writes of the published Python one, for tests beside firstclaim.

Usage: claims.py TABLE COMMAND EVENT-FILE, where COMMAND is

  handle  claim each record; "process" it by a line on standard output, and set it done; or skip it
  claim   claim each record and stop there, as a handler that is killed does
  done    set each record done without a look, as the published handler does at the end of its work

The last line of `handle` and `claim` is a JSON object with the counts `processed` and `skipped`.
"""

import hashlib
import json
import sys
import time
import urllib.parse

import boto3

TTL_SECONDS = 7 * 24 * 3600


def records(event):
    """What happened to objects, be it told directly or in messages of a queue."""
    for record in event["Records"]:
        if "body" in record:
            yield from json.loads(record["body"])["Records"]
        else:
            yield record


def identity(record):
    """A job ID, and the bucket and the decoded key that it is of."""
    bucket = record["s3"]["bucket"]["name"]
    key = urllib.parse.unquote_plus(record["s3"]["object"]["key"])
    etag = record["s3"]["object"]["eTag"].strip('"')
    job_id = hashlib.sha256("\n".join((bucket, key, etag)).encode()).hexdigest()
    return job_id, bucket, key


def claim(dynamodb, table, job_id, bucket, key):
    now = int(time.time())
    item = {
        "job_id": {"S": job_id},
        "bucket": {"S": bucket},
        "key": {"S": key},
        "status": {"S": "processing"},
        "claimed_at": {"N": str(now)},
        "expires_at": {"N": str(now + TTL_SECONDS)},
    }
    condition = "attribute_not_exists(job_id)"
    try:
        dynamodb.put_item(TableName=table, Item=item, ConditionExpression=condition)
    except dynamodb.exceptions.ConditionalCheckFailedException:
        return False
    return True


def set_done(dynamodb, table, job_id):
    dynamodb.update_item(
        TableName=table,
        Key={"job_id": {"S": job_id}},
        UpdateExpression="SET #s = :done, finished_at = :now",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":done": {"S": "done"}, ":now": {"N": str(int(time.time()))}},
    )


def main():
    table, command, path = sys.argv[1:]
    dynamodb = boto3.client("dynamodb")
    processed = skipped = 0
    with open(path, encoding="utf-8") as file:
        event = json.load(file)
    for record in records(event):
        job_id, bucket, key = identity(record)
        if command == "done":
            set_done(dynamodb, table, job_id)
        elif not claim(dynamodb, table, job_id, bucket, key):
            skipped += 1
        else:
            processed += 1
            if command == "handle":
                print(f"processing s3://{bucket}/{key}", flush=True)
                set_done(dynamodb, table, job_id)
    if command != "done":
        print(json.dumps({"processed": processed, "skipped": skipped}))


if __name__ == "__main__":
    main()
