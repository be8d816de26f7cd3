#!/usr/bin/env python3
"""What the benchmark is measured against: the derivation as Python workers do it today, and nothing besides.

  peer.py id N            N job IDs of one S3 record that is parsed already
  peer.py bytes N FILE    N times the bytes of FILE: json.loads through every envelope, then the job ID

Prints the seconds that it took. The work is that of the published program, without the refusals that this project adds.
"""

import hashlib
import json
import sys
import time
import urllib.parse

PARAMS = {"dst_crs": "EPSG:3857", "resampling": "bilinear", "tile_px": 512}
VERSION = "3.2.0"


def plain(value):
    if isinstance(value, float):
        return f"{value:.6f}"
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(value[key]) for key in sorted(value)}
    return value


def parameters(params):
    body = {key: plain(params[key]) for key in sorted(params)}
    body["_pipeline_version"] = VERSION
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def job_id(bucket, key, token, params):
    if not token:
        raise ValueError("no version token")
    path = "/".join(part for part in urllib.parse.unquote_plus(key).split("/") if part)
    uri = f"s3://{bucket.strip().lower()}/{path}"
    material = "\x1f".join((uri, token.strip('"'), parameters(params)))
    return hashlib.sha256(material.encode("utf-8")).hexdigest()


def of_record(record):
    stored = record["s3"]["object"]
    token = stored.get("versionId") or stored.get("eTag", "")
    return job_id(record["s3"]["bucket"]["name"], stored["key"], token, PARAMS)


def of_bytes(body):
    """The IDs of whatever S3 envelope this is."""
    event = json.loads(body)
    if "detail" in event:
        detail = event["detail"]
        stored = detail["object"]
        token = stored.get("version-id") or stored.get("etag", "")
        return [job_id(detail["bucket"]["name"], urllib.parse.quote_plus(stored["key"]), token, PARAMS)]
    if event.get("Type") == "Notification":
        return of_bytes(event["Message"])
    ids = []
    for record in event["Records"]:
        if "body" in record:
            ids.extend(of_bytes(record["body"]))
        else:
            ids.append(of_record(record))
    return ids


def main():
    mode, count = sys.argv[1], int(sys.argv[2])
    if mode == "id":
        entity = {"key": "L2A/T31UDQ%2FB08.tif", "eTag": '"9b2cf5a1c0d3e4f5"'}
        argument = {"s3": {"bucket": {"name": "sentinel-scenes"}, "object": entity}}
        work = of_record
    else:
        with open(sys.argv[3], "rb") as file:
            argument = file.read()
        work = of_bytes
    started = time.perf_counter()
    for _ in range(count):
        work(argument)
    print(f"{time.perf_counter() - started:.6f}")


if __name__ == "__main__":
    main()
