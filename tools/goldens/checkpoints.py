"""tests/goldens/checkpoints: files written by torch.save() in its two formats, a small ViT, and a folder of
torch.distributed.checkpoint.

tests/base/io/test_torch.c knows the content of kinds_*.pth: element i of a tensor, in memory order before it was transposed
or sliced, is a multiple of i. In the old format, storages are named by their memory addresses. Here they are numbered
instead, so that the files are the same in every run.
"""
import argparse
import collections
import pathlib
import pickle
import shutil
import sys
import tempfile

import numpy as np
import timm
import torch
import torch.distributed.checkpoint
from torch.distributed.tensor import Shard, distribute_tensor

folder = pathlib.Path(sys.argv[1]) / "checkpoints"
folder.mkdir(exist_ok=True)


def kinds(new):
    shared = torch.arange(20.0)
    tensors = {
        "plain": torch.arange(6.0).view(2, 3),
        "transposed": torch.arange(6.0).view(2, 3).t(),
        "every_third": torch.arange(20.0)[2:12:3],
        "expanded": torch.arange(3.0).view(3, 1).expand(3, 4),
        "channels_last": torch.arange(24.0).view(1, 2, 3, 4).to(memory_format=torch.channels_last),
        "first_shared": shared[:10].view(2, 5),
        "second_shared": shared[5:15],
        "scalar": torch.tensor(0.5),
        "empty": torch.zeros(0, 3),
        "f64": torch.arange(3.0).double() / 4,
        "f16": (torch.arange(6.0) / 2).half().view(2, 3).t(),
        "bf16": (torch.arange(4.0) / 2).bfloat16(),
        "i64": torch.arange(-1, 2),
        "i32": torch.arange(3, dtype=torch.int32),
        "i16": torch.arange(3, dtype=torch.int16),
        "i8": torch.arange(-1, 2, dtype=torch.int8),
        "u8": torch.arange(3, dtype=torch.uint8),
        "bool": torch.tensor([True, False, True]),
        "parameter": torch.nn.Parameter(torch.arange(4.0)),
    }
    if new:
        tensors["u16"] = torch.arange(3).to(torch.uint16)
        tensors["f8"] = torch.arange(3.0).to(torch.float8_e4m3fn)
    return tensors


def checkpoint(new):
    """Returns a checkpoint with everything that training scripts store beside the weights."""
    layer = torch.nn.Linear(2, 1)
    torch.nn.init.ones_(layer.weight)
    torch.nn.init.ones_(layer.bias)
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    arguments = argparse.Namespace(lr=0.1, betas=(0.9, 0.99), path=pathlib.PurePosixPath("/data"), kind=torch.float32)
    return {
        "epoch": 3,
        "state_dict": collections.OrderedDict(("module." + name, t) for name, t in kinds(new).items()),
        "state_dict_ema": {"n_averaged": torch.tensor(7), "module.plain": torch.arange(6.0).view(2, 3) + 1},
        "optimizer": optimizer.state_dict(),
        "args": arguments,
        "metric": np.float64(91.5),
        "history": np.arange(3),
        "huge": 2**80,
        "names": {"cat"},
        "blob": b"\x00\xff",
        "steps": collections.defaultdict(list, {"a": [1]}),
    }


class Storages(pickle.Unpickler):
    """Records the storages of a checkpoint in their order: key -> bytes."""

    def __init__(self, file):
        super().__init__(file)
        self.bytes = {}

    def persistent_load(self, identity):
        _, kind, key, _, count, _ = identity
        self.bytes[key] = count * kind.dtype.itemsize
        return torch.UntypedStorage(0)

    def find_class(self, module, name):
        if name.endswith("Storage"):
            return torch.serialization.StorageType(name)
        if module == "torch._utils":
            return lambda *arguments: None
        return super().find_class(module, name)


def number_storages(path):
    file = path.open("rb")
    for _ in range(3):
        pickle.load(file)
    storages = Storages(file)
    storages.load()
    tail = file.tell()
    contents = {key: None for key in storages.bytes}
    for key in pickle.load(file):
        contents[key] = file.read(8 + storages.bytes[key])
    data = path.read_bytes()[:tail]
    names = [b"%0*d" % (len(key), number) for number, key in enumerate(contents)]
    for key, name in zip(contents, names):
        data = data.replace(key.encode(), name)
    keys = pickle.dumps([name.decode() for name in names], protocol=2)
    path.write_bytes(data + keys + b"".join(contents.values()))


def write_part(rank, path):
    """What one of two processes writes: the rows of a tensor that it has, and its share of the whole ones."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{path}/meet", rank=rank, world_size=2)
    mesh = torch.distributed.init_device_mesh("cpu", (2,))
    model = {
        "module.rows": distribute_tensor(torch.arange(10.0).view(5, 2), mesh, [Shard(0)]),
        "module.turned": torch.arange(6.0).view(3, 2).t(),
        "module.half": (torch.arange(3.0) / 2).half(),
        "module.count": torch.tensor(7),
    }
    optim = {"state": {"rows": distribute_tensor(torch.ones(5, 2), mesh, [Shard(0)])}}
    torch.distributed.checkpoint.save({"model": model, "optim": optim, "epoch": 3}, checkpoint_id=f"{path}/made")
    torch.distributed.destroy_process_group()


def distributed(to):
    with tempfile.TemporaryDirectory() as path:
        torch.multiprocessing.start_processes(write_part, (path,), 2, start_method="fork")
        shutil.copytree(f"{path}/made", to, dirs_exist_ok=True)
    table = pickle.loads((to / ".metadata").read_bytes())
    table.storage_meta.checkpoint_id = table.storage_meta.save_id = ""  # a temporary path, and a random number
    (to / ".metadata").write_bytes(pickle.dumps(table, protocol=4))


torch.save(checkpoint(True), folder / "kinds_zip.pth")
torch.save(kinds(True), folder / "kinds_protocol5.pth", pickle_protocol=5)
torch.save(checkpoint(False), folder / "kinds_old.pth", _use_new_zipfile_serialization=False)
number_storages(folder / "kinds_old.pth")

torch.manual_seed(1)
vit = timm.create_model("vit_tiny_patch16_224", img_size=8, patch_size=4, in_chans=1, num_classes=4, embed_dim=8,
                        depth=1, num_heads=2)
old = folder / "vit_old.pth"
torch.save({"model": {"_orig_mod." + name: t for name, t in vit.state_dict().items()}, "epoch": 0}, old,
           _use_new_zipfile_serialization=False)
number_storages(old)
distributed(folder / "distributed")
