#!/bin/bash
# Folders of the transformers library: measured, trained further with other classes and at another image size, converted.
. "$(dirname "$0")/lib.sh"
idx data
layouts=$here/../goldens/layouts

check() { # FOLDER FIRST SIZE: FIRST is the first attention, SIZE another image size
    local folder=$layouts/$1
    run 0 measure "$folder" data --with nsi,tns,residual,entropy,distance --maps 1 --output out --experiment "of_$1"
    out_has "$2"
    [ -s "out/of_$1/maps.safetensors" ] || fail "there are no maps of $1"
    # shellcheck disable=SC2086
    run 0 train data --initial-checkpoint "$folder" --num-classes 4 --img-size "$3" $recipe --epochs 1 \
        --output out --experiment "$1"
    run 0 validate data --checkpoint "out/$1/last.safetensors"
    run 0 inspect "out/$1/last.safetensors"
    out_has "images       $3 x $3 x 3"
    grep -qE ' num_classes +4$' stdout || fail "$1: the trained network has other classes"
    run 0 convert "$folder" "$1.safetensors"
    run 0 inspect "$1.safetensors"
}
check vit blocks.0.attn 12
check beit blocks.0.attn 12
check clip blocks.0.attn 12
check swinv2 layers.0.blocks.0.attn 16
check dinov3 blocks.0.attn 12
out_has 'images       8 x 8 x 3, mean 0.485 0.456 0.406, std 0.229 0.224 0.225, crop 1 squash, bilinear_float'
# Settings of another network, of other images than those that are prepared; one number for all channels.
cp -r "$layouts/swinv2" limited
sed -i 's/"image_size": 8/"image_size": 16/; s/"window_size": [0-9]*/"window_size": 4/' limited/config.json
run 1 inspect limited
err_has 'image_size is 16, but images are prepared with 8 pixels; transformers limits the windows of stage 2'
cp -r "$layouts/vit" other
sed -i 's/"num_hidden_layers": [0-9]*/"num_hidden_layers": 9/' other/config.json
run 1 predict other "$here/../goldens/images/420.jpg"
err_has 'num_hidden_layers is not that of the network whose tensors other/model.safetensors has'
# A projection has no classes.
for network in clip_projection clip; do
    run 1 predict "$layouts/$network" "$here/../goldens/images/420.jpg"
    err_has 'its outputs are features of a projection, not scores of classes'
    err_has 'values are features, not scores of classes: it predicts nothing (attscope embed writes features'
done
run 1 validate "$layouts/clip_projection" data
err_has 'are features, not scores of classes: it cannot be evaluated'
# Nor have its copies.
run 0 convert "$layouts/clip_projection" projection.safetensors
run 0 convert projection.safetensors again.safetensors
run 0 convert "$layouts/clip_projection" projection --crop-mode center
for network in projection.safetensors again.safetensors projection; do
    run 1 predict $network "$here/../goldens/images/420.jpg"
    err_has 'values are features, not scores of classes: it predicts nothing'
done
# A part of a file beside the config.json of the whole.
run 1 inspect "$layouts/vit/model.safetensors#classifier"
err_has 'config.json: describes transformers'\'' ViT, but the part "classifier" of '
err_has '; name the file without #classifier, or with the part that holds that network'
cp -r "$layouts/vit" grey
tr -d '\n' <grey/preprocessor_config.json | sed -E 's/"image_mean": \[[^]]*\]/"image_mean": [0.25]/' >p && mv p grey/preprocessor_config.json
run 0 inspect grey/
err_has 'grey/ is a folder; using its model.safetensors'
out_has 'mean 0.25'
finish
