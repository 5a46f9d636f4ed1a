"""Tiny encoders of texts as the transformers library writes them, and their answers in f64.

encoders/NAME/ has config.json and model.safetensors, whose bfloat16 weights follow from a formula, and expected.txt. Its
lines are one word each, followed by numbers: "tokens", "types" and "count" of a text, which is padded if it is longer
than `count`, then what the network answers: "features" (logits with a classifier, else the first token after the
pooler, if there is one), "class", "mean", and "states", the tokens of the last block without padding; of "bert" also
rank residuals with skips and MLPs switched off: "attention", "skip", "mlp", "both"; of "bert_classes" also "chefer", the
relevance of the tokens for the class with the largest logit, less the 1 of the first token.

tests/networks/models/test_bert.c has a row for each NAME.
"""
import pathlib
import sys

import torch
import transformers as hf
from formula import uniform

WIDTH, WORDS = 8, 20
SIZES = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 2 * WIDTH,
         "vocab_size": WORDS, "max_position_embeddings": 16}
DISTIL = {"dim": WIDTH, "n_layers": 2, "n_heads": 2, "hidden_dim": 2 * WIDTH, "vocab_size": WORDS,
          "max_position_embeddings": 16}
ALBERT = SIZES | {"embedding_size": 4, "num_hidden_layers": 4}
LONG = 150  # tokens of a text with distances in all ranges of MPNet's relative positions
NETWORKS = {
    "bert": lambda: hf.BertModel(hf.BertConfig(**SIZES)),
    "bert_classes": lambda: hf.BertForSequenceClassification(hf.BertConfig(**SIZES, num_labels=3, hidden_act="relu")),
    "bert_masked": lambda: hf.BertForMaskedLM(hf.BertConfig(**SIZES, type_vocab_size=3, layer_norm_eps=0.01)),
    "bert_tokens": lambda: hf.BertForTokenClassification(hf.BertConfig(**SIZES, num_labels=3)),
    "distilbert": lambda: hf.DistilBertModel(hf.DistilBertConfig(**DISTIL)),
    "distilbert_classes": lambda: hf.DistilBertForSequenceClassification(hf.DistilBertConfig(**DISTIL, num_labels=3)),
    "albert": lambda: hf.AlbertModel(hf.AlbertConfig(**ALBERT)),
    "albert_groups": lambda: hf.AlbertForSequenceClassification(
        hf.AlbertConfig(**ALBERT | {"num_hidden_groups": 2}, num_labels=3)),
    "mpnet": lambda: hf.MPNetModel(hf.MPNetConfig(**SIZES | {"max_position_embeddings": LONG + 2})),
    "mpnet_classes": lambda: hf.MPNetForSequenceClassification(
        hf.MPNetConfig(**SIZES, num_labels=3, layer_norm_eps=1e-5)),
}


def fill(model):
    """Weights of norms are around 1, all other parameters around 0; all are bfloat16 numbers."""
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            start = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
            wide = 0.4 if tensor.dim() > 1 else 0.2
            values = torch.from_numpy(start + wide * uniform(name, tensor.numel()))
            tensor.copy_(values.reshape(tensor.shape).bfloat16())


def texts(name):
    """Pairs of length and number of tokens."""
    return [(5, 5), (8, 3), (1, 1)] + ([(LONG, LONG)] if name == "mpnet" else [(14, 14)])


SWITCHES = {"attention": (False, False), "skip": (True, False), "mlp": (False, True), "both": (True, True)}


def residual(x):
    """In the Frobenius norm, of tokens [1, N, C]."""
    return ((x - x.mean(1, keepdim=True)).norm() / x.norm()).item()


def residuals(model, x, skip, mlp):
    """Of BERT's tokens before the first block and after each norm, with its skips and MLPs or without."""
    found = [residual(x)]
    for layer in model.encoder.layer:
        parts = [(layer.attention.output, lambda x, layer=layer: layer.attention.self(x, None)[0])]
        parts += [(layer.output, layer.intermediate)] if mlp else []
        for output, branch in parts:
            x = output.LayerNorm(output.dense(branch(x)) + (x if skip else 0))
            found.append(residual(x))
    return found


def chefer(model, inputs):
    """e (I + B_L) ... (I + B_1) - e, B = mean over heads of (a dy/da)_+, e of the first token (Chefer et al., 2021)."""
    model.set_attn_implementation("eager")
    with torch.enable_grad():
        whole = model(**inputs, output_attentions=True)
        gradients = torch.autograd.grad(whole.logits[0].max(), whole.attentions)
    row = first = torch.eye(inputs["input_ids"].shape[1]).double()[0]
    for a, gradient in reversed(list(zip(whole.attentions, gradients))):
        row = row + row @ (a * gradient)[0].clamp(min=0).mean(0)
    return row - first


def number(values):
    return " ".join(f"{v:.8g}" for v in values)


def answer(model, name, length, count):
    """The lines of a text. Ids begin at 2: 0 and 1 pad texts, which MPNet numbers by their ids."""
    ids = [2 + (7 * i + length) % (WORDS - 2) for i in range(length)]
    kinds = [(i // 2) % 2 for i in range(length)]
    tokens = torch.tensor([[t if i < count else 1 for i, t in enumerate(ids)]])
    inputs = {"input_ids": tokens, "attention_mask": torch.tensor([[int(i < count) for i in range(length)]])}
    if "token_type" in str(model.state_dict().keys()):
        inputs["token_type_ids"] = torch.tensor([kinds])
    base = getattr(model, model.base_model_prefix, model)
    out = base(**inputs)
    states = out.last_hidden_state[0, :count]
    whole = model(**inputs)
    pooled = getattr(whole, "pooler_output", None)
    classifies = "SequenceClassification" in type(model).__name__
    features = whole.logits[0] if classifies else states[0] if pooled is None else pooled[0]
    rows = {"tokens": tokens[0].tolist(), "types": kinds, "count": [count], "features": features.tolist(),
            "class": states[0].tolist(), "mean": states.mean(0).tolist()}
    if length < LONG:
        rows["states"] = states.flatten().tolist()
    if name == "bert" and count == length:
        x = model.embeddings(input_ids=tokens, token_type_ids=inputs["token_type_ids"])
        rows |= {part: residuals(model, x, *switches) for part, switches in SWITCHES.items()}
    if name == "bert_classes" and count == length:
        rows["chefer"] = chefer(model, inputs).tolist()
    return "".join(f"{word} {number(values)}\n" for word, values in rows.items())


hf.logging.set_verbosity_error()
hf.logging.disable_progress_bar()
for name, make in NETWORKS.items():
    folder = pathlib.Path(sys.argv[1]) / "encoders" / name
    folder.mkdir(parents=True, exist_ok=True)
    model = make().double().eval()
    fill(model)
    with torch.no_grad():
        lines = [answer(model, name, length, count) for length, count in texts(name)]
    (folder / "expected.txt").write_text("".join(lines))
    model.bfloat16().save_pretrained(folder)
