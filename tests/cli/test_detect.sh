#!/bin/bash
# --task detect: the boxes of a detector with random weights, as text, as COCO's detections and drawn; what is refused.
. "$(dirname "$0")/lib.sh"
needs python3

photographs data
cp data/val/0.png 000000000012.png
cp data/val/1.png street.png
detector detector.safetensors
settings=(--img-size 64 96 --anchor-size 8 --score-thresh 0.1 --proposals 50 --detections 20)

# Both photographs have their own size: 28 x 36 pixels become 64 x 82, 40 x 30 become 85 x 64.
run 0 predict detector.safetensors 000000000012.png street.png "${settings[@]}" --threads 1
out_has ' % '
cp stdout one
run 0 predict detector.safetensors 000000000012.png street.png "${settings[@]}" --threads 2 --json found.json --draw drawn
diff one <(grep -v drawn: stdout) || fail 'the number of threads changes the boxes'
python3 - <<'END' || fail 'the boxes are not those of photographs'
import json, re
ids, sizes = (12, None), ((28, 36), (40, 30))
answers = json.load(open("found.json"))
printed = [int(found[1]) for found in re.finditer(r" at .*, +\d+ +(\d+)", open("one").read())]
assert printed == [b["category_id"] - 1 for answer in answers for b in answer["boxes"]], printed
for answer, number, (width, height) in zip(answers, ids, sizes):
    boxes = answer["boxes"]
    assert 0 < len(boxes) <= 20, boxes
    scores = [b["score"] for b in boxes]
    assert scores == sorted(scores, reverse=True) and min(scores) > 0.1
    for b in boxes:
        assert b.get("image_id") == number and b["category_id"] in range(1, 6), b
        x, y, w, h = b["bbox"]
        assert min(x, y, w, h) >= 0 and x + w <= width + 1e-4 and y + h <= height + 1e-4, b
END
[ -s drawn/street.drawn.png ] || fail "no drawing: $(ls drawn)"
! cmp -s drawn/street.drawn.png street.png || fail 'the drawing shows no box'

# Names that only begin with a number are no image's id. Sides need not be multiples of 32.
cp street.png 12th.street.png
cp street.png 7-up.png
run 0 predict detector.safetensors 7-up.png 12th.street.png "${settings[@]}" --img-size 72 104 --crop-mode squash --json other.json
! grep -q image_id other.json || fail 'an id of an image from another name'

# The ids of the categories are those of the data set of attscope's training, if the file has one for each class.
with_ids() { # IDS: writes ids.safetensors
    python3 - "$1" <<'END' || fail 'no ids are written'
import json, sys
data = open("detector.safetensors", "rb").read()
length = int.from_bytes(data[:8], "little")
header = json.loads(data[8:8 + length])
header["__metadata__"] = {"attscope.train.class_ids": "".join(number + "\n" for number in sys.argv[1].split())}
text = json.dumps(header).encode()
open("ids.safetensors", "wb").write(len(text).to_bytes(8, "little") + text + data[8 + length:])
END
}
with_ids '8 3 70 0 12'
run 0 predict ids.safetensors 000000000012.png street.png "${settings[@]}" --json ids.json
with_ids '8 3 70 0'
run 0 predict ids.safetensors 000000000012.png street.png "${settings[@]}" --json few.json
python3 - <<'END' || fail 'other ids'
import json
read = lambda path: [box["category_id"] for answer in json.load(open(path)) for box in answer["boxes"]]
assert read("ids.json") == [(8, 3, 70, 0, 12)[id - 1] for id in read("found.json")], read("ids.json")
assert read("few.json") == read("found.json")
END

# coco-eval reads the boxes.
python3 - <<'END'
import json
json.dump(json.load(open("found.json"))[0]["boxes"], open("detections.json", "w"))
json.dump({"images": [{"id": 12}], "categories": [{"id": i, "name": str(i)} for i in range(1, 6)], "annotations": [
    {"id": 1, "image_id": 12, "category_id": 1, "bbox": [0, 0, 9, 9], "area": 81, "iscrowd": 0}]}, open("truth.json", "w"))
END
run 0 coco-eval truth.json detections.json
out_has 'Average Precision'

# Instruments observe the backbone.
run 0 measure detector.safetensors data/val --with nsi --brief "${settings[@]}"
out_has 'layer4.0.add'
! grep -q detector stdout || fail 'sums of the pyramid are taken for residual steps'

# What cannot be done is said in one sentence.
run 2 predict detector.safetensors street.png --head uper
err_has 'the head "uper" is that of a segmenter (--task segment); detection has "rcnn" and "rcnn_v2"'
run 2 predict detector.safetensors street.png --aux-channels 5
err_has 'aux_channels is an option of segmenters (--task segment)'
idx numbers
run 0 train numbers --model resnet20 --img-size 8 --in-chans 1 --batch-size 16 --epochs 0 --output out --experiment plain
run 0 inspect out/plain/last.safetensors --task detect
out_has 'images       800 x 1333 x 1,'
out_has 'crop 1 within, bilinear_plain'
run 0 inspect out/plain/last.safetensors --task detect --img-size 64
out_has 'images       64 x 64 x 1,'
train=(train numbers --model resnet18 --img-size 32 --num-classes 4 --epochs 1)
run 1 "${train[@]}" --task detect
err_has 'boxes are needed; numbers has classes'
run 2 "${train[@]}" --task segment --head rcnn
err_has 'the head "rcnn" is that of a detector (--task detect)'
run 2 "${train[@]}" --task segment --detections 5
err_has 'detections is an option of detectors (--task detect), which this network does not have'
run 1 "${train[@]}" --task detect --model vit_tiny_patch16_224
err_has 'a detector needs maps of which each has half the sides of the one before'
finish
