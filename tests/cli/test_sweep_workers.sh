#!/bin/bash
# Several processes carry out one sweep: simultaneous starts, processes that are killed, suspended and stopped.
. "$(dirname "$0")/lib.sh"
needs python3
only_unsanitized 'processes that share a sweep take long under sanitizers; sweep/ tests run the same functions'
idx data
tiny_recipe threads:1 workers:1 epochs:2

# start NAME ARGUMENT...: starts a worker whose output is in NAME.out and NAME.err, and whose process is in the array
# `pids`.
declare -A pids
start() {
    local name=$1
    shift
    "$ATTSCOPE" sweep tiny.yaml data "$@" >"$name.out" 2>"$name.err" &
    pids[$name]=$!
}
# ends CODE NAME: waits for a worker, whose exit status must be CODE.
ends() {
    local status=0
    wait "${pids[$2]}" 2>/dev/null || status=$?
    [ $status -eq "$1" ] || { fail "worker $2: exit status $status, expected $1: $(grep -v '^epoch' "$2.err")"; }
}
# suspend NAME: suspends a worker and the step that it carries out; their processes are in the array `suspended`.
suspend() {
    read -ra suspended <"/proc/${pids[$1]}/task/${pids[$1]}/children"
    suspended+=("${pids[$1]}")
    kill -STOP "${suspended[@]}"
}
until_true() { # COMMAND...: waits for it to succeed, at most 30 s
    for _ in $(seq 3000); do
        "$@" && return
        sleep 0.01
    done
    fail "$* did not become true"
}
# query FOLDER QUERY...: prints the rows that SQLite finds in the folder's runs.sqlite.
query() {
    python3 - "$@" 2>&1 <<'END'
import sqlite3, sys
database = sqlite3.connect(f"file:{sys.argv[1]}/runs.sqlite?mode=ro", uri=True)
for query in sys.argv[2:]:
    for row in database.execute(query):
        print(*row, sep="|")
END
}
# results_of FOLDER: prints what a sweep has found, without times.
results_of() {
    grep -vE '"(seconds|seconds_deviation|folder|seeds)":' "$1/sweep.json"
    query "$1" 'SELECT folder, model, status FROM runs ORDER BY folder' \
        "SELECT folder, step, event, name, value FROM scalars JOIN runs ON run = id
        WHERE name NOT IN ('images_per_second', 'wait_share', 'seconds') ORDER BY 1, 2, 3, 4" \
        'SELECT folder, source, step, instrument, node, head, statistic, unit, value, n FROM measurements
        JOIN runs ON run = id ORDER BY 1, 2, 3, 4, 5, 6, 7, 8'
    ls -A "$1"
}
# same_results ONE OTHER: two sweeps have the same weights, figures, files, and rows in their databases.
same_results() {
    for run in "$1"/*-seed*; do
        cmp "$run/last.safetensors" "$2/${run##*/}/last.safetensors" || fail "$2: the weights of ${run##*/} differ"
    done
    results_of "$1" >expected
    results_of "$2" >found
    [ "$(wc -l <expected)" -gt 100 ] || fail "$1: too few results: $(cat expected)"
    diff expected found >difference || fail "$2: other results than $1: $(head -n 20 difference)"
}

# --- three processes start at the same time in a folder that does not exist
four='--vary modules=none,cb_s --seeds 1,2 --output'
# shellcheck disable=SC2086
run 0 sweep tiny.yaml data $four alone
cp stdout alone.out
for name in a b c; do
    # shellcheck disable=SC2086
    start $name $four several
done
for name in a b c; do ends 0 $name; done
same_results alone/tiny several/tiny
for name in a b c; do
    diff <(sed 's/several/alone/; /seconds of training/,/^$/d' $name.out) <(sed '/seconds of training/,/^$/d' alone.out) \
        >difference || fail "worker $name prints another table: $(cat difference)"
done
[ "$(cat ?.err | grep '^\[[1-4]/4\] ' | grep -vc ': done already$')" = 4 ] || fail "not every run was carried out once: $(grep -h '^\[' ?.err)"
cat ?.err | grep -qE "^\[1/4\] modules=none-seed1, worker [^ ]+:[0-9]+$|^\[1/4\] modules=none-seed1$" ||
    fail 'no worker says that it carries out the first run'

# --- a process that is killed in the middle of a run; its run is continued, at once on the same machine
long='--set epochs=12 --seeds 1,2 --measure accuracy --output'
# shellcheck disable=SC2086
run 0 sweep tiny.yaml data $long whole
# shellcheck disable=SC2086
start a $long cut
until_true [ -e cut/tiny/tiny-seed1/checkpoint-1.safetensors ]
suspend a
# shellcheck disable=SC2086
start b $long cut
until_true grep -q '^\[2/2\] tiny-seed2, worker ' b.err
kill -KILL "${pids[a]}"
ends 137 a 2>/dev/null
ends 0 b
grep -qE "^\[1/2\] tiny-seed1, worker|^\[1/2\] tiny-seed1, taken over from [^ ]+:${pids[a]}$" b.err || fail "the run of a killed worker: $(grep '^\[' b.err)"
grep -q 'tiny-seed1/last.safetensors: resumes in epoch' b.err || fail 'the run of a killed worker began anew'
same_results whole/tiny cut/tiny

# --- Ctrl-C gives the run back
# shellcheck disable=SC2086
start a $long given
until_true [ -e given/tiny/tiny-seed1/checkpoint-1.safetensors ]
suspend a
# shellcheck disable=SC2086
start b $long given
until_true grep -q '^\[2/2\] tiny-seed2, worker ' b.err
until_true grep -q "\"worker\": \"[^\"]*:${pids[b]}\"" given/tiny/sweep.json
grep -q '"status": "running"' given/tiny/sweep.json || fail 'sweep.json shows no running run'
kill -INT "${pids[a]}"
kill -CONT "${suspended[@]}"
ends 130 a
grep -qxF 'attscope: stopped; other workers are still at work; repeat the command to continue' a.err ||
    fail "a stopped worker: $(tail -n 1 a.err)"
ends 0 b
same_results whole/tiny given/tiny

# --- a suspended process loses its run after the lease, and says so once
# shellcheck disable=SC2086
start a $long late --lease 1
until_true [ -e late/tiny/tiny-seed1/checkpoint-1.safetensors ]
suspend a
# shellcheck disable=SC2086
start b $long late --lease 1
until_true grep -q '^\[1/2\] tiny-seed1, .*taken over from' b.err
kill -CONT "${suspended[@]}"
ends 0 a
ends 0 b
[ "$(grep -c 'did not renew its claims for 1 s, and other workers took them over; this process continues' a.err)" = 1 ] ||
    fail "a worker that lost its run: $(cat a.err)"
! grep -q 'failed' a.err b.err || fail "a suspended worker made a run fail: $(grep -h failed a.err b.err)"
same_results whole/tiny late/tiny

# --- a worker whose step goes on while it is suspended itself: the step is not allowed to write
# shellcheck disable=SC2086
start a $long blind --lease 1
until_true [ -e blind/tiny/tiny-seed1/checkpoint-1.safetensors ]
kill -STOP "${pids[a]}"
# shellcheck disable=SC2086
start b $long blind --lease 1
ends 0 b
kill -CONT "${pids[a]}"
ends 0 a
same_results whole/tiny blind/tiny

# --- a process that is killed while it writes the database, which another program has locked
mkdir -p held/tiny
# Makes an empty database, locks it after the first line of input, and unlocks it after the second one.
cat >hold.py <<'END'
import sqlite3, sys
database = sqlite3.connect("held/tiny/runs.sqlite", isolation_level=None)
for (statement,) in sqlite3.connect("alone/tiny/runs.sqlite").execute("SELECT sql FROM sqlite_master WHERE sql != ''"):
    database.execute(statement)
database.execute("PRAGMA application_id=1635021939")
database.execute("PRAGMA user_version=1")
print("ready", flush=True)
sys.stdin.readline()
database.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
database.execute("COMMIT")
END
mkfifo pipe
python3 hold.py <pipe >answer 2>&1 &
exec 8>pipe
until_true grep -q ready answer
# shellcheck disable=SC2086
start a $four held
until_true grep -q '^\[1/4\]' a.err
echo >&8
until_true grep -q locked answer
until_true grep -qs '"run_end"' held/tiny/modules=none-seed1/measure.jsonl
sleep 0.2
[ -z "$(query held/tiny 'SELECT folder FROM runs')" ] || fail 'the database was not locked in time'
kill -KILL "${pids[a]}"
ends 137 a 2>/dev/null
# shellcheck disable=SC2086
start b $four held
sleep 0.3
echo >&8
exec 8>&-
ends 0 b
same_results alone/tiny held/tiny

# --- a sweep with another definition is refused while workers are at work; afterwards it may follow
# shellcheck disable=SC2086
start a $long different
until_true [ -e different/tiny/tiny-seed1/checkpoint-0.safetensors ]
suspend a
refused() { # MESSAGE ARGUMENT...
    local message=$1
    shift
    run 1 sweep tiny.yaml data --set epochs=12 --seeds 1,2 --measure accuracy --output different "$@"
    err_has "$message"
}
refused 'different/tiny: workers are at work here with --seeds: 1,2, this sweep has 1; wait for them, or use another --experiment' \
    --seeds 1
refused 'workers are at work here with --measure: accuracy, this sweep has entropy' --measure entropy
refused 'tiny-seed1 was begun with lr: 0.003, here it is 0.1' --set lr=0.1
rm different/tiny/tiny-seed1/metrics.jsonl
refused 'workers are at work here with lr: 0.003, this sweep has 0.1; wait' --set lr=0.1
cp -r data other && idx_pair other/train 92
run 1 sweep tiny.yaml other --set epochs=12 --seeds 1,2 --measure accuracy --output different
err_has 'workers are at work here with other images than other has'
kill -KILL "${pids[a]}"
ends 137 a 2>/dev/null
rm -r different/tiny/tiny-seed1
run 0 sweep tiny.yaml data --set epochs=12 --set lr=0.1 --seeds 1 --measure accuracy --output different
[ ! -e different/tiny/.workers ] || fail 'the folder of killed workers stays'

# --- a run that fails is tried once by all workers together; the next call tries it again
for name in a b; do start $name --vary num-classes=3,4 --seeds 1 --output failing; done
for name in a b; do
    ends 1 $name
    grep -qF 'attscope: 1 of 2 runs failed' $name.err || fail "worker $name does not report the failed run: $(cat $name.err)"
    grep -qxF 'num-classes=3: 1 of 1 runs failed: exit status 2' $name.out || fail "worker $name: $(cat $name.out)"
done
[ "$(cat a.err b.err | grep -c 'num-classes=3-seed1 failed (exit status 2); the other runs continue')" = 1 ] ||
    fail "a failed run was tried twice: $(cat a.err b.err)"
run 1 sweep tiny.yaml data --vary num-classes=3,4 --seeds 1 --output failing
err_has 'num-classes=3-seed1 failed (exit status 2)'

# --- waiting says for what
# shellcheck disable=SC2086
start a --set epochs=12 --seeds 1 --measure accuracy --output waiting
until_true [ -e waiting/tiny/tiny-seed1/checkpoint-1.safetensors ]
suspend a
start b --set epochs=12 --seeds 1 --measure accuracy --output waiting
until_true grep -q '^waiting' b.err
kill -CONT "${suspended[@]}"
ends 0 a
ends 0 b
grep -qxE "waiting for 1 run of other workers: tiny-seed1 \([^ ]+:${pids[a]}\)" b.err || fail "waiting: $(cat b.err)"
grep -qE '^  tiny +1 ' b.out || fail 'a worker without runs prints no table'

# --- files that a process of a dead worker still has locked
mkdir -p locked/tiny/tiny-seed1
exec 7>locked/tiny/tiny-seed1/last.safetensors.tmp 8>locked/tiny/tiny-seed1/metrics.jsonl 9>locked/tiny/sweep.json.tmp
flock 7 && flock 8 && flock 9
run 0 sweep tiny.yaml data --set epochs=1 --seeds 1 --measure accuracy --output locked
exec 7>&- 8>&- 9>&-

# --- a damaged journal, and a lease out of range
mkdir -p damaged/tiny/.workers && echo '{"event":"dance"}' >damaged/tiny/.workers/00000001
run 1 sweep tiny.yaml data --seeds 1 --output damaged
err_has 'damaged/tiny/.workers has an entry of an unknown kind, perhaps of a newer version; if no sweep is at work there, remove this folder'
usage '--lease: "0" is not a number from 1 to 86400' sweep tiny.yaml data --lease 0

finish
