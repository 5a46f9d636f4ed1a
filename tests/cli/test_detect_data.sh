#!/bin/bash
# Detectors on data sets: the figures of coco-eval for the boxes of predict, whatever batches, threads and processes; the
# same boxes in all formats; classes by their names; what is refused.
. "$(dirname "$0")/lib.sh"
needs python3

photographs data
detector detector.safetensors
settings=(--img-size 64 96 --anchor-size 8 --score-thresh 0.1 --proposals 50 --detections 20)
mkdir -p coco/images
for i in {0..15}; do cp "data/train/$i.png" "coco/images/$(printf %012d $((7 * i))).png"; done
run 0 predict detector.safetensors coco/images "${settings[@]}" --json found.json

# True boxes near those that are found: whole numbers, crowds, areas of objects, an image without boxes. "plain": without
# crowds and areas, as YOLO's files; "other": the same with the categories in another order.
python3 - <<'END' || fail 'no data sets'
import json, os, random, shutil
draw, names = random.Random(3), "bee cow dog eel fox".split()
found = json.load(open("found.json"))
detections = [box for answer in found for box in answer["boxes"]]
json.dump(detections, open("detections.json", "w"))
sizes = {12 if i < 0 else 7 * i: (40, 30) if i % 2 else (28, 36) for i in range(16)}

def near(box, side, size):
    begin, length = box["bbox"][side], box["bbox"][2 + side]
    first = min(max(round(begin + draw.uniform(-0.1, 0.1) * length), 0), size - 1)
    return first, max(1, min(round(length * draw.uniform(0.8, 1.2)), size - first))

annotations = []
for box in detections:
    size = sizes[box["image_id"]]
    if box["image_id"] == 0 or draw.random() < 0.3:
        continue
    (x, w), (y, h) = (near(box, side, size[side]) for side in range(2))
    annotations.append({"id": len(annotations) + 1, "image_id": box["image_id"], "category_id": box["category_id"],
                        "bbox": [x, y, w, h], "area": w * h * draw.uniform(0.3, 1), "iscrowd": int(draw.random() < 0.1)})

def write(folder, boxes, order=range(1, 6)):
    os.makedirs(folder, exist_ok=True)
    if folder != "coco":
        shutil.copytree("coco/images", folder + "/images")
    ids = dict(zip(range(1, 6), order))
    json.dump({"images": [{"id": i, "file_name": f"{i:012}.png", "width": w, "height": h}
                          for i, (w, h) in sizes.items()],
               "categories": [{"id": ids[c + 1], "name": name} for c, name in enumerate(names)],
               "annotations": [{**box, "category_id": ids[box["category_id"]]} for box in boxes]},
              open(folder + "/annotations.json", "w"))

plain = [{**box, "area": box["bbox"][2] * box["bbox"][3], "iscrowd": 0} for box in annotations]
write("coco", annotations)
write("plain", plain)
write("other", plain, (9, 2, 7, 1, 4))
write("crowds", [{**box, "iscrowd": 1} for box in annotations])
for folder in ("yolo/labels", "voc/Annotations", "voc/ImageSets/Main"):
    os.makedirs(folder)
shutil.copytree("coco/images", "yolo/images")
shutil.copytree("coco/images", "voc/JPEGImages")
open("yolo/classes.txt", "w").write("\n".join(names))
open("voc/ImageSets/Main/val.txt", "w").write("".join(f"{i:012}\n" for i in sizes))
for i, (width, height) in sizes.items():
    lines, objects = [], []
    for box in plain:
        (x, y, w, h), c = box["bbox"], box["category_id"] - 1
        if box["image_id"] == i:
            lines.append(f"{c} {(x + w / 2) / width!r} {(y + h / 2) / height!r} {w / width!r} {h / height!r}\n")
            objects.append(f"<object><name>{names[c]}</name><bndbox><xmin>{x + 1}</xmin><ymin>{y + 1}</ymin>"
                           f"<xmax>{x + w}</xmax><ymax>{y + h}</ymax></bndbox></object>")
    open(f"yolo/labels/{i:012}.txt", "w").write("".join(lines))
    open(f"voc/Annotations/{i:012}.xml", "w").write(
        f"<annotation><size><width>{width}</width><height>{height}</height></size>{''.join(objects)}</annotation>")
open("names.txt", "w").write("\n".join(names) + "\n")
END

validate() { # CODE DATA FLAG...
    run "$1" validate "$2" --checkpoint detector.safetensors "${settings[@]}" --threads 1 "${@:3}"
}
figures() { # FILE: without what differs between runs
    sed -E '/"(data|images_per_second|wait_share|numbered_by|split)"/d' "$1"
}

validate 0 coco --json figures.json
run 0 coco-eval coco/annotations.json detections.json --json expected.json
python3 - <<'END' || fail 'other figures than those of coco-eval'
import json
found, expected = json.load(open("figures.json")), json.load(open("expected.json"))
keys = "AP AP50 AP75 APs APm APl AR1 AR10 AR100 ARs ARm ARl".split()
assert found["count"] == 16 and 5 < found["ap"] < 95, found
for key in keys:
    figure = found[key.lower()]
    assert figure is None if expected[key] < 0 else abs(figure - 100 * expected[key]) < 1e-12, (key, figure)
classes = {of["name"]: of for of in expected["classes"] if of["AP"] >= 0}
details = {(of["node"], of["statistic"]): of["mean"] for of in found["measurements"]}
assert len(details) == 2 * len(classes) > 4, details
for name, of in classes.items():
    assert abs(details[name, "ap"] - 100 * of["AP"]) < 1e-12 and abs(details[name, "ar"] - 100 * of["AR100"]) < 1e-12, name
END
validate 0 coco
out_has 'AP '
grep -qE '^  dog +ap +[0-9.]+ % +ar +[0-9.]+ %$' stdout || fail "no figures of a class: $(cat stdout)"

# Batches, threads and processes do not matter.
validate 0 coco --json batches.json -b 3 -j 0
diff <(figures figures.json) <(figures batches.json) || fail 'batches change the figures'
validate 0 coco --json threads.json --threads 2 -b 5
diff <(figures figures.json) <(figures threads.json) || fail 'threads change the figures'
if [ -e "$ATT_BUILD/attscope-plugins/openmpi.so" ] && command -v mpirun.openmpi >/dev/null && ! sanitized; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    ATTSCOPE_PLUGINS=$ATT_BUILD/attscope-plugins timeout 60 mpirun.openmpi --oversubscribe --bind-to none -n 2 \
        "$ATTSCOPE" validate coco --checkpoint detector.safetensors "${settings[@]}" --threads 1 -b 5 \
        --json processes.json >stdout 2>stderr || fail "2 processes: $(cat stderr)"
    diff <(figures figures.json) <(figures processes.json) || fail 'processes change the figures'
fi

# The same boxes in other formats, and by the names of the classes.
validate 0 plain --json plain.json
for data in yolo voc; do
    validate 0 $data --class-map names.txt --json $data.json
    diff <(figures plain.json) <(figures $data.json) || fail "other figures for $data"
done
validate 0 other --class-map names.txt --json other.json
diff <(figures plain.json) <(figures other.json) || fail 'other figures for another order of the categories'

# A detector of COCO's 90 numbers finds the categories of a data set by their names.
detector coco.safetensors 90
run 0 predict coco.safetensors coco/images "${settings[@]}" --json found.json
python3 - "$here/../../src/base/core/classes/coco-91.txt" <<'END' || fail 'no data set of COCO'
import collections, json, os, sys
names, found = open(sys.argv[1]).read().split("\n"), json.load(open("found.json"))
detections = [box for answer in found for box in answer["boxes"]]
json.dump(detections, open("detections.json", "w"))
ids = sorted(id for id, _ in collections.Counter(box["category_id"] for box in detections).most_common(4))
assert len(ids) == 4 and all(box["label"] == names[box["category_id"]] for box in detections)
os.mkdir("known")
os.symlink("../coco/images", "known/images")
truth = json.load(open("coco/annotations.json"))
truth["categories"] = [{"id": id, "name": names[id]} for id in ids]
boxes = [box for box in detections[::2] if box["category_id"] in ids]
truth["annotations"] = [{"id": i + 1, "image_id": box["image_id"], "category_id": box["category_id"],
                         "bbox": [int(side) for side in box["bbox"][:2]] + [round(side) + 1 for side in box["bbox"][2:]],
                         "area": 50} for i, box in enumerate(boxes)]
json.dump(truth, open("known/annotations.json", "w"))
END
run 0 validate known --checkpoint coco.safetensors "${settings[@]}" --threads 1 --json figures.json
err_has '90 classes, numbered by the class names of the training'
run 0 coco-eval known/annotations.json detections.json --json expected.json
python3 - <<'END' || fail 'other figures than those of coco-eval'
import json
found, expected = json.load(open("figures.json")), json.load(open("expected.json"))
assert 5 < found["ap"] < 95 and abs(found["ap"] - 100 * expected["AP"]) < 1e-12, found["ap"]
END
run 1 validate coco --checkpoint coco.safetensors "${settings[@]}"
err_has 'coco: class "bee" is none of the 90 classes of the training, though "cow" is'

# Without boxes that count there are no figures.
validate 0 crowds
out_has 'AP -   AP50 -'
err_has 'warning: none of the 16 evaluated images has a box that counts, so that all metrics are nan (undefined)'

# Instruments run on photographs with boxes.
run 0 measure detector.safetensors coco --with nsi --brief "${settings[@]}" --output measured --experiment one
out_has 'layer4.0.add'

# What a data set has.
run 0 inspect coco --json inspected.json
out_has 'coco: 16 images, '
out_has '  sizes 28 x 36 to 40 x 30 pixels'
grep -qE '^ +2  dog +[0-9]+$' stdout || fail "no boxes of a class: $(cat stdout)"
grep -q '"category_id": 3' inspected.json || fail "$(cat inspected.json)"
run 0 inspect data
out_has 'data, train: 16 images with masks, 3 classes'
out_has 'data, val: 5 images with masks, 3 classes'
mkdir empty
run 1 inspect empty
err_has 'attscope: empty holds neither a checkpoint nor a data set; as a checkpoint: empty is a folder without weights; '
err_has '; as a data set: empty: it contains no .jpg'
touch empty/b.pth empty/a.pth
run 1 inspect empty
err_has 'as a checkpoint: empty holds several checkpoints: a.pth, b.pth; name one of them; as a data set: '

# What an archive's name does not tell, its content does.
cp "$here/../goldens/checkpoints/vit_old.pth" weights.pth.tar
cp weights.pth.tar weights.tar
tar -cf packed.pth.tar weights.tar
tar -cf data.tar data
for file in weights.pth.tar weights.tar; do
    run 0 inspect $file
    out_has "file         $file"
done
run 1 inspect packed.pth.tar
err_has 'as a checkpoint: packed.pth.tar: expected a safetensors file or a PyTorch checkpoint, but it seems to be a tar archive; unpack it'
run 0 inspect data.tar
out_has ' images'

# What does not fit is said in one sentence.
sed 's/dog/cat/' names.txt >wrong.txt
validate 1 coco --class-map wrong.txt
err_has 'coco: class "dog" is not in the class map wrong.txt'
{ cat names.txt; seq 2; } >many.txt
validate 1 yolo --class-map many.txt
err_has 'the boxes have 7 classes, but the model has 5; --class-map FILE gives'
validate 1 coco --fgsm 0.01
err_has 'FGSM (--fgsm) attacks images with a class or a mask, but networks of the task "detect" find boxes'
idx numbers
validate 1 numbers
err_has 'boxes are needed; numbers has classes'
validate 1 data
err_has 'boxes are needed; data has masks'
run 1 train coco --model resnet18 --img-size 32
err_has 'classes are needed; coco has boxes'
finish
