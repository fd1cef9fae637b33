"""The daemon is killed in the middle of a run: what is left reads as an open file, holds every page that was acknowledged durable,
and another daemon starts over it and touches it not."""
import hashlib
import json

import ingest
import photond
import require
import stored

np = require.module("numpy")

BATCHES, PHOTONS = 60, 7000


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def main():
    rng = np.random.default_rng(11)
    batches = [stored.photons(rng, PHOTONS, ms=300) for _ in range(BATCHES)]
    with photond.Daemon(config={"sync_interval_ms": 30}) as daemon:
        with ingest.Connection(daemon.tcp) as c:
            c.hello()
            run = c.open("killed")
            for i, columns in enumerate(batches):
                c.batch(run, columns)
                if i == BATCHES // 2:
                    c.wait_ack(run, durable=1)
            c.wait_ack(run, received=BATCHES)
            ack = c.wait_ack(run, durable=BATCHES * 2 // 3)
            daemon.kill()
        path = daemon.path("killed.photons")
        left = stored.File(path)
        assert left.state == "open"
        whole = stored.joined(batches)
        durable = stored.joined(batches[:ack.durable])
        for name, values in left.columns.items():
            assert np.array_equal(values, whole[name][:len(values)]), name
            assert len(values) >= len(durable[name]), (name, len(values), len(durable[name]))
        for key in ("FileGuid", "Created", "FileCreator", "photond.run"):
            assert left.attributes[key], left.attributes
        info = json.loads(photond.tool("d7", "info", "--json", path))
        assert info["state"] == "open" and not info["held"], info
        before = digest(path)
        daemon.start()
        with ingest.Connection(daemon.tcp) as c:
            c.hello()
            try:
                c.open("killed")
                raise AssertionError("the name was free")
            except ingest.Refused as e:
                assert e.error.code == ingest.pb.ERROR_NAME_TAKEN, e
            run = c.open("killed", mode=ingest.pb.MODE_COUNTER)
            assert run.name == "killed-2", run
            c.close(run)
        assert digest(path) == before
    print("durable up to batch %d of %d: %d of %d photons are there" % (
        ack.durable, BATCHES, len(left.columns["/photons/x"]), PHOTONS * BATCHES))


if __name__ == "__main__":
    main()
