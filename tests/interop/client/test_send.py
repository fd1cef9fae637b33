"""photon-send against a real photond: every kind of source, in every kind of batch, held against the file that the daemon wrote
(read by the reference implementation) and against its own summary."""
import json
import os
import signal
import subprocess
import time

import photond
import require
import stored

np = require.module("numpy")

SOURCE = os.environ["PHOTOND_SOURCE"]
HAZELNUT = os.path.join(SOURCE, "tests/data/hazelnut")
KINDS = {"x": "<u2", "y": "<u2", "dt": "<u2", "ms": "<u8"}


def recording(count=None):
    columns = {"/photons/" + name: np.fromfile(os.path.join(HAZELNUT, "%s.u%d" % (name, 8 * np.dtype(kind).itemsize)), kind)
               for name, kind in KINDS.items()}
    if count is not None:
        columns = {name: c[c < count] if name.endswith("ms") else c[:count] for name, c in columns.items()}
    return columns


class Sender:
    def __init__(self, daemon):
        self.daemon = daemon

    def send(self, run, *arguments, expect=0, **options):
        out = json.loads(photond.tool("photon-send", "--to", self.daemon.tcp, "--run", run, "--json", *arguments, expect=expect,
                                      **options))
        if expect == 0:
            assert out["complete"] and out["error"] is None, out
            assert out["sent"] == out["received"] == out["durable"], out
            assert out["path"] == self.path(out["run"]), out
        return out

    def path(self, run):
        return self.daemon.path(run + ".photons")

    def file(self, run):
        return stored.File(self.path(run))


def check_recordings(s):
    whole = recording()
    for i, batches in enumerate((["--batch", "100000"], ["--batch", "random", "--seed", "5"], ["--batch", "7", "--count", "10000"],
                                 ["--speed", "real"], ["--profile", "none"])):
        run = "hazelnut-%d" % i
        out = s.send(run, *batches, HAZELNUT)
        wanted = recording(10000) if "--count" in batches else whole
        assert out["sent"] == len(wanted["/photons/x"]), out
        s.file(run).expect(wanted)


def check_photons_file(s, folder):
    """A file that photond wrote is sent again: the same columns and attributes, but for those of the first recorder."""
    s.send("again", "--batch", "random", s.path("hazelnut-0"))
    first, again = s.file("hazelnut-0"), s.file("again")
    again.expect(first.columns)
    for key, value in first.attributes.items():
        if not key.startswith("photond."):
            assert again.attributes[key] == value, key
    assert again.attributes["photond.run"] != first.attributes["photond.run"]


def check_own_datasets(s, folder):
    rng = np.random.default_rng(1)
    source = os.path.join(folder, "columns")
    os.mkdir(source)
    t = np.cumsum(rng.integers(1, 1000, 30000)).astype("<u8")
    channel = rng.integers(0, 300, 30000).astype("<u2")
    room = rng.normal(20, 1, 777).astype("<f4")
    t.tofile(os.path.join(source, "time.u64"))
    channel.tofile(os.path.join(source, "channel.u16"))
    room.tofile(os.path.join(source, "room.f32"))
    with open(os.path.join(source, "manifest.json"), "w") as f:
        json.dump({"tags": len(t)}, f)
    s.send("own", "--column", "room.f32=/room/temperature", "--attribute", "Comment=gr\u00fc\u00df", "--batch", "1000", source)
    file = s.file("own")
    file.expect({"/tags/channel": channel, "/tags/time": t, "/room/temperature": room})
    assert file.attributes["Comment"] == "gr\u00fc\u00df"


def check_standard_input(s):
    rng = np.random.default_rng(2)
    records = np.zeros(50000, [("c", "u1"), ("t", "<u8")])
    records["c"] = rng.integers(0, 8, len(records))
    records["t"] = np.cumsum(rng.integers(0, 1000, len(records)))
    s.send("piped", "--layout", "channel:u8,time:u64", "-", input=records.tobytes(), text=False)
    s.file("piped").expect({"/tags/channel": records["c"], "/tags/time": records["t"]})
    out = s.send("torn", "--layout", "channel:u8,time:u64", "-", input=records.tobytes()[:-1], text=False, expect=1)
    assert out["durable"] == out["sent"] == len(records) - 1 and "within a record" in out["error"], out


def check_simulation(s):
    """The same seed gives the same file, whatever the batches."""
    for kind in ("lincam", "lintag"):
        arguments = ["--simulate", kind, "--rate", "500k", "--duration", "200ms", "--seed", "11", "--speed", "max"]
        first = s.send(kind + "-a", *arguments)
        s.send(kind + "-b", *arguments, "--batch", "random")
        s.file(kind + "-b").expect(s.file(kind + "-a").columns)
        assert 97000 < first["sent"] < 103000, first
    columns = s.file("lincam-a").columns
    assert len(columns["/photons/ms"]) == 200 and columns["/photons/x"].max() < 4096
    real = s.send("real", "--simulate", "lincam", "--rate", "10k", "--duration", "500ms")
    assert 0.5 <= real["seconds"] < 10, real


def check_names(s):
    taken = s.send("again", HAZELNUT, expect=2)
    assert "ERROR_NAME_TAKEN" in taken["error"], taken
    assert s.send("again", "--create-mode", "counter", "--count", "10", HAZELNUT)["run"] == "again-2"
    assert s.send("../up", HAZELNUT, expect=2)["sent"] == 0
    photond.tool("photon-send", "--to", "tcp://127.0.0.1:1", "--run", "x", HAZELNUT, expect=2)
    photond.tool("photon-send", "--to", s.daemon.tcp, "--run", "x", "/nonexistent", expect=2)


def check_damaged_file(s):
    """Damage past --count does not matter; damage before it takes no name."""
    damaged = os.path.join(SOURCE, "tests/fixtures/d7/bad_varints.photons")
    assert s.send("sound", "--count", "24576", damaged)["sent"] == 24576
    photond.tool("photon-send", "--to", s.daemon.tcp, "--run", "damaged", damaged, expect=2)
    assert not os.path.exists(s.path("damaged"))


def check_summary(s):
    """A summary that cannot be written does not say that nothing was sent."""
    with open("/dev/full", "w") as full:
        sender = subprocess.run([require.built("photon-send"), "--to", s.daemon.tcp, "--run", "untold", "--json", "--count", "100",
                                 HAZELNUT], stdout=full, stderr=subprocess.PIPE, text=True)
    assert sender.returncode == 1 and "summary" in sender.stderr, sender
    s.file("untold").expect(recording(100))


def check_interrupt(s):
    """Ctrl-C ends an endless simulation properly."""
    sender = subprocess.Popen([require.built("photon-send"), "--to", s.daemon.unix, "--run", "endless", "--json", "--simulate",
                               "lintag", "--rate", "10k"], stdout=subprocess.PIPE)
    while not os.path.exists(s.path("endless")):
        time.sleep(0.02)
    time.sleep(0.3)
    sender.send_signal(signal.SIGINT)
    out = json.loads(sender.communicate(timeout=60)[0])
    assert sender.returncode == 0 and out["complete"] and out["durable"] == out["sent"] > 0, out
    assert len(s.file("endless").columns["/tags/time"]) == out["sent"]


def main():
    with photond.Daemon() as daemon:
        s = Sender(daemon)
        check_recordings(s)
        check_photons_file(s, daemon.folder)
        check_own_datasets(s, daemon.folder)
        check_standard_input(s)
        check_simulation(s)
        check_names(s)
        check_damaged_file(s)
        check_summary(s)
        check_interrupt(s)
    print("every source arrived as it was sent")


if __name__ == "__main__":
    main()
