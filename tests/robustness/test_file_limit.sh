#!/bin/bash
# A limit on file sizes (ulimit -f), as batch systems set it: one message names the file, and existing files stay.
# Without special handling, a signal would end the process.
. "$(dirname "$0")/../cli/lib.sh"
idx data
# shellcheck disable=SC2086
run 0 train data $network $recipe --epochs 1 --output out --experiment whole
checkpoint=out/whole/last.safetensors

# limited KIB ARGUMENT...: the command must fail under the limit, with one message about a file that is too large.
limited() {
    local kib=$1 status=0
    shift
    command_line="ulimit -f $kib; attscope $*"
    (ulimit -f "$kib"; exec "$ATTSCOPE" "$@") >stdout 2>stderr || status=$?
    [ $status -eq 1 ] || fail "$command_line: exit status $status, expected 1"
    err_has 'File too large'
    [ "$(grep -c '^attscope: ' stderr)" -eq 1 ] || fail "$command_line: not one sentence: $(cat stderr)"
    ! find . -name '*.tmp' | grep . || fail "$command_line: a temporary file is left"
}

[ "$(wc -c <$checkpoint)" -gt 40960 ] || fail 'the checkpoint is too small for this test'
# shellcheck disable=SC2086
limited 40 train data $network $recipe --epochs 1 --output out --experiment cut
err_has 'out/cut/last.safetensors could not be written: File too large'
limited 1 convert $checkpoint small.safetensors
[ ! -e small.safetensors ] || fail "$command_line: a partial file is left"
limited 1 report out/whole -o page.html
[ ! -e page.html ] || fail "$command_line: a partial file is left"
printf 'before' >models.json
limited 1 models --json models.json
[ "$(cat models.json)" = before ] || fail "$command_line: changed existing files"
run 0 measure $checkpoint data --with entropy --threads 1
cp -r out/whole before
limited 1 measure $checkpoint data --with entropy --maps 4 --threads 1
cmp before/last.safetensors $checkpoint || fail "$command_line: changed the checkpoint"
finish
