#!/bin/bash
# Heads that attend by position: convert --to-convolution and --prune-heads, and the degenerate heads that inspect lists.
. "$(dirname "$0")/lib.sh"
idx data
net='--model attention_cnn_quadratic --img-size 8 --patch-size 2 --in-chans 1 --num-classes 4 --embed-dim 8 --depth 2'
# shellcheck disable=SC2086
run 0 train data $net --num-heads 3 --mean 0.5 --std 0.5 $recipe --epochs 1 --output out --experiment a
cp out/a/last.safetensors alone.safetensors
run 0 inspect alone.safetensors
out_has 'degenerate   0 heads'
out_has 'rule: largest eigenvalue of P below 1e-05, or condition number of P above 1000'
run 0 convert alone.safetensors same.safetensors --prune-heads
out_has 'removed      0 heads'
run 0 convert alone.safetensors --to-convolution all
out_has 'blocks.1.attn, 3 heads on a grid of 4 x 4'
out_has '  3 x 3: error '
out_has '  5 x 5: no error for any weights, since the kernel reaches all keys; all queries '
run 0 convert alone.safetensors conv.safetensors --to-convolution 'blocks.0.*' --kernel-size 5 --json -
out_has '"grid_error"'
run 0 inspect conv.safetensors
out_has 'blocks.0.attn.conv.weight                        F32   [8, 8, 5, 5]'

# Factors of 0 in the second block: all of its heads are degenerate, and one of them stays.
fill_tensors alone.safetensors flat.safetensors 0 blocks.1.attn.factors
run 0 inspect flat.safetensors
out_has 'layer 1, heads 0, 1, 2'
run 0 convert flat.safetensors pruned.safetensors --prune-heads --json pruned.json
grep -q '"kept_degenerate_heads"' pruned.json || fail "no kept heads in the JSON: $(cat pruned.json)"
out_has 'removed      2 heads'
out_has 'layer 1, heads 1, 2'
out_has 'kept         layer 1, head 0: all heads of this layer are degenerate, and a layer needs one'
run 0 inspect pruned.safetensors
out_has 'layer_heads    3,1'
out_has 'layer 1, head 0'
run 0 validate data --checkpoint pruned.safetensors
# shellcheck disable=SC2086
run 0 train data $net --layer-heads 3,1 --initial-checkpoint pruned.safetensors --mean 0.5 --std 0.5 $recipe --epochs 1 \
    --output out --experiment b
# The recipe takes the network from the checkpoint.
run 0 train data -c "$here/../../recipes/attention-cnn-pruned.yaml" --initial-checkpoint pruned.safetensors \
    --num-classes 4 --mean 0.5 --std 0.5 --batch-size 32 --epochs 1 --warmup-epochs 0 --output out \
    --experiment pruned
run 0 inspect out/pruned/last.safetensors
out_has 'layer_heads    3,1'

# Weights with NaN have no degenerate heads, but can be inspected.
fill_tensors alone.safetensors nan.safetensors nan blocks.1.attn.centers
run 0 inspect nan.safetensors
err_has 'parameter "blocks.1.attn.centers": element 0 is not finite'
out_has 'blocks.1.attn.centers'
grep -q '^degenerate' stdout && fail "degenerate heads of weights with NaN"
run 1 convert nan.safetensors pruned.safetensors --prune-heads
err_has 'parameter "blocks.1.attn.centers": element 0 is not finite'

usage '--to-convolution: no layer is called "nosuch"; the 2 layers of attention_cnn_quadratic are blocks.0.attn and so on' \
    convert alone.safetensors --to-convolution nosuch
usage '--to-convolution writes convolutions of alone.safetensors, which are no network: "folder" should end in .safetensors' \
    convert alone.safetensors folder --to-convolution all
usage '--to-convolution writes convolutions of alone.safetensors, which are no network: leave out --mean, --std, --crop-pct, --crop-mode and --interpolation' \
    convert alone.safetensors x.safetensors --to-convolution all --mean 0.5
run 2 convert alone.safetensors
err_has 'convert writes a file'
run 2 convert alone.safetensors x.safetensors --to-convolution all --kernel-size 4
err_has '--kernel-size: expected an odd number, got 4'
usage '--to-convolution: no layers are named; expected names of layers, or all' convert alone.safetensors x.safetensors --to-convolution ''
usage '--kernel-size: a grid of 4 x 4 has no shifts for a kernel of 9 x 9; expected at most 7' \
    convert alone.safetensors x.safetensors --to-convolution all --kernel-size 9
run 0 convert alone.safetensors --to-convolution all --kernel-size 7
# shellcheck disable=SC2086
run 0 train data ${net/quadratic/learned} --num-heads 3 --mean 0.5 --std 0.5 $recipe --epochs 1 --output out --experiment c
run 1 convert out/c/last.safetensors x.safetensors --prune-heads
err_has 'attention_cnn_learned: --prune-heads leaves out degenerate heads of attention_cnn_isotropic and'
err_has 'the scores of this network are learned vectors, for which no head counts as degenerate'
run 2 convert alone.safetensors x.safetensors --to-convolution all --prune-heads
err_has 'give only one of them'
[ ! -e x.safetensors ] || fail 'a file was written'
finish
