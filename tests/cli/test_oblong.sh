#!/bin/bash
# A network for images of 8 x 12 pixels in patches of 2 x 4: trained, recognised from its file, evaluated, measured,
# reported.
. "$(dirname "$0")/lib.sh"
idx data

oblong='--model vit_tiny_patch16_224 --img-size 8 12 --patch-size 2 4 --in-chans 1 --num-classes 4 --embed-dim 16'
# shellcheck disable=SC2086
run 0 train data $oblong --depth 1 --num-heads 2 $recipe --lr 1e-9 --epochs 1 --output out --experiment a --measure entropy --measure-every 3
grep -qE '"event":"run_begin".*"tokens":13' out/a/metrics.jsonl || fail 'the tokens of the training are not recorded'

run 0 inspect out/a/last.safetensors
out_has 'img_size            8 x 12'
out_has 'patch_size          2 x 4'
out_has 'images       8 x 12 x 1'
run 0 validate data --checkpoint out/a/last.safetensors --results-file results.csv
grep -q '^vit_tiny_patch16_224,8x12,' results.csv || fail 'the results lack the sides of images'
run 0 predict out/a/last.safetensors data --topk 1

run 0 measure out/a/last.safetensors data --with entropy,distance --maps 2 --json measured.json
grep -q '"tokens":13' out/a/measure.jsonl || fail 'the tokens of the measurement are not recorded'
grep -qaF '\"grid_h\":4,\"grid_w\":3' out/a/maps.safetensors || fail 'the grid of the maps is another'
grep -qaE '"image":\{"dtype":"U8","shape":\[2,8,12,1\]' out/a/maps.safetensors || fail 'the images of the maps have other sides'
# Attention is uniform up to about 1 %, so the figure is the mean distance of two patch centres, for patches of 2 x 4
# pixels in units of 12.
uniform=$(awk 'BEGIN {
    for (i = 0; i < 12; i++)
        for (j = 0; j < 12; j++)
            sum += sqrt((2 * (int(i / 3) - int(j / 3))) ^ 2 + (4 * (i % 3 - j % 3)) ^ 2) / 12
    print sum / 12 / 13
}')
tr -d ' \n' <measured.json | grep -oE '"instrument":"distance",[^}]*"statistic":"mean","mean":[0-9.]*' |
    awk -F: -v uniform="$uniform" '{ n++; far += $NF < 0.98 * uniform || $NF > 1.02 * uniform } END { exit n != 3 || far }' ||
    fail "distances are not about $uniform"

run 0 report out/a -o page.html
grep -q '"img_size":"8x12"' page.html || fail 'the page lacks the sides of images'

# --input-size takes precedence over the sides in a file of options and over --img-size.
for size in '--input-size 1 4 16' '--img-size 8 --input-size 1 4 16'; do
    # shellcheck disable=SC2086
    run 0 train -c out/a/args.yaml $size --output out --experiment b
    err_has 'trains vit_tiny_patch16_224, 4 x 16 x 1, '
    rm -r out/b
done
usage '--img-size: "0 12" is not one or two whole numbers, height and width, from 1 to 65536' train data --img-size 0 12
usage '--input-size needs three whole numbers: channels, height, width (--img-size needs one or two)' train data --input-size 8 12

# Another grid with as many patches.
run 0 validate data --checkpoint out/a/last.safetensors --img-size 6 16
err_has 'pos_embed: resampled from 4 x 3 patches to 3 x 4'
finish
