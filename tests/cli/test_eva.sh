#!/bin/bash
# Networks of the EVA family: trained, recognised from their files, evaluated at another image size and measured; one of
# them in mixed precision and with layer-wise learning rates.
. "$(dirname "$0")/lib.sh"
idx data

number=0
check() { # NETWORK FLAG...
    local network=$1 sizes='--img-size 8 --patch-size 2 --in-chans 1 --num-classes 4 --embed-dim 16 --depth 2'
    shift
    number=$((number + 1))
    # shellcheck disable=SC2086
    run 0 train data --model "$network" $sizes --num-heads 2 "$@" $recipe --epochs 1 --output out --experiment "$number"
    cp "out/$number/last.safetensors" alone.safetensors
    run 0 inspect alone.safetensors
    out_has "$network"
    run 0 validate data --checkpoint alone.safetensors
    run 0 validate data --checkpoint alone.safetensors --img-size 12
    run 0 measure alone.safetensors data --with nsi,tns,residual,entropy,distance
    out_has blocks.1.add2
    out_has blocks.1.attn
}
check eva02_base_patch14_448 --modules cb_s@after_attn
check vit_small_patch16_dinov3_qkvb --layer-decay 0.75
check vit_small_patch16_rope_mixed_ape_224 --amp --amp-force
check vit_small_patch16_rope_ape_224 # has the tensors of DeiT III's own files
check vit_pe_core_tiny_patch16_384 --attn-pool-num-heads 4 --drop-path 0.1
check eva02_enormous_patch14_clip_224 --reg-tokens 2

run 0 measure "out/$number/last.safetensors" data --with entropy --maps 2
run 0 report "out/$number" -o page.html
run 0 models 'eva*'
out_has eva02_tiny_patch14_224
run 2 train data --model eva02_tiny_patch14_224 --embed-dim 12 --num-heads 2 --img-size 28
err_has 'a multiple of 4'
finish
