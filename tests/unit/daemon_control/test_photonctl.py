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
    """Answers the requests with these bytes one after the other, the last ones again and again."""

    def __init__(self, path, *answers):
        self.answers = list(answers)
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
                peer.sendall(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])

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


def line(answer):
    return answer if isinstance(answer, bytes) else json.dumps(answer).encode() + b"\n"


def answered(path, answer, *arguments, request={"command": "status"}):
    return conversation(path, [(request, answer)], *arguments)


def conversation(path, expected, *arguments):
    """Runs photonctl, which must make these requests and gets these answers."""
    with Server(path, *[line(answer) for _, answer in expected]) as server:
        got = photonctl(*arguments, "--control", "unix:" + path)
        assert server.requests == [request for request, _ in expected], server.requests
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
    assert "start " not in shown[1] and "proofs" not in shown[1]
    expect(answered(path, {"ok": True}, "status"), 0, "no open runs")
    failures = [{"file": "a.photons", "text": "it is\x1b damaged"}, {"file": "b.photons", "text": "no right to read it"}]
    found = {"recovered": 3, "failed": 2, "cut_bytes": 4096, "failures": failures}
    status = dict(STATUS, recovery=found, certificates_pending=2, counters=dict(STATUS["counters"], certificates=7, certificates_failed=1))
    expect(answered(path, status, "status"), 0, "3 runs recovered  2 could not be  4.1 kB cut off and kept beside",
           "a.photons: it is\\x1b damaged\n", "b.photons: no right to read it\n", "7 certificates made  1 failed  2 to come")


def checks(path):
    for health, code in (("ok", 0), ("degraded", 0), ("not_ok", 1), ("", 1)):
        status = dict(STATUS, health=health, reasons=["the disk is full", "x\ny"] if code or health == "degraded" else [])
        got = expect(answered(path, status, "status", "--check"), code, health)
        assert got[1].count("\n") == 1, got
    expect(answered(path, STATUS, "status", "--check"), 0, "ok\n")
    expect(answered(path, {"ok": False, "error": "no\x1b"}, "status"), 1, errors=["photond refused: no\\x1b"])
    expect(answered(path, {"ok": False, "error": "no"}, "status", "--check"), 2)


def unreachable(path):
    control = ("--control", "unix:" + path)
    expect(photonctl("status", *control), 2, errors=["cannot be reached: No such file or directory"])
    expect(photonctl("status", "--check", *control), 2)
    expect(answered(path, b"not json\n", "status"), 2, errors=["the answer is not photond's"])
    expect(answered(path, b"", "status"), 2, errors=["the connection was closed"])
    expect(answered(path, b"[]\n", "status"), 2)
    expect(photonctl("status", "--control", "tcp://127.0.0.1:1"), 2, errors=["Unix sockets only"])


RUN = {"ok": True, "run": "scan", "id": "ab12", "state": "running", "received": 5, "durable": 3, "exports": 7}
ASK = {"command": "run", "id": "ab12"}


def runs(path):
    shown = expect(answered(path, dict(STATUS, armed=[{"name": "next", "profile": "lincam", "age_s": 5.0}], draining=True), "runs"), 0,
                   "next                     armed, for a producer with profile lincam, for 5.0 s", "scan-17")
    assert "CLIENT" not in shown[1]
    expect(answered(path, {"ok": True, "runs": [], "draining": True}, "status"), 0, ", takes no new runs", "no open runs")
    got = expect(answered(path, STATUS, "runs", "--json"), 0)
    assert json.loads(got[1]) == STATUS["runs"]


def stops(path):
    stop = {"command": "stop", "run": "scan"}
    closed, failed = dict(RUN, state="closed"), dict(RUN, state="failed", failure="the disk\x07")
    expect(conversation(path, [(stop, dict(RUN, state="draining")), (ASK, dict(RUN, state="closing")), (ASK, closed)], "stop", "scan"), 0,
           "scan: closed")
    expect(conversation(path, [(stop, RUN), (ASK, failed)], "stop", "scan"), 1, errors=["run scan failed: the disk\\x07"])
    expect(answered(path, dict(RUN, state="draining"), "stop", "scan", "--no-wait", request=stop), 0, "scan: draining")
    expect(answered(path, {"ok": True, "run": "scan", "state": "disarmed"}, "stop", "scan", request=stop), 0, "scan: disarmed")
    expect(answered(path, {"ok": False, "error": "there is no open run scan"}, "stop", "scan", request=stop), 1,
           errors=["photonctl stop: photond refused: there is no open run scan"])
    export = {"command": "export", "run": "scan"}
    expect(conversation(path, [(export, RUN), (ASK, RUN), (ASK, dict(RUN, exports=8))], "export", "scan"), 0, "scan: running")
    got = expect(conversation(path, [(export, RUN), (ASK, dict(RUN, exports=8))], "export", "scan", "--json"), 0)
    assert json.loads(got[1]) == dict(RUN, exports=8)
    note = {"command": "note", "run": "scan", "text": "t\u00e4"}
    expect(conversation(path, [(note, dict(RUN, syncs=4, until=6)), (ASK, dict(RUN, syncs=5)), (ASK, dict(RUN, syncs=6))], "note", "scan",
                        "t\u00e4"), 0, "scan: running")
    flush = {"command": "flush", "run": "scan"}
    expect(conversation(path, [(flush, dict(RUN, syncs=4, until=5)), (ASK, dict(RUN, syncs=5))], "flush", "scan"), 0, "scan: running")
    expect(conversation(path, [(export, RUN), (ASK, {"ok": False, "error": "forgotten"})], "export", "scan"), 1, errors=["forgotten"])


def commands(path):
    start = {"command": "start", "run": "s", "profile": "", "force": False}
    expect(answered(path, {"ok": True, "run": "s", "state": "armed"}, "start", "s", request=start), 0, "s: armed")
    expect(answered(path, {"ok": True, "run": "s", "state": "armed"}, "start", "s", "--force", "--profile=p",
                    request=dict(start, profile="p", force=True)), 0, "s: armed")
    expect(answered(path, {"ok": True, "draining": True, "open": 2}, "drain", request={"command": "drain", "off": False}), 0,
           "new runs are refused; 2 are open")
    expect(answered(path, {"ok": True, "draining": False, "open": 2}, "drain", "--off", request={"command": "drain", "off": True}), 0,
           "new runs are taken")
    reload = {"command": "reload"}
    expect(answered(path, {"ok": True, "changed": ["log_level"], "restart": ["ring_mb"]}, "reload", request=reload), 0,
           "changed      log_level", "restart      ring_mb")
    expect(answered(path, {"ok": True, "changed": [], "restart": []}, "reload", request=reload), 0, "nothing has changed")


def usage():
    expect(photonctl(), 2, errors=["Usage: photonctl COMMAND"])
    expect(photonctl("--help"), 0, "status", "version", "Exit status")
    for command in ("status", "runs", "start", "stop", "flush", "note", "export", "drain", "reload", "version"):
        expect(photonctl(command, "--help"), 0, "Usage: photonctl " + command, "--control ADDRESS")
    expect(photonctl("verify-summaries", "--help"), 0, "Usage: photonctl verify-summaries RUN.daf")
    expect(photonctl("verify-summaries", "x"), 2, errors=["arguments are missing"])
    expect(photonctl("--version"), 0, "photonctl ")
    expect(photonctl("frob"), 2, errors=['there is no command "frob"'])
    expect(photonctl("status", "--frob"), 2, errors=["unrecognized option '--frob'"])
    expect(photonctl("status", "--control"), 2, errors=["'--control' requires an argument"])
    expect(photonctl("status", "--force"), 2, errors=["unrecognized option '--force'"])
    expect(photonctl("status", "--json", "--check"), 2, errors=["exclude each other"])
    expect(photonctl("stop"), 2, errors=["arguments are missing"])
    expect(photonctl("stop", "a", "b"), 2, errors=["too many arguments"])
    for seconds in ("0", "-1", "x", "1x", "", "99999999999999999999"):
        expect(photonctl("status", "--timeout", seconds), 2, errors=["is no number of seconds"])
        expect(photonctl("status", "--watch=" + seconds), 2, errors=["is no number of seconds"])
    with open("/dev/full", "w") as full:
        done = subprocess.run([require.built("photonctl"), "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2 and "could not be written whole" in done.stderr, done


def watches(path):
    """Until the daemon is gone."""
    with Server(path, line(STATUS), line(STATUS), b""):
        got = photonctl("status", "--check", "--watch", "--control", "unix:" + path)
    assert got[0] == 2 and got[1] == "ok\nok\n", got


with tempfile.TemporaryDirectory(prefix="photonctl.") as folder:
    socket_path = os.path.join(folder, "c.sock")
    status_of(socket_path)
    checks(socket_path)
    unreachable(socket_path)
    runs(socket_path)
    stops(socket_path)
    commands(socket_path)
    watches(socket_path)
    usage()
