#!/bin/bash
# ViTs with options that change their blocks, tokens and pooling: trained, recognised from their files, evaluated and
# measured; one of them in mixed precision and with layer-wise learning rates.
. "$(dirname "$0")/lib.sh"
idx data

vit='--model vit_tiny_patch16_224 --img-size 8 --patch-size 4 --in-chans 1 --num-classes 4 --embed-dim 16 --depth 2'
number=0
check() { # ADDITION FLAG...: ADDITION is the last residual step
    local addition=$1
    shift
    number=$((number + 1))
    # shellcheck disable=SC2086
    run 0 train data $vit --num-heads 2 "$@" $recipe --epochs 1 --output out --experiment "$number"
    cp "out/$number/last.safetensors" alone.safetensors
    run 0 inspect alone.safetensors
    run 0 validate data --checkpoint alone.safetensors
    run 0 measure alone.safetensors data --with nsi,tns,residual,entropy
    out_has "$addition"
}
check blocks.1.add2 --reg-tokens 2 --no-class-token --global-pool map --act-layer gelu_tanh --layer-decay 0.75
check blocks.1.add2 --pre-norm --act-layer quick_gelu --norm-eps 1e-5 --modules cb_s@after_attn
check blocks.1.add2 --mlp-layer swiglu --act-layer silu --norm-layer rmsnorm --no-proj-bias --qk-norm --amp --amp-force
check blocks.1.add2 --block-fn ParallelThingsBlock --init-values 0.1 --drop-path 0.1
check blocks.1.add1 --block-fn DiffParallelScalingBlock
check blocks.1.add2 --distilled --attn-layer diff
finish
