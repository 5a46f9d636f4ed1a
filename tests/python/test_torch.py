"""Objects of PyTorch, timm, PIL and pandas, and two OpenMP runtimes in one process.

ATT_PYTHON names an interpreter that has these packages; without it the tests are skipped.
"""

import importlib.util
import os
import subprocess
import sys
import unittest

import attscope
import numpy as np
from common import TINY, Case, main, pictures, tiny, write_png

WEIGHTS = os.environ.get("ATT_SHARED", "") + "/data/weights/deit_tiny_patch16_224.safetensors"


def needs(*packages):
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    return unittest.skipIf(missing, f"this python3 lacks {', '.join(missing)}")


# Prints a digest of the logits. Both libraries work before and after the other is imported.
ORDER = """
import hashlib, sys
import numpy as np

def use_torch():
    import torch
    torch.set_num_threads(2)
    torch.nn.functional.conv2d(torch.ones(8, 16, 64, 64), torch.ones(32, 16, 3, 3)).sum().item()
    return torch.ones(512, 512).mm(torch.ones(512, 512)).sum().item()

def use_attscope():
    import attscope
    images = np.random.default_rng(1).integers(0, 255, (8, 64, 64, 3), dtype=np.uint8)
    for name in ("vit_tiny_patch16_224", "resnet20"):
        with attscope.open(name, seed=1, img_size=64, threads=2) as network:
            yield hashlib.sha256(network.predict(images).logits.tobytes()).hexdigest()
            yield hashlib.sha256(network.measure(images, "nsi", frame=False)["mean"].tobytes()).hexdigest()

for name in sys.argv[1:]:
    if name == "torch":
        assert use_torch() == 512.0 ** 3
    else:
        print(*use_attscope(), flush=True)
"""


class Torch(Case):
    @needs("torch")
    def test_the_order_of_imports_changes_no_bit(self):
        printed = set()
        for order in (["attscope"], ["torch", "attscope", "torch"], ["attscope", "torch", "attscope"]):
            run = subprocess.run([sys.executable, "-c", ORDER, *order], check=True, capture_output=True, text=True)
            printed.update(run.stdout.splitlines())
        self.assertEqual(len(printed), 1, printed)
        self.assertEqual(len(printed.pop().split()), 4)

    @needs("torch")
    def test_tensors(self):
        import torch

        images = pictures(3)
        channels_first = torch.from_numpy(images).permute(0, 3, 1, 2)
        with tiny() as network:
            wanted = network.predict(images).logits
            np.testing.assert_array_equal(network.predict(channels_first).logits, wanted)
            np.testing.assert_array_equal(network.predict(list(channels_first)).logits, wanted)
            floats = torch.randn(2, 3, 16, 16, requires_grad=True)
            np.testing.assert_array_equal(
                network.predict(floats).logits, network.predict(floats.detach().numpy()).logits
            )
            network.predict(floats.bfloat16())

    @needs("torch", "timm")
    def test_a_live_model_of_timm(self):
        import timm
        import torch

        images = torch.randn(4, 3, 32, 32)
        for name, options in [
            ("vit_tiny_patch16_224.augreg_in21k_ft_in1k", {"img_size": 32, "num_classes": 7, "num_heads": 6}),
            ("resnet18.a1_in1k", {"num_classes": 5}),
        ]:
            torch.manual_seed(1)
            model = timm.create_model(name, pretrained=False, **options).eval()
            with torch.no_grad(), attscope.from_torch(model, img_size=32) as network:
                self.assertEqual(network.name, name.split(".")[0])
                wanted = model(images).numpy()
                np.testing.assert_allclose(network.predict(images).logits, wanted, atol=1e-4)  # measured: 1e-6
                np.testing.assert_allclose(
                    network.features(images), model.forward_head(model.forward_features(images), pre_logits=True),
                    atol=1e-4,
                )  # fmt: skip
                half = attscope.from_torch(torch.nn.DataParallel(model.bfloat16()), name, img_size=32)
                np.testing.assert_allclose(half.predict(images).logits, wanted, atol=0.2)  # weights of 8 bits
                half.close()

    @needs("torch", "transformers")
    def test_live_models_of_transformers(self):
        import torch
        import transformers

        sizes = {"image_size": 32, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
        images = torch.randn(4, 3, 32, 32)
        for config in [
            transformers.ViTConfig(**sizes, patch_size=8, intermediate_size=32, num_labels=5),
            transformers.Dinov2Config(**sizes, patch_size=8, num_labels=5),
            transformers.SwinConfig(image_size=32, patch_size=2, embed_dim=8, depths=[1, 1], num_heads=[1, 2],
                                    window_size=4, num_labels=5),
        ]:  # fmt: skip
            torch.manual_seed(1)
            model = transformers.AutoModelForImageClassification.from_config(config).eval()
            processor = transformers.ViTImageProcessor(size={"height": 32, "width": 32}, image_mean=[0.25] * 3)
            with torch.no_grad(), attscope.from_torch(model, processor=processor) as network:
                wanted = model(images).logits.numpy()
                scale = np.abs(wanted).max()
                np.testing.assert_allclose(network.predict(images).logits / scale, wanted / scale, atol=1e-5)
                prepared = processor(pictures(2, size=32), return_tensors="pt").pixel_values
                wanted = model(prepared).logits.numpy()
                np.testing.assert_allclose(network.predict(pictures(2, size=32)).logits / scale, wanted / scale, atol=1e-5)

    @needs("torch", "timm")
    @unittest.skipUnless(os.path.exists(WEIGHTS), "ATT_SHARED has no weights of DeiT-Tiny")
    def test_a_live_model_has_the_figures_of_its_file(self):
        import timm
        from safetensors.torch import load_file

        model = timm.create_model("deit_tiny_patch16_224", pretrained=False)
        model.load_state_dict(load_file(WEIGHTS))
        images = pictures(4, size=224)
        with attscope.open(WEIGHTS) as file, attscope.from_torch(model, "deit_tiny_patch16_224") as live:
            self.assertEqual(live.class_names, file.class_names)
            for name in ("logits", "features"):
                np.testing.assert_array_equal(live.outputs(images, [name])[name], file.outputs(images, [name])[name])
            wanted = file.measure(images, "entropy,nsi", frame=False)
            np.testing.assert_array_equal(live.measure(images, "entropy,nsi", frame=False)["mean"], wanted["mean"])

    @needs("PIL")
    def test_pil(self):
        from PIL import Image

        image = pictures(1, size=40)[0]
        write_png("image.png", image)
        with tiny() as network, Image.open("image.png") as opened:
            wanted = network.predict("image.png").logits
            np.testing.assert_array_equal(network.predict(opened).logits, wanted)
            np.testing.assert_array_equal(network.predict([opened.convert("RGBA")]).logits, wanted)
        with tiny(in_chans=1) as network:
            np.testing.assert_array_equal(
                network.predict(Image.open("image.png").convert("L")).logits.shape, (1, TINY["num_classes"])
            )

    @needs("pandas")
    def test_pandas(self):
        import pandas

        with tiny() as network:
            frame = network.measure(pictures(4), "entropy")
            self.assertIsInstance(frame, pandas.DataFrame)
            columns = network.measure(pictures(4), "entropy", frame=False)
            self.assertEqual(list(frame.columns), list(columns))
            np.testing.assert_array_equal(frame["mean"], columns["mean"])


if __name__ == "__main__":
    main()
