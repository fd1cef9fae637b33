"""What docs/protocol.md says, read back."""
import collections
import os
import re

import ingest
from ingest import pb

PATH = os.path.join(os.environ["PHOTOND_SOURCE"], "docs", "protocol.md")
SCOPES = {"connection": pb.SCOPE_CONNECTION, "run": pb.SCOPE_RUN, "batch": pb.SCOPE_BATCH}

Table = collections.namedtuple("Table", "head rows")
ErrorRow = collections.namedtuple("ErrorRow", "name scopes")


def text():
    with open(PATH) as f:
        return f.read()


def _cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def sections():
    """Heading: its lines."""
    found, lines = {}, []
    for line in text().splitlines():
        heading = re.match(r"#+ (.+)", line)
        if heading:
            assert heading[1] not in found, "two sections %s" % heading[1]
            lines = found[heading[1]] = []
        else:
            lines.append(line)
    return found


def tables(lines):
    out = []
    for before, line in zip([""] + lines, lines):
        if line.startswith("|") and not before.startswith("|"):
            out.append(Table(_cells(line), []))
        elif line.startswith("|") and not re.match(r"\| *---", line):
            out[-1].rows.append(_cells(line))
    return out


def table(section, *head):
    """The only table of a section with this head."""
    found = [t for t in tables(sections()[section]) if t.head == list(head)]
    assert len(found) == 1, "section %s has %d tables %s" % (section, len(found), head)
    return found[0].rows


def bare(cell):
    return cell.strip("`")


def errors():
    """Error code: its row."""
    out = {}
    for code, scopes, cause, _ in table("Errors", "code", "scope", "what causes it", "what to do"):
        name, number = re.fullmatch(r"`(ERROR_\w+)` \((\d+)\)", code).groups()
        assert pb.ErrorCode.Value(name) == int(number), code
        assert int(number) not in out and cause, code
        out[int(number)] = ErrorRow(name, {SCOPES[s] for s in scopes.split(", ")} if scopes != "-" else set())
    return out


# ---- conversations -------------------------------------------------------------------------------------------------

Said = collections.namedtuple("Said", "who name data texts")  # texts: what stands beside the bytes, line by line


def conversation(name):
    block = re.search(r"<!-- %s -->\n```text\n(.*?)```\n" % name, text(), re.S)
    out = []
    for line in block[1].splitlines():
        begin = re.fullmatch(r"(client|server): (\w+)", line)
        said = re.fullmatch(r"((?:[0-9a-f]{2} ?)+?)(?: {2,}(.+))?", line)
        if begin:
            out.append(Said(*begin.groups(), bytearray(), []))
        elif said:
            out[-1].data.extend(bytes.fromhex(said[1]))
            if said[2]:
                out[-1].texts.append(said[2])
        else:
            assert not line or line.startswith("  "), "what is this line? %r" % line
    return out


def message(said):
    """The message of something said, by the protobuf package, its length having been checked."""
    length, at = ingest.get_varint(said.data)
    assert at + length == len(said.data), "%s: %d bytes are told, %d follow" % (said.name, length, len(said.data) - at)
    kind = pb.ClientMessage if said.who == "client" else pb.ServerMessage
    return ingest.body_of(kind.FromString(bytes(said.data[at:])))
