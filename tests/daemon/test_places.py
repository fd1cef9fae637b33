"""Where the daemon listens and writes: one daemon a folder, sockets that were left behind, who may reach it, rights of files."""
import json
import os
import resource
import socket
import stat
import subprocess
import time

import ingest
import photond
import require


def start_fails(daemon, *words):
    """A daemon that cannot start says why within a moment, and its exit status is 2."""
    done = subprocess.run(daemon.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)
    assert done.returncode == 2, (done.returncode, done.stderr)
    for word in words:
        assert word in done.stderr, (word, done.stderr)
    assert not os.path.exists(daemon.ready_path())


def a_second_daemon_is_refused():
    with photond.Daemon() as first:
        second = photond.Daemon()
        second.data = first.data
        start_fails(second, first.data, "another photond", str(first.process.pid))
        with ingest.Connection(first.tcp) as c:
            c.hello()
            c.close(c.open("unharmed"))
        first.stop()
        first.start()  # the folder is free again, and so are its sockets


def sockets_left_behind_are_taken_over():
    daemon = photond.Daemon()
    daemon.start()
    daemon.kill()
    assert os.path.exists(daemon.unix[5:]) and os.path.exists(daemon.control[5:])
    with daemon:
        with ingest.Connection(daemon.unix) as c:
            c.hello()
    assert not os.path.exists(daemon.unix[5:]) and not os.path.exists(daemon.control[5:])
    assert not os.path.exists(daemon.ready_path())


def sockets_of_others_are_left_alone():
    daemon = photond.Daemon()
    path = os.path.join(daemon.folder, "ingest.sock")
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(path)
        other.listen()
        start_fails(daemon, path)
    os.unlink(path)
    with open(path, "w") as f:
        f.write("a file")
    start_fails(daemon, path)
    with open(path) as f:
        assert f.read() == "a file"


def a_taken_port_is_named():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = "tcp://127.0.0.1:%d" % other.getsockname()[1]
        start_fails(photond.Daemon(arguments=["--listen", address]), address, "in use")


def other_machines_need_permission():
    start_fails(photond.Daemon(arguments=["--listen", "tcp://0.0.0.0:0"]), "tcp://0.0.0.0:0", "allow_insecure_remote")
    start_fails(photond.Daemon(arguments=["--listen", "tcp://[::]:0"]), "allow_insecure_remote")
    with photond.Daemon(config={"allow_insecure_remote": True}, arguments=["--listen", "tcp://0.0.0.0:0"]) as daemon:
        with open(daemon.ready_path()) as f:
            port = json.load(f)["listen"][-1].rsplit(":", 1)[1]
        with ingest.Connection("tcp://127.0.0.1:" + port) as c:
            c.hello()


def addresses_that_are_none_are_refused():
    for address in ("tcp://127.0.0.1", "tcp://127.0.0.1:99999", "udp://127.0.0.1:1", "tcp://no.such.host.invalid:1"):
        start_fails(photond.Daemon(arguments=["--listen", address]), address)


def rights_are_as_configured():
    before = os.umask(0o077)
    try:
        config = {"file_mode": "0640", "dir_mode": "0750", "listen_mode": "0620", "control_mode": "0604"}
        with photond.Daemon(config=config) as daemon:
            with ingest.Connection(daemon.unix) as c:
                c.hello()
                run = c.open("rights")

                def mode(path):
                    return stat.S_IMODE(os.stat(path).st_mode)

                assert mode(daemon.path("rights.photons.tail")) == 0o640
                c.close(run)
            assert mode(daemon.ready_path()) == 0o640
            photond.wait_for(lambda: os.path.exists(daemon.path("rights.run.json")))
            for suffix in (".photons", ".photons.crc", ".run.json"):
                assert mode(daemon.path("rights" + suffix)) == 0o640, suffix
            assert mode(daemon.path("rights.daf")) == 0o750
            assert mode(daemon.path("rights.daf/daf.json")) == 0o640
            assert mode(daemon.unix[5:]) == 0o620
            assert mode(daemon.control[5:]) == 0o604
    finally:
        os.umask(before)


def a_folder_that_is_none_is_refused():
    daemon = photond.Daemon()
    daemon.data = os.path.join(daemon.folder, "no", "such")
    start_fails(daemon, daemon.data)


def few_descriptors_are_enough():
    """200 connections where 64 files may be open: those beyond get an answer or are closed, a run goes on, nothing spins."""
    with photond.Daemon() as daemon:
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (64, 64))
        with ingest.Connection(daemon.unix) as good:
            good.hello("good")
            run = good.open("few-files")
            crowd = []
            for _ in range(200):
                try:
                    crowd.append(ingest.Connection(daemon.tcp, preamble=False, timeout=60))
                except OSError:
                    break
            good.batch(run, [b"\0\0"] * 3 + [b""])
            good.wait_ack(run, received=1)
            before, started = cpu_seconds(daemon.process.pid), time.monotonic()
            time.sleep(3)
            assert cpu_seconds(daemon.process.pid) - before < (time.monotonic() - started) / 2
            for c in crowd:
                c.drop()
            good.close(run)


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


CASES = [a_second_daemon_is_refused, sockets_left_behind_are_taken_over, sockets_of_others_are_left_alone, a_taken_port_is_named,
         other_machines_need_permission, addresses_that_are_none_are_refused, rights_are_as_configured,
         a_folder_that_is_none_is_refused, few_descriptors_are_enough]


if __name__ == "__main__":
    photond.run_cases(CASES)
