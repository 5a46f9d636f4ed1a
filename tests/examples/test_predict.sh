#!/bin/bash
# examples/predict.c: the classes of an image, as `attscope predict` prints them.
. "$(dirname "$0")/../cli/lib.sh"
attscope=$ATTSCOPE image=$here/../goldens/images/grey.png
idx data
# shellcheck disable=SC2086
run 0 train data $network $recipe --epochs 1 --output out --experiment net
run 0 predict out/net "$image" --topk 3
sed -n '/%/s/^ */ /p' stdout >predicted
ATTSCOPE=$ATT_BUILD/examples/predict
run 0 out/net "$image"
out_is <predicted
run 1 nowhere "$image"
err_has nowhere
run 2 out/net
err_is <<<'usage: predict CHECKPOINT IMAGE [MODEL]'

needs_shared data/weights/deit_tiny_patch16_224.safetensors data/imagenet200/val
run 0 "$ATT_SHARED/data/weights/deit_tiny_patch16_224.safetensors" \
    "$ATT_SHARED/data/imagenet200/val/n01440764/n01440764_tench.JPEG" deit_tiny_patch16_224
[ "$(head -n 1 stdout | sed 's/.* //')" = tench ] || fail "a tench: $(cat stdout)"
finish
