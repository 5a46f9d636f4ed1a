#!/bin/bash
# attscope experiment: tables, JSON, records, options, wrong input.
. "$(dirname "$0")/lib.sh"
too_long_sanitized
needs python3

run 0 experiment sort --epochs 1 --lr 1e-3 --repeats 2 --json sort.json
out_has 'adam, learning rate 0.001, batches of 30, 1 epoch, 34 updates; seed 0'
out_has 'path length   5 paths       20 paths'
out_has 'The default learning rate is 1e-4'
out_has 'public code: 0.98'
out_has 'Mean ± standard deviation over 2 draws of paths through one trained network.'
out_has 'output/experiment/sort'
python3 - sort.json output/experiment/sort/measure.jsonl <<'EOF' || fail 'the JSON or the record does not hold the result'
import json, sys
result = json.load(open(sys.argv[1]))
assert result["experiment"] == "sort" and result["updates"] == 34 and result["tokens"] == 1600
assert [sums["summed"] for sums in result["paths"]] == [5, 20]
assert all(len(sums["by_length"]) == 7 for sums in result["paths"])
assert all(0 <= score["mean"] <= 1 and score["deviation"] >= 0 and score["n"] == 2
           for sums in result["paths"] for score in sums["by_length"])
assert 0 < result["whole"]["mean"] < 1 and result["whole"]["deviation"] is None
assert 0.1 <= result["baseline"]["mean"] < 0.13
assert result["sampled"][0]["heads"] == [None] * 6 and result["deviation_over"] == "draws of paths"
begin, figures, end = map(json.loads, open(sys.argv[2]))
assert begin["task"] == "sort" and begin["lr"] == 0.001 and begin["published_whole"] == 0.98
found = {(f["node"], f["statistic"]): f["mean"] for f in figures["measurements"]}
assert found["sum.20.length.3", "accuracy"] == result["paths"][1]["by_length"][3]["mean"]
assert found["length.0.path.0-0-0-0-0-0", "accuracy"] == result["sampled"][0]["accuracy"]
assert found["", "whole"] == result["whole"]["mean"] and found["", "baseline"] == result["baseline"]["mean"]
assert end["status"] == "OK"
EOF

run 0 experiment circle --epochs 1 --seeds 2 --seed 3 --quirk unshuffled --quirk pairs --json circle.json --output runs \
    --experiment odd
out_has 'quirks of the public code: unshuffled, pairs'
out_has 'Mean ± standard deviation over 2 networks, trained with the seeds 3 to 4.'
out_has 'runs/odd'
cp stdout first
python3 - circle.json runs/odd/measure.jsonl <<'EOF' || fail 'the JSON or the record lacks the trajectories'
import json, math, sys
result = json.load(open(sys.argv[1]))
variants = result["circle"]
assert [variant["variant"] for variant in variants] == ["base", "skip", "mlp"]
assert all(len(variant["first"]) == len(variant["second"]) == 300 for variant in variants)
angle = 0.998 * math.pi
for variant in variants:
    assert abs(variant["first"][0][0] - 0.3) < 1e-6
    assert math.dist(variant["second"][0], [0.3 * math.cos(angle), 0.3 * math.sin(angle)]) < 1e-6
    assert variant["loss"]["n"] == 2 and variant["loss"]["deviation"] > 0
assert result["quirks"] == ["unshuffled", "pairs"] and result["training_samples"] == 499
begin, figures, end = map(json.loads, open(sys.argv[2]))
assert begin["quirks"] == "unshuffled pairs" and begin["networks"] == 2
samples = {(f["node"], f["statistic"]): f.get("samples") for f in figures["measurements"]}
for variant in variants:
    for n, point in enumerate(["first", "second"]):
        for axis in range(2):
            shown = samples[f"{variant['variant']}.{point}", "xy"[axis]]
            assert all(math.isclose(a, b[axis], rel_tol=1e-4) for a, b in zip(shown, variant[point], strict=True))
EOF
run 0 experiment circle --epochs 1 --seeds 2 --seed 3 --quirk unshuffled --quirk pairs --output runs --experiment odd \
    --threads 1
cmp -s first stdout || fail 'the result depends on the number of threads'
run 0 experiment circle --epochs 1 --seed 4 --json -
out_has '"deviation": null'
! grep -q '"mean": null' stdout || fail 'a figure of circle is missing'

# The note on the replaced record names the setting that differs.
run 0 experiment circle --epochs 2 --seed 4 --quirk pairs
err_has 'the earlier measurements are replaced, because their "epochs" differs'
run 0 experiment circle --epochs 2 --seed 4
err_has 'the earlier measurements are replaced, because their "quirks" differs'

# Few texts, so that memorisation is quick.
printf 'The cat sat on the mat.\n\nA dog, too!\n' >texts.txt
run 0 experiment memorize --texts texts.txt --epochs 1 --repeats 1 --mlp
out_has 'Share of the 12 tokens of 2 samples'
out_has 'MLP in every layer'
out_has 'memorises random classes of the tokens of texts'
out_has '2 texts of texts.txt, 11 different tokens'
run 0 experiment memorize --texts texts.txt --tokenizer "$here/../goldens/texts/uncased.json" --epochs 1 --repeats 1 \
    --json pieces.json --output pieces
grep -qE '"tokenizer": ".*uncased.json"' pieces.json || fail 'the JSON does not name the tokenizer'
grep -qE '"tokenizer":".*uncased.json"' pieces/memorize/measure.jsonl || fail 'the record does not name the tokenizer'
cp output/experiment/memorize/measure.jsonl before
printf '\n \n' >empty.txt
run 1 experiment memorize --texts empty.txt --epochs 1
err_is <<<'attscope: "empty.txt" has no text; expected one text per line'
printf 'one\n\xff\xd8\n' >binary.txt
run 1 experiment memorize --texts binary.txt --epochs 1
err_is <<<'attscope: "binary.txt" is no text in UTF-8: byte 0xff at offset 4; expected one text per line'
printf 'one two three\n' >single.txt
run 1 experiment memorize --texts single.txt --epochs 1
err_is <<<'attscope: "single.txt" has one text; expected at least 2, one per line'
cmp -s before output/experiment/memorize/measure.jsonl || fail 'a failed experiment changed an earlier record'
run 1 experiment memorize --texts none.txt
err_has 'none.txt'
printf 'x' >file
run 1 experiment sort --output file
err_has 'file is a file, but must be a folder'

usage 'there is no experiment "srot"; did you mean sort?' experiment srot
usage 'experiment needs NAME, one of sort, hull, memorize, circle; see attscope experiment --help' experiment
usage 'experiment circle draws no paths, so that --repeats has no effect' experiment circle --repeats 5
usage 'experiment sort reads no texts' experiment sort --texts texts.txt
usage 'experiment memorize: a tokenizer divides the texts of a file, and none is given (--texts)' experiment memorize \
    --tokenizer vocab.txt
usage 'experiment circle trains with and without an MLP in any case' experiment circle --mlp
usage 'experiment circle has no quirk "suns"; did you mean sums?' experiment circle --quirk suns
usage 'experiment sort has no quirk "sums"; it has unshuffled, padding, all' experiment sort --quirk sums
usage 'experiment memorize has no quirks' experiment memorize --quirk all
usage '--lr: "-1" is not a number from 1e-12 to 1000' experiment sort --lr=-1
usage '--repeats: "0" is not a whole number from 1 to 1000' experiment sort --repeats 0
run 0 experiment --help
out_has 'memorises random classes'
out_has 'does not train the embedding of digit 0'
finish
