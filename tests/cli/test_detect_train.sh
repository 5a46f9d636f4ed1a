#!/bin/bash
# --task detect: training on photographs with boxes, an interrupted one too, prediction with the result, and what is
# refused.
. "$(dirname "$0")/lib.sh"
needs python3

boxes data
settings=(--task detect --model resnet18 --layers 1,1,1,1 --width 8 --img-size 32 48 --head-channels 16
    --box-channels 32 --anchor-size 8 --anchor-samples 32 --box-samples 16 --train-proposals 50
    --train-level-proposals 50 --crop-mode keep --train-crop-mode keep --img-scale 48 32 --color-jitter 0 --opt adamw
    --lr 3e-3 --warmup-epochs 0 -b 4 -j 1 --threads 2 --lanes 2 --output output)

run 0 train data "${settings[@]}" --epochs 4 --experiment whole
err_has '16 images, 12 boxes, 4 images without boxes, 2 classes'
python3 - <<'END' || fail 'the loss does not fall'
import json
epochs = [e for e in map(json.loads, open("output/whole/metrics.jsonl")) if e.get("event") == "epoch"]
losses = [e["train_loss"] for e in epochs]
assert len(losses) == 4 and losses[3] < 0.8 * losses[0], losses
assert all("eval_ap50" in e for e in epochs), epochs
END

run 0 predict output/whole data/val/0.png --score-thresh 0.01 --json found.json
python3 - <<'END' || fail 'the prediction is not of the classes of the data'
import json
boxes = json.load(open("found.json"))[0]["boxes"]
assert boxes and all(b["label"] in ("sky", "road") for b in boxes), boxes
END

# What does not fit is refused in one sentence.
idx classes
run 1 train classes "${settings[@]}" --in-chans 1 --experiment none
err_has 'boxes'
run 1 train data "${settings[@]}" --num-classes 4 --experiment classes
err_has 'the boxes have 2 classes, but the model has 4'
run 1 train data "${settings[@]}" --cutmix 1 --experiment mixed
err_has 'cannot be mixed'
run 2 train data "${settings[@]}" --head linear --experiment head
err_has 'detection has "rcnn" and "rcnn_v2"'
run 1 train data --task segment --model resnet18 --img-size 32 48 --experiment segment --output output
err_has 'masks are needed'

finish
