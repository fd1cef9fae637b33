"""Who may do what: certificates, tokens, rights, users at Unix sockets; TLS clients that do not do what they should; limits of
connections. Beside it the protocol's tests run over TLS (daemon_bad_clients_tls and others)."""
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import certificates
import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")


class Place:
    """A folder with a CA, a server's certificate, and a daemon that listens with it."""

    def __init__(self, config=None, client_ca=False, tokens=True, **options):
        self.folder = tempfile.TemporaryDirectory(prefix="photond-test.")
        self.pki = certificates.Authority(os.path.join(self.folder.name, "pki"))
        self.certificate, self.key = self.pki.server()
        self.tokens = os.path.join(self.folder.name, "tokens")
        self.config = {"tls_certificate": self.certificate, "tls_key": self.key}
        if client_ca:
            self.config["tls_client_ca"] = self.pki.ca
        if tokens:
            open(self.tokens, "w").close()
            self.config["tokens_file"] = self.tokens
        self.config.update(config or {})
        self.options = options

    def token(self, name, rights="send", instances=""):
        bound = ["--instance", instances] if instances else []
        return photond.tool("photonctl", "token", name, "--rights", rights, *bound, "--add", self.tokens).strip()

    def context(self, certificate=None):
        return ingest.tls_context(self.pki.ca, certificate)

    def daemon(self):
        os.makedirs(os.path.join(self.folder.name, "d"), exist_ok=True)
        return photond.Daemon(os.path.join(self.folder.name, "d"), self.config, ["--listen", "tls://127.0.0.1:0"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()


def ended(c, code, field=None):
    messages = c.wait_ended()
    assert messages and isinstance(messages[-1], pb.Error), messages
    assert messages[-1].code == code and (field is None or messages[-1].field == field), messages[-1]
    return messages[-1]


def records(c, name="secure"):
    """Something whole is recorded and read back."""
    run = c.open(name, mode=pb.MODE_COUNTER)
    sent = [stored.photons(np.random.default_rng(i), 3000) for i in range(5)]
    for columns in sent:
        c.batch(run, columns)
    c.close(run)
    return run.name, stored.joined(sent)


def check(daemon, recorded):
    stored.File(daemon.path(recorded[0] + ".photons")).expect(recorded[1])


def refused_in_the_handshake(address, context):
    """With TLS 1.3 a client learns only from its first read that its certificate was refused."""
    try:
        c = ingest.Connection(address, preamble=False, tls=context)
    except OSError:
        return
    try:
        c.send_raw(ingest.PREAMBLE)
        assert c.receive_raw(8) == b"", "it was let in"
    except OSError:
        pass
    c.drop()


# ---- tokens ----


def tokens_right_wrong_and_none():
    with Place() as place:
        token = place.token("lab-7")
        with place.daemon() as d:
            c = ingest.Connection(d.tls, tls=place.context())
            welcome = c.hello(token=token.encode())
            assert list(welcome.rights) == [pb.RIGHT_SEND], welcome
            check(d, records(c))
            assert any(x["peer"].endswith(", token lab-7") for x in d.status()["connections"]), d.status()["connections"]
            for wrong in (b"", b"x", token.encode()[:-1], token.encode() + b"x", b"\0" * 3000):
                c = ingest.Connection(d.tls, tls=place.context())
                c.send(pb.Hello(client_name="c", instance="i", token=wrong))
                ended(c, pb.ERROR_NOT_AUTHORIZED, "hello.token")
            c = ingest.Connection(d.tcp)  # a wrong token is wrong also where none is needed
            c.send(pb.Hello(client_name="c", instance="i", token=b"wrong"))
            ended(c, pb.ERROR_NOT_AUTHORIZED, "hello.token")
            assert d.status()["counters"]["not_authorized"] == 6
            assert token not in d.log()
        with open(place.tokens) as f:
            assert token not in f.read()


def tokens_come_and_go():
    """By a reload: a new one is good, one that is gone ends its connections, a bad file changes nothing."""
    with Place() as place:
        first = place.token("first")
        with place.daemon() as d:
            c = ingest.Connection(d.tls, tls=place.context())
            c.hello(token=first.encode())
            run = c.open("of-first")
            c.batch(run, stored.photons(np.random.default_rng(1), 100))
            c.wait_ack(run, received=1)
            second = place.token("second")
            photond.tool("photonctl", "reload", "--control", d.control)
            other = ingest.Connection(d.tls, tls=place.context())
            other.hello(token=second.encode())
            with open(place.tokens) as f:
                lines = f.read().splitlines()
            with open(place.tokens, "w") as f:
                f.write("this is no token\n")
            photond.tool("photonctl", "reload", "--control", d.control, expect=1)
            c.send(pb.Ping(id=1))
            c.wait(pb.Pong)
            with open(place.tokens, "w") as f:
                f.write("# the first one was lost\n\n" + "\n".join(x for x in lines if x.startswith("second ")) + "\n")
            photond.tool("photonctl", "reload", "--control", d.control)
            ended(c, pb.ERROR_NOT_AUTHORIZED)
            again = ingest.Connection(d.tls, tls=place.context())
            again.send(pb.Hello(client_name="c", instance="i", token=first.encode()))
            ended(again, pb.ERROR_NOT_AUTHORIZED)
            check(d, records(other))


def rights_are_kept_apart():
    with Place({"plain_rights": ""}) as place:
        viewer, nothing = place.token("viewer", "view"), place.token("nothing", "")
        with place.daemon() as d:
            c = ingest.Connection(d.tls, tls=place.context())
            assert list(c.hello(token=viewer.encode()).rights) == [pb.RIGHT_VIEW]
            ingest.refused(lambda: c.open("viewed"), pb.ERROR_NOT_AUTHORIZED)
            producer = ingest.Connection(d.unix)
            producer.hello(instance="it", epoch=1)
            c = ingest.Connection(d.tls, tls=place.context())
            c.hello(instance="it", epoch=2, token=viewer.encode())  # takes over from nobody
            check(d, records(producer))
            c = ingest.Connection(d.tls, tls=place.context())
            c.send(pb.Hello(client_name="c", instance="i", token=nothing.encode()))
            ended(c, pb.ERROR_NOT_AUTHORIZED)
            c = ingest.Connection(d.tcp)
            c.send(pb.Hello(client_name="c", instance="i"))
            ended(c, pb.ERROR_NOT_AUTHORIZED)


def a_token_speaks_for_its_instances_alone():
    with Place() as place:
        bound, free = place.token("bound", instances="cam-?,lab 7*".replace(" ", "?")), place.token("free")
        with place.daemon() as d:
            def comes(instance, token, epoch=1):
                c = ingest.Connection(d.tls, tls=place.context())
                c.hello(instance=instance, epoch=epoch, token=token.encode())
                return c

            owner = comes("other", free)
            run = owner.open("others", run_id=b"r" * 16)
            for instance in ("other", "cam-", "cam-33", "xcam-3", "lab 6", "CAM-3", "*"):
                c = ingest.Connection(d.tls, tls=place.context())
                c.send(pb.Hello(client_name="c", instance=instance, epoch=9, token=bound.encode()))
                ended(c, pb.ERROR_NOT_AUTHORIZED, "hello.instance")
            assert d.status()["counters"]["not_authorized"] == 7
            owner.batch(run, stored.photons(np.random.default_rng(1), 100))  # nobody took its place
            assert owner.close(run).last_sequence == 1
            for instance in ("cam-3", "lab 7", "lab-7.b"):
                check(d, records(comes(instance, bound)))
            c = comes("cam-4", bound)
            ingest.refused(lambda: c.open("others", run_id=b"r" * 16), pb.ERROR_NOT_AUTHORIZED)
            with open(place.tokens) as f:
                text = f.read()
            with open(place.tokens, "w") as f:
                f.write(text.replace("cam-?", "cam-4"))
            photond.tool("photonctl", "reload", "--control", d.control)
            ended(c, pb.ERROR_NOT_AUTHORIZED)  # bound to others than it was
            comes("cam-4", bound, epoch=2).drop()
        for wrong in ("", ",", "a,", "a,,b", "a b", "x" * 256):
            photond.tool("photonctl", "token", "wrong", "--instance=" + wrong, expect=2)


# ---- certificates ----


def certificates_of_clients():
    with Place(client_ca=True, tokens=False) as place:
        other = certificates.Authority(os.path.join(place.folder.name, "other"), "other")
        good, lost = place.pki.client("instrument-3"), place.pki.client("lost")
        place.config["tls_client_crl"] = place.pki.revoked(lost[0])
        with place.daemon() as d:
            c = ingest.Connection(d.tls, tls=place.context(good))
            c.hello()
            check(d, records(c))
            assert any(x["peer"].endswith(", certificate instrument-3") for x in d.status()["connections"])
            wrong = [None, other.client(), place.pki.server("a-server"), lost]
            for certificate in wrong:
                refused_in_the_handshake(d.tls, place.context(certificate))
            photond.wait_for(lambda: d.status()["counters"]["connection_errors"] >= len(wrong))
            check(d, records(c))
            place.pki.revoked(good[0])  # from the next reload on
            photond.tool("photonctl", "reload", "--control", d.control)
            refused_in_the_handshake(d.tls, place.context(good))


def a_certificate_or_a_token():
    with Place(client_ca=True) as place:
        token = place.token("t")
        with place.daemon() as d:
            with ingest.Connection(d.tls, tls=place.context(place.pki.client())) as c:
                c.hello()
            with ingest.Connection(d.tls, tls=place.context()) as c:
                c.hello(token=token.encode())
            c = ingest.Connection(d.tls, tls=place.context())
            c.send(pb.Hello(client_name="c", instance="i"))
            ended(c, pb.ERROR_NOT_AUTHORIZED)


def a_client_knows_its_server():
    with Place() as place:
        other = certificates.Authority(os.path.join(place.folder.name, "other"), "other")
        with place.daemon() as d:
            try:
                ingest.Connection(d.tls, tls=ingest.tls_context(other.ca))
                raise AssertionError("another CA's certificate was believed")
            except ssl.SSLError as e:
                assert "certificate" in str(e).lower(), e


def what_is_configured_must_be_there():
    with Place(tokens=False) as place:
        for config, expected in (({}, "tls_client_ca or tokens_file"),
                                 ({"tokens_file": "/nonexistent"}, "/nonexistent"),
                                 ({"tokens_file": place.key}, "line 1"),
                                 ({"tls_client_ca": place.key}, "tls_client_ca"),
                                 ({"tls_client_ca": place.pki.ca, "tls_client_crl": place.key}, "tls_client_crl"),
                                 ({"tls_client_ca": place.pki.ca, "tls_key": place.pki.key}, "tls_key"),
                                 ({"tls_client_ca": place.pki.ca, "tls_key": ""}, "tls_certificate and tls_key"),
                                 ({"plain_rights": "send,fly"}, "plain_rights"),
                                 ({"tls_client_ca": place.pki.ca, "send_users": "no-such-user-at-all"}, "no-such-user-at-all")):
            before = dict(place.config)
            place.config.update(config)
            daemon = place.daemon()
            done = subprocess.run(daemon.command(), stderr=subprocess.PIPE, text=True, timeout=240)
            assert done.returncode == 2 and expected in done.stderr, (config, done.returncode, done.stderr)
            place.config = before


# ---- our own client ----


def send(place, daemon, name, *options, count=100000, expect=0):
    """Simulated events by photon-send, over TLS, and how many are in the file."""
    photond.tool("photon-send", "--to", daemon.tls.replace("127.0.0.1", "localhost"), "--run", name, "--simulate", "lincam",
                 "--count", str(count), "--speed", "max", "--timeout", "240s", *options, expect=expect)
    return None if expect else len(stored.File(daemon.path(name + ".photons")).columns["/photons/x"])


def photon_send_over_tls():
    with Place(client_ca=True) as place:
        token_file = os.path.join(place.folder.name, "token")
        with open(token_file, "w") as f:
            f.write(place.token("sender") + "\n")
        certificate, key = place.pki.client("sender")
        other = certificates.Authority(os.path.join(place.folder.name, "other"), "other")
        stranger, stranger_key = other.client()
        ca = ("--ca", place.pki.ca)
        with place.daemon() as d:
            assert send(place, d, "by-token", *ca, "--token-file", token_file) == 100000
            assert send(place, d, "by-certificate", *ca, "--certificate", certificate, "--key", key) == 100000
            assert send(place, d, "long", *ca, "--token-file", token_file, count=1000000) == 1000000
            send(place, d, "none", *ca, expect=2)
            send(place, d, "none", "--token-file", token_file, expect=2)  # the server's CA is not the system's
            send(place, d, "none", "--ca", other.ca, "--token-file", token_file, expect=2)
            send(place, d, "none", *ca, "--certificate", stranger, "--key", stranger_key, expect=2)
            send(place, d, "none", "--ca", "/nonexistent", expect=2)
            assert not os.path.exists(d.path("none.photons"))


# ---- TLS that is none ----


def raw(daemon):
    host, port = daemon.tls[6:].split(":")
    s = socket.create_connection((host, int(port)), 120)
    s.settimeout(120)
    return s


def until_closed(s):
    """What still comes."""
    got = b""
    try:
        while True:
            data = s.recv(65536)
            if not data:
                return got
            got += data
    except ConnectionResetError:
        return got
    finally:
        s.close()


class Flights:
    """A client's side of a handshake, to be cut anywhere."""

    def __init__(self, daemon, context):
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="127.0.0.1")
        self.socket = raw(daemon)

    def step(self):
        """Whether the handshake is over; what is to be sent is in `outgoing`."""
        try:
            self.tls.do_handshake()
            return True
        except ssl.SSLWantReadError:
            return False

    def more(self):
        self.incoming.write(self.socket.recv(65536))


def handshakes_cut_anywhere():
    """At every flight, after some of its bytes: the socket ends, or says nothing more, or sends garbage."""
    with Place({"hello_timeout_s": 1.0}) as place:
        token = place.token("t")
        with place.daemon() as d:
            left = []
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                for flight in (0, 1):
                    for part in (1, 3, 5, 6, 50, -1):
                        for after in ("close", "garbage", "silence"):
                            context = place.context()
                            context.minimum_version = context.maximum_version = version
                            f = Flights(d, context)
                            try:
                                for _ in range(flight):
                                    f.step()
                                    f.socket.sendall(f.outgoing.read())
                                    f.more()
                                f.step()
                                data = f.outgoing.read()
                                f.socket.sendall(data[:part])
                                if after == "garbage":
                                    f.socket.sendall(os.urandom(4000))
                            except (ConnectionError, BrokenPipeError):
                                pass  # it was ended for being late: good as well
                            if after == "close":
                                f.socket.close()
                            else:
                                left.append(f.socket)
            for s in left:
                until_closed(s)
            photond.wait_for(lambda: not d.status()["connections"])
            be_patient(d)
            c = ingest.Connection(d.tls, tls=place.context())
            c.hello(token=token.encode())
            check(d, records(c))


def be_patient(daemon):
    """From now on with a time for Hello that a busy machine needs."""
    daemon.config["hello_timeout_s"] = 120
    daemon.command()  # writes the configuration
    photond.tool("photonctl", "reload", "--control", daemon.control)


def a_slow_handshake_is_ended():
    """A byte now and then does not keep a connection that never says Hello."""
    with Place({"hello_timeout_s": 1.0}) as place, place.daemon() as d:
        f = Flights(d, place.context())
        f.step()
        hello = f.outgoing.read()
        try:
            for i in range(10000):
                f.socket.sendall(hello[i % len(hello):][:1] if i < len(hello) else b"\0")
                time.sleep(0.05)
            raise AssertionError("it may go on for ever")
        except OSError:
            pass
        f.socket.close()
        assert d.status()["counters"]["timeouts"] >= 1 or "TLS" in d.log()


def garbage_and_plain_speakers():
    with Place() as place:
        token = place.token("t")
        with place.daemon() as d:
            for garbage in (b"\0" * 100, b"\xff" * 70000, b"GET / HTTP/1.1\r\n\r\n", ingest.PREAMBLE, os.urandom(100000),
                            b"\x16\x03\x01\xff\xff" + b"\0" * 70000, b"\x15\x03\x03\0\2\2\50"):
                s = raw(d)
                try:
                    s.sendall(garbage)
                    s.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                until_closed(s)
            try:  # TLS where plain is spoken
                ingest.Connection("tls://" + d.tcp[6:], tls=place.context())
                raise AssertionError("TLS on a plain port")
            except ssl.SSLError:
                pass
            c = ingest.Connection(d.tls, tls=place.context())
            c.hello(token=token.encode())
            check(d, records(c))
            assert " error " not in d.log(), d.log()


def versions_and_renegotiation():
    """Nothing older than TLS 1.2; renegotiation is refused, and the others go on."""
    with Place() as place:
        token = place.token("t")
        with place.daemon() as d:
            old = place.context()
            old.set_ciphers("ALL:@SECLEVEL=0")
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
            try:
                ingest.Connection(d.tls, tls=old)
                raise AssertionError("TLS 1.1 was taken")
            except (ssl.SSLError, ConnectionError):
                pass
            client = subprocess.Popen([require.program("openssl"), "s_client", "-connect", d.tls[6:], "-tls1_2", "-CAfile",
                                       place.pki.ca], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      bufsize=0)
            seen = b""
            while b"Verify return code" not in seen:
                data = client.stdout.read(4096)
                assert data, seen
                seen += data
            try:
                client.stdin.write(b"R\n")
            except BrokenPipeError:
                pass
            rest = client.stdout.read()  # until it ends
            client.wait()
            assert b"no renegotiation" in rest or b"handshake failure" in rest or client.returncode != 0, rest
            c = ingest.Connection(d.tls, tls=place.context())
            c.hello(token=token.encode())
            check(d, records(c))


# ---- much of it ----


def two_hundred_connections():
    with Place({"max_connections": 250, "connects_per_s": 1000}) as place:
        token = place.token("t").encode()
        with place.daemon() as d:
            all_of_them = []
            for i in range(200):
                c = ingest.Connection(d.tls, tls=place.context())
                c.hello("c-%d" % i, token=token)
                all_of_them.append(c)
            assert len(d.status()["connections"]) == 200
            recorded = [records(c, "many") for c in all_of_them[::20]]
            for c in all_of_them:
                c.send(pb.Ping(id=3))
            for c in all_of_them:
                c.wait(pb.Pong)
                c.drop()
            photond.wait_for(lambda: not d.status()["connections"])
            for it in recorded:
                check(d, it)
            assert d.peak_kb() < 300000 or require.sanitized()


def big_messages():
    """Attributes of megabytes, several connections at once where there is little memory for them."""
    config = {"receive_mb": 10, "message_bytes": 4 << 20, "max_attribute_bytes": 4000000, "max_run_attribute_bytes": 33 << 20}
    with Place(config) as place:
        token = place.token("t").encode()
        with place.daemon() as d:
            failures = []

            def send(number):
                try:
                    with ingest.Connection(d.tls, tls=place.context(), timeout=400) as c:
                        c.hello("long-%d" % number, token=token)
                        run = c.open("long-%d" % number, summary=pb.SummaryOptions(enabled=pb.SWITCH_OFF))
                        for i in range(2):
                            c.attributes(run, {"note-%d" % i: chr(97 + number) * 3999000})
                        assert c.close(run).last_sequence == 2
                except Exception as e:
                    failures.append((number, repr(e)))

            threads = [threading.Thread(target=send, args=(i,)) for i in range(6)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            assert not failures, failures
            for i in range(6):
                file = stored.File(d.path("long-%d.photons" % i))
                assert file.attributes["note-1"] == chr(97 + i) * 3999000


def killed_in_the_middle():
    """A connection that dies inside a record: what was acknowledged is there, the rest is sent again."""
    with Place() as place:
        token = place.token("t").encode()
        with place.daemon() as d:
            sent = [stored.photons(np.random.default_rng(i), 5000) for i in range(12)]
            run_id, at = b"k" * 16, 0
            for epoch in range(1, 100):
                c = ingest.Connection(d.tls, tls=place.context())
                c.hello(instance="killed", epoch=epoch, token=token)
                run = c.open("killed", run_id=run_id)
                at = run.next_sequence - 1
                if at == len(sent):
                    break
                c.batch(run, sent[at], sequence=at + 1)
                c.wait_ack(run, received=at + 1)
                if at + 1 < len(sent):
                    packed = ingest.delimited(ingest.make_batch(run, sent[at + 1], at + 2))
                    c.socket.sendall(packed[:len(packed) * (epoch % 7 + 1) // 9])
                    c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    c.drop()
            c.close(run, last_sequence=len(sent))
            stored.File(d.path("killed.photons")).expect(stored.joined(sent))


def who_connects_too_often_is_refused():
    with photond.Daemon(config={"connects_per_s": 1}) as d:
        refused, kept = 0, []
        for _ in range(40):
            try:
                kept.append(ingest.Connection(d.tcp))
            except (AssertionError, OSError):
                refused += 1
        assert refused >= 1 and len(kept) >= 10, (refused, len(kept))
        for c in kept:
            c.drop()
        with ingest.Connection(d.unix) as c:
            c.hello()
            check(d, records(c))
        assert d.status()["counters"]["connections_refused"] == refused
        assert "connects_per_s" in d.log()


# ---- users at Unix sockets ----


AS_NOBODY = """
import encodings.ascii, os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + b"\\n")
print(s.makefile().readline())
"""


def users_of_the_control_socket():
    if os.geteuid() != 0:
        require.missing("the right to be another user")

    def ask(daemon, command):
        out = subprocess.run([sys.executable, "-c", AS_NOBODY, daemon.control[5:], '{"command": "%s"}' % command],
                             stdout=subprocess.PIPE, text=True, check=True, timeout=240).stdout
        return json.loads(out)

    for config, may_look, may_control in (({}, True, True), ({"control_users": "root"}, True, False),
                                          ({"control_users": "root", "view_users": "root"}, False, False),
                                          ({"control_users": "@65534"}, True, True)):
        with photond.Daemon(config={"control_mode": "0666", **config}) as d:
            os.chmod(d.folder, 0o755)
            answers = [ask(d, c) for c in ("status", "reload")]
            assert [a["ok"] for a in answers] == [may_look, may_control], (config, answers)
            assert all(a["ok"] or a["code"] == "not_authorized" for a in answers), answers
            d.status()  # root always


def users_of_the_ingest_socket():
    if os.geteuid() != 0:
        require.missing("the right to be another user")
    with photond.Daemon(config={"listen_mode": "0666", "send_users": "daemon,@daemon"}) as d:
        os.chmod(d.folder, 0o755)
        with ingest.Connection(d.unix) as c:
            c.hello()
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                c = ingest.Connection(d.unix)
                c.send(pb.Hello(client_name="c", instance="i"))
                ended(c, pb.ERROR_NOT_AUTHORIZED)
                os._exit(0)
            except BaseException as e:
                print(repr(e), flush=True)
                os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0


PARTS = {
    "rights": [tokens_right_wrong_and_none, tokens_come_and_go, rights_are_kept_apart,
               a_token_speaks_for_its_instances_alone, users_of_the_control_socket,
               users_of_the_ingest_socket, who_connects_too_often_is_refused],
    "certificates": [certificates_of_clients, a_certificate_or_a_token, a_client_knows_its_server,
                     what_is_configured_must_be_there],
    "client": [photon_send_over_tls],
    "hostile": [handshakes_cut_anywhere, a_slow_handshake_is_ended, garbage_and_plain_speakers, versions_and_renegotiation],
    "load": [two_hundred_connections, big_messages, killed_in_the_middle],
}


def main():
    for part in sys.argv[1:] or PARTS:
        for case in PARTS[part]:
            started = time.monotonic()
            print(case.__name__, flush=True)
            case()
            print("  %.1f s" % (time.monotonic() - started), flush=True)


if __name__ == "__main__":
    main()
