#!/bin/bash
# --task segment: training, validation, measurement and prediction on photographs with masks, as one process and as two.
. "$(dirname "$0")/lib.sh"
needs python3

photographs data
settings=(--task segment --model resnet20 --img-size 32 40 --crop-mode squash --crop-pct 1 --scale 1 1 --color-jitter 0
    --opt adamw --lr 1e-2 --warmup-epochs 0 --epochs 3 -b 4 -j 1 --threads 2 --lanes 2 --sync-bn --output output)

run 0 train data "${settings[@]}" --experiment first --json first.json
miou=$(python3 -c 'import json; print(json.load(open("first.json"))["eval"]["miou"])' 2>/dev/null ||
    grep -o '"eval_miou": *[0-9.]*' first.json | grep -o '[0-9.]*$')
python3 -c "import sys; sys.exit(not $miou > 60)" || fail "the segmenter learned nothing: mIoU $miou"
grep -q '"instrument":"segmentation","node":"road","statistic":"iou"' output/first/metrics.jsonl ||
    fail 'the records of the training have no IoU of a class'

run 0 validate data --checkpoint output/first/last.safetensors --json validate.json
run 0 validate data --checkpoint output/first/last.safetensors
out_has 'mIoU '
out_has '  road   iou '
! grep -q sea stdout || fail 'a class that occurs nowhere has figures'
python3 - "$miou" <<'END' || fail 'the IoU of the classes do not give the mIoU of the training'
import json, sys
found = json.load(open("validate.json"))
ious = [m["mean"] for m in found["measurements"] if m["statistic"] == "iou"]
sys.exit(not (len(ious) == 2 and abs(sum(ious) / 2 - found["miou"]) < 1e-9 and abs(found["miou"] - float(sys.argv[1])) < 1e-6))
END

# Batches do not change a bit of the figures, and neither does an attack of strength 0.
run 0 validate data --checkpoint output/first/last.safetensors -b 3 --json batches.json
diff <(grep -v per_second validate.json | grep -v wait_share) <(grep -v per_second batches.json | grep -v wait_share) ||
    fail 'the size of batches changes the figures'
run 0 validate data --checkpoint output/first/last.safetensors --fgsm 0.1
out_has 'FGSM 0.1'

run 0 measure output/first/last.safetensors data --brief
grep -q '"instrument":"segmentation","node":"sky","statistic":"accuracy"' output/first/measure.jsonl ||
    fail 'the records of a measurement have no figures of classes'

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

# Two processes have the weights and the figures of one.
only_unsanitized 'several processes take long under sanitizers'
needs mpirun.openmpi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ATTSCOPE_PLUGINS=$ATT_BUILD/attscope-plugins
grep -qw avx512vl /proc/cpuinfo || skip 'with AVX2, products depend on the number of their rows'

timeout 120 mpirun.openmpi --oversubscribe --bind-to none -n 2 "$ATTSCOPE" train data "${settings[@]}" --lanes 2 \
    --threads 1 --epochs 3 --img-size 32 40 --lr 1e-2 --experiment two >stdout 2>stderr || {
    fail 'a training with two processes'
    sed 's/^/  /' stderr
}
cmp output/first/last.safetensors output/two/last.safetensors || fail 'two processes train other weights than one'
cmp <(grep -o '"measurements":.*' output/first/metrics.jsonl) <(grep -o '"measurements":.*' output/two/metrics.jsonl) ||
    fail 'two processes find other figures than one'
finish
