#!/usr/bin/env python3
"""An instrument in about 100 lines: sends simulated LINCam photons to photond. docs/protocol.md explains each step.

Needs the protobuf package and the module that protoc makes of the protocol's messages (proto/ingest.proto):

    pip install protobuf
    protoc --proto_path=proto --python_out=. ingest.proto        # makes ingest_pb2.py, which must lie beside this file
    python3 python_client.py tcp://127.0.0.1:7777 my-first-run --photons 100000
"""
import argparse
import collections
import random
import select
import socket
import struct
import sys
import time
import uuid

import ingest_pb2 as pb

PREAMBLE = b"PHOTON\x01\x01"  # the lowest and the highest version of the protocol that we speak
CRC_TABLE = list(range(256))
for _ in range(8):
    CRC_TABLE = [i >> 1 ^ (0x82F63B78 if i & 1 else 0) for i in CRC_TABLE]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


class Client:
    """A connection that sends one run."""

    def __init__(self, address, name, attributes):
        if address.startswith("unix:"):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(address[len("unix:"):])
        else:
            host, port = address[len("tcp://"):].rsplit(":", 1)
            self.socket = socket.create_connection((host.strip("[]"), int(port)))
            self.socket.settimeout(None)
        self.socket.sendall(PREAMBLE)
        if self.socket.recv(len(PREAMBLE), socket.MSG_WAITALL) != PREAMBLE:
            sys.exit("this is no photond, or one of another version")
        self.send(hello=pb.Hello(client_name="python_client", instance="python_client:" + name, epoch=time.time_ns(),
                                 software="python_client 1"))
        self.credit = self.wait("welcome").limits.in_flight_bytes
        self.send(open=pb.Open(run_id=uuid.uuid4().bytes, name=name, mode=pb.MODE_COUNTER, profile="lincam",
                               attributes=[pb.Attribute(key=k, value=v) for k, v in attributes.items()]))
        self.run = self.wait("opened")
        self.sequence = self.run.next_sequence
        self.on_the_way = collections.deque()  # (sequence, column bytes) of each batch not acknowledged as received
        self.durable = 0

    def send(self, **body):
        message = pb.ClientMessage(**body).SerializeToString()
        length, prefix = len(message), bytearray()
        while length >= 0x80:  # a varint: 7 bits a byte, the lowest first; the top bit says that more bytes follow
            prefix.append(length & 0x7F | 0x80)
            length >>= 7
        self.socket.sendall(bytes(prefix) + bytes([length]) + message)

    def has_come(self, seconds):
        return bool(select.select([self.socket], [], [], seconds)[0])

    def take(self):
        """Takes the server's next message and does what any client does with it. Returns its name and its body."""
        length = shift = 0
        byte = None
        while byte is None or byte[0] >= 0x80:
            byte = self.socket.recv(1) if self.has_come(60) else b""
            if not byte:
                sys.exit("the server has gone, or says nothing for a minute")
            length |= (byte[0] & 0x7F) << shift
            shift += 7
        message = pb.ServerMessage.FromString(self.socket.recv(length, socket.MSG_WAITALL))
        kind = message.WhichOneof("body")
        body = getattr(message, kind)
        if kind == "error":
            sys.exit("refused: %s: %s" % (pb.ErrorCode.Name(body.code), body.text))
        if kind == "ping":
            self.send(pong=pb.Pong(id=body.id, monotonic_ns=time.monotonic_ns(), utc_ns=time.time_ns()))
        if kind == "ack":
            self.credit, self.durable = body.credit_bytes, body.durable
            while self.on_the_way and self.on_the_way[0][0] <= body.received:
                self.on_the_way.popleft()
        return kind, body

    def wait(self, wanted):
        kind = None
        while kind != wanted:
            kind, body = self.take()
        return body

    def send_batch(self, counts, columns):
        size = sum(map(len, columns))
        while self.has_come(0) or (self.on_the_way and sum(n for _, n in self.on_the_way) + size > self.credit):
            self.take()
        self.send(batch=pb.Batch(run=self.run.run, sequence=self.sequence, counts=counts, columns=columns,
                                 crc32c=crc32c(b"".join(columns))))
        self.on_the_way.append((self.sequence, size))
        self.sequence += 1

    def close(self):
        self.send(close=pb.Close(run=self.run.run, last_sequence=self.sequence - 1))
        return self.wait("closed")


def detect(photons):
    """Batches of 20 milliseconds with about 400 photons each: a round spot, and a decay over 200 channels. With at most
    8800 photons a batch has 53 kB, less than the 64 KiB that Opened.batch_bytes always allows."""
    first = 0
    while first < photons:
        x, y, dt, ms = [], [], [], []
        for _ in range(20):
            ms.append(first + len(x))  # the index, in the whole run, of this millisecond's first photon
            for _ in range(min(random.randint(360, 440), photons - ms[-1])):
                x.append(min(max(int(random.gauss(2048, 400)), 0), 4095))
                y.append(min(max(int(random.gauss(2048, 400)), 0), 4095))
                dt.append(min(500 + int(random.expovariate(1 / 200)), 4095))
        first += len(x)
        counts = [len(x), len(ms)]  # one for each group, and the columns in the order of Opened.datasets
        yield counts, [struct.pack("<%dH" % len(c), *c) for c in (x, y, dt)] + [struct.pack("<%dQ" % len(ms), *ms)]


def main():
    parser = argparse.ArgumentParser(description="Sends simulated LINCam photons to photond.")
    parser.add_argument("address", help="tcp://HOST:PORT or unix:PATH")
    parser.add_argument("run", help="name of the run; a taken one gets a counter")
    parser.add_argument("--photons", type=int, default=100000)
    options = parser.parse_args()
    camera = {"/photons/PositionBits": "12", "/photons/TacBits": "12", "/photons/TacChannel": "12.5"}
    client = Client(options.address, options.run, camera)
    for counts, columns in detect(options.photons):
        client.send_batch(counts, columns)
    closed = client.close()
    if client.durable != client.sequence - 1 or closed.datasets[0].items != options.photons:
        sys.exit("not everything is on the disk: batch %d of %d" % (client.durable, client.sequence - 1))
    print("%s: %d photons in %d batches are on the disk: %s"
          % (closed.name, options.photons, client.durable, closed.path))


if __name__ == "__main__":
    main()
