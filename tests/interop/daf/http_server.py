"""A static server on loopback with ranges, which counts requests and bytes, and can be told to misbehave: the first part
of a path is the mode."""
import http.server
import os
import threading
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, with_body):
        mode, _, path = self.path.lstrip("/").partition("/")
        self.server.log.append((self.command, path, self.headers.get("Range")))
        try:
            getattr(self, "mode_" + mode.partition("-")[0])(mode, path, with_body)
        except (BrokenPipeError, ConnectionResetError):
            pass

    # ---- what there is

    def load(self, path):
        import urllib.parse
        name = os.path.join(self.server.root, *urllib.parse.unquote(path).split("/"))
        try:
            with open(name, "rb") as file:
                return file.read()
        except OSError:
            return None

    def wanted(self, size):
        """First byte and the one behind the last, or None."""
        header = self.headers.get("Range")
        if not header:
            return None
        first, _, last = header.removeprefix("bytes=").partition("-")
        if not first:
            return max(0, size - int(last)), size
        return int(first), min(size, int(last) + 1)

    def send(self, status, body, with_body=True, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)
            self.server.sent += len(body)

    def serve(self, path, with_body, etag='"1"'):
        data = self.load(path)
        if data is None:
            return self.send(404, b"nothing here")
        part = self.wanted(len(data))
        if part is None:
            return self.send(200, data, with_body, ETag=etag)
        if part[0] >= part[1]:
            return self.send(416, b"", Content_Range="bytes */%d" % len(data))
        self.send(206, data[part[0]:part[1]], with_body, ETag=etag,
                  Content_Range="bytes %d-%d/%d" % (part[0], part[1] - 1, len(data)))

    def is_payload(self, path):
        return not path.endswith(".json")

    # ---- modes

    def mode_plain(self, mode, path, with_body):
        self.serve(path, with_body)

    def mode_noranges(self, mode, path, with_body):
        data = self.load(path)
        self.send(404 if data is None else 200, data or b"", with_body)

    def mode_nohead(self, mode, path, with_body):
        if not with_body:
            return self.send(405, b"", False)
        self.serve(path, with_body)

    def mode_status(self, mode, path, with_body):
        self.send(int(mode.partition("-")[2]), b"an error page")

    def mode_redirect(self, mode, path, with_body):
        hops = int(mode.partition("-")[2])
        self.send(302, b"go on", Location="/%s/%s" % ("redirect-%d" % (hops - 1) if hops > 1 else "plain", path))

    def mode_elsewhere(self, mode, path, with_body):
        self.send(302, b"", Location="file:///etc/hostname")

    def mode_unsafe(self, mode, path, with_body):
        self.send(302, b"", Location=self.server.elsewhere)

    def of_payload(self, path, with_body, misbehave):
        data = self.load(path)
        part = data is not None and self.wanted(len(data))
        if not self.is_payload(path) or not part or part[0] >= part[1]:
            return self.serve(path, with_body)
        misbehave(data, *part)

    def mode_otherpart(self, mode, path, with_body):
        self.of_payload(path, with_body, lambda data, first, end: self.send(
            206, data[:end - first], Content_Range="bytes 0-%d/%d" % (end - first - 1, len(data) + 1)))

    def mode_nocontentrange(self, mode, path, with_body):
        self.of_payload(path, with_body, lambda data, first, end: self.send(206, data[first:end]))

    def mode_wrongbytes(self, mode, path, with_body):
        """As many bytes as asked for, and what is said of them is right; but they are zeros."""
        self.of_payload(path, with_body, lambda data, first, end: self.send(
            206, bytes(end - first), Content_Range="bytes %d-%d/%d" % (first, end - 1, len(data))))

    def mode_toomuch(self, mode, path, with_body):
        self.of_payload(path, with_body, lambda data, first, end: self.send(
            206, data[first:end] + bytes(1000), Content_Range="bytes %d-%d/%d" % (first, end - 1, len(data))))

    def mode_huge(self, mode, path, with_body):
        def misbehave(data, first, end):
            self.send(200, b"x" * 1000, Content_Length=str(1 << 40))
            self.close_connection = True
        self.of_payload(path, with_body, misbehave)

    def mode_endless(self, mode, path, with_body):
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        while True:
            self.wfile.write(b" " * 65536)
            self.server.sent += 65536

    def mode_cut(self, mode, path, with_body):
        def misbehave(data, first, end):
            self.send(206, data[first:end][:-7], Content_Length=str(end - first),
                      Content_Range="bytes %d-%d/%d" % (first, end - 1, len(data)))
            self.close_connection = True
        self.of_payload(path, with_body, misbehave)

    def mode_stall(self, mode, path, with_body):
        def misbehave(data, first, end):
            self.server.stopping.wait(20)
            self.close_connection = True
        self.of_payload(path, with_body, misbehave)

    def mode_encoded(self, mode, path, with_body):
        data = self.load(path)
        self.send(404 if data is None else 200, data or b"", Content_Encoding="gzip")

    def mode_changing(self, mode, path, with_body):
        self.server.generation += 1
        self.serve(path, with_body, '"%d"' % self.server.generation)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Clients that hang up are what some tests are about."""

    def __init__(self, root, context=None):
        """context: an ssl.SSLContext, and the server speaks TLS."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.root, self.log, self.sent, self.generation = root, [], 0, 0
        self.stopping = threading.Event()
        self.scheme = "https" if context else "http"
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, mode, repository, user=""):
        return "%s://%s127.0.0.1:%d/%s/%s" % (self.scheme, user, self.server_address[1], mode, repository)

    def counted(self):
        """What came since the last call: requests, and bytes of bodies."""
        time.sleep(0.05)
        log, sent = self.log, self.sent
        self.log, self.sent = [], 0
        return log, sent

    def close(self):
        self.stopping.set()
        self.shutdown()
        self.server_close()
