"""Networks: opening, predictions, features, attention and figures."""

from __future__ import annotations

import ctypes
import json
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import byref
from typing import Any, NamedTuple

import numpy as np

from . import _ablation, _features, _figures, _inputs, _maps, _passes, _progress, _show, _texts
from . import _library as lib
from ._context import (
    Context,
    Error,
    Progress,
    ProgressCallback,
    as_whole,
    brief,
    encode,
    is_stop,
    texts,
    truth,
    whole,
)
from ._inputs import Image, Images
from ._library import core

BATCH = 32
"""Images in one call of the library."""

_NO_IMAGE = "no image is given; expected at least one"

_DTYPES = {lib.F32: "float32", lib.I32: "int32"}

_PRECISIONS = {"f32": (lib.F32, lib.FULL), "bf16": (lib.F32, lib.MIXED), "f64": (lib.F64, lib.FULL)}


class Predictions(list[dict[str, Any]]):
    """One dictionary for each image, as `attscope predict --json` writes it.

    For classification: `{"image": "dog.jpg", "top": [{"class": 207, "label": "golden retriever", "probability": 0.9},
    ...]}`, the most probable class first; without "label" if the names of the classes are not known. "image" is the
    path of the image; None for an image in memory.

    For detection: `{"image": "dog.jpg", "boxes": [{"category_id": 18, "bbox": [left, top, width, height], "score": 0.9,
    "label": "dog"}, ...]}` in pixels of the photograph, the best box first; with "image_id" if the name of the file is
    a number.
    """

    outputs: dict[str, Any]
    """The outputs of the network's task, by name: for classification "logits" [images, classes]; for detection "boxes"
    [images, most, 4] (left, top, right, bottom in pixels of the network's input), "scores" and "classes" [images,
    most], and "count" [images], how many of them are boxes. In passes over photographs: "class_map", a list of arrays
    [height, width] of the photographs' sizes."""

    def __init__(self, answers: list[dict[str, Any]], outputs: dict[str, Any]) -> None:
        super().__init__(answers)
        self.outputs = outputs

    @property
    def logits(self) -> np.ndarray:
        """Logits [images, classes]."""
        logits: np.ndarray = self.outputs["logits"]
        return logits


class Drawing(NamedTuple):
    """A prediction drawn into its photograph, see `Network.draw()`."""

    image: np.ndarray
    """The photograph with the prediction painted into it: uint8 [height, width, 3]."""
    classes: np.ndarray | None
    """The class of each pixel of the photograph: uint16 [height, width]; 65535 where the network did not see it. None
    if predictions of the task do not give each pixel a class."""
    colours: np.ndarray
    """Red, green and blue of each class: uint8 [classes, 3]."""


class Relevance(NamedTuple):
    """Which parts of an image make the network give it a class, see `Network.relevance()`."""

    values: np.ndarray
    """float64 [height, width], cells of equal size that cover the network's input."""
    target: int
    """The class."""
    logit: float
    """Its logit."""


class Curve(NamedTuple):
    """A deletion or insertion curve, see `Network.curve()`."""

    probabilities: np.ndarray
    """Of the class after each step: float64 [steps + 1]."""
    area: float
    """The area under the probabilities."""


class _Handles:
    """The objects of the library that a network owns, in the order in which they are freed."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.relevance, self.explorer = ctypes.c_void_p(), ctypes.c_void_p()
        self.inner, self.network = ctypes.c_void_p(), ctypes.c_void_p()
        self.length: int | None = None  # tokens of the texts that the explorer takes

    def free(self) -> None:
        if not self.context.can_be_freed:
            return
        core.att_relevance_destroy(byref(self.relevance))
        core.att_explorer_destroy(byref(self.explorer))
        core.att_network_close(byref(self.inner))
        core.att_network_close(byref(self.network))
        self.context.destroy()


def _takes_truth(key: str) -> bool:
    """Whether an option is True or False, in a family of networks that has it. True for unknown keys, which the library
    refuses."""
    families = map(core.att_model_family_at, range(core.att_model_family_count()))
    kinds = {
        option.kind
        for family in families
        for option in family.options[: family.option_count]
        if key.encode() in (option.key, option.alias)
    }
    return not kinds or lib.SWITCH in kinds


def set_options(values: lib.att_option_values, options: dict[str, Any]) -> None:
    """Stores options of a network: numbers, truths, texts, and pairs for sides. None: not given."""
    for key, value in options.items():
        name = encode("the name of an option", key)
        if value is None:
            continue
        if isinstance(value, (bool, np.bool_)) and not _takes_truth(key):
            raise Error(f"the option {key} is {brief(value)}; expected a number, a text, or height and width")
        if isinstance(value, str):
            core.att_options_set_text(byref(values), name, encode(key, value))
        elif isinstance(value, (tuple, list)) and len(value) == 2:
            core.att_options_set_sides(byref(values), name, *[whole(f"a side of {key}", side, 1) for side in value])
        elif isinstance(value, (bool, np.bool_, int, float, np.number)):
            core.att_options_set(byref(values), name, float(value))
        else:
            raise Error(f"the option {key} is {brief(value)}; expected a number, a text, or height and width")


class Network:
    """An open network. `attscope.open()` and `attscope.from_torch()` make it.

    A network has threads and memory of its own, so several networks can run in several Python threads at the same
    time; a call for a network waits for the other calls for the same network. `close()`, the end of a `with` block,
    and garbage collection free it. After `os.fork()` it can be used in the parent process only.
    """

    def __init__(
        self,
        open_network: Any,
        *,
        model: str | None = None,
        averaged: bool = False,
        test_images: bool = False,
        precision: str = "f32",
        seed: int = 42,
        threads: int = 0,
        options: dict[str, Any] | None = None,
        tokenizer: Any = None,
    ) -> None:
        """Programs call `attscope.open()`. open_network(context, options, network) is the function of the library."""
        if not isinstance(precision, str) or precision not in _PRECISIONS:
            raise Error(f"the precision is {brief(precision)}; expected {', '.join(_PRECISIONS)}")
        given = lib.att_option_values()
        set_options(given, options or {})
        how = core.att_network_options_defaults()
        how.model, how.options = encode("model", model), ctypes.pointer(given)
        how.averaged, how.test_images = truth("averaged", averaged), truth("test_images", test_images)
        how.seed = whole("seed", seed, 0, 2**64 - 1)
        how.dtype, how.precision = _PRECISIONS[precision]
        self._seed, self._tokenizer = how.seed, tokenizer
        self._context = context = Context(threads)
        self._handles = handles = _Handles(context)
        self._finalizer = weakref.finalize(self, handles.free)
        self._remove_files: Any = None  # of a network that was saved to a temporary folder
        try:
            with context.use():
                context.check(open_network(context.pointer, byref(how), byref(handles.network)))
                self._name = self._identity(handles.network).name.decode()
        except BaseException:
            self._finalizer()
            raise

    def close(self) -> None:
        """Frees the network. Later calls raise an Error."""
        if self._remove_files:
            self._remove_files()
        if self._context.is_inherited:
            self._finalizer()
            return
        with self._context.use():
            self._finalizer()

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *_exception: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<attscope.Network {self.name}{'' if self._finalizer.alive else ', closed'}>"

    @contextmanager
    def _use(self) -> Iterator[ctypes.c_void_p]:
        with self._context.use():
            if not self._finalizer.alive:
                raise Error("the network is closed")
            yield self._handles.network

    # --- properties ---------------------------------------------------------------------------------------------------

    def _identity(self, network: ctypes.c_void_p) -> Any:
        return core.att_network_identity(network).contents

    @property
    def name(self) -> str:
        """The network's name, as in timm. It is known while a call runs and after `close()`, too."""
        return self._name

    @property
    def path(self) -> str | None:
        """The file of the weights; None for random weights and for weights from memory."""
        with self._use() as network:
            path = core.att_network_path(network)
            return None if path is None else os.fsdecode(path)

    @property
    def is_random(self) -> bool:
        """Whether the network was opened by its name, so that its weights are random."""
        with self._use() as network:
            return not core.att_network_file(network)

    @property
    def options(self) -> dict[str, Any]:
        """The options that describe the network, such as `depth`."""
        with self._use() as network:
            values = self._identity(network).options
            items = [values.items[i] for i in range(values.count)]
            return {v.key.decode(): _option(v) for v in items}

    @property
    def image_size(self) -> tuple[int, int, int]:
        """Channels, height and width of the network's images; zeros if no input is an image."""
        with self._use() as network:
            p = self._identity(network).preprocess
            return p.in_chans, p.height, p.width

    @property
    def inputs(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """The network's inputs by name: the type of numpy and the shape of one sample, such as
        `{"image": ("float32", (224, 224, 3))}`."""
        with self._use() as network:
            return {name: (_DTYPES[field.dtype], _shape(field)) for name, field in self._fields(network).items()}

    @property
    def classes(self) -> int:
        """The number of classes; 0: the network has no head."""
        with self._use() as network:
            return int(core.att_model_classes(core.att_network_model(network)))

    @property
    def class_names(self) -> list[str] | None:
        """The names of the classes, by number; None: not known."""
        with self._use() as network:
            count = ctypes.c_int()
            names = core.att_network_class_names(network, byref(count))
            return [names[i].decode() for i in range(count.value)] or None

    @property
    def layers(self) -> list[str]:
        """The names of the attention layers, such as "blocks.3.attn", in the order of `attention()`."""
        with self._use():
            explorer = self._explorer()
            return [self._layer(explorer, i).scope.decode() for i in range(core.att_explorer_layer_count(explorer))]

    @property
    def branches(self) -> list[str]:
        """The names of the residual additions, such as "blocks.3.add1", in the order of the network."""
        with self._use():
            return self._branch_names(self._explorer())

    # --- running ------------------------------------------------------------------------------------------------------

    def predict(
        self,
        images: Images,
        *,
        topk: int = 5,
        batch_size: int = BATCH,
        img_scale: tuple[int, int] | None = None,
        stride: _passes.Sides | None = None,
        scales: Sequence[float] | None = None,
        flips: bool = False,
    ) -> Predictions:
        """Predicts images: paths, PIL images, arrays or tensors (see `attscope.Image`). A folder stands for the images
        in it and in its folders, in the order of timm's data sets, here and in the methods below.

        Floats must have the network's `image_size`, here and in the methods below.
        topk: the number of classes in each prediction.
        batch_size: images in one call of the library, after which Ctrl-C is noticed, here and in the methods below.
        A detector sees one photograph at a time, because each has its own size.

        A network that gives each pixel a class can see photographs (no floats) in several passes, as mmsegmentation's
        tests do. Any of the options below asks for them; `outputs` then has "class_map" alone, a list of arrays
        [height, width] of the photographs' sizes.
        img_scale: the photograph is resized with its aspect ratio, so that its longer side is at most the first number,
        and its shorter side at most the second; None: the sides of the network's `image_size`.
        stride: the photograph is cut into overlapping windows of the network's `image_size`, each so many pixels beside
        or below the one before; two numbers: rows and columns; None: the photograph is one image.
        scales: a pass for each of these factors of img_scale; None: 1.
        flips: each pass over the mirrored photograph, too.
        """
        topk, batch_size = whole("topk", topk, 1), whole("batch_size", batch_size, 1)
        passes = _passes.options(img_scale, stride, scales, flips)
        singles = self._singles(images)
        answers: list[dict[str, Any]] = []
        outputs: list[dict[str, np.ndarray]] = []
        with self._use() as network, self._json_writer() as writer, self._seen_in(network, passes, singles):
            names = [image if _inputs.is_path(image) else None for image in singles]
            for batch in self._run(network, singles, batch_size if passes is None else 1):
                outputs.append(_outputs(batch))
                answers += self._answers(network, batch, topk, writer, names[len(answers) :])
        return Predictions(
            [{"image": name, **answer} for name, answer in zip(names, answers)],
            _join(outputs) if passes is None else _listed(outputs),
        )

    def evaluate(
        self,
        data: Any,
        *,
        split: str | None = None,
        batch_size: int = BATCH,
        workers: int = 4,
        skip_corrupt: bool = False,
        img_scale: tuple[int, int] | None = None,
        stride: _passes.Sides | None = None,
        scales: Sequence[float] | None = None,
        flips: bool = False,
        progress: _progress.Wish = None,
    ) -> dict[str, Any]:
        """Evaluates the network on a data set, as `attscope validate` does.

        data: the path of a data set.
        split: one of its splits; None: "validation".
        batch_size: images, or windows of a photograph, in one run of the network.
        workers, skip_corrupt, progress: as in `measure()`.
        img_scale, stride, scales, flips: as in `predict()`.

        Returns the metrics of the network's task by name, such as "top1" or "miou" (in per cent), the number of
        "images", and "classes" with figures by the name of each class that occurs: "iou" and "accuracy" of a segmenter,
        "ap" and "ar" of a detector, whose metrics are "ap", "ap50" and so on, as those of COCO, NaN where no box is in
        the range of areas.
        """
        if not _inputs.is_path(data):
            raise Error(f"data is {brief(data)}; expected the path of a data set")
        passes = _passes.options(img_scale, stride, scales, flips)
        opening, options = core.att_dataset_options_defaults(), core.att_evaluate_options_defaults()
        opening.split = encode("split", "validation" if split is None else split)
        options.batch_size, options.workers = whole("batch_size", batch_size, 1), whole("workers", workers, 0)
        options.skip_corrupt = truth("skip_corrupt", skip_corrupt)
        classes: dict[str, dict[str, float]] = {}
        options.detailed = _by_node(classes)
        dataset, found = ctypes.c_void_p(), lib.att_evaluation()
        with _progress.shown(progress) as shown, self._use() as network, self._seen_in(network, passes):
            options.progress = self._context.progress(shown)
            check = self._context.check
            check(core.att_network_need_head(network, b"it cannot be evaluated"))
            try:
                check(core.att_network_open_dataset(network, texts("data", [data]), 1, byref(opening), byref(dataset)))
                check(core.att_network_compare_classes(network, dataset, True))
                check(core.att_network_evaluate(network, dataset, byref(options), byref(found)))
            finally:
                core.att_dataset_close(byref(dataset))
            task = core.att_model_task(core.att_network_model(network))
        metrics = {task.metrics[i].name.decode(): found.metrics[i] for i in range(task.metric_count)}
        return {**metrics, "images": found.count, **({"classes": classes} if classes else {})}

    def draw(
        self,
        image: Image,
        *,
        img_scale: tuple[int, int] | None = None,
        stride: _passes.Sides | None = None,
        scales: Sequence[float] | None = None,
        flips: bool = False,
    ) -> Drawing:
        """Draws the prediction for one image into it, for tasks whose predictions can be drawn, such as `segment`.

        image: a path, a PIL image, or an array or tensor of uint8 (see `attscope.Image`).
        img_scale, stride, scales, flips: as in `predict()`.
        """
        single = _single(image)
        _check_photograph(single)
        passes = _passes.options(img_scale, stride, scales, flips)
        drawing = lib.att_drawing()
        with self._use() as network, self._seen_in(network, passes):
            context = self._context.pointer
            for batch in self._run(network, [single], 1):
                with self._photograph(single) as photograph:
                    self._context.check(
                        core.att_network_draw(network, byref(batch), None, byref(photograph), byref(drawing))
                    )
            try:
                return _drawn(drawing)
            finally:
                core.att_drawing_free(context, byref(drawing))

    @contextmanager
    def _seen_in(self, network: ctypes.c_void_p, passes: Any, singles: Sequence[Any] = ()) -> Iterator[None]:
        """Photographs are seen in these passes; None: once."""
        for single in singles if passes is not None else ():
            _check_photograph(single)
        self._context.check(core.att_network_set_passes(network, None if passes is None else byref(passes)))
        try:
            yield
        finally:
            core.att_network_set_passes(network, None)

    @contextmanager
    def _photograph(self, image: Any) -> Iterator[Any]:
        """An image in colours, as the library takes it."""
        if not _inputs.is_path(image):
            made, _kept = _decoded([image], image.shape[2])
            yield made[0]
            return
        read = lib.att_image()
        self._context.check(
            core.att_network_read_image(self._handles.network, encode("an image", image), 3, byref(read))
        )
        try:
            yield read
        finally:
            core.att_image_free(self._context.pointer, byref(read))

    def features(self, images: Images, *, batch_size: int = BATCH) -> np.ndarray:
        """The input of the classifier for each image: [images, channels].

        images, batch_size: as in `predict()`.
        """
        return self.outputs(images, ["features"], batch_size=batch_size)["features"]

    def outputs(self, images: Images, names: str | Sequence[str], *, batch_size: int = BATCH) -> dict[str, np.ndarray]:
        """Named outputs, each with one row for each image.

        names: one name or several: "logits", "features" [channels], "tokens" [tokens, channels], "stage1" to "stage4"
        [height, width, channels] (stages of ResNet and Swin, of other networks the last four blocks); of networks with
        tokens "mean" [channels] over the patches, "class" and "both" [2 channels], "blocks.3" [tokens, channels],
        "blocks.3.mean" and so on; and for attention layers "blocks.3.attn.map" [heads, queries, keys]; '*' and '?' are
        allowed in names of layers.
        images, batch_size: as in `predict()`.
        """
        singles = self._singles(images)
        with self._use() as network:
            inner = self._inner(network)
            self._context.check(core.att_network_select_outputs(inner, encode("names", _joined("names", names))))
            return _join([_outputs(batch) for batch in self._run(inner, singles, batch_size)])

    def run(self, arrays: Mapping[str, Any], names: str | Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Runs the network on named arrays, and returns named outputs.

        arrays: for each of the network's `inputs` an array or tensor with one row for each sample. An image is [height,
        width, channels], already normalised with mean and std. Networks that can take other shapes than their own do.
        names: as in `outputs()`; None: the outputs of the network's task.
        """
        with self._use() as network:
            inner = self._inner(network)
            wanted = None if names is None else _joined("names", names)
            self._context.check(core.att_network_select_outputs(inner, encode("names", wanted)))
            given, answers = self._batch(network, arrays), lib.att_batch()
            self._context.check(core.att_network_run(inner, byref(given), byref(answers)))
            return _outputs(answers)

    def embed_texts(
        self,
        sentences: str | Sequence[str],
        of: str = "mean",
        *,
        normalize: bool = False,
        tokenizer: Any = None,
        max_length: int | None = None,
        batch_size: int = 32,
    ) -> np.ndarray:
        """Vectors of texts, by a network whose inputs are tokens: [texts, channels]; of one text [1, channels].

        sentences: one text, or a list of texts.
        of: "mean" over all tokens, "class", the first token, "both", or "features", which a head reads.
        normalize: divide each vector by its Euclidean norm.
        tokenizer: path of tokenizer.json, vocab.txt or a folder with one of them; None: that of `open()`, or else that
            beside the checkpoint.
        max_length: shorten longer texts to so many tokens; None: to the length in sentence_bert_config.json beside the
            checkpoint, or else to as many as the network takes.
        batch_size: texts that run together.
        """
        found = lib.att_embedding()
        options = core.att_texts_options_defaults()
        options.output, options.unit = encode("of", of), bool(normalize)
        options.batch_size = whole("batch_size", batch_size, 1)
        with self._use() as network, _texts.tokens(self, network, sentences, tokenizer, max_length) as ids:
            inner, check = self._inner(network), self._context.check
            try:
                check(core.att_network_embed_texts(inner, ids.texts, ids.count, byref(options), byref(found)))
                values = np.ctypeslib.as_array(found.values, shape=(found.count, found.shape.dims[0])).copy()
            finally:
                core.att_embedding_free(self._context.pointer, byref(found))
        return values

    def tokens(self, text: str, *, tokenizer: Any = None, max_length: int | None = None) -> list[str]:
        """The tokens into which a text is divided, special ones included: those of `attention()` and `explore()`.

        text: one text.
        tokenizer, max_length: as in `embed_texts()`.
        """
        if not isinstance(text, str):
            raise Error(f"the text is {brief(text)}; expected one text")
        with self._use() as network, _texts.tokens(self, network, text, tokenizer, max_length) as ids:
            return _texts.pieces(ids, 0)

    def attention(
        self, images: Images | Mapping[str, Any], layer: int | str, head: int | None = None, query: int | None = None
    ) -> Any:
        """The attention weights of images in one layer: [heads, queries, keys] for one image, [images, heads, queries,
        keys] for a list, an array of several images or a folder. Of texts, [heads, queries, keys] for one, and a list
        of such arrays for a list.

        images: as in `predict()`, or one sample as in `run()`. A network for texts takes one text or a list of texts,
        whose keys are those of `tokens()`.
        layer: its number (from 0; negative numbers count from the end) or name, see `layers`. If `head` or `query` is
        given, the result lacks this dimension, so that both give one row [keys]. Token 0 is the class token, if there
        is one, and the tokens of the patches follow row by row. A key that a query does not see (of another window of a
        Swin transformer, or later than it) is NaN.
        """
        with self._use() as network:
            reads_texts = _texts.are_read(network)
        if reads_texts and not isinstance(images, (str, Mapping)):
            return [self._attention_changed(text, None, layer, head, query) for text in _texts.listed(images)]
        if reads_texts or isinstance(images, Mapping) or self._is_one(images):
            return self._attention_changed(images, None, layer, head, query)
        found = [self._attention_changed(image, None, layer, head, query) for image in self._singles(images)]
        if not found:
            raise Error(_NO_IMAGE)
        return np.stack(found)

    def explore(self, image: Image | Mapping[str, Any]) -> _ablation.Exploration:
        """One image in this network, of which parts can be removed: `explore("cat.jpg").remove(head=(3, 1)).predict()`.

        image: one image, or one sample as in `run()`; of a network for texts, one text. A network for texts without
        classes predicts "mean", the vector of `embed_texts()`.
        """
        with self._use() as network:
            return _ablation.Exploration(self, self._as_one(network, image))

    def ablate(
        self,
        data: Any,
        *,
        heads: str | Sequence[str] | None = None,
        branches: str | Sequence[str] | None = None,
        tokens: str | Sequence[str] | None = None,
        uniform: bool = False,
        greedy: bool = False,
        bound: float = 0,
        split: str | None = None,
        batch_size: int = BATCH,
        workers: int = 4,
        skip_corrupt: bool = False,
        npz: Any = None,
        progress: _progress.Wish = None,
    ) -> _ablation.Ablation:
        """Evaluates the network on a data set without parts of it, one part after another, as `attscope ablate` does.

        data, split: as in `evaluate()`. Images without classes have the class that the unchanged network predicts. A
        network for texts takes a list of texts; without classes it is compared by its vector.
        heads: "all" (also if no parts are named), or layers and heads: "blocks.3" (each head alone), "blocks.3:0,2"
        (both together), "blocks.3:0+blocks.4:1". A list of such texts is removed one after another.
        branches: residual branches: "all", "attention", "mlp", or names of additions, such as "blocks.3.add1".
        tokens: "all", "class", "registers" (each alone), or numbers and ranges, such as "1-4,7" (together).
        uniform: make heads uniform instead of removing them.
        greedy, bound: remove the parts one after another for good, always the one without which accuracy is highest,
        as long as accuracy is not below `bound`, in per cent.
        npz: also write the numbers of each image to this file.
        batch_size, workers, skip_corrupt, progress: as in `evaluate()`.
        """
        return _ablation.ablate(
            self, data, split, batch_size, workers, skip_corrupt, npz, progress, heads=heads, branches=branches,
            tokens=tokens, uniform=uniform, greedy=greedy, bound=bound,
        )  # fmt: skip

    def _attention_changed(
        self, image: Any, apply: Any, layer: int | str, head: int | None, query: int | None
    ) -> np.ndarray:
        """As attention(), with the changes that apply(explorer) makes; None: none."""
        with self._use() as network, self._changed(network, image, apply) as (explorer, given):
            number = self._layer_number(explorer, layer)
            facts = self._layer(explorer, number)
            heads = [_index("head", head, facts.heads)] if head is not None else list(range(facts.heads))
            queries = [_index("query", query, facts.queries)] if query is not None else list(range(facts.queries))
            batch = lib.att_batch()
            self._context.check(core.att_explorer_run(explorer, byref(given), byref(batch)))
            rows = np.empty((facts.heads, facts.tokens), np.float32)
            found = np.empty((len(heads), len(queries), facts.tokens), np.float32)
            for place, q in enumerate(queries):
                self._context.check(core.att_explorer_row(explorer, number, q, None, rows.ctypes.data))
                found[:, place] = rows[heads]
        if query is not None:
            found = found[:, 0]
        return found[0] if head is not None else found

    def maps(
        self, image: Image | Mapping[str, Any], layer: int | str, head: int | None = None, query: int | None = 0
    ) -> np.ndarray:
        """The attention weights on the patches of a layer's grid: float64 [heads, rows, columns], as `attscope maps`
        writes them.

        image: one image, or one sample as in `run()`.
        layer, head: as in `attention()`; head=-1: the mean over the heads, without that dimension.
        query: a token; None: the mean over all queries.
        """
        with self._use() as network:
            given, batch = self._sample(network, image), lib.att_batch()
            explorer = self._explorer(given)
            number = self._layer_number(explorer, layer)
            facts = self._layer(explorer, number)
            chosen = head if head in (None, -1) else _index("head", head, facts.heads)
            heads = list(range(facts.heads)) if chosen is None else [chosen]
            token = -1 if query is None else _index("query", query, facts.queries)
            self._context.check(core.att_explorer_run(explorer, byref(given), byref(batch)))
            found = np.empty((len(heads), facts.grid_h, facts.grid_w))
            for place, h in zip(found, heads):
                self._context.check(core.att_explorer_map(explorer, number, h, token, place.ctypes.data))
        return found if head is None else found[0]

    def draw_maps(
        self,
        images: Images,
        folder: Any,
        *,
        show: str | Sequence[str] = "attention",
        layers: str | int | Sequence[int] | None = None,
        heads: str | int | Sequence[int] | None = None,
        query: str | tuple[int, int] | None = None,
        at: tuple[float, float] | None = None,
        target: int | None = None,
        means: str = "none",
        form: str = "overlay",
        format: str | Sequence[str] | None = None,  # noqa: A002
        colours: str = "viridis",
        scale: str | tuple[float, float] = "map",
        smooth: bool = False,
        opacity: float = 0.6,
        zoom: int = 2,
        progress: _progress.Wish = None,
    ) -> dict[str, dict[str, np.ndarray]]:
        """Draws maps of images into files, the same as `attscope maps` writes: pictures, and a .npz file of the values
        of each image. Returns these values: the maps of each image by their names.

        images: images as in `predict()`; paths may also be folders and archives of images. A network for texts takes
        one text or a list of texts, whose names are "text1", "text2" and so on.
        folder: for the files; it is created if it is missing.
        show: "attention" (the weights of a query), "mean" (their mean over all queries), and methods of `relevance()`.
        layers, heads: of attention: "last", "all", "mean" (heads), or numbers from 0.
        query: of attention: "class", "prefix:N", or row and column of the grid of patches. at: or the patch at these
        parts of the image's width and height.
        target: the class of relevance; None: the most probable one of each image.
        means: "all" or "class": one mean over all images, or over those of each class, instead of single images.
        form: "overlay", over the image; "map", alone; or "grid", layers x heads in one picture.
        format: "png", "svg" and "pdf"; None: "png", of texts "svg".
        colours: "viridis", "magma", "inferno", "plasma", "grey", or "diverging" with 0 in the middle.
        scale: of the colours: "map", each map's own; "shared", of all maps of an item of `show` and image; or the
        lowest and the highest value.
        smooth, opacity, zoom: interpolation between cells, opacity over the image, pixels for a side of an input's
        pixel.
        progress: as in `evaluate()`.
        """
        return _maps.draw(
            self, images, folder, progress, show=show, layers=layers, heads=heads, query=query, at=at, target=target,
            means=means, form=form, format=format, colours=colours, scale=scale, smooth=smooth, opacity=opacity,
            zoom=zoom,
        )  # fmt: skip

    def relevance(
        self, image: Image | Mapping[str, Any], method: str = "chefer", target: int | None = None
    ) -> Relevance:
        """Which parts of an image make the network give it a class.

        image: one image, or one sample as in `run()`.
        method: "chefer", "attention_gradient", "grad_cam", "integrated_gradients", "occlusion", "rollout", "flow",
        "random" or "centre", with options as "integrated_gradients:steps=64"; the header attscope/relevance.h has the
        formulas.
        target: the class; None: the most probable one.
        """
        found = lib.att_relevance_map()
        number = -1 if target is None else whole("target", target, 0)
        with self._use() as network:
            given = self._sample(network, image)
            relevance = self._relevance(given)
            text = encode("the method", method)
            self._context.check(core.att_relevance_run(relevance, byref(given), text, number, byref(found)))
            values = np.ctypeslib.as_array(found.values, (found.height, found.width)).copy()
        return Relevance(values, found.target, found.logit)

    def curve(
        self, image: Image | Mapping[str, Any], relevance: Relevance, curve: str = "deletion", steps: int = 28
    ) -> Curve:
        """How the probability of the class changes when the most relevant pixels are deleted or inserted first.
        (Petsiuk et al., BMVC 2018)

        image: in one of the forms that `predict()` takes.
        relevance: of this image, from `relevance()`, or a `Relevance` of your own.
        curve: "deletion", whose area is small for a faithful map, or "insertion", whose area is large.
        steps: at most 28.
        """
        if curve not in lib.CURVES:
            raise Error(f"the curve is {brief(curve)}; expected deletion or insertion")
        steps = whole("steps", steps, 1)
        values = np.ascontiguousarray(relevance.values, np.float64)
        if values.ndim != 2:
            raise Error(f"the map has the shape {list(values.shape)}; expected [height, width]")
        cells = values.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
        given_map = lib.att_relevance_map(*values.shape, cells, relevance.target, relevance.logit)
        probabilities, area = np.empty(max(steps, lib.MOST_STEPS) + 1), ctypes.c_double()
        with self._use() as network:
            given = self._sample(network, image)
            self._context.check(
                core.att_relevance_curve(
                    self._relevance(given),
                    byref(given),
                    byref(given_map),
                    relevance.target,
                    lib.CURVES.index(curve),
                    steps,
                    probabilities.ctypes.data,
                    byref(area),
                )
            )
        return Curve(probabilities[: steps + 1], area.value)

    def measure(
        self,
        data: Any,
        instruments: str | Sequence[str] | None = None,
        *,
        labels: Sequence[int] | None = None,
        nodes: str | None = None,
        budget: float = 0,
        samples: int = 0,
        maps: int = 0,
        limit: int = 0,
        split: str | None = None,
        output: Any = None,
        experiment: str | None = None,
        batch_size: int | None = None,
        workers: int = 4,
        skip_corrupt: bool = False,
        progress: _progress.Wish = None,
        frame: bool | None = None,
    ) -> Any:
        """Runs the network on images and measures it with instruments.

        data: the path of a data set, a list of paths of images, or images in memory (see `attscope.Image`), or named
        arrays as in `run()`; with their classes in `labels` for instruments that need them, such as "accuracy".
        instruments: their names and options, such as `["entropy", "nsi:per=block"]`; None: all that apply, without
        `labels` those that need none.
        nodes: a pattern for the nodes to measure, such as "blocks.1*"; None: all.
        budget: seconds for costly instruments of the four views (step size, convolution, rank, uniform), which are
        measured as far as this time is enough for them; for paths.
        samples: also report the values of the first `samples` images.
        limit: for paths, measure so many images, evenly spread over them; 0: all.
        output, experiment: for paths, record the figures in the folder OUTPUT/EXPERIMENT, from which
        `attscope.report()` reads them, with the attention maps of the first `maps` images; None for `experiment`: named
        after the checkpoint. Without `output`, figures of a checkpoint that lies in a run's folder are recorded there,
        as by `attscope measure`.
        split: for the path of a data set with splits; None: "validation".
        batch_size: images in one call of the library, after which Ctrl-C is noticed; None: for files 4 for each thread,
        but at least 8, and 32 for images in memory.
        workers: threads that read and prepare files.
        skip_corrupt: leave out files that cannot be decoded, instead of failing.
        progress: a function, called with a `Progress` after every batch, which stops the measurement if it returns
        False; True: a line on the terminal or below the cell of a notebook; False: nothing; None: a line, if there is a
        terminal or a notebook.

        Returns a pandas DataFrame if pandas is installed, else `Figures`, a dictionary of numpy arrays with the same
        columns; `frame` True or False chooses.
        """
        paths = [data] if _inputs.is_path(data) else data
        from_files = isinstance(paths, (list, tuple)) and bool(paths) and all(map(_inputs.is_path, paths))
        if batch_size is None:
            batch_size = max(8, 4 * core.att_context_threads(self._context.pointer)) if from_files else BATCH
        options = _measuring_options(instruments, nodes, split, output, experiment)
        options.budget = float(budget)
        options.samples, options.maps = whole("samples", samples, 0), whole("maps", maps, 0)
        options.limit = whole("limit", limit, 0)
        options.batch_size, options.workers = whole("batch_size", batch_size, 1), whole("workers", workers, 0)
        options.skip_corrupt = truth("skip_corrupt", skip_corrupt)
        _figures.check_wish(frame)
        _progress.check(progress)
        if split is not None and not _inputs.is_path(data):
            raise Error("split is for the path of a data set; single images have no splits")
        if from_files and labels is not None:
            raise Error("labels are for images in memory; a data set of files has its own")
        if not from_files and (output is not None or experiment is not None or options.maps):
            raise Error("figures of images in memory are not recorded: output, experiment and maps need paths")
        if not from_files and options.limit:
            raise Error("limit is for paths; of images in memory give those to measure")
        with _progress.shown(progress) as shown:
            figures = (
                self._measure_files(paths, options, shown)
                if from_files
                else self._measure_arrays(data, options, labels, shown)
            )
        return _figures.as_wanted(figures, frame)

    def embed(
        self,
        data: Any,
        of: str = "features",
        *,
        split: str | None = None,
        output: Any = None,
        batch_size: int = BATCH,
        workers: int = 4,
        skip_corrupt: bool = False,
        progress: _progress.Wish = None,
    ) -> _features.Embedding:
        """Features of all images of a data set, as `attscope embed` computes them.

        data: the path of a data set, or a list of paths of images.
        of: one name, as in `outputs()`.
        split: for the path of a data set with splits; None: "validation".
        output: also write the features to this file, whose name ends in .npz, .npy or .safetensors.
        batch_size, workers, skip_corrupt, progress: as in `evaluate()`.
        """
        return _features.embed(self, data, of, split, output, batch_size, workers, skip_corrupt, progress)

    def probe(
        self,
        train: Any,
        val: Any,
        of: str = "features",
        *,
        c: float | None = None,
        held_out: float = 0.2,
        max_iter: int = 1000,
        seed: int = 42,
        split: str | None = None,
        batch_size: int = BATCH,
        workers: int = 4,
        skip_corrupt: bool = False,
        progress: _progress.Wish = None,
    ) -> _features.Probe:
        """Fits logistic regression to features of a data set and classifies those of another, as `attscope probe` does.

        train, val: paths of data sets with the same classes; or one path with two splits, "train" and `split`.
        of: as in `embed()`.
        c: the inverse of the regularisation, as scikit-learn's C; None: chosen by images of `train` that are held out.
        held_out: their share of each class. seed: chooses them.
        max_iter: most iterations of L-BFGS for each `c`.
        split: of `val`; None: "validation".
        batch_size, workers, skip_corrupt, progress: as in `evaluate()`.
        """
        return _features.probe(
            self, train, val, of, c, held_out, max_iter, seed, split, batch_size, workers, skip_corrupt, progress
        )

    def show(self, images: Any = None, *, texts: Any = None, tokenizer: Any = None, height: int = 800) -> _show.Shown:
        """Shows the pages that explore the network, as `attscope serve` does: attention on images or texts, predictions
        with parts removed, operations with times. A notebook shows them below the cell.

        images: a folder or an archive of images; None: they are added on the page.
        texts: of a network for texts, a file with one text a line; None: they are typed on the page.
        tokenizer: of such a network, as in `embed_texts()`.
        height: of the page in a notebook, in pixels.
        """
        return _show.Shown(self, images, texts, tokenizer, height)

    # --- steps --------------------------------------------------------------------------------------------------------

    def _is_one(self, images: Any) -> bool:
        """Whether the images are one image, and not a list, an array of several, or a folder."""
        return _inputs.is_one(images) and not (_inputs.is_path(images) and os.path.isdir(images))

    def _singles(self, images: Images) -> list[Any]:
        """The single images of _inputs.split(), with the images of folders in place of these."""
        singles = _inputs.split(images)
        if not any(_inputs.is_path(single) and os.path.isdir(single) for single in singles):
            return singles
        with self._use():
            return [name for single in singles for name in self._files(single)]

    def _files(self, single: Any) -> Iterator[Any]:
        """The image files in a folder; other images are left as they are."""
        if not _inputs.is_path(single) or not os.path.isdir(single):
            yield single
            return
        opening, dataset = core.att_dataset_options_defaults(), ctypes.c_void_p()
        room = ctypes.create_string_buffer(8192)
        try:
            self._context.check(
                core.att_dataset_open_images(
                    self._context.pointer, texts("a folder", [single]), 1, byref(opening), byref(dataset)
                )
            )
            for i in range(core.att_dataset_count(dataset)):
                yield os.fsdecode(core.att_dataset_name(dataset, i, room, len(room)))
        finally:
            core.att_dataset_close(byref(dataset))

    def _inner(self, network: ctypes.c_void_p) -> ctypes.c_void_p:
        """A second network with the same weights, whose outputs can be chosen without another plan for predictions."""
        inner = self._handles.inner
        if not inner:
            how = core.att_network_options_defaults()
            how.backend = core.att_network_backend(network)
            how.precision = core.att_network_precision(network)
            model, weights = core.att_network_model(network), core.att_network_weights(network)
            self._context.check(core.att_network_wrap(model, weights, byref(how), byref(inner)))
        if self._identity(network).preprocess.in_chans:
            self._context.check(core.att_network_set_preprocess(inner, byref(self._identity(network).preprocess)))
        return inner

    def _explorer(self, given: Any = None) -> ctypes.c_void_p:
        """The explorer of the network; of a network for texts, that for texts as long as the one in the batch."""
        handles = self._handles
        if given is not None and _texts.are_read(handles.network):
            length = max(given.fields[i].shape.dims[0] for i in range(given.field_count))
            if length != handles.length:
                core.att_relevance_destroy(byref(handles.relevance))
                core.att_explorer_destroy(byref(handles.explorer))
                handles.length = length
            if not handles.explorer:
                outputs = None if core.att_model_classes(core.att_network_model(handles.network)) else b"mean"
                self._context.check(
                    core.att_explorer_create_for(handles.network, byref(given), outputs, byref(handles.explorer))
                )
        if not handles.explorer:
            self._context.check(core.att_explorer_create(handles.network, byref(handles.explorer)))
        return handles.explorer

    def _explorer_of(self, network: ctypes.c_void_p, image: Any) -> ctypes.c_void_p:
        """The explorer that takes this image or text."""
        return self._explorer(self._sample(network, image) if _texts.are_read(network) else None)

    @contextmanager
    def _changed(self, network: ctypes.c_void_p, image: Any, apply: Any) -> Iterator[tuple[ctypes.c_void_p, Any]]:
        """The explorer with the changes that apply(explorer) makes, None: none; and the sample as a batch."""
        given = self._sample(network, image)
        explorer = self._explorer(given)
        try:
            if apply is not None:
                apply(explorer)
            yield explorer, given
        finally:
            core.att_explorer_reset(explorer)

    def _predict_changed(self, image: Any, apply: Any, top: int) -> dict[str, Any]:
        """The prediction for one image or text by the network with changes."""
        with self._use() as network, self._changed(network, image, apply) as (explorer, given):
            batch, name = lib.att_batch(), image if _inputs.is_path(image) else None
            self._context.check(core.att_explorer_run(explorer, byref(given), byref(batch)))
            answer: dict[str, Any] = {}
            if core.att_model_classes(core.att_network_model(network)):
                with self._json_writer() as writer:
                    answer = next(self._answers(network, batch, top, writer, [name]))
            own = {output: rows[0] for output, rows in _outputs(batch).items() if not output.startswith("explore.")}
        return {"image": name, **answer, **own}

    def _branch_names(self, explorer: ctypes.c_void_p) -> list[str]:
        count = core.att_explorer_branch_count(explorer)
        return [core.att_explorer_branch_at(explorer, i).scope.decode() for i in range(count)]

    def _relevance(self, given: Any) -> ctypes.c_void_p:
        handles, explorer = self._handles, self._explorer(given)
        if not handles.relevance:
            self._context.check(core.att_relevance_create(explorer, byref(handles.relevance)))
        return handles.relevance

    def _layer(self, explorer: ctypes.c_void_p, number: int) -> Any:
        return core.att_explorer_layer_at(explorer, number)

    def _layer_number(self, explorer: ctypes.c_void_p, layer: int | str) -> int:
        count = core.att_explorer_layer_count(explorer)
        if not isinstance(layer, str):
            return _index("layer", layer, count)
        names = [self._layer(explorer, i).scope.decode() for i in range(count)]
        if layer not in names:
            raise Error(f'the network has no attention layer "{layer}"; it has {", ".join(names)}', "ERR_NOT_FOUND")
        return names.index(layer)

    def _run(self, network: ctypes.c_void_p, singles: list[Any], size: int) -> Iterator[Any]:
        """Runs the network on the single images of _inputs.split(); each batch is valid until the next."""
        size = 1 if core.att_network_varies(network) else whole("batch_size", size, 1)
        batch = lib.att_batch()
        self._image_name(network)
        transform = core.att_network_transform(network)
        for group in _inputs.batches(singles, size):
            if _inputs.is_path(group[0]):
                paths = texts("an image", group)
                status = core.att_network_run_files(network, paths, len(group), byref(batch))
            elif group[0].dtype == np.uint8:
                decoded, _kept = _decoded(group, transform.channels)
                status = core.att_network_run_images(network, decoded, len(group), byref(batch))
            else:
                _check_shape(group[0], transform)
                planes = (ctypes.c_void_p * len(group))(*[image.ctypes.data for image in group])
                status = core.att_network_run_planes(
                    network, planes, len(group), transform.height, transform.width, byref(batch)
                )
            self._context.check(status)
            yield batch

    def _fields(self, network: ctypes.c_void_p) -> dict[str, Any]:
        """The network's inputs by name."""
        model, found = core.att_network_model(network), {}
        while (field := core.att_model_input_at(model, len(found)).field).name is not None:
            found[field.name.decode()] = field
        return found

    def _image_name(self, network: ctypes.c_void_p) -> str:
        model = core.att_network_model(network)
        for index, name in enumerate(self._fields(network)):
            if core.att_model_input_at(model, index).image:
                return name
        raise Error(f"{self.name} has no input that is an image; run() takes its inputs by name", "ERR_UNSUPPORTED")

    def _batch(self, network: ctypes.c_void_p, arrays: Mapping[str, Any]) -> Any:
        """The arrays as a batch of the library, which keeps them alive."""
        if not isinstance(arrays, Mapping) or not arrays:
            raise Error(f"the inputs are {brief(arrays)}; expected a dictionary of arrays by the names of the inputs")
        fields = self._fields(network)
        for name in arrays:
            if name not in fields:
                raise Error(f"the network has no input {brief(name)}; its inputs are: {', '.join(fields)}")
        made = {name: _as_input(name, array, fields[name]) for name, array in arrays.items()}
        counts = {len(array) for array in made.values()}
        if len(counts) != 1:
            raise Error(f"the inputs have {', '.join(map(str, sorted(counts)))} rows; expected as many of each")
        batch = lib.att_batch(count=counts.pop(), field_count=len(made))
        batch.fields = (lib.att_field * len(made))(
            *[
                lib.att_field(encode("an input", name), _dtype(array), _as_shape(array.shape[1:]))
                for name, array in made.items()
            ]
        )
        batch.data = (ctypes.c_void_p * len(made))(*[array.ctypes.data for array in made.values()])
        batch.kept = made
        return batch

    def _images(self, network: ctypes.c_void_p, singles: list[Any]) -> Any:
        """Single images of _inputs.split() as a batch of the library."""
        name = self._image_name(network)
        return self._batch(network, {name: np.stack([self._pixels(network, image) for image in singles])})

    def _sample(self, network: ctypes.c_void_p, image: Any) -> Any:
        """One image, one text, or one sample by the names of the inputs, as a batch of the library."""
        one = self._as_one(network, image)
        return self._batch(network, one) if isinstance(one, Mapping) else self._images(network, [one])

    def _as_one(self, network: ctypes.c_void_p, image: Any) -> Any:
        """One of _inputs.split(), or one sample by the names of the inputs, as which texts are returned."""
        if isinstance(image, Mapping):
            return image
        if not _texts.are_read(network):
            return _single(image)
        if not isinstance(image, str):
            raise Error(f"the text is {brief(image)}; expected one text, since the network reads texts")
        with _texts.tokens(self, network, image) as ids:
            return _texts.sample(ids, 0, list(self._fields(network)))

    def _pixels(self, network: ctypes.c_void_p, image: Any) -> np.ndarray:
        """One image as the network takes it, [height, width, channels]."""
        transform = core.att_network_transform(network)
        shape = (transform.height, transform.width, transform.channels)
        if not _inputs.is_path(image) and image.dtype != np.uint8:
            _check_shape(image, transform)
            return np.ascontiguousarray(np.moveaxis(image, 0, -1))
        pixels = np.empty(shape, np.float32)
        decoded, _kept, read = (lib.att_image * 1)(), None, False
        if _inputs.is_path(image):
            read = True
            path = encode("an image", image)
            self._context.check(
                core.att_network_read_image(network, path, transform.channels, byref(decoded[0]))
            )
        else:
            decoded, _kept = _decoded([image], transform.channels)
        try:
            self._context.check(
                core.att_transform_image(
                    self._context.pointer, byref(transform), byref(decoded[0]), 0, 0, 0, pixels.ctypes.data
                )
            )
        finally:
            if read:
                core.att_image_free(self._context.pointer, byref(decoded[0]))
        return pixels

    @contextmanager
    def _json_writer(self) -> Iterator[ctypes.c_void_p]:
        writer = ctypes.c_void_p()
        self._context.check(core.att_json_writer_create(self._context.pointer, False, byref(writer)))
        try:
            yield writer
        finally:
            core.att_json_writer_destroy(byref(writer))

    def _finish_json(self, writer: ctypes.c_void_p) -> Any:
        text, length = ctypes.c_char_p(), ctypes.c_size_t()
        self._context.check(core.att_json_writer_finish(writer, byref(text), byref(length)))
        return json.loads(ctypes.string_at(text, length.value))

    def _answers(
        self, network: ctypes.c_void_p, batch: Any, top: int, writer: ctypes.c_void_p, names: Sequence[str | None]
    ) -> Iterator[dict[str, Any]]:
        """The predictions for the images of a batch, which have these paths."""
        shown = lib.att_answer_options(topk=top)
        fields = [batch.fields[i] for i in range(batch.field_count)]
        places = [batch.data[i] for i in range(batch.field_count)]
        single = lib.att_batch(count=1, rows=1, field_count=batch.field_count, fields=batch.fields)
        for row in range(batch.count):
            single.data = (ctypes.c_void_p * len(places))(
                *[place + row * _bytes(field) for place, field in zip(places, fields)]
            )
            shown.image = encode("an image", names[row])
            core.att_json_begin_object(writer)
            self._context.check(core.att_network_write(network, byref(single), byref(shown), writer))
            core.att_json_end_object(writer)
            yield self._finish_json(writer)

    def _measure_files(self, paths: Sequence[Any], options: Any, progress: ProgressCallback | None) -> _figures.Figures:
        found = lib.att_measured()
        options.progress = self._context.progress(progress)
        with self._use() as network:
            if not core.att_network_file(network):
                options.init_seed = self._seed
            data = texts("data", paths)
            status = lib.lab.att_measure_checkpoint(network, data, len(paths), byref(options), byref(found))
            try:
                self._context.check(status)
                figures = _figures.read(found.measure, options.samples)
                figures.images, figures.split = found.evaluation.count, found.split.decode()
                figures.folder = os.fsdecode(found.folder)
            finally:
                lib.lab.att_measured_free(byref(found))
        return figures

    def _measure_arrays(
        self,
        images: Any,
        options: Any,
        labels: Any,
        progress: ProgressCallback | None,
    ) -> _figures.Figures:
        batch_size = options.batch_size
        named = isinstance(images, Mapping)
        singles = images if named else _inputs.split(images)
        count = max(map(len, images.values()), default=0) if named else len(singles)
        if not count:
            raise Error(_NO_IMAGE)
        measure = ctypes.c_void_p()
        with self._use() as network:
            check = self._context.check
            numbers = None if labels is None else _class_numbers(labels, count)
            check(core.att_network_observe(network, options.with_, options.nodes, byref(measure)))
            try:
                check(core.att_measure_keep_samples(measure, options.samples))
                for start in range(0, count, batch_size):
                    rows = slice(start, start + batch_size)
                    if named:
                        given = self._batch(network, {name: array[rows] for name, array in images.items()})
                    else:
                        given = self._images(network, singles[rows])
                    place = None if numbers is None else numbers[start:].ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
                    check(core.att_network_measure(network, measure, byref(given), place))
                    done = Progress(
                        "measure", batch=start // batch_size + 1, batches=-(-count // batch_size),
                        done=min(start + batch_size, count), total=count,
                    )  # fmt: skip
                    if progress is not None and is_stop(progress(done)):
                        raise Error("stopped before every image was measured; there is no result", "ERR_STOPPED")
                figures = _figures.read(measure, options.samples)
            finally:
                core.att_measure_destroy(byref(measure))
        figures.images, figures.split, figures.folder = count, "", ""
        return figures


def _measuring_options(
    instruments: str | Sequence[str] | None, nodes: str | None, split: str | None, output: Any, experiment: Any
) -> Any:
    """The defaults of the library, with the texts that are given."""
    options = lib.lab.att_measuring_options_defaults()
    if instruments is not None:
        options.with_ = encode("instruments", _joined("instruments", instruments))
    if nodes is not None:
        options.nodes = encode("nodes", nodes)
    if split is not None:
        options.split = encode("split", split)
    options.output, options.experiment = encode("output", output), encode("experiment", experiment)
    return options


def _index(what: str, index: int, count: int) -> int:
    """A number from 0; negative numbers count from the end."""
    number = as_whole(index)
    if number is None:
        raise Error(f"{what} is {brief(index)}; expected a whole number{' or a name' if what == 'layer' else ''}")
    if not count:
        raise Error(f"there is no {what} {number}: the network has none", "ERR_NOT_FOUND")
    if not -count <= number < count:
        raise Error(f"there is no {what} {number}; expected 0 to {count - 1}")
    return number % count


def _class_numbers(labels: Any, images: int) -> np.ndarray:
    """The numbers of the images' classes, for the library, which checks that there are such classes."""
    try:
        numbers = np.asarray(labels)
    except ValueError:
        raise Error(f"labels is {brief(labels)}; expected one whole number for each image") from None
    if numbers.shape != (images,):
        raise Error(f"there are {images} images and labels of shape {list(numbers.shape)}")
    if numbers.dtype.kind not in "iu":
        raise Error(f"the labels are {numbers.dtype}; expected whole numbers, the classes of the images")
    fitting = np.ascontiguousarray(numbers, np.int32)
    if not np.array_equal(fitting, numbers):
        raise Error(f"the labels are {numbers.min()} to {numbers.max()}; expected the numbers of classes")
    return fitting


def _joined(what: str, names: str | Sequence[str]) -> str:
    """The names as a list of the library, which are separated by commas."""
    try:
        listed = [names] if isinstance(names, str) else list(names)
    except TypeError:
        listed = []
    if not listed or not all(isinstance(name, str) and name for name in listed):
        raise Error(f"{what} is {brief(names)}; expected a name or a list of names")
    return ",".join(listed)


def _option(option: Any) -> str | int | float | tuple[int | float, ...]:
    """The value of an option: a text, a number or several. Whole numbers are int; the library has doubles only."""
    if option.count == 0:
        text: str = option.text.decode()
        return text
    numbers = tuple(int(value) if value.is_integer() else value for value in option.numbers[: option.count])
    return numbers[0] if option.count == 1 else numbers


def _single(image: Image) -> Any:
    singles = _inputs.split(image)
    if len(singles) != 1:
        raise Error(f"{len(singles)} images are given; expected one")
    return singles[0]


def _check_photograph(image: Any) -> None:
    if not _inputs.is_path(image) and image.dtype != np.uint8:
        raise Error("an image is floats; expected a photograph: a path, a PIL image, or uint8")


def _check_shape(image: np.ndarray, transform: Any) -> None:
    """Floats must have the network's shape."""
    channels, sides = transform.channels, (transform.height, transform.width)
    if image.shape[0] != channels:
        raise Error(
            f"an image has the shape {list(image.shape)}; expected [channels, height, width] with {channels} "
            f"channel{'s' if channels > 1 else ''} for floats"
        )
    if image.shape[1:] != sides:
        raise Error(
            f"an image has the shape {list(image.shape)}, and the network takes {sides[0]} x {sides[1]} pixels; resize "
            f"the image, or open the network with img_size={image.shape[1:]}"
        )


def _decoded(images: list[np.ndarray], channels: int) -> tuple[Any, list[np.ndarray]]:
    """The images as the library takes them, and the arrays that hold their pixels."""
    kept = [_inputs.with_channels(image, channels) for image in images]
    made = (lib.att_image * len(kept))()
    for image, array in zip(made, kept):
        image.height, image.width, image.channels = array.shape
        image.pixels = array.ctypes.data
    return made, kept


def _as_input(name: str, array: Any, field: Any) -> np.ndarray:
    """The array in the type of the input, if it holds the same numbers; the library refuses other shapes."""
    if _inputs.is_tensor(array):
        array = array.detach().cpu()
        array = (array if "int" in str(array.dtype) else array.float()).numpy()
    found = np.asarray(array)
    if found.ndim < 1 or found.ndim > lib.MAX_RANK + 1:
        raise Error(f"the input {name} has the shape {list(found.shape)}; expected one row for each sample")
    kinds = {lib.F32: "f", lib.I32: "iu"}
    if found.dtype.kind not in kinds.get(field.dtype, ""):
        raise Error(f"the input {name} is an array of {found.dtype}; expected {_DTYPES[field.dtype]}")
    fitting = np.ascontiguousarray(found, _DTYPES[field.dtype])
    if field.dtype == lib.I32 and not np.array_equal(fitting, found):
        raise Error(f"the input {name} has numbers from {found.min()} to {found.max()}, too large for int32")
    return fitting


def _dtype(array: np.ndarray) -> int:
    return next(dtype for dtype, name in _DTYPES.items() if name == array.dtype.name)


def _as_shape(dims: Sequence[int]) -> Any:
    return lib.att_shape(len(dims), (ctypes.c_int64 * lib.MAX_RANK)(*dims))


def _shape(field: Any) -> tuple[int, ...]:
    return tuple(field.shape.dims[: field.shape.rank])


def _bytes(field: Any) -> int:
    return 4 * int(np.prod(_shape(field), dtype=np.int64))


def _outputs(batch: Any) -> dict[str, np.ndarray]:
    """Copies of the tensors of a batch, by name: float32, or int32 if they hold integers."""
    found = {}
    for i in range(batch.field_count):
        field = batch.fields[i]
        array = np.empty((batch.count, *_shape(field)), np.int32 if field.dtype == lib.I32 else np.float32)
        ctypes.memmove(array.ctypes.data, batch.data[i], array.nbytes)
        found[field.name.decode()] = array
    return found


def _copied(place: int | None, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    array = np.empty(shape, dtype)
    ctypes.memmove(array.ctypes.data, place, array.nbytes)
    return array


def _drawn(drawing: Any) -> Drawing:
    image, classes = drawing.image, drawing.classes
    return Drawing(
        _copied(image.pixels, (image.height, image.width, 3), np.uint8),
        _copied(classes.classes, (classes.height, classes.width), np.uint16) if classes.classes else None,
        _copied(drawing.colours, (drawing.class_count, 3), np.uint8),
    )


def _by_node(found: dict[str, dict[str, float]]) -> Any:
    """A function of the library that collects the means of figures, by node and statistic."""

    def collect(_user: Any, figures: Any, count: int) -> int:
        for figure in figures[:count]:
            node, statistic = figure.node.decode(errors="replace"), figure.statistic.decode()
            found.setdefault(node, {})[statistic] = figure.mean
        return 0

    return lib.DetailedFn(collect)


def _listed(parts: list[dict[str, np.ndarray]]) -> dict[str, list[np.ndarray]]:
    """The outputs of single images, whose shapes may differ."""
    if not parts:
        raise Error(_NO_IMAGE)
    return {name: [part[name][0] for part in parts] for name in parts[0]}


def _join(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    if not parts:
        raise Error(_NO_IMAGE)
    if len(parts) == 1:
        return parts[0]
    for name, first in parts[0].items():
        for part in parts:
            if part[name].shape[1:] != first.shape[1:]:
                raise Error(
                    f"the output {name} has the shapes {list(first.shape[1:])} and {list(part[name].shape[1:])} for "
                    "photographs of different sizes; ask for one photograph at a time"
                )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
