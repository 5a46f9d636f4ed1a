#!/bin/bash
# attscope experiment: tables, JSON, options, wrong input.
. "$(dirname "$0")/lib.sh"

run 0 experiment sort --epochs 1 --lr 1e-3 --repeats 2 --json sort.json
out_has 'adam, learning rate 0.001, batches of 30, 1 epochs, 34 updates, shuffled; seed 0'
out_has 'path length   5 paths       20 paths'
out_has 'public code: 0.98'
cp stdout first
python3 - sort.json <<'EOF' || fail 'sort.json does not hold the result'
import json, sys
result = json.load(open(sys.argv[1]))
assert result["experiment"] == "sort" and result["updates"] == 34 and result["tokens"] == 1600
assert [sums["summed"] for sums in result["paths"]] == [5, 20]
assert all(len(sums["by_length"]) == 7 for sums in result["paths"])
assert all(0 <= score["mean"] <= 1 and score["deviation"] >= 0 for sums in result["paths"] for score in sums["by_length"])
assert 0 < result["whole"] < 1 and 0.1 <= result["baseline"] < 0.13
EOF
run 0 experiment sort --epochs 1 --lr 1e-3 --repeats 2 --threads 1
cmp -s first stdout || fail 'the result depends on the number of threads'
run 0 experiment sort --epochs 1 --lr 1e-3 --repeats 2 --seed 1
cmp -s first stdout && fail 'the result does not depend on the seed'
run 0 experiment sort --epochs 1 --lr 1e-3 --repeats 1 --no-shuffle --mlp --json -
out_has '"deviation": null'

run 0 experiment circle --epochs 1 --json circle.json
out_has 'distance of the points'
python3 - circle.json <<'EOF' || fail 'circle.json does not hold the trajectories'
import json, sys
variants = json.load(open(sys.argv[1]))["circle"]
assert [variant["variant"] for variant in variants] == ["base", "skip", "mlp"]
assert all(len(variant["first"]) == len(variant["second"]) == 300 for variant in variants)
assert all(abs(variant["first"][0][0] - 0.3) < 1e-6 and abs(variant["second"][0][0] + 0.3) < 1e-6 for variant in variants)
EOF

# Few texts, so that memorisation is quick.
printf 'The cat sat on the mat.\n\nA dog, too!\n' >texts.txt
run 0 experiment memorize --texts texts.txt --epochs 1 --repeats 1
out_has 'Share of the 12 tokens of 2 samples'
printf '\n \n' >empty.txt
run 1 experiment memorize --texts empty.txt --epochs 1
err_is <<<'attscope: "empty.txt" has no text; expected one text per line'
run 1 experiment memorize --texts none.txt
err_has 'none.txt'

usage 'there is no experiment "srot"; did you mean sort?' experiment srot
usage 'experiment needs NAME; see attscope experiment --help' experiment
usage 'experiment sort reads no texts' experiment sort --texts texts.txt
usage 'experiment circle trains with and without an MLP in any case' experiment circle --mlp
usage '--lr: "-1" is not a number from 1e-12 to 1000' experiment sort --lr=-1
usage '--repeats: "0" is not a whole number from 1 to 1000' experiment sort --repeats 0
run 0 experiment --help
out_has 'memorises random classes'
finish
