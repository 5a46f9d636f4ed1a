#!/bin/bash
# Every flag of the recipe has an effect: the losses of two epochs differ with and without it.
. "$(dirname "$0")/lib.sh"
idx data
runs=0

# train FLAG...: writes the losses of training and evaluation, epoch by epoch, to `losses`.
train() {
    runs=$((runs + 1))
    # shellcheck disable=SC2086
    run 0 train data $network --threads 1 --epochs 2 --output out --experiment $runs "$@"
    losses=$(cut -d, -f2,3 out/$runs/summary.csv)
}
train --batch-size 16
[ "$(head -n 1 <<<"$losses")" = train_loss,eval_loss ] || fail "the file has no columns of losses: $losses"

# base FLAG...: sets the flags that the next calls of changes add to. changes FLAG...: the losses must differ from the
# base.
base() {
    base=("$@")
    train "$@"
    base_losses=$losses
}
changes() {
    train "${base[@]}" "$@"
    [ "$losses" != "$base_losses" ] || fail "$* changes nothing"
}

base --batch-size 16 --opt adamw --lr 3e-3 --no-aug --warmup-epochs 1
changes --opt-betas 0.5 0.9
changes --opt-eps 1e-2
changes --weight-decay 0.5
changes --clip-grad 0.01
changes --warmup-lr 1e-3
changes --sched constant
changes --sched-on-updates
changes --min-lr 1e-3
changes --grad-accum-steps 2
changes --smoothing 0
changes --drop 0.3
changes --seed 7
changes --mean 0.3
changes --std 0.2
changes --crop-pct 0.7
changes --mlp-ratio 2
changes --no-class-token --global-pool avg
changes --init-values 0.1
changes --modules cb

base --batch-size 16 --opt momentum --lr 3e-2 --no-aug --warmup-epochs 0 --sched step --decay-epochs 1
changes --momentum 0.5
changes --decay-rate 0.5
base --batch-size 16 --opt momentum --lr 3e-2 --no-aug --warmup-epochs 0 --sched multistep
changes --decay-milestones 2
base --batch-size 16 --opt sgd --no-aug --warmup-epochs 0
changes --lr 0.01
changes --lr-base 0.01

base --batch-size 16 --opt adamw --lr 3e-3 --warmup-epochs 0
changes --no-aug
changes --scale 0.5 1
changes --ratio 1 1
changes --hflip 0
changes --train-interpolation bilinear
changes --train-interpolation random
changes --train-crop-mode center
changes --vflip 0.5
changes --color-jitter 0
changes --aa rand-m9-mstd0.5-inc1
changes --aug-repeats 2
changes --mixup 0.8
changes --cutmix 1
changes --cutmix-minmax 0.2 0.8
base --batch-size 16 --opt adamw --lr 3e-3 --warmup-epochs 0 --reprob 0.5
changes --reprob 1
changes --remode const
changes --recount 3
base --batch-size 16 --opt adamw --lr 3e-3 --warmup-epochs 0 --mixup 0.8 --cutmix 1
changes --mixup-prob 0.5
changes --mixup-switch-prob 0
changes --mixup-mode pair
changes --mixup-off-epoch 1
changes --smoothing 0
base --batch-size 16 --opt adamw --lr 3e-3 --warmup-epochs 0 --train-crop-mode pad
changes --pad 1

# The first block drops nothing.
network=${network/--depth 1/--depth 2}
base --batch-size 16 --opt adamw --lr 3e-3 --no-aug
changes --drop-path 0.3
finish
