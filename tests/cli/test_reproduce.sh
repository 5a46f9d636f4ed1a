#!/bin/bash
# attscope reproduce: what it lists, executes, skips and refuses.
. "$(dirname "$0")/lib.sh"

run 0 reproduce
out_has 'hyeon-woo-table2'
out_has 'not run      costs'

# Commands that are left, with their words filled in.
run 0 reproduce stacks --commands --output 'out put'
out_has "  attscope stack --depth 6 --seed 1 --json 'out put/stacks/one-head-1.json' --num-heads 1"
[ "$(wc -l <stdout)" = 30 ] || fail "$command_line: expected six commands with five seeds each"
[ ! -e 'out put' ] || fail "$command_line: a folder was made"
run 0 reproduce huang-table1 --commands --data cifar10=images --output out
out_has "attscope sweep out/modules/recipe.yaml images --vary modules=none,se,eca,fca,srm,step --seeds 1,2,3"

# A run is executed once.
run 0 reproduce hyeon-woo-table2 --output out --json results.json
out_has 'parameters that cb_s adds: 12 x 384 = 4608'
err_has 'attscope models'
grep -q '"name": "hyeon-woo-table2"' results.json || fail "$command_line: the JSON lacks the result"
run 0 reproduce costs --output out
! grep -q 'attscope models' stderr || fail "$command_line: a finished command is repeated"
run 0 reproduce --output out --page page.md
grep -q '^## Not run' page.md || fail "$command_line: the page lacks the results that were not run"

# The record is enough, wherever it lies, until the run has other commands.
mkdir records
mv out/costs.json records
rm -r out
run 0 reproduce costs --output out --records records
err_has 'costs: recorded on 20'
out_has 'hyeon-woo-table2'
[ ! -e out ] || fail "$command_line: a run that is recorded was executed"
sed -i 's/vit_small/vit_tiny/' records/costs.json
run 0 reproduce --records records --page -
out_has '(outdated: the run has other commands or another recipe now)'
out_has '## Disagree'
out_has 'Run: `costs`, outdated.'
run 0 reproduce costs --output out --records records
err_has 'attscope models'
echo '{' >records/costs.json
run 1 reproduce --records records
err_has 'records/costs.json'

usage 'there is no result "huang-tabel1"; did you mean "huang-table1"?' reproduce huang-tabel1
usage 'the run modules needs cifar10: give its place by --data cifar10=PATH' reproduce modules --output out
usage 'the run streets needs deit-tiny: give its place by --data deit-tiny=PATH' \
    reproduce stacks streets --data camvid=x --output out # before the first run
usage '--data cifar=x: expected cifar10=PATH, fashion-mnist=PATH, camvid=PATH, deit-tiny=FILE, minilm=FOLDER, long-texts=FILE or short-texts=FILE' reproduce modules --data cifar=x
run 1 reproduce modules --data cifar10=absent --output out
err_has 'absent'
err_has 'attscope sweep failed; the same command continues here'
