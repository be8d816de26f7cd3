#!/usr/bin/env python3
"""Drives the project and the Python implementations beside this file with the same nasty requests, line by line.

  differential.py --seed N --count 10000            each scheme against its second implementation
  differential.py ... --ours 'COMMAND'              what answers for the project (default: the example `derive`)
  differential.py ... --oracle PATH                 also reference.py against the published programs themselves, run
                                                    as `PATH job-id`, one request a line

Two IDs agree if they are equal; two refusals agree whatever they say. Exits 1 at any difference, and if a scheme gave
so few IDs or refusals that agreement would mean nothing.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys

from nasty import Maker

HERE = pathlib.Path(__file__).resolve().parent
OURS = "cargo run --quiet -p tests --example derive"
SECOND = {"reference": "reference.py", "ingest": "reference.py", "strict": "strict.py"}
SHOWN = 10


def answers(command, requests):
    text = "".join(f"{request}\n" for request in requests)
    environment = {**os.environ, "PYTHONUTF8": "1"}
    run = subprocess.run(command, input=text.encode("utf-8"), stdout=subprocess.PIPE, env=environment, check=True)
    lines = run.stdout.decode("utf-8").split("\n")[:-1]
    if len(lines) != len(requests):
        sys.exit(f"{command}: {len(requests)} requests, {len(lines)} answers")
    return lines


def refused(answer):
    return answer.startswith("error: ")


def agree(one, other):
    return one == other or (refused(one) and refused(other))


def compare(title, requests, ours, theirs):
    """Prints how it went; whether all agreed, and enough of both kinds were seen."""
    differing = [trio for trio in zip(requests, ours, theirs) if not agree(trio[1], trio[2])]
    refusals = sum(map(refused, theirs))
    ids = len(theirs) - refusals
    print(f"{title}: {len(requests)} requests, {ids} IDs, {refusals} refusals, {len(differing)} differences")
    for request, one, other in differing[:SHOWN]:
        print(f"  {request}\n    first:  {one}\n    second: {other}")
    telling = min(ids, refusals) * 50 >= len(requests)
    if not telling:
        print(f"{title}: too few IDs or refusals to tell anything")
    return telling and not differing


def is_deviation(request, answer):
    """Whether the project differs from the published program here on purpose (each case is in the README's list)."""
    if answer.startswith(("error: Refused:", "error: UnicodeEncodeError:")):
        return True
    fields = json.loads(request)
    stored = fields["payload"].get("s3", {}).get("object", {})
    return stored.get("versionId") == "null"


def against_oracle(oracle, requests, ours):
    kept = [(r, a) for r, a in zip(requests, ours) if not is_deviation(r, a)]
    print(f"reference.py refuses or reads {len(requests) - len(kept)} requests otherwise on purpose")
    requests, ours = map(list, zip(*kept))
    theirs = answers([sys.executable, oracle, "job-id"], requests)
    return compare("reference.py and the published program", requests, ours, theirs)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seed", type=int, required=True)
    options.add_argument("--count", type=int, default=10_000)
    options.add_argument("--ours", default=OURS)
    options.add_argument("--oracle")
    options = options.parse_args()
    good = True
    for scheme, program in SECOND.items():
        maker = Maker(f"{scheme} {options.seed}")
        requests = [getattr(maker, scheme)() for _ in range(options.count)]
        theirs = answers([sys.executable, str(HERE / program)], requests)
        ours = answers(shlex.split(options.ours), requests)
        good &= compare(f"{scheme}: the project and {program}", requests, ours, theirs)
        if scheme == "reference" and options.oracle:
            good &= against_oracle(options.oracle, requests, theirs)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
