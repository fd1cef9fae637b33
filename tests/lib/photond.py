"""Starts a photond for a test, in a folder of its own, and ends it. Standard library only."""
import json
import os
import signal
import subprocess
import tempfile
import time

import require


class Daemon:
    """A running photond listening on TCP (loopback, any port) and on a Unix socket. Use as a context manager: on leaving it
    the daemon is stopped by SIGTERM and must exit with 0, unless it was ended before."""

    def __init__(self, folder=None, config=None, arguments=()):
        self._temporary = None if folder else tempfile.TemporaryDirectory(prefix="photond-test.")
        self.folder = folder or self._temporary.name
        self.data = os.path.join(self.folder, "data")
        os.makedirs(self.data, exist_ok=True)
        self.control = "unix:" + os.path.join(self.folder, "control.sock")
        self.config = config or {}
        self.arguments = list(arguments)
        self.process = None
        self.over_tls = os.environ.get("PHOTOND_TEST_OVER_TLS") == "1"
        if self.over_tls:
            self._set_up_tls()

    def _set_up_tls(self):
        """Certificates of a CA of ours for both sides; ingest.Connection uses its one by itself."""
        certificates = __import__("certificates")
        ingest = __import__("ingest")
        ca = certificates.Authority(os.path.join(self.folder, "pki"))
        certificate, key = ca.server()
        ingest.tls_default = ingest.tls_context(ca.ca, ca.client())
        self.config = {"tls_certificate": certificate, "tls_key": key, "tls_client_ca": ca.ca, **self.config}
        self.arguments += ["--listen", "tls://127.0.0.1:0"]

    def command(self):
        path = os.path.join(self.folder, "photond.json")
        with open(path, "w") as f:
            json.dump(self.config, f)
        return [require.built("photond"), "--config", path, "--data-dir", self.data, "--listen", "tcp://127.0.0.1:0",
                "--listen", "unix:" + os.path.join(self.folder, "ingest.sock"), "--control", self.control,
                "--ready-file", self.ready_path(), *self.arguments]

    def ready_path(self):
        return os.path.join(self.folder, "ready.json")

    def log_path(self):
        return os.path.join(self.folder, "photond.log")

    def start(self, seconds=120):
        if os.path.exists(self.ready_path()):
            os.unlink(self.ready_path())
        with open(self.log_path(), "a") as log:
            self.process = self.launch(log)
        deadline = time.monotonic() + seconds
        while not (os.path.exists(self.ready_path()) and os.path.getsize(self.ready_path())):
            if self.process.poll() is not None:
                raise AssertionError("photond ended with %d:\n%s" % (self.process.returncode, self.log()))
            if time.monotonic() > deadline:
                raise AssertionError("photond was not ready in time:\n" + self.log())
            time.sleep(0.02)
        with open(self.ready_path()) as f:
            addresses = json.load(f)["listen"]
        self.tcp = next(a for a in addresses if a.startswith("tcp://"))
        self.tls = next((a for a in addresses if a.startswith("tls://")), None)
        if self.over_tls:
            self.tcp = self.tls
        self.unix = next(a for a in addresses if a.startswith("unix:"))
        return self

    def launch(self, log):
        return subprocess.Popen(self.command(), stderr=log)

    def log(self):
        with open(self.log_path()) as f:
            return f.read()

    def path(self, name):
        return os.path.join(self.data, name)

    def status(self):
        out = subprocess.run([require.built("photonctl"), "status", "--json", "--control", self.control], check=True,
                             stdout=subprocess.PIPE, text=True, timeout=120).stdout
        status = json.loads(out)
        check_balance(status)
        return status

    def ctl(self, *arguments, expect=0):
        """What photonctl prints."""
        return tool("photonctl", *arguments, "--control", self.control, expect=expect)

    def ctl_refused(self, *arguments):
        """What photonctl says when the daemon refuses."""
        done = subprocess.run([require.built("photonctl"), *arguments, "--control", self.control], stderr=subprocess.PIPE, text=True,
                              timeout=300)
        assert done.returncode == 1, done
        return done.stderr

    def run_status(self, name):
        """What the status says of an open run."""
        return next(r for r in self.status()["runs"] if r["name"] == name)

    def peak_kb(self):
        with open("/proc/%d/status" % self.process.pid) as f:
            return int(next(line for line in f if line.startswith("VmHWM")).split()[1])

    def stop(self, seconds=240):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        assert code == 0, "photond ended with %d:\n%s" % (code, self.log())

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            if kind is None:
                self.stop()
            else:
                self.kill()
        elif kind is None and self.process.returncode not in (0, -signal.SIGKILL):
            raise AssertionError("photond ended by itself with %d:\n%s" % (self.process.returncode, self.log()))
        if kind is not None:
            print(self.log()[-8000:])
        if self._temporary:
            self._temporary.cleanup()


def check_balance(status):
    """The counters balance at every look: what came into a stage has left it, was dropped, or is in it; what was received is stored,
    dropped or on its way; and the stages agree with each other."""
    counters, stages = status["counters"], status["stages"]
    for name, s in stages.items():
        assert s["in"] == s["out"] + s["in_flight"] + sum(s["dropped"].values()), (name, s, status)
    on_their_way = sum(r["photons_in_flight"] for r in status["runs"])
    ways = ("photons_durable", "photons_discarded", "photons_dropped", "photons_rolled_back")
    assert counters["photons_received"] == sum(counters[w] for w in ways) + on_their_way, status
    assert counters["photons_received"] == stages["socket"]["out"], status
    assert counters["photons_dropped"] == stages["ring"]["dropped"].get("overflow", 0), status
    assert counters["photons_received"] == counters["photons_dropped"] + stages["disk"]["in"], status
    assert stages["ring"]["in"] >= counters["photons_received"], status  # and what a recovery found in no page
    assert stages["writer"]["out"] >= stages["ring"]["out"], status
    for run in status["runs"]:
        c = run["counters"]
        lost = 0 if run["state"] != "failed" else c["photons"] - c["photons_durable"] - c["dropped_photons"]
        assert c["photons"] == c["photons_durable"] + c["dropped_photons"] + run["photons_in_flight"] + lost, run


def tool(name, *arguments, expect=0, text=True, **options):
    """Runs one of our commands, holds its exit status to `expect`, gives its standard output."""
    done = subprocess.run([require.built(name), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=text,
                          timeout=300, **options)
    assert done.returncode == expect, "%s %s: exit %d, expected %d\n%s%s" % (
        name, " ".join(arguments), done.returncode, expect, done.stdout, done.stderr)
    return done.stdout


def run_cases(cases, *arguments):
    """Each case in turn, its name first, so that the one that fails or hangs is known."""
    for case in cases:
        print(case.__name__, flush=True)
        case(*arguments)


def wait_for(what, seconds=120):
    """What `what()` gives, as soon as that is true."""
    deadline = time.monotonic() + seconds
    while True:
        got = what()
        if got:
            return got
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.02)
