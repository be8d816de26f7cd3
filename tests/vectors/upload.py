#!/usr/bin/env python3
"""A second implementation of upload keys, on the standard library alone, and a comparison of the project with it.

  upload.py rows FOLDER                          the rows of strict_upload_keys.json, for the shapefiles in a folder
  upload.py compare --seed N --count 200         makes that many bundles, each in a folder and in a zip, and compares
      --ours PATH                                the program `firstclaim`
      --oracle PATH                              also the published program, run as `PATH upload-key SHP NS VERSION BYTES`

The encodings are described in crates/identity-core/src/identity/bundle/upload_key.rs. Exits 1 at any difference.
"""

import argparse
import base64
import hashlib
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import zipfile

INDEXES = {"sbn", "sbx", "qix", "fix"}
SUFFIXES = {"shp", "shx", "dbf", "prj", "cpg"} | INDEXES


def split(name):
    """Stem and lower-case suffix without its dot; no stem if the name is no member's."""
    stem, dot, suffix = name.rpartition(".")
    suffix = suffix.lower()
    return (stem, suffix) if dot and suffix in SUFFIXES else ("", suffix)


def members_of(shp, index):
    stem, _ = split(shp.name)
    kept = []
    for file in shp.parent.iterdir():
        own, suffix = split(file.name)
        if own == stem and file.is_file() and (index or suffix not in INDEXES):
            kept.append(file)
    return sorted(kept, key=lambda file: split(file.name)[1])


def ascii_lower(text):
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


def frame(data):
    return struct.pack(">Q", len(data)) + data


def material(shp, options):
    members = [(file.name, file.read_bytes()) for file in members_of(shp, options["index_sidecars"])]
    namespace, version = options["namespace"], options["algo_version"]
    if options["form"] == "reference":
        named = b"".join(name.lower().encode() + b"\0" + content for name, content in members)
        return ("%s:v%d:" % (namespace, version)).encode() + named
    choice = "in" if options["index_sidecars"] else "out"
    fields = [namespace.encode(), str(version).encode(), b"index-sidecars:" + choice.encode()]
    for name, content in members:
        fields += [ascii_lower(name).encode(), content]
    return b"firstclaim/upload/strict/1\n" + b"".join(map(frame, fields))


def upload_key(shp, options):
    digest = hashlib.sha256(material(shp, options)).digest()
    key = base64.urlsafe_b64encode(digest[: options["key_bytes"]]).decode().rstrip("=")
    components = [file.name for file in members_of(shp, options["index_sidecars"])]
    return {"key": key, "full_digest": digest.hex(), "members": components}


def rows(folder):
    """Each shapefile under a few options, as a vectors file."""
    choices = [("parcels-ingest", 1, 12, True), ("parcels-ingest", 1, 12, False), ("staging", 2, 32, True)]
    vectors = []
    for shp in sorted(folder.rglob("*.shp")):
        for namespace, version, key_bytes, index in choices:
            options = {"namespace": namespace, "algo_version": version, "key_bytes": key_bytes, "index_sidecars": index}
            answer = upload_key(shp, {**options, "form": "strict"})
            vectors.append({
                "bundle": shp.relative_to(folder).as_posix(), **options, "components": answer["members"],
                "upload_key": answer["key"], "full_digest": answer["full_digest"],
            })
    source = "answers of upload.py, a second implementation"
    print(json.dumps({"scheme": "strict", "source": source, "vectors": vectors}, indent=1, ensure_ascii=False))


class Maker:
    """Bundles and options of all sorts, the same ones for the same seed."""

    LETTERS = list("abcXYZ019_- .,+'()#%&") + ["é", "É", "ß", "İ", "Σ", "ς", "東", "e\u0301", "😀", "[", "*"]

    def __init__(self, seed):
        self.random = random.Random(seed)

    def options(self, group):
        return {
            "form": ["reference", "strict"][group % 2],
            "namespace": self.random.choice(["parcels-ingest", "staging", "", "a:v1", "Größe"]),
            "algo_version": self.random.choice([1, 1, 2, 0, 2**64 - 1]),
            "key_bytes": self.random.choice([12, 12, 1, 9, 31, 32]),
            "index_sidecars": self.random.random() < 0.7,
        }

    def stem(self):
        # Hidden files are left out of folders.
        while True:
            stem = "".join(self.random.choices(self.LETTERS, k=self.random.randint(1, 8)))
            if not stem.startswith("."):
                return stem

    def any_case(self, text):
        return "".join(self.random.choice([c, c.upper()]) for c in text)

    def content(self):
        return self.random.randbytes(self.random.choice([0, 1, 7, 64, 1000, 70_000]))

    def bundle(self, folder):
        """Writes a bundle, with files beside it that are none of it. Returns its .shp, and whether the published program
        takes other members: it reads the stem as a pattern, and takes `STEM.anything.dbf` for a member of STEM."""
        folder.mkdir(parents=True)
        stem = self.stem()
        suffixes = ["shp"] + self.random.sample(sorted(SUFFIXES - {"shp"}), self.random.randint(0, 8))
        self.random.shuffle(suffixes)
        for suffix in suffixes:
            path = folder / f"{stem}.{self.any_case(suffix)}"
            path.write_bytes(self.content())
            if suffix == "shp":
                shp = path
        taken_for_members = False
        for extra in self.random.sample(range(7), self.random.randint(0, 3)):
            if extra == 0:
                (folder / f"{stem}.shp.xml").write_bytes(self.content())
            elif extra == 1:
                (folder / f"{stem}.2024.dbf").write_bytes(self.content())
                taken_for_members = True
            elif extra == 2:
                (folder / f"{stem}x.prj").write_bytes(self.content())
            elif extra == 3:
                (folder / f"x{stem}.dbf").write_bytes(self.content())
            elif extra == 4:
                (folder / stem).write_bytes(self.content())
            elif extra == 5:
                (folder / f"{stem}.tif").write_bytes(self.content())
            elif "cpg" not in suffixes:
                (folder / f"{stem}.cpg").mkdir()
        return shp, taken_for_members or any(c in stem for c in "*[")

    def zip(self, path, folder):
        files = [file for file in folder.iterdir() if file.is_file()]
        self.random.shuffle(files)
        inner = self.random.choice(["", "data/", "Data/in ner/"])
        with zipfile.ZipFile(path, "w") as archive:
            if inner and self.random.random() < 0.5:
                archive.writestr(inner, b"")
            for file in files:
                method = self.random.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
                archive.write(file, inner + file.name, method)
                if self.random.random() < 0.3:
                    archive.writestr(f"__MACOSX/{inner}._{file.name}", b"\0\5\26\7")
            archive.writestr(inner + ".DS_Store", b"junk")
        return inner


def ours(program, folder, options):
    command = [program, "key", "--json"]
    for flag in ("form", "namespace", "algo_version", "key_bytes"):
        command += ["--" + flag.replace("_", "-"), str(options[flag])]
    command += [] if options["index_sidecars"] else ["--no-index"]
    run = subprocess.run([*command, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    if run.returncode != 0:
        sys.exit(f"{command}: exit code {run.returncode}: {run.stderr}")
    lines = [json.loads(line) for line in run.stdout.split("\n")[:-1]]
    return {line.pop("path"): line for line in lines}


def published(oracle, shp, options):
    command = [sys.executable, oracle, "upload-key", str(shp)]
    command += [options["namespace"], str(options["algo_version"]), str(options["key_bytes"])]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def compare(arguments):
    maker, differences, compared, asked = Maker(arguments.seed), [], 0, 0
    with tempfile.TemporaryDirectory() as root:
        groups = max(2, arguments.count // 20)
        for group in range(groups):
            options, expected = maker.options(group), {}
            folder = pathlib.Path(root) / f"{group:03}"
            for index in range(group, arguments.count, groups):
                shp, otherwise = maker.bundle(folder / f"{index:04}")
                answer = upload_key(shp, options)
                expected[str(shp)] = answer
                inner = maker.zip(folder / f"{index:04}.zip", shp.parent)
                expected[f"{folder}/{index:04}.zip/{inner}{shp.name}"] = answer
                compared += 1
                if arguments.oracle and options["form"] == "reference" and options["index_sidecars"] and not otherwise:
                    asked += 1
                    theirs = published(arguments.oracle, shp, options)
                    if theirs != answer["key"]:
                        differences.append((str(shp), options, answer, theirs))
            got = ours(arguments.ours, folder, options)
            for path in sorted(expected.keys() | got.keys()):
                if got.get(path) != expected.get(path):
                    differences.append((path, options, expected.get(path), got.get(path)))
    print(f"upload keys: {compared} bundles, each also in a zip, {asked} asked of the published program, "
          f"{len(differences)} differences")
    for path, options, one, other in differences[:10]:
        print(f"  {path!r} {options}\n    first:  {one}\n    second: {other}")
    return 1 if differences or not compared else 0


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = options.add_subparsers(dest="command", required=True)
    commands.add_parser("rows").add_argument("folder", type=pathlib.Path)
    comparison = commands.add_parser("compare")
    comparison.add_argument("--seed", type=int, required=True)
    comparison.add_argument("--count", type=int, default=200)
    comparison.add_argument("--ours", required=True)
    comparison.add_argument("--oracle")
    options = options.parse_args()
    if options.command == "rows":
        rows(options.folder)
        return 0
    return compare(options)


if __name__ == "__main__":
    sys.exit(main())
