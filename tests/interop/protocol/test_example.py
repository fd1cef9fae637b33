"""examples/python_client.py, with the module that protoc makes, against a real photond over TCP and a Unix socket; its files
are held against what it printed."""
import json
import os
import re
import subprocess
import sys
import tempfile

import photond
import require

require.module("google.protobuf")
SOURCE = os.environ["PHOTOND_SOURCE"]
CLIENT = os.path.join(SOURCE, "examples", "python_client.py")
PHOTONS = 30001


def run_client(modules, *arguments, expect=0):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run([sys.executable, CLIENT, *arguments], env=dict(environment, PYTHONPATH=modules), text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == expect, done
    return done.stdout if expect == 0 else done.stderr


def column(path, dataset):
    return [int(v) for v in photond.tool("d7", "cat", path, dataset).split()]


def check_file(path, batches):
    info = json.loads(photond.tool("d7", "info", "--json", path))
    assert info["state"] == "closed" and not info["problems"], info
    items = {d["name"]: d["items"] for d in info["datasets"]}
    ms = column(path, "/photons/ms")
    assert items == {"/photons/x": PHOTONS, "/photons/y": PHOTONS, "/photons/dt": PHOTONS, "/photons/ms": len(ms)}, items
    assert ms[0] == 0 and ms == sorted(ms) and ms[-1] <= PHOTONS and len(ms) == 20 * batches
    assert info["attributes"]["photond.sequence"] == str(batches)
    assert info["attributes"]["/photons/TacChannel"] == "12.5"
    for name in ("x", "y", "dt"):
        values = column(path, "/photons/" + name)
        mean = sum(values) / len(values)
        assert all(0 <= v < 4096 for v in values)
        assert 600 < mean < 800 if name == "dt" else 2000 < mean < 2100, (name, mean)


def main():
    with tempfile.TemporaryDirectory() as modules, photond.Daemon() as daemon:
        subprocess.run([require.program("protoc"), "--proto_path=" + os.path.join(SOURCE, "proto"), "--python_out=" + modules,
                        "ingest.proto"], check=True)
        for address, name in ((daemon.tcp, "example"), (daemon.unix, "example-2")):
            said = run_client(modules, address, "example", "--photons", str(PHOTONS))
            path = daemon.path(name + ".photons")
            told = re.fullmatch(r"%s: %d photons in (\d+) batches are on the disk: %s\n" % (name, PHOTONS, re.escape(path)), said)
            assert told, said
            check_file(path, int(told[1]))
        said = run_client(modules, daemon.tcp, "no/name", expect=1)
        assert said.startswith("refused: ERROR_BAD_NAME: "), said
    print("the example's runs are as it says")


if __name__ == "__main__":
    main()
