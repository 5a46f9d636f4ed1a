#!/bin/bash
# attscope report: what is written, where, and what is refused. tests/web reads the page itself.
. "$(dirname "$0")/lib.sh"
idx data

# shellcheck disable=SC2086
for name in plain broadcast; do
    run 0 train data $network $recipe --epochs 2 --output out --experiment $name --log-interval 2
done
run 0 report out/plain out/broadcast/
sed -E 's/[0-9.]+ MB/X MB/' stdout >shape && mv shape stdout
out_is <<'TEXT'
report.html: 2 runs, X MB
TEXT
printf '' | err_is
grep -qF '"name":"broadcast"' report.html || fail "$command_line: the report lacks a run"
! grep -qE '(src|href)="?(https?:)?//' report.html || fail "$command_line: the report loads external resources"

run 0 report out/plain ./out/plain out/broadcast
err_has './out/plain is the same folder as out/plain and is read once'
out_has 'report.html: 2 runs, '

run 0 report out/plain -o pages.html --title '<script>boom()</script>'
! grep -qF '<script>boom()' pages.html || fail "$command_line: the title is not escaped"
run 1 report out/plain -o nowhere/page.html
err_has 'nowhere/page.html'

usage 'report needs RUN...; see attscope report --help' report
run 1 report out/plain absent
printf 'attscope: absent: there is no such folder\n' | err_is
mkdir -p deeper/.hidden deeper/empty
cp -r out deeper/train
for command_folder in deeper deeper/; do
    run 1 report "$command_folder"
    err_is <<TEXT
attscope: $command_folder holds neither metrics.jsonl nor measure.jsonl: it is not a run's folder, nor does it contain one, but there are runs in deeper/train: give that folder
TEXT
done
# A folder of runs stands for them, as for attscope serve; a run counts once.
for folders in out out/ 'out/*/' 'out/plain out' 'out out/plain'; do
    # shellcheck disable=SC2086
    run 0 report $folders
    out_has 'report.html: 2 runs, '
done
cp report.html before.html
echo 'nonsense' >>out/plain/metrics.jsonl
run 1 report out/plain
err_has "attscope: out/plain/metrics.jsonl, line $(wc -l <out/plain/metrics.jsonl): not valid JSON: expected an object in {} or an array in []"
cmp report.html before.html || fail "$command_line: a failed command changed the report"

# An incomplete line, left by a killed training, is ignored with a note.
printf '{"event":"st' >>out/broadcast/metrics.jsonl
run 0 report out/broadcast
err_has 'is incomplete and is ignored'

# If the disk is full, the old page stays.
if [ -w /dev/full ]; then
    run 1 report out/broadcast -o /dev/full
    err_has '/dev/full'
fi
finish
