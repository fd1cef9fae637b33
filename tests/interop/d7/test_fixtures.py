"""Every fixture reads as its .json says; the damaged ones are reported clearly and stay readable around the damage."""
import glob
import hashlib
import json
import os

import d7ref
from d7run import D7, d7, info  # noqa: F401

FOLDER = os.path.join(os.environ["PHOTOND_SOURCE"], "tests", "fixtures", "d7")


def path_of(name):
    return os.path.join(FOLDER, name + ".photons")


def raw(name, dataset, *arguments, code=0):
    return d7("cat", path_of(name), dataset, "--format", "raw", *arguments, code=code)


# Cut short, and no writer holds them: readable, but a problem.
CUT = {"cut_0", "cut_1", "cut_2", "cut_3", "cut_4", "cut_in_epilogue", "cut_in_global_index"}
# What verify says of the described ones beside TORN_TAIL.
CODES = {"cut_in_epilogue": {"TORN_TAIL", "NO_EPILOGUE"}, "cut_in_global_index": {"NO_EPILOGUE"},
         "other_writer": {"PAGE_FORM", "RAGGED"}}


def check_described(name):
    with open(os.path.join(FOLDER, name + ".json")) as f:
        want = json.load(f)
    code = 1 if name in CUT else 0
    got = info(path_of(name), code=code)
    assert got["state"] == want["state"] and got["held"] is False, name
    assert list(got["attributes"].items()) == list(want["attributes"].items()), name
    for key in ("version", "index_step", "bytes_per_page"):
        assert got[key] == want.get(key, got[key]), (name, key)
    if "pages" in want:
        assert sum(d["pages"] for d in got["datasets"]) == want["pages"], name
    assert bool(got["problems"]) == (code == 1), name
    assert len(got["datasets"]) == len(want["datasets"]), name
    for g, w in zip(got["datasets"], want["datasets"]):
        assert (g["name"], g["type"]) == (w["name"], w["type"]), name
        data = raw(name, w["name"], code=code)
        if "sha256" in w:
            assert g["items"] == w["items"] and hashlib.sha256(data).hexdigest() == w["sha256"], (name, w["name"])
        else:
            code_of = d7ref.ARRAY_CODE[d7ref.TYPES.index(w["type"])]
            assert g["items"] == len(w["values"])
            assert d7ref.array.array(code_of, w["values"]).tobytes() == data, (name, w["name"])
    d7("verify", path_of(name), code=code)
    if want.get("clean"):  # nothing but the cut is wrong, not even the style
        d7("verify", "--strict", path_of(name), code=code)
    codes = {p["code"] for p in json.loads(d7("verify", "--json", path_of(name), code=code))["problems"]}
    assert codes == CODES.get(name, {"TORN_TAIL"} if code else set()), (name, codes)


def pages_by_reference(data):
    """{(dataset, number): (offset, bytes of the values or None)} of a closed file, each page decoded on its own."""
    f = d7ref.File.__new__(d7ref.File)
    header = next(d7ref.entries(data))[1]
    (_, _, body), = d7ref.fields(header)
    types = [dict((g, u) for g, _, u in d7ref.fields(v))[2] for k, _, v in d7ref.fields(body) if k == 7]
    last = (len(data) - 1) // d7ref.BLOCK * d7ref.BLOCK
    (_, epilogue), = d7ref.entries(data, last)
    (_, _, body), = d7ref.fields(epilogue)
    offset = dict((g, u) for g, _, u in d7ref.fields(body))[1]
    (_, _, body), = d7ref.fields(next(d7ref.entries(data, offset))[1])
    pages, counts = {}, {}
    for d, o in sorted(d7ref.parse_index(body)[0], key=lambda p: p[1]):
        number = counts.get(d, 0)
        counts[d] = number + 1
        try:
            at, entry = next(d7ref.entries(data, o))
            (_, _, body), = d7ref.fields(entry)
            assert at == o
            values = d7ref.array.array(d7ref.ARRAY_CODE[types[d]], d7ref.decode_page(body, types)[1]).tobytes()
        except (d7ref.D7Error, ValueError, AssertionError, StopIteration):
            values = None
        pages[d, number] = (o, values)
    return f, types, pages


def check_damaged(name, lost):
    """`lost`: the pages (dataset, number) that cannot be read. All others are, and each lost one is reported."""
    with open(path_of(name), "rb") as f:
        _, types, pages = pages_by_reference(f.read())
    assert {p for p, (_, v) in pages.items() if v is None} <= set(lost), name
    got = info(path_of(name), code=1)
    assert got["state"] == "closed"
    reported = {(p["dataset"], p["first_item"], p["items"], p["offset"]) for p in got["problems"] if p["code"] == "BAD_PAGE"}
    expected = set()
    for d, dataset in enumerate(got["datasets"]):
        n = d7ref.items_per_page(types[d])
        for number in range(dataset["pages"]):
            first = number * n
            offset, values = pages[d, number]
            if (d, number) in lost:
                expected.add((dataset["name"], first, n, offset))
                assert raw(name, dataset["name"], "--from", str(first), "--count", str(n), code=1) == b""
                assert dataset["name"] in d7.err and str(offset) in d7.err
            else:
                count = min(n, dataset["items"] - first)
                whole = raw(name, dataset["name"], "--from", str(first), "--count", str(count),
                            code=1 if any(d == k for k, _ in lost) and first_problem(got, dataset["name"]) else 0)
                assert whole == values, (name, dataset["name"], number)
    assert reported == expected, (name, reported, expected)
    text = d7("verify", path_of(name), code=1).decode()
    for dataset, first, n, offset in expected:
        assert any("BAD_PAGE at byte %d, dataset %s, items %d to %d: " % (offset, dataset, first, first + n - 1) in line
                   for line in text.splitlines()), text


def check_unframed():
    with open(path_of("unframed.json")[:-8]) as f:
        want = json.load(f)
    got = json.loads(d7("info", "--json", "--unframed", path_of("unframed")))
    assert got["state"] == "closed" and got["unframed"] is True and got["problems"] == [] == got["notes"], got
    assert got["attributes"] == {"/photons/TacBits": "12", "/photons/PositionBits": "12"}
    for w in want["datasets"]:
        code_of = d7ref.ARRAY_CODE[d7ref.TYPES.index(w["type"])]
        assert raw("unframed", w["name"], "--unframed") == d7ref.array.array(code_of, w["values"]).tobytes(), w["name"]
    assert json.loads(d7("info", "--json", "--unframed", path_of("minimal")))["unframed"] is False


def first_problem(got, name):
    """Is a problem of this dataset known as soon as the file is opened (its first or last page)?"""
    d = next(d for d in got["datasets"] if d["name"] == name)
    return any(p["dataset"] == name and p["first_item"] in (0, d["items"]) for p in got["problems"])


def main():
    described = {os.path.basename(p)[:-5] for p in glob.glob(os.path.join(FOLDER, "*.json"))}
    files = {os.path.basename(p)[:-8] for p in glob.glob(os.path.join(FOLDER, "*.photons"))}
    for name in sorted(described - {"unframed"}):
        check_described(name)

    check_damaged("bad_varints", [(0, 3)])
    check_damaged("zeroed_block", [(1, 2), (2, 2)])
    check_damaged("bad_fragment_length", [(2, 1)])

    for command in ("info", "verify"):  # an error that says what it is, nothing on standard output
        assert d7(command, path_of("bad_signature"), code=2) == b"" and "signature" in d7.err
        assert d7(command, path_of("cut_in_header"), code=2) == b"" and "header" in d7.err
        assert d7(command, path_of("unframed"), code=2) == b"" and "unframed" in d7.err
    check_unframed()

    got = info(path_of("epilogue_points_nowhere"), code=1)  # falls back to recovery
    assert got["state"] == "open" and [p["code"] for p in got["problems"]] == ["BAD_EPILOGUE"]
    assert [d["items"] for d in got["datasets"]] == [40000, 40000, 40000, 1081]

    special = {"bad_varints", "zeroed_block", "bad_fragment_length", "bad_signature", "cut_in_header", "unframed",
               "epilogue_points_nowhere"}
    assert files == described | special, files ^ (described | special)
    print("%d fixtures" % len(files))


if __name__ == "__main__":
    main()
