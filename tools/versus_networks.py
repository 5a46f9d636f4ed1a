"""What tools/versus_transformers and tools/versus_torchvision_networks share: both compare attscope's answers with
those of another library, for networks with random weights, from photographs on.

A comparison runs both programs on three photographs. It finds the largest difference of an answer, relative to the
largest answer, three times: "pixels", where attscope gets the numbers that the library made of the photographs; "JPEG",
where each program prepares the file itself; and "written", where the library opens the network that attscope convert
wrote for it, with nothing missing. If the library gives the network's tensors other names in memory than in its files,
"state_dict()" is the difference for a file with these names, from photographs on.
"""
import argparse
import collections
import fnmatch
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOLERANCE = 1e-5
PHOTOGRAPHS = ["n02112137/n02112137_chow", "n02128925/n02128925_jaguar", "n02977058/n02977058_cash_machine"]  # odd sizes
END = "<!-- end -->\n"

# What a library makes of photographs. path: the file or folder that attscope opens. images: [1, 3, height, width] of
# each photograph, as the library prepares it. answer(image): the library's answer. written(out): the library's answers
# with the network that attscope wrote to `out`, from photographs on. flags: how attscope writes it. files: other
# photographs than those that were given, or None. memory: what attscope opens with the names in memory, or None.
Prepared = collections.namedtuple("Prepared", "path images answer written flags files memory", defaults=[None, None])


def parse_arguments(about, page):
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--build", default="build/release", metavar="FOLDER", help="default: %(default)s")
    parser.add_argument("--python", default=sys.executable, metavar="FILE", help="an interpreter that has the library")
    parser.add_argument("--images", nargs="+", metavar="FILE", help="default: three photographs of ../shared/data")
    parser.add_argument("--docs", action="store_true", help=f"write the table in {page}")
    parser.add_argument("names", nargs="*", metavar="NAMES", help="globs of names")
    return parser.parse_args()


def enter_python(given, script):
    """Starts the script again in the interpreter of --python, with attscope's package and libraries."""
    if "VERSUS_NETWORKS" not in os.environ:
        environment = os.environ | {"VERSUS_NETWORKS": "1", "PYTHONPATH": str(ROOT / "python"),
                                    "LD_LIBRARY_PATH": str((ROOT / given.build).resolve())}
        os.execve(given.python, [given.python, script, *sys.argv[1:]], environment)
    warnings.filterwarnings("ignore")


def randomise(model):
    """Fills the model so that all tensors matter and values keep their size: scales and variances of norms are around
    1, the others around 0. Tables that follow from the settings stay."""
    import torch
    generator = torch.Generator().manual_seed(1)
    tables = {name for name, _ in model.named_buffers() if "running_" not in name}
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point() and name not in tables:
            is_scale = tensor.dim() == 1 and (name.endswith("weight") or name.endswith("running_var"))
            wide = 0.6 if tensor.dim() > 1 else 0.3
            if tensor.dim() in (2, 4):  # a matrix or a convolution
                wide *= min(1, 32 / tensor[0].numel()) ** 0.5
            tensor.copy_(is_scale + wide * (torch.rand(tensor.shape, generator=generator) - 0.5))
    return model.eval()


def difference(found, expected):
    import numpy as np
    if found.shape != expected.shape or not np.isfinite(found).all():
        return float("inf")
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def compare_written(prepared, answers, given):
    """Returns the difference of the written network's answers, or why attscope does not write it."""
    import torch
    out = prepared.path.parent / "written.safetensors"
    out = out.with_suffix("") if "transformers" in prepared.flags else out
    done = subprocess.run([ROOT / given.build / "attscope", "convert", prepared.path, out, *prepared.flags],
                          capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    with torch.no_grad():
        return difference(prepared.written(out).numpy(), answers)


def compare_memory(prepared, photographs, output, answers):
    """Returns the difference of the file with the names in memory, from photographs on."""
    import attscope
    with attscope.open(prepared.memory) as opened:
        return difference(opened.outputs(photographs, output)[output], answers)


def compare(prepared, photographs, given):
    """Returns the differences for pixels, for files, of the written network and, if there is one, of the file with the
    names in memory; or the message of an error."""
    import attscope
    import torch
    with torch.no_grad():
        expected = torch.cat([prepared.answer(image) for image in prepared.images]).numpy()
    try:
        with attscope.open(prepared.path) as opened:
            output = "pixel_logits" if expected.ndim == 4 else "logits" if opened.classes else "features"
            files = [str(f) for f in prepared.files or photographs]
            from_files = opened.outputs(files, output)[output]
            ready = torch.cat(prepared.images).permute(0, 2, 3, 1).contiguous().numpy()
            from_pixels = opened.run({"image": ready}, output)[output]
        memory = [compare_memory(prepared, files, output, expected)] if prepared.memory else []
    except attscope.Error as error:
        return str(error)
    return (difference(from_pixels, expected), difference(from_files, expected),
            compare_written(prepared, from_files, given), *memory)


def photographs_of(given):
    if given.images:
        return [pathlib.Path(i) for i in given.images]
    shared = pathlib.Path(os.environ.get("ATT_SHARED", ROOT.parent / "shared"))
    found = [shared / "data/imagenet200/val" / f"{name}.JPEG" for name in PHOTOGRAPHS]
    if not all(path.exists() for path in found):
        sys.exit(f"{found[0]} or another photograph is missing; give three with --images")
    return found


def cells(found):
    return ["refused" if isinstance(f, str) else f"{f:.1e}" for f in ([found] if isinstance(found, str) else found)]


def compare_all(networks, prepare, given):
    """Compares the networks whose names fit; prepare(network, folder, photographs) returns text about the network and
    what is compared. Returns the texts with the results, and whether a network was wrong."""
    rows, failed, photographs = [], False, photographs_of(given)
    for network in networks:
        if not any(fnmatch.fnmatch(network.name, glob) for glob in given.names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            about, prepared = prepare(network, pathlib.Path(folder), photographs)
            found = compare(prepared, photographs, given)
        rows.append((about, found))
        wrong = isinstance(found, str) or not all(isinstance(f, str) or f <= TOLERANCE for f in found)
        failed |= wrong
        print(f"{network.name:36} {about:66} {' '.join(cells(found))}{' WRONG' if wrong else ''}", flush=True)
        for message in [found] if isinstance(found, str) else [f for f in found if isinstance(f, str)]:
            print("   ", message)
    return rows, failed


def write_table(page, script, head, rows, tail=()):
    """Writes the table of the rows between the page's two comments. head: the line before it, and its columns."""
    begin = f"<!-- tools/{script} --docs -->\n"
    before, _, rest = page.read_text().partition(begin)
    columns = head[1:]
    lines = [head[0], "", f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    lines += [f"| {' | '.join(([about, *cells(found)] + [''] * len(columns))[:len(columns)])} |" for about, found in rows]
    page.write_text(before + begin + "\n" + "\n".join([*lines, *tail]) + "\n\n" + END + rest.partition(END)[2])
