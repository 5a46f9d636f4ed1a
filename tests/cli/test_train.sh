#!/bin/bash
# A training run: its folder, output and results; stopped and resumed with the same bits; its checkpoint evaluated, used and
# inspected.
. "$(dirname "$0")/lib.sh"
too_long_sanitized
idx data

train 0 whole --epochs 3 --log-interval 2 --json result.json --mean 0.4 --std 0.3 --crop-pct 0.8 --crop-mode squash
[ "$(ls out/whole | tr '\n' ' ')" = 'args.yaml checkpoint-0.safetensors checkpoint-1.safetensors checkpoint-2.safetensors classes.txt events.out.tfevents.attscope last.safetensors metrics.jsonl model_best.safetensors summary.csv timm ' ] ||
    fail "files of a run: $(ls out/whole | tr '\n' ' ')"
sed -E 's/[0-9]+\.[0-9]+/X/g; s/in epoch [0-9]/in epoch E/; s/top1 [0-9]+/top1 X/' stdout >shape && mv shape stdout
out_is <<'TEXT'
vit_tiny_patch16_224: 3 epochs, 18 updates
training loss X
top-1 X %   top-5 X %   loss X
best top1 X in epoch E
out/whole
TEXT
sed -E 's|[0-9.]+ images/s|X images/s|; s|ETA [0-9:-]+|ETA T|; s|[0-9]+\.[0-9]+|X|g; s/[0-9]+ % (of|waiting)/X % \1/; /^the network waited/d' stderr >shape && mv shape stderr
err_is <<'TEXT'
data, train: 96 images, 4 classes, numbered by the labels
data, t10k: 32 images, 4 classes, numbered by the labels
trains vit_tiny_patch16_224, 8 x 8 x 1, 4 classes, 3748 parameters, no modules
train 1/3  1/6  loss X  X images/s  ETA T
train 1/3  2/6  loss X  X images/s  ETA T
train 1/3  4/6  loss X  X images/s  ETA T
train 1/3  6/6  loss X  X images/s  ETA T
epoch 1/3  loss X  eval loss X  top-1 X %  top-5 X %  lr X  X % waiting for data
train 2/3  2/6  loss X  X images/s  ETA T
train 2/3  4/6  loss X  X images/s  ETA T
train 2/3  6/6  loss X  X images/s  ETA T
epoch 2/3  loss X  eval loss X  top-1 X %  top-5 X %  lr X  X % waiting for data
train 3/3  2/6  loss X  X images/s  ETA T
train 3/3  4/6  loss X  X images/s  ETA T
train 3/3  6/6  loss X  X images/s  ETA T
epoch 3/3  loss X  eval loss X  top-1 X %  top-5 X %  lr X  X % waiting for data
X images/s, X % of the time waiting for data
TEXT
for key in model folder epochs updates train_loss eval_top1 best_epoch train_samples_per_sec wait_share train_corrupt eval_corrupt; do
    grep -q "\"$key\"" result.json || fail "result.json has no $key"
done
for line in 'model: vit_tiny_patch16_224' 'embed_dim: 16' 'mlp_ratio: 4' 'opt: adamw' 'lr: 0.003' 'weight_decay: 2e-05' \
    'experiment: whole' 'resume: null' 'no_aug: true' 'data_dir: data'; do
    grep -qxF "$line" out/whole/args.yaml || fail "args.yaml has no line '$line'"
done

# On a terminal, one line of at most 80 columns is redrawn.
if ! script -qec true /dev/null >/dev/null 2>&1; then
    echo 'skipped: the progress bar: no pseudo-terminal can be made here'
else
    # shellcheck disable=SC2086
    TERM=xterm script -qec "'$ATTSCOPE' train data $network $recipe --output out --experiment drawn --epochs 2" typescript >stdout
    command_line='attscope train, on a terminal'
    tr '\r' '\n' <typescript >lines
    grep -qE '^train 2/2 \[#{20,}\] 6/6  loss [0-9.]+  [0-9.]+ images/s  ETA [0-9:]+ *$' lines || fail 'no progress bar'
    awk '/^train / && length >= 80 { bad = 1 } END { exit bad }' lines || fail 'the bar is too wide'
fi

# args.yaml alone gives the same training, to the bit. The command line takes precedence over it.
run 0 train -c out/whole/args.yaml --experiment again
cmp out/whole/last.safetensors out/again/last.safetensors || fail 'args.yaml does not give the same weights'
run 0 train -c out/whole/args.yaml --experiment short --epochs 1
grep -qxF 'epochs: 1' out/short/args.yaml || fail 'the command line does not win'

# Without a terminal, the first line comes after the first update, however large the interval is.
train 0 rare --epochs 2 --batch-size 8 --grad-accum-steps 3 --log-interval 1000
[ "$(grep '^train ' stderr | cut -d' ' -f1-4)" = 'train 1/2  3/12' ] || fail "lines of progress: $(cat stderr)"

# What does not fill a batch or an update is counted, in words and in the records.
train 0 uneven --epochs 2 --batch-size 30 --grad-accum-steps 2
err_has "each epoch trains on 90 of 96 images, in 2 updates: each batch has 30 (--batch-size, batch_size), so the last 6 of the epoch's random order are left out"
err_has 'the last update of each epoch has 1 batch, not 2 (--grad-accum-steps, grad_accum_steps)'
out_has 'vit_tiny_patch16_224: 2 epochs, 4 updates'
grep -q '"event":"run_begin".*"train_images":96,"epoch_images":90,"epoch_updates":2,' out/uneven/metrics.jsonl ||
    fail "$command_line: run_begin: $(head -1 out/uneven/metrics.jsonl)"

# A repeated image is several samples.
train 0 repeated --epochs 1 --batch-size 30 --aug-repeats 3
err_has 'each epoch trains on 90 of 96 samples (several of each image: --aug-repeats, aug_repeats), in 3 updates'

# A training run of no epochs saves the initial weights; a training run from them equals a training run from the seed.
train 0 untrained --epochs 0 --model-ema
out_is <<'TEXT'
vit_tiny_patch16_224: 0 epochs, 0 updates
out/untrained
TEXT
! grep -q warm-up stderr || fail "$command_line: a note mentions a warm-up although there is none"
for ema in '' --use-ema; do
    # shellcheck disable=SC2086
    run 0 validate data --checkpoint out/untrained/last.safetensors $ema --json "drawn$ema.json"
done
[ "$(grep '"loss"' drawn.json)" = "$(grep '"loss"' drawn--use-ema.json)" ] || fail 'the average differs from the weights'
run 0 report out/untrained -o untrained.html
run 0 train --resume out/untrained/last.safetensors
err_has 'its training of 0 epochs is complete'
train 0 seeded --epochs 1
train 0 taken --epochs 1 --initial-checkpoint out/untrained/last.safetensors
run 1 train nowhere --initial-checkpoint out/whole
err_has 'out/whole is a folder; using its model_best.safetensors'
err_has 'attscope: nowhere does not exist'
[ "$(cut -d, -f1-5 out/seeded/summary.csv)" = "$(cut -d, -f1-5 out/taken/summary.csv)" ] ||
    fail 'a training run from the untrained weights differs from a training run from the seed'

# The folder for timm has the best weights, without the optimiser's state.
run 0 predict out/whole "$here/../goldens/images/422.jpg" --logits --json best.json
run 0 predict out/whole/timm "$here/../goldens/images/422.jpg" --logits --json timm.json
cmp best.json timm.json || fail 'the folder for timm gives other logits than the best checkpoint'
[ "$(ls out/whole/timm | tr '\n' ' ')" = 'config.json model.safetensors ' ] || fail "timm has $(ls out/whole/timm)"
[ "$(wc -c <out/whole/timm/model.safetensors)" -lt $(($(wc -c <out/whole/last.safetensors) / 2)) ] ||
    fail 'the folder for timm has more than the weights'
for part in '"architecture": "vit_tiny_patch16_224"' '"num_classes": 4' '"crop_mode": "squash"' '"embed_dim": 16'; do
    grep -qF "$part" out/whole/timm/config.json || fail "config.json lacks $part"
done
train 0 gated --epochs 1 --modules cb_s
err_has 'out/gated/timm is not written: timm cannot build this network: modules is cb_s'
[ ! -e out/gated/timm ] || fail 'there is a folder for timm, which lacks the network'

# A note lists the flags that differ from the checkpoint, and only those.
run 0 validate data --checkpoint out/whole/last.safetensors --mean 0.3 --std 0.3 --crop-pct 0.9 --crop-mode border
err_has "; --mean, --crop-pct, --crop-mode: as given"
run 0 validate data --checkpoint out/whole/last.safetensors --mean 0.4
! grep -q 'as given' stderr || fail "$command_line: the mean is the checkpoint's"

# A folder with a training run is not changed by a new one.
train 1 whole --epochs 3
err_has 'attscope: out/whole holds a training run already; use another --experiment for a new one, or resume out/whole/last.safetensors to continue this one if it is not finished'

# Training runs without a name that start in the same second have folders of their own.
for i in 1 2 3; do
    # shellcheck disable=SC2086
    "$ATTSCOPE" train data $network $recipe --epochs 1 --output unnamed >/dev/null 2>"twin$i" & twins[i]=$!
done
for i in 1 2 3; do wait "${twins[i]}" || fail "an unnamed training failed beside others: $(cat "twin$i")"; done
[ "$(ls -d unnamed/*/last.safetensors | wc -l)" -eq 3 ] || fail "expected three folders: $(ls unnamed)"

# A second training in one folder is refused and changes nothing.
# shellcheck disable=SC2086
"$ATTSCOPE" train data $network $recipe --epochs 100000 --output out --experiment both >/dev/null 2>&1 &
child=$!
until [ -e out/both/last.safetensors ] || ! kill -0 $child 2>/dev/null; do sleep 0.01; done
cp out/both/args.yaml both.yaml
run 1 train --resume out/both/last.safetensors --log-interval 7
err_has 'attscope: out/both/metrics.jsonl is being written by another process or thread'
cmp out/both/args.yaml both.yaml || fail 'the second training wrote its args.yaml'
kill -INT $child
wait $child

# An interrupted training saves a checkpoint and exits with 130; when resumed, it ends with the bits of an uninterrupted
# one.
train 0 long --epochs 60
"$ATTSCOPE" train data $network $recipe --epochs 60 --output out --experiment cut >stdout 2>stderr &
child=$!
until [ -e out/cut/checkpoint-1.safetensors ] || ! kill -0 $child 2>/dev/null; do sleep 0.01; done
kill -INT $child 2>/dev/null
wait $child
status=$?
command_line='attscope train, interrupted'
if [ $status -eq 130 ]; then
    grep -qE '^attscope: stopped after [0-9]+ updates?; resume with: attscope train --resume out/cut/last.safetensors$' stderr ||
        fail 'no message about how to resume'
    run 0 train --resume out/cut/last.safetensors
    err_has 'out/cut/last.safetensors: resumes in epoch'
    cmp out/cut/last.safetensors out/long/last.safetensors || fail 'weights differ from those without the stop'
    cmp out/cut/summary.csv out/long/summary.csv || fail 'summary.csv differs from that without the stop'
else
    fail "interrupted: exit status $status"
fi
# A closed terminal interrupts a training run too, unless nohup protects it. The test itself may run under nohup.
# shellcheck disable=SC2086
env --default-signal=HUP "$ATTSCOPE" train data $network $recipe --epochs 100000 --output out --experiment hung >stdout 2>stderr &
child=$!
until [ -e out/hung/checkpoint-1.safetensors ] || ! kill -0 $child 2>/dev/null; do sleep 0.01; done
kill -HUP $child 2>/dev/null
kill -HUP $child 2>/dev/null
wait $child
status=$?
command_line='attscope train, hung up'
[ $status -eq 130 ] || fail "exit status $status"
err_has 'resume with: attscope train --resume out/hung/last.safetensors'
# shellcheck disable=SC2086
nohup "$ATTSCOPE" train data $network $recipe --epochs 60 --output out --experiment nohup >stdout 2>stderr &
child=$!
until [ -e out/nohup/checkpoint-1.safetensors ] || ! kill -0 $child 2>/dev/null; do sleep 0.01; done
kill -HUP $child 2>/dev/null
wait $child || fail 'SIGHUP ends a training run under nohup'

# shellcheck disable=SC2086
for name in ../aside a/b . ..; do
    usage "experiment: \"$name\" is a path; expected the name of a folder in output" train data $network $recipe --experiment "$name"
    usage "experiment: \"$name\" is a path; expected the name of a folder in output" \
        measure out/cut/last.safetensors data --output out --experiment "$name"
done
run 2 train --resume out/cut/last.safetensors --epochs 60.5
cp -r out/cut before
run 1 train --resume out/cut/last.safetensors --epochs 61
err_has 'it was trained with epochs "60", not "61"'
err_has 'it was trained with epochs "60", not "61"; its learning rates depend on the length of the training'
err_has 'out/cut/args.yaml has the options and the data of a resume; to train its weights further with a new schedule:'
err_has 'new schedule: attscope train DATA --initial-checkpoint out/cut/last.safetensors --experiment NAME --epochs MORE'
run 1 train --resume out/cut/checkpoint-1.safetensors --epochs 61
run 1 train --resume out/cut --drop-path 0.1
err_has 'it was trained with drop_path_rate (--drop-path) "0", not "0.1"'
run 1 train --resume out/cut --opt-betas 0.8 0.999
err_has 'it was trained with beta1 (--opt-betas) "0.9", not "0.8"'
run 0 train --resume out/cut # a folder stands for its last checkpoint
err_has 'out/cut/last.safetensors: its training of 60 epochs is complete, so there is nothing left to train'
mkdir bare
run 1 train --resume bare
err_is <<<'attscope: bare/last.safetensors does not exist'
rm -r out/cut && cp -r before out/cut
run 1 train --resume out/cut/checkpoint-1.safetensors --epochs 61
diff -r before out/cut >difference || fail "a refused training changes its folder: $(cat difference)"

# A training run counted in updates, of which an epoch has six: evaluated within epochs, interrupted, and resumed.
in_updates='--updates 200 --eval-every 4 --sched poly --warmup-updates 2 --checkpoint-hist 2'
# shellcheck disable=SC2086
train 0 counted $in_updates --log-interval 2
out_has 'vit_tiny_patch16_224: 33 epochs, 200 updates'
grep -qE '^best top1 [0-9.]+ after update [0-9]+$' stdout || fail "the best update: $(cat stdout)"
grep -qE '^train  1/200 updates  loss ' stderr || fail "$command_line: the first line does not count updates"
grep -qE '^update 4/200  loss [0-9.]+  eval loss .* lr [0-9.e-]+' stderr || fail 'no line after four updates'
! grep -q '^epoch' stderr || fail 'a line counts epochs'
[ "$(sed -n '1p;4p' out/counted/summary.csv | sed 's/,.*,/ /')" = 'epoch update
1 12' ] || fail "summary.csv: $(head -4 out/counted/summary.csv)"
[ "$(ls out/counted/checkpoint-*.safetensors | wc -l)" -eq 2 ] ||
    fail "checkpoints: $(ls out/counted)"
grep -qF '"epochs":"34","updates":"200","eval_every":"4"' out/counted/metrics.jsonl || fail 'run_begin lacks the length'
run 0 inspect out/counted/last.safetensors
grep -qE '^metric .* best .* after update [0-9]+$' stdout || fail "inspect: $(grep metric stdout)"
# shellcheck disable=SC2086
"$ATTSCOPE" train data $network $recipe $in_updates --log-interval 2 --output out --experiment counted-cut >stdout 2>stderr &
child=$!
until [ "$(ls out/counted-cut/checkpoint-*.safetensors 2>/dev/null | wc -l)" -ge 2 ] || ! kill -0 $child 2>/dev/null; do sleep 0.01; done
kill -INT $child 2>/dev/null
wait $child
status=$?
command_line='attscope train --updates, interrupted'
[ $status -eq 130 ] || fail "interrupted: exit status $status"
run 0 train --resume out/counted-cut
cmp out/counted-cut/last.safetensors out/counted/last.safetensors || fail 'weights differ from those without the stop'
cmp out/counted-cut/summary.csv out/counted/summary.csv || fail 'summary.csv differs from that without the stop'
run 0 train --resume out/counted-cut
err_has 'its training of 200 updates is complete, so there is nothing left to train'

# Weights that give NaN end a training run, whether an update or an evaluation detects them, and write no checkpoint.
train 1 burst --epochs 1 --lr 1000 --opt sgd --val-split ''
err_has '(epoch 1) was not applied: NaN or infinity'
err_has 'a training run that diverges may need a lower --lr, or --clip-grad'
train 0 good --epochs 1
# At this rate, weights overflow within the first epochs, whose only update is finite.
# shellcheck disable=SC2086
run 1 train data --initial-checkpoint out/good/last.safetensors $recipe --opt sgd --lr 1000 --batch-size 96 --epochs 9 \
    --output out --experiment bursts
err_has 'NaN or infinity'
err_has 'the last good checkpoint is out/bursts/last.safetensors'
run 0 validate data --checkpoint out/bursts/last.safetensors

# A training run is not resumed on other images, nor on the same images in another order or with other names.
mkdir -p pictures/train/a pictures/train/b
for name in a/1 a/2 a/3 a/4 b/1 b/2 b/3 b/4; do cp "$here/../goldens/images/420.jpg" pictures/train/$name.jpg; done
few='--model vit_tiny_patch16_224 --img-size 8 --patch-size 4 --embed-dim 16 --depth 1 --num-heads 2 --batch-size 4 --no-aug'
# shellcheck disable=SC2086
run 0 train pictures --val-split "" $few --epochs 1 --output out --experiment listed
mv pictures/train/a/1.jpg pictures/train/a/9.jpg
run 1 train --resume out/listed/last.safetensors
err_has 'resumed exactly: the names, order or classes of its training images are not those of the data here'
rm pictures/train/a/9.jpg
run 1 train --resume out/listed/last.safetensors
err_has 'it was trained on 8 images, the data here has 7'
err_has 'out/listed/args.yaml has the options and the data of a resume'
! grep -q 'option out' stderr || fail "$command_line: the value of the data is taken for an option"
# Other images with the same names and classes are refused.
mkdir pictures/val
cp -r pictures/train/* pictures/val
cp "$here/../goldens/images/420.jpg" pictures/train/a/1.jpg
cp "$here/../goldens/images/422.jpg" pictures/val/a/1.jpg
run 1 train --resume out/listed/last.safetensors --train-split val
err_has 'its training images have the same names as those here, but different pixels'
rm -r pictures/val
# The same images are accepted elsewhere and in an archive.
cp "$here/../goldens/images/420.jpg" pictures/train/a/1.jpg
mv pictures moved && tar cf moved.tar moved
run 1 train --resume out/listed/last.safetensors
err_has 'pictures does not exist'
err_has 'out/listed/args.yaml names it; if the data has moved: attscope train DATA --resume out/listed/last.safetensors'
run 1 train nowhere --resume out/listed/last.safetensors
! grep -q 'names it' stderr || fail "$command_line: the note says that args.yaml names the data, but the operand does"
for data in moved moved.tar; do run 0 train $data --resume out/listed/last.safetensors; done

# A training run without evaluation stays so when it is resumed. An empty --output means the default.
train 0 blind --epochs 1 --val-split ''
! grep -q 'eval loss' stderr || fail "$command_line: there is an evaluation, although it was switched off"
run 0 train --resume out/blind/last.safetensors
! grep -q 't10k' stderr || fail "$command_line: there is an evaluation, although args.yaml switches it off"
# shellcheck disable=SC2086
run 0 train data $network $recipe --epochs 1 --output '' --experiment home
[ -e output/train/home/args.yaml ] || fail "$command_line: not in the default folder"

# A network that does not fit the images gives a message. One that does not fit into memory is refused before its
# weights are initialised, with the memory that the evaluation would also need.
run 1 train data --model vit_tiny_patch16_224 --img-size 16384 --epochs 1 --output out --experiment huge -b 8
err_has 'the images are grey: --in-chans 1 builds a network for grey images'
err_has 'images of 8 x 8 pixels are enlarged to 16384 x 16384'
err_has 'of the evaluation'
[ ! -e out/huge ] || fail 'a refused training made its folder'
run 2 train nowhere --model vit_tiny_patch16_224 --measure entopy
err_has 'there is no instrument "entopy"'
run 2 train nowhere --model vit_tiny_patch16_224 --embed-dim 25
err_has 'embed_dim 25 is not a multiple of num_heads 3'

# validate prints the figures of the training.
run 0 validate data --checkpoint out/whole/last.safetensors --results-file r.csv --json r.json
grep -qE '^top-1 [0-9.]+ %   top-5 [0-9.]+ %   loss [0-9.]+   32 images$' stdout || fail 'the output of validate has another form'
head -n 1 r.csv >stdout
out_is <<'TEXT'
model,img_size,top1,top1_err,top5,top5_err,param_count,crop_pct,interpolation
TEXT
grep -qE '^vit_tiny_patch16_224,8,[0-9.]+,[0-9.]+,[0-9.]+,[0-9.]+,0\.00,0\.8,bicubic$' r.csv || fail "r.csv: $(tail -n 1 r.csv)"
eval_top1=$(sed -n 's/.*"eval_top1": \([0-9.]*\),*/\1/p' result.json)
[ "$eval_top1" = "$(sed -n 's/.*"top1": \([0-9.]*\),*/\1/p' r.json)" ] || fail 'validate and train differ in top-1'
run 1 validate data --checkpoint out/whole/last.safetensors --use-ema
run 1 validate data --checkpoint out/whole/last.safetensors --results-file nowhere/r.csv
err_is <<<'attscope: nowhere/r.csv: No such file or directory'

run 0 validate data --checkpoint out/whole/last.safetensors --fgsm 0.5 --f64 --json r.json
for member in '"checkpoint": "out/whole/last.safetensors"' '"use_ema": false' '"data": "data"' '"split": "t10k"' \
    '"precision": "f64"' '"fgsm": 0.5' '"occlude": 0' '"numbered_by": "labels"'; do
    grep -qF "$member" r.json || fail "r.json lacks $member: $(cat r.json)"
done

# Figures of averaged weights are marked as such.
train 0 averaged --epochs 1 --model-ema
grep -qE '^epoch 1/1 .* top-5 [0-9.]+ % of the averaged weights ' stderr || fail "$command_line: the output does not say that weights are averaged"
[ "$(grep -c ' of the averaged weights$' stdout)" = 2 ] || fail "$command_line: the output does not say that weights are averaged: $(cat stdout)"
run 0 validate data --checkpoint out/averaged/last.safetensors
err_has 'out/averaged/last.safetensors also has averaged weights, which its training evaluated: --use-ema uses them'
run 0 validate data --checkpoint out/averaged/last.safetensors --use-ema
! grep -q 'averaged' stderr || fail "$command_line: the note advises --use-ema although it was given"
cp stdout averaged.txt
# --initial-checkpoint takes the weights without averaging; a note tells how to take the averaged weights.
# shellcheck disable=SC2086
run 0 train data --initial-checkpoint out/averaged/last.safetensors $recipe --epochs 1 --output out --experiment others
err_has 'out/averaged/last.safetensors has averaged weights too, which are not used: attscope convert --use-ema makes a file'
run 0 convert out/averaged/last.safetensors average.safetensors --use-ema
grep -aq '"attscope.train.task.smoothing":"0.1"' average.safetensors || fail 'convert leaves out the options of the task'
# shellcheck disable=SC2086
run 0 train data --initial-checkpoint average.safetensors $recipe --epochs 1 --output out --experiment average
! grep -q 'averaged weights too' stderr || fail "$command_line: the note offers averaged weights that the file does not have"
run 0 validate data --checkpoint average.safetensors
cmp -s stdout averaged.txt || fail 'averaged weights give other figures after convert than with validate --use-ema'
run 0 train data --resume out/averaged/last.safetensors
! grep -q 'averaged weights' stderr || fail "$command_line: a resumed training prints the note about averaged weights"

run 0 inspect out/whole/last.safetensors
for option in 'img_size            8' 'in_chans            1' 'num_classes         4' 'patch_size          4' 'embed_dim           16' \
    'depth               1' 'num_heads           2'; do
    out_has " $option"
done
out_has 'images       8 x 8 x 1, mean 0.4, std 0.3, crop 0.8 squash, bicubic'
out_has 'training     3 epochs and 0 batches, 18 updates, seed 42'
out_has 'blocks.0.attn.qkv.weight                         F32   [48, 16]'
run 0 inspect out/whole/last.safetensors --json -
out_has '"attscope.train.fingerprint"'
for key in history evicted loss_sum classes best_metric; do
    ! grep -q "attscope.train.$key" stdout || fail "inspect --json shows $key, which is for resuming only"
done

# --memory: the message names the smallest size that works, and that size works.
usage '--memory: "4X" is not a size such as 800M or 4G, or a number of bytes' train data --memory 4X
# shellcheck disable=SC2086
run 1 train data $network --epochs 1 --batch-size 16 --memory 0.5K --output out --experiment little
err_has 'training needs at least'
[ ! -e out/little/last.safetensors ] || fail 'a training run without memory wrote a checkpoint'
least=$(sed -n 's/.*(\([0-9]*\) bytes).*/\1/p' stderr)
# shellcheck disable=SC2086
run 0 train data $network --epochs 1 --batch-size 16 --memory "$((least / 1024 + 1))k" --output out --experiment little
grep -q "^memory: $(((least / 1024 + 1) * 1024))\$" out/little/args.yaml || fail 'args.yaml lacks the memory'

# The checkpoint alone, without the args.yaml beside it, gives the preprocessing.
mkdir alone
cp out/whole/last.safetensors alone
run 0 inspect alone/last.safetensors --json alone.json
out_has 'images       8 x 8 x 1, mean 0.4, std 0.3, crop 0.8 squash, bicubic'
tr -d ' \n' <alone.json >stdout
for figure in '"mean":[0.4]' '"std":[0.3]' '"crop_pct":0.8' '"crop_mode":"squash"' '"interpolation":"bicubic"'; do out_has "$figure"; done

# An image that is not square looks different in each crop mode; the checkpoint's mode is the default.
wide=$here/../goldens/images/rgb.png
for mode in center squash border; do
    run 0 predict alone/last.safetensors "$wide" --crop-mode $mode --json $mode.json
done
run 0 predict alone/last.safetensors "$wide" --json own.json
cmp -s own.json squash.json || fail "predict does not take the checkpoint's crop mode"
! cmp -s center.json squash.json && ! cmp -s center.json border.json && ! cmp -s squash.json border.json ||
    fail 'two crop modes give the same figures'
grep -qxF 'crop_mode: squash' out/whole/args.yaml || fail "args.yaml does not record the crop mode"

# A warm-up that is longer than the training causes a warning.
# shellcheck disable=SC2086
run 0 train data $network --batch-size 16 --no-aug --threads 2 --epochs 1 --output out --experiment cold
err_has 'the warm-up lasts the whole training: it has 5 of 1 epochs, so the rate never reaches --lr; lower --warmup-epochs'
grep -qE '"event":"run_begin".*"lr":"0.00625","lr_base":"0.1"' out/cold/metrics.jsonl || fail 'the automatic rate is not recorded'
# shellcheck disable=SC2086
run 0 train data $network $recipe --epochs 1 --output out --experiment warm
! grep -q 'the warm-up lasts' stderr || fail "$command_line: a warning mentions a warm-up although there is none"

# --initial-checkpoint: for another number of classes, the head is initialised; for another grid of patches, position
# embeddings are resampled; a new module is initialised.
# shellcheck disable=SC2086
run 0 train data --initial-checkpoint alone/last.safetensors --num-classes 6 $recipe --epochs 1 --output out \
    --experiment tuned
err_has 'head.weight, head.bias: re-initialised, because the file has 4 classes and the network 6'
run 0 inspect out/tuned/last.safetensors
out_has 'num_classes         6'
out_has 'images       8 x 8 x 1, mean 0.4, std 0.3, crop 0.8 squash, bicubic'
# shellcheck disable=SC2086
run 0 train data --initial-checkpoint alone/last.safetensors $recipe --epochs 1 --output out --experiment same
! grep -q 'initialised' stderr || fail "$command_line: the head was initialised although the classes are the same"
# shellcheck disable=SC2086
run 0 train data --initial-checkpoint alone/last.safetensors --img-size 16 --num-classes 6 --modules cb_s $recipe \
    --epochs 1 --output out --experiment larger
err_has 'pos_embed: resampled from 2 x 2 patches to 4 x 4'
err_has 'blocks.0.mlp.cb.weight keeps its initial values: alone/last.safetensors has no such tensor'
err_has 'head.weight, head.bias: re-initialised, because the file has 4 classes and the network 6'

# A file without a training run is refused before anything else is said.
run 0 convert alone/last.safetensors weights.safetensors
run 1 train data --resume weights.safetensors
[ "$(head -n 1 stderr)" = 'attscope: weights.safetensors holds weights, but no training that can be resumed' ] ||
    fail "$command_line: $(cat stderr)"

# A file without a head: its two tensors are renamed to names that are ignored.
LC_ALL=C sed 's/"head\.weight"/"ema.xweight"/; s/"head\.bias"/"ema.xbias"/' out/tuned/last.safetensors >headless.safetensors
for classes in 4 5; do
    asked=$([ $classes = 4 ] || echo "--num-classes $classes")
    # shellcheck disable=SC2086
    run 0 train data --initial-checkpoint headless.safetensors $asked $recipe --epochs 1 --output out --experiment body$classes
    err_has 'head.weight, head.bias: initialised, because headless.safetensors has none'
    err_has ", $classes classes, "
    ! grep -q 'has 6 classes' stderr || fail "$command_line: advice about class names that the file does not have"
done

# Commands that need no classes work on such a file; others refuse it with a message.
run 0 measure headless.safetensors data --with entropy
err_has ', no head; network: '
run 0 measure headless.safetensors data --maps 1 --output out --experiment headless
err_has 'accuracy is left out: the network has no classes'
run 0 report out/headless -o headless.html
run 1 measure headless.safetensors data --with accuracy
err_has 'attscope: headless.safetensors: the network has no head: accuracy cannot be told (attscope train --initial-checkpoint gives it a head)'
run 1 validate data --checkpoint headless.safetensors
err_has 'attscope: headless.safetensors: the network has no head: it cannot be evaluated'
run 1 predict headless.safetensors "$here/../goldens/images/rgb.png"
err_has 'attscope: headless.safetensors: the network has no head: it predicts nothing'
run 0 inspect headless.safetensors
out_has 'num_classes         0'
run 0 convert headless.safetensors bare.safetensors
run 0 measure bare.safetensors data --with entropy
! grep -q skipped stderr || fail "$command_line: nothing was skipped"

# Tensors that only the training used are named by each command that reads the file.
LC_ALL=C sed 's/"ema\.xweight"/"head.mlp.0."/' headless.safetensors >projection.safetensors
cmp -s headless.safetensors projection.safetensors && fail 'the test could not rename the tensors'
run 0 measure projection.safetensors data --with entropy
err_has 'projection.safetensors: skipped, because the network does not use them: head.mlp.?.*'
run 0 inspect projection.safetensors
err_has 'projection.safetensors: skipped, because the network does not use them: head.mlp.?.*'
run 0 convert projection.safetensors bare.safetensors
err_has 'projection.safetensors: skipped, because the network does not use them: head.mlp.?.*'
grep -q '^tensors  *[0-9]*, [0-9]* skipped' stdout || fail "$command_line: $(cat stdout)"

# Without --num-classes, a fine-tuned network gets as many classes as the data set or the class map has.
# shellcheck disable=SC2086
run 0 train data --initial-checkpoint out/tuned/last.safetensors $recipe --epochs 1 --output out --experiment fitted
err_has '--num-classes 4, as many as the data has'
err_has 'head.weight, head.bias: re-initialised, because the file has 6 classes and the network 4'
run 0 validate data --checkpoint out/fitted/last.safetensors
! grep -q 'the evaluation means' stderr || fail "$command_line: advice about equal class names"
run 0 measure out/fitted/last.safetensors data --with accuracy
run 0 train data --resume out/fitted/last.safetensors
printf '%s\n' 0 1 2 3 4 >five.txt
# shellcheck disable=SC2086
run 0 train data --initial-checkpoint out/tuned/last.safetensors --class-map five.txt $recipe --epochs 1 --output out \
    --experiment mapped
err_has '--num-classes 5, as many as the class map names'
run 0 validate data --checkpoint out/mapped/last.safetensors --class-map five.txt
run 0 validate data --checkpoint out/tuned/last.safetensors
err_has 'the network has 6 classes, the data 4;'

# Class folders get the labels of the training, also if the network has more classes.
for class in ant bee; do
    mkdir -p folders/$class
    cp "$here/../goldens/images/rgb.png" "$here/../goldens/images/grey.png" folders/$class
done
# shellcheck disable=SC2086
run 0 train folders --initial-checkpoint out/tuned/last.safetensors --batch-size 2 --epochs 1 --warmup-epochs 0 --threads 2 \
    --output out --experiment ants
err_has '--num-classes 2, as many as the data has'
# shellcheck disable=SC2086
run 0 train folders --initial-checkpoint out/tuned/last.safetensors --num-classes 6 --batch-size 2 --epochs 1 \
    --warmup-epochs 0 --threads 2 --output out --experiment spare
for name in ants spare; do
    run 0 validate folders --checkpoint out/$name/last.safetensors
    err_has "4 images, 2 classes, numbered by the class names of the training"
    ! grep -q 'the evaluation means' stderr || fail "$command_line: a note doubts the labels although the class names are the training's"
    run 0 measure out/$name/last.safetensors folders --with accuracy
done

picture=$here/../goldens/images/422.jpg

# Weights that are not finite (four bytes of the last tensor), and a tensor name with control characters.
cp alone/last.safetensors nan.safetensors
printf '\0\0\300\177' | dd of=nan.safetensors bs=1 seek=$(($(wc -c <nan.safetensors) - 4)) conv=notrunc status=none
run 1 predict nan.safetensors "$picture"
err_has "attscope: $picture: the network's outputs contain NaN or infinity; the weights are damaged: tensor pos_embed has 1 of 80 values that are not finite"
printf '' | out_is
run 1 validate data --checkpoint nan.safetensors --json nan.json
err_has "attscope: nan.safetensors: the network's outputs contain NaN or infinity; the weights are damaged: tensor pos_embed has 1 of 80 values that are not finite"
[ ! -e nan.json ] || fail "$command_line: a result was written although the command failed"
header='{"a\u001b[31m":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
{ printf '%b' "\\0$(printf '%o' ${#header})"'\0\0\0\0\0\0\0'; printf '%s\0\0\0\0' "$header"; } >steering.safetensors
run 0 inspect steering.safetensors
out_has 'a?[31m'
printf 'red\ngreen\r\nblue\nother' >names
run 0 predict out/whole/last.safetensors "$picture" --topk 4 --labels names --logits
[ "$(awk 'NR > 1 { print $NF }' stdout | sort | tr '\n' ' ')" = 'blue green other red ' ] || fail "labels: $(cat stdout)"
run 0 predict out/whole/last.safetensors "$picture" --logits --json -
out_has '"logits"'
run 1 predict out/whole/last.safetensors "$picture" --labels r.csv
err_has 'attscope: r.csv names 2 classes, but the network has 4'
run 0 predict out/whole/last.safetensors "$here/../goldens/images/420.jpg"
err_has 'the images have colours, but the network takes grey images: they are converted'
mkdir -p classes/a classes/b && cp "$picture" classes/a/1.jpg && cp "$picture" classes/b/1.jpg
run 1 validate classes --checkpoint out/whole/last.safetensors
err_has 'attscope: the network has 4 classes, the data 2, numbered by their sorted names, so labels would not match;'
run 1 predict out/whole/last.safetensors names
err_has 'names'

# Mixed precision: recorded, kept when resumed, and refused if the processor lacks AVX-512, unless forced.
ATTSCOPE_CPU=baseline train 1 refused --epochs 1 --amp
grep -qE '^attscope: --amp needs a processor with AVX-512; this one has baseline \(--amp-force ' stderr || fail "--amp: $(cat stderr)"
train 2 refused --epochs 1 --amp-force
grep -qF -e '--amp-force has no effect without --amp; give both or none' stderr || fail "--amp-force: $(cat stderr)"
ATTSCOPE_CPU=baseline train 0 forced --epochs 1 --amp --amp-force
grep -qxF 'amp_force: true' out/forced/args.yaml || fail 'args.yaml does not say amp-force'
run 0 inspect out/forced/last.safetensors --json -
out_has 'precision=bf16'
ATTSCOPE_CPU=baseline run 0 predict out/forced/last.safetensors "$picture" --amp --amp-force
# Layer-wise learning rates and binary cross entropy. The layers are the stem, a block and the head.
train 0 layers --epochs 1 --layer-decay 0.5 --layer-decay-no-opt-scale 0.3 --bce-loss --bce-target-thresh 0.2
err_has '--layer-decay 0.5: learning rates of 3 layers, from 0.5 to 1 (head) of --lr'
err_has '4 parameter tensors are frozen (--layer-decay-no-opt-scale)'
run 0 train --resume out/layers
# A part of the network. Images always have the same pixels, so the frozen part is computed once for each.
train 0 frozen --epochs 2 --freeze 'blocks.*, patch_embed.*'
err_has '14 parameter tensors are frozen (--freeze)'
err_has '--freeze keeps the random numbers with which the network begins'
err_has 'the frozen part is computed once for each of 96 images; its values take at most'
grep -qxF 'freeze: blocks.*, patch_embed.*' out/frozen/args.yaml || fail "args.yaml: $(grep freeze out/frozen/args.yaml)"
run 0 train -c out/frozen/args.yaml --experiment frozen_again
cmp out/frozen/last.safetensors out/frozen_again/last.safetensors || fail 'args.yaml does not give the same weights'
run 0 train --resume out/frozen --epochs 2
train 0 queries --epochs 1 --freeze '*.qkv.*' --drop-path 0.1
grep -q "^freeze: ['\"]" out/queries/args.yaml || fail "args.yaml: $(grep freeze out/queries/args.yaml)"
train 2 refused --epochs 1 --freeze 'block.*'
err_has '--freeze (train.freeze): "block.*" matches no parameter of vit_tiny_patch16_224; did you mean "blocks.*"?'
# Settings without effect, classes that the data lacks, and the extra layer are mentioned.
train 0 unaugmented --epochs 0 --three-augment --reprob 0.25 --num-classes 9 --extra-layer attn
err_is <<'TEXT'
data, train: 96 images, 4 classes, numbered by the labels
data, t10k: 32 images, 4 classes, numbered by the labels
the network has 9 classes, but the data has 4; --num-classes 4 leaves the others out
trains vit_tiny_patch16_224, 8 x 8 x 1, 9 classes, 4953 parameters, extra layer attn
without effect, because of --no-aug: --three-augment, --reprob
out/unaugmented/timm is not written: timm cannot build this network: extra_layer is attn, in timm's vit_tiny_patch16_224 it is none, and no argument of timm's constructor changes that
TEXT
train 0 added --epochs 0 --modules cb --extra-layer mlp
err_has 'parameters, cb, extra layer mlp'
run 0 validate data --checkpoint out/added
err_has 'the checkpoint: vit_tiny_patch16_224, 8 x 8 x 1, 4 classes, cb, extra layer mlp; network: args.yaml'
train 2 large --epochs 1 --batch-size 97
err_has 'attscope: the training set has 96 images, fewer than one batch of 97; use --batch-size 96 or less'
train 2 sum --epochs 1 --bce-sum
err_has '--bce-sum, --bce-target-thresh and --bce-pos-weight are settings of --bce-loss, which is not given'

if [[ $(uname -m) = x86_64 ]] && grep -qw avx512vl /proc/cpuinfo; then
    train 0 mixed --epochs 1 --amp
    grep -qxF 'amp: true' out/mixed/args.yaml || fail 'args.yaml does not say amp'
    run 0 inspect out/mixed/last.safetensors --json -
    out_has 'precision=bf16'
    run 1 train --resume out/mixed/last.safetensors --no-amp
    err_has 'precision=f32'
    err_has 'precision=bf16'
    run 0 validate data --checkpoint out/mixed/last.safetensors --amp
    run 0 predict out/mixed/last.safetensors "$picture" --amp
fi
finish
