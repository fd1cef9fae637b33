"""Repositories at URLs: equal to the directory, cheap, and safe from servers that misbehave."""
import json
import os
import shutil
import ssl
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import require  # noqa: E402
import support  # noqa: E402
from http_server import Server  # noqa: E402

FIXTURES = support.fixtures()
REPOSITORIES = [("flat-all-types", "repo.daf"), ("packed", "zstd.daf"), ("packed", "gzip.daf"),
                ("packed", "blosc_zstd_bitshuffle.daf"), ("packed-all-types", "zstd.daf"),
                ("packed-wide-chunks", "gzip.daf"), ("zipped", "zstd.daf"), ("flat-odd-names", "repo.daf")]
N_BIG = 3000000
CHUNK = 2048
ENVIRONMENT = {"DAF_HTTP_TIMEOUT_S": "2", "no_proxy": "127.0.0.1"}


def part_of(url, axis, name, first, n):
    result = subprocess.run([sys.argv[1], url, axis, name, str(first), str(n)], capture_output=True,
                            env=dict(os.environ, **ENVIRONMENT))
    return result.returncode, result.stdout, result.stderr.decode("utf-8", "replace")


def daf(*arguments, code=0):
    return support.daf(*arguments, code=code, env=ENVIRONMENT)


def every_value(path, about):
    """The values of every property, as the command gives them."""
    values = {}
    for name in sorted(about["scalars"]):
        values["scalar", name] = daf("get", path, "scalar", name, "--format", "json")
    for axis in sorted(about["axes"]):
        values["axis", axis] = daf("get", path, "axis", axis)
    for axis, vectors in about["vectors"].items():
        for name in vectors:
            values["vector", axis, name] = daf("get", path, "vector", axis, name, "--format", "json")
    for rows, others in about["matrices"].items():
        for columns, matrices in others.items():
            for name in matrices:
                key = ("matrix", rows, columns, name)
                values[key] = daf("get", path, *key, "--format", "json")
    return values


def unexamined(about):
    """Without what only a look into the payloads tells."""
    if isinstance(about, list):
        return [unexamined(a) for a in about]
    if not isinstance(about, dict):
        return about
    surplus = ["stored_chunks"] + ["raw_bytes", "ratio"] * (about.get("type") == "String")
    return {key: unexamined(value) for key, value in about.items() if key not in surplus}


def check_equal(server, root):
    for folder, name in REPOSITORIES:
        path = os.path.join(root, folder + "-" + name)
        for mode in ("plain", "noranges", "nohead") if name == "zstd.daf" else ("plain",):
            url = server.url(mode, os.path.basename(path))
            here = json.loads(daf("describe", "--json", path))
            there = json.loads(daf("describe", "--json", url))
            here.pop("path", None), there.pop("path", None)
            here.pop("name", None), there.pop("name", None)
            support.same(there, unexamined(here), "describe of " + url)
            if mode == "plain" or folder == "packed":
                support.same(every_value(url, there), every_value(path, here), "values of " + url)


def write_big(root):
    """A vector of some thousand chunks."""
    path = os.path.join(root, "big.daf")
    values = struct.pack("<%dI" % N_BIG, *((i * 2654435761) % 1000003 for i in range(N_BIG)))
    daf_set = [require.built("daf"), "set", path]
    subprocess.run(daf_set + ["axis", "bin", "--create"], input=b"".join(b"%d\n" % i for i in range(N_BIG)), check=True)
    subprocess.run(daf_set + ["vector", "bin", "packed", "--type", "UInt32", "--format", "raw", "--packed", "--codec",
                              "zstd"], input=values, check=True)
    subprocess.run(daf_set + ["vector", "bin", "flat", "--type", "UInt32", "--format", "raw"], input=values, check=True)
    return values


def check_costs(server, values):
    url = server.url("plain", "big.daf")
    server.counted()
    k = 1000
    code, got, text = part_of(url, "bin", "packed", k * CHUNK + 7, 50)
    log, sent = server.counted()
    assert code == 0, text
    assert got == values[4 * (k * CHUNK + 7):4 * (k * CHUNK + 57)]
    ranges = [r for _, path, r in log if path.endswith("packed.zip")]
    assert ranges[0] == "bytes=-98", ranges
    # the end, the first entry's head, the entry, the chunk; and the two JSON files
    assert len(ranges) == 4 and len(log) == 6, log
    metadata = sum(os.path.getsize(os.path.join(server.root, "big.daf", f)) for f in ("daf.json", "metadata.json"))
    assert sent < metadata + 98 + 46 + 200 + 4 * CHUNK + 200, sent
    # Of neighbours one request gets all.
    code, got, text = part_of(url, "bin", "packed", 20 * CHUNK, 8 * CHUNK)
    log, sent = server.counted()
    assert code == 0 and got == values[4 * 20 * CHUNK:4 * 28 * CHUNK], text
    assert len([r for _, path, r in log if path.endswith("packed.zip")]) == 4, log
    # Flat: the beginning, and what is asked for.
    code, got, text = part_of(url, "bin", "flat", N_BIG - 10, 10)
    log, sent = server.counted()
    assert code == 0 and got == values[-40:], text
    ranges = [r for _, path, r in log if path.endswith("flat.data")]
    assert ranges == ["bytes=0-1048575", "bytes=%d-%d" % (4 * (N_BIG - 10), 4 * N_BIG - 1)], ranges
    support.same(daf("get", url, "vector", "bin", "flat", "--format", "raw") == values, True, "the flat vector")
    support.same(daf("get", url, "vector", "bin", "packed", "--format", "raw") == values, True, "the packed vector")


# mode, property, code of the error, and what the sentence says
MISBEHAVIOUR = [
    ("otherpart", "packed", "-13", "other bytes than were asked for"),
    ("otherpart", "flat", "-13", "bytes are more than"),
    ("nocontentrange", "packed", "-13", "other bytes than were asked for"),
    ("wrongbytes", "packed", "-14", "no end record"),
    ("toomuch", "packed", "-16", "more bytes than there may be"),
    ("toomuch", "flat", "-16", "more bytes than there may be"),
    ("huge", "packed", "-16", "more bytes than there may be"),
    ("endless", "packed", "-16", "more bytes than there may be"),
    ("cut", "packed", "-14", "cut the answer off"),
    ("cut", "flat", "-14", "cut the answer off"),
    ("stall", "packed", "-3", "does not answer"),
    ("encoded", "packed", "-15", "Content-Encoding"),
    ("changing", "packed", "-3", "was changed while it was read"),
    ("status-500", "packed", "-3", "HTTP status 500"),
    ("status-403", "packed", "-3", "access is denied"),
    ("status-404", "packed", "-4", "not a daf directory"),
    ("redirect-9", "packed", "-3", "redirects too often"),
    ("elsewhere", "packed", "-3", ""),
]


def check_misbehaviour(server):
    for mode, name, code, part in MISBEHAVIOUR:
        url = server.url(mode, "big.daf", "someone:secret@")
        status, got, text = part_of(url, "bin", name, 1000000, 10)
        assert status == 1 and not got, (mode, name, status, text)
        assert text.startswith(code + " ") and part in text, (mode, name, text)
        assert "secret" not in text and "someone" not in text, (mode, text)
        assert "127.0.0.1" in text or code == "-4", (mode, text)
    status, got, text = part_of(server.url("redirect-4", "big.daf"), "bin", "packed", 1000000, 10)
    assert status == 0 and len(got) == 40, text


def refusal(url):
    result = subprocess.run([require.built("daf"), "describe", url], capture_output=True,
                            env=dict(os.environ, **ENVIRONMENT))
    assert result.returncode in (1, 2) and not result.stdout, result
    return result.stderr.decode("utf-8", "replace")


def check_opening(server, root):
    bare = os.path.join(root, "bare.daf")
    shutil.copytree(os.path.join(root, "packed-zstd.daf"), bare)
    for content, part in ((None, "metadata.json: the server has none"), (b'{"axes/a":', "not a JSON object"), (b"", "JSON")):
        if content is None:
            os.remove(os.path.join(bare, "metadata.json"))
        else:
            with open(os.path.join(bare, "metadata.json"), "wb") as file:
                file.write(content)
        text = refusal(server.url("plain", "bare.daf"))
        assert part in text, text
    for url in ("http://", "http:///x", server.url("plain", "big.daf") + "?token=secret", "http://127.0.0.1:1/x.daf"):
        assert "secret" not in refusal(url)


def make_authority(folder, name):
    """An authority's certificate, and one for 127.0.0.1 that it has signed: the files' names."""
    def path(what):
        return os.path.join(folder, name + "-" + what)

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-days", "30", "-subj", "/CN=" + name, "-keyout", path("ca.key"), "-out", path("ca.pem"))
    openssl("req", *key, "-subj", "/CN=127.0.0.1", "-keyout", path("server.key"), "-out", path("server.csr"))
    with open(path("names"), "w") as file:
        file.write("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", path("server.csr"), "-CA", path("ca.pem"), "-CAkey", path("ca.key"), "-CAcreateserial",
            "-days", "30", "-extfile", path("names"), "-out", path("server.pem"))
    return path("ca.pem"), path("server.pem"), path("server.key")


def check_https(root, plain, values):
    require.program("openssl")
    with support.folder() as keys:
        trusted, certificate, key = make_authority(keys, "laboratory")
        other, _, _ = make_authority(keys, "somebody")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server = Server(root, context)
        try:
            url = server.url("plain", "packed-zstd.daf")
            for wrong in ({}, {"DAF_HTTP_CA_FILE": other}, {"DAF_HTTP_CA_FILE": os.path.join(keys, "none.pem")}):
                text = support.daf("describe", url, code=2, env=dict(ENVIRONMENT, **wrong)).decode()
                assert "certificate" in text or "CAfile" in text, text
            ENVIRONMENT["DAF_HTTP_CA_FILE"] = trusted
            here = json.loads(daf("describe", "--json", os.path.join(root, "packed-zstd.daf")))
            support.same(every_value(url, here), every_value(os.path.join(root, "packed-zstd.daf"), here), "values by https")
            code, got, text = part_of(server.url("plain", "big.daf"), "bin", "packed", 7777777 % N_BIG, 50)
            assert code == 0 and got == values[4 * (7777777 % N_BIG):4 * (7777777 % N_BIG) + 200], text
            # Never from https to http.
            server.elsewhere = plain.url("plain", "packed-zstd.daf/daf.json")
            text = refusal(server.url("unsafe", "packed-zstd.daf"))
            assert "http" in text and "not supported" in text, text
        finally:
            ENVIRONMENT.pop("DAF_HTTP_CA_FILE", None)
            server.close()


def main():
    with support.folder() as root:
        for folder, name in REPOSITORIES:
            target = os.path.join(root, folder + "-" + name)
            shutil.copytree(os.path.join(FIXTURES, folder, name), target)
            daf("describe", target)  # rebuilds an index that is missing
        values = write_big(root)
        server = Server(root)
        try:
            check_equal(server, root)
            check_costs(server, values)
            check_misbehaviour(server)
            check_opening(server, root)
            check_https(root, server, values)
        finally:
            server.close()


if __name__ == "__main__":
    main()
