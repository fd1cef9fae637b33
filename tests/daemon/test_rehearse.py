"""photond --rehearse: what it says agrees with its exit status, it leaves nothing, whatever ends it, and works beside a daemon. How
fast this machine is decides nothing here."""
import json
import os
import signal
import subprocess
import tempfile
import time

import photond
import require

HIDDEN = ".photond-rehearsal."
PROFILES = {"all": [{"name": "/a/%s" % t, "type": t, "group": "a"} for t in
                    ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double")] +
            [{"name": "/a/time", "type": "uint64", "group": "a", "role": "time_stamp"},
             {"name": "/a/ms", "type": "uint32", "role": "ms_index"}]}


def rehearse(data, *options, codes=(0, 1), **more):
    done = subprocess.run([require.built("photond"), "--rehearse", *options, "--data-dir", data], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=600, **more)
    assert done.returncode in codes, (done.returncode, done.stdout, done.stderr)
    return done


def figures(data, *options, **more):
    done = rehearse(data, *options, "--json", **more)
    got = json.loads(done.stdout)
    assert got["sustained"] == (done.returncode == 0), (got, done.returncode)
    disk, ring, syncs = got["disk"], got["ring"], got["syncs"]
    assert got["sustained_hz"] > 0 and disk["bytes_per_event"] > 0 and disk["lasts_s"] > 0 and disk["free_bytes"] > 0, got
    assert ring["bytes"] > 0 and ring["covers_s"] > 0 and 0 <= ring["used_at_most"] <= 1, got
    assert syncs["n"] > 0 and 0 < syncs["median_ms"] <= syncs["p99_ms"] <= syncs["longest_ms"], got
    return got


def left(data):
    return [n for n in os.listdir(data) if n.startswith(HIDDEN)]


def beside_a_daemon():
    with photond.Daemon(config={"profiles": PROFILES}) as daemon:
        before = sorted(os.listdir(daemon.data))
        config = os.path.join(daemon.folder, "photond.json")
        for profile in ("lincam", "all"):
            got = figures(daemon.data, profile, "--rate", "5k", "--for", "300ms", "--config", config)
            assert got["shared"] is True and got["profile"] == profile, got
            if got["sustained"]:
                assert got["events"] == 1500, got
        assert sorted(os.listdir(daemon.data)) == before
        assert daemon.status()["counters"]["runs_opened"] == 0


def too_fast(data):
    """Nothing sends so much."""
    done = rehearse(data, "lincam-dual", "--rate=1000G", "--for=100ms", "--ring-mb", "8", codes=(1,))
    assert "NOT sustained" in done.stdout and not left(data), done.stdout


def begun(data):
    """One that sends, and its folder."""
    process = subprocess.Popen([require.built("photond"), "--rehearse", "lincam", "--rate", "1k", "--for", "1h", "--data-dir", data],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    photond.wait_for(lambda: any(os.path.exists(os.path.join(data, n, "rehearsal.photons")) for n in left(data)))
    return process, os.path.join(data, left(data)[0])


def stopped(data):
    process, _ = begun(data)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 2 and out == "" and "stopped" in err and not left(data), (process.returncode, out, err)


def killed(data):
    """What it left goes away with the next one, once it is old."""
    process, folder = begun(data)
    sockets = os.readlink(os.path.join(folder, "sockets"))
    process.kill()
    process.communicate(timeout=300)
    assert os.path.isdir(sockets)
    os.utime(folder, (time.time() - 3600,) * 2)
    photond.wait_for(lambda: figures(data, "lincam", "--rate", "1k", "--for", "100ms") and not left(data))
    assert not os.path.exists(sockets)


def usage(data):
    for options in (["nobodys"], ["lincam", "--rate", "0"], ["lincam", "--rate", "5x"], ["lincam", "--for", "x"], ["lincam", "--for", "0.01s"], ["lincam", "--wrong"], ["lincam", "--config", "/nonexistent"]):
        done = rehearse(data, *options, codes=(2,))
        assert done.stdout == "" and done.stderr.startswith("photond") and not left(data), done
    rehearse(os.path.join(data, "nowhere"), "lincam", codes=(2,))
    done = subprocess.run([require.built("photond"), "--rehearse"], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert done.returncode == 2


def main():
    photond.run_cases([beside_a_daemon])
    with tempfile.TemporaryDirectory(prefix="photond-test.") as data:
        photond.run_cases([too_fast, stopped, killed, usage], data)


if __name__ == "__main__":
    main()
