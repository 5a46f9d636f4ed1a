#!/bin/bash
# A ConvNeXt and a RegNet: trained, recognised from their files, measured, ablated; they have no maps of attention.
. "$(dirname "$0")/lib.sh"
idx data

sizes='--img-size 16 --in-chans 1 --num-classes 4 --depths 1,2 --dims 8,16'
# shellcheck disable=SC2086
run 0 train data --model convnext_atto $sizes --patch-size 2 --modules se:ratio=4 $recipe --epochs 1 --output out --experiment a
cp out/a/last.safetensors alone.safetensors
run 0 inspect alone.safetensors
for option in 'depths           1,2' 'dims             8,16' 'kernel_sizes     7' 'modules          se:ratio=4'; do
    out_has " $option"
done
run 0 validate data --checkpoint alone.safetensors
run 0 measure alone.safetensors data --with nsi,tns,gate
for addition in stages.0.blocks.0.add stages.1.blocks.0.add stages.1.blocks.1.add stages.0.blocks.0.mlp.se.gate; do
    out_has "$addition"
done
run 2 measure alone.safetensors data --with entropy
err_has 'this network has attention over channels only (module se, first in stages.0.blocks.0.mlp.se)'

# shellcheck disable=SC2086
run 0 train data --model regnety_002 $sizes --group-sizes 4 $recipe --epochs 1 --output out --experiment b
cp out/b/last.safetensors other.safetensors
run 0 validate data --checkpoint other.safetensors
run 0 measure other.safetensors data --with nsi,gate
for gate in s1.b1.add s2.b2.add s1.b1.se.gate s2.b1.se.gate; do
    out_has "$gate"
done
finish
