"""Runs of any datasets, types, roles, units and time bases, with values at the ends of their types, numbers that are none, clocks
that jump, and attributes that make no sense: the file has what was sent, bit by bit, and in every export what lies inside
and outside of an axis adds up to the items of a group. `test_values.py FIRST COUNT` runs other seeds."""
import json
import os
import random
import sys

import attack
import ingest
import photond
import stored
from ingest import pb

np = attack.np

COUNT = 40
ODD_BITS = ["12", "1", "31", "32", "0", "-1", "1e3", "nan", "12.5", "", "x", "99999999999999999999"]
ATTRIBUTES = {"/photons/PositionBits": ODD_BITS, "/photons/TacBits": ODD_BITS + ["20", "21"],
              "/photons/TacChannel": ["12.5", "0", "-1", "nan", "inf", "1e-300", "1e300", "x"]}
ODD_KEYS = {"z/../..": "v", "/": "v", "a\nb": "c", "export": "1", "name": "x", "photons": "y", "é": "ü", "items./d0": "7"}
FLOATS = [0, 1, -1, np.nan, np.inf, -np.inf, 4095, 4096, 2.0 ** 31, 2.0 ** 63, 1e38, -1e38]


def values(rng, kind, n):
    dtype = np.dtype(stored.DTYPES[kind])
    if dtype.kind == "f":
        return rng.choice(FLOATS, n).astype(dtype)
    i = np.iinfo(dtype)
    return rng.choice(np.array([i.min, i.max, 0, 1, min(i.max, 4095), min(i.max, 4096), i.max // 2], dtype), n)


def datasets(dice):
    """Any that the server takes: a role at most once in a group, an ms index in a group of its own."""
    groups = ["g%d" % i for i in range(dice.randrange(1, 4))]
    taken, out = set(), []
    for i in range(dice.randrange(1, 7)):
        group, role = dice.choice(groups), dice.randrange(9)
        if role == pb.ROLE_MS_INDEX:
            group = "ms%d" % i
        if (group, role) in taken:
            role = pb.ROLE_NONE
        taken.add((group, role))
        out.append(pb.Dataset(name="/d%d" % i, type=dice.randrange(10), group=group, role=role,
                              unit=dice.choice(["", "ps", "ns", "s", "parsec"]), scale=dice.choice([0, 1, 1e-300, 1e300, 12.5])))
    return out


def time_base(dice):
    if dice.randrange(3) == 0:
        return None
    numerator = dice.choice([0, 1, 1000, 1 << 63, (1 << 64) - 1])
    return pb.TimeBase(tick_ps_numerator=numerator, tick_ps_denominator=numerator and dice.choice([1, 7, (1 << 64) - 1]),
                       counter_bits=dice.choice([0, 1, 16, 37, 63, 64]), start_utc_ns=dice.choice([0, (1 << 64) - 1]),
                       laser_period_ps=dice.choice([0, 1e-300, 1e17]))


def some_attributes(dice):
    return {key: dice.choice(odd) for key, odd in ATTRIBUTES.items() if dice.randrange(4)}


def say_something_else(dice, c, run):
    if dice.randrange(3) == 0:
        c.send(pb.Ping(id=1, run=run.run, instrument_time_valid=True,
                       instrument_time=dice.choice([-1 << 63, (1 << 63) - 1, 0, 10 ** 12])))
        c.wait(pb.Pong)
    if dice.randrange(3) == 0:
        c.attributes(run, dict(some_attributes(dice), **ODD_KEYS))


def send_run(daemon, seed):
    """(name, columns as sent by dataset)"""
    dice, rng = random.Random(seed), np.random.default_rng(seed)
    with ingest.Connection(daemon.unix) as c:
        c.hello()
        run = c.open("values-%d" % seed, datasets=datasets(dice), time_base=time_base(dice),
                     attributes=ingest.attributes(some_attributes(dice)),
                     summary=pb.SummaryOptions(pixels=dice.choice([0, 16, 512, 4096]), export_interval_ms=dice.choice([100, 0])))
        sent = []
        for _ in range(dice.randrange(1, 6)):
            counts = {group: dice.choice([0, 1, 2, 1000, 9000]) for group in run.groups}
            sent.append([values(rng, d.type, counts[d.group]) for d in run.datasets])
            say_something_else(dice, c, run)
            c.batch(run, sent[-1], lost_before=dice.choice([0, 5, (1 << 64) - 1]), times_valid=True,
                    first_time=dice.choice([0, -1 << 63, (1 << 63) - 1]), last_time=0)
        c.close(run)
    return run.name, stored.joined(sent, [d.name for d in run.datasets])


def check_file(daemon, name, sent):
    file = stored.File(daemon.path(name + ".photons"))
    assert file.state == "closed" and list(file.columns) == list(sent), name
    for dataset, column in sent.items():
        assert file.columns[dataset].tobytes() == column.tobytes(), (name, dataset)


def counts(path, *what):
    return [int(v) for v in photond.tool("daf", "get", path, *what, "--format", "text").split()]


AXES = [("outside_image", ("matrix", "y_pixel", "x_pixel", "intensity")), ("outside_decay", ("vector", "dt_bin", "counts")),
        ("outside_second", ("vector", "second", "counts"))]


def check_export(daemon, name, sent):
    """How many axes it has."""
    path = daemon.path(name + ".daf")
    scalars = json.loads(photond.tool("daf", "describe", path, "--json"))["scalars"]
    items = {"items." + dataset.lstrip("/"): len(column) for dataset, column in sent.items()}
    assert {k: scalars[k]["value"] for k in items} == items, (name, scalars)
    n = 0
    for outside, inside in AXES:
        if outside in scalars:
            total = sum(counts(path, *inside)) + scalars[outside]["value"]
            assert total in items.values(), (name, outside, total, items)
            n += 1
    return n


def main():
    first, count = map(int, sys.argv[1:] or [0, COUNT])
    with attack.attacked(summaries={"enabled": True}, batch_bytes="1MiB", max_runs=8) as daemon:
        axes = 0
        for seed in range(first, first + count):
            name, sent = send_run(daemon, seed)
            check_file(daemon, name, sent)
            if os.path.isdir(daemon.path(name + ".daf")):
                axes += check_export(daemon, name, sent)
    assert axes >= count
    print("%d runs, %d axes that add up" % (count, axes))


if __name__ == "__main__":
    main()
