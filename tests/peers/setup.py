"""Makes what a test needs on an emulator of Amazon's services.

Usage: setup.py table NAME               the table of claims, as deploy/aws makes it
       setup.py bucket NAME [versioned]
       setup.py put BUCKET KEY TEXT      an object; prints its ETag and its version ID, or null, as JSON
"""

import json
import sys

import boto3


def table(name):
    attributes = ["job_id", "open_shard", "open_since"]
    boto3.client("dynamodb").create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in attributes],
        KeySchema=[{"AttributeName": "job_id", "KeyType": "HASH"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "open",
                "KeySchema": [
                    {"AttributeName": "open_shard", "KeyType": "HASH"},
                    {"AttributeName": "open_since", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    )


def bucket(name, versioned=None):
    s3 = boto3.client("s3")
    location = {"LocationConstraint": s3.meta.region_name}
    s3.create_bucket(Bucket=name, CreateBucketConfiguration=location)
    if versioned:
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})


def put(bucket_name, key, text):
    answer = boto3.client("s3").put_object(Bucket=bucket_name, Key=key, Body=text.encode())
    print(json.dumps({"etag": answer["ETag"].strip('"'), "version": answer.get("VersionId")}))


def main():
    command, *arguments = sys.argv[1:]
    {"table": table, "bucket": bucket, "put": put}[command](*arguments)


if __name__ == "__main__":
    main()
