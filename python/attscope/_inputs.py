"""Images in the forms that users have: paths, PIL images, numpy arrays and torch tensors.

Neither PIL nor torch is imported: their objects are recognised by their methods.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Union

import numpy as np

from ._context import Error

Image = Union[str, bytes, "os.PathLike[Any]", np.ndarray, Any]
"""One image:

- a path of a JPEG, PNG or WebP file: a text, bytes or a pathlib.Path;
- a PIL image;
- a numpy array of uint8, [height, width] or [height, width, channels], with 1, 3 or 4 channels (alpha is dropped);
- a torch tensor of uint8, [channels, height, width];
- an array or tensor of floats, [channels, height, width], already resized to the network's `image_size` and normalised
  with its mean and std. For another size, open the network with `img_size`.

Images of the first four kinds can have any size: they are resized, cropped and normalised as for an evaluation.
"""

Images = Union[Image, Sequence[Image]]
"""One image, a list of images, or an array or tensor of several images with one more dimension in front."""


def is_path(value: Any) -> bool:
    return isinstance(value, (str, bytes, os.PathLike))


def is_tensor(value: Any) -> bool:
    return hasattr(value, "detach") and hasattr(value, "data_ptr")


def _is_pil(value: Any) -> bool:
    return hasattr(value, "convert") and hasattr(value, "getbands")


def _is_bytes(array: np.ndarray) -> bool:
    return array.dtype == np.uint8


def split(images: Images) -> list[Any]:
    """The single images, paths as texts, and others as arrays: uint8 [height, width, channels], or float32 [channels,
    height, width]."""
    if is_path(images) or _is_pil(images):
        return [_one(images)]
    if _is_array(images):
        return _of_array(images)
    if not isinstance(images, Iterable):
        return [_one(images)]
    return [single for image in images for single in (_of_array(image) if _is_array(image) else [_one(image)])]


def is_one(images: Any) -> bool:
    """Whether the images are one image, and neither a list nor an array of several."""
    if is_path(images) or _is_pil(images):
        return True
    return _is_array(images) and (images.ndim if isinstance(images, np.ndarray) else images.dim()) < 4


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or is_tensor(value)


def _one(image: Any) -> Any:
    if is_path(image):
        if not os.fspath(image):
            raise Error("the path of an image is empty")
        return os.fsdecode(image)
    if _is_pil(image):
        return _as_bytes(_of_pil(image))
    raise Error(f"an image is a {type(image).__name__}; expected a path, a PIL image, a numpy array or a torch tensor")


def _of_pil(image: Any) -> np.ndarray:
    """uint8 pixels. Of 16-bit grey the high byte is kept, as of files; PIL's convert() would clip it at 255."""
    if image.mode.startswith("I;16"):
        return (np.asarray(image) >> 8).astype(np.uint8)
    if image.mode in ("I", "F"):
        raise Error(
            f"a PIL image has the mode {image.mode}, which does not say which value is white; expected another mode, "
            "such as L or I;16"
        )
    return np.asarray(image.convert("L" if image.mode == "L" else "RGB"))


def _of_array(images: Any) -> list[np.ndarray]:
    """The images of an array or tensor that holds one or several."""
    tensor = is_tensor(images)
    if tensor:
        images = images.detach().cpu()
        images = (images if str(images.dtype) == "torch.uint8" else images.float()).numpy()
    if _is_bytes(images):
        if tensor and images.ndim in (3, 4):
            images = np.moveaxis(images, -3, -1)
        if images.ndim == 4:
            return [_as_bytes(image) for image in images]
        return [_as_bytes(images)]
    if images.dtype.kind != "f":
        raise Error(f"images are an array of {images.dtype}; expected uint8, or floats that are normalised")
    if images.ndim not in (3, 4):
        raise Error(f"images are floats of shape {list(images.shape)}; expected [channels, height, width]")
    floats = np.ascontiguousarray(images, np.float32)
    return list(floats) if floats.ndim == 4 else [floats]


def _as_bytes(image: np.ndarray) -> np.ndarray:
    """[height, width, channels] with 1 or 3 channels, contiguous."""
    if image.ndim == 2:
        image = image[:, :, None]
    if image.ndim != 3 or image.shape[2] not in (1, 3, 4):
        raise Error(
            f"an image is uint8 of shape {list(image.shape)}; expected [height, width], or 1, 3 or 4 channels in the "
            "last dimension (in the first for a torch tensor)"
        )
    return np.ascontiguousarray(image[:, :, :3] if image.shape[2] == 4 else image)


def with_channels(image: np.ndarray, channels: int) -> np.ndarray:
    """A uint8 image with the network's number of channels."""
    if image.shape[2] == channels:
        return image
    if image.shape[2] == 1:
        return np.ascontiguousarray(np.repeat(image, channels, axis=2))
    raise Error(f"an image has {image.shape[2]} channels, and the network takes {channels}; convert it to grey")


def batches(images: list[Any], size: int) -> Iterator[list[Any]]:
    """Runs of at most `size` images of one kind; floats of one shape."""

    def kind(image: Any) -> Any:
        return "path" if is_path(image) else "bytes" if _is_bytes(image) else image.shape

    batch: list[Any] = []
    for image in images:
        if batch and (len(batch) == size or kind(image) != kind(batch[0])):
            yield batch
            batch = []
        batch.append(image)
    if batch:
        yield batch
