"""Tokens of texts, by `tokenizers`.

texts/lines.json: the texts, an array. texts/NAME.json: a small tokenizer, made by tools/versus_tokenizers. texts/NAME.txt:
the tokens of each text in a line, "id:type:begin:end ..." with bytes, then those of 40 pairs of a text and the next one,
of which pair i has at most 8 + i % 20 tokens.

Texts with characters that a "precompiled_charsmap" removes are left out: `tokenizers` moves the bytes of characters that
follow them.
"""
import importlib.machinery
import importlib.util
import json
import pathlib
import sys

tool = str(pathlib.Path(__file__).resolve().parent.parent / "versus_tokenizers")
loader = importlib.machinery.SourceFileLoader("versus_tokenizers", tool)
versus = importlib.util.module_from_spec(importlib.util.spec_from_loader("versus_tokenizers", loader))
loader.exec_module(versus)

LINES, PAIRS, PIECES = 160, 40, 400


def write(path, content):
    path.write_text(json.dumps(content, separators=(",", ":")).replace('],["', '],\n["') + "\n")


def row(tokens):
    return " ".join(":".join(map(str, token)) for token in tokens)


folder = pathlib.Path(sys.argv[1]) / "texts"
folder.mkdir(exist_ok=True)
lines = [line for line in versus.make_lines(5, 2 * LINES, longest=5)
         if "\u0001" not in line and "\ufeff" not in line and len(line) < 80][:LINES]
lines[7] = ""
(folder / "lines.json").write_text("[" + ",\n".join(json.dumps(line) for line in lines) + "]\n")
for name, tokenizer in versus.tokenizers_of(lines, PIECES).items():
    write(folder / f"{name}.json", json.loads(tokenizer.to_str()))
    tokenizer = versus.tokenizers.Tokenizer.from_file(str(folder / f"{name}.json"))
    rows = [row(versus.expected(tokenizer, line)) for line in lines]
    rows += [row(versus.expected(tokenizer, lines[i], lines[i + 1], 8 + i % 20)) for i in range(PAIRS)]
    (folder / f"{name}.txt").write_text("\n".join(rows) + "\n")
