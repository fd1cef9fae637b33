"""photonctl against a control socket that answers as told: what is printed, and the exit statuses."""
import json
import os
import socket
import subprocess
import tempfile
import threading

import require

STATUS = {
    "ok": True, "version": "9.8.7", "health": "ok", "reasons": [], "stopping": False, "pid": 42, "uptime_s": 7384.0,
    "data_dir": "/data", "listen": ["tcp://127.0.0.1:7777"],
    "rates": {"photons_per_s": 1020000.0, "bytes_per_s": 6.1e6, "written_per_s": 3.2e6},
    "ring": {"slots": 4000, "slot_bytes": 16384, "used": 480, "high_water": 1200, "reserved": 200, "stalled": 0},
    "disk": {"free_bytes": 812000000000, "full": False},
    "counters": {"photons_received": 123400000, "photons_durable": 122400000, "photons_dropped": 0, "exports": 24},
    "runs": [{"name": "scan-17", "state": "running", "photons_per_s": 1020000.0, "durable_age_s": 0.4, "last_export_age_s": 3.1,
              "waits": None, "failure": None, "counters": {"photons": 12300000, "file_bytes": 36500000, "exports": 24}},
             {"name": "evil\x1b[2J\nrun", "state": "failed", "failure": "the disk said: no\x07", "durable_age_s": None,
              "counters": {"photons": 1, "dropped_photons": 5}}],
    "connections": [{"client": "lincam", "peer": "unix: pid 7", "runs": 1, "silent_s": 61.0, "silent": True, "paused": True,
                     "received_bytes": 5}],
}


class Server:
    """Answers each request with the same bytes."""

    def __init__(self, path, answer):
        self.answer = answer
        self.requests = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
        self.path = path

    def serve(self):
        while True:
            peer, _ = self.listener.accept()
            with peer:
                line = peer.makefile("rb").readline()
                if not line:
                    return
                self.requests.append(json.loads(line))
                peer.sendall(self.answer)

    def __enter__(self):
        return self

    def __exit__(self, *what):
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(self.path)
        self.thread.join()
        self.listener.close()
        os.unlink(self.path)


def photonctl(*arguments, environment=None):
    done = subprocess.run([require.built("photonctl"), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60, env=environment)
    return done.returncode, done.stdout, done.stderr


def expect(got, code, *parts, errors=()):
    assert got[0] == code, got
    for part in parts:
        assert part in got[1], (part, got)
    for part in errors:
        assert part in got[2], (part, got)
    return got


def answered(path, answer, *arguments):
    with Server(path, answer if isinstance(answer, bytes) else json.dumps(answer).encode() + b"\n") as server:
        got = photonctl(*arguments, "--control", "unix:" + path)
        assert server.requests == [{"command": "status"}], server.requests
    return got


def status_of(path):
    shown = expect(answered(path, STATUS, "status"), 0, "photond 9.8.7  ok  up 2 h 3 min  pid 42", "data    /data",
                   "1.02 M photons/s  6.1 MB/s received  3.2 MB/s written", "12 % full  30 % at most  5 % reserved",
                   "812 GB free", "123 M received  122 M durable  0 dropped", "scan-17", "12.3 M", "36.5 MB", "0.4 s",
                   "failure: the disk said: no\\x07", "5 photons dropped here", "evil\\x1b[2J\\x0arun", "SILENT  held back")
    assert "\x1b" not in shown[1] and "\x07" not in shown[1]
    assert max(len(line) for line in shown[1].splitlines()) <= 120
    got = expect(answered(path, STATUS, "status", "--json"), 0)
    assert json.loads(got[1]) == STATUS
    expect(answered(path, STATUS, "version"), 0, "photonctl ", "photond   9.8.7")
    expect(answered(path, {"ok": True}, "status"), 0, "no open runs")


def checks(path):
    for health, code in (("ok", 0), ("degraded", 0), ("not_ok", 1), ("", 1)):
        status = dict(STATUS, health=health, reasons=["the disk is full", "x\ny"] if code or health == "degraded" else [])
        got = expect(answered(path, status, "status", "--check"), code, health)
        assert got[1].count("\n") == 1, got
    expect(answered(path, STATUS, "status", "--check"), 0, "ok\n")
    expect(answered(path, {"ok": False, "error": "no\x1b"}, "status"), 1, errors=["refused \"status\": no\\x1b"])
    expect(answered(path, {"ok": False, "error": "no"}, "status", "--check"), 2)


def unreachable(path):
    control = ("--control", "unix:" + path)
    expect(photonctl("status", *control), 2, errors=["cannot be reached: No such file or directory"])
    expect(photonctl("status", "--check", *control), 2)
    expect(answered(path, b"not json\n", "status"), 2, errors=["the answer is not photond's"])
    expect(answered(path, b"", "status"), 2, errors=["the connection was closed"])
    expect(answered(path, b"[]\n", "status"), 2)
    expect(photonctl("status", "--control", "tcp://127.0.0.1:1"), 2, errors=["Unix sockets only"])


def usage():
    expect(photonctl(), 2, "Verbs:")
    expect(photonctl("--help"), 0, "status", "version", "Exit status")
    expect(photonctl("status", "--help"), 0, "Verbs:")
    expect(photonctl("--version"), 0, "photonctl ")
    expect(photonctl("frob"), 2, errors=["frob: no such verb"])
    expect(photonctl("status", "--frob"), 2, errors=["--frob: unknown option"])
    expect(photonctl("status", "--control"), 2, errors=["an address is missing"])
    with open("/dev/full", "w") as full:
        done = subprocess.run([require.built("photonctl"), "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2 and "could not be written whole" in done.stderr, done


with tempfile.TemporaryDirectory(prefix="photonctl.") as folder:
    socket_path = os.path.join(folder, "c.sock")
    status_of(socket_path)
    checks(socket_path)
    unreachable(socket_path)
    usage()
