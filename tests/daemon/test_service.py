"""Under a service manager, played by the test: readiness, status, watchdog, stop, reload, passed sockets, the journal's lines."""
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

import ingest
import manager
import photond
import require
import stored

np = require.module("numpy")


def record(daemon, name, address=None):
    with ingest.Connection(address or daemon.tcp) as c:
        c.hello(name)
        run = c.open(name)
        c.batch(run, stored.photons(np.random.default_rng(1), 1000))
        return c.close(run)


def ready_and_status_and_stop():
    with manager.Service() as daemon:
        told = daemon.manager
        told.wait(lambda n: n.get("READY") == "1")
        record(daemon, "one")
        assert told.keys() == ["READY"], told.notices
        line = told.wait(lambda n: "runs open" in n.get("STATUS", "") and n["STATUS"])
        assert re.search(r"runs open, .* photons/s, .* to the disk, .* free; ok", line), line
        with ingest.Connection(daemon.tcp) as c:
            c.hello("live")
            c.open("live")
            told.wait(lambda n: n.get("STATUS", "").startswith("1 runs open"))
        daemon.stop()
        told.wait(lambda n: "STOPPING" in n)
        assert told.keys() == ["READY", "STOPPING"], told.notices


def nobody_listens_before_it_is_ready():
    """Whoever was told can connect at once."""
    daemon = manager.Service()
    with daemon:
        os.unlink(daemon.ready_path())
        daemon.manager.wait(lambda n: "READY" in n)
        ingest.Connection(daemon.tcp).drop()
    failing = manager.Service(arguments=["--listen", "unix:/no/such/folder/anywhere.sock"])
    with open(failing.log_path(), "w") as log:
        assert failing.launch(log).wait(120) == 2, failing.log()
    assert "READY" not in failing.manager.keys(), failing.manager.notices


def the_watchdog_is_fed():
    with manager.Service(environment={"WATCHDOG_USEC": "900000"}) as daemon:
        photond.wait_for(lambda: daemon.manager.count("WATCHDOG") >= 5, 120)


def a_loop_that_hangs_does_not_feed_it():
    with manager.Service(environment={"WATCHDOG_USEC": "300000"}) as daemon:
        told = daemon.manager
        photond.wait_for(lambda: told.count("WATCHDOG") >= 2, 120)
        daemon.process.send_signal(signal.SIGSTOP)
        photond.wait_for(told.starves, 120)
        fed = told.count("WATCHDOG")
        check = subprocess.run([require.built("photonctl"), "status", "--check", "--timeout", "1", "--control", daemon.control],
                               stderr=subprocess.PIPE, text=True)
        assert check.returncode == 2 and "photond is silent" in check.stderr, check
        daemon.process.send_signal(signal.SIGCONT)
        photond.wait_for(lambda: told.count("WATCHDOG") > fed, 120)
        photond.wait_for(lambda: "the loop was held up for" in daemon.log(), 120)


def a_manager_that_does_not_read():
    """It misses what it is told, and holds up nobody."""
    daemon = manager.Service(notify=False, environment={"WATCHDOG_USEC": "30000"})
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as filler:
        daemon.environment["NOTIFY_SOCKET"] = os.path.join(daemon.folder, "deaf.sock")
        deaf.bind(daemon.environment["NOTIFY_SOCKET"])
        fill(filler, lambda: filler.sendto(b"FULL=1", deaf.getsockname()))
        with daemon:
            record(daemon, "goes-on")
            assert "the service manager could not be told READY=1" in daemon.log(), daemon.log()


def fill(f, put):
    os.set_blocking(f.fileno(), False)
    try:
        while True:
            put()
    except BlockingIOError:
        os.set_blocking(f.fileno(), True)


def a_log_that_nobody_reads():
    """Its lines are lost, and counted."""
    end, start = os.pipe()
    with open(start, "wb", buffering=0) as pipe, open(end, "rb", buffering=0) as unread:
        fill(pipe, lambda: os.write(pipe.fileno(), bytes(4096)))
        daemon = manager.Service()
        launch = daemon.launch
        daemon.launch = lambda log: launch(pipe)
        with daemon:
            record(daemon, "goes-on")
            assert daemon.status()["counters"]["log_lines_lost"] > 0
        assert unread.read(1) == bytes(1)


def write(daemon, config):
    daemon.config = config
    daemon.command()


def reloads():
    daemon = manager.Service(config={"sync_interval_ms": 1000, "max_datasets": 8})
    with daemon:
        told = daemon.manager
        write(daemon, {"sync_interval_ms": 40, "max_datasets": 2, "ring_mb": 65, "profiles": {"one": [{"name": "/e", "type": "uint8"}]}})
        daemon.process.send_signal(signal.SIGHUP)
        photond.wait_for(lambda: told.keys() == ["READY", "RELOADING", "MONOTONIC_USEC", "READY"], 120)
        stamp = int(told.wait(lambda n: n.get("MONOTONIC_USEC")))
        assert abs(time.monotonic() - stamp / 1e6) < 600
        log = daemon.log()
        for key in ("sync_interval_ms", "max_datasets", "profiles"):
            assert "configuration: %s has changed" % key in log, log
        assert "configuration: ring_mb differs, which needs a restart" in log, log
        with ingest.Connection(daemon.tcp) as c:  # the new values hold
            c.hello("after")
            ingest.refused(lambda: c.open("many"), ingest.pb.ERROR_LIMIT)
            c.open("own", profile="one")

        answer = json.loads(photond.tool("photonctl", "reload", "--json", "--control", daemon.control))
        assert (answer["changed"], answer["restart"]) == ([], ["ring_mb"]), answer
        write(daemon, {"sync_interval_ms": 40})
        shown = photond.tool("photonctl", "reload", "--control", daemon.control)
        assert re.search("changed +max_datasets", shown) and re.search("changed +profiles", shown), shown

        with open(os.path.join(daemon.folder, "photond.json"), "w") as f:
            f.write('{"sync_interval_ms": 50,\n "ringmb": 3}')
        refused = subprocess.run([require.built("photonctl"), "reload", "--control", daemon.control], stderr=subprocess.PIPE, text=True)
        assert refused.returncode == 1 and 'photond.json:2: ringmb: unknown key; did you mean "ring_mb"?' in refused.stderr, refused
        assert "the configuration stays as it is" in daemon.log()
        record(daemon, "goes-on")
        assert told.keys()[-1] == "READY"


def the_journal_gets_priorities():
    with manager.Service(environment={"JOURNAL_STREAM": "here"}) as daemon:
        record(daemon, "noted")
        lines = daemon.log().splitlines()
    assert lines and all(re.match("<[3467]>[^0-9]", line) for line in lines), lines
    assert any(line.startswith("<6>run noted: opened") for line in lines), lines
    with manager.Service(environment={"JOURNAL_STREAM": "1:2"}) as daemon:
        assert re.match(r"\d{4}-\d\d-\d\dT", daemon.log()), daemon.log()


def sockets_in(folder):
    made = []
    for name in ("ingest", "control"):
        made.append(socket.socket(socket.AF_UNIX))
        made[-1].bind(os.path.join(folder, "passed-%s.sock" % name))
    made.append(socket.create_server(("127.0.0.1", 0)))
    for s in made:
        s.listen()
    return made


def sockets_are_passed():
    """They take the place of those of the configuration, and outlive the daemon: nobody is refused between two of them."""
    with tempfile.TemporaryDirectory(prefix="photond-test.") as folder:
        passed_in(folder)


def passed_in(folder):
    daemon = manager.Service(folder=folder)
    daemon.sockets, daemon.names = sockets_in(daemon.folder), "ingest:control:tcp"
    at = {s: "unix:" + s.getsockname() for s in daemon.sockets[:2]}
    tcp = "tcp://127.0.0.1:%d" % daemon.sockets[2].getsockname()[1]
    for name in ("first", "second"):
        with daemon:
            assert (daemon.unix, daemon.tcp) == (at[daemon.sockets[0]], tcp), (daemon.unix, daemon.tcp)
            daemon.control = at[daemon.sockets[1]]
            record(daemon, name + "-unix", daemon.unix)
            record(daemon, name + "-tcp", daemon.tcp)
            assert daemon.status()["listen"] == [daemon.unix, daemon.tcp]
            daemon.stop()
        for address in at.values():
            assert os.path.exists(address[5:]), address
        early = socket.socket(socket.AF_UNIX)
        early.connect(at[daemon.sockets[0]][5:])  # waits for the next one
        early.close()


def the_control_socket_is_known_by_its_path():
    daemon = manager.Service()
    daemon.sockets, daemon.names = sockets_in(daemon.folder)[:2], "photond.socket:photond.socket"
    daemon.control = "unix:" + daemon.sockets[1].getsockname()
    with open(daemon.log_path(), "a") as log:
        daemon.process = daemon.launch(log)
    photond.wait_for(lambda: os.path.exists(daemon.ready_path()) and os.path.getsize(daemon.ready_path()), 120)
    assert daemon.status()["listen"] == ["unix:" + daemon.sockets[0].getsockname()]
    daemon.stop()


def what_is_no_listening_socket_is_refused():
    left, right = socket.socketpair()
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for bad in (left, bound):
        daemon = manager.Service(sockets=[bad], names="odd")
        with open(daemon.log_path(), "w") as log:
            assert daemon.launch(log).wait(120) == 2
        assert 'passed "odd", which is no listening stream socket' in daemon.log(), daemon.log()
        assert "READY" not in daemon.manager.keys()


CASES = [ready_and_status_and_stop, nobody_listens_before_it_is_ready, the_watchdog_is_fed, a_loop_that_hangs_does_not_feed_it,
         a_manager_that_does_not_read, a_log_that_nobody_reads, reloads,
         the_journal_gets_priorities, sockets_are_passed, the_control_socket_is_known_by_its_path,
         what_is_no_listening_socket_is_refused]


if __name__ == "__main__":
    photond.run_cases(CASES)
