"""COCO's evaluation of random boxes, by pycocotools.

coco.json: a list of cases with "truth" and "results", as in the files, and the twelve "figures".
"""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import sys
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

tool = str(pathlib.Path(__file__).resolve().parent.parent / "versus_pycocotools")
loader = importlib.machinery.SourceFileLoader("versus_pycocotools", tool)
versus = importlib.util.module_from_spec(importlib.util.spec_from_loader("versus_pycocotools", loader))
loader.exec_module(versus)

# (seed, images, categories, true boxes, detections, different scores): none of either kind, equal scores, more than 100
# detections in an image.
CASES = [(1, 1, 1, 0, 3, 2), (2, 3, 2, 10, 0, 20), (3, 3, 2, 12, 40, 3), (4, 12, 3, 60, 90, 1000), (5, 1, 1, 8, 130, 10)]


def rounded(boxes):
    for box in boxes:
        box["bbox"] = [round(value, 1) for value in box["bbox"]]
        if "area" in box:
            box["area"] = round(box["area"], 1)
    return boxes


def make_case(seed, images, categories, boxes, detections, levels):
    draw = versus.random.Random(seed)
    truth = versus.make_truth(draw, list(range(1, images + 1)), list(range(1, categories + 1)), boxes)
    rounded(truth["annotations"])
    return truth, rounded(versus.make_results(draw, truth, detections, levels))


def figures_of(truth, results):
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = json.loads(json.dumps(truth))
        coco.createIndex()
        found = coco.loadRes(json.loads(json.dumps(results))) if results else COCO()
        evaluation = COCOeval(coco, found, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return list(evaluation.stats)


cases = []
for case in CASES:
    truth, results = make_case(*case)
    cases.append({"truth": truth, "results": results, "figures": figures_of(truth, results)})
with open(sys.argv[1] + "/coco.json", "w") as file:
    file.write("[" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "]\n")
