#!/bin/bash
# Files written by attscope 0.1 (tools/goldens/files_of_0_1): every command opens them and gives the figures that
# attscope 0.1 gave.
. "$(dirname "$0")/lib.sh"
tar xzf "$here/../goldens/files_of_0_1.tar.gz" || exit 1

# numbers KEY FILE: prints the numbers under a key of a JSON file, also those in lists, one per line.
numbers() {
    awk -v key="\"$1\":" '
        $1 == key { list = $2 == "["; if (!list) print $2 }
        list && /^ *[]]/ { list = 0 }
        list && $1 != key { print $1 }' "$2" | tr -d ,
}

# agrees TOLERANCE FILE GOLDEN KEY...: checks that the numbers under each key equal those of the golden up to TOLERANCE
# times max(1, |number|). Other texts, such as null for NaN, must be equal.
agrees() {
    local tolerance=$1 file=$2 golden=$3 key
    shift 3
    for key in "$@"; do
        paste <(numbers "$key" "$file") <(numbers "$key" "$golden") >pairs
        awk -v tolerance="$tolerance" '
            function size(x) { return x < 0 ? -x : x }
            $1 + 0 == $1 && $2 + 0 == $2 { bad += !(size($1 - $2) <= tolerance * (size($2) > 1 ? size($2) : 1)); next }
            { bad += NF != 2 || $1 != $2 }
            END { exit bad > 0 || NR == 0 }' pairs || {
            fail "$command_line: $key differs from the figures of attscope 0.1 (found, expected):"
            sed 's/^/  /' pairs
        }
    done
}

# Measured: 1e-6 between the processor tiers (baseline, AVX2, AVX-512).
tolerance=1e-4

# --- weights: alone, without the files beside them, and in their folder
for name in vit residual step; do
    cp runs/$name/last.safetensors $name.safetensors
    for file in $name.safetensors runs/$name/last.safetensors; do
        run 0 validate data --checkpoint $file --json found.json
        agrees $tolerance found.json figures/$name.validate.json top1 top5 loss count param_count
        run 0 predict $file data/val --logits --json found.json
        agrees $tolerance found.json figures/$name.predict.json logits probability class
        [ "$(grep '"name":' found.json)" = "$(grep '"name":' figures/$name.predict.json)" ] ||
            fail "$command_line: other class names than expected"
        with=$(sed -n 's/^ *"name": "\([a-z]*\)".*/\1/p' figures/$name.measure.json | paste -sd,)
        run 0 measure $file data --with "$with" --samples 4 --output measured --experiment $name --json found.json
        sed -i '/"statistic": ".*gated"/,/}/d' found.json # this reading is newer
        agrees $tolerance found.json figures/$name.measure.json images mean deviation n
        rm -r measured
    done
    run 0 convert $name.safetensors $name.converted.safetensors
    run 0 predict $name.converted.safetensors data/val --logits --json found.json
    agrees $tolerance found.json figures/$name.predict.json logits
done
run 0 validate data --checkpoint vit.safetensors --use-ema --json found.json
agrees $tolerance found.json figures/vit_ema.validate.json top1 loss
run 0 predict vit.safetensors data/val --use-ema --logits --json found.json
agrees $tolerance found.json figures/vit_ema.predict.json logits
run 0 convert vit.safetensors averaged.safetensors --use-ema
for file in averaged converted; do
    run 0 predict $file.safetensors data/val --logits --json found.json
    agrees $tolerance found.json figures/converted.predict.json logits
    run 0 validate data --checkpoint $file.safetensors --json found.json
    agrees $tolerance found.json figures/converted.validate.json top1 loss
done

# --- class names
run 0 predict vit.safetensors data/val --labels runs/vit/classes.txt --logits --json found.json
agrees $tolerance found.json figures/vit.predict.json logits
[ "$(grep '"name":' found.json)" = "$(grep '"name":' figures/vit.predict.json)" ] || fail "$command_line: other names"
run 0 validate data --checkpoint converted.safetensors --class-map runs/vit/classes.txt --json found.json
agrees $tolerance found.json figures/converted.validate.json top1 loss

# --- inspect prints the options
inspected() { # FILE LINE...
    run 0 inspect "$1"
    shift
    for line in "$@"; do out_has "$line"; done
}
for file in vit.safetensors runs/vit/last.safetensors; do
    inspected $file 'network      vit_tiny_patch16_224' \
        'images       16 x 16 x 3' 'patch_size          4' 'embed_dim           16' 'depth               2' \
        'num_heads           2' 'num_classes         4' 'global_pool         token' 'class_token         true' \
        'modules             cb_s' 'parameters   5652' \
        'training     4 epochs and 0 batches, 8 updates, seed 42, with averaged weights' 'in epoch 4'
done
for file in residual.safetensors runs/residual/model_best.safetensors; do
    inspected $file 'network      resnet20' 'images       16 x 16 x 3' 'width            2' 'depth            14' \
        'num_classes      4' 'modules          se:ratio=2@after_branch:every:2' 'training     4 epochs'
done
for file in step.safetensors runs/step/last.safetensors; do
    inspected $file 'network      resnet29' 'images       16 x 16 x 3' 'width            2' 'depth            11' \
        'num_classes      4' 'modules          step:adaptor=affine,input=x_t' 'training     4 epochs'
done
inspected converted.safetensors 'network      vit_tiny_patch16_224' 'modules             cb_s'

# --- trainings: their options repeat the run, their weights start a new one, and they cannot be resumed
for name in vit residual step; do
    run 0 train -c runs/$name/args.yaml --experiment $name-again
    tail -n 1 runs/$name/summary.csv | tr , '\n' >golden.txt
    # A training step rounds differently on each processor tier. Measured: 5e-7.
    tail -n 1 runs/$name-again/summary.csv | tr , '\n' | paste - golden.txt |
        awk '{ d = $1 - $2; bad += !(d * d <= 1e-6) } END { exit bad > 0 || NR < 5 }' ||
        fail "$command_line: another training: $(tail -n 1 runs/$name-again/summary.csv) is not $(tail -n 1 runs/$name/summary.csv)"
    cp -r runs/$name before
    run 1 train --resume runs/$name/last.safetensors
    err_has "attscope: runs/$name/last.safetensors holds a training by attscope 0.1, which attscope 0.2 cannot resume; --initial-checkpoint runs/$name/last.safetensors starts a new training from its weights"
    [ "$(grep -c -e --initial-checkpoint stderr)" = 1 ] || fail "$command_line: more than one sentence: $(cat stderr)"
    diff -r before runs/$name || fail "$command_line: changed the run's folder"
    rm -r before
    run 0 train data --initial-checkpoint runs/$name/last.safetensors --epochs 0 --output runs --experiment $name-from
    run 0 predict runs/$name-from/last.safetensors data/val --logits --json found.json
    agrees $tolerance found.json figures/$name.predict.json logits
done

# --- records: a new measurement is appended, the database takes new runs, the report shows all
for name in vit residual step; do
    measured=$(wc -l <runs/$name/measure.jsonl)
    run 0 measure runs/$name/last.safetensors data --with accuracy
    [ ! -e runs/$name/measure.previous.jsonl ] || fail "$command_line: replaces the figures of attscope 0.1"
    [ "$(wc -l <runs/$name/measure.jsonl)" -gt "$measured" ] || fail "$command_line: the figures are not recorded"
    grep -q '"instrument":"nsi"' runs/$name/measure.jsonl || fail "$command_line: figures of attscope 0.1 are gone"
done
run 0 report runs/vit runs/residual runs/step sweeps/tiny -o page.html
out_has 'page.html: 7 runs'
! grep -q 'warning' stderr || fail "$command_line: $(cat stderr)"
for caption in '"name":"val/apple/0.png","caption":"apple, recognised (37.7 %). Next: cat 27.8 %, door 17.9 %, boat 16.7 %."' \
    '"name":"val/apple/2.png","caption":"apple, recognised (37.7 %). Next: cat 27.7 %, door 17.9 %, boat 16.7 %."'; do
    grep -qF "$caption" page.html || fail "$command_line: the page lacks $caption"
done
run 0 measure runs/vit/last.safetensors data --with entropy --maps 1
if command -v python3 >/dev/null && python3 -c 'import sqlite3' 2>/dev/null; then
    python3 - >stdout <<'PY'
import sqlite3
database = sqlite3.connect("runs/runs.sqlite")
for table in "runs", "scalars", "measurements":
    query = f"SELECT folder, count(*) FROM {table}" + ("" if table == "runs" else " JOIN runs ON run = id")
    print(table, *(f"{folder}:{count}" for folder, count in database.execute(query + " GROUP BY folder")))
PY
    for folder in vit residual step vit-again residual-again step-again; do
        [ "$(grep -o " $folder:[1-9]" stdout | wc -l)" -ge 2 ] || fail "runs.sqlite lacks $folder: $(cat stdout)"
    done
else
    echo 'skipped: reading runs.sqlite needs python3 with sqlite3'
fi

# --- a finished sweep is not repeated, is measured again if figures are missing, and takes new runs
tiny=(sweep recipe.yaml data --vary broadcast=none,cb_s --output sweeps --experiment tiny)
# Correlations are not compared: attscope 0.1 permuted runs, and now whole settings are permuted.
sed '/^  "correlations": \[/,$d' sweeps/tiny/sweep.json >golden.json
run 0 "${tiny[@]}" --seeds 1,2
[ "$(grep -c ': done already$' stderr)" = 4 ] || fail "$command_line: runs were repeated"
sed '/^  "differences": \[/,$d' sweeps/tiny/sweep.json >found.json
agrees 1e-9 found.json golden.json mean deviation n parameters
rm sweeps/tiny/broadcast=cb_s-seed1/measure.jsonl
run 0 "${tiny[@]}" --seeds 1,2
[ "$(grep -c ': done already$' stderr)" = 3 ] || fail "$command_line: more than the lost measurement was done again"
sed '/^  "differences": \[/,$d; /gated"/,/}/d' sweeps/tiny/sweep.json >found.json
agrees $tolerance found.json golden.json mean deviation n
run 0 "${tiny[@]}" --seeds 1,2,3
[ "$(grep -c ': done already$' stderr)" = 4 ] || fail "$command_line: runs of attscope 0.1 were repeated"
run 0 report sweeps/tiny -o sweep.html
out_has 'sweep.html: 6 runs'

# A run of attscope 0.1 that was stopped during its training fails alone, and starts again once its folder is removed.
stopped=sweeps/tiny/broadcast=none-seed2
sed -i '$d' $stopped/metrics.jsonl && rm $stopped/measure.jsonl
run 1 "${tiny[@]}" --seeds 1,2
err_has "attscope: $stopped/last.safetensors holds a training by attscope 0.1, which attscope 0.2 cannot resume"
err_has '1 of 4 runs failed; the same command retries them, from the beginning if their folder is removed:'
rm -r $stopped
run 0 "${tiny[@]}" --seeds 1,2
[ "$(grep -c ': done already$' stderr)" = 3 ] || fail "$command_line: more than the removed run was done again"
finish
