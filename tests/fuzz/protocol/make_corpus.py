"""Writes the seed corpus of fuzz_protocol: whole conversations, each message alone, and the edges that once mattered.
usage: make_corpus.py FOLDER (needs protoc and the protobuf module)"""
import os
import struct
import subprocess
import sys
import tempfile

PROTO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../proto")
with tempfile.TemporaryDirectory() as generated:
    subprocess.run(["protoc", "--proto_path", PROTO, "--python_out", generated, "ingest.proto"], check=True)
    sys.path.insert(0, generated)
    import ingest_pb2 as pb

PREAMBLE = b"PHOTON\x01\x01"


def varint(n):
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def framed(message):
    data = message if isinstance(message, bytes) else message.SerializeToString()
    return varint(len(data)) + data


def client(**body):
    return pb.ClientMessage(**body)


def lincam_batch(sequence, n):
    column = b"".join(struct.pack("<H", i * 7 & 4095) for i in range(n))
    return pb.Batch(run=1, sequence=sequence, counts=[n, 1], crc32c=0x12345678, first_time=-5, last_time=9, times_valid=True,
                    columns=[column, column, column, struct.pack("<Q", 0)])


def main(folder):
    attribute = pb.Attribute(key="/photons/TacChannel", value="12.3")
    opening = pb.Open(run_id=bytes(range(16)), name="scan", mode=pb.MODE_COUNTER, profile="lincam", attributes=[attribute],
                      time_base=pb.TimeBase(tick_ps_numerator=123, tick_ps_denominator=10, laser_period_ps=12817.2),
                      datasets=[pb.Dataset(name="/photons/x", type=pb.TYPE_UINT16, group="photons", role=1, scale=0.5)])
    bodies = {
        "hello": client(hello=pb.Hello(client_name="c", instance="i", epoch=1, software="s 1", token=b"t")),
        "open": client(open=opening),
        "batch": client(batch=lincam_batch(1, 12)),
        "batch_empty": client(batch=pb.Batch()),
        "attributes": client(attributes=pb.Attributes(run=1, sequence=2, attributes=[attribute, attribute])),
        "marker": client(marker=pb.Marker(run=1, sequence=3, group="photons", item=5, text="note", utc_ns=1)),
        "gap": client(gap=pb.Gap(run=1, sequence=4, group="photons", item=5, count=7, cause="c", utc_ns=1)),
        "flush": client(flush=pb.Flush(run=1, id=9)),
        "close": client(close=pb.Close(run=1, last_sequence=4)),
        "ping": client(ping=pb.Ping(id=1, monotonic_ns=2, utc_ns=3, run=1, instrument_time=-4, instrument_time_valid=True)),
        "pong": client(pong=pb.Pong(id=1, monotonic_ns=2, utc_ns=3)),
        "error": pb.ServerMessage(error=pb.Error(code=17, scope=2, run=1, sequence=3, field="f", offset=9, text="t")),
        "ack": pb.ServerMessage(ack=pb.Ack(run=1, received=3, durable=2, credit_bytes=1, dropped=[pb.Range(first=1, last=2)])),
        "opened": pb.ServerMessage(opened=pb.Opened(run_id=bytes(16), run=1, name="scan", next_sequence=1,
                                                    datasets=[pb.DatasetState(name="x", items=1)], groups=["g"])),
    }
    cases = {name: PREAMBLE + framed(message) for name, message in bodies.items()}
    order = ("hello", "open", "batch", "attributes", "ping", "close")
    cases["conversation"] = PREAMBLE + b"".join(framed(bodies[name]) for name in order)
    batch = bodies["batch"].SerializeToString()
    cases["batch_and_unknown"] = PREAMBLE + framed(batch + b"\xa2\x06\x03abc")
    cases["batch_twice"] = PREAMBLE + framed(batch + batch)
    cases["batch_many_columns"] = PREAMBLE + framed(client(batch=pb.Batch(columns=[b"x"] * 257)))
    cases["batch_many_groups"] = PREAMBLE + framed(client(batch=pb.Batch(counts=[1] * 257)))
    cases["unpacked_counts"] = PREAMBLE + framed(b"\x1a\x08\x18\x05\x1a\x02\x06\x07\x08\x01")
    cases["long_inner_length"] = PREAMBLE + framed(b"\x1a\x80\x80\x80\x80\x80\x80\x80\x80\x00")
    cases["unknown_body"] = PREAMBLE + framed(b"\x9a\x01\x02hi")
    cases["length_2_60"] = PREAMBLE + varint(1 << 60)
    cases["versions"] = b"PHOTON\x02\x09" + framed(bodies["hello"])
    cases["stray"] = b"GET / HTTP/1.1\r\n\r\n"
    os.makedirs(folder, exist_ok=True)
    for name, data in cases.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main(sys.argv[1])
