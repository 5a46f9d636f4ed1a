"""Small data and settings for the notebooks in docs/notebooks, for the tests and for tools/render-notebooks."""

import json
from pathlib import Path

import attscope
from common import TINY, write_data

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"


def prepare():
    """Writes data to the current folder. Returns the parameters of each notebook, by its name."""
    write_data("data", train=32, validation=8)
    attscope.train("data", model="vit_tiny_patch16_224", epochs=1, batch_size=16, experiment="first", threads=2, **TINY)
    checkpoint = "output/train/first"
    return {
        "measure-a-checkpoint": {"checkpoint": checkpoint, "images": "data", "photo": "data/validation/ant/000.png"},
        "compare-two-trainings": {
            "data": "data",
            "network": {**TINY, "batch_size": 16, "threads": 2},
            "epochs": 2,
            "output": "output",
        },
        "features-of-a-checkpoint": {"checkpoint": checkpoint, "data": "data"},
        "follow-a-run": {
            "data": "data",
            "network": {"model": "vit_tiny_patch16_224", **TINY, "batch_size": 16, "threads": 2},
            "epochs": 2,
            "output": "output",
        },
        "follow-a-figure": {"checkpoint": checkpoint, "images": "data/validation"},
    }


def read(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))


def is_parameters(cell):
    """Whether the cell has the values that a user changes."""
    return "parameters" in cell["metadata"].get("tags", [])


def assignments(parameters):
    """Lines of Python."""
    return "".join(f"{name} = {value!r}\n" for name, value in parameters.items())
