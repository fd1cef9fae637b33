"""Doxygen renders the public headers without a warning, and every public function has a text.

    test_api.py BUILD
"""
import glob
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

import require

SOURCE = os.environ["PHOTOND_SOURCE"]
HEADERS = {"d7_8h.xml": "libd7/include/d7/d7.h", "daf_8h.xml": "libdaf/include/daf/daf.h",
           "photon__client_8h.xml": "client/include/photon_client.h"}


def declared(header):
    """Names of the functions in a header, found without Doxygen."""
    with open(os.path.join(SOURCE, header)) as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    return set(re.findall(r"^[A-Z0-9_]+_API [^;(]*?(\w+)\(", text, flags=re.M))


def main():
    require.program("doxygen")
    build = sys.argv[1]
    p = subprocess.run(["cmake", "--build", build, "--target", "docs"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert p.returncode == 0 and b"warning:" not in p.stdout, p.stdout.decode()
    pages = [os.path.basename(f) for f in glob.glob(os.path.join(build, "docs", "xml", "*8h.xml"))]
    assert pages, "no page was made"
    for page in pages:
        tree = xml.etree.ElementTree.parse(os.path.join(build, "docs", "xml", page))
        found = {}
        for m in tree.findall('.//memberdef[@kind="function"]'):
            found[m.find("name").text] = "".join(m.find("briefdescription").itertext()).strip()
        assert set(found) == declared(HEADERS[page]), set(found) ^ declared(HEADERS[page])
        bare = [n for n, text in found.items() if not text]
        assert not bare, "%s: without a text: %s" % (HEADERS[page], bare)


main()
