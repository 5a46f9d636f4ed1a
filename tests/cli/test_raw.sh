#!/bin/bash
# attscope measure --raw: the arrays, read without NumPy, agree with the figures and with each other.
. "$(dirname "$0")/lib.sh"
needs python3
idx data
# shellcheck disable=SC2086
run 0 train data $network $recipe --epochs 1 --init-values 0.5 --output out --experiment plain
mkdir alone && cp out/plain/last.safetensors alone/net.safetensors
checkpoint=alone/net.safetensors

run 0 measure $checkpoint data --with nsi,entropy --raw all.safetensors --raw-arrays zeta,rows,weights --json found.json \
    -b 5 --workers 1
err_has 'raw output: '
run 0 measure $checkpoint data --with nsi --raw arrays/ --raw-arrays weights,zeta,rows
run 0 measure $checkpoint data --with nsi --raw zeta.npy --raw-arrays zeta
run 0 measure $checkpoint data --with nsi --raw some.safetensors --nodes 'blocks.0.add2'
run 0 measure $checkpoint data --with nsi --raw wide.safetensors --f64
cat >read.py <<'PYTHON'
import json, math, os, struct, sys


def safetensors(path):
    data = open(path, "rb").read()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    facts = header.pop("__metadata__")
    def values(t):
        begin, end = (8 + length + at for at in t["data_offsets"])
        return t["shape"], struct.unpack("<" + {"F32": "f", "F64": "d"}[t["dtype"]] * math.prod(t["shape"]), data[begin:end])
    return {name: values(t) for name, t in header.items()}, facts


def npy(path):
    data = open(path, "rb").read()
    assert data[:8] == b"\x93NUMPY\x01\x00" and data[-1:] is not None
    length, = struct.unpack("<H", data[8:10])
    assert (10 + length) % 64 == 0 and data[9 + length:10 + length] == b"\n"
    header = eval(data[10:10 + length])
    assert header["descr"] == "<f4" and header["fortran_order"] is False
    return list(header["shape"]), struct.unpack("<%df" % math.prod(header["shape"]), data[10 + length:])


worst = {}
def near(what, a, b, tolerance):
    error = abs(a - b) / max(1, abs(b))
    assert error <= tolerance, (what, a, b)
    worst[what] = max(worst.get(what, 0), error)


arrays, facts = safetensors("all.safetensors")
names = json.loads(facts["images"])
assert len(names) == 32 and names[7] == "t10k-images-idx3-ubyte[7]", names[7]
found = {}
for m in json.load(open("found.json"))["measurements"]:
    found[m["instrument"], m["node"], m["statistic"], m.get("head", -1)] = m["mean"]

# NSI: the means over the images are the figures. Measured: 8e-10.
shape, zeta = arrays["zeta"]
additions, readings = json.loads(facts["zeta.additions"]), json.loads(facts["zeta.readings"])
assert shape == [32, len(additions), 3] and len(additions) == 2, shape
for a, node in enumerate(additions):
    for r, reading in enumerate(readings):
        mean = sum(zeta[(i * len(additions) + a) * 3 + r] for i in range(32)) / 32
        near("zeta", mean, found["nsi", node, reading, -1], 1e-7)

# Statistics of rows: entropy of each head, and everything that follows from the weights. Measured: 6e-9 and 2e-7.
statistics = json.loads(facts["rows.statistics"])
assert len(statistics) == len(json.loads(facts["rows.units"])) == 14
for block in range(1):
    node = f"blocks.{block}.attn"
    (images, heads, queries, columns), rows = arrays[node + ".rows"]
    shape, weights = arrays[node + ".weights"]
    keys = shape[3]
    assert (images, columns) == (32, 14) and shape == [32, heads, queries, keys] and queries == keys == 5
    for head in range(heads):
        mean = sum(rows[((i * heads + head) * queries + q) * columns] for i in range(32) for q in range(queries))
        near("entropy", mean / (32 * queries), found["entropy", node, "mean", head], 1e-6)
    for row in range(32 * heads * queries):
        a = weights[row * keys:(row + 1) * keys]
        near("sum", sum(a), 1, 1e-5)
        told = dict(zip(statistics, rows[row * columns:(row + 1) * columns]))
        near("told", told["entropy"], -sum(w * math.log(w) for w in a if w > 0), 1e-5)
        others = sorted(a)[:-1]
        near("told", told["others"], sum(others), 1e-5)
        near("told", told["others2"], sum(w * w for w in others), 1e-5)
        near("told", told["others3"], sum(w ** 3 for w in others), 1e-5)
        near("told", told["max"], max(a), 1e-5)
        near("told", told["self"], a[row % queries], 1e-5)
        assert a[int(told["argmax"])] == max(a)

# The other forms have the same numbers, up to the rounding of batches. Measured: 2e-7.
index = json.load(open("arrays/index.json"))
assert index["images"] == names and index["weights"] == facts["weights"]
assert sorted(os.listdir("arrays")) == sorted([name + ".npy" for name in arrays] + ["index.json"])
for name, (shape, values) in arrays.items():
    of_file = npy(f"arrays/{name}.npy")
    assert index["arrays"][name] == shape == of_file[0]
    for a, b in zip(values, of_file[1]):
        near("batches", a, b, 1e-5)
alone = npy("zeta.npy")
assert alone[0] == arrays["zeta"][0] and alone[1] == npy("arrays/zeta.npy")[1]
some, facts = safetensors("some.safetensors")
assert sorted(some) == ["zeta"] and json.loads(facts["zeta.additions"]) == additions[1:]
wide, _ = safetensors("wide.safetensors")
for name in ("zeta", "blocks.0.attn.rows"):
    for a, b in zip(wide[name][1], arrays[name][1]):
        near("wide", a, b, 1e-4)
print("largest errors:", {what: f"{error:.1g}" for what, error in worst.items()})
PYTHON
python3 read.py || fail 'the arrays are wrong'

# Images that cannot be decoded are rows of NaN, so that rows keep their numbers.
mkdir few
cp "$here"/../goldens/images/4??.jpg few/ && echo broken >few/0.jpg
run 0 measure $checkpoint few --with nsi --skip-corrupt --raw few.npy --raw-arrays zeta
python3 - <<'PYTHON' || fail 'rows of corrupt images'
import math, struct
data = open("few.npy", "rb").read()
at = 10 + struct.unpack("<H", data[8:10])[0]
values = struct.unpack("<%df" % ((len(data) - at) // 4), data[at:])
assert all(map(math.isnan, values[:6])) and not any(map(math.isnan, values[6:])) and len(values) > 6
PYTHON

# Refusals.
bad() { # WORDS ARGUMENT...
    local words=$1
    shift
    run "$@"
    err_has "$words"
}
usage "raw output to out.csv: expected a name that ends in .safetensors or .npy, or a folder (a name that ends in '/', if it does not exist yet)" \
    measure $checkpoint data --raw out.csv
usage '"zetas" is no array of raw output; expected zeta, rows or weights, separated by commas' \
    measure $checkpoint data --raw out.npy --raw-arrays rows,zetas
usage 'raw_arrays chooses the arrays of raw, which is missing' measure $checkpoint data --raw-arrays zeta
usage "raw output would replace the checkpoint $checkpoint" measure $checkpoint data --raw ./alone/../$checkpoint
bad 'a .npy file has one array, and there are 2' 2 measure $checkpoint data --with nsi --raw out.npy
bad 'raw output of rows: no attention layer matches "blocks.7.*"' 2 measure $checkpoint data --with accuracy --raw out.npy \
    --raw-arrays rows --nodes 'blocks.7.*'
bad 'nowhere/out.npy' 1 measure $checkpoint data --with nsi --raw nowhere/out.npy --raw-arrays zeta
[ ! -e out.npy ] || fail 'a refused measurement writes'

# A file that cannot be completed is removed; an earlier one stays.
printf 'before' >kept.npy
for path in kept.npy new.npy new.safetensors new/; do
    status=0
    (ulimit -f 1; exec "$ATTSCOPE" measure $checkpoint data --with entropy --raw $path --raw-arrays weights \
        --nodes blocks.0.attn --threads 1) >/dev/null 2>stderr || status=$?
    [ $status -eq 1 ] || fail "$path under a limit: exit status $status"
    err_has 'could not be written: File too large'
done
[ "$(cat kept.npy)" = before ] || fail 'a failure changes an earlier file'
[ ! -e new.npy ] && [ ! -e new.safetensors ] && [ ! -e new ] || fail 'a partial file stays'
! find . -name '*.tmp' | grep . || fail 'a temporary file is left'
finish
