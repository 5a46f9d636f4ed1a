#!/bin/bash
# A sweep over seeds and settings: its runs, repeated calls, tables; stopped, killed and failing runs.
. "$(dirname "$0")/lib.sh"
idx data
tiny_recipe threads:2 epochs:2

# --- a wrong sweep is refused before anything runs
usage 'sweep needs RECIPE [DATA]; see attscope sweep --help' sweep
usage 'unknown option --depht; did you mean --depth?' sweep tiny.yaml data --vary depht=1,2
usage '--modules: there is no "cbs"; did you mean cb?' sweep tiny.yaml data --vary modules=none,cbs
usage '--depth: "0" is not a whole number from 1 to 1024' sweep tiny.yaml data --vary depth=1,0
usage '--vary: "depth" is not of the form FLAG=VALUE' sweep tiny.yaml data --vary depth
usage '--vary: depth is varied twice; one list holds all its values' sweep tiny.yaml data --vary depth=1 --vary depth=2
usage '--vary: a sweep sets --seed for each run (see --seeds, --output, --experiment and DATA)' \
    sweep tiny.yaml data --vary seed=1,2
usage '--set: a sweep sets --output for each run (see --seeds, --output, --experiment and DATA)' \
    sweep tiny.yaml data --set output=x
usage '--set: all runs of a sweep have the data set DATA, the operand after the recipe; leave data_dir out' \
    sweep tiny.yaml data --set data_dir=x
usage '--vary: two settings would share the folder depth=1-seed1' sweep tiny.yaml data --vary depth=1,1
usage '--seeds: "1,x" is not a list of whole numbers such as 1,2,3' sweep tiny.yaml data --seeds 1,x
usage '--seeds: 2 is named twice' sweep tiny.yaml data --seeds 2,2
usage '--measure: there is no instrument "nsy"; did you mean "nsi"?' sweep tiny.yaml data --measure accuracy,nsy
usage 'sweep needs DATA: tiny.yaml names none' sweep tiny.yaml
usage 'DATA of a sweep is an empty text; expected the path of a data set' sweep tiny.yaml ''
usage '--correlate: "tns/mu unit" is not of the form X,Y with two figures' sweep tiny.yaml data --correlate 'tns/mu unit'
usage '--correlate: "top1" is not a figure; expected INSTRUMENT/STATISTIC or INSTRUMENT/NODE/STATISTIC' \
    sweep tiny.yaml data --correlate 'tns/mu unit,top1'
usage '--correlate: there is no instrument "tnss"; did you mean "tns"?' \
    sweep tiny.yaml data --correlate 'tnss/mu unit,accuracy/top1'
usage '--correlate: tns is not measured: --measure is accuracy' \
    sweep tiny.yaml data --measure accuracy --correlate 'tns/mu unit,accuracy/top1'
usage '--epochs is an option of attscope train: --set epochs=VALUE sets it for all runs, --vary epochs=LIST makes a setting of each value' \
    sweep tiny.yaml data --epochs 1
usage 'unknown option --seed; did you mean --seeds?' sweep tiny.yaml data --seed 1
run 1 sweep absent.yaml data
usage 'experiment: "../x" is a path; expected the name of a folder in output' sweep tiny.yaml data --experiment ../x
echo 'dept: 3' >wrong.yaml
usage 'wrong.yaml, line 1: unknown option dept; did you mean depth?' sweep wrong.yaml data
run 1 sweep tiny.yaml nowhere --vary modules=none,cb_s
err_has 'nowhere'
! grep -q 'of the setting' stderr || fail "the message names a setting although all settings share the data: $(cat stderr)"
run 1 sweep tiny.yaml nowhere
err_is <<<'attscope: nowhere does not exist'
run 2 sweep tiny.yaml data --vary train-split=train,absent
err_has 'of the setting train-split=absent; no run was started'
run 2 sweep tiny.yaml data --vary depth=2,1 --measure accuracy,gate
err_has 'instrument "gate" has nothing to observe'
err_has 'of the setting depth=2, measured with --measure accuracy,gate; no run was started'
cat >short.yaml <<'YAML'
model: resnet20
img_size: 8
in_chans: 1
num_classes: 4
depth: 8
width: 4
batch_size: 16
no_aug: true
threads: 2
epochs: 1
YAML
# The settings in a list with commas are printed first.
run 1 sweep short.yaml nowhere --vary 'modules=none,se,se@after_branch:layer3:0,se@after_branch:layer3:0\,1' --seeds 4,5
head -n 5 stderr >stdout && same stdout <<'TEXT'
4 settings with 2 seeds each (a comma separates the values of --vary; write \, for a comma within a value):
  modules=none
  modules=se
  modules=se@after_branch:layer3:0
  modules=se@after_branch:layer3:0,1
TEXT
run 2 sweep short.yaml data --measure tns
err_has 'instrument "tns" has nothing to observe'
run 2 sweep short.yaml data --vary modules=none,se --measure gate,accuracy,tns
err_has 'instrument "tns" has nothing to observe'
run 2 sweep short.yaml data --vary modules=none,se --measure gate
err_has 'of the setting modules=none, measured with --measure gate; no run was started'
run 2 sweep tiny.yaml data --measure nsi:per=blok
! grep -q '^epoch' stderr || fail 'a refused sweep trained'
[ ! -e output ] || fail 'a refused sweep made a folder'

# --- StepNet's flags complete each setting's module
sed 's/^depth: 8/depth: 8\nmodules: step/; s/^width: 4/width: 16/' short.yaml >step.yaml
usage '--adaptor dct is an option of --modules step, but --modules is none' \
    sweep step.yaml data --vary modules=none,step --set adaptor=dct
usage '--adaptor: there is no "dtc"; did you mean dct?' sweep step.yaml data --vary adaptor=dct,dtc
run 0 sweep step.yaml data --vary adaptor=affine,dct --set adaptor_input=x_t --seeds 1 --output out --measure accuracy
for adaptor in affine dct; do
    for file in recipe args; do
        grep -qxF "modules: step:adaptor=$adaptor,input=x_t" out/step/adaptor=$adaptor-seed1/$file.yaml ||
            fail "adaptor=$adaptor: $file.yaml does not record it"
    done
done
run 0 sweep step.yaml data --vary adaptor=affine,dct --set adaptor_input=x_t --seeds 1 --output out --measure accuracy
[ "$(grep -c ': done already$' stderr)" = 2 ] || fail 'runs with an adaptor were repeated'

only_unsanitized 'whole sweeps of the command take a minute under sanitizers; sweep/ tests run the same functions'

# --- two settings with two seeds make a table and a folder
run 0 sweep tiny.yaml data --vary modules=none,cb_s --seeds 1,2 --output out --json result.json
[ "$(grep -c 'trains .* parameters, ' stderr)" = 2 ] || fail "notes that runs share are repeated: $(cat stderr)"
# Seconds with a small deviation have many decimals.
grep -qE '^  setting       runs, n  seeds  parameters +seconds of training$' stdout || fail "$command_line: headings"
! grep -q 'last evaluation' stdout || fail 'the table has accuracy twice'
out_has '  modules=none        2    1,2        7028  '
out_has '  modules=cb_s        2    1,2        7060  '
# Numbers are right-aligned: each ends where its heading ends and the next column begins.
table=$(awk '/^accuracy: / { on = 1 } / best ¹ |difference from / { on = 0 } on && /modules=|^  (top1|top5|loss) /' stdout)
[ "$(wc -l <<<"$table")" = 4 ] || fail "accuracy's table: $table"
[ "$(sed 's/±/+/g; s/¹/1/g; s/²/2/g' <<<"$table" | awk '{ print length }' | sort -u | wc -l)" = 1 ] || fail "columns are not aligned: $table"
grep -qE '^  top1 +[0-9.]+ ± [0-9.]+ *[¹²]? +[0-9.]+ ± [0-9.]+ *[¹²]?$' <<<"$table" || fail 'no accuracy with its deviation'
out_has '  difference from modules=none, mean [95 % interval] over common seeds:'
grep -qE '^  blocks.0.attn +[+-][0-9.]+ \[-?[0-9.]+, -?[0-9.]+\]$' stdout || fail 'no difference of entropy with its interval'
grep -qE '^  loss: best ¹ modules=.*, second ² modules=.*, difference -[0-9.]+ \[.*\], n 2: the interval (separates|does not separate) them$' stdout ||
    fail 'no sentence about the best setting'
# A deviation has two digits, and its mean has as many decimals; the report of the same runs shows the same.
grep -E ' ± ' stdout | grep -oE '[0-9.]+ ± [0-9.]+' | grep -v ' ± 0$' | awk '{
    digits = $3; sub(/^0*[.]?0*/, "", digits); gsub(/[.]/, "", digits)
    mean = $1; deviation = $3
    if (!sub(/.*[.]/, "", mean)) mean = ""
    if (!sub(/.*[.]/, "", deviation)) deviation = ""
    if (length(digits) != 2 || length(mean) != length(deviation)) { print; bad = 1 }
} END { exit bad || NR < 10 }' >wrong || fail "wrong number of digits: $(cat wrong)"
! grep -q 'without' stderr || fail 'a note reports missing gates although no network has one'
[ "$(grep -c '^  blocks.0.add1 \* ' stdout)" = 6 ] || fail 'no NSI in all readings, marked as the first step'
out_has '  * the first step of its stage, which TNS leaves out'
for line in 'zeta*/mu attention' 'zeta* unit' 'mu unit' 'tns attention' 'TNS = zeta* (zeta* / mu - 1)' 'ICCV 2023' '(n - 1)' \
    'C are concordant, D discordant' 'Holm' 'means of settings' 'all runs: with 2 settings no order of the figures has p below'; do out_has "$line"; done
grep -qE '^  all runs +tns/tns attention +4 runs ' stdout || fail 'no correlation over all runs'
grep -qE '^  modules=cb_s +tns/tns unit +2 runs ' stdout || fail 'no correlation within a setting'
[ "$(ls out/tiny | tr '\n' ' ')" = 'modules=cb_s-seed1 modules=cb_s-seed2 modules=none-seed1 modules=none-seed2 runs.sqlite sweep.json ' ] ||
    fail "files of a sweep: $(ls out/tiny | tr '\n' ' ')"
cmp out/tiny/sweep.json result.json || fail '--json and sweep.json differ'
[ "$(grep -c '"excluded_from_tns": true' result.json)" = 6 ] || fail 'first steps are not marked in JSON'
[ "$(grep -c '"status": "measured"' result.json)" = 4 ] || fail 'result.json does not have four measured runs'
grep -q '"samples":\[' out/tiny/modules=cb_s-seed2/measure.jsonl || fail 'no NSI of single samples'

# A run gives the same result as attscope train.
run 0 train data --config tiny.yaml --seed 2 --modules cb_s --output out --experiment alone
cmp out/alone/last.safetensors out/tiny/modules=cb_s-seed2/last.safetensors || fail 'a run and attscope train give different weights'

# A finished run is not repeated. More instruments need no training. Another seed is added.
cp -rp out/tiny before
run 0 sweep tiny.yaml data --vary modules=none,cb_s --seeds 1,2 --output out
[ "$(grep -c ': done already$' stderr)" = 4 ] || fail 'runs were repeated'
diff -r before out/tiny || fail 'repeating a finished sweep changed its folder'
run 0 sweep tiny.yaml data --vary modules=none,cb_s --seeds 1,2,3 --output out --measure accuracy,tns,entropy --json -
[ "$(grep -c '^epoch 2/2' stderr)" = 2 ] || fail 'not exactly the two new runs were trained'
out_has '"instrument": "entropy"'
[ "$(grep -c '"status": "measured"' stdout)" = 6 ] || fail 'the output does not have six measured runs'

# Any two figures can be correlated without a training run; the report of the folder shows the same correlation.
run 0 sweep tiny.yaml data --vary modules=none,cb_s --seeds 1,2,3 --output out --measure accuracy,tns,entropy \
    --correlate entropy/blocks.1.attn/mean,accuracy/loss --correlate 'tns/zeta*/mu unit,accuracy/loss'
[ "$(grep -c ': done already$' stderr)" = 6 ] || fail "$command_line: runs were repeated"
[ "$(grep -c '^  y: ' stdout)" = 1 ] || fail "$command_line: tables of correlations: $(cat stdout)"
out_has '  y: accuracy/loss'
grep -oE 'entropy/blocks.1.attn/mean +6 runs .*' stdout >from_sweep
grep -qE '^  all runs +entropy/blocks.1.attn/mean +6 runs ' stdout || fail 'no correlation of a layer'
grep -qE '^  modules=none +tns/zeta\*/mu unit +3 runs ' stdout || fail 'no correlation of ratios'
run 0 report out/tiny -o asked.html
grep -q '"correlations":\[{"x":"entropy/blocks.1.attn/mean","y":"accuracy/loss","setting":null,"model":null,"n":6' asked.html ||
    fail 'the report correlates other figures'
run 1 sweep tiny.yaml data --vary modules=none,cb_s --seeds 1,2,3 --output out --measure accuracy,tns,entropy \
    --correlate entropy/blocks.7.attn/mean,accuracy/loss
err_has 'attscope: --correlate: no run has a figure "entropy/blocks.7.attn/mean", but for example "entropy/blocks.0.attn/mean"; out/tiny/sweep.json lists all names'

# The database of the sweep has the same runs and settings, hence the same correlations.
run 0 correlate out/tiny --correlate entropy/blocks.1.attn/mean,accuracy/loss
grep -qE '6 runs of 2 settings, [0-9]+ images$' stdout || fail "runs of the database: $(head -1 stdout)"
[ "$(grep -c ' (3 runs)$' stdout)" = 2 ] || fail "settings of the database: $(head -4 stdout)"
grep -qE '^  all runs +entropy/blocks.1.attn/mean +6 runs ' stdout || fail 'no correlation over the database'
grep -oE 'entropy/blocks.1.attn/mean +6 runs .*' stdout >from_database
cmp from_sweep from_database || fail "the database and the sweep differ: $(cat from_sweep from_database)"
run 0 correlate out/tiny --json -
[ "$(grep -c '"data"' stdout)" = 1 ] || fail 'not one set of images in JSON'
run 1 correlate out/tiny --runs 'nothing*'
err_has 'attscope: out/tiny/runs.sqlite has no measured runs that match nothing*'
run 1 correlate nowhere
err_has 'attscope: nowhere: there is no such database'
run 2 correlate out/tiny --correlate accuraci/top1,tns/tns
err_has 'did you mean "accuracy"?'

run 0 correlate out/tiny --runs 'modules=none*' --correlate entropy/blocks.1.attn/mean,accuracy/loss
out_has '  all runs: no test: only 1 setting.'

# The table shows only what was measured.
run 0 sweep tiny.yaml data --vary modules=none,cb_s --seeds 1 --set epochs=1 --measure accuracy,entropy --output out \
    --experiment entropy
grep -qE '^  blocks.1.attn +[0-9.]+ +[0-9.]+$' stdout || fail "$command_line: no entropy: $(cat stdout)"
! grep -qiE 'tns|not in this table' stdout || fail "$command_line: the table has figures that were not measured: $(cat stdout)"
mkdir apart
cp -r out/entropy apart
run 0 correlate apart/entropy
out_has 'No run has both tns and accuracy, which are correlated by default: measure with --with tns,accuracy.'

# Modules are compared with one row per block, in the network's order; other figures are in sweep.json only.
run 0 sweep short.yaml data --seeds 1 --measure all --output out --experiment gates \
    --vary modules=se:ratio=4@after_branch:layer2:all,se:ratio=4,step@after_branch:layer2:all,step
gates=$(awk '/^[a-z_]+: / { on = /^gate: / } on && /^  layer/' stdout)
[ "$(awk '{ print $1 }' <<<"$gates" | tr '\n' ' ')" = 'layer1.0 layer2.0 layer3.0 ' ] || fail "rows of gates: $gates"
grep -qE '^  layer1.0 +- +0\.[0-9]+ +- +0\.[0-9]+ *$' <<<"$gates" || fail "gates of one block: $gates"
grep -qE '^  layer2.0( +0\.[0-9]+){4} *$' <<<"$gates" || fail "gates of two modules: $gates"
! grep -qE '^  (quantile|median)' stdout || fail 'the table has more than a summary'
out_has 'not in this table: gate (all but the mean). out/gates/sweep.json has all figures; attscope report out/gates draws them.'
grep -q 'quantile 0.9' out/gates/sweep.json || fail 'sweep.json leaves gates out'

# Without --measure it measures what the columns need, if a network of the sweep has it.
run 0 sweep short.yaml data --vary modules=none,se --seeds 1 --output out --experiment default
err_has 'modules=none is measured without gate, which has nothing to observe there'
! grep -q 'without.*tns' stderr || fail "a note reports missing tns although no network has it: $(cat stderr)"
grep -qE '^  layer1.0 +- +0\.[0-9]+' stdout || fail "$command_line: no gates: $(cat stdout)"
grep -q '"measure": "accuracy,entropy,distance,nsi,tns,gate"' out/default/sweep.json || fail 'sweep.json names other instruments'
grep -q '"with":"accuracy,nsi,gate"' out/default/modules=se-seed1/measure.jsonl || fail 'other instruments for se'
grep -q '"with":"accuracy,entropy,distance,nsi,tns"' out/tiny/modules=none-seed1/measure.jsonl ||
    fail 'other instruments for a vision transformer'
run 0 sweep short.yaml data --vary modules=none,se --seeds 1 --output out --experiment default
[ "$(grep -c ': done already$' stderr)" = 2 ] || fail "$command_line: runs were repeated"

# If the classes of the measured images are not the network's, there is no accuracy, and the sweep is refused before the
# training.
for folder in train/cat train/dog val/cat val/dog test/bird; do
    mkdir -p "folders/$folder" && for i in 1 2 3 4; do cp "$here/../goldens/images/420.jpg" "folders/$folder/$i.jpg"; done
done
sed '/^num_classes/d; s/^batch_size.*/batch_size: 4/' short.yaml >pets.yaml
pets='--seeds 1 --output out --experiment pets'
for measure in accuracy,nsi nsi,accuracy; do
    # shellcheck disable=SC2086
    run 1 sweep pets.yaml folders $pets --measure $measure
    err_has 'the network has 2 classes, the data 1, numbered by their sorted names, so labels would not match'
    [ ! -e out/pets ] || fail 'a refused sweep made a folder'
done
for measure in '' '--measure all'; do
    for again in first again; do
        # shellcheck disable=SC2086
        run 0 sweep pets.yaml folders $pets $measure
        err_has 'pets is measured without accuracy: the network has 2 classes, the images 1'
        ! grep -q '^accuracy' stdout || fail "$command_line: an accuracy of other classes"
        grep -qE '  last evaluation$' stdout && grep -qE '[0-9] % top-1$' stdout || fail "$command_line: no score"
    done
    err_has ': done already'
done
mv folders/test/bird folders/test/dog # the labels are those of the training
for again in first again; do
    run 0 sweep pets.yaml folders --seeds 1 --output out --experiment dogs --measure accuracy,nsi
    out_has 'accuracy: how often'
done
err_has ': done already'

# Equivalent settings run once: defaults and places can be written in several ways. Names of folders have no colons; tables do.
third=@after_branch:layer3:all
run 0 sweep short.yaml data --vary modules=none,se$third,se,se@after_branch:2,se:ratio=16,se:ratio=16$third --seeds 1 \
    --measure accuracy --output out --experiment once
err_has "modules=se@after_branch:2 is the same setting as modules=se$third; it runs once"
err_has "modules=se:ratio=16 is the same setting as modules=se; it runs once"
err_has "modules=se:ratio=16$third is the same setting as modules=se$third; it runs once"
[ "$(grep -c 'it runs once$' stderr)" = 3 ] || fail "other settings taken once: $(cat stderr)"
[ "$(awk '/^$/ { exit } NR > 1 { print $1 == "[" NR - 1 "]" ? $2 : $1 }' stdout | tr '\n' ' ' | sed 's/ $//')" = \
    "modules=none modules=se$third modules=se" ] ||
    fail "$command_line: unexpected settings: $(cat stdout)"
[ "$(cd out/once && echo *-seed1)" = \
    'modules=none-seed1 modules=se-seed1 modules=se_after_branch_layer3_all-seed1' ] ||
    fail "folders of settings taken once: $(ls out/once)"
run 0 sweep tiny.yaml data --vary modules=cb_s,cb_s:init=0.5 --vary lr=0.003,3e-3 --seeds 1 --set epochs=1 \
    --measure accuracy --output out --experiment written
[ "$(grep -c 'it runs once$' stderr)" = 2 ] || fail "equivalent settings were not recognised: $(cat stderr)"
! grep -q '^modules=cb_s:init=0.5,lr=0.003 is' stderr || fail 'a module with another initial value counts as the same'
# Settings that differ in a second module, or in its options, are different.
run 1 sweep tiny.yaml nowhere --seeds 1 \
    --vary modules=cb_s,cb_s+cb@after_attn,cb_s+cb_s:init=1@after_attn,cb_s+cb_s:init=2@after_attn
! grep -q 'it runs once' stderr || fail "a second module makes no difference: $(cat stderr)"
# An option with several numbers takes them separated by spaces.
run 0 sweep tiny.yaml data --vary 'img_size=8 4,8' --set 'mean=0.5' --seeds 1 --set epochs=1 --measure accuracy --output out \
    --experiment sides
grep -A2 -x 'img_size:' 'out/sides/img_size=8_4-seed1/args.yaml' | tr -d '\n' | grep -qx 'img_size:- 8- 4' ||
    fail 'a sweep does not accept two sides'
grep -qx 'img_size: 8' 'out/sides/img_size=8-seed1/args.yaml' || fail 'a sweep does not accept one side together with two'
usage '--img_size: "8 4 2" is not one or two whole numbers, height and width, from 1 to 65536' \
    sweep tiny.yaml data --set 'img_size=8 4 2'

# Settings with long names are numbered, so that each fits on a line.
run 0 sweep short.yaml data --vary modules=none,se:ratio=4 --vary batch-size=16,32 --vary weight-decay-on=all --seeds 1 \
    --set epochs=1 --output out --experiment long
out_has '  [4] modules=se:ratio=4,batch-size=32,weight-decay-on=all        1      1 '
grep -qE '^  mean +\[1\] +\[2\] +\[3\] +\[4\]$' stdout || fail "columns are not numbered: $(cat stdout)"
[ "$(sed '/^[a-z]\|^      /d; s/±/+/g' stdout | awk 'length > 110')" = '' ] || fail "lines too long: $(cat stdout)"

# attscope report accepts the folder of a sweep.
run 0 report out/tiny -o sweep.html
out_has 'sweep.html: 6 runs'

# Some instruments find nothing in a baseline: only these are left out for it, and the same command then does nothing.
run 0 sweep short.yaml data --vary modules=none,se --seeds 1 --output out --measure accuracy,gate,nsi
err_has 'modules=none is measured without gate, which has nothing to observe there'
grep -qE '^  layer1.0 +- +[0-9.]+' stdout || fail "$command_line: gates are missing because the baseline has none: $(cat stdout)"
run 0 sweep short.yaml data --vary modules=none,se --seeds 1 --output out --measure accuracy,gate,nsi
[ "$(grep -c ': done already$' stderr)" = 2 ] || fail 'a run without one of the instruments was repeated'

# A run that was started with other settings is not changed.
run 1 sweep tiny.yaml data --vary modules=none --seeds 1 --output out --set lr=0.01
err_has 'attscope: out/tiny/modules=none-seed1 was begun with lr: 0.003, here it is 0.01; use another --experiment to keep both'
run 0 sweep tiny.yaml data --vary modules=none --seeds 1 --output out --set threads=2 --set workers=1

# Nor is a run with other training or test images, measured or not. The same images may lie elsewhere.
cp -r data moved
run 0 sweep tiny.yaml moved --vary modules=none --seeds 1 --output out
err_has ': done already'
rm -r before && cp -r out before
cp -r data tested && idx_pair tested/t10k 28
run 1 sweep tiny.yaml tested --vary modules=none,cb_s --seeds 1 --output out
err_has 'out/tiny/modules=none-seed1 was measured on other images than tested has; use another --experiment to keep both'
cp -r data trained && idx_pair trained/train 92
run 1 sweep tiny.yaml trained --vary modules=none,cb_s --seeds 1 --output out
err_has 'out/tiny/modules=none-seed1 was begun with other images than trained has; use another --experiment to keep both'
diff -r before out || fail 'a refused sweep changes its folder'
rm out/tiny/modules=cb_s-seed1/measure.jsonl
run 1 sweep tiny.yaml trained --vary modules=cb_s --seeds 1 --output out
err_has 'out/tiny/modules=cb_s-seed1 was begun with other images than trained has'
run 0 sweep tiny.yaml data --vary modules=cb_s --seeds 1 --output out

# --- a damaged file makes only its own run fail
short='--set epochs=1 --set depth=1 --measure accuracy --output out'
# shellcheck disable=SC2086
damage() { # NAME FILE TEXT [LOST]: damages the file of the first run once the run is measured
    rm -rf "out/$1"
    run 0 sweep tiny.yaml data --seeds 1 $short --experiment "$1"
    printf '%s' "$3" >"out/$1/tiny-seed1/$2"
    [ $# -lt 4 ] || rm "out/$1/tiny-seed1/$4"
    run 1 sweep tiny.yaml data --seeds 1,2 $short --experiment "$1"
    err_has "out/$1/tiny-seed1/$2"
    [ $# -eq 4 ] || err_has "remove the folder out/$1/tiny-seed1, then repeat the command to train this run again"
    err_has 'attscope: 1 of 2 runs failed; the same command retries them, from the beginning if their folder is removed:'
    [ -e "out/$1/tiny-seed2/measure.jsonl" ] || fail "$1: the other runs did not continue"
    grep -qE '^  tiny +1 ' stdout || fail "$1: the other runs are not in the table"
    rm -r "out/$1/tiny-seed1"
    run 0 sweep tiny.yaml data --seeds 1,2 $short --experiment "$1"
}
damage settings args.yaml '{{{'
damage recipe recipe.yaml '[['
damage metrics metrics.jsonl 'null
{"event": 3}
'
damage measured measure.jsonl '[]
'
damage checkpoint last.safetensors 'not one' measure.jsonl
# Some records are read for the table only, after the run was measured; damage there also makes only its own run fail.
# shellcheck disable=SC2086
run 0 sweep tiny.yaml data --seeds 1 $short --experiment late
rm out/late/tiny-seed1/measure.jsonl
echo '{"event": "measure", "step": 6, "measurements": 3}' >>out/late/tiny-seed1/metrics.jsonl
# shellcheck disable=SC2086
run 1 sweep tiny.yaml data --seeds 1,2 $short --experiment late
err_has 'tiny-seed1 failed (out/late/tiny-seed1/metrics.jsonl, line 4: expected "measurements", an array'
err_has 'remove the folder out/late/tiny-seed1, then repeat the command to train this run again'
err_has 'attscope: 1 of 2 runs failed; the same command retries them'
grep -qE '^  tiny +1 ' stdout || fail "$command_line: the other runs are not in the table: $(cat stdout)"
# shellcheck disable=SC2086
mkdir -p out/blocked/sweep.json && run 1 sweep tiny.yaml data $short --experiment blocked
err_has 'out/blocked/sweep.json exists and is not a regular file; it is not replaced'
! grep -q '^epoch' stderr || fail 'trained before the output was checked'
: >out/file
# shellcheck disable=SC2086
run 1 sweep tiny.yaml data $short --experiment file
err_has 'out/file is a file, but must be a folder'

# --- a run that fails does not affect the others
run 1 sweep tiny.yaml data --vary num-classes=3,4 --seeds 1 --output out --experiment failing
err_has 'warning: num-classes=3-seed1 failed (exit status 2); the other runs continue'
err_has 'attscope: 1 of 2 runs failed; the same command retries them, from the beginning if their folder is removed:'
out_has 'num-classes=4'
! grep -q '^  .*num-classes=3' stdout || fail 'a failed run has a row'
grep -qE '^num-classes=3: 1 of 1 runs failed: exit status 2$' stdout || fail "the table does not report a failed run: $(cat stdout)"
grep -q '"status": "failed"' out/failing/sweep.json || fail 'sweep.json does not report the failed run'
grep -q '"failure": "exit status 2"' out/failing/sweep.json || fail 'sweep.json does not say how the run failed'
# Standard output and error keep their order in one file.
"$ATTSCOPE" sweep tiny.yaml data --vary num-classes=3,4 --seeds 1 --output out --experiment failing >both 2>&1
awk '/^out\/failing$/ { table = NR } / runs failed; the same/ { said = NR } END { exit !(table && table < said) }' both ||
    fail "messages and the table are in the wrong order: $(cat both)"
run 1 sweep tiny.yaml data --vary lr=0.003,1000 --set opt=sgd --seeds 1,2 --output out --experiment diverging
grep -qE '^lr=1000: 2 of 2 runs failed: .*epoch 1.*(NaN|finite|nan)' stdout || fail "the table does not report failed runs: $(cat stdout)"
[ "$(grep -c '"failure": "' out/diverging/sweep.json)" = 2 ] || fail 'sweep.json does not say why runs failed'

# --- a warning about a folder of images comes once; the split is the existing one
for split in train val; do
    for class in a b; do
        mkdir -p "photographs/$split/$class"
        cp "$here"/../goldens/images/{420,422}.jpg "photographs/$split/$class"
        touch "photographs/$split/$class/notes.txt"
    done
done
run 0 sweep tiny.yaml photographs --set in-chans=3 --set num-classes=2 --set epochs=1 --set batch-size=4 --vary lr=0.1,0.2 \
    --seeds 1 --measure entropy --output out --experiment photographs
for warning in 'photographs/train: skipped files' 'photographs/val: skipped files'; do
    [ "$(grep -c "^warning: .*$warning" stderr)" = 1 ] || fail "$command_line: $(cat stderr)"
done
err_has 'photographs has no split "test"; using "val" instead'
grep -qE '  last evaluation  difference from the first$' stdout && grep -qE '[0-9] % top-1 +-$' stdout &&
    grep -qE '[0-9] % top-1 +[+-]?[0-9.]+$' stdout || fail "$command_line: no score or no difference"
[ "$(grep -c '"score_difference": {$' out/photographs/sweep.json)" = 1 ] || fail 'sweep.json has no difference of scores'
grep -q '^  "split": "val",$' out/photographs/sweep.json || fail "sweep.json: $(grep split out/photographs/sweep.json)"

# --- a sweep that was stopped or killed gives the same bits as one that was not
long='--set epochs=60 --seeds 1,2 --output out'
# shellcheck disable=SC2086
run 0 sweep tiny.yaml data $long --experiment whole
interrupt() { # SIGNAL NAME
    # shellcheck disable=SC2086
    "$ATTSCOPE" sweep tiny.yaml data $long --experiment "$2" >stdout 2>stderr &
    child=$!
    until [ -e "out/$2/tiny-seed1/checkpoint-1.safetensors" ] || ! kill -0 $child 2>/dev/null; do sleep 0.01; done
    read -ra jobs <"/proc/$child/task/$child/children"
    kill "-$1" $child
    wait $child
    status=$?
    for job in "${jobs[@]}"; do # a run ends shortly after its sweep; a zombie has no program
        while readlink "/proc/$job/exe" >/dev/null; do sleep 0.01; done
    done
    command_line="attscope sweep, $1"
}
interrupt INT cut
[ $status -eq 130 ] || fail "interrupted: exit status $status"
err_has 'attscope: stopped; repeat the command to continue'
grep -q '"status": "stopped"' out/cut/sweep.json || fail 'sweep.json does not say that it was stopped'
interrupt KILL killed 2>/dev/null
[ $status -eq 137 ] || fail "killed: exit status $status"
for name in cut killed; do
    [ ! -e out/$name/tiny-seed2/last.safetensors ] || fail "$name: the sweep was not interrupted in time"
    # shellcheck disable=SC2086
    run 0 sweep tiny.yaml data $long --experiment $name
    err_has "out/$name/tiny-seed1/last.safetensors: resumes in epoch"
    for seed in 1 2; do
        cmp out/whole/tiny-seed$seed/last.safetensors out/$name/tiny-seed$seed/last.safetensors || fail "$name: the weights differ"
    done
done

run 0 sweep --help
for word in '--vary FLAG=LIST' '--seeds LIST' 'not repeated' 'exit status 130' 'Example:'; do out_has "$word"; done

finish
