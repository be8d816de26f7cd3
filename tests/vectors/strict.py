#!/usr/bin/env python3
"""A second implementation of the scheme `strict`, on the PyPI package rfc8785 (requirements.txt beside this file).

Reads one request a line (README.md beside this file) on standard input and answers each with one line: the job ID, or
`error: ` and the reason.
"""

import hashlib
import sys
import unicodedata

import rfc8785

from reference import Refused, params_of, read

WITH_ACCOUNT = "azblob"
URI_SCHEMES = ("s3", "gs", "azblob", "file")
TOKEN_KINDS = ("version-id", "etag", "generation", "content")
ASCII_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def name_of(payload, what):
    name = payload[what]
    if not name or "/" in name:
        raise Refused(f"{what} {name!r}")
    return name.translate(ASCII_LOWER) if payload["scheme"] == WITH_ACCOUNT else name


def uri_of(payload):
    scheme = payload["scheme"]
    if scheme not in URI_SCHEMES:
        raise Refused(f"unknown URI scheme {scheme!r}")
    names = [name_of(payload, "container")]
    if scheme == WITH_ACCOUNT:
        names.insert(0, name_of(payload, "account"))
    elif payload.get("account") is not None:
        raise Refused("an account where there is none")
    if "key_hex" in payload:
        key = bytes.fromhex(payload["key_hex"]).decode("utf-8")
    else:
        key = payload["key"]
    if not key:
        raise Refused("the key is empty")
    return f"{scheme}://{'/'.join(names)}/{key}"


def token_of(payload):
    kind, value = payload["token_kind"], payload["token"]
    if kind not in TOKEN_KINDS:
        raise Refused(f"unknown token kind {kind!r}")
    bare = value.strip('"')
    if not bare or any(unicodedata.category(character) == "Cc" for character in value):
        raise Refused(f"token {value!r}")
    return f"{kind}:{bare if kind == 'etag' else value}"


def strict(request):
    if request["event"] != "parts":
        raise Refused("strict is given parts")
    fields = [
        request["pipeline_name"].encode("utf-8"),
        request["pipeline_version"].encode("utf-8"),
        rfc8785.dumps(params_of(request)),
        uri_of(request["payload"]).encode("utf-8"),
        token_of(request["payload"]).encode("utf-8"),
    ]
    material = b"firstclaim/job/strict/1\n"
    for field in fields:
        material += len(field).to_bytes(8, "big") + field
    return hashlib.sha256(material).hexdigest()


def answer(line):
    try:
        return strict(read(line))
    except Exception as error:  # whatever stops Python from deriving an ID is a refusal
        return "error: %s: %s" % (type(error).__name__, ascii(str(error)))


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    sys.set_int_max_str_digits(0)
    for request_line in sys.stdin:
        print(answer(request_line))
