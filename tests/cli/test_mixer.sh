#!/bin/bash
# An MLP-Mixer: trained, recognised from its file, measured; another image size is refused.
. "$(dirname "$0")/lib.sh"
idx data

mixer='--model mixer_s16_224 --img-size 8 --patch-size 4 2 --in-chans 1 --num-classes 4 --embed-dim 16 --depth 2'
# shellcheck disable=SC2086
run 0 train data $mixer --mlp-ratio 2 --token-mlp-ratio 0.75 --drop-path 0.1 $recipe --epochs 1 --output out --experiment a
cp out/a/last.safetensors alone.safetensors

run 0 inspect alone.safetensors
for option in 'img_size        8' 'patch_size      4 x 2' 'depth           2' 'mlp_ratio       2' 'token_mlp_ratio 0.75'; do
    out_has " $option"
done
run 0 validate data --checkpoint alone.safetensors
run 0 measure alone.safetensors data --with nsi,tns,residual
for addition in blocks.0.add1 blocks.0.add2 blocks.1.add1 blocks.1.add2; do
    out_has "$addition"
done
run 2 measure alone.safetensors data --with entropy
err_has 'this network has no attention; "nsi" and "tns" measure the residual steps'

run 1 validate data --checkpoint alone.safetensors --img-size 16
err_has 'these fit 8, and an image of 16 x 16 pixels has 32; leave img_size out'
# shellcheck disable=SC2086
run 1 train data $mixer --img-size 16 --initial-checkpoint alone.safetensors $recipe --epochs 1 --output out --experiment b
err_has 'these fit 8, and an image of 16 x 16 pixels has 32; leave img_size out'
finish
