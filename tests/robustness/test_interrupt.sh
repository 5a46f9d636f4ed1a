#!/bin/bash
# Ctrl-C: the exit status is 130, and a message says what was written and what was not. cli/test_train.sh tests
# training runs too.
. "$(dirname "$0")/../cli/lib.sh"
idx data

# Whether the command in the background has printed a text, or has opened a file.
says() { grep -qsF -- "$1" stdout stderr; }
opens() { find "/proc/$child/fd" -lname "*/$1" 2>/dev/null | grep -q .; }

# interrupted says|opens MARK ARGUMENT...: sends SIGINT to the command once it has printed MARK, or has opened the file
# MARK; it must end with 130.
interrupted() {
    local condition=$1 mark=$2 status=0 child
    shift 2
    command_line="attscope $*"
    rm -f stdout stderr # the output of the command before may contain the mark
    "$ATTSCOPE" "$@" >stdout 2>stderr &
    child=$!
    until $condition "$mark" || ! kill -0 $child 2>/dev/null; do sleep 0.01; done
    kill -INT $child 2>/dev/null || fail "$command_line: ended before it could be interrupted: $(tail -n 3 stderr)"
    wait $child || status=$?
    [ $status -eq 130 ] || fail "$command_line: exit status $status instead of 130"
}

# shellcheck disable=SC2086
interrupted says 'train 1/' train data $network $recipe --epochs 100000 --log-interval 1 --output out --experiment cut
err_has 'resume with: attscope train --resume out/cut/last.safetensors'
run 0 inspect out/cut/last.safetensors

# More images than can be processed in the meantime.
mkdir many
{ printf '\0\0\10\3\0\17\102\100\0\0\0\10\0\0\0\10'; head -c 64000000 /dev/zero; } >many/t10k-images-idx3-ubyte
{ printf '\0\0\10\1\0\17\102\100'; head -c 1000000 /dev/zero; } >many/t10k-labels-idx1-ubyte
printf 'before' >figures.json
interrupted says '1000000 images' validate many --checkpoint out/cut/last.safetensors --json figures.json --threads 1
err_has 'stopped before all images were evaluated; there is no result'
[ "$(cat figures.json)" = before ] || fail "$command_line: wrote a result"

# An archive that takes seconds to decompress while it is opened: a file of 960 MB of zeros, in gzip members of 32 MB.
head -c 33554432 /dev/zero | gzip -1 >zeros
truncate -s 1006632960 a.txt # sparse
{ tar -cf - --format=ustar a.txt 2>/dev/null | head -c 512 | gzip -1; for _ in {1..30}; do cat zeros; done; } >large.tar.gz
rm a.txt
interrupted opens large.tar.gz validate large.tar.gz --checkpoint out/cut/last.safetensors --threads 1
err_has 'attscope: large.tar.gz: stopped on request while reading it'

picture=$here/../goldens/images/422.jpg
for _ in {1..20000}; do printf '%s\n' p.jpg; done >names
cp "$picture" p.jpg
# shellcheck disable=SC2046
interrupted says 'p.jpg' predict out/cut/last.safetensors $(cat names) --json figures.json --threads 1 </dev/null
[ "$(cat figures.json)" = before ] || fail 'predict: wrote a result'

# bench starts processes of its own: none may remain.
"$ATTSCOPE" bench --filter 'vit_tiny*/train' --model vit_tiny_patch16_224 --repeats 1000 --threads 1 >stdout 2>stderr &
child=$!
children() { cat "/proc/$child/task/$child/children" 2>/dev/null; }
until [ -n "$(children)" ] || ! kill -0 $child 2>/dev/null; do sleep 0.05; done
read -ra jobs < <(children)
sleep 0.3
kill -INT $child "${jobs[@]}" 2>/dev/null # as a terminal does, to the whole process group
status=0
wait $child || status=$?
[ $status -eq 130 ] || fail "bench: exit status $status instead of 130: $(cat stderr)"
for job in "${jobs[@]}"; do ! kill -0 "$job" 2>/dev/null || fail 'bench leaves a process behind'; done
finish
