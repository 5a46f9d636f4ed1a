"""attscope: trains vision networks with attention, and measures and shows what attention does in them.

    import attscope

    network = attscope.open("deit_tiny_patch16_224.safetensors")
    network.predict("cat.jpg")[0]["top"][0]
    network.measure("imagenet/val", instruments=["entropy", "nsi"])

The package calls the C library attscope; numpy is the only other package that it needs. Messages of the library go to
the logger "attscope", failures are raised as `attscope.Error`.
"""

from ._ablation import Ablation, Exploration
from ._context import Error, Progress
from ._features import Embedding, Probe
from ._figures import Figures
from ._inputs import Image, Images
from ._library import version as __version__
from ._network import Curve, Drawing, Network, Predictions, Relevance
from ._open import from_torch, models, open  # noqa: A004
from ._report import Report, report
from ._show import Shown
from ._training import Training, train

__all__ = [
    "Ablation",
    "Curve",
    "Drawing",
    "Embedding",
    "Error",
    "Exploration",
    "Figures",
    "Image",
    "Images",
    "Network",
    "Predictions",
    "Probe",
    "Progress",
    "Relevance",
    "Report",
    "Shown",
    "Training",
    "__version__",
    "from_torch",
    "models",
    "open",
    "report",
    "train",
]
