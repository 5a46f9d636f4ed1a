#!/bin/bash
# A full disk (a real one, of a megabyte): each failure gives one message that names the file, existing files stay, and
# with free space the training is resumed and ends with the same bits.
if [ -z "${ATT_INSIDE:-}" ]; then
    if ! unshare -Urm true 2>/dev/null; then
        echo 'skipped: no file system of its own can be mounted here (unshare -Urm)'
        exit 77
    fi
    ATT_INSIDE=1 exec unshare -Urm "$0"
fi
. "$(dirname "$0")/../cli/lib.sh"
idx data
mkdir full
mount -t tmpfs -o size=1m none full || skip 'no tmpfs can be mounted here'
epochs=$(sanitized && echo 20 || echo 60)
fill() { dd if=/dev/zero of=full/filler bs=4096 status=none 2>/dev/null; }

# shellcheck disable=SC2086
run 0 train data $network $recipe --epochs $epochs --output out --experiment whole

# A training run on a full disk stops and loses nothing.
# shellcheck disable=SC2086
"$ATTSCOPE" train data $network $recipe --epochs $epochs --output full/out --experiment cut >stdout 2>stderr &
child=$!
until [ -e full/out/cut/checkpoint-1.safetensors ] || ! kill -0 $child 2>/dev/null; do sleep 0.01; done
kill -INT $child
wait $child
fill
cp -r full/out/cut before
run 1 train --resume full/out/cut/last.safetensors
err_has 'No space left on device'
[ "$(grep -c '^attscope: ' stderr)" -eq 1 ] || fail "$command_line: not one sentence: $(cat stderr)"
for file in last.safetensors model_best.safetensors; do
    cmp "before/$file" "full/out/cut/$file" || fail "a full disk changes $file"
done
[ ! -e full/out/cut/last.safetensors.tmp ] || fail 'a temporary file is left'
rm full/filler
run 0 train --resume full/out/cut/last.safetensors
cmp full/out/cut/last.safetensors out/whole/last.safetensors || fail 'weights differ from those without the full disk'
cmp full/out/cut/summary.csv out/whole/summary.csv || fail 'summary.csv differs from that without the full disk'

# A folder for timm keeps its old weights and config.json, also if the new network has none.
run 0 convert out/whole full/vit
cp -r full/vit vit
fill
run 1 convert out/whole full/vit
err_has 'full/vit/model.safetensors could not be written: No space left on device'
diff -r vit full/vit || fail 'a full disk changes a folder for timm'
run 1 convert out/whole full/vit --norm-eps 1e-12
err_has 'full/vit/config.json is not written: timm cannot build this network: norm_eps is 1e-12'
diff -r vit full/vit || fail 'a full disk changes a folder for timm'
# There is space for the weights, but not for config.json, too.
truncate -s -$(($(stat -c %s vit/model.safetensors) + 4096)) full/filler
run 1 convert out/whole full/vit
err_has 'full/vit/config.json could not be written: No space left on device'
diff -r vit full/vit || fail 'a full disk changes a folder for timm'
rm full/filler
run 0 convert out/whole full/vit
cmp vit/config.json full/vit/config.json || fail 'config.json differs from that without the full disk'
rm -r full/vit

# The folder of a new run cannot be created.
fill
# shellcheck disable=SC2086
run 1 train data $network $recipe --epochs 1 --output full/out --experiment new
err_has 'full/out/new'
err_has 'No space left on device'

# Files of results keep their old content.
rm full/filler
run 0 models 'vit_tiny*' --json full/models.json
run 0 validate data --checkpoint out/whole/last.safetensors --results-file full/results.csv --json full/results.json
mkdir kept
cp full/models.json full/results.* kept
fill
run 1 models --json full/models.json
err_has 'attscope: full/models.json could not be written: No space left on device'
run 1 validate data --checkpoint out/whole/last.safetensors --results-file full/results.csv
err_has 'attscope: full/results.csv could not be written: No space left on device'
run 1 predict out/whole/last.safetensors "$here/../goldens/images/422.jpg" --json full/models.json
err_has 'No space left on device'
run 1 measure out/whole/last.safetensors data --with nsi --raw full/zeta.npy --raw-arrays zeta
err_has 'raw output to full/zeta.npy needs 0.000768 MB, and its file system has 0 MB left'
for file in models.json results.csv results.json; do
    cmp "kept/$file" "full/$file" || fail "a full disk changes $file"
done
! ls full/*.tmp 2>/dev/null | grep . || fail 'a temporary file is left'

# A full device is reported too.
run 1 models --json /dev/full
err_has 'attscope: /dev/full could not be written: No space left on device'
umount full
finish
