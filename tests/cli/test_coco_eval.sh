#!/bin/bash
# coco-eval: the lines of pycocotools, classes, JSON, files that do not fit.
. "$(dirname "$0")/lib.sh"

cat >truth.json <<'JSON'
{"images": [{"id": 1}], "categories": [{"id": 3, "name": "dog"}, {"id": 8, "name": "cat"}],
 "annotations": [{"id": 1, "image_id": 1, "category_id": 3, "bbox": [0, 0, 10, 10], "area": 100, "iscrowd": 0}]}
JSON
echo '[{"image_id": 1, "category_id": 3, "bbox": [0, 0, 10, 6], "score": 0.5}]' >found.json
run 0 coco-eval truth.json found.json
same stdout <<'TEXT'
 Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.300
 Average Precision  (AP) @[ IoU=0.50      | area=   all | maxDets=100 ] = 1.000
 Average Precision  (AP) @[ IoU=0.75      | area=   all | maxDets=100 ] = 0.000
 Average Precision  (AP) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = 0.300
 Average Precision  (AP) @[ IoU=0.50:0.95 | area=medium | maxDets=100 ] = -1.000
 Average Precision  (AP) @[ IoU=0.50:0.95 | area= large | maxDets=100 ] = -1.000
 Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=  1 ] = 0.300
 Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets= 10 ] = 0.300
 Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.300
 Average Recall     (AR) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = 0.300
 Average Recall     (AR) @[ IoU=0.50:0.95 | area=medium | maxDets=100 ] = -1.000
 Average Recall     (AR) @[ IoU=0.50:0.95 | area= large | maxDets=100 ] = -1.000
TEXT
run 0 coco-eval truth.json found.json --classes --json figures.json
grep -qE '^  dog +1 +0\.300 +1\.000 +0\.000 +0\.300$' stdout || fail "no figures of dog: $(cat stdout)"
grep -qE '^  cat +0 +-1\.000 +-1\.000 +-1\.000 +-1\.000$' stdout || fail "no figures of cat: $(cat stdout)"
grep -qE '"AP50": (1|0.99999999)' figures.json || fail "figures.json: $(cat figures.json)"
run 0 coco-eval truth.json found.json --json -
out_has '"name": "cat"'
! grep -q Average stdout || fail 'the lines are beside the JSON'

echo '[{"image_id": 1, "category_id": 4, "bbox": [0, 0, 10, 6], "score": 0.5}]' >other.json
run 0 coco-eval truth.json other.json
err_has 'other.json: 1 detection is left out: the annotations do not list its category'
sed 's/"image_id": 1, "category_id": 3/"image_id": 9, "category_id": 9/' truth.json >elsewhere.json
run 0 coco-eval elsewhere.json found.json
err_has 'elsewhere.json: 1 annotation is left out: the file does not list its image'
! grep -q 'its category' stderr || fail 'an annotation is counted twice'
run 1 coco-eval truth.json truth.json
err_has "attscope: truth.json: not valid JSON at byte 0: '[' was expected"
run 1 coco-eval found.json found.json
err_has 'attscope: found.json: not valid JSON at byte 0: an object in {} was expected'
run 1 coco-eval truth.json nowhere.json
err_has 'attscope: nowhere.json could not be opened'
usage 'coco-eval needs ANNOTATIONS RESULTS; see attscope coco-eval --help' coco-eval truth.json
finish
