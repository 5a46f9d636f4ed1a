#!/bin/bash
# Instruments that run plans of their own: options, JSON, what they refuse; and tools/stiff-blocks.
. "$(dirname "$0")/lib.sh"
too_long_sanitized
needs python3
project=$(cd "$(dirname "$0")/../.." && pwd)
idx data
tiny_recipe threads:2 epochs:1
run 0 train data --config tiny.yaml --output out --experiment plain
run 0 measure out/plain/last.safetensors data \
    --with stiffness_index:count=2,skip_block,block_pruning:first=10,by=zeta --json found.json
err_has 'stiffness_index: up to 2 images, 5 maps; one product with the Jacobian of each map takes'
err_has 'block_pruning: lowest score first: blocks.'
python3 - found.json <<'END' || fail 'the figures are wrong'
import json, sys
figures = {(m["instrument"], m["node"], m["statistic"]): m for m in json.load(open(sys.argv[1]))["measurements"]}
for node in ["blocks.0.add1", "blocks.0.add2", "blocks.1.add1", "blocks.1.add2", "stage.1"]:
    index = figures["stiffness_index", node, "index"]
    assert index["n"] == 2 and index["mean"] > 0, index
    assert figures["stiffness_index", node, "converged"]["mean"] == 1
assert figures["skip_block", "", "spearman"]["n"] == 3
assert figures["block_pruning", "skipped.0", "top1"]["n"] == 32
assert figures["block_pruning", "blocks.1.add1", "score"]["n"] == 10
END
[ "$(grep -c '^  statistic  ' stdout)" -ge 1 ] || fail "no heading above figures of the whole network: $(cat stdout)"
! sed -n '/^  zeta /,/^$/p' stdout | grep -q '^  \(top1\|spearman\|kendall\) ' || fail "in the table of zeta: $(cat stdout)"
# Of two blocks, one begins the stage, so that there is no correlation.
run 0 measure out/plain/last.safetensors data --with skip_block:per=block
grep -Eq '^  spearman +not defined in 1 of 1 block$' stdout || fail "a correlation of one block: $(grep spearman stdout)"
grep -Eq '^  kendall low +not defined in 1 of 1 block$' stdout || fail "an interval of one block: $(grep kendall stdout)"
# The cost of the network is that without probes and instruments, whatever else is measured; and the network and four
# variants without one branch cost more than the network.
network_cost() { grep -oE 'times as much as the network \([0-9.e-]+ GFLOP\)' stderr | sort -u; }
run 0 measure out/plain/last.safetensors data --with skip_block
network_cost >alone
[ "$(wc -l <alone)" = 1 ] || fail "no cost of the network: $(cat stderr)"
sed -n 's/.*skip_block: 5 variants .* GFLOP for each image, \([0-9.]*\) times .*/\1/p' stderr |
    awk '{ found = $1 > 1 && $1 < 5 } END { exit !found }' ||
    fail "five variants of the network cost no more than one: $(grep GFLOP stderr)"
run 0 measure out/plain/last.safetensors data --with skip_block,score_gradient,density,entropy,nsi,entropy_step
[ "$(grep -c 'times as much as the network' stderr)" = 3 ] || fail "not three lines of costs: $(grep GFLOP stderr)"
network_cost | cmp - alone || fail "costs of the network: $(cat alone), $(grep GFLOP stderr)"
run 0 measure out/plain/last.safetensors data --with stiffness_index:count=1
! grep -q 'instruments compute' stderr || fail "a cost of nothing: $(grep GFLOP stderr)"
usage 'instrument stiffness_index: count must be in 1..4096, not 0' \
    measure out/plain/last.safetensors data --with stiffness_index:count=0
run 0 measure out/plain/last.safetensors data --with stiffness_index:count=1,tolerance=1e-9 --f64
out_has 'SI'

# the outputs of a network in double precision leave its images as they are
run 0 measure out/plain/last.safetensors data --with accuracy,stiffness_index:count=1,skip_block --f64 --json wide.json
python3 - wide.json <<'END' || fail 'instruments see other images in double precision'
import json, sys
figures = {(m["instrument"], m["node"], m["statistic"]): m for m in json.load(open(sys.argv[1]))["measurements"]}
assert figures["skip_block", "", "top1"]["mean"] == figures["accuracy", "", "top1"]["mean"]
END
run 0 measure out/plain/last.safetensors data --with stiffness_index:count=1 --json narrow.json
python3 - wide.json narrow.json <<'END' || fail 'single and double precision differ'
import json, sys
wide, narrow = ({m["node"]: m["mean"] for m in json.load(open(name))["measurements"]
                 if m["instrument"] == "stiffness_index" and m["statistic"] == "nsi"} for name in sys.argv[1:])
assert len(wide) == 5 and all(abs(wide[node] - narrow[node]) < 1e-4 for node in wide), (wide, narrow)
END

python3 "$project/tools/stiff-blocks" tiny.yaml data --module cb@after_mlp --blocks 1 --random 1 --seeds 1,2 \
    --output out/lottery --attscope "$ATTSCOPE" >table 2>messages || fail 'stiff-blocks failed'
for row in '| no block |' '| 1 stiffest | 1 |' '| 1 random, draw 1 | 1 |' '| all blocks | all |'; do
    grep -qF "$row" table || { fail "stiff-blocks: no '$row'"; cat table messages; }
done
python3 "$project/tools/stiff-blocks" tiny.yaml data --module cb@after_mlp --blocks 2 --seeds 1 --output out/lottery \
    --attscope "$ATTSCOPE" >table 2>messages && fail 'stiff-blocks accepts more blocks than there are'
grep -qF 'expected numbers from 1 to 1' messages || fail 'stiff-blocks does not say which numbers it takes'
finish
