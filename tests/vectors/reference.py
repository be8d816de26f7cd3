#!/usr/bin/env python3
"""A second implementation of the schemes `reference` and `ingest`, on the standard library alone.

Reads one request a line (README.md beside this file) on standard input and answers each with one line: the job ID, or
`error: ` and the reason. It derives as the published program does, and refuses what the project refuses beyond it.
"""

import hashlib
import json
import math
import sys
import unicodedata
import urllib.parse

RESERVED = "_pipeline_version"
DEEPEST = 100


class Refused(Exception):
    """No ID is derived."""


def number_from(text):
    value = float(text)
    return value if math.isfinite(value) else NotFinite()


class NotFinite:
    """Stands for a number beyond the doubles until it is known whether a later key of the same name replaces it."""


def read(line):
    """One request, with integers exact. NaN and Infinity are no JSON."""

    def no_constant(text):
        raise Refused(f"{text} is no JSON")

    return json.loads(line, parse_float=number_from, parse_constant=no_constant)


def unicode(text):
    """The text, if it is one: half a surrogate pair is none."""
    text.encode("utf-8")
    return text


def checked(value, depth=0):
    """The value, if parameters can hold it."""
    if isinstance(value, NotFinite):
        raise Refused("a parameter is not finite")
    if isinstance(value, str):
        unicode(value)
    if isinstance(value, (dict, list)) and depth >= DEEPEST:
        raise Refused("the parameters are nested too deeply")
    if isinstance(value, list):
        for item in value:
            checked(item, depth + 1)
    if isinstance(value, dict):
        for key, item in value.items():
            unicode(key)
            checked(item, depth + 1)
    return value


def params_of(request):
    params = checked(request["params"])
    if not isinstance(params, dict):
        raise Refused("the parameters are no object")
    if RESERVED in params:
        raise Refused(f"{RESERVED} is reserved")
    return params


def floats_as_text(value):
    if isinstance(value, float):
        return "%.6f" % value
    if isinstance(value, list):
        return [floats_as_text(item) for item in value]
    if isinstance(value, dict):
        return {key: floats_as_text(item) for key, item in value.items()}
    return value


def canonical_params(params, pipeline_version):
    members = floats_as_text(params)
    members[RESERVED] = pipeline_version
    return json.dumps(members, sort_keys=True, separators=(",", ":"))


def token_of(text):
    """The token without the quotes at its ends."""
    if not isinstance(text, str):
        raise Refused("the token is no text")
    bare = text.strip('"')
    if not bare:
        raise Refused("the token is empty")
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise Refused("the token holds a control character")
    return bare


def best_s3_token(stored):
    """The version ID, where the bucket gives a real one, else the ETag."""
    version = stored.get("versionId")
    return version if version not in (None, "", "null") else stored.get("eTag")


def reference_parts(event, payload):
    """URI scheme, container, raw key and token."""
    if event == "parts":
        return payload["scheme"], payload["container"], payload["raw_key"], payload["version_token"]
    if event == "s3":
        entity = payload["s3"]
        stored = entity["object"]
        return "s3", entity["bucket"]["name"], stored["key"], best_s3_token(stored)
    if event == "gcs":
        return "gs", payload["bucketId"], payload["objectId"], payload["objectGeneration"]
    if event == "event_grid":
        path = urllib.parse.urlparse(unicode(payload["url"])).path.lstrip("/")
        container, _, name = path.partition("/")
        return "azblob", container, name, payload["eTag"]
    raise Refused(f"unknown event {event!r}")


def reference(request):
    scheme, container, raw_key, token = reference_parts(request["event"], request["payload"])
    if scheme not in ("s3", "gs", "azblob", "file"):
        raise Refused(f"unknown URI scheme {scheme!r}")
    segments = urllib.parse.unquote_plus(raw_key).split("/")
    uri = "%s://%s/%s" % (scheme, container.strip().lower(), "/".join(filter(None, segments)))
    params = canonical_params(params_of(request), unicode(request["pipeline_version"]))
    return digest("\x1f".join([uri, token_of(token), params]))


def ingest(request):
    if "event" in request:
        if request["event"] != "s3":
            raise Refused("ingest knows S3 only")
        entity = request["payload"]["s3"]
        stored = entity["object"]
        key = urllib.parse.unquote_plus(stored["key"])
        bucket, etag = entity["bucket"]["name"], stored.get("eTag")
    else:
        bucket, key, etag = request["bucket"], request["key"], request["etag"]
    return digest("\n".join([bucket, key, token_of(etag)]))


def digest(material):
    return hashlib.sha256(material.encode("utf-8")).hexdigest()


def answer(line):
    try:
        request = read(line)
        return {"reference": reference, "ingest": ingest}[request["scheme"]](request)
    except Exception as error:  # whatever stops Python from deriving an ID is a refusal
        return "error: %s: %s" % (type(error).__name__, ascii(str(error)))


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    sys.set_int_max_str_digits(0)
    for request_line in sys.stdin:
        print(answer(request_line))
