"""The listing of a whole file in docs/d7-format.md says what the library writes, byte for byte."""
import os
import re
import tempfile

import d7ref
from d7script import Script

PAGE = os.path.join(os.environ["PHOTOND_SOURCE"], "docs", "d7-format.md")
LINE = re.compile(r'    ([0-9A-F]{4})  +((?:[0-9A-F]{2}(?: |$)|"[^"]*"(?: |$))+)')


def listed():
    """{offset: bytes} of the listing."""
    with open(PAGE) as f:
        section = f.read().split("## A whole file, byte by byte")[1].split("\n## ")[0]
    parts = {}
    for line in section.splitlines():
        m = LINE.match(line)
        if m:
            tokens = re.findall(r'[0-9A-F]{2}|"[^"]*"', m[2])
            parts[int(m[1], 16)] = b"".join(t[1:-1].encode() if t[0] == '"' else bytes.fromhex(t) for t in tokens)
    return parts


def main():
    with tempfile.TemporaryDirectory() as folder:
        script = Script([("/photons/dt", d7ref.TYPES.index("uint16"))])
        script.append(0, [100, 103, 99, 99, 4095])
        script.set("/photons/TacChannel", "12.3")
        data = script.run(os.path.join(folder, "page.photons"))
    covered = 0
    for offset, want in sorted(listed().items()):
        assert data[offset:offset + len(want)] == want, "at %#x the file has %s" % (offset, data[offset:offset + len(want)].hex(" "))
        covered += len(want)
    rest = sum(1 for b in data if b)
    assert len(data) == 0x4023 and covered >= rest, (len(data), covered, rest)


main()
