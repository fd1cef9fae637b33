"""Closed files get certificates: what stands in them, signatures that the openssl command proves, and that they are made after
whatever end of the daemon, replacing nothing."""
import hashlib
import json
import os
import shutil
import subprocess
import uuid

import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")
openssl = require.program("openssl")

CONFIG = {"sync_interval_ms": 50, "export_interval_s": 3600, "resume_timeout_s": 60}
ROUNDS = 1


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def run_openssl(*arguments):
    return subprocess.run([openssl, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def make_key(folder, name, *how):
    """(private, public)"""
    private, public = (os.path.join(folder, name + end) for end in (".key", ".pub"))
    assert run_openssl("genpkey", *how, "-out", private).returncode == 0
    os.chmod(private, 0o600)
    assert run_openssl("pkey", "-in", private, "-pubout", "-out", public).returncode == 0
    return private, public


def photons(n=1000, seed=1):
    return stored.photons(np.random.default_rng(seed), n)


def record(daemon, name, n=1000, **opening):
    with ingest.Connection(daemon.tcp) as c:
        c.hello(instance="inst-" + name)
        run = c.open(name, **opening)
        c.batch(run, photons(n))
        c.close(run)
    return run


def certified(daemon, name):
    """The certificate, once it is there, held against the files."""
    path = daemon.path(name + ".run.json")
    photond.wait_for(lambda: os.path.exists(path))
    photond.wait_for(lambda: daemon.status()["certificates_pending"] == 0)
    with open(path) as f:
        certificate = json.load(f)
    for member, suffix in (("file", ".photons"), ("checksums", ".photons.crc")):
        beside = daemon.path(name + suffix)
        assert certificate[member] == {"name": name + suffix, "bytes": os.path.getsize(beside), "sha256": sha256(beside)}
    assert certificate["certificate"] == 1 and certificate["name"] == name, certificate
    assert [f for f in os.listdir(daemon.path(".photond")) if "certif" in f] == []
    found = json.loads(photond.tool("d7", "verify", "--json", daemon.path(name + ".photons")))
    assert found["certified"] is True and found["style_notes"] == 0, found
    return certificate


def what_it_says(daemon):
    tick_ps, start = 2000, 10**12
    base = pb.TimeBase(tick_ps_numerator=tick_ps, tick_ps_denominator=1, counter_bits=64)
    with ingest.Connection(daemon.tcp) as c:
        c.hello(instance="says")
        run = c.open("says", time_base=base)
        c.batch(run, photons(500), first_time=start, last_time=start + 1000, times_valid=True)
        c.wait_ack(run, durable=1)
        c.send(pb.Marker(run=run.run, sequence=2, group="photons", item=10, text="a note"))
        c.send(pb.Gap(run=run.run, sequence=3, group="photons", item=500, count=7, cause="shutter", utc_ns=6))
        c.batch(run, photons(700), sequence=4, lost_before=5, first_time=start + 2000, last_time=start + 10**8, times_valid=True)
        c.close(run, last_sequence=4)
    got = certified(daemon, "says")
    items = {d["name"]: (d["type"], d["items"]) for d in got["datasets"]}
    assert items == {"/photons/x": ("uint16", 1200), "/photons/y": ("uint16", 1200), "/photons/dt": ("uint16", 1200),
                     "/photons/ms": ("uint64", 12)}, items
    assert got["run"] == run.run_id.hex() and got["producer"] == "says" and got["sequence"] == 4 and got["part"] == 0, got
    assert sorted((g["item"], g["count"], g["cause"]) for g in got["gaps"]) == [(500, 5, "hardware"), (500, 7, "shutter")], got
    assert got["markers"] == 1 and got["software"].startswith("photond "), got
    assert 0 < got["start"]["utc_ns"] <= got["end"]["utc_ns"] and got["start"]["utc"].endswith("Z"), got
    clock = got["clock"]
    assert clock["pairs"] == 2 and clock["tick_ps"] == tick_ps, clock
    for line in (clock["utc"], clock["monotonic"]):
        assert line["first_tick"] == start + 1000 and line["ns_per_tick"] > 0 and line["residual_max_ns"] < 1e5, clock
        assert abs(line["rate_ppm"] - (line["ns_per_tick"] / 2 - 1) * 1e6) < 1e-3 * abs(line["rate_ppm"]) + 1e-3, line
    printed = subprocess.run([*daemon.command(), "--print-config"], stdout=subprocess.PIPE, check=True).stdout
    assert got["configuration"] == hashlib.sha256(printed).hexdigest()


def signed(daemon):
    kinds = (("ed", "-algorithm", "ed25519"), ("ec", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"))
    for kind, *how in kinds:
        daemon.stop()
        private, public = make_key(daemon.folder, kind, *how)
        daemon.config["certificate_key"] = private
        daemon.start()
        record(daemon, "signed-" + kind)
        certified(daemon, "signed-" + kind)
        text = daemon.path("signed-%s.run.json" % kind)
        if kind == "ed":
            command = ["pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", "-in", text, "-sigfile", text + ".sig"]
        else:
            command = ["dgst", "-sha256", "-verify", public, "-signature", text + ".sig", text]
        assert run_openssl(*command).returncode == 0
        found = json.loads(photond.tool("d7", "verify", "--json", "--key", public, daemon.path("signed-%s.photons" % kind)))
        assert found["certified"] and found["signed"], found
    # A signature that is missing is made again by the next start, of the certificate that is there.
    before = sha256(text)
    os.unlink(text + ".sig")
    with open(daemon.path(".photond/signed-ec.certify"), "w"):
        pass
    daemon.stop()
    daemon.start()
    photond.wait_for(lambda: os.path.exists(text + ".sig"))
    certified(daemon, "signed-ec")
    assert sha256(text) == before and run_openssl(*command).returncode == 0
    del daemon.config["certificate_key"]


def keys_that_are_no_good(daemon):
    private, public = make_key(daemon.folder, "open", "-algorithm", "ed25519")
    locked = os.path.join(daemon.folder, "locked.key")
    assert run_openssl("pkey", "-in", private, "-aes256", "-passout", "pass:word", "-out", locked).returncode == 0
    os.chmod(private, 0o644)
    for key, says in ((private, "chmod"), (public, "others may read"), (locked, "without a password"), ("/nowhere", "opened")):
        if key == locked:
            os.chmod(key, 0o600)
        done = subprocess.run([*daemon.command(), "--data-dir", os.path.join(daemon.folder, "other"), "--certificate-key", key],
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=120)
        assert done.returncode == 2 and key in done.stderr and says in done.stderr, done


def nothing_is_replaced(daemon):
    with ingest.Connection(daemon.tcp) as c:
        c.hello()
        run = c.open("theirs")
        with open(daemon.path("theirs.run.json"), "w") as f:
            f.write("{}\n")
        c.batch(run, photons())
        failed = daemon.status()["counters"]["certificates_failed"]
        c.close(run)
    photond.wait_for(lambda: daemon.status()["counters"]["certificates_failed"] == failed + 1)
    with open(daemon.path("theirs.run.json")) as f:
        assert f.read() == "{}\n"
    with ingest.Connection(daemon.tcp) as c:
        c.hello()
        for name in ("theirs", "lonely"):
            with open(daemon.path("lonely.run.json.sig"), "w"):
                pass
            ingest.refused(lambda: c.open(name), pb.ERROR_NAME_TAKEN)


def after_an_end(daemon):
    """The daemon is killed at once when the run is closed; or it was closed by one that makes none, with and without its tail."""
    for i in range(ROUNDS):
        record(daemon, "killed-%d" % i, n=20000)
        daemon.kill()
        daemon.start()
        certified(daemon, "killed-%d" % i)
    daemon.stop()
    daemon.config["certificates"] = False
    daemon.start()
    record(daemon, "noted")
    with ingest.Connection(daemon.tcp) as c:
        c.hello()
        run = c.open("tailed")
        c.batch(run, photons())
        c.wait_ack(run, durable=1)
        shutil.copy(daemon.path("tailed.photons.tail"), daemon.path("kept"))
        c.close(run)
    daemon.stop()
    assert not os.path.exists(daemon.path("noted.run.json"))
    os.rename(daemon.path("kept"), daemon.path("tailed.photons.tail"))
    for note in ("noted.uncertified", "gone.certify"):
        with open(daemon.path(".photond/" + note), "w"):
            pass
    del daemon.config["certificates"]
    daemon.start()
    for name in ("noted", "tailed"):
        certified(daemon, name)
    assert daemon.status()["counters"]["certificates_failed"] == 1  # gone.photons is not there


def gone_on_with(daemon):
    """A run that was interrupted: the restart is a gap, the checksums are those of the whole file."""
    run_id = uuid.uuid4().bytes
    with ingest.Connection(daemon.tcp) as c:
        c.hello(instance="again")
        run = c.open("again", run_id=run_id)
        c.batch(run, photons(30000))
        c.wait_ack(run, durable=1)
        daemon.kill()
    daemon.config["log_level"] = "warning"
    daemon.start()
    with ingest.Connection(daemon.tcp) as c:
        c.hello(instance="again")
        run = c.open("again", run_id=run_id)
        c.batch(run, photons(30000), sequence=2)
        c.close(run, last_sequence=2)
    got = certified(daemon, "again")
    assert [(g["item"], g["cause"]) for g in got["gaps"]] == [(30000, "restart")], got
    printed = subprocess.run([*daemon.command(), "--print-config"], stdout=subprocess.PIPE, check=True).stdout
    assert got["configuration"] == hashlib.sha256(printed).hexdigest()


CASES = [what_it_says, signed, keys_that_are_no_good, nothing_is_replaced, after_an_end, gone_on_with]


def main():
    with photond.Daemon(config=dict(CONFIG)) as daemon:
        photond.run_cases(CASES, daemon)


if __name__ == "__main__":
    main()
