#!/usr/bin/env python3
"""daf merge and reorder: values against those worked out here, conflicts, and refusals that leave nothing."""
import json
import os
import random
import shutil

import dafref
from support import TYPES, daf, files_of, fixtures, folder, random_model, random_values, same

FIXTURES = fixtures()

EMPTY = {"Bool": False, "String": "", "Int64": "0", "UInt64": "0"}


def model_of(path):
    return dafref.values_only(dafref.read_repository(dafref.open_any(path)))


def write(path, model, packing=None):
    dafref.write_repository(dafref.DirStore(path), model, packing)


def zero(eltype):
    return EMPTY.get(eltype, 0.0 if eltype.startswith("Float") else 0)


# ---- merge

def day(seed, samples):
    """Genes are the same every day, samples are not."""
    rng = random.Random(seed)
    genes = ["g%d" % i for i in range(5)]
    model = {"version": [1, 1], "scalars": {}, "axes": {"gene": genes, "sample": samples}, "vectors": {"gene": {}, "sample": {}},
             "matrices": {"gene": {"sample": {}}, "sample": {"gene": {}, "sample": {}}}}
    model["vectors"]["gene"]["length"] = {"eltype": "Int32", "values": [10, 20, 30, 40, 50]}
    for t in TYPES:
        model["vectors"]["sample"]["v_" + t] = {"eltype": t, "values": random_values(rng, t, len(samples))}
        model["matrices"]["gene"]["sample"]["m_" + t] = {"eltype": t, "columns": [random_values(rng, t, 5) for _ in samples]}
    model["matrices"]["sample"]["gene"]["t"] = {"eltype": "Int16", "columns": [random_values(rng, "Int16", len(samples)) for _ in genes]}
    model["matrices"]["sample"]["sample"]["d"] = {"eltype": "Float64", "columns": [[float(rng.randint(1, 9)) for _ in samples] for _ in samples]}
    return model


def joined(models):
    """What the page of merge promises for the axis `sample`, the last input deciding."""
    samples = []
    for m in models:
        samples += [s for s in m["axes"]["sample"] if s not in samples]
    at = {s: i for i, s in enumerate(samples)}
    out = day(0, samples)
    for name, v in out["vectors"]["sample"].items():
        v["values"] = [zero(v["eltype"])] * len(samples)
    for rows, columns in (("gene", "sample"), ("sample", "gene"), ("sample", "sample")):
        for name, m in out["matrices"][rows][columns].items():
            m["columns"] = [[zero(m["eltype"])] * len(out["axes"][rows]) for _ in out["axes"][columns]]
    for m in models:
        place = [at[s] for s in m["axes"]["sample"]]
        for name, v in m["vectors"]["sample"].items():
            for i, value in zip(place, v["values"]):
                out["vectors"]["sample"][name]["values"][i] = value
        for rows, columns in (("gene", "sample"), ("sample", "gene"), ("sample", "sample")):
            r = place if rows == "sample" else range(5)
            c = place if columns == "sample" else range(5)
            for name, matrix in m["matrices"][rows][columns].items():
                for j, column in zip(c, matrix["columns"]):
                    for i, value in zip(r, column):
                        out["matrices"][rows][columns][name]["columns"][j][i] = value
    return out


def with_sparse(path, model, seed):
    """The same random sparse data in the repository and the model."""
    rng, store = random.Random(seed), dafref.DirStore(path)
    n = len(model["axes"]["sample"])
    for eltype, values in (("Float32", [0.0, 0.0, 1.5, -2.0]), ("Bool", [False, False, True]), ("String", ["", "", "a", "ö"])):
        vector = [rng.choice(values) for _ in range(n)]
        columns = [[rng.choice(values) for _ in range(5)] for _ in range(n)]
        square = [[rng.choice(values) for _ in range(n)] for _ in range(n)]
        dafref.write_sparse_vector(store, "vectors/sample/s_" + eltype, eltype, vector, None)
        dafref.write_sparse_matrix(store, "matrices/gene/sample/s_" + eltype, eltype, columns, 5, None)
        dafref.write_sparse_matrix(store, "matrices/sample/sample/s_" + eltype, eltype, square, n, None)
        model["vectors"]["sample"]["s_" + eltype] = {"eltype": eltype, "values": vector}
        model["matrices"]["gene"]["sample"]["s_" + eltype] = {"eltype": eltype, "columns": columns}
        model["matrices"]["sample"]["sample"]["s_" + eltype] = {"eltype": eltype, "columns": square}


def joins(base):
    models, paths = [], []
    for k, samples in enumerate((["a", "b", "c"], ["x", "a2"], ["y"])):
        models.append(day(31 + k, samples))
        paths.append(os.path.join(base, "day%d.daf" % k))
        write(paths[-1], models[-1], dafref.Packing("zstd") if k == 1 else None)
        with_sparse(paths[-1], models[-1], 41 + k)
    expected = dafref.values_only(joined_with_sparse(models))
    for name in ("all.daf", "all.daf.zip", "all.dafs.zip#/days"):
        out = os.path.join(base, name)
        daf("merge", out, *paths, "--join", "sample")
        if name.endswith(".daf"):
            same(model_of(out), expected, "joined")
        else:
            daf("unzip", out, os.path.join(base, "again.daf"))
            same(model_of(os.path.join(base, "again.daf")), expected, "joined in " + name)
            shutil.rmtree(os.path.join(base, "again.daf"))
        assert b": good, " in daf("verify", out)
    about = json.loads(daf("describe", os.path.join(base, "all.daf"), "--json"))
    same(about["matrices"]["gene"]["sample"]["s_Float32"]["format"], "sparse", "all inputs sparse")
    same(about["matrices"]["gene"]["sample"]["m_Int8"]["format"], "dense", "dense")
    # several inputs with the same sample
    models.append(day(39, ["c", "y", "new"]))
    paths.append(os.path.join(base, "late.daf"))
    write(paths[-1], models[-1])
    with_sparse(paths[-1], models[-1], 49)
    out = os.path.join(base, "last.daf")
    message = daf("merge", out, *paths, "--join", "sample", code=2)
    assert b"both have values for some entry" in message and not os.path.exists(out), message
    daf("merge", out, *paths, "--join", "sample", "--overwrite")
    same(model_of(out), dafref.values_only(joined_with_sparse(models)), "the last input decides")


def joined_with_sparse(models):
    out = joined([{**m, "vectors": {"sample": {k: v for k, v in m["vectors"]["sample"].items() if k[0] != "s"}},
                   "matrices": {r: {c: {k: v for k, v in by.items() if k[:2] != "s_"} for c, by in cs.items()}
                                for r, cs in m["matrices"].items()}} for m in models])
    samples = out["axes"]["sample"]
    at = {s: i for i, s in enumerate(samples)}
    for eltype in ("Float32", "Bool", "String"):
        name = "s_" + eltype
        vector = [zero(eltype)] * len(samples)
        columns = [[zero(eltype)] * 5 for _ in samples]
        square = [[zero(eltype)] * len(samples) for _ in samples]
        for m in models:
            place = [at[s] for s in m["axes"]["sample"]]
            for i, p in enumerate(place):
                vector[p] = m["vectors"]["sample"][name]["values"][i]
                columns[p] = m["matrices"]["gene"]["sample"][name]["columns"][i]
                for k, q in enumerate(place):
                    square[p][q] = m["matrices"]["sample"]["sample"][name]["columns"][i][k]
        out["vectors"]["sample"][name] = {"eltype": eltype, "values": vector}
        out["matrices"]["gene"]["sample"][name] = {"eltype": eltype, "columns": columns}
        out["matrices"]["sample"]["sample"][name] = {"eltype": eltype, "columns": square}
    return out


def merges_without_joins(base):
    a, b, c, out = (os.path.join(base, n) for n in ("a.daf", "b.daf", "c.daf", "m.daf"))
    model = random_model(51, {"p": 4, "q": 3})
    write(a, model)
    other = {"version": [1, 1], "scalars": {"more": {"type": "String", "value": "x"}, "s_Int8": model["scalars"]["s_Int8"]},
             "axes": {"p": model["axes"]["p"], "r": ["1"]}, "vectors": {"p": {"extra": {"eltype": "Int8", "values": [1, 2, 3, 4]}, "v_Int8": model["vectors"]["p"]["v_Int8"]}, "r": {}}, "matrices": {}}
    write(b, other)
    daf("merge", out, a, b)
    expected = dafref.values_only(model)
    expected["scalars"]["more"] = other["scalars"]["more"]
    expected["axes"]["r"] = ["1"]
    expected["vectors"]["p"]["extra"] = other["vectors"]["p"]["extra"]
    got = model_of(out)
    for part in ("scalars", "axes"):
        same(got[part], expected[part], part)
    same(got["vectors"]["p"], dafref.values_only(expected)["vectors"]["p"], "vectors")
    # a property that differs, and an axis
    other["vectors"]["p"]["v_Int8"] = {"eltype": "Int8", "values": [9, 9, 9, 9]}
    shutil.rmtree(b)
    write(b, other)
    before = files_of(out)
    assert b"is there already" in daf("merge", out, a, b, code=2)
    shutil.rmtree(out)
    message = daf("merge", out, a, b, code=2)
    assert b"exists already" in message and b"--overwrite takes the last" in message, message
    assert not os.path.exists(out) and sorted(n for n in os.listdir(base) if n.startswith(".")) == [], os.listdir(base)
    daf("merge", out, a, b, "--overwrite")
    same(model_of(out)["vectors"]["p"]["v_Int8"]["values"], [9, 9, 9, 9], "the last one")
    assert before != files_of(out)
    write(c, {"version": [1, 1], "scalars": {}, "axes": {"p": ["other"]}, "vectors": {}, "matrices": {}})
    for part, command in (("other entries", ["merge", out, a, c, "--overwrite"]), ("no input has the axis", ["merge", out + "2", a, "--join", "zz"]),
                          ("missing", ["merge", out]), ("not a daf", ["merge", out + "2", a, base + "/none.daf"]),
                          ("merge to a directory", ["merge", base + "/x.daf.zarr", a])):
        message = daf(*command, code=2).decode()
        assert part in message and ".new" not in message, message
    write(os.path.join(base, "type.daf"), {"version": [1, 1], "scalars": {}, "axes": {"p": ["new"]}, "vectors": {"p": {"v_Int8": {"eltype": "Int16", "values": [1]}}}, "matrices": {}})
    assert b"is Int16 in" in daf("merge", out + "2", a, os.path.join(base, "type.daf"), "--join", "p", code=2)
    assert not os.path.exists(out + "2")


# ---- reorder

def permuted(model, axis, order):
    out = json.loads(json.dumps(model))
    out["axes"][axis] = [model["axes"][axis][i] for i in order]
    for v in out["vectors"].get(axis, {}).values():
        v["values"] = [v["values"][i] for i in order]
    for rows, by in out["matrices"].items():
        for columns, matrices in by.items():
            for m in matrices.values():
                if columns == axis:
                    m["columns"] = [m["columns"][i] for i in order]
                if rows == axis:
                    m["columns"] = [[c[i] for i in order] for c in m["columns"]]
    return out


def reorders(base):
    path = os.path.join(base, "r.daf")
    n = 300
    write(path, random_model(61, {"bin": n, "few": 3}))
    daf("pack", path, "--chunk-kb", "1")
    model = model_of(path)
    rng = random.Random(7)
    order = list(range(n))
    rng.shuffle(order)
    daf("reorder", path, "bin", data="".join(model["axes"]["bin"][i] + "\n" for i in order).encode())
    model = permuted(model, "bin", order)
    same(model_of(path), model, "by entries")
    rng.shuffle(order)
    file = os.path.join(base, "order.txt")
    with open(file, "w", encoding="ascii") as f:
        f.write("".join("%d\n" % i for i in order))
    daf("reorder", path, "bin", file, "--indices")
    model = permuted(model, "bin", order)
    same(model_of(path), model, "by indices")
    for name in ("v_Int8", "v_UInt64", "v_Float32", "v_Float64", "v_String", "v_Bool"):
        for more in ([], ["--reverse"]):
            values = [dafref.from_model(model["vectors"]["bin"][name]["eltype"], v) for v in model["vectors"]["bin"][name]["values"]]
            keys = [v.encode() if isinstance(v, str) else v for v in values]
            numbers = [i for i in range(n) if keys[i] == keys[i]]
            order = sorted(numbers, key=lambda i: keys[i], reverse=bool(more)) + [i for i in range(n) if keys[i] != keys[i]]
            daf("reorder", path, "bin", "--by", name, *more)
            model = permuted(model, "bin", order)
            same(model_of(path), model, "by %s %s" % (name, more))
    daf("reorder", path, "few", "--by", "few", "--reverse")
    model = permuted(model, "few", sorted(range(3), key=lambda i: model["axes"]["few"][i].encode(), reverse=True))
    same(model_of(path), model, "by the entries themselves")
    assert b": good, " in daf("verify", path)


def refuses_orders(base):
    path = os.path.join(base, "r.daf")
    before = files_of(path)
    few = daf("get", path, "axis", "few").decode().splitlines()
    for part, arguments, lines in (
            ("2 lines, but", [], few[:2]), ("no entry of axis", [], few[:2] + ["x"]), ("was given before", [], few[:2] + few[:1]),
            ("is no index", ["--indices"], ["0", "1", "3"]), ("is no index", ["--indices"], ["0", "1", "-1"]),
            ("was given before", ["--indices"], ["0", "1", "1"]), ("--by goes without", ["--by", "v_Int8", "--indices"], []),
            ("--reverse goes with", ["--reverse"], []), ("no vector", ["--by", "nothing"], [])):
        message = daf("reorder", path, "few", *arguments, code=2, data="\n".join(lines).encode()).decode()
        assert part in message, message
    assert b"no axis" in daf("reorder", path, "none", "--by", "none", code=2)
    same(files_of(path), before, "the repository")
    archive = os.path.join(base, "r.daf.zip")
    shutil.copy(os.path.join(FIXTURES, "zip-native", "repo.daf.zip"), archive)
    axis = sorted(json.loads(daf("describe", archive, "--json"))["axes"])[0]
    assert b"append-only" in daf("reorder", archive, axis, "--by", axis, code=2)


def main():
    with folder() as base:
        joins(base)
        merges_without_joins(base)
        reorders(base)
        refuses_orders(base)
    print("merge and reorder put every value where it belongs")


main()
