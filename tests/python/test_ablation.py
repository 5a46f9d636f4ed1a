"""Ablations of data sets, and images in changed networks."""

import json
import os
import subprocess

import attscope
import numpy as np
from common import TINY, Case, environment, main, pictures, tiny, write_data

COMMAND = os.environ.get("ATTSCOPE")


class Ablations(Case):
    def test_an_ablation_equals_explorations_of_each_image(self):
        write_data("data", train=4, validation=8)
        with tiny() as network:
            found = network.ablate("data", heads="all", branches=["mlp", "blocks.0.add1+blocks.1.add1"])
            names = [part["name"] for part in found["parts"]]
            self.assertEqual(names[:4], [f"blocks.{layer}.attn:{head}" for layer in (0, 1) for head in (0, 1)])
            self.assertEqual(names[4:], ["blocks.0.add2", "blocks.1.add2", "blocks.0.add1+blocks.1.add1"])
            self.assertEqual(found.losses.shape, (8, 8))
            for i, name in enumerate(found.images):
                plain = network.explore(os.path.join("data", name))
                changed = [plain] + [plain.remove(head=(layer, head)) for layer in (0, 1) for head in (0, 1)]
                changed += [plain.remove(branch=1), plain.remove(branch="blocks.1.add2")]
                changed += [plain.remove(branch="blocks.0.add1").remove(branch="blocks.1.add1")]
                for row, exploration in enumerate(changed):
                    logits = exploration.predict()["logits"].astype(np.float64)
                    loss = np.log(np.exp(logits).sum()) - logits[found.classes[i]]
                    self.assertLess(abs(loss - found.losses[row, i]), 1e-5)  # measured: 2e-7
                    self.assertEqual(logits.argmax() == found.classes[i], found.right[row, i])
            for number, part in enumerate(found["parts"]):
                change = found.losses[1 + number] - found.losses[0]
                self.assertAlmostEqual(part["loss"]["mean"], change.mean(), 12)
                probability = np.exp(-found.losses[1 + number]) - np.exp(-found.losses[0])
                self.assertAlmostEqual(part["p_class"]["mean"], probability.mean(), 12)
                right = 100.0 * (found.right[1 + number].mean() - found.right[0].mean())
                self.assertAlmostEqual(part["accuracy"]["mean"], right, 12)
                order = found.most_changed(number, 3)
                self.assertEqual(order[0], found.images[np.abs(change).argmax()])
            means = [part["loss"]["mean"] for part in found.ranked]
            self.assertEqual(means, sorted(means, reverse=True))

    def test_the_command_and_npz_have_the_same_numbers(self):
        if not COMMAND:
            self.skipTest("ATTSCOPE does not name the command")
        write_data("data", train=4, validation=8)
        run = attscope.train("data", model="vit_tiny_patch16_224", epochs=1, batch_size=4, experiment="run", **TINY)
        with attscope.open(run.folder) as network:
            found = network.ablate("data", heads=["all", "blocks.0:0,1"], uniform=True, npz="python.npz", batch_size=3)
        subprocess.run(
            [COMMAND, "ablate", run.folder, "data", "--heads", "all;blocks.0:0,1", "--uniform", "--npz", "command.npz",
             "--json", "command.json", "-b", "3"], check=True, capture_output=True, env=environment())  # fmt: skip
        with open("command.json", encoding="utf-8") as file:
            command = json.load(file)
        for key, value in found.items():
            self.assertEqual(command[key], value, key)
        with np.load("python.npz") as ours, np.load("command.npz") as theirs:
            self.assertEqual(set(ours), set(theirs))
            for name in ours:
                np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
            np.testing.assert_array_equal(ours["loss"], found.losses)
            np.testing.assert_array_equal(ours["right"], found.right)
            np.testing.assert_allclose(ours["p_class"], np.exp(-found.losses), rtol=1e-14)
            self.assertEqual(list(ours["image.name"]), found.images)
            self.assertEqual(list(ours["part.name"]), [part["name"] for part in found["parts"]])
            for name, key in (("accuracy", "accuracy"), ("loss", "loss"), ("p_class", "p_class")):
                for end, member in (("", "mean"), (".low", "low"), (".high", "high")):
                    wanted = [part[key][member] for part in found["parts"]]
                    np.testing.assert_array_equal(ours[f"change.{name}{end}"], wanted)

    def test_greedy_steps(self):
        write_data("data", train=4, validation=8)
        with tiny() as network:
            found = network.ablate("data", heads="all", greedy=True)
            self.assertEqual(len(found["parts"]), 4)
            self.assertEqual(network.ablate("data", heads="all", greedy=True, bound=100)["parts"], [])

    def test_explorations_leave_the_network_as_it_was(self):
        image = pictures(1)[0]
        with tiny() as network:
            plain, maps = network.predict(image), network.attention(image, 1)
            removed = network.explore(image).remove(token=3)
            self.assertTrue(np.isnan(removed.attention(0, 1)[:, 3]).all())
            uniform = network.explore(image).uniform(head=("blocks.1.attn", 0)).attention(-1, 0, 2)
            np.testing.assert_array_equal(uniform, np.full_like(uniform, np.float32(1 / len(uniform))))
            np.testing.assert_array_equal(network.attention(image, 1), maps)
            same = network.explore(image).predict(topk=2)
            np.testing.assert_allclose(same["logits"], plain.logits[0], atol=1e-5)
            self.assertEqual([top["class"] for top in same["top"]], [top["class"] for top in plain[0]["top"]][:2])
            self.assertEqual(len(network.branches), 4)

    def test_what_does_not_exist_is_refused(self):
        write_data("data", train=4, validation=4)
        image = pictures(1)[0]
        with tiny() as network:
            for arguments, part in [
                ({"heads": "blocks.1.atn"}, "did you mean blocks.1.attn?"),
                ({"heads": "blocks.1:2"}, "numbers and ranges from 0 to 1"),
                ({"tokens": "registers"}, "has no register tokens"),
                ({"bound": 101}, "expected 0 to 100"),
                ({"bound": "x"}, "expected a number, in per cent"),
                ({"heads": 3}, "heads"),
                ({"progress": 3}, "expected a function"),
            ]:
                with self.assertRaises(attscope.Error) as caught:
                    network.ablate("data", **arguments)
                self.assertIn(part, str(caught.exception))
            with self.assertRaisesRegex(attscope.Error, "expected the path of a data set"):
                network.ablate(image)
            exploration = network.explore(image)
            for arguments, part in [
                ({"head": (2, 0)}, "there is no layer 2"),
                ({"head": (0, 2)}, "head 2 does not exist: expected 0 to 1"),
                ({"head": 3}, "expected a pair"),
                ({"branch": "blocks.0.add9"}, "it has blocks.0.add1, blocks.0.add2"),
                ({"branch": 4}, "residual branch 4 does not exist"),
                ({"token": 17}, "token 17 does not exist"),
                ({}, "0 parts are given; expected one"),
                ({"token": 1, "branch": 1}, "2 parts are given"),
            ]:
                with self.assertRaises(attscope.Error) as caught:
                    exploration.remove(**arguments)
                self.assertIn(part, str(caught.exception))
            with self.assertRaises(attscope.Error) as caught:
                network.ablate("data", progress=lambda _progress: False)
            self.assertEqual(caught.exception.status, "ERR_STOPPED")


if __name__ == "__main__":
    main()
