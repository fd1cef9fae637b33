"""photon-send and the client library against a real daemon behind a bad network: connections that are cut at any byte, a daemon
that is killed and started again, starts in every order, newer starts of the same instance, answers that are lost. Every event
is stored once. Takes the part to be run: network, kill or orders. PHOTOND_TORTURE_MINUTES lengthens it."""
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

import ingest
import photond
import proxy
import require
import stored
from ingest import pb

np = require.module("numpy")

LONG = float(os.environ.get("PHOTOND_TORTURE_MINUTES", "0")) * 60
CONFIG = {"sync_interval_ms": 50, "resume_timeout_s": 60.0}


def recording(folder, n, seed=5):
    """A folder of columns as photon-send reads it, and the columns."""
    rng = np.random.default_rng(seed)
    x, y, dt = (rng.integers(0, 4096, n).astype("<u2") for _ in range(3))
    columns = {"/photons/x": x, "/photons/y": y, "/photons/dt": dt, "/photons/ms": np.arange(0, n, 97).astype("<u8")}
    os.makedirs(folder, exist_ok=True)
    for name, values in columns.items():
        values.tofile(os.path.join(folder, "%s.%s" % (name.split("/")[-1], "u64" if name.endswith("ms") else "u16")))
    with open(os.path.join(folder, "manifest.json"), "w") as f:
        json.dump({"position_bits": 12, "tac_bits": 12, "tac_channel_ps": 12.3}, f)
    return columns


def sender(to, run, *arguments):
    return subprocess.Popen([require.built("photon-send"), "--to", to, "--run", run, "--json", *arguments],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process, code=0, seconds=240):
    out, err = process.communicate(timeout=seconds)
    assert process.returncode == code, "photon-send: exit %d, expected %d\n%s\n%s" % (process.returncode, code, out, err)
    return json.loads(out) if out else {}


def connections_cut_at_any_byte(daemon, folder):
    cuts, n = (1000, 8000000) if LONG else (40, 400000)
    columns = recording(folder, n)
    with proxy.Proxy(daemon.tcp, random.Random(3), mean_bytes=30000, cuts=cuts) as p:
        report = finished(sender(p.address, "cut", "--batch", "500", "--wait", "60s", folder),
                          seconds=1800 if LONG else 240)
        assert p.n_cuts > cuts // 3, p.n_cuts
    assert report["complete"] and report["durable"] == n, report
    stored.File(daemon.path("cut.photons")).expect(columns)
    print("cut %d times, %d messages of %d sent again" % (p.n_cuts, report["resent"], report["messages"]))


def the_answer_to_close_is_lost(daemon, folder):
    columns = recording(folder, 5000)
    with proxy.Proxy(daemon.tcp, random.Random(4), swallow=pb.ServerMessage.DESCRIPTOR.fields_by_name["closed"].number) as p:
        report = finished(sender(p.address, "close-lost", folder))
        assert p.n_cuts == 1, p.n_cuts
    assert report["complete"], report
    stored.File(daemon.path("close-lost.photons")).expect(columns)


def restarts_of_a_source(daemon, folder):
    """The newest start of an instance has it, at once, and goes on with the run where it was."""
    sent, run_id, old = [], os.urandom(16), None
    rng = np.random.default_rng(8)
    for start in range(100):
        c = ingest.Connection(daemon.tcp)
        c.hello(instance="restarted", epoch=1000 + start)
        run = c.open("restarted", run_id=run_id)
        if old:
            assert old.wait_ended()[-1].code == pb.ERROR_SUPERSEDED
            old.drop()
        del sent[run.next_sequence - 1:]
        sent.append(stored.photons(rng, 50, ms=1))
        c.batch(run, sent[-1], sequence=len(sent))
        old = c
    old.close(run, last_sequence=len(sent))
    old.drop()
    stored.File(daemon.path("restarted.photons")).expect(stored.joined(sent))


def newest_sender_has_the_instance(daemon, folder):
    arguments = ["--instance", "camera-1", "--simulate", "lincam", "--rate", "20k"]
    first = sender(daemon.tcp, "first", *arguments, "--duration", "1h")
    photond.wait_for(lambda: any(r["name"] == "first" and r["state"] == "running" for r in daemon.status()["runs"]))
    second = sender(daemon.tcp, "second", *arguments, "--duration", "1s")
    assert "SUPERSEDED" in finished(first, code=1)["error"]
    assert finished(second)["complete"]


def killed_and_started_again(daemon, folder):
    columns = recording(folder, 600000)
    rounds, deadline = (100000, time.monotonic() + LONG) if LONG else (5, float("inf"))
    chance, kills, lost = random.Random(9), 0, 0
    with proxy.Proxy(daemon.tcp, chance) as p:
        arguments = ["--batch", "200", "--speed", "real", "--wait", "60s"]
        sending = [sender(p.address, "killed-%d" % i, *arguments, folder) for i in range(2)]
        while kills < rounds and time.monotonic() < deadline and any(s.poll() is None for s in sending):
            time.sleep(chance.random() * 1.0)
            daemon.kill()
            daemon.start()
            p.to(daemon.tcp)
            kills += 1
        reports = [finished(s) for s in sending]
    assert kills > 1
    for i, report in enumerate(reports):
        assert report["complete"] and report["durable"] == 600000, report
        stored.File(daemon.path("killed-%d.photons" % i)).expect(columns)
    print("killed %d times, %d messages sent again" % (kills, sum(r["resent"] for r in reports)))


def starts_in_every_order(folder):
    """Daemon, source and viewer, in any order: the source waits, the viewer says that nobody is there."""
    columns = recording(os.path.join(folder, "source"), 20000)
    orders = ["dsv", "dvs", "sdv", "svd", "vds", "vsd"]
    for order in orders:
        daemon = photond.Daemon(config=CONFIG)
        address = "unix:" + os.path.join(daemon.folder, "ingest.sock")
        sending = None
        for step in order:
            if step == "d":
                daemon.start()
            elif step == "s":
                sending = sender(address, "run", "--wait", "120s", os.path.join(folder, "source"))
            else:
                code = subprocess.run([require.built("photonctl"), "status", "--check", "--control", daemon.control],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120).returncode
                assert code == (0 if daemon.process else 2), (order, code)
        assert finished(sending)["complete"], order
        daemon.stop()
        stored.File(daemon.path("run.photons")).expect(columns)
        daemon.__exit__(None, None, None)


NETWORK = (connections_cut_at_any_byte, the_answer_to_close_is_lost, restarts_of_a_source, newest_sender_has_the_instance)
PARTS = {"network": NETWORK, "kill": (killed_and_started_again,), "orders": ()}


def main(part):
    with tempfile.TemporaryDirectory(prefix="photond-test.") as folder:
        if part == "orders":
            starts_in_every_order(folder)
            return
        with photond.Daemon(config=CONFIG) as daemon:
            for test in PARTS[part]:
                begun = time.monotonic()
                test(daemon, os.path.join(folder, test.__name__))
                print("%s: %.1f s" % (test.__name__, time.monotonic() - begun), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
