"""The worked conversations of docs/protocol.md: what is said in them, and how they stand on the page.

    python3 conversation.py --write      puts them into docs/protocol.md, between the marks that name them

On the page every line has bytes in hex, then, behind two spaces at least, what they say; a line without that goes on with the
bytes of the line before. Before each message stands who sends it. Lines without bytes are remarks.
"""
import os
import re
import struct
import sys

import ingest
from ingest import pb

PAGE = os.path.join(os.environ["PHOTOND_SOURCE"], "docs", "protocol.md")
RUN_ID = bytes(range(0xA0, 0xB0))
OTHER_RUN_ID = bytes(range(0xB0, 0xC0))
BYTES_IN_A_LINE = 16
STRUCT = dict(zip(range(10), "bhiqBHIQfd"))  # by ElementType


def packed(kind, *values):
    return struct.pack("<%d%s" % (len(values), STRUCT[kind]), *values)


# ---- what is said -------------------------------------------------------------------------------------------------


def _states(*items):
    datasets = [("/photons/x", "photons", pb.TYPE_UINT16, pb.ROLE_POSITION_X),
                ("/photons/y", "photons", pb.TYPE_UINT16, pb.ROLE_POSITION_Y),
                ("/photons/dt", "photons", pb.TYPE_UINT16, pb.ROLE_MICRO_TIME),
                ("/photons/ms", "ms", pb.TYPE_UINT64, pb.ROLE_MS_INDEX)]
    return [pb.DatasetState(name=n, group=g, type=t, items=i, role=r) for (n, g, t, r), i in zip(datasets, items)]


OPENED = pb.Opened(run_id=RUN_ID, run=1, name="first-light", next_sequence=1, datasets=_states(0, 0, 0, 0),
                   groups=["photons", "ms"], batch_bytes=753664, window_bytes=67108864, path="/var/lib/photond/first-light.photons")


def _batch(sequence, x, y, dt, ms):
    return ingest.make_batch(OPENED, [packed(pb.TYPE_UINT16, *x), packed(pb.TYPE_UINT16, *y), packed(pb.TYPE_UINT16, *dt),
                                      packed(pb.TYPE_UINT64, *ms)], sequence)


HELLO = pb.Hello(client_name="camera", instance="LINCam-7", epoch=1767225600000000000, software="demo 1.0")
WELCOME = pb.Welcome(
    software="photond 0.1.0",
    limits=pb.Limits(message_bytes=16777216, batch_items=1048576, datasets=64, attribute_bytes=1048576,
                     in_flight_bytes=16777216, idle_ms=60000, runs=16, attributes=10000),
    heartbeat_ms=5000, rights=[pb.RIGHT_SEND], monotonic_ns=81204500000000, utc_ns=1767225600250000000)

# (who, message, lines of remark, or None: not shown). The preambles are bytes.
CONVERSATION = [
    ("client", ingest.PREAMBLE, []),
    ("server", ingest.PREAMBLE, []),
    ("client", HELLO, []),
    ("server", WELCOME, []),
    ("client", pb.Open(run_id=RUN_ID, name="first-light", profile="lincam", attributes=ingest.attributes({
        "/photons/PositionBits": "12", "/photons/TacBits": "12", "/photons/TacChannel": "12.5"})), []),
    ("server", OPENED, []),
    ("client", _batch(1, [2048, 2051, 1999], [2040, 2047, 2100], [517, 530, 801], [0]),
     ["  (Three photons, all in the run's first millisecond, which begins with photon 0)"]),
    ("server", pb.Ack(run=1, received=1, credit_bytes=16777216), []),
    ("client", _batch(2, [2044, 3], [2052, 4095], [522, 4000], [3, 3, 4]),
     ["  (Two photons more, numbers 3 and 4 of the run. The second and the third millisecond begin with photon 3, so the",
      "  second has none; the fourth begins with photon 4)"]),
    ("server", pb.Ack(run=1, received=2, credit_bytes=16777216), []),
    ("client", pb.Attributes(run=1, sequence=3, attributes=ingest.attributes({"Comment": "beam on"})), []),
    ("server", pb.Ack(run=1, received=3, credit_bytes=16777216), []),
    ("client", pb.Ping(id=1, monotonic_ns=5000000000, utc_ns=1767225605000000000, run=1), []),
    ("server", pb.Pong(id=1, monotonic_ns=81209250000000, utc_ns=1767225605000300000), []),
    ("client", pb.Close(run=1, last_sequence=3), []),
    ("server", pb.Ack(run=1, received=3, durable=3), []),
    ("server", pb.Closed(run_id=RUN_ID, run=1, last_sequence=3, datasets=_states(5, 5, 5, 4), name="first-light",
                         path="/var/lib/photond/first-light.photons", parts=1), []),
]

REFUSAL = [
    ("client", ingest.PREAMBLE, []),
    ("server", ingest.PREAMBLE, []),
    ("client", HELLO, []),
    ("server", WELCOME, None),  # as above
    ("client", pb.Open(run_id=OTHER_RUN_ID, name="../light", profile="lincam"), []),
    ("server", pb.Error(code=pb.ERROR_BAD_NAME, scope=pb.SCOPE_RUN, run_id=OTHER_RUN_ID, field="open.name", offset=49,
                        text="does not begin with a letter or a digit"), []),
]

ALL = {"conversation": CONVERSATION, "refusal": REFUSAL}


def server_message(body):
    fields = {f.message_type.name: f.name for f in pb.ServerMessage.DESCRIPTOR.fields}
    return pb.ServerMessage(**{fields[body.DESCRIPTOR.name]: body})


def stream_bytes(who, message):
    """What goes over the wire."""
    if isinstance(message, bytes):
        return message
    body = ingest.client_message(message) if who == "client" else server_message(message)
    return ingest.delimited(body.SerializeToString())


# ---- how it stands on the page ------------------------------------------------------------------------------------


def _zigzag(value):
    return value >> 1 ^ -(value & 1)


def value_text(field, value):
    """A field's value as the page writes it. `value` is as the protobuf package gives it."""
    if field.type == field.TYPE_STRING:
        return '"%s"' % value
    if field.type == field.TYPE_BYTES:
        return value.hex(" ") if len(value) <= 16 else "%d bytes" % len(value)
    if field.type == field.TYPE_ENUM:
        return "%d (%s)" % (value, field.enum_type.values_by_number[value].name)
    if field.type == field.TYPE_FIXED32:
        return "%08x" % value
    return str(value).lower() if field.type == field.TYPE_BOOL else str(value)


def column_text(dataset, data):
    """A column of a batch: its values."""
    values = struct.unpack("<%d%s" % (len(data) // ingest.TYPE_BYTES[dataset.type], STRUCT[dataset.type]), data)
    return "%d bytes, %s: %s" % (len(data), dataset.name, ", ".join(map(str, values)))


def _label(field):
    return "%s (%d)" % (field.name, field.number)


class _Writer:
    """Lays a message out, reading its bytes by itself, without the protobuf package."""

    def __init__(self):
        self.lines = []
        self.n_columns = 0

    def add(self, data, depth, text):
        for at in range(0, max(len(data), 1), BYTES_IN_A_LINE):
            piece = data[at:at + BYTES_IN_A_LINE].hex(" ")
            self.lines.append(piece if at else ("%-*s  %s%s" % (3 * BYTES_IN_A_LINE - 1, piece, "  " * depth, text)))

    def message(self, data, descriptor, depth):
        at = 0
        while at < len(data):
            begin = at
            tag, at = ingest.get_varint(data, at)
            field = descriptor.fields_by_number[tag >> 3]
            at = self.field(data, begin, at, field, tag & 7, depth)

    def field(self, data, begin, at, field, kind, depth):
        if kind == 5:
            value, end = struct.unpack_from("<I", data, at)[0], at + 4
        elif kind == 0:
            value, end = ingest.get_varint(data, at)
            value = _zigzag(value) if field.type == field.TYPE_SINT64 else value
        else:
            length, at = ingest.get_varint(data, at)
            value, end = data[at:at + length], at + length
            if field.message_type:
                self.add(data[begin:at], depth, "%s: %d bytes" % (_label(field), length))
                self.message(value, field.message_type, depth + 1)
                return end
            if kind == 2 and field.type not in (field.TYPE_STRING, field.TYPE_BYTES):
                value = self.packed_text(field, value)
            else:
                value = self.values(field, value) or \
                    value_text(field, value.decode() if field.type == field.TYPE_STRING else value)
            self.add(data[begin:end], depth, "%s = %s" % (_label(field), value))
            return end
        self.add(data[begin:end], depth, "%s = %s" % (_label(field), value_text(field, value)))
        return end

    def values(self, field, data):
        """What a column of a batch holds; None for other fields."""
        if field.full_name != "photon.Batch.columns":
            return None
        self.n_columns += 1
        return column_text(OPENED.datasets[self.n_columns - 1], data)

    def packed_text(self, field, data):
        at, values = 0, []
        while at < len(data):
            value, at = ingest.get_varint(data, at)
            values.append(value_text(field, value))
        return "[%s]" % ", ".join(values)


def lay_out(steps):
    lines = []
    for who, message, remark in steps:
        if remark is None:
            continue
        name = "preamble" if isinstance(message, bytes) else message.DESCRIPTOR.name
        lines += [""] * bool(lines) + ["%s: %s" % (who, name)] + remark
        lines += _lay_out_message(who, message)
    return lines


def _lay_out_message(who, message):
    data = stream_bytes(who, message)
    writer = _Writer()
    if isinstance(message, bytes):
        writer.add(data[:6], 0, '"PHOTON"')
        writer.add(data[6:], 0, "versions 1 to 1" if who == "client" else "version 1")
        return writer.lines
    length, at = ingest.get_varint(data)
    writer.add(data[:at], 0, "%d bytes follow" % length)
    writer.message(data[at:], (pb.ClientMessage if who == "client" else pb.ServerMessage).DESCRIPTOR, 0)
    return writer.lines


def _block(name):
    return re.compile(r"(<!-- %s -->\n```text\n)(.*?)(```\n)" % name, re.S)


def on_page(name):
    """The lines of a conversation as the page has them."""
    with open(PAGE) as f:
        found = _block(name).search(f.read())
    assert found, "%s has no block %s" % (PAGE, name)
    return found[2].splitlines()


def write():
    with open(PAGE) as f:
        text = f.read()
    for name, steps in ALL.items():
        laid_out = "".join(line + "\n" for line in lay_out(steps))
        text, n = _block(name).subn(lambda m: m[1] + laid_out + m[3], text)
        assert n == 1, "%s needs one block %s" % (PAGE, name)
    with open(PAGE, "w") as f:
        f.write(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        print(__doc__)
