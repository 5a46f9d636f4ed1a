#!/bin/bash
# A limit on the address space (ulimit -v), as batch systems set it: at every limit the command either succeeds or says
# in one sentence that it is out of memory. With large stacks (ulimit -s), only some of the loader threads may fit.
. "$(dirname "$0")/../cli/lib.sh"
only_unsanitized 'the address sanitizer reserves more address space than any limit'
idx data
# shellcheck disable=SC2086
run 0 train data $network $recipe --epochs 1 --output out --experiment made

# limited KIB ARGUMENT...: prints "few" if the command succeeds with fewer loader threads than asked for, else its exit
# status. Below about 125 MB, the system's loader refuses to start the command, with status 127.
limited() {
    local kib=$1 status=0
    shift
    command_line="ulimit -v $kib -s 32768; attscope $*"
    (ulimit -v "$kib" -s 32768; exec "$ATTSCOPE" "$@") >stdout 2>stderr || status=$?
    [ $status -le 1 ] || [ $status -eq 127 ] || fail "$command_line: exit status $status: $(cat stderr)" >&2
    if [ $status -eq 1 ]; then
        [ "$(grep -c '^attscope: ' stderr)" -eq 1 ] && grep -q '^attscope: .*out of memory' stderr ||
            fail "$command_line: not one sentence about memory: $(cat stderr)" >&2
    fi
    if grep -q 'images are loaded by [1-3] of 4 threads: out of memory: the system refused 32.0 MiB' stderr; then
        status=few
    fi
    echo $status
}

for ((kib = 125000; kib <= 450000; kib += 25000)); do
    limited $kib validate data --checkpoint out/made/last.safetensors --threads 2 --workers 4
    limited $kib predict out/made/last.safetensors "$here/../goldens/images/grey.png" --threads 1
done >outcomes
for outcome in 0 1 few; do
    grep -qx "$outcome" outcomes || fail "no limit with the outcome \"$outcome\": $(tr '\n' ' ' <outcomes)"
done
[ "$(tail -n 1 outcomes)" = 0 ] || fail "the largest limit is too small: $(tr '\n' ' ' <outcomes)"
finish
