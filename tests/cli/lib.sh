# Sourced by the tests of the command: checks of its output, and a data set that trains in a second.
set -u
shopt -s lastpipe # so that a failure in `... | err_is` counts
if [ -z "${ATTSCOPE:-}" ]; then
    echo 'skipped: ATTSCOPE does not name the command'
    exit 77
fi
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset ATTSCOPE_CPU
failures=0

# Whether the command was built with sanitizers, which make everything several times slower.
sanitized() { [ -n "${ATT_SANITIZE:-}" ]; }

# Ends the test here, with this reason, if the command was built with sanitizers.
only_unsanitized() { # REASON
    sanitized || return 0
    echo "skipped: $1"
    [ $failures -eq 0 ]
    exit
}

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# run CODE ARGUMENT...: runs the command with its output in the files stdout and stderr; its exit status must be CODE.
run() {
    local code=$1 status=0
    shift
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
# value. Ends the test if there is no Python.
fill_tensors() {
    "${PYTHON:-python3}" - "$@" <<'END' || { echo 'skipped: no python3'; exit 77; }
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

finish() {
    [ $failures -eq 0 ] || exit 1
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
