"""A recording of another instrument, imported and sent through photond: every column and marker arrives."""
import os
import random
import sys
import tempfile

import d7ref
import photond
import ptumake
from d7run import d7


def recording(kind):
    rng = random.Random(kind)
    t3 = kind.endswith("t3")
    events = []
    for i in range(20000):
        if i % 500 == 0:
            events.append(("marker", i * 997, 1 + i // 500 % 4))
        events.append(("photon", i * 997, 1 + i % 4) + ((rng.randrange(30000),) if t3 else ()))
    return ptumake.make(kind, events, 12.5e-9 if t3 else 1e-12, 16e-12)


def columns(path):
    with open(path, "rb") as f:
        read = d7ref.File(f.read())
    assert read.check() == []
    return {name: values for (name, _), values in zip(read.datasets, read.values)}


def main():
    with photond.Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        for kind in ("hydraharp2-t3", "generic-t2"):
            ptu, imported = os.path.join(folder, "in.ptu"), os.path.join(folder, kind + ".photons")
            with open(ptu, "wb") as f:
                f.write(recording(kind))
            d7("import", ptu, "-o", imported)
            photond.tool("photon-send", "--to", daemon.tcp, "--run", kind, imported)
            photond.wait_for(lambda: os.path.exists(daemon.path(kind + ".photons")))
            assert columns(daemon.path(kind + ".photons")) == columns(imported), kind


sys.exit(main())
