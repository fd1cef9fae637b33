"""Makes PicoQuant PTU files of known content, for tests. Written from PicoQuant's description of the format; shares nothing
with the reader under test.

Events are tuples in the order of the file, with whole times from the start (units of the global resolution, or numbers of
syncs): ("photon", time, channel[, micro time]) and ("marker", time, bits).
"""
import struct

# name: (record type, T3, layout, unit of an overflow, the overflow record holds a count)
TYPES = {
    "picoharp-t2": (0x00010203, False, "pico", 210698240, False),
    "picoharp-t3": (0x00010303, True, "pico", 65536, False),
    "hydraharp1-t2": (0x00010204, False, "hydra", 33552000, False),
    "hydraharp1-t3": (0x00010304, True, "hydra", 1024, False),
    "hydraharp2-t2": (0x01010204, False, "hydra", 33554432, True),
    "hydraharp2-t3": (0x01010304, True, "hydra", 1024, True),
    "timeharp260n-t2": (0x00010205, False, "hydra", 33554432, True),
    "timeharp260n-t3": (0x00010305, True, "hydra", 1024, True),
    "timeharp260p-t2": (0x00010206, False, "hydra", 33554432, True),
    "timeharp260p-t3": (0x00010306, True, "hydra", 1024, True),
    "generic-t2": (0x00010207, False, "hydra", 33554432, True),
    "generic-t3": (0x00010307, True, "hydra", 1024, True),
}

EMPTY, BOOL, INT, BITS, COLOUR, FLOAT, TIME = (0xFFFF0008, 0x00000008, 0x10000008, 0x11000008, 0x12000008, 0x20000008,
                                               0x21000008)
FLOATS, ANSI, WIDE, BLOB = 0x2001FFFF, 0x4001FFFF, 0x4002FFFF, 0xFFFFFFFF


def tag(name, kind, value=None, index=-1):
    """One tag; `value` is a Python value that fits the kind."""
    head = struct.pack("<32siI", name.encode(), index, kind)
    if kind == EMPTY:
        return head + bytes(8)
    if kind in (BOOL, INT):
        return head + struct.pack("<q", value)
    if kind in (BITS, COLOUR):
        return head + struct.pack("<Q", value)
    if kind in (FLOAT, TIME):
        return head + struct.pack("<d", value)
    if kind == FLOATS:
        more = struct.pack("<%dd" % len(value), *value)
    elif kind == ANSI:
        more = value if isinstance(value, bytes) else value.encode()
        more += bytes(8 - len(more) % 8)
    elif kind == WIDE:
        more = value.encode("utf-16le") + bytes(2)
    else:
        more = value
    return head + struct.pack("<q", len(more)) + more


def pico_record(t3, event, low):
    if event[0] == "marker":
        return 15 << 28 | (event[2] << 16 | low if t3 else low & ~15 | event[2])
    return event[2] << 28 | (event[3] << 16 if t3 else 0) | low


def hydra_record(t3, event, low):
    if event[0] == "marker":
        return 1 << 31 | event[2] << 25 | low
    if t3:
        return event[2] << 25 | event[3] << 10 | low
    return 1 << 31 | low if event[2] == 0 else (event[2] - 1) << 25 | low


def records(kind, events, counted=True):
    """The records as bytes; with `counted` overflows in a row share a record where the type knows how."""
    _, t3, layout, unit, can_count = TYPES[kind]
    limit = 1023 if t3 else (1 << 25) - 1
    out, overflows = [], 0
    for event in events:
        missing = event[1] // unit - overflows
        overflows += missing
        while missing:
            many = min(missing, limit) if counted and can_count else 1
            if layout == "pico":
                out.append(15 << 28)
            else:
                out.append(1 << 31 | 63 << 25 | (many if can_count and counted else 0))
            missing -= many
        out.append((pico_record if layout == "pico" else hydra_record)(t3, event, event[1] % unit))
    return struct.pack("<%dI" % len(out), *out)


def header(kind, n_records, global_resolution, resolution=None, more=b"", record_type=None, bits=32):
    record_type = TYPES[kind][0] if record_type is None else record_type
    out = b"PQTTTR\0\0" + b"1.0.00\0\0"
    out += more
    out += tag("Measurement_Mode", INT, 3 if TYPES[kind][1] else 2)
    out += tag("TTResultFormat_BitsPerRecord", INT, bits)
    out += tag("TTResultFormat_TTTRRecType", INT, record_type)
    if global_resolution is not None:
        out += tag("MeasDesc_GlobalResolution", FLOAT, global_resolution)
    if resolution is not None:
        out += tag("MeasDesc_Resolution", FLOAT, resolution)
    if n_records is not None:
        out += tag("TTResult_NumberOfRecords", INT, n_records)
    return out + tag("Header_End", EMPTY)


def make(kind, events, global_resolution, resolution=None, more=b"", counted=True):
    body = records(kind, events, counted)
    return header(kind, len(body) // 4, global_resolution, resolution, more) + body
