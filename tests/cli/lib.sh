# Sourced by the tests of the command: checks of its output, and a data set that trains in a second.
set -u
shopt -s lastpipe # so that a failure in `... | err_is` counts
failures=0 commands=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# Every test ends with this.
finish() { exit $((failures > 0)); }

# skip REASON: ends the test here. ctest counts it as skipped, unless it has run the command before.
skip() {
    if [ $((commands + failures)) -gt 0 ]; then
        echo "skipped in part: $1"
        finish
    fi
    echo "skipped: $1"
    exit 77
}

# needs PROGRAM...: skips the rest of the test if one of them is not installed.
needs() {
    local program
    for program; do command -v "$program" >/dev/null || skip "there is no $program"; done
}

# needs_shared FILE...: skips the rest of the test if the folder of optional data, $ATT_SHARED, lacks one of them.
needs_shared() {
    local file
    for file; do [ -e "${ATT_SHARED:-/nowhere}/$file" ] || skip "ATT_SHARED has no $file"; done
}

# Skips the rest of the test if `attscope serve` was left out of the build.
needs_server() {
    ! "$ATTSCOPE" serve /nowhere 2>&1 | grep -qF 'this build of attscope has no web server' ||
        skip 'this build has no libmicrohttpd'
}

# bash calls this, in a process of its own, for a program that it does not find. The test fails, even if it ignores the
# program's exit status and messages.
command_not_found_handle() {
    echo "FAILED: there is no $1: tools/install-packages should install it, or the test should say 'needs $1'" \
        >>"/proc/$$/fd/2"
    kill $$
}

[ -n "${ATTSCOPE:-}" ] || skip 'ATTSCOPE does not name the command'
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset ATTSCOPE_CPU

# Whether the command was built with sanitizers, which make everything several times slower.
sanitized() { [ -n "${ATT_SANITIZE:-}" ]; }

# Ends the test here, with this reason, if the command was built with sanitizers.
only_unsanitized() { # REASON
    ! sanitized || skip "$1"
}

# The same, for tests that train or measure for long by the command.
too_long_sanitized() {
    only_unsanitized 'this takes long under sanitizers; tests of the libraries run the same functions'
}

# run CODE ARGUMENT...: runs the command with its output in the files stdout and stderr; its exit status must be CODE.
run() {
    local code=$1 status=0
    shift
    commands=$((commands + 1))
    command_line="attscope $*"
    "$ATTSCOPE" "$@" >stdout 2>stderr || status=$?
    if [ $status -ne "$code" ]; then
        fail "$command_line: exit status $status, expected $code"
        sed 's/^/  /' stderr
    fi
}

# out_is, err_is: the whole output equals standard input.
same() { # FILE
    cat >expected
    diff expected "$1" >difference || {
        fail "$command_line: $1 differs (< expected)"
        sed 's/^/  /' difference
    }
}
out_is() { same stdout; }
err_is() { same stderr; }
out_has() { grep -qF -- "$1" stdout || { fail "$command_line: no '$1' in its output"; sed 's/^/  /' stdout; }; }
err_has() { grep -qF -- "$1" stderr || { fail "$command_line: no '$1' in its messages"; sed 's/^/  /' stderr; }; }

# fill_tensors FROM TO VALUE NAME...: copies a safetensors file, with all elements of these F32 tensors set to the
# value.
fill_tensors() {
    needs python3
    python3 - "$@" <<'END' || fail "fill_tensors $*"
import json, struct, sys
source, target, value = sys.argv[1:4]
data = bytearray(open(source, "rb").read())
length = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + length])
for name in sys.argv[4:]:
    begin, end = header[name]["data_offsets"]
    data[8 + length + begin:8 + length + end] = struct.pack("<f", float(value)) * ((end - begin) // 4)
open(target, "wb").write(data)
END
}

# usage MESSAGE ARGUMENT...: the command must fail with exit status 2, exactly this message, and no output.
usage() {
    local message=$1
    shift
    run 2 "$@"
    err_is <<<"attscope: $message"
    out_is </dev/null
}

# photographs FOLDER [without-classes]: writes 16 + 5 photographs of 40 x 30 and 28 x 36 pixels with masks, as CamVid's:
# below a line they are bright (class "road"), above dark ("sky"), with a border of no class (the last label, 3). No pixel
# is of class "sea"; without classes, all have the last label.
photographs() {
    needs python3
    mkdir -p "$1"
    printf 'sky\nroad\nsea\n' >"$1/classes.txt"
    python3 - "$@" <<'END' || fail "photographs $1"
import os, struct, sys, zlib
def png(path, rows, channels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width = len(rows), len(rows[0]) // channels
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    with open(path, "wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))
state = 1
for split, count in (("train", 16), ("val", 5)):
    for folder in (split, split + "annot"):
        os.makedirs(os.path.join(sys.argv[1], folder), exist_ok=True)
    for i in range(count):
        width, height = (40, 30) if i % 2 else (28, 36)
        line, photo, mask = 10 + i % 9, [], []
        for y in range(height):
            row = []
            for x in range(3 * width):
                state = (state * 1103515245 + 12345) % 2**31
                row.append((150 if y >= line else 40) + state // 2**16 % 40)
            photo.append(row)
            mask.append([3 if x == 0 or sys.argv[2:] else int(y >= line) for x in range(width)])
        png(os.path.join(sys.argv[1], split, f"{i}.png"), photo, 3)
        png(os.path.join(sys.argv[1], split + "annot", f"{i}.png"), mask, 1)
END
}

# boxes FOLDER: the photographs of photographs() with annotations in COCO's format: the road of each but every fourth.
boxes() {
    photographs "$1"
    mkdir "$1/annotations"
    rm -r "$1/classes.txt" "$1"/*annot
    python3 - "$1" <<'END' || fail "boxes $1"
import json, os, sys
for split, count in (("train", 16), ("val", 5)):
    images, objects = [], []
    for i in range(count):
        (width, height), line = (40, 30) if i % 2 else (28, 36), 10 + i % 9
        images.append({"id": i, "file_name": f"{i}.png", "width": width, "height": height})
        if i % 4 != 3:
            box = [0, line, width, height - line]
            objects.append({"id": i + 1, "image_id": i, "category_id": 2, "bbox": box, "area": box[2] * box[3], "iscrowd": 0})
    categories = [{"id": 1, "name": "sky"}, {"id": 2, "name": "road"}]
    with open(os.path.join(sys.argv[1], "annotations", f"instances_{split}.json"), "w") as out:
        json.dump({"images": images, "annotations": objects, "categories": categories}, out)
END
}

# idx FOLDER: writes 96 + 32 images of 8 x 8 in 4 classes; in class c, quadrant c is bright and the rest is noise.
idx() {
    mkdir -p "$1"
    idx_pair "$1/train" 96
    idx_pair "$1/t10k" 32
}
unescape() { # "\\10\\3" to bytes
    local escapes
    IFS= read -r escapes
    printf '%b' "${escapes//\\/\\0}"
}
idx_pair() { # PREFIX COUNT
    awk -v count="$2" 'BEGIN {
        printf "\\0\\0\\10\\3\\0\\0\\0\\%o\\0\\0\\0\\10\\0\\0\\0\\10", count
        state = count
        for (i = 0; i < count; i++)
            for (y = 0; y < 8; y++)
                for (x = 0; x < 8; x++) {
                    state = (state * 1103 + 12345) % 65536
                    bright = int(y / 4) * 2 + int(x / 4) == i % 4
                    printf "\\%o", int(state / 512) + (bright ? 120 : 0)
                }
    }' | unescape >"$1-images-idx3-ubyte"
    awk -v count="$2" 'BEGIN {
        printf "\\0\\0\\10\\1\\0\\0\\0\\%o", count
        for (i = 0; i < count; i++)
            printf "\\%o", i % 4
    }' | unescape >"$1-labels-idx1-ubyte"
}
network='--model vit_tiny_patch16_224 --img-size 8 --patch-size 4 --in-chans 1 --num-classes 4 --embed-dim 16 --depth 1 --num-heads 2'
recipe='--batch-size 16 --opt adamw --lr 3e-3 --warmup-epochs 0 --no-aug --threads 2'

# tiny_recipe KEY:VALUE...: writes tiny.yaml, a recipe of a ViT for the images of idx, with these settings.
tiny_recipe() {
    {
        printf '%s\n' 'model: vit_tiny_patch16_224' 'img_size: 8' 'patch_size: 4' 'in_chans: 1' 'num_classes: 4' \
            'embed_dim: 16' 'depth: 2' 'num_heads: 2' 'batch_size: 16' 'opt: adamw' 'lr: 3.0e-3' 'warmup_epochs: 0' \
            'no_aug: true'
        printf '%s\n' "${@/:/: }"
    } >tiny.yaml
}

# train CODE NAME FLAG...: trains the network above on the images in data, into out/NAME; the exit status must be CODE.
train() {
    # shellcheck disable=SC2086
    run "$1" train data $network $recipe --output out --experiment "${@:2}"
}

# detector FILE [CLASSES]: writes a small detector of 5 or so many classes with the names of torchvision's file, and wide
# scores.
detector() {
    needs python3
    python3 - "$here/../goldens/detectors.txt" "$1" "${2:-5}" <<'END' || fail "detector $1"
import array, json, math, random, sys
header, data, draw = {}, b"", random.Random(1)
for line in open(sys.argv[1]):
    word, name, *sides = line.split()
    if word == "values":
        break
    if word != "tensor":
        continue
    shape = [int(side) for side in sides]
    if "box_predictor" in name:
        shape[0] = shape[0] // 6 * (int(sys.argv[3]) + 1)
    flat, count = len(shape) == 1, math.prod(shape)
    gain = flat and name.endswith(("weight", "running_var"))
    wide = 0.4 if flat else (16 if "cls_" in name else 4) / math.sqrt(count / shape[0])
    values = array.array("f", (gain + wide * (draw.random() - 0.5) for _ in range(count)))
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
    data += values.tobytes()
text = json.dumps(header).encode()
with open(sys.argv[2], "wb") as out:
    out.write(len(text).to_bytes(8, "little") + text + data)
END
}
