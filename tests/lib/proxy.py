"""A bad network: passes TCP connections on to a server and cuts them, after a random number of bytes or when the server sends a
certain message. Standard library only."""
import select
import socket
import threading


class Proxy:
    """Listens on loopback (`address`). `mean_bytes`: cuts each connection after so many bytes of both directions on the average,
    `cuts` times at most. `swallow`: cuts, once, in place of passing on what holds a ServerMessage with this body."""

    def __init__(self, to, random, mean_bytes=0, cuts=0, swallow=0):
        self.random, self.mean_bytes, self.cuts, self.swallow = random, mean_bytes, cuts, swallow
        self.n_cuts = 0
        self.to(to)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "tcp://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def to(self, address):
        host, port = address[len("tcp://"):].rsplit(":", 1)
        self.server = (host, int(port))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()
        self.listener.close()

    def serve(self):
        others = []
        while not self.ending.is_set():
            if not select.select([self.listener], [], [], 0.05)[0]:
                continue
            client, _ = self.listener.accept()
            thread = threading.Thread(target=self.carry, args=(client,), daemon=True)
            thread.start()
            others.append(thread)
        for thread in others:
            thread.join()

    def carry(self, client):
        with client:
            try:
                server = socket.create_connection(self.server, timeout=60)
            except OSError:
                return
            with server:
                self.pass_on(client, server)

    def pass_on(self, client, server):
        left = None
        if self.mean_bytes and self.n_cuts < self.cuts:
            left = 1 + self.random.randrange(2 * self.mean_bytes)
        for s in (client, server):
            s.settimeout(None)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while not self.ending.is_set():
                for s in select.select([client, server], [], [], 0.05)[0]:
                    data = s.recv(65536)
                    if not data:
                        return
                    if s is server and self.swallow and self.n_cuts == 0 and holds(data, self.swallow):
                        self.n_cuts += 1
                        return
                    if left is not None and len(data) >= left:
                        (server if s is client else client).sendall(data[:left])
                        self.n_cuts += 1
                        return
                    (server if s is client else client).sendall(data)
                    left = left - len(data) if left is not None else None
        except OSError:
            return


def holds(data, body):
    """Whether one of these messages has that body. (Answers are short: they come whole.)"""
    at = 8 if data.startswith(b"PHOTON") else 0
    while at < len(data):
        length = shift = 0
        while at < len(data):
            byte = data[at]
            at += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if length and data[at:at + 1] == bytes([body << 3 | 2]):
            return True
        at += length
    return False
