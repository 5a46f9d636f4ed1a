"""Opening of networks: from files, by name, and from live PyTorch models."""

from __future__ import annotations

import fnmatch
import itertools
import os
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterator, Sequence
from ctypes import byref
from typing import Any

from . import _inputs
from . import _library as lib
from ._context import Context, Error, brief, encode, truth
from ._library import core
from ._network import Network


def open(  # noqa: A001
    what: str | bytes | os.PathLike[Any],
    *,
    model: str | None = None,
    averaged: bool = False,
    test_images: bool = False,
    precision: str = "f32",
    seed: int | None = None,
    threads: int = 0,
    exif_transpose: bool = False,
    tokenizer: str | bytes | os.PathLike[Any] | None = None,
    **options: Any,
) -> Network:
    """Opens a checkpoint, the folder of a training run, or a network's name.

    what: a safetensors file or a PyTorch checkpoint; a folder, which means its best weights; the name of pretrained
    weights, such as "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k", "hf-hub:org/name@revision" or
    "torchvision/resnet50.IMAGENET1K_V2", which are downloaded if the caches of huggingface_hub and torch lack them; or
    a network's name without such a prefix, such as "vit_tiny_patch16_224", whose weights are then random, drawn from
    `seed`; without `seed`, a warning says so.
    model: the network's name, if the file does not tell it.
    averaged: use the moving average of the file's weights.
    test_images: use the image size with which timm's validate.py evaluates the weights.
    precision: "f32"; "bf16", mixed precision; "f64", for measurements below the rounding of f32, many times slower.
    threads: of the engine; 0: one per processor.
    exif_transpose: turn photographs that are read from files as their EXIF data say; False: as they are stored, as timm
    does. PIL images and arrays are never turned.
    tokenizer: of a network that reads texts: tokenizer.json, vocab.txt or a folder with one of them, for all calls that
    name no other; None: that beside the checkpoint.
    options: options of the network, such as num_classes=10 or img_size=(96, 128).
    """
    if not _inputs.is_path(what):
        hint = "; from_torch() opens a live model" if hasattr(what, "state_dict") else ""
        raise Error(f"a checkpoint is {brief(what)}; expected a file, a folder, or the name of a network{hint}")
    path, turns = encode("the checkpoint", what), truth("exif_transpose", exif_transpose)
    if tokenizer is not None and not _inputs.is_path(tokenizer):
        raise Error(f"the tokenizer is {brief(tokenizer)}; expected the path of a file or folder")
    network = Network(
        lambda context, how, network: core.att_network_open(context, path, how, network),
        model=model,
        averaged=averaged,
        test_images=test_images,
        precision=precision,
        seed=42 if seed is None else seed,
        threads=threads,
        options=options,
        tokenizer=tokenizer,
    )
    if network.is_random and seed is None:
        warnings.warn(
            f"{what} is the name of a network, not a file: its weights are random, not pretrained. Give a seed if that "
            "is meant",
            stacklevel=2,
        )
    if turns:
        with network._use() as handle:
            p = lib.att_preprocess.from_buffer_copy(core.att_network_identity(handle).contents.preprocess)
            p.exif_transpose = True
            network._context.check(core.att_network_set_preprocess(handle, byref(p)))
    return network


def models(pattern: str | Sequence[str] = "*", *, tags: bool = False) -> list[str]:
    """The names of the networks that match the pattern, or one of the patterns, such as "*dinov2*".

    tags: also the names of timm's pretrained weights, such as "vit_tiny_patch16_224.augreg_in21k_ft_in1k", which
    `open("timm/NAME")` downloads.
    """
    patterns = [pattern] if isinstance(pattern, str) else list(pattern)
    if not all(isinstance(one, str) for one in patterns):
        raise Error(f"the pattern is {brief(pattern)}; expected a text or a list of texts")
    found = [core.att_model_at(i).name.decode() for i in range(core.att_model_count())]
    if truth("tags", tags):
        context = Context(threads=1)
        try:
            with context.use():
                found = [name for network in found for name in (network, *_tags(context, network))]
        finally:
            context.destroy()
    return [name for name in found if any(fnmatch.fnmatchcase(name, one) for one in patterns)]


def _tags(context: Context, network: str) -> Iterator[str]:
    tag = lib.att_model_tag()
    for i in itertools.count():
        context.check(core.att_model_tag_at(context.pointer, network.encode(), i, byref(tag)))
        if not tag.name:
            return
        yield f"{network}.{tag.name.decode()}"


def _remove_own(folder: str, process: int) -> None:
    """Removes a folder, but not in processes that were forked from the one that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def from_torch(
    model: Any,
    name: str | None = None,
    *,
    processor: Any = None,
    precision: str = "f32",
    threads: int = 0,
    **options: Any,
) -> Network:
    """Opens a live PyTorch model. Its weights are copied: later changes need another call.

    model: a model of timm or of the transformers library with one of attscope's networks, also wrapped by torch.compile
    or for several devices. A model of transformers is saved to a temporary folder by its save_pretrained().
    name: the network's name in timm; None: as the model's pretrained_cfg or config says. Mean, std, crop and
    interpolation of pretrained_cfg are used, too.
    processor: of a model of transformers: its image processor, which says how images are prepared, or its tokenizer;
    None: images are prepared as usual for its model type, and calls with texts name a tokenizer.
    options: other options with which a model of timm was made and which its tensors do not show, such as global_pool.
    The image size and the number of heads are those of the model.
    precision, threads: as in `open()`.
    """
    if not hasattr(model, "state_dict"):
        raise Error(f"the model is a {type(model).__name__}; expected a module of PyTorch")
    if hasattr(_unwrapped(model), "save_pretrained"):
        # The network reads its tokenizer there when texts come.
        folder = tempfile.mkdtemp(prefix="attscope-")
        try:
            _unwrapped(model).save_pretrained(folder)
            if processor is not None:
                processor.save_pretrained(folder)
            network = open(folder, model=name, precision=precision, threads=threads, **options)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        network._remove_files = weakref.finalize(network, _remove_own, folder, os.getpid())
        return network
    if processor is not None:
        raise Error("a processor belongs to a model of transformers; a model of timm has its pretrained_cfg")
    config = getattr(_unwrapped(model), "pretrained_cfg", None) or {}
    name = name or config.get("architecture")
    if not name:
        raise Error("the model has no pretrained_cfg that names its architecture; give the name of the network")
    # Contiguous copies of tensors that need them, which live until the library has read them.
    state = {key: _contiguous(key, value) for key, value in model.state_dict().items()}
    tensors = (lib.att_safetensors_tensor * len(state))()
    for tensor, (key, value) in zip(tensors, state.items()):
        _describe(tensor, key, value)
    network = Network(
        lambda context, how, opened: core.att_network_open_tensors(context, tensors, len(tensors), how, opened),
        model=name,
        precision=precision,
        threads=threads,
        options={**_hidden_options(model), **options},
    )
    _take_preprocessing(network, config)
    return network


def _unwrapped(model: Any) -> Any:
    """The model itself, without the wrappers of torch.compile and for several devices, of which it may have several."""
    for _ in range(4):
        model = getattr(model, "_orig_mod", getattr(model, "module", model))
    return model


def _contiguous(key: str, value: Any) -> Any:
    if not _inputs.is_tensor(value):
        raise Error(f"{key} of the state_dict is a {type(value).__name__}; expected a tensor", "ERR_UNSUPPORTED")
    return value.detach().cpu().contiguous()


def _hidden_options(model: Any) -> dict[str, Any]:
    """What a transformer of timm knows about itself and its tensors do not show."""
    model = _unwrapped(model)
    found: dict[str, Any] = {}
    size = getattr(getattr(model, "patch_embed", None), "img_size", None)
    if size is not None:
        found["img_size"] = tuple(size)
    blocks = getattr(model, "blocks", None)
    if blocks is not None and len(blocks):
        found["num_heads"] = getattr(getattr(blocks[0], "attn", None), "num_heads", None)
    return found


def _describe(tensor: lib.att_safetensors_tensor, key: str, value: Any) -> None:
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in lib.TORCH_DTYPES:
        raise Error(f"the tensor {key} is {dtype}; expected one of {', '.join(lib.TORCH_DTYPES)}", "ERR_UNSUPPORTED")
    if value.dim() > lib.MAX_RANK:
        raise Error(f"the tensor {key} has {value.dim()} dimensions; expected at most {lib.MAX_RANK}")
    tensor.name = encode("the name of a tensor", key)
    tensor.dtype = lib.TORCH_DTYPES.index(dtype)
    tensor.shape.rank = value.dim()
    tensor.shape.dims[: value.dim()] = list(value.shape)
    tensor.data = value.data_ptr()


def _take_preprocessing(network: Network, config: dict[str, Any]) -> None:
    """Prepares images as the model's pretrained_cfg says."""
    with network._use() as handle:
        p = lib.att_preprocess.from_buffer_copy(core.att_network_identity(handle).contents.preprocess)
        for member in ("mean", "std"):
            values = config.get(member)
            if values is not None and p.in_chans == 1:
                values = [sum(values) / len(values)]  # as timm, whose pretrained_cfg has three for a grey network, too
            if values is not None and len(values) == p.in_chans:
                getattr(p, member)[: p.in_chans] = values
        p.crop_pct = config.get("crop_pct") or p.crop_pct
        p.crop_mode = (config.get("crop_mode") or p.crop_mode.decode()).encode()
        p.interpolation = (config.get("interpolation") or p.interpolation.decode()).encode()
        network._context.check(core.att_network_set_preprocess(handle, byref(p)))
