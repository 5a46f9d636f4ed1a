#!/bin/bash
# The folder of a run, received from somebody else, whose files are links to the user's own files: no command writes to
# their targets. Links that the user names are followed.
. "$(dirname "$0")/../cli/lib.sh"
too_long_sanitized
idx data
# shellcheck disable=SC2086
run 0 train data $network $recipe --epochs 2 --output out --experiment theirs
mv out given
printf 'mine' >saved
cp saved precious
untouched() { cmp -s saved precious || fail "$command_line: wrote to the target of $1"; cp saved precious; }

# linked NAME STATUS ARGUMENT...: runs the command on a copy of the folder in which NAME is a link.
linked() {
    local name=$1 status=$2
    shift 2
    rm -rf out
    cp -r given out
    cp "given/$name" saved 2>/dev/null || printf 'mine' >saved
    cp saved precious
    ln -sf "$work/precious" "out/$name"
    run "$status" "$@"
    untouched "$name"
}

resume='train --resume out/theirs/checkpoint-0.safetensors'
folder=theirs
for name in metrics.jsonl summary.csv events.out.tfevents.attscope; do
    # shellcheck disable=SC2086
    linked $folder/$name 1 $resume
    err_has "out/$folder/$name is a symbolic link, which is not followed for writing: remove it"
    [ "$(grep -c '^attscope: ' stderr)" -eq 1 ] || fail "$command_line: not one sentence: $(cat stderr)"
done
# shellcheck disable=SC2086
linked runs.sqlite 1 $resume
err_has 'out/runs.sqlite is a symbolic link, which is not followed for writing; move it away'
for name in runs.sqlite-wal runs.sqlite-shm runs.sqlite-journal; do
    # shellcheck disable=SC2086
    rm -rf out && cp -r given out && ln -sf "$work/precious" out/$name
    # shellcheck disable=SC2086
    "$ATTSCOPE" $resume >/dev/null 2>&1
    untouched $name
done

# A link in place of the folder for timm.
rm -rf out && cp -r given out && rm -r out/theirs/timm && mkdir mine && cp saved mine/model.safetensors
ln -s "$work/mine" out/theirs/timm
# shellcheck disable=SC2086
run 1 $resume
err_has 'out/theirs/timm is a symbolic link; the network is not written there'
cmp -s saved mine/model.safetensors && [ ! -e mine/config.json ] || fail "$command_line: wrote to the target of timm"

# Pipes in place of the database's files: SQLite would wait for ever for the other end.
for name in runs.sqlite runs.sqlite-wal runs.sqlite-shm runs.sqlite-journal; do
    rm -rf out && cp -r given out && rm -f out/$name && mkfifo out/$name
    # shellcheck disable=SC2086
    run 1 $resume
    err_has "out/$name is not a regular file; move it away, and attscope creates a new one"
done
[ "$(grep -c '^attscope: ' stderr)" -eq 1 ] || fail "$command_line: not one sentence: $(cat stderr)"
mkfifo pipe.bin
run 1 measure given/theirs/last.safetensors pipe.bin --with entropy --threads 1
err_has 'pipe.bin is neither a folder nor a file'

# Hard links are not written to either.
for name in metrics.jsonl summary.csv events.out.tfevents.attscope; do
    rm -rf out
    cp -r given out
    cp "given/$folder/$name" saved
    cp saved precious
    ln -f precious "out/$folder/$name"
    # shellcheck disable=SC2086
    run 1 $resume
    err_has "out/$folder/$name has 2 names (hard links)"
    [ "$(grep -c '^attscope: ' stderr)" -eq 1 ] || fail "$command_line: not one sentence: $(cat stderr)"
    cmp -s saved precious || fail "$command_line: wrote to a hard link of $name"
    rm precious
done

# Files that are replaced in one step replace the link.
for name in args.yaml classes.txt last.safetensors model_best.safetensors args.yaml.tmp classes.txt.tmp \
    last.safetensors.tmp model_best.safetensors.tmp timm/model.safetensors timm/config.json timm/config.json.tmp; do
    # shellcheck disable=SC2086
    linked $folder/$name 0 $resume
    [ ! -L "out/$folder/$name" ] || fail "$command_line: $name is still a link"
done
for name in measure.jsonl.tmp measure.previous.jsonl maps.safetensors maps.safetensors.tmp; do
    linked $folder/$name 0 measure out/theirs/last.safetensors data --with entropy --maps 1 --threads 1
done

# JSON files, CSV files and reports that the user names.
for file in figures.json results.csv; do ln -s "$work/precious" "$file.tmp"; done
ln -s "$work/precious" page.html.tmp
run 0 validate data --checkpoint given/theirs/last.safetensors --json figures.json --results-file results.csv
untouched 'the temporary file'
run 0 report given/theirs -o page.html
untouched 'the temporary file'
ln -s named.json link.json
run 0 models 'vit_tiny*' --json link.json
[ -L link.json ] && grep -q vit_tiny named.json || fail "$command_line: a link named by the user is not followed"
touch named.html
ln -s named.html link.html
run 0 report given/theirs -o link.html
[ -L link.html ] && grep -q '</html>' named.html || fail "$command_line: a link named by the user is not followed"
run 0 models 'vit_tiny*' --json /dev/stdout
out_has vit_tiny
[ "$("$ATTSCOPE" models 'vit_tiny*' --json /dev/stdout | grep -c '"vit_tiny_patch16_224"')" -ge 1 ] ||
    fail 'nothing was written to the pipe'
finish
