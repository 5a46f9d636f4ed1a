#!/bin/bash
# Swin Transformers of all versions: trained, recognised from their files, evaluated at another image size and measured.
. "$(dirname "$0")/lib.sh"
idx data

swin='--img-size 8 --patch-size 1 --in-chans 1 --num-classes 4 --embed-dim 8 --depths 2,1 --stage-heads 1,2'
check() { # NAME FIRST FLAG...: FIRST is the first attention
    local name=$1 first=$2
    shift 2
    # shellcheck disable=SC2086
    run 0 train data --model "$name" $swin "$@" $recipe --epochs 1 --output out --experiment "$name" --drop-path 0.1
    cp "out/$name/last.safetensors" alone.safetensors
    run 0 validate data --checkpoint alone.safetensors
    run 0 validate data --checkpoint alone.safetensors --img-size 12
    run 0 measure "out/$name/last.safetensors" data --with nsi,tns,residual,entropy,distance --maps 1
    out_has "$first"
    [ -s "out/$name/maps.safetensors" ] || fail "there are no maps of $name"
    run 0 inspect alone.safetensors
}
check swin_tiny_patch4_window7_224 layers.0.blocks.0.attn --window-size 3
out_has ' swin_version            v1'
check swinv2_tiny_window8_256 layers.0.blocks.0.attn --window-size 4 --pretrained-window-sizes 2,0 --amp --amp-force
for option in 'swin_version            v2' 'window_size             4' 'pretrained_window_sizes 2,0'; do
    out_has " $option"
done
check swinv2_cr_tiny_224 stages.0.blocks.0.attn --window-size 1/3 --extra-norm-stage --layer-decay 0.75 \
    --modules cb_s@after_attn
for option in 'swin_version            v2_cr' 'window_size             1/3' 'extra_norm_stage        true'; do
    out_has " $option"
done

# shellcheck disable=SC2086
usage 'extra_norm_stage is an option of swin_version v2_cr, not of v2' \
    train data --model swinv2_tiny_window8_256 $swin --extra-norm-stage $recipe --output out --experiment never
# shellcheck disable=SC2086
run 2 train data --model swinv2_cr_tiny_224 $swin --window-size 3,4,5 $recipe --output out --experiment never
err_has 'one number for each of 2 stages, or a fraction of the grid as "1/8", not "3,4,5"'
finish
