#!/bin/bash
# --task segment: training, validation, measurement and prediction on photographs with masks, as one process and as two.
. "$(dirname "$0")/lib.sh"
needs python3
too_long_sanitized

photographs data
settings=(--task segment --model resnet20 --img-size 32 40 --scale 1 1 --color-jitter 0
    --opt adamw --lr 1e-2 --warmup-epochs 0 --epochs 3 -b 4 -j 1 --threads 2 --lanes 2 --sync-bn --output output)

run 0 train data "${settings[@]}" --experiment first --json first.json
miou=$(python3 -c 'import json; print(json.load(open("first.json"))["eval_miou"])')
python3 -c "import sys; sys.exit(not $miou > 60)" || fail "the segmenter learned nothing: mIoU $miou"
grep -q '"instrument":"segmentation","node":"road","statistic":"iou"' output/first/metrics.jsonl ||
    fail 'the records of the training have no IoU of a class'

run 0 validate data --checkpoint output/first/last.safetensors --json validate.json
run 0 validate data --checkpoint output/first/last.safetensors
out_has 'mIoU '
out_has '1 pass: one image of 32 x 40 pixels, --crop-mode squash --crop-pct 1'
run 0 validate data --checkpoint output/first/last.safetensors --crop-mode center --crop-pct 0.5
out_has '1 pass: one image of 32 x 40 pixels, --crop-mode center --crop-pct 0.5'
run 0 validate data --checkpoint output/first/last.safetensors
out_has '  road   iou '
! grep -q sea stdout || fail 'a class that occurs nowhere has figures'
python3 - "$miou" <<'END' || fail 'the IoU of the classes do not give the mIoU of the training'
import json, sys
found = json.load(open("validate.json"))
ious = [m["mean"] for m in found["measurements"] if m["statistic"] == "iou"]
sys.exit(not (len(ious) == 2 and abs(sum(ious) / 2 - found["miou"]) < 1e-9 and abs(found["miou"] - float(sys.argv[1])) < 1e-6))
END

# The size of batches changes no bit of the figures. An attack needs the mask at the size of the network's image.
run 0 validate data --checkpoint output/first/last.safetensors -b 3 --json batches.json
diff <(grep -v per_second validate.json | grep -v wait_share) <(grep -v per_second batches.json | grep -v wait_share) ||
    fail 'the size of batches changes the figures'
run 0 validate data --checkpoint output/first/last.safetensors --fgsm 0.1
out_has 'FGSM 0.1'

run 0 measure output/first/last.safetensors data --brief
grep -q '"instrument":"segmentation","node":"sky","statistic":"accuracy"' output/first/measure.jsonl ||
    fail 'the records of a measurement have no figures of classes'
! grep -q 'has no masks' stderr || fail 'masks that exist are missed'
run 0 measure output/first/last.safetensors data/val --brief
err_has 'data/val has no masks that belong to its photographs'
err_has 'name the split (--split)'
run 1 validate data/val --checkpoint output/first
err_has 'give the folder that contains its photographs and masks, and name the split'

run 0 predict output/first data/val/0.png data/val/1.png
out_has '% of the pixels       1  road'
run 0 predict output/first data/val/0.png --json predict.json
python3 - <<'END' || fail 'the shares of the classes'
import json, sys
classes = json.load(open("predict.json"))[0]["classes"]
sys.exit(not (abs(sum(c["share"] for c in classes) - 1) < 1e-9 and classes[0]["label"] in ("sky", "road")))
END

run 0 report output/first --output report.html
grep -q segmentation report.html || fail 'the report has no figures of classes'

# What cannot be done is said in one sentence.
run 1 train data "${settings[@]}" --experiment mixup --mixup 0.8
err_has 'a pixel of the target "mask" has one class'
run 0 train data "${settings[@]}" --experiment cutmix --cutmix 1
run 1 train data "${settings[@]}" --experiment classes --num-classes 4
err_has 'the masks have 3 classes, but the model has 4'
idx classes
run 1 train classes --task segment --model resnet20 --in-chans 1 --img-size 8 --experiment none --output output
err_has 'masks'

# Masks without a class: one warning each, in however many epochs.
photographs void without-classes
run 0 train void "${settings[@]}" --experiment void
[ "$(grep -c 'the loss up to update [0-9]* is exactly 0: no pixel of the training masks has a class' stderr)" = 1 ] ||
    fail 'training masks without a class'
[ "$(grep -c 'no pixel of the masks of the 5 evaluated images has a class' stderr)" = 1 ] ||
    fail 'masks of the evaluation without a class'
run 0 validate void --checkpoint output/first
err_has 'so that all metrics are nan (undefined)'

# --draw: the photographs of two folders have the same names. The index has the size of the photograph and a palette of
# the legend's colours, and its classes give the mIoU of the evaluation.
mkdir -p other/a
cp data/val/0.png other/a/0.png
run 0 predict output/first data/val other/a/0.png --draw drawn/here --json drawn.json
out_has '  drawn: drawn/here/0-2.drawn.png'
[ "$(ls drawn/here)" = "$(printf '%s\n' 0-2.classes.png 0-2.drawn.png {0..4}.classes.png {0..4}.drawn.png legend.txt |
    LC_ALL=C sort)" ] || fail "the files of drawings: $(ls drawn/here)"
cmp -s drawn/here/0.classes.png drawn/here/0-2.classes.png || fail 'one photograph has two drawings'
[ "$(cat drawn/here/legend.txt)" = $'sky 0 96 255\nroad 255 255 0\nsea 255 0 0' ] || fail 'the legend'
cat >pngs.py <<'END'
"""Reads PNGs of 8 bits: numbers of channels, rows of bytes, palette."""
import struct, zlib
def chunks(path):
    data, at = open(path, "rb").read(), 8
    while at < len(data):
        size = struct.unpack(">I", data[at : at + 4])[0]
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        at += 12 + size
def near(a, b, c):
    return min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
def read(path):
    parts = list(chunks(path))
    width, height, depth, kind = struct.unpack(">IIBB", dict(parts)[b"IHDR"][:10])
    channels, palette = {0: 1, 2: 3, 3: 1}[kind], dict(parts).get(b"PLTE", b"")
    data, rows, line = zlib.decompress(b"".join(d for k, d in parts if k == b"IDAT")), [], width * channels
    above = [0] * line
    for y in range(height):
        how, row = data[y * (line + 1)], list(data[y * (line + 1) + 1 : (y + 1) * (line + 1)])
        for x in range(line):
            a, b, c = (row[x - channels] if x >= channels else 0), above[x], (above[x - channels] if x >= channels else 0)
            row[x] = (row[x] + [0, a, b, (a + b) // 2, near(a, b, c)][how]) % 256
        rows.append(row)
        above = row
    assert depth == 8
    return kind, rows, [tuple(palette[i : i + 3]) for i in range(0, len(palette), 3)]
END
python3 -B - "$miou" <<'END' || fail 'the drawings'
import json, sys, pngs
both, either = [0] * 3, [0] * 3
colours = [(0, 96, 255), (255, 255, 0), (255, 0, 0)]
for i in range(5):
    kind, index, palette = pngs.read(f"drawn/here/{i}.classes.png")
    assert kind == 3 and palette[:3] == colours, (kind, palette[:3])
    photo, drawn = pngs.read(f"data/val/{i}.png")[1], pngs.read(f"drawn/here/{i}.drawn.png")[1]
    mask = pngs.read(f"data/valannot/{i}.png")[1]
    assert len(index) == len(mask) and len(index[0]) == len(mask[0])
    for y, row in enumerate(index):
        for x, found in enumerate(row):
            right = mask[y][x]
            for c in range(3):
                assert drawn[y][3 * x + c] == (photo[y][3 * x + c] + colours[found][c] + 1) // 2, (i, y, x)
                both[c] += right == found == c
                either[c] += right != 3 and (right == c or found == c)
ious = [100 * b / e for b, e in zip(both, either) if e]
assert abs(sum(ious) / len(ious) - float(sys.argv[1])) < 1e-6, ious
answers = json.load(open("drawn.json"))
assert answers[5]["drawing"] == "drawn/here/0-2.drawn.png" and answers[5]["index"] == "drawn/here/0-2.classes.png"
assert {c["label"]: c["colour"] for c in answers[0]["classes"]}["road"] == "#ffff00"
END

# Passes: windows, scales and mirrored photographs. The drawn classes are those that validate compares with the masks.
passes=(--img-scale 64 24 --stride 20 24 --scales 0.75 1.25 --flips)
run 0 validate data --checkpoint output/first/last.safetensors "${passes[@]}" --json passes.json
run 0 validate data --checkpoint output/first/last.safetensors "${passes[@]}" -b 1 --threads 1 --json again.json
diff <(grep -v per_second passes.json | grep -v wait_share) <(grep -v per_second again.json | grep -v wait_share) ||
    fail 'threads and windows of a run change the figures'
run 0 predict output/first/last.safetensors data/val "${passes[@]}" --draw drawn/passes --json shares.json
python3 -B - <<'END' || fail 'validate and predict differ in passes'
import json, pngs
found, both, either = json.load(open("passes.json")), [0] * 3, [0] * 3
assert (found["img_scale"], found["stride"], found["scales"], found["flips"]) == ([64, 24], [20, 24], [0.75, 1.25], True)
for i in range(5):
    index, mask = pngs.read(f"drawn/passes/{i}.classes.png")[1], pngs.read(f"data/valannot/{i}.png")[1]
    shares = {c["class"]: c["share"] for c in json.load(open("shares.json"))[i]["classes"]}
    for c in range(3):
        assert abs(shares.get(c, 0) - sum(row.count(c) for row in index) / len(index) / len(index[0])) < 1e-9
        both[c] += sum(a == b == c for row, truth in zip(index, mask) for a, b in zip(row, truth))
        either[c] += sum(b != 3 and c in (a, b) for row, truth in zip(index, mask) for a, b in zip(row, truth))
ious = [100 * b / e for b, e in zip(both, either) if e]
assert abs(sum(ious) / len(ious) - found["miou"]) < 1e-6, (ious, found["miou"])
END
run 2 validate data --checkpoint output/first --stride 41
err_has 'a stride of 41 x 41 pixels between windows of 32 x 40: expected 1 to the side of a window'
run 2 validate data --checkpoint output/first --img-scale 64 24.5
err_has '--img-scale 64 24.5: expected whole numbers, the longer side first'
run 1 validate data --checkpoint output/first --flips --fgsm 0.1
err_has 'adversarial images and passes over photographs (--stride, --scales, --flips, --img-scale) cannot be combined'

# Colours beside the names of classes are those of the drawings: given by --labels, or learned from the training's data.
printf 'sky 1 2 3\nroad 10 20 30\nsea 9 9 9\n' >colours.txt
run 0 predict output/first data/val/1.png --draw drawn/coloured --labels colours.txt
diff colours.txt drawn/coloured/legend.txt || fail 'the colours of --labels'
out_has '  road'
cp -r data coloured
cp colours.txt coloured/classes.txt
run 0 train coloured "${settings[@]}" --epochs 1 --experiment coloured
run 0 predict output/coloured data/val/1.png --draw drawn/trained
diff colours.txt drawn/trained/legend.txt || fail 'the colours of the training'
run 0 convert output/coloured/last.safetensors converted.safetensors
run 0 predict converted.safetensors data/val/1.png --draw drawn/converted
diff colours.txt drawn/converted/legend.txt || fail 'convert loses the colours of the training'

# What cannot be drawn, or written.
run 1 predict output/first data/val/1.png --draw ''
err_has '--draw is empty; expected a folder for the drawings'
ln -s data/val linked
for folder in data/val data/val/drawn/deep linked; do
    run 1 predict output/first other/a/0.png data/val --draw $folder
    err_has "--draw $folder: the folder is, or lies in, that of the photographs data/val"
done
run 1 predict output/first data/val other/a/0.png --draw other/a
err_has '--draw other/a: the folder holds the photograph other/a/0.png'
run 0 predict output/first other/a/0.png --draw other/a/drawn
: >file
run 1 predict output/first data/val/1.png --draw file
err_has 'file is a file, but must be a folder'
idx classified
run 0 train classified --model vit_tiny_patch16_224 --img-size 8 --patch-size 8 --embed-dim 8 --depth 1 --num-heads 2 \
    --epochs 0 --threads 1 --output output --experiment classifier
run 1 predict output/classifier data/val/1.png --flips
err_has 'the task "classification" sees each image once: --stride, --scales, --flips and --img-scale are for networks'
run 1 predict output/classifier data/val/1.png --draw drawn/none
err_has '--draw: predictions of the task "classification" cannot be drawn'
[ ! -e drawn/none ] || fail 'a folder was made for nothing'

# Photographs of two sizes, 64 x 32 and 32 x 64: the number of threads and a resume change no bit. Random crops are chosen
# by their masks.
sized=("${settings[@]}" --train-crop-mode keep --crop-mode keep --img-size 30 64)
run 0 train data "${sized[@]}" --experiment sizes --json sizes.json
out_has 'mIoU '
run 0 train data "${sized[@]}" --threads 1 -j 3 --experiment thread
cmp output/sizes/last.safetensors output/thread/last.safetensors || fail 'the number of threads changes the weights'
cp -r output/sizes output/resumed
rm output/resumed/last.safetensors
run 0 train --resume output/resumed/checkpoint-1.safetensors
cmp output/sizes/last.safetensors output/resumed/last.safetensors || fail 'a resume changes the weights'
run 0 validate data --checkpoint output/sizes/last.safetensors --json validate.json
figure() { sed -n "s/.*\"$2\": \([0-9.]*\),*/\1/p" "$1"; }
[ "$(figure sizes.json eval_miou)" = "$(figure validate.json miou)" ] ||
    fail 'validate and train differ in mIoU with photographs of several sizes'
run 0 train data "${sized[@]}" --epochs 1 -b 3 --experiment odd
err_has 'each epoch leaves out 4 images: a batch holds 3 images'
! grep -q 'never used' stderr || fail "$command_line: images are said to be never used"
cp -r data few
rm few/train/{1,3,5,7,9,11}.png few/trainannot/{1,3,5,7,9,11}.png
run 0 train few "${sized[@]}" --epochs 1 --experiment few
err_has 'do not fill one; 2 images are never used, being of sizes with fewer images than a batch'
run 0 train data "${settings[@]}" --epochs 0 --img-size 96 --crop-mode center --crop-pct 0.5 --experiment large
err_has 'are enlarged to 96 x 96'
run 0 train data "${sized[@]}" --epochs 0 --img-size 96 --experiment wide
! grep -q enlarged stderr || fail "$command_line: images are said to be enlarged"
crops=("${settings[@]}" --train-crop-mode rsc --img-scale 40 30 --img-size 24)
run 0 train data "${crops[@]}" --experiment any
run 0 train data "${crops[@]}" --cat-max-ratio 0.75 --experiment chosen
! cmp -s output/any/last.safetensors output/chosen/last.safetensors || fail '--cat-max-ratio chooses no other crop'

# UPerNet: a file records its head, a resume continues it, and another task has another head.
uper=("${settings[@]}" --head uper --head-channels 8 --aux-channels 4 --drop 0.1 --epochs 2)
run 0 train data "${uper[@]}" --experiment uper --json uper.json
err_has 'head uper'
run 0 validate data --checkpoint output/uper/last.safetensors --json validate.json
[ "$(figure uper.json eval_miou)" = "$(figure validate.json miou)" ] || fail 'validate and train differ in UPerNet'
run 0 inspect output/uper/last.safetensors
out_has 'head             uper'
out_has 'aux_channels     4'
out_has 'segmenter.auxiliary_head.convs.0.conv.weight'
run 0 predict output/uper data/val/0.png
out_has '% of the pixels'
cp -r output/uper output/uper-resumed
rm output/uper-resumed/last.safetensors
run 0 train --resume output/uper-resumed/checkpoint-0.safetensors
cmp output/uper/last.safetensors output/uper-resumed/last.safetensors || fail 'a resume changes the weights of UPerNet'
run 0 train data "${settings[@]}" --epochs 0 --head linear --initial-checkpoint output/first/last.safetensors \
    --experiment linear
run 0 train classes --task classification --in-chans 1 --epochs 0 --initial-checkpoint output/uper/last.safetensors \
    --output output --experiment without-maps
run 2 train data "${settings[@]}" --experiment none --head-channels 8
err_has 'head_channels is an option of the head "uper"'
run 2 train classes --model resnet20 --in-chans 1 --img-size 8 --experiment none --output output --head uper
err_has 'head is an option of heads that read maps of features'
run 2 train data "${uper[@]}" -b 1 --experiment one
err_has '--batch-size (batch_size) 1: batch norm segmenter.psp_modules.0.1.bn has one value per channel of an image'

# Two processes have the weights and the figures of one.
only_unsanitized 'several processes take long under sanitizers'
needs mpirun.openmpi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ATTSCOPE_PLUGINS=$ATT_BUILD/attscope-plugins
grep -qw avx512vl /proc/cpuinfo || skip 'with AVX2, products depend on the number of their rows'

two() { # NAME ONE FLAG...: trains with two processes; the weights are those of the training ONE.
    timeout 120 mpirun.openmpi --oversubscribe --bind-to none -n 2 "$ATTSCOPE" train data "${@:3}" --threads 1 \
        --experiment "$1" >stdout 2>stderr || {
        fail "a training run with two processes: $1"
        sed 's/^/  /' stderr
    }
    cmp "output/$2/last.safetensors" "output/$1/last.safetensors" || fail "two processes train other weights than $2"
}
two two first "${settings[@]}"
two two-sizes sizes "${sized[@]}"
two two-chosen chosen "${crops[@]}" --cat-max-ratio 0.75
two two-uper uper "${uper[@]}"
timeout 120 mpirun.openmpi --oversubscribe --bind-to none -n 2 "$ATTSCOPE" validate data --threads 1 \
    --checkpoint output/first/last.safetensors "${passes[@]}" --json both.json >stdout 2>stderr ||
    fail 'a validation in passes with two processes'
diff <(grep -v per_second passes.json | grep -v wait_share) <(grep -v per_second both.json | grep -v wait_share) ||
    fail 'two processes find other figures in passes than one'
cmp <(grep -o '"measurements":.*' output/first/metrics.jsonl) <(grep -o '"measurements":.*' output/two/metrics.jsonl) ||
    fail 'two processes find other figures than one'
finish
