"""Vectors of texts, against runs of the network on their tokens."""

import pathlib
import shutil
import tempfile

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

    def test_what_is_no_text_is_refused(self):
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
