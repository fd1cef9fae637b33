"""Speaks the ingest protocol (docs/protocol.md) with a photond, for tests; wrongly too, where a test wants that.

    with ingest.Connection(daemon.tcp) as c:
        c.hello()
        run = c.open("a-run")                                   # an Opened
        c.batch(run, [x, y, dt, ms])                            # arrays or bytes, one per dataset
        assert c.close(run).last_sequence == 1                  # waits for the Closed

`pb` holds the messages and the values of all enums: pb.Hello(...), pb.ERROR_HOLE, pb.ErrorCode.Name(17). They are made at run
time from proto/ingest.proto, so that protoc and the protobuf package may be of any two versions.
"""
import os
import re
import socket
import ssl
import subprocess
import tempfile
import time
import types
import uuid

import require

_descriptor_pb2 = require.module("google.protobuf.descriptor_pb2")
_descriptor_pool = require.module("google.protobuf.descriptor_pool")
_message_factory = require.module("google.protobuf.message_factory")
_enum_type_wrapper = require.module("google.protobuf.internal.enum_type_wrapper")

PREAMBLE = b"PHOTON\x01\x01"
TYPE_BYTES = [1, 2, 4, 8, 1, 2, 4, 8, 4, 8]  # by ElementType


def _load():
    folder = os.path.join(os.environ["PHOTOND_SOURCE"], "proto")
    with tempfile.TemporaryDirectory(prefix="photond-proto.") as temporary:
        out = os.path.join(temporary, "ingest.pb")
        subprocess.run([require.program("protoc"), "-I", folder, "--descriptor_set_out", out, "ingest.proto"], check=True)
        with open(out, "rb") as f:
            files = _descriptor_pb2.FileDescriptorSet.FromString(f.read())
    pool = _descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    file = pool.FindFileByName("ingest.proto")
    names = {name: _message_factory.GetMessageClass(d) for name, d in file.message_types_by_name.items()}
    for name, d in file.enum_types_by_name.items():
        names[name] = _enum_type_wrapper.EnumTypeWrapper(d)
        names.update((value.name, value.number) for value in d.values)
    return types.SimpleNamespace(DESCRIPTOR=file, **names)


pb = _load()


# ---- pure parts -------------------------------------------------------------------------------------------------


def _crc32c_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


_CRC32C_TABLE = _crc32c_table()


def crc32c_plain(data, crc=0):
    """CRC-32C as docs/protocol.md defines it; `crc` goes on from the bytes before."""
    crc ^= 0xFFFFFFFF
    for byte in bytes(data):
        crc = crc >> 8 ^ _CRC32C_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


try:
    import google_crc32c

    def crc32c(data, crc=0):
        return google_crc32c.extend(crc, bytes(data))
except ImportError:
    crc32c = crc32c_plain


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def get_varint(data, at=0):
    """(value, where it ends), or (None, at) when it does not end."""
    value = 0
    for i in range(10):
        if at + i >= len(data):
            return None, at
        value |= (data[at + i] & 0x7F) << 7 * i
        if data[at + i] < 0x80:
            return value, at + i + 1
    raise ValueError("a varint of more than 10 bytes at byte %d" % at)


def client_message(body):
    """The ClientMessage around a body; a ClientMessage stays as it is."""
    name = body.DESCRIPTOR.name
    return body if name == "ClientMessage" else pb.ClientMessage(**{name.lower(): body})


def delimited(message):
    """The bytes on the stream of a message, a body of a ClientMessage, or bytes that stand for one."""
    packed = message if isinstance(message, bytes) else client_message(message).SerializeToString()
    return varint(len(packed)) + packed


def body_of(server_message):
    return getattr(server_message, server_message.WhichOneof("body"))


def column_bytes(column):
    """A column as it stands in a Batch. An array must be little-endian and of the dataset's type already."""
    return bytes(column) if isinstance(column, (bytes, bytearray)) else column.tobytes()


def make_batch(opened, columns, sequence, **fields):
    """A right Batch for a run, but for what `fields` says otherwise: counts, crc32c, lost_before and so on.
    columns  one per dataset of Opened: bytes, or something with tobytes()"""
    raw = [column_bytes(c) for c in columns]
    if "counts" not in fields:
        lengths = {d.group: len(c) // TYPE_BYTES[d.type] for d, c in zip(opened.datasets, raw)}
        fields["counts"] = [lengths[g] for g in opened.groups]
    if "crc32c" not in fields:
        crc = 0
        for c in raw:
            crc = crc32c(c, crc)
        fields["crc32c"] = crc
    fields.setdefault("run", opened.run)
    return pb.Batch(sequence=sequence, columns=raw, **fields)


def attributes(pairs):
    return [pb.Attribute(key=k, value=v) for k, v in pairs.items()]


# ---- connection -------------------------------------------------------------------------------------------------


class Refused(Exception):
    """The server sent an Error where something else was waited for."""

    def __init__(self, error):
        super().__init__("%s: %s" % (pb.ErrorCode.Name(error.code), str(error).replace("\n", " ")))
        self.error = error


def refused(action, code):
    """The Error with which the server refuses an action."""
    try:
        action()
    except Refused as e:
        assert e.error.code == code, e
        return e.error
    raise AssertionError("not refused")


tls_default = None  # a tls_context() for tls:// addresses


def tls_context(ca, certificate=None):
    """How to speak TLS: whom to trust, and what to show, as (certificate, key)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(ca)
    if certificate:
        context.load_cert_chain(*certificate)
    return context


class Connection:
    """A connection to the ingest port. `timeout` is how long to wait for any one thing, in seconds; `tls` is a tls_context()
    for tls:// addresses."""

    def __init__(self, address, preamble=True, timeout=120, tls=None):
        self.timeout = timeout
        self.tls = tls or tls_default
        self.acks = {}      # the last Ack of each run
        self.sequence = {}  # the number of the last message sent to each run
        self.received = bytearray()
        self.sent_bytes = self.received_bytes = 0
        self.socket = self._dial(address)
        if preamble:
            self.send_raw(PREAMBLE)
            self.version = self.receive_preamble()

    def _dial(self, address):
        unix = re.fullmatch(r"unix:(.+)", address)
        if unix:
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            s.settimeout(self.timeout)
            s.connect(unix[1])
            return s
        kind, host, port = re.fullmatch(r"(tcp|tls)://\[?([^\]]+?)\]?:(\d+)", address).groups()
        s = socket.create_connection((host, int(port)), self.timeout)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if kind == "tls":
            try:
                return self.tls.wrap_socket(s, server_hostname=host)
            except OSError:
                s.close()
                raise
        return s

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.drop()

    def drop(self):
        """Ends the connection without a word."""
        self.socket.close()

    def finish_sending(self):
        self.socket.shutdown(socket.SHUT_WR)

    # -- bytes

    def send_raw(self, data):
        self.socket.settimeout(self.timeout)
        self.socket.sendall(data)
        self.sent_bytes += len(data)

    def _fill(self, timeout):
        """More bytes; False at the end of the stream."""
        self.socket.settimeout(max(timeout, 1e-6))
        try:
            data = self.socket.recv(1 << 16)
        except socket.timeout:
            raise TimeoutError("no answer within the time; %d bytes of one so far" % len(self.received)) from None
        except (ConnectionResetError, ssl.SSLEOFError):
            data = b""
        self.received += data
        self.received_bytes += len(data)
        return bool(data)

    def receive_raw(self, n=None, timeout=None):
        """The next n bytes; all until the end of the stream without n. Fewer when the stream ends before."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while n is None or len(self.received) < n:
            if not self._fill(deadline - time.monotonic()):
                break
        n = len(self.received) if n is None else n
        data = bytes(self.received[:n])
        del self.received[:n]
        return data

    def receive_preamble(self):
        got = self.receive_raw(8)
        assert len(got) == 8 and got[:6] == PREAMBLE[:6], "not a preamble: %r" % got
        return got[6], got[7]

    # -- messages

    def send(self, message):
        """Sends a ClientMessage, a body of one, or bytes in its place."""
        self.send_raw(delimited(message))

    def receive(self, timeout=None):
        """The next body that the server sent, whatever it is; None at the end of the stream."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            length, at = get_varint(self.received)
            if length is not None and len(self.received) - at >= length:
                message = pb.ServerMessage.FromString(bytes(self.received[at:at + length]))
                del self.received[:at + length]
                assert message.WhichOneof("body"), "a message without a body that we know"
                return self._note(body_of(message))
            if not self._fill(deadline - time.monotonic()):
                assert not self.received, "the stream ends in the middle of a message"
                return None

    def _note(self, body):
        if isinstance(body, pb.Ack):
            self.acks[body.run] = body
        return body

    def wait(self, kind, timeout=None):
        """The next message of a kind (pb.Opened). Acks, Paused and Resumed are passed over, a Ping is answered, an Error
        raises Refused, anything else is a failure."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            body = self.receive(deadline - time.monotonic())
            if isinstance(body, kind):
                return body
            if body is None:
                raise ConnectionError("the stream ended before a " + kind.DESCRIPTOR.name)
            if isinstance(body, pb.Error):
                raise Refused(body)
            if isinstance(body, pb.Ping):
                self.send(pb.Pong(id=body.id))
            elif not isinstance(body, (pb.Ack, pb.Paused, pb.Resumed)):
                raise AssertionError("%s came where %s was awaited" % (body.DESCRIPTOR.name, kind.DESCRIPTOR.name))

    def wait_ended(self, timeout=None):
        """All messages up to the end of the stream."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        messages = []
        while True:
            body = self.receive(deadline - time.monotonic())
            if body is None:
                return messages
            messages.append(body)

    # -- the conversation of a well-behaved client

    def hello(self, client_name="test", instance=None, epoch=1, software="photond tests", **fields):
        self.instance = instance or "test-%s" % uuid.uuid4()
        self.send(pb.Hello(client_name=client_name, instance=self.instance, epoch=epoch, software=software, **fields))
        self.welcome = self.wait(pb.Welcome)
        return self.welcome

    def open(self, name, run_id=None, **fields):
        """Opens a run (profile lincam unless datasets or a profile are given), waits for it."""
        if "datasets" not in fields:
            fields.setdefault("profile", "lincam")
        self.send(pb.Open(run_id=run_id or uuid.uuid4().bytes, name=name, **fields))
        opened = self.wait(pb.Opened)
        self.sequence[opened.run] = opened.next_sequence - 1
        return opened

    def _next(self, run, sequence):
        self.sequence[run] = self.sequence.get(run, 0) + 1 if sequence is None else sequence
        return self.sequence[run]

    def batch(self, opened, columns, sequence=None, **fields):
        """Sends a batch with the next sequence number, or another; see make_batch()."""
        self.send(make_batch(opened, columns, self._next(opened.run, sequence), **fields))

    def attributes(self, opened, pairs, sequence=None):
        self.send(pb.Attributes(run=opened.run, sequence=self._next(opened.run, sequence), attributes=attributes(pairs)))

    def wait_ack(self, opened, received=0, durable=0, timeout=None):
        """Waits until an Ack says that so much is received, and durable."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            ack = self.acks.get(opened.run)
            if ack and ack.received >= received and ack.durable >= durable:
                return ack
            self.wait(pb.Ack, deadline - time.monotonic())

    def close(self, opened, last_sequence=None):
        """Closes a run, waits for the Closed."""
        last = self.sequence[opened.run] if last_sequence is None else last_sequence
        self.send(pb.Close(run=opened.run, last_sequence=last))
        return self.wait(pb.Closed)

    def error(self, timeout=None):
        """The next Error; what may come before one is passed over."""
        return self.wait(pb.Error, timeout)
