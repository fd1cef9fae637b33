"""d7 verify and a file's certificate: it is proven, and whatever is altered in file, checksums, certificate or signature is named."""
import hashlib
import json
import os
import subprocess
import sys
import tempfile

import require
from d7run import d7
from d7script import Script

openssl = require.program("openssl")
GAP = {"group": "photons", "item": 5, "count": 2, "cause": "hardware", "monotonic": 1, "utc": 2}
TOLD = {"photond.run": "00" * 16, "photond.producer": "me", "photond.part": "0", "photond.sequence": "7",
        "photond.software": "photond 9", "photond.configuration": "ab", "photond.gap.00000000": json.dumps(GAP)}


def sums(path):
    with open(path, "rb") as f:
        data = f.read()
    return {"name": os.path.basename(path), "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


class Case:
    """A file with checksums, certificate and signature, made as docs/certificate.md says."""

    def __init__(self, folder, key):
        self.path = os.path.join(folder, "run.photons")
        self.json = os.path.join(folder, "run.run.json")
        self.sig = self.json + ".sig"
        self.private, self.public = key
        s = Script([("/photons/x", 5), ("/photons/y", 5)], early=TOLD)
        for dataset in (0, 1):
            s.append(dataset, [(i * 7919) % 4096 for i in range(9000)])
        s.run(self.path, checksums=True)
        self.certify()

    def certify(self, sign=True, **changes):
        certificate = {"certificate": 1, "file": sums(self.path), "checksums": sums(self.path + ".crc"), "name": "run",
                       "run": "00" * 16, "part": 0, "producer": "me", "sequence": 7, "software": "photond 9",
                       "configuration": "ab", "datasets": [{"name": "/photons/" + c, "type": "uint16", "items": 9000} for c in "xy"],
                       "markers": 0, "gaps": [GAP], **changes}
        with open(self.json, "w") as f:
            json.dump(certificate, f)
        if sign:
            how = ["pkeyutl", "-sign", "-inkey", self.private, "-rawin", "-in", self.json, "-out", self.sig]
            if "ec" in self.private:
                how = ["dgst", "-sha256", "-sign", self.private, "-out", self.sig, self.json]
            subprocess.run([openssl, *how], check=True)

    def found(self, *options, code=0):
        """What verify finds: codes, and members of the answer."""
        got = json.loads(d7("verify", self.path, "--json", *options, code=code))
        return [p["code"] for p in got["problems"]], got


def flip(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)
        f.seek(at)
        f.write(bytes([byte[0] ^ 1]))


def proven(c):
    codes, got = c.found("--key", c.public, "--strict")
    assert codes == [] and got["certified"] is True and got["signed"] is True, got
    assert b"as certified and signed" in d7("verify", c.path, "--key", c.public)
    assert c.found()[1]["signed"] is None
    codes, got = c.found("--no-certificate")
    assert codes == [] and got["certified"] is None
    assert d7("verify", c.path, "--no-certificate", "--key", c.public, code=2) == b""
    assert json.loads(d7("info", "--json", c.path))["certificate"] == c.json
    assert c.json.encode() in d7("info", c.path)


def altered(c):
    size = os.path.getsize(c.path)
    for at in (300, size // 2, size - 1):
        flip(c.path, at)
        codes, got = c.found(code=1)
        assert "CERTIFICATE" in codes and got["certified"] is False, (at, codes)
        flip(c.path, at)
    with open(c.path, "ab") as f:
        f.write(b"\0")
    assert "CERTIFICATE" in c.found(code=1)[0]
    os.truncate(c.path, size)
    flip(c.path + ".crc", os.path.getsize(c.path + ".crc") - 1)
    codes, got = c.found()
    assert "CERTIFICATE_FILE" in codes and got["certified"] is True, got
    c.found("--strict", code=1)
    os.rename(c.path + ".crc", c.path + ".away")
    assert c.found()[0] == ["CERTIFICATE_FILE"]
    os.rename(c.path + ".away", c.path + ".crc")
    flip(c.path + ".crc", os.path.getsize(c.path + ".crc") - 1)
    proven(c)


def other_words(c):
    """Every member that the file can tell of itself."""
    datasets = [{"name": "/photons/" + d, "type": "uint16", "items": 9000} for d in "xy"]
    for change in ({"run": "11" * 16}, {"producer": "you"}, {"part": 1}, {"sequence": 8}, {"sequence": None}, {"software": "x"},
                   {"configuration": "cd"}, {"gaps": []}, {"gaps": [GAP, GAP]}, {"gaps": [{**GAP, "count": 3}]},
                   {"datasets": datasets[:1]}, {"datasets": [datasets[0], {**datasets[1], "items": 9001}]},
                   {"datasets": [datasets[0], {**datasets[1], "type": "int16"}]}, {"file": {}}, {"file": None},
                   {"file": {**sums(c.path), "sha256": "00" * 32}}):
        c.certify(sign=False, **change)
        codes, got = c.found(code=1)
        assert "CERTIFICATE" in codes and got["certified"] is False, (change, codes)
        assert "SIGNATURE" in c.found("--key", c.public, code=1)[0], change
    for change in ({"certificate": 2}, {"certificate": "1"}):
        c.certify(sign=False, **change)
        assert c.found()[0] == ["CERTIFICATE_FILE"]
    c.certify(checksums=None)
    proven(c)
    c.certify()
    with open(c.json, "rb") as f:
        text = f.read()
    for n in (0, 1, len(text) // 2, len(text) - 1):
        os.truncate(c.json, n)
        codes, got = c.found()
        assert codes == ["CERTIFICATE_FILE"] and got["certified"] is False, got
        assert c.found("--key", c.public, code=1)[0] == ["SIGNATURE", "CERTIFICATE_FILE"]
        with open(c.json, "wb") as f:
            f.write(text)
    proven(c)


def signatures(c, other):
    assert c.found("--key", other, code=1)[0] == ["SIGNATURE"]
    for at in (0, os.path.getsize(c.sig) - 1):
        flip(c.sig, at)
        codes, got = c.found("--key", c.public, code=1)
        assert codes == ["SIGNATURE"] and got["signed"] is False and got["certified"] is True, got
        assert c.found()[0] == []
        flip(c.sig, at)
    os.truncate(c.sig, 0)
    assert c.found("--key", c.public, code=1)[0] == ["SIGNATURE"]
    os.unlink(c.sig)
    assert c.found("--key", c.public, code=1)[0] == ["SIGNATURE"]
    os.unlink(c.json)
    codes, got = c.found("--key", c.public, code=1)
    assert codes == ["SIGNATURE"] and got["certified"] is None and got["signed"] is False, got
    assert c.found()[0] == [] and json.loads(d7("info", "--json", c.path))["certificate"] is None
    os.mkdir(c.json)
    assert c.found()[0] == ["CERTIFICATE_FILE"]
    os.rmdir(c.json)
    c.certify()
    for key in ("/nonexistent.pem", c.path):
        d7("verify", c.path, "--key", key, code=2)
        assert key in d7.err, d7.err


def main():
    with tempfile.TemporaryDirectory() as folder:
        keys = []
        for name, how in (("ed", ["ed25519"]), ("ec", ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"])):
            private, public = (os.path.join(folder, name + end) for end in (".key", ".pub"))
            subprocess.run([openssl, "genpkey", "-algorithm", *how, "-out", private], check=True)
            subprocess.run([openssl, "pkey", "-in", private, "-pubout", "-out", public], check=True)
            keys.append((private, public))
        for key, other in zip(keys, reversed(keys)):
            c = Case(folder, key)
            proven(c)
            signatures(c, other[1])
        altered(c)
        other_words(c)


if __name__ == "__main__":
    sys.exit(main())
