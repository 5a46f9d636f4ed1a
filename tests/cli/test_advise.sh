#!/bin/bash
# attscope advise: its ranking, fine-tunings, table and JSON; repeated calls; wrong uses.
. "$(dirname "$0")/lib.sh"
idx data
tiny_recipe threads:1 epochs:1 workers:1
run 0 train data --config tiny.yaml --depth 3 --output out --experiment vit
printf '%s\n' 'epochs: 1' 'batch_size: 16' 'opt: adamw' 'lr: 3.0e-3' 'warmup_epochs: 0' 'no_aug: true' 'threads: 1' \
    'workers: 1' >quick.yaml

# --- wrong uses, before anything is written
run 2 advise out/vit
err_has 'advise needs CHECKPOINT DATA; see attscope advise --help'
run 2 advise out/vit data --module cb_s@after_mlp:0
err_has 'expected one module without blocks'
run 2 advise out/vit data --module cb+cb_s
err_has 'expected one module without blocks'
run 1 advise out/vit data --module cbs
err_has 'there is no module "cbs"; did you mean "cb"?'
run 2 advise out/vit data --module cb_s@after_branch
err_has 'this network has no place @after_branch for it'
run 2 advise out/vit data --module cb_s --seeds 1
err_has 'expected 2 or more'
run 2 advise out/vit data --module cb_s --candidates 32
err_has '"32" is not a whole number from 1 to 31'
run 1 advise absent data
err_has 'absent'
run 2 advise out/vit data --module cb_s:init=1
err_has 'changes the answers of out/vit before any training'
[ ! -e output ] || fail "a folder was made: $(ls output)"

# --- context broadcasting, ranked by the entropy of attention
run 0 advise out/vit data --module cb_s --recipe quick.yaml --seeds 1,2 --candidates 2 --output a --json advice.json
python3 - <<'END' || fail "advice.json"
import json
advice = json.load(open("advice.json"))
found = advice["candidates"]
assert advice["instrument"] == "entropy" and advice["base"] == "none" and advice["metric"] == "top1", advice
assert sorted(c["block"] for c in found) == [0, 1, 2]
assert [c["predicted"] for c in found] == sorted((c["predicted"] for c in found), reverse=True)
for c in found[:2]:
    assert c["modules"] == "cb_s@after_mlp:%d" % c["block"] and c["node"] == "blocks.%d.attn" % c["block"]
    gain = c["gain"]
    assert gain["n"] == 2 and gain["low"] <= gain["mean"] <= gain["high"]
    assert abs(gain["mean"] - (c["score"] - advice["score"])) < 1e-9
    assert c["verdict"] == ("gain" if gain["low"] > 0 else "loss" if gain["high"] < 0 else "no evidence")
assert found[2]["verdict"] == "not tested" and "gain" not in found[2]
END
run 0 advise out/vit data --module cb_s --recipe quick.yaml --seeds 1,2 --candidates 2 --output a
! grep -q 'epoch 1/1' stderr || fail "$command_line: a finished fine-tuning is repeated"
out_has 'without a further module (none)'
out_has 'not defined for 2 candidates'
out_has 'a/vit-cb_s'

# Fine-tunings that change nothing have no gain: the same scores, and no evidence.
run 0 advise out/vit data --module cb --recipe quick.yaml --seeds 1,2 --candidates 1 --output a --set lr=1e-30
grep -q ' +0.0000 \[0.0000, 0.0000\]  no evidence$' stdout || fail "$command_line: $(cat stdout)"
grep -q 'cb:start=identity@after_mlp:' a/vit-cb/sweep.json || fail "cb does not start as the identity"

# --- gates, ranked by zeta; steps that begin a stage have no candidate
printf '%s\n' 'model: resnet20' 'img_size: 8' 'in_chans: 1' 'num_classes: 4' 'depth: 14' 'width: 4' 'batch_size: 16' \
    'no_aug: true' 'threads: 1' 'workers: 1' 'epochs: 1' 'lr: 0.01' >resnet.yaml
run 0 train data --config resnet.yaml --output out --experiment resnet
run 0 advise out/resnet data --seeds 1,2 --candidates 3 --output a --set threads=1 --set batch_size=16 --set updates=6
out_has 'zeta of the block'
out_has 'rank correlation of nsi with the gain'
grep -q ' 3  layer2.1.add ' stdout || fail "$command_line: $(cat stdout)"
err_has 'block 2, layer2.0, is no candidate: it has no figure, or begins a stage'
grep -q 'se:start=identity@after_branch:' a/resnet-se/sweep.json || fail "se does not start as the identity"
[ -e a/resnet-se/recipe.yaml ] && [ -e a/resnet-se/ranking/measure.jsonl ] || fail "records are missing: $(ls a/resnet-se)"
run 0 report a/resnet-se -o page.html
run 2 advise out/resnet data --module cb_s
err_has 'this network has no place for it'
run 2 advise out/resnet data --module eca --output b
err_has 'changes the answers'
run 0 train data --config resnet.yaml --modules se@after_branch:1 --output out --experiment se
run 1 advise out/se data --seeds 1,2 --output b
err_has 'out/se has the modules se@after_branch:1: a fine-tuning can add a module only to a checkpoint whose modules have no'
finish
