"""Stands in for a service manager: the socket for notices, sockets that are passed, the watchdog."""
import os
import socket
import subprocess
import sys
import threading
import time

import photond

# Puts the descriptors where they are looked for, and says so under the number of the process that it becomes.
_PASS = """
import os, sys
fds, names = sys.argv[1].split(","), sys.argv[2]
kept = [os.dup(int(fd)) for fd in fds if fd]
kept = [os.dup2(os.dup(fd), 100 + i) for i, fd in enumerate(kept)]
for i, fd in enumerate(kept):
    os.dup2(fd, 3 + i)
os.closerange(3 + len(kept), 200)
if kept:
    os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(kept)), LISTEN_FDNAMES=names)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Manager:
    """Receives notices on a socket of its own."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "notify.sock")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.notices = []  # (time, {key: value})
        self.changed = threading.Condition()
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self):
        while True:
            data = self.socket.recv(65536).decode()
            fields = dict(line.split("=", 1) for line in data.splitlines())
            with self.changed:
                self.notices.append((time.monotonic(), fields))
                self.changed.notify_all()

    def count(self, key):
        return sum(key in fields for _, fields in self.notices)

    def starves(self):
        """Whether the watchdog is fed no more: what is fed all the time never stands still for so long."""
        fed = self.count("WATCHDOG")
        time.sleep(2)
        return self.count("WATCHDOG") == fed

    def keys(self):
        """Of what was told once, in order; the watchdog's and the status lines are left out."""
        return [k for _, fields in self.notices for k in fields if k not in ("WATCHDOG", "STATUS")]

    def wait(self, wanted, seconds=120):
        """What wanted(fields) is for the first notice for which it is true, old ones included."""
        deadline = time.monotonic() + seconds
        at = 0
        with self.changed:
            while True:
                for _, fields in self.notices[at:]:
                    if wanted(fields):
                        return wanted(fields)
                at = len(self.notices)
                assert self.changed.wait(deadline - time.monotonic()), "no such notice came: %s" % self.notices[-20:]


class Service(photond.Daemon):
    """A Daemon that a service manager started."""

    def __init__(self, sockets=(), names="", environment=None, notify=True, **options):
        super().__init__(**options)
        self.sockets, self.names = sockets, names
        self.manager = Manager(self.folder) if notify else None
        self.environment = dict(environment or {})
        if notify:
            self.environment["NOTIFY_SOCKET"] = self.manager.path

    def launch(self, log):
        fds = [s.fileno() for s in self.sockets]
        environment = dict(os.environ, **self.environment)
        if environment.get("JOURNAL_STREAM") == "here":
            st = os.fstat(log.fileno())
            environment["JOURNAL_STREAM"] = "%d:%d" % (st.st_dev, st.st_ino)
        return subprocess.Popen([sys.executable, "-c", _PASS, ",".join(map(str, fds)), self.names, *self.command()],
                                stderr=log, pass_fds=fds, env=environment)
