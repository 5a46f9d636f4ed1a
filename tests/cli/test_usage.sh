#!/bin/bash
# Wrong arguments are refused with one message and exit status 2; help texts.
. "$(dirname "$0")/lib.sh"

run 2
err_has 'Usage: attscope COMMAND'
run 0 --help
out_has 'validate   evaluates a checkpoint on a data set'
run 0 --version
grep -qE '^attscope [0-9]+\.[0-9]+\.[0-9]+$' stdout || fail '--version'

run 0 help train
out_has 'Usage: attscope train DATA [options]'
usage "--model needs a value: NAME (timm's name, with or without a pretrained tag; attscope models lists them)" train data --model
usage 'unknown command "trian"; did you mean train?' trian
usage 'unknown command "xyzzyxyzzy"; see attscope --help' xyzzyxyzzy
usage 'unknown command "instruments"; see attscope measure --help' instruments

usage 'unknown option --batch-szie; did you mean --batch-size?' train data --batch-szie 3
usage 'unknown option --file-grid; see attscope train --help' train data --file-grid 2 # only tensors can give it
usage 'unknown option --weight_decya; did you mean --weight-decay?' train data --weight_decya 3
usage 'unknown option --qqqqqqqqqqqq; see attscope train --help' train data --qqqqqqqqqqqq
usage 'unknown option -z; see attscope train --help' train data -z
usage "--jsd-loss is timm's, but attscope does not have it yet; the loss is cross entropy" train data --jsd-loss
usage '--cutmix-minmax: "0.5" is not two numbers from 0 to 1' train data --model resnet20 --cutmix-minmax 0.5
usage '--cutmix-minmax 0.9 0.1: the first number, the lower limit, is above the second' train data --cutmix-minmax 0.9 0.1
usage '--scale: "0 0" is not two numbers from 1e-06 to 1' train data --scale 0 0
usage '--scale 0.5 0.2: the first number, the lower limit, is above the second' train data --scale 0.5 0.2
usage '--ratio: "1" is not two numbers from 0.001 to 100' train data --ratio 1
usage '--opt-betas: "0.9" is not two numbers from 0 to 0.999999' train data --opt-betas 0.9
usage '--modules: "" is not a text of 1 to 255 bytes' train data --modules ''
usage 'in_chans must be 1 or 3, not 2' train data --model resnet20 --in-chans 2
usage '--aa: augmentation "rand-m1000": its magnitudes, mN and mmaxX, must lie in 0..100, X above 0' \
    train data --aa rand-m1000
usage '--aa: augmentation "original": only timm'"'"'s RandAugment is supported, as in "rand-m9-mstd0.5-inc1"; AutoAugment (original, v0, 3a, ...) and AugMix are not; 3-Augment is --three-augment' \
    train data --aa original
usage "--aa and --three-augment exclude each other: leave one of them out (--aa '' takes back that of a recipe)" \
    train data --aa rand-m9 --three-augment
usage '--layer-decay-min-scale and --layer-decay-no-opt-scale are settings of --layer-decay, which is not given' \
    train data --layer-decay-min-scale 0.1
usage '--aa: augmentation "augmix-m3": only timm'"'"'s RandAugment is supported, as in "rand-m9-mstd0.5-inc1"; AutoAugment (original, v0, 3a, ...) and AugMix are not; 3-Augment is --three-augment' \
    train data --aa augmix-m3
usage '--aug-repeats: "1.5" is not a whole number from 0 to 100' train data --model resnet20 --aug-repeats 1.5
usage '--amp computes in bfloat16 only, not in float16; use --amp-dtype bfloat16' train data --amp --amp-dtype float16
usage '--amp-dtype: there is no "half", only bfloat16, float16' train data --amp --amp-dtype half
usage "--pretrained is timm's, but attscope does not have it yet; training starts from pretrained weights with --initial-checkpoint timm/NETWORK.TAG, and other commands take timm/NETWORK.TAG as their checkpoint" validate data --pretrained

# Flags of DeiT's main.py, and short forms: what to write instead, if the command has it.
usage 'unknown option --teacher-path; use --teacher' train data --teacher-path teacher.pth
usage 'unknown option --teacher-path; see attscope validate --help' validate data --teacher-path teacher.pth
usage 'unknown option --data-path; give the folder as DATA, or use --data-dir' train --data-path data
usage 'unknown option --data-set; leave it out, because the format of DATA is recognised' train data --data-set CIFAR
usage 'unknown option --finetune; use --initial-checkpoint' train data --finetune deit.pth
usage 'unknown option --unscale-lr; leave it out, because --lr is never scaled by the batch size' train data --unscale-lr
usage 'unknown option --src; use --train-crop-mode src' train data --src
usage 'unknown option --kd-loss; use --teacher and --distillation-type' train data --kd-loss
usage 'unknown option --bce; use --bce-loss' train data --bce
usage 'unknown option --eval; use attscope validate' train data --eval
usage "--cosub is DeiT's, but attscope does not have it yet" train data --cosub
run 1 train missing --model resnet20 --ThreeAugment --world_size 1 --dist_url env:// --no-pin-mem
err_is <<'TEXT'
--world-size, --dist-url, --no-pin-mem: ignored, because this only concerns the speed, memory, device or processes of PyTorch
attscope: missing does not exist
TEXT

# Several unknown flags are named in one message, whatever else is wrong.
run 2 train data --batch-szie 3 --jsd-loss -z --epochs ten
err_is <<'TEXT'
  unknown option --batch-szie; did you mean --batch-size?
  --jsd-loss is timm's, but attscope does not have it yet; the loss is cross entropy
  unknown option -z; see attscope train --help
attscope: 3 options are refused, for the reasons given above
TEXT
printf 'epohcs: 3\nmodel: resnet20\njson: out\n' >c.yaml
run 2 train data -c c.yaml
err_is <<'TEXT'
  c.yaml, line 1: unknown option epohcs; did you mean epochs?
  c.yaml, line 3: json belongs to a single call; give --json on the command line
attscope: c.yaml: 2 options are refused, for the reasons given above
TEXT
printf 'json: out\n' >c.yaml
usage 'c.yaml, line 1: json belongs to a single call; give --json on the command line' train data -c c.yaml
printf 'jsom: out\n' >c.yaml
usage 'c.yaml, line 1: unknown option jsom; see attscope train --help' train data -c c.yaml
# shellcheck disable=SC2046
run 2 train data $(printf -- '--unknown%d ' $(seq 20))
err_has '20 options are refused'
err_has '  and 4 more'

# Flags of timm's that only concern speed, memory or device of PyTorch are ignored, with one note.
run 1 train missing --model resnet20 --pin-mem --device-modules a b --pin-mem --torchcompile inductor --num-gpu 2
err_is <<'TEXT'
--pin-mem, --device-modules, --torchcompile, --num-gpu: ignored, because this only concerns the speed, memory, device or processes of PyTorch
attscope: missing does not exist
TEXT
run 1 validate --torchscript --channels-last --device=cuda --no-prefetcher --torchcompile missing --checkpoint "$0"
err_has '--torchscript, --channels-last, --device, --no-prefetcher, --torchcompile: ignored'
printf 'model: resnet20\npin_mem: true\ntorchcompile: null\ndevice: cuda\nfast_norm: false\nfuser: te\n' >c.yaml
for command in train sweep; do
    operands=missing
    [ $command = train ] || operands='c.yaml missing'
    # shellcheck disable=SC2086
    run 1 $command $operands $([ $command = sweep ] || echo -c c.yaml)
    err_is <<'TEXT'
--pin-mem, --fuser: ignored, because this only concerns the speed, memory, device or processes of PyTorch
attscope: missing does not exist
TEXT
done

run 1 train missing --model resnet20 --local-rank 0 --dist-bn reduce --amp-impl native --worker-seeding all --cooldown-epochs 0
err_is <<'TEXT'
--local-rank, --dist-bn, --amp-impl, --worker-seeding: ignored, because this only concerns the speed, memory, device or processes of PyTorch
attscope: missing does not exist
TEXT
run 1 train missing --model resnet20 --clip-mode=norm --lr-k-decay 1.0
err_is <<<'attscope: missing does not exist'
usage "--cooldown-epochs is timm's, but attscope does not have it yet" train missing --cooldown-epochs 5
usage "--log-wandb is timm's, but attscope does not have it yet; the run's folder has metrics.jsonl and scalars for TensorBoard" \
    train missing --log-wandb
usage 'unknown option --pinmem; did you mean --pin-mem?' train missing --pinmem
usage 'unknown option --no-retry; see attscope train --help' train missing --no-retry
usage '--pin-mem: "yes" is not true or false' train missing --pin-mem=yes
printf 'pin_mem: maybe\n' >c.yaml
usage 'c.yaml, line 1: pin_mem must be true or false' train missing -c c.yaml
printf 'pin_mem: True\namp: FALSE\nno_aug: True\nsplit_bn: False\n' >c.yaml
run 1 train missing -c c.yaml --model resnet20
err_is <<'TEXT'
--pin-mem: ignored, because this only concerns the speed, memory, device or processes of PyTorch
attscope: missing does not exist
TEXT
for word in yes on Y; do
    printf 'epochs: 3\nbce_loss: %s\n' $word >c.yaml
    usage "c.yaml, line 2: bce_loss: \"$word\" is not true or false; write true" train missing -c c.yaml
done
printf 'amp: Off\n' >c.yaml
usage 'c.yaml, line 1: amp: "Off" is not true or false; write false' train missing -c c.yaml
printf 'help: true\n' >c.yaml
usage 'c.yaml, line 1: help belongs to a single call; give --help on the command line' train missing -c c.yaml

usage '--epochs needs a value: a whole number from 0 to 1000000' train data --epochs
usage '--epochs: "ten" is not a whole number from 0 to 1000000' train data --epochs ten
usage '--epochs: "-1" is not a whole number from 0 to 1000000' train data --epochs=-1
usage '-b: "99999999999999999999" is not a whole number from 1 to 65536' train data -b 99999999999999999999
usage '--lr: "nan" is not a number from 0 to 1000' train data --lr nan
usage '--mean: "4" is one too many or out of range: a number from 0 to 1, up to 3 of them' train data --mean 1 1 1 4
usage '--model-ema: "maybe" is not true or false' train data --model-ema=maybe
usage '--opt: there is no "adm"; did you mean adam?' train data --opt adm
usage '--modules: there is no "cbs"; did you mean cb?' train data --modules cbs
usage '--crop-mode: there is no "middle", only center, floor, squash, border, keep, within' train data --crop-mode middle
usage '--interpolation: there is no "lanczos", only bicubic, bilinear, nearest, bicubic_float, bilinear_float, bilinear_plain' \
    train data --interpolation lanczos
usage 'there is no model "vit_tiny_patch16_244"; did you mean "vit_tiny_patch16_224"?' \
    train data --model vit_tiny_patch16_244

usage 'train needs DATA; see attscope train --help' train
usage 'validate needs CHECKPOINT and DATA; see attscope validate --help' validate data
usage 'validate: "c" is one operand too many; see attscope validate --help' validate a b c
usage 'validate: "b" is one operand too many; see attscope validate --help' validate a b --checkpoint c
usage '--occlude takes one number; "112" after it is taken as an operand' validate data --checkpoint a --occlude 112 112
usage '--occlude takes one number; "112" after it is taken as an operand' validate --occlude 112 112 data --checkpoint a
usage 'validate: "112" is one operand too many; see attscope validate --help' \
    validate data 112 --checkpoint a --occlude 112
usage 'predict needs CHECKPOINT IMAGE...; see attscope predict --help' predict only.safetensors
usage 'inspect: "b" is one operand too many; see attscope inspect --help' inspect a b
run 1 train --resume missing/last.safetensors
err_has 'attscope: missing/last.safetensors does not exist'
usage 'resume auto needs an experiment, the name of the run to continue' train data --resume auto --model vit_tiny_patch16_224

printf -v long 'x%.0s' {1..300}
for command in 'train data --model resnet20' 'sweep c.yaml data' 'measure c.yaml data --output out'; do
    # shellcheck disable=SC2086
    usage "experiment: \"${long:0:32}...\" has 300 bytes; the name of a folder has at most 255" \
        $command --experiment "$long"
done
printf -v longer '%s/' "$long" "$long" "$long" "$long" "$long" "$long" "$long" "$long" "$long" "$long" "$long" "$long" "$long" "$long"
for command in 'train data --model resnet20' 'measure c.yaml data'; do
    # shellcheck disable=SC2086
    run 2 $command --output "$longer" --experiment x
    err_is <<<"attscope: \"${long:0:64}...\" is longer than a path may be"
done

usage '--seed: "-1" is not a whole number from 0 to 2^64 - 1' train data --seed -1
usage '--checkpoint-hist: "0" is not a whole number from 1 to 1000' train data --checkpoint-hist 0
usage 'there is no model "foo"; attscope models lists all' train data -m foo
usage 'timm has resnetaa50 (anti-aliased downsampling); attscope does not support it' train data -m resnetaa50
usage 'deit_tiny_patch16_224 has no pretrained tag "in1k"; its tags are fb_in1k' \
    train data -m deit_tiny_patch16_224.in1k
run 1 inspect missing.safetensors
err_is <<<'attscope: missing.safetensors: No such file or directory'
ln -s nowhere link.safetensors
run 1 inspect link.safetensors
err_is <<<'attscope: link.safetensors is a symbolic link to a file that does not exist; restore that file, or download it again'

# Messages about files name the flag that gave the file.
run 1 validate data --checkpoint missing.safetensors
err_is <<<'attscope: --checkpoint missing.safetensors could not be opened: No such file or directory'
run 1 validate missing.safetensors folder
err_is <<<'attscope: missing.safetensors could not be opened: No such file or directory'
run 1 train data --model resnet20 --initial-checkpoint missing.safetensors
err_is <<<'attscope: --initial-checkpoint: there is no file or folder "missing.safetensors"'
run 1 train data --model resnet20 --class-map missing.txt
err_is <<<'attscope: --class-map missing.txt could not be opened: No such file or directory'
printf 'model: resnet20\nclass_map: missing.txt\n' >c.yaml
run 1 sweep c.yaml data --seeds 1
err_has 'attscope: --class-map missing.txt could not be opened: No such file or directory'
idx data
echo cat >short.txt
run 1 train data --model resnet20 --img-size 8 --in-chans 1 --class-map short.txt
err_has 'label 3, but the class map short.txt has 1 class'
err_has '--class-map short.txt says which classes there are, one a line'

run 1 predict missing.safetensors picture.png
err_has 'missing.safetensors'
[ "$(wc -l <stderr)" -eq 1 ] || fail 'a failure is more than one sentence'

# Every command's help has an example and fits 80 columns.
for command in train validate measure predict models modules inspect report experiment bench; do
    run 0 "$command" --help
    out_has "Usage: attscope $command"
    out_has 'Example:'
    out_has "  attscope $command"
    [ -z "$(grep -E '^[A-Z].*:$' stdout | sort | uniq -d)" ] || fail "$command --help: two groups of one name"
    awk 'length > 80 { print FILENAME ": " length ": " $0; bad = 1 } END { exit bad }' stdout || fail "$command --help: too wide"
done

# Most options of networks are shown on request.
run 0 predict --help
out_has '  -m, --model NAME'
out_has ' more flags: --help-network'
grep -qe '--box-channels' stdout && fail 'predict --help shows all flags of networks'
run 0 predict --help-network
out_has '  -m, --model NAME'
out_has '  --box-channels N'
grep -qe '--threads' -e 'more flags' stdout && fail 'predict --help-network shows other flags, or not all'
usage 'unknown option --help-network; see attscope serve --help' serve --help-network

# Config files: the same flags, with underscores or dashes; the command line takes precedence; errors name the line.
printf 'epochs: 3\nbatch_szie: 4\n' >c.yaml
usage 'c.yaml, line 2: unknown option batch_szie; did you mean batch-size?' train data -c c.yaml
printf 'lr: fast\n' >c.yaml
usage 'c.yaml, line 1: lr: "fast" is not a number from 0 to 1000' train data -c c.yaml
# In timm's files, "" means "not given".
printf "opt: ''\nsched: ''\noutput: ''\nexperiment: ''\ndata: null\ntarget_key: null\n" >c.yaml
run 1 train missing -c c.yaml --model vit_tiny_patch16_224
err_has 'missing'
# All options that timm's train.py writes: unsupported ones are ignored if their value has no effect.
run 1 train missing -c "$here/timm_args.yaml"
err_is <<<'attscope: missing does not exist'
idx data
run 0 train data -c "$here/timm_args.yaml" $network $recipe --epochs 1 --output timm --experiment run
for line in 'model_kwargs: [a]' 'lr_noise: [0.4, 0.9]' 'kd_model_name: resnet50' 'train_img_sizes: [128, 160]'; do
    printf '%s\n' "$line" | cat "$here/timm_args.yaml" - | awk -F: '{ last[$1] = NR; line[NR] = $0; key[NR] = $1 }
        END { for (i = 1; i <= NR; i++) if (last[key[i]] == i || line[i] ~ /^-/) print line[i] }' >c.yaml
    run 2 train data -c c.yaml
    err_has "is timm's, but attscope does not have it yet"
    err_has "${line%%_*}"
done
printf 'lr_k_decay: 1\nval_interval: 1\namp_dtype: float16\n' >c.yaml
run 1 train missing -c c.yaml --model resnet20
printf 'amp: true\namp_dtype: float16\n' >c.yaml
usage '--amp computes in bfloat16 only, not in float16; use --amp-dtype bfloat16' train missing -c c.yaml --model resnet20
printf 'aa: original\n' >c.yaml
run 2 train missing -c c.yaml --model resnet20
err_has "only timm's RandAugment is supported"
printf 'grayscale_prob: 0.8\n' >c.yaml
usage "c.yaml, line 1: grayscale_prob is timm's, but attscope does not have it yet" train data -c c.yaml
printf 'bce_loss: false\naa: null\nremode: pixel\nopt: adamx\n' >c.yaml
usage 'c.yaml, line 4: opt: there is no "adamx"; did you mean adamw?' train data -c c.yaml

# If output cannot be written, the command fails; closed streams are not used for other files.
run_to() { # FILE or &-: attscope models, to there
    status=0
    eval '"$ATTSCOPE" models >'"$1"' 2>stderr' || status=$?
    command_line="attscope models >$1"
    [ $status -eq 1 ] || fail "$command_line: exit status $status, expected 1"
    err_has 'attscope: the output could not be written'
}
[ -e /dev/full ] && run_to /dev/full
run_to '&-'
idx data
# shellcheck disable=SC2086
"$ATTSCOPE" train data $network $recipe --epochs 1 --output out --experiment silent <&- >&- 2>&-
run 0 inspect out/silent/last.safetensors
[ "$(wc -l <out/silent/metrics.jsonl)" -eq 3 ] || fail "something was printed into a log: $(cat out/silent/metrics.jsonl)"
finish
