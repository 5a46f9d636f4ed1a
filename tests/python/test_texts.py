"""Vectors of texts, against runs of the network on their tokens."""

import json
import pathlib
import shutil
import tempfile
import urllib.request
from urllib.parse import urlsplit

import attscope
import numpy as np
from common import Case, main

BERT = pathlib.Path(__file__).parent.parent / "goldens/encoders/bert"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmno"]


class Texts(Case):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("config.json", "model.safetensors"):
            shutil.copy(BERT / name, self.folder)
        (self.folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
        self.network = attscope.open(self.folder)

    def test_a_vector_is_the_mean_over_the_tokens(self):
        vectors = self.network.embed_texts(["a b c", "e"])
        ids = {"tokens": [[2, 5, 6, 7, 3, 0], [2, 9, 3, 0, 0, 0]], "types": [[0] * 6] * 2, "count": [5, 3]}
        answers = self.network.run({name: np.array(rows, np.int32) for name, rows in ids.items()}, ["mean", "tokens"])
        np.testing.assert_allclose(vectors, answers["mean"], atol=1e-6)  # measured: 6.0e-8, as the next two
        np.testing.assert_allclose(vectors[0], answers["tokens"][0, :5].mean(0), atol=1e-6)
        unit = self.network.embed_texts("a b c", normalize=True)
        np.testing.assert_allclose(unit[0], vectors[0] / np.linalg.norm(vectors[0]), atol=1e-6)
        np.testing.assert_array_equal(self.network.embed_texts("a b c d", max_length=4), self.network.embed_texts(["a b"]))
        self.assertEqual(self.network.embed_texts("a", "both").shape, (1, 16))

    def test_the_length_of_sentence_transformers_is_the_default(self):
        (self.folder / "sentence_bert_config.json").write_text('{"max_seq_length": 4}')
        np.testing.assert_array_equal(self.network.embed_texts("a b c d"), self.network.embed_texts("a b"))
        whole = self.network.embed_texts("a b c d", max_length=16)
        (self.folder / "sentence_bert_config.json").unlink()
        np.testing.assert_array_equal(whole, self.network.embed_texts("a b c d"))
        self.assertFalse(np.array_equal(whole, self.network.embed_texts("a b")))

    def test_attention_is_that_of_a_run(self):
        self.assertEqual(self.network.tokens("a b c"), ["[CLS]", "a", "b", "c", "[SEP]"])
        ids = {"tokens": np.array([[2, 5, 6, 7, 3]], np.int32), "types": np.zeros((1, 5), np.int32),
               "count": np.array([5], np.int32)}  # fmt: skip
        expected = self.network.run(ids, "blocks.1.attn.map")["blocks.1.attn.map"][0]
        found = self.network.attention("a b c", 1)
        self.assertEqual(found.shape, (2, 5, 5))
        np.testing.assert_allclose(found, expected, atol=1e-6)  # measured: 4.5e-8
        np.testing.assert_array_equal(found, self.network.attention(ids, 1))
        several = self.network.attention(["e", "a b c"], "blocks.1.attn", head=1)
        self.assertEqual([one.shape for one in several], [(3, 3), (5, 5)])
        np.testing.assert_array_equal(several[1], found[1])
        np.testing.assert_array_equal(self.network.maps("a b c", 1, query=2)[:, 0], found[:, 2])

    def test_a_text_is_explored(self):
        text = self.network.explore("a b c")
        np.testing.assert_allclose(text.predict()["mean"], self.network.embed_texts("a b c")[0], atol=1e-6)  # 1.2e-7
        changed = text.remove(head=(0, 1)).remove(token=2)
        self.assertGreater(np.abs(changed.predict()["mean"] - text.predict()["mean"]).max(), 1e-4)
        self.assertTrue(np.isnan(changed.attention(1)[:, :, 2]).all())
        self.assertFalse(np.isnan(text.attention(1)).any())
        with self.assertRaisesRegex(attscope.Error, "token 5 does not exist: expected 0 to 4"):
            text.remove(token=5)
        with self.assertRaisesRegex(attscope.Error, "expected one text, since the network reads texts"):
            self.network.explore(np.zeros((3, 8, 8)))

    def test_maps_and_relevance_of_a_classifier(self):
        classes = self.folder / "classes"
        shutil.copytree(BERT.parent / "bert_classes", classes)
        shutil.copy(self.folder / "vocab.txt", classes)
        network = attscope.open(classes)
        found = network.relevance("a b c", "chefer", 1)
        self.assertEqual((found.values.shape, found.target), ((1, 5), 1))
        drawn = network.draw_maps(["e", "a b c"], self.folder / "maps", show=["chefer", "attention"], target=1)
        np.testing.assert_array_equal(drawn["text2"]["chefer"], found.values)
        np.testing.assert_allclose(
            drawn["text2"]["attention.blocks.1.attn"], network.maps("a b c", 1, head=-1, query=0), 1e-12
        )
        self.assertTrue((self.folder / "maps/text1.chefer.svg").exists())
        answer = network.explore("a b c").remove(branch="blocks.0.add2").predict()
        self.assertEqual(len(answer["top"]), 3)
        self.assertEqual(answer["logits"].shape, (3,))

    def test_an_ablation_compares_vectors(self):
        lines = ["a b c", "e", "a a d"]
        found = self.network.ablate(lines, heads="blocks.0:1", branches="mlp")
        self.assertEqual((found["texts"], found["vector"], found.losses.shape), (3, "mean", (4, 3)))
        u, v = self.network.explore(lines[2]).remove(head=(0, 1)).predict()["mean"], self.network.embed_texts(lines[2])[0]
        u, v = u.astype(float), v.astype(float)
        column = found.images.index("text3")
        self.assertAlmostEqual(found.losses[1, column], 1 - u @ v / np.sqrt(u @ u * (v @ v)), 6)  # measured: 1.6e-9
        self.assertAlmostEqual(found["parts"][0]["distance"]["mean"], found.losses[1].mean(), 12)
        with self.assertRaisesRegex(attscope.Error, "expected a list of texts"):
            self.network.ablate("texts.txt")

    def test_pages_show_texts(self):
        (self.folder / "texts.txt").write_text("a b c\n")
        with_texts = self.network.show(texts=self.folder / "texts.txt")
        self.addCleanup(with_texts.close)
        address = urlsplit(with_texts.url)
        asked = urllib.request.Request(
            f"http://{address.netloc}/api/images?first=0&count=1",
            headers={"Authorization": f"token {address.query.split('=')[1]}"},
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            self.assertEqual(json.load(answer)["texts"], [{"id": "t0", "name": "a b c"}])

    def test_a_tokenizer_is_given_once(self):
        (self.folder / "vocab.txt").rename(self.folder / "elsewhere.txt")
        with attscope.open(self.folder, tokenizer=self.folder / "elsewhere.txt") as network:
            self.assertEqual(network.tokens("a b"), ["[CLS]", "a", "b", "[SEP]"])
            np.testing.assert_array_equal(network.attention("e", 1).shape, (2, 3, 3))
            with self.assertRaisesRegex(attscope.Error, "nothing.txt"):
                network.tokens("a", tokenizer=self.folder / "nothing.txt")
        with self.assertRaisesRegex(attscope.Error, "the tokenizer is 3; expected the path"):
            attscope.open(self.folder, tokenizer=3)

    def test_a_live_model_keeps_the_tokenizer_that_is_given_with_it(self):
        class Saved:
            def __init__(self, names):
                self.names, self.state_dict = names, dict

            def save_pretrained(_, folder):
                for name in _.names:
                    shutil.copy(self.folder / name, folder)

        model, tokenizer = Saved(["config.json", "model.safetensors"]), Saved(["vocab.txt"])
        network = attscope.from_torch(model, processor=tokenizer)
        np.testing.assert_array_equal(network.embed_texts("a b"), self.network.embed_texts("a b"))
        folder = pathlib.Path(network.path)
        del network
        self.assertFalse(folder.exists())

    def test_what_is_no_text_is_refused(self):
        for path in (self.folder / "vocab.txt", str(self.folder / "vocab.txt")):
            with self.assertRaisesRegex(attscope.Error, "is a file, and texts are expected"):
                self.network.embed_texts(path)
        for wrong, message in ((3, "expected one text"), ([], "expected one text"), (["a", 3], "expected one text")):
            with self.assertRaisesRegex(attscope.Error, message):
                self.network.embed_texts(wrong)
        with self.assertRaisesRegex(attscope.Error, "takes 1 to 16"):
            self.network.embed_texts("a", max_length=17)
        with self.assertRaisesRegex(attscope.Error, "cannot be written as UTF-8"):
            self.network.embed_texts(["a", "\ud800"])
        with self.assertRaisesRegex(attscope.Error, "bert_tiny was made without files, and so without a tokenizer"):
            attscope.open("bert_tiny", seed=1).embed_texts("a")
        (self.folder / "vocab.txt").unlink()
        with self.assertRaises(attscope.Error):
            self.network.embed_texts("a")
        with self.assertRaisesRegex(attscope.Error, "takes no tokens of texts"):
            attscope.open("vit_tiny_patch16_224", depth=1, seed=1).embed_texts("a", tokenizer=self.folder)


if __name__ == "__main__":
    main()
