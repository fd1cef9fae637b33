"""d7 import: PicoQuant files of every record type, made by an independent generator, against what they were made of; the
same through readers of others; damaged and cut files."""
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

import require

np = require.module("numpy")
import d7ref  # noqa: E402
import ptumake  # noqa: E402
from d7run import D7, d7  # noqa: E402
from ptumake import TYPES, tag  # noqa: E402

SECOND_UNITS = {False: 4e-12, True: 12.5e-9}  # T2: of times; T3: from sync to sync


def events_of(kind, n, seed, gaps=True):
    """Photons and markers at rising times, with gaps of many overflows now and then, events at the very ends of an overflow
    period, and several at one time."""
    rng = random.Random(seed)
    _, t3, layout, unit, _ = TYPES[kind]
    channels = (range(1, 5) if t3 else range(0, 5)) if layout == "pico" else range(0, 64 if t3 else 63)
    top = 4095 if layout == "pico" else 32767
    out, at = [], 0
    for i in range(n):
        at += rng.choice([0, 1, rng.randrange(unit // 3)])
        if rng.random() < 0.05:
            at = (at // unit + 1) * unit - rng.randrange(2)
        if gaps and rng.random() < 0.01:
            at += unit * rng.randrange(2, 3000 if t3 else 40)
        if rng.random() < 0.1:
            bits = rng.randrange(1, 16)
            # In a T2 record of the PicoHarp the markers take the time's last four bits.
            at = at & ~15 | bits if layout == "pico" and not t3 else at
            if out and at < out[-1][1] or layout == "pico" and not t3 and at % unit & 15 != bits:
                continue
            out.append(("marker", at, bits))
        elif t3:
            out.append(("photon", at, rng.choice(channels), rng.choice([0, top, rng.randrange(top + 1)])))
        else:
            out.append(("photon", at, rng.choice(channels)))
    return out


class Imported:
    def __init__(self, path):
        with open(path, "rb") as f:
            read = d7ref.File(f.read())
        assert read.check() == [] and read.state == "closed", read.check()
        self.attributes = read.public_attributes()
        self.columns = {name: values for (name, _), values in zip(read.datasets, read.values)}
        self.types = {name: d7ref.TYPES[code] for name, code in read.datasets}


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def run_import(folder, data, *options, code=0):
    """Imports bytes; what was made, or None."""
    ptu, out = os.path.join(folder, "in.ptu"), os.path.join(folder, "out.photons")
    write(ptu, data)
    if os.path.exists(out):
        os.remove(out)
    d7("import", ptu, "-o", out, *options, code=code)
    assert sorted(os.listdir(folder)) == (["in.ptu", "out.photons"] if code < 2 else ["in.ptu"]), os.listdir(folder)
    if code == 2:
        return None
    said = d7.err
    d7("verify", out)
    d7.err = said
    return Imported(out)


def milliseconds(times, unit_s):
    """The first photon of each millisecond, from exact arithmetic."""
    from fractions import Fraction
    unit = Fraction(repr(unit_s))
    out = []
    for i, t in enumerate(times):
        while t * unit >= Fraction(len(out), 1000):
            out.append(i)
    return out


def expect(got, kind, events, unit_s):
    t3 = TYPES[kind][1]
    photons = [e for e in events if e[0] == "photon"]
    markers = [e for e in events if e[0] == "marker"]
    scale = 1 if t3 else round(unit_s * 1e12)
    before, seen = [], 0
    for e in events:
        if e[0] == "marker":
            before.append(seen)
        seen += e[0] == "photon"
    times, marker_times = [e[1] * scale for e in photons], [e[1] * scale for e in markers]
    columns = {"/markers/item": before, "/markers/bits": [e[2] for e in markers]}
    if t3:
        columns.update({"/photons/dt": [e[3] for e in photons], "/photons/aat": times, "/markers/aat": marker_times,
                        "/photons/channel": [e[2] for e in photons], "/photons/ms": milliseconds(times, unit_s)})
    else:
        columns.update({"/tags/time": times, "/tags/channel": [e[2] for e in photons], "/markers/time": marker_times})
    assert set(columns) == set(got.columns), got.columns.keys()
    for name, values in columns.items():
        assert got.columns[name] == values, "%s: %s differs" % (kind, name)


def every_type(folder):
    for number, kind in enumerate(TYPES):
        t3 = TYPES[kind][1]
        unit = SECOND_UNITS[t3]
        for counted in (True, False):
            events = events_of(kind, 3000, number)
            data = ptumake.make(kind, events, unit, 16e-12 if t3 else None, counted=counted)
            got = run_import(folder, data)
            expect(got, kind, events, unit)
        a = got.attributes
        assert a["ptu.TTResultFormat_TTTRRecType"] == str(TYPES[kind][0])
        if t3:
            assert a["/photons/TacChannel"] == "16" and float(a["/photons/TimerFrequency"]) == 1 / unit
            assert a["/photons/TacBits"] == ("12" if TYPES[kind][2] == "pico" else "15")
        assert got.types["/photons/dt" if t3 else "/markers/bits"] == "uint16"
        assert got.types["/photons/channel" if t3 else "/tags/channel"] == "uint8"


def no_events(folder):
    for kind in TYPES:
        expect(run_import(folder, ptumake.make(kind, [], 1e-9, 1e-12)), kind, [], 1e-9)


def several_batches(folder):
    """More records than are read at once, so that overflows and milliseconds go on from one batch to the next."""
    for kind in ("hydraharp2-t3", "picoharp-t2"):
        unit = SECOND_UNITS[TYPES[kind][1]]
        events = events_of(kind, 150000, 5, gaps=False)
        expect(run_import(folder, ptumake.make(kind, events, unit, 16e-12)), kind, events, unit)


def on_the_millisecond(folder):
    """A photon at the very begin of a millisecond is its first, also where the laser's period is no exact number."""
    for rate in (40e6, 80e6, 20e6, 50e6, 78e6):
        events = [("photon", round(i * rate / 1000), 0, 5) for i in range(300)]
        got = run_import(folder, ptumake.make("hydraharp2-t3", events, 1 / rate, 4e-12))
        assert got.columns["/photons/ms"] == list(range(300)), rate


def odd_units(folder):
    """T2 times whose unit is no whole number of ps."""
    events = [("photon", t, 1) for t in (0, 1, 3, 1000, 10 ** 9, 3 * 10 ** 12)]
    got = run_import(folder, ptumake.make("generic-t2", events, 2.5e-13))
    assert got.columns["/tags/time"] == [0, 0, 1, 250, 250000000, 750000000000]


def tags_become_attributes(folder):
    more = b"".join([
        tag("File_GUID", ptumake.ANSI, "{AB}"), tag("File_Comment", ptumake.ANSI, "Zelle 5 \u00b5m"),
        tag("Latin", ptumake.ANSI, "5 \u00b5m".encode("latin-1")), tag("Wide", ptumake.WIDE, "\u03b1\U0001F600"),
        tag("Lone", ptumake.WIDE, "a"), tag("Empty", ptumake.EMPTY), tag("Yes", ptumake.BOOL, 1),
        tag("No", ptumake.BOOL, 0), tag("Number", ptumake.INT, -5, index=3), tag("Bits", ptumake.BITS, 0x1F),
        tag("Colour", ptumake.COLOUR, 0xFF00), tag("Float", ptumake.FLOAT, 0.1), tag("NotFinite", ptumake.FLOAT, float("inf")),
        tag("File_CreatingTime", ptumake.TIME, 25569 + 0.5), tag("Strange", ptumake.TIME, 1e300),
        tag("Floats", ptumake.FLOATS, [1.0, -2.5, 1e-300]), tag("Blob", ptumake.BLOB, b"\x00\xfe"),
        tag("Large", ptumake.BLOB, bytes(3 << 20)), tag("Void", ptumake.ANSI, ""),
        tag("\x02HWInpChan", ptumake.INT, 7, index=0),
    ])
    a = run_import(folder, ptumake.make("generic-t2", [], 1e-12, more=more)).attributes
    assert a["FileGuid"] == a["ptu.File_GUID"] == "{AB}"
    assert a["Comment"] == a["ptu.File_Comment"] == "Zelle 5 \u00b5m" and a["ptu.Latin"] == "5 \u00b5m"
    assert a["ptu.Wide"] == "\u03b1\U0001F600" and a["ptu.Lone"] == "a" and a["ptu.Empty"] == a["ptu.Void"] == ""
    assert (a["ptu.Yes"], a["ptu.No"], a["ptu.Number(3)"]) == ("true", "false", "-5")
    assert a["ptu.Bits"] == "0x000000000000001F" and a["ptu.Colour"] == "0x000000000000FF00"
    assert a["ptu.Float"] == "0.1" and a["ptu.NotFinite"] == "inf"
    assert a["Created"] == a["ptu.File_CreatingTime"] == "1970-01-01T12:00:00.000" and float(a["ptu.Strange"]) == 1e300
    assert a["ptu.Floats"] == "[1, -2.5, 1e-300]" and a["ptu.Blob"] == "00fe"
    assert a["ptu._HWInpChan(0)"] == "7"
    assert a["ptu.Large"] == "(3145728 bytes)" and a["FileCreator"].startswith("d7 import ")


def cut_files(folder):
    """A file cut at any byte: what is whole is imported, with the place; nothing where the header was cut."""
    kind = "hydraharp2-t3"
    events = events_of(kind, 12, 3)
    data = ptumake.make(kind, events, 12.5e-9, 4e-12)
    start = len(data) - len(ptumake.records(kind, events))
    whole = run_import(folder, data)
    for cut in list(range(0, start, 7)) + [start - 1]:
        run_import(folder, data[:cut], code=2)
        assert "in.ptu: byte %d:" % cut in d7.err and "header" in d7.err or cut < 16, (cut, d7.err)
    for cut in range(start, len(data)):
        got = run_import(folder, data[:cut], code=1)
        assert "byte %d: the file was cut: it holds %d of %d records" % (
            cut, (cut - start) // 4, (len(data) - start) // 4) in d7.err, d7.err
        for name, values in got.columns.items():
            assert values == whole.columns[name][:len(values)], name
        n = len(got.columns["/photons/dt"])
        assert all(len(got.columns[name]) == n for name in ("/photons/aat", "/photons/channel"))


def odd_files(folder):
    kind = "hydraharp2-t3"
    events = events_of(kind, 500, 9)
    body = ptumake.records(kind, events)

    def file(n_records, more=b"", unit=12.5e-9, tail=b"", resolution=4e-12, **other):
        return ptumake.header(kind, n_records, unit, resolution, more, **other) + body + tail

    n = len(body) // 4
    for count, text in ((None, "does not count"), (0, "does not count")):
        expect(run_import(folder, file(count), code=1), kind, events, 12.5e-9)
        assert text in d7.err and "all %d were taken" % n in d7.err
        expect(run_import(folder, file(count, tail=b"xy"), code=1), kind, events, 12.5e-9)
        assert "the last record is not whole" in d7.err
    expect(run_import(folder, file(n, tail=b"more"), code=1), kind, events, 12.5e-9)
    assert "bytes follow the %d records" % n in d7.err
    expect(run_import(folder, file(n, resolution=None), code=1), kind, events, 12.5e-9)
    assert "MeasDesc_Resolution" in d7.err

    run_import(folder, file(n, unit=None), code=2)
    assert "--sync-rate" in d7.err
    for unit in (0.0, -1.0, float("nan"), float("inf"), 1e9):
        run_import(folder, file(n, unit=unit), code=2)
        assert "MeasDesc_GlobalResolution" in d7.err
    expect(run_import(folder, file(n, unit=None), "--sync-rate", "80e6"), kind, events, 1 / 80e6)
    run_import(folder, file(n, record_type=0x00010299), code=2)
    assert "record type 0x00010299" in d7.err
    run_import(folder, file(n, bits=64), code=2)
    assert "64 bits" in d7.err
    run_import(folder, b"PQHISTO\0" + file(n)[8:], code=2)
    assert "PQTTTR" in d7.err
    run_import(folder, file(n, more=struct.pack("<32siIq", b"Odd", -1, 0x77000008, 0)), code=2)
    assert "unknown type 0x77000008" in d7.err
    run_import(folder, file(n, more=struct.pack("<32siIq", b"Huge", -1, ptumake.BLOB, 1 << 40)), code=2)
    assert "Huge claims" in d7.err
    run_import(folder, file(n, more=bytes(48)), code=2)
    assert "without a name" in d7.err


def odd_records(folder):
    kind = "generic-t2"
    head = ptumake.header(kind, 4, 1e-12)
    special = struct.pack("<4I", 5, 1 << 31 | 16 << 25, 1 << 31 | 40 << 25, 3 << 25 | 7)
    got = run_import(folder, head + special, code=1)
    assert "2 special records of an unknown kind" in d7.err and got.columns["/tags/time"] == [5, 7]
    got = run_import(folder, ptumake.header("picoharp-t2", 2, 4e-12) + struct.pack("<2I", 9 << 28 | 3, 1 << 28 | 4), code=1)
    assert "1 photons are of channels" in d7.err and got.columns["/tags/channel"] == [9, 1]
    late = struct.pack("<4I", 5, 1 << 31 | 63 << 25 | (1 << 25) - 1, 6, 7)
    got = run_import(folder, ptumake.header(kind, 4, 1e-6) + late, code=1)
    assert "49 days" in d7.err and "record 1 " in d7.err and got.columns["/tags/time"] == [5000000]


def usage(folder):
    ptu, out = os.path.join(folder, "in.ptu"), os.path.join(folder, "out.photons")
    write(ptu, ptumake.make("generic-t2", [("photon", 1, 1)], 1e-12))
    text = d7("import", "--help").decode()
    assert text.startswith("usage: d7 import ") and "Examples:" in text and "Exit status:" in text
    for arguments in ([], [ptu], ["-o", out], [ptu, ptu, "-o", out], [ptu, "-o", out, "--sync-rate", "x"],
                      [ptu, "-o", out, "--sync-rate", "0"], [folder, "-o", out], ["/nonexistent", "-o", out],
                      [ptu, "-o", "/nonexistent/out.photons"]):
        d7("import", *arguments, code=2)
        assert d7.err and os.listdir(folder) == ["in.ptu"], arguments
    assert b"1 photons and 0 markers" in d7("import", ptu, "--output", out)
    before = open(out, "rb").read()
    write(ptu, ptumake.make("generic-t2", [("photon", 2, 1)], 1e-12))
    d7("import", ptu, "-o", out, code=2)
    assert "--overwrite" in d7.err and open(out, "rb").read() == before
    d7("import", ptu, "-o", out, "--overwrite")
    assert Imported(out).columns["/tags/time"] == [2]


def interrupted(folder):
    """A file of very many records, and a signal while they are read: nothing is left."""
    path, out = os.path.join(folder, "long.ptu"), os.path.join(folder, "out.photons")
    with open(path, "wb") as f:
        head = ptumake.header("generic-t2", 1 << 30, 1e-12)
        f.write(head)
        f.truncate(len(head) + (4 << 30))
    p = subprocess.Popen([D7, "import", path, "-o", out], stderr=subprocess.PIPE)
    while not any(name.startswith(".out") for name in os.listdir(folder)):
        time.sleep(0.01)
    p.send_signal(signal.SIGINT)
    assert p.wait(timeout=60) == 2 and b"stopped" in p.stderr.read()
    assert os.listdir(folder) == ["long.ptu"]
    os.remove(path)


def real_recording(folder):
    """The begin of a real PicoHarp recording against columns that were converted from it by another program."""
    hazelnut = os.path.join(os.environ["PHOTOND_SOURCE"], "tests", "data", "hazelnut")
    with open(os.path.join(hazelnut, "head.ptu"), "rb") as f:
        data = f.read()
    got = run_import(folder, data, code=1)
    assert "byte %d: the file was cut: it holds 12000 of 6070158 records" % len(data) in d7.err, d7.err
    n = len(got.columns["/photons/dt"])
    assert n == 11884 and n + len(got.columns["/markers/bits"]) <= 12000
    assert got.columns["/photons/dt"] == np.fromfile(os.path.join(hazelnut, "dt.u16"), "<u2")[:n].tolist()
    ms = np.fromfile(os.path.join(hazelnut, "ms.u64"), "<u8")
    assert got.columns["/photons/ms"] == ms[:len(got.columns["/photons/ms"])].tolist()
    assert set(got.columns["/photons/channel"]) == {1} and set(got.columns["/markers/bits"]) <= {1, 2, 4}
    a = got.attributes
    assert a["ptu.HW_Type"] == "PicoHarp" and a["/photons/TacChannel"] == "96.96969697" and "Created" not in a
    assert a["ptu._HWInpChan_CFDLeveld(0)"] == "100" and a["/photons/TimerFrequency"] == "78020000"


def usable(folder):
    """What was imported is found by time."""
    kind = "hydraharp2-t3"
    events = [("photon", i * 80000 + 1, 0, 5) for i in range(3000)]
    run_import(folder, ptumake.make(kind, events, 12.5e-9, 4e-12))
    out = os.path.join(folder, "out.photons")
    assert d7("cat", out, "/photons/ms", "--from", "1000", "--count", "3").split() == [b"1000", b"1001", b"1002"]


def other_readers_ptufile(folder):
    ptufile = require.module("ptufile")
    for number, kind in enumerate(TYPES):
        t3 = TYPES[kind][1]
        unit = SECOND_UNITS[t3]
        path = os.path.join(folder, "in.ptu")
        events = events_of(kind, 5000, 100 + number)
        got = run_import(folder, ptumake.make(kind, events, unit, 16e-12))
        with ptufile.PtuFile(path) as f:
            r = f.decode_records()
        photons = r[r["channel"] >= 0]
        times = photons["time"].astype(np.uint64)
        if t3:
            assert np.array_equal(times, got.columns["/photons/aat"]), kind
            assert np.array_equal(photons["dtime"], got.columns["/photons/dt"]), kind
        else:
            assert np.array_equal(times * np.uint64(4), got.columns["/tags/time"]), kind
        markers = r[r["marker"] > 0]
        assert np.array_equal(markers["marker"], got.columns["/markers/bits"]), kind


def other_readers_phconvert(folder):
    require.module("phconvert")
    from phconvert import pqreader
    for number, kind in enumerate(TYPES):
        t3, layout = TYPES[kind][1], TYPES[kind][2]
        path = os.path.join(folder, "in.ptu")
        events = events_of(kind, 5000, 200 + number)
        got = run_import(folder, ptumake.make(kind, events, SECOND_UNITS[t3], 16e-12))
        if kind == "picoharp-t2":
            continue  # its function for these does not work with today's numpy
        records, spec, _ = pqreader.ptu_reader(path)
        times, detectors, micro, _ = pqreader.process_pturecords(records, spec, ovcfunc="base")
        special = 15 if layout == "pico" else 64
        keep = detectors < special if t3 or layout == "pico" else detectors <= special
        times, detectors = times[keep].astype(np.uint64), detectors[keep]
        if t3:
            assert np.array_equal(times, got.columns["/photons/aat"]), kind
            assert np.array_equal(micro[keep], got.columns["/photons/dt"]), kind
            assert np.array_equal(detectors, got.columns["/photons/channel"]), kind
        else:
            assert np.array_equal(times * np.uint64(4), got.columns["/tags/time"]), kind


CASES = {"made": [every_type, no_events, several_batches, on_the_millisecond, odd_units, tags_become_attributes, cut_files, odd_files, odd_records,
                  usage, interrupted, real_recording, usable],
         "ptufile": [other_readers_ptufile], "phconvert": [other_readers_phconvert]}

if __name__ == "__main__":
    for case in CASES[sys.argv[1]]:
        with tempfile.TemporaryDirectory() as folder_of_case:
            case(folder_of_case)
        print("ok", case.__name__)
