"""Adds up CTest's JUnit files: prints 'N passed, N failed, N skipped'."""
import sys
import xml.etree.ElementTree as tree

passed = failed = skipped = 0
for path in sys.argv[1:]:
    try:
        suite = tree.parse(path).getroot()
    except (OSError, tree.ParseError):
        continue
    total, bad = int(suite.get("tests", 0)), int(suite.get("failures", 0))
    left = int(suite.get("skipped", 0)) + int(suite.get("disabled", 0))
    failed += bad
    skipped += left
    passed += total - bad - left
print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
