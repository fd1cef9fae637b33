"""docs/protocol.md against the protocol: every message, field, enum value and error code stands there with its number and type;
the conversations in hex decode by the protobuf package to what stands beside the bytes; check sums and limits are right."""
import json
import re
import struct

import conversation
import ingest
import page
import photond
from ingest import pb

TYPES = {f: f[len("TYPE_"):].lower() for f in ("TYPE_UINT32", "TYPE_UINT64", "TYPE_SINT64", "TYPE_FIXED32", "TYPE_DOUBLE",
                                               "TYPE_BOOL", "TYPE_STRING", "TYPE_BYTES")}


# ---- the reference -------------------------------------------------------------------------------------------------


def field_type(field):
    names = {getattr(field, key): name for key, name in TYPES.items()}
    kind = field.message_type or field.enum_type
    repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
    return ("repeated " if repeated else "") + (kind.name if kind else names[field.type])


def check_messages():
    for name, descriptor in pb.DESCRIPTOR.message_types_by_name.items():
        rows = page.table(name, "no.", "field", "type", "meaning")
        told = [(int(number), page.bare(field), kind) for number, field, kind, _ in rows]
        assert told == [(f.number, f.name, field_type(f)) for f in descriptor.fields], name


def check_enums():
    for name, descriptor in pb.DESCRIPTOR.enum_types_by_name.items():
        if name == "ErrorCode":
            continue
        told = [(int(number), page.bare(value)) for number, value, _ in page.table(name, "no.", "name", "meaning")]
        assert told == [(v.number, v.name) for v in descriptor.values], name
    assert set(page.errors()) == set(pb.ErrorCode.values())


def check_links():
    sections = page.sections()
    anchors = {re.sub(r"[^\w\- ]", "", s).lower().replace(" ", "-") for s in sections}
    for anchor in re.findall(r"\]\(#([^)]+)\)", page.text()):
        assert anchor in anchors, anchor


# ---- numbers -------------------------------------------------------------------------------------------------------

CRC_INPUTS = {"none": b"", "the nine letters `123456789`": b"123456789", "32 bytes of 0": bytes(32),
              "32 bytes of 255": b"\xff" * 32, "the bytes 0, 1, ..., 31": bytes(range(32))}


def check_crc():
    rows = page.table("Numbers, columns and time", "bytes", "CRC-32C")
    assert [what for what, _ in rows] == list(CRC_INPUTS)
    for what, crc in rows:
        told = int(page.bare(crc), 16)
        assert ingest.crc32c_plain(CRC_INPUTS[what]) == ingest.crc32c(CRC_INPUTS[what]) == told, what
    million = bytes(range(256)) * 4000
    assert ingest.crc32c_plain(million[1000:], ingest.crc32c_plain(million[:1000])) == ingest.crc32c(million)


UNITS = {"": 1, "bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "s": 1000}


def check_limits():
    """Each default beside a key of the configuration is that key's."""
    config = json.loads(photond.tool("photond", "--print-config"))
    n = 0
    for what, _, default, key in page.table("Limits and defaults", "limit", "told as", "default", "key of the configuration"):
        if page.bare(key) not in config:
            assert key in ("-", "a quarter of `ring_mb`"), what
            continue
        number, unit = re.match(r"(\d+)(?: (\w+))?", default).groups()
        told = int(number) * UNITS[unit or ""]
        has = config[page.bare(key)]
        assert told == (has * 1000 if page.bare(key).endswith("_s") else has), (what, told, has)
        n += 1
    assert n >= 15
    assert config["ring_mb"] == 64


# ---- conversations -------------------------------------------------------------------------------------------------


def flatten(message, run):
    """What must stand beside the bytes, from the message as the protobuf package has read it."""
    columns = 0
    for field, value in message.ListFields():
        label = "%s (%d)" % (field.name, field.number)
        repeated = not isinstance(value, (bytes, str, int, float, bool)) and not hasattr(value, "DESCRIPTOR")
        if repeated and not field.message_type and field.type not in (field.TYPE_STRING, field.TYPE_BYTES):
            yield "%s = [%s]" % (label, ", ".join(conversation.value_text(field, v) for v in value))
            continue
        for one in value if repeated else [value]:
            if field.message_type:
                yield "%s: %d bytes" % (label, one.ByteSize())
                yield from flatten(one, run)
            elif field.full_name == "photon.Batch.columns":
                yield "%s = %s" % (label, conversation.column_text(run.datasets[columns], one))
                columns += 1
            else:
                yield "%s = %s" % (label, conversation.value_text(field, one))


def check_batch(batch, run):
    crc = 0
    for column in batch.columns:
        crc = ingest.crc32c_plain(column, crc)
    assert crc == batch.crc32c
    for dataset, column in zip(run.datasets, batch.columns, strict=True):
        count = batch.counts[list(run.groups).index(dataset.group)]
        assert len(column) == count * ingest.TYPE_BYTES[dataset.type]


def check_conversation(name, steps):
    run, sequence = None, 0
    said = page.conversation(name)
    shown = [(who, m) for who, m, remark in steps if remark is not None]
    assert len(said) == len(shown)
    for one, (who, meant) in zip(said, shown):
        assert one.who == who and bytes(one.data) == conversation.stream_bytes(who, meant), \
            "%s: not as conversation.py has it; run it with --write" % one.name
        if one.name == "preamble":
            assert bytes(one.data) == struct.pack("6s2B", b"PHOTON", 1, 1)
            continue
        body = page.message(one)
        assert body.DESCRIPTOR.name == one.name
        outer = one.texts[:2]
        length, at = ingest.get_varint(one.data)
        assert outer[0] == "%d bytes follow" % length
        assert re.fullmatch(r"\w+ \(%d\): %d bytes" % (one.data[at] >> 3, body.ByteSize()), outer[1]), outer
        assert one.texts[2:] == list(flatten(body, run)), one.name
        if isinstance(body, pb.Opened):
            run = body
        if isinstance(body, pb.Batch):
            check_batch(body, run)
        if hasattr(body, "sequence") and not isinstance(body, pb.Error):
            assert body.sequence == sequence + 1
            sequence += 1
    return len(said)


def main():
    check_messages()
    check_enums()
    check_links()
    check_crc()
    check_limits()
    n = sum(check_conversation(name, steps) for name, steps in conversation.ALL.items())
    print("%d messages of the page's conversations are as they say" % n)


if __name__ == "__main__":
    main()
