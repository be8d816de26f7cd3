"""Nasty requests, the same ones for the same seed. Written as JSON text, so that every spelling of a number occurs."""

import random
import struct

PIECES = [
    "a", "B", "k.tif", "L2A", "/", "/", "//", "+", " ", "%2B", "%2b", "%20", "%25", "%2F", "%252F", "%", "%2", "%G0",
    "%FF", "%C3%A9", "%c3", "%A9", "%E2%82", "%E2%82%AC", "%F0%9F%97%BA", "%ED%A0%80", "%C0%AF", "%00", "%1F", "%0A",
    "\u00e9", "e\u0301", "\u00df", "\u0130", "\u03a3", "\u0391\u03a3", "\ufb03", "\U0001f5fa", "\uff5e", "\ufffd",
    "\u200b", "\ufeff", "\u00a0", "\u0085", "\u1680", "\u2003", "\u2028", "\u3000", "\t", "\n", "\r", "\x0b", "\x1c",
    "\x1f", "\x00", "\x7f", "\x9f", '"', '""', "\\", "'", "~", ";", "?", "#", "..", ".", ":", "@", "null", "_", "{}",
]
# Blocks whose letters have had the same cases since Unicode 14, so that every Python from 3.11 on agrees about them.
CODE_POINTS = [(0x0, 0x1C80), (0x1D00, 0xA700), (0xA800, 0xD800), (0xE000, 0x10D00), (0x1D000, 0x20000),
               (0x10FF00, 0x110000)]
HOSTS = [
    "acct.blob.core.windows.net", "ACCT.dfs.core.windows.net", "127.0.0.1:10000", "", "user:pw@host", "[::1]", "[::1",
    "::1]", "[127.0.0.1]", "[fe80::1%eth0]", "[::1%]", "[v1F.x]", "[v1F.]", "[vx.y]", "[1::2::3]", "[1:2:3:4:5:6:7:8]",
    "[1:2:3:4:5:6:7::]", "[::1.2.3.4]", "[::01.2.3.4]", "[12345::]", "a]b[", "h\u00f6st", "\uff0f", "a\u2100b",
    "\ufe55", "\u2044", "\u00bd", "\uff03",
]
BEFORE_HOSTS = ["https://", "https://", "https://", "http://", "HTTPS://", "wasbs://", "ht\ntps://", "\x01 https://",
                "//", "", "/", "https:", "1x://", "a_b://", "sftp://", ":", "://"]
FLOATS = ["0.1", "-0.0", "0.0", "-0e0", "1.0", "1E5", "1e-7", "3e-7", "5e-7", "1.5e-6", "2.5e-7", "1.0000005", "5e-324",
          "1.7976931348623157e308", "1e16", "1e20", "1e21", "1e22", "123456789012345678.5", "0.100000", "0.3333333333333333",
          "9007199254740993.0", "0.1000000000000000055511151231257827", "1e-400", "2.2250738585072011e-308", "1e23",
          "4.35", "0.000001", "-1e-9", "333333333.33333329"]
OVERFLOWS = ["1e400", "-1e999", "NaN", "Infinity", "-Infinity"]
INTEGERS = ["0", "-0", "1", "-1", "512", "9007199254740991", "-9007199254740991", "9007199254740992",
            "-9007199254740992", "9223372036854775807", "18446744073709551616"]
RESERVED = "_pipeline_version"


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def chance(self, one_in):
        return self.random.randrange(one_in) == 0

    def text(self, longest=6):
        pieces = [self.random.choice(PIECES) for _ in range(self.random.randint(0, longest))]
        if self.chance(6):
            pieces.append(chr(self.random.randrange(*self.random.choice(CODE_POINTS))))
        if self.chance(150):
            pieces.append("\ud800")
        self.random.shuffle(pieces)
        return "".join(pieces)

    def string(self, text):
        """A JSON string of this text, in one of its spellings."""
        out = []
        for character in text:
            code = ord(character)
            escape = code < 0x20 or character in '"\\' or 0xD800 <= code < 0xE000 or self.chance(8)
            if not escape:
                out.append(character)
            elif character == "/" and self.chance(2):
                out.append("\\/")
            else:
                units = character.encode("utf-16-be", "surrogatepass")
                hexes = [units[at:at + 2].hex() for at in range(0, len(units), 2)]
                out.extend("\\u" + (pair.upper() if self.chance(2) else pair) for pair in hexes)
        return '"' + "".join(out) + '"'

    def object(self, members):
        """A JSON object of these pairs of a name and a value's JSON text."""
        return "{" + ",".join(f"{self.string(name)}:{value}" for name, value in members) + "}"

    def number(self):
        kind = self.random.randrange(8)
        if kind == 0:
            return self.random.choice(INTEGERS)
        if kind == 1:
            return str(self.random.randint(-1000, 1000))
        if kind == 2:
            return str(self.random.choice([1, -1]) * self.random.getrandbits(self.random.choice([52, 53, 54, 64, 1300])))
        if kind == 3:
            return self.random.choice(FLOATS)
        if kind == 4:
            # A tie at the sixth place: an odd multiple of 1/128.
            return repr((2 * self.random.randint(-10_000, 10_000) + 1) / 128)
        if kind == 5:
            return f"{self.random.randint(-9, 9)}.{self.random.randint(0, 10**9)}e{self.random.randint(-25, 25)}"
        if kind == 6 and self.chance(6):
            return self.random.choice(OVERFLOWS)
        double = struct.unpack("<d", self.random.randbytes(8))[0]
        return repr(double) if abs(double) < float("inf") else "1.5"

    def value(self, depth=0):
        kind = self.random.randrange(9 if depth < 4 else 6)
        if kind < 3:
            return self.number()
        if kind < 5:
            return self.string(self.text(4))
        if kind == 5:
            return self.random.choice(["true", "false", "null"])
        if kind == 6:
            return "[" + ",".join(self.value(depth + 1) for _ in range(self.random.randint(0, 3))) + "]"
        return self.table(depth + 1)

    def table(self, depth=0):
        names = [self.text(3) for _ in range(self.random.randint(0, 3))]
        if names and self.chance(10):
            names.append(names[0])
        if self.chance(60):
            names.append(RESERVED)
        return self.object([(name, self.value(depth)) for name in names])

    def params(self):
        if self.chance(300):
            return self.random.choice(["[]", "1", '"x"', "[" * 200 + "]" * 200])
        if self.chance(4):
            return '{"dst_crs":"EPSG:3857","resampling":"bilinear","tile_px":512}'
        return self.table()

    def token(self):
        kind = self.random.randrange(12)
        if kind == 0:
            return self.string(self.text(3))
        if kind == 1:
            return self.random.choice(['""', '"\\"\\""', '"null"', '"\\"null\\""', "7", '"\\"\\"\\""'])
        bare = f"{self.random.getrandbits(64):x}{self.random.choice(['', '-6'])}"
        return self.string(f'"{bare}"' if self.chance(2) else bare)

    def version(self):
        return self.string(self.text(2) if self.chance(10) else f"3.2.{self.random.randrange(9)}")

    def s3(self):
        stored = [("key", self.string(self.text()))]
        if not self.chance(20):
            stored.append(("eTag", self.token()))
        if self.chance(2):
            stored.append(("versionId", self.random.choice(["null", '""', '"null"', self.token()])))
        if self.chance(3):
            stored.append(("sequencer", self.string(f"{self.random.getrandbits(64):X}")))
        bucket = self.object([("name", self.container())])
        return self.object([("s3", self.object([("bucket", bucket), ("object", self.object(stored))]))])

    def container(self):
        return self.string(self.random.choice(["geo-uploads", "Scenes", " b ", self.text(3)]))

    def url(self):
        rest = self.random.choice(["", "/", "//", "/c/", "/Rasters/"]) + self.text()
        return self.random.choice(BEFORE_HOSTS) + self.random.choice(HOSTS) + rest

    def reference(self):
        event = self.random.choice(["s3", "gcs", "event_grid", "parts"])
        if event == "s3":
            payload = self.s3()
        elif event == "gcs":
            payload = self.object([
                ("bucketId", self.container()), ("objectId", self.string(self.text())), ("objectGeneration", self.token()),
            ])
        elif event == "event_grid":
            payload = self.object([("url", self.string(self.url())), ("eTag", self.token())])
        else:
            payload = self.object([
                ("scheme", self.string(self.random.choice(["s3", "gs", "azblob", "file"]))),
                ("container", self.container()), ("raw_key", self.string(self.text())), ("version_token", self.token()),
            ])
        return self.object([
            ("scheme", '"reference"'), ("event", self.string(event)), ("payload", payload), ("params", self.params()),
            ("pipeline_version", self.version()),
        ])

    def ingest(self):
        if self.chance(2):
            return self.object([("scheme", '"ingest"'), ("event", '"s3"'), ("payload", self.s3())])
        return self.object([
            ("scheme", '"ingest"'), ("bucket", self.container()), ("key", self.string(self.text())), ("etag", self.token()),
        ])

    def strict(self):
        scheme = self.random.choice(["s3", "gs", "azblob", "file"])
        payload = [("scheme", self.string(scheme)), ("container", self.container())]
        if (scheme == "azblob") != self.chance(25):
            payload.append(("account", self.random.choice(['"acct"', '"ACCT"', '""', '"a/b"', self.container()])))
        if self.chance(8):
            payload.append(("key_hex", self.string(self.text().encode("utf-8", "surrogatepass").hex() + self.random.choice(["", "ff", "c3"]))))
        else:
            payload.append(("key", self.string(self.text())))
        payload.append(("token_kind", self.string(self.random.choice(["version-id", "etag", "generation", "content"]))))
        payload.append(("token", self.token()))
        return self.object([
            ("scheme", '"strict"'), ("event", '"parts"'), ("payload", self.object(payload)), ("params", self.params()),
            ("pipeline_name", self.version()), ("pipeline_version", self.version()),
        ])
