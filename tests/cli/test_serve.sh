#!/bin/bash
# attscope serve: what it prints, what it refuses, and how it ends. tests/lab/serve checks the answers of the server.
. "$(dirname "$0")/lib.sh"
needs_server
mkdir -p runs/one
printf '{"event":"run_begin","epoch":0,"step":0,"seconds":0,"model":"vit"}\n' >runs/one/metrics.jsonl

# start ARGUMENT...: starts the server, and waits for its address.
start() {
    : >out
    "$ATTSCOPE" serve "$@" >out 2>err &
    server=$!
    address=
    while kill -0 $server 2>/dev/null && ! IFS= read -r address <out; do sleep 0.05; done
}
# end SIGNAL: ends the server, whose exit status must be 0.
end() {
    local status=0
    kill -"$1" $server
    wait $server || status=$?
    [ $status -eq 0 ] || fail "serve: exit status $status after SIG$1"
}
# ask PATH: prints the answer to a request with the token.
ask() {
    exec 3<>"/dev/tcp/127.0.0.1/$port" || return
    printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: token %s\r\nConnection: close\r\n\r\n' "$1" "$token" >&3
    cat <&3
    exec 3>&-
}

for signal in INT TERM HUP; do
    : >out
    find . -type f | sort >before
    start runs
    [[ $address =~ ^http://127\.0\.0\.1:([0-9]+)/\?token=([0-9a-f]{64})$ ]] || fail "serve: it prints '$address'"
    port=${BASH_REMATCH[1]} token=${BASH_REMATCH[2]}
    ask /api/runs >answer
    grep -qF '"run":"one","state":"unfinished","model":"vit"' answer || fail "serve: /api/runs: $(cat answer)"
    # Open streams and half a request do not keep the server.
    exec 4<>"/dev/tcp/127.0.0.1/$port" 5<>"/dev/tcp/127.0.0.1/$port" 6<>"/dev/tcp/127.0.0.1/$port"
    for stream in 4 5; do
        printf 'GET /api/events?run=one HTTP/1.1\r\nHost: localhost\r\nAuthorization: token %s\r\n\r\n' "$token" >&$stream
        while IFS= read -r line <&$stream && [[ $line != *'"record":'* ]]; do :; done
        [[ $line == *'"model":"vit"'* ]] || fail "serve: no event in a stream: $line"
    done
    printf 'GET / HT' >&6
    end $signal
    exec 4>&- 5>&- 6>&-
    find . -type f | grep -vxE './(out|err|answer|before)' | sort | diff <(grep -vxE './(out|err|answer|before)' before) - ||
        fail 'serve: it leaves files'
    grep -qF 'It contains a secret token. Ctrl-C ends the server.' err || fail "serve: $(cat err)"
done

# A port in use is refused if it was asked for; otherwise another one is taken.
start runs
port=$(sed 's/.*:\([0-9]*\).*/\1/' <<<"$address")
run 1 serve runs --port "$port"
err_is <<<"attscope: port $port is in use by another program: choose another --port"
first=$server first_address=$address
start runs
[ -n "$address" ] && [ "${address%%\?*}" != "${first_address%%\?*}" ] || fail "serve: the same port twice: $address"
end INT
server=$first
end INT

# A checkpoint that cannot be opened is named at the start, and the others are served.
printf hello >bad.safetensors
cp bad.safetensors worse.safetensors
why='bad.safetensors: 5 bytes; a safetensors file begins with the 8 bytes of its header'\''s length'
start bad.safetensors resnet20
port=$(sed 's/.*:\([0-9]*\)\/.*/\1/' <<<"$address") token=${address#*token=}
[ "$(head -n 1 err)" = "warning: $PWD/$why" ] || fail "serve: a damaged checkpoint: $(cat err)"
ask '/api/model?model=resnet20' | grep -qF '"network":"resnet20"' || fail 'serve: no checkpoint beside a damaged one'
end INT
cp -r "$here/../goldens/layouts/dinov3" .
start dinov3
port=$(sed 's/.*:\([0-9]*\)\/.*/\1/' <<<"$address") token=${address#*token=}
ask '/api/model?model=dinov3' | grep -qF '"network":"vit_base_patch16_dinov3_qkvb"' || fail 'serve: no folder of transformers'
ask '/api/graph?model=dinov3' | grep -qF 'blocks.1.attn' || fail 'serve: no graph of a folder of transformers'
end INT
start "vit_base_patch16_224=$here/../goldens/layouts/vit/model.safetensors#vit"
port=$(sed 's/.*:\([0-9]*\)\/.*/\1/' <<<"$address") token=${address#*token=}
ask '/api/model?model=model.safetensors%23vit' | grep -qF '"network":"vit_base_patch16_224"' ||
    fail "serve: no part of a file after the name of its network: $(cat err)"
end INT
start bad.safetensors runs
grep -qxF "warning: $PWD/$why" err || fail "serve: a damaged checkpoint beside runs: $(cat err)"
end INT
run 1 serve bad.safetensors
err_is <<<"attscope: $PWD/$why"
run 1 serve worse.safetensors bad.safetensors
err_is <<<"warning: $PWD/${why/bad/worse}
attscope: $PWD/$why"

# A folder without runs, such as one of images, is named in a warning.
mkdir photos
start photos runs
grep -qxF "warning: $PWD/photos has no runs so far; if it holds images to show models, give it as --images" err ||
    fail "serve: a folder without runs: $(cat err)"
grep -F "$PWD/runs has" err && fail 'serve: a folder with runs is called empty'
end INT

run 1 serve absent
err_is <<<'attscope: absent is neither a file nor a folder; as a network'\''s name: there is no model "absent"; attscope models lists all'
usage 'serve needs a run, a checkpoint or a folder of runs: attscope serve RUN|CHECKPOINT|FOLDER; without operands it shows output/train, which does not exist' serve
run 1 serve resnet2=bad.safetensors
err_has 'resnet2=bad.safetensors: expected NETWORK=CHECKPOINT; '
err_has 'there is no model "resnet2"'
run 1 serve resnet20=absent/x.safetensors
err_has 'absent/x.safetensors: there is no such file or folder'
run 1 serve resnet20 absent.pth
err_has 'absent.pth is neither a file nor a folder'
run 1 serve "resnet20=absent.safetensors#student"
err_has 'absent.safetensors#student: there is no such file or folder'
run 2 serve resnet20=runs
err_has 'resnet20=runs: expected a checkpoint after resnet20=, which is a network'\''s name; runs is a folder of runs'
run 2 serve resnet20=bad.safetensors resnet32=bad.safetensors
err_has 'is given twice, for different networks (resnet20 and resnet32): give it once'
run 1 serve runs --images absent
err_is <<<'attscope: absent: there is no such folder of images'
run 1 serve runs --texts absent
err_is <<<'attscope: absent: there is no such file of texts'
run 1 serve runs --tokenizer absent
err_is <<<'attscope: absent: there is no such tokenizer'
printf 'a\n\377\n' >latin.txt
run 1 serve resnet20 --texts latin.txt
err_has 'latin.txt: line 2'
run 2 serve runs --allow-host 'a b'
err_has '"a b" is not the name of a host'
run 2 serve runs --port 65536
err_has '--port'
finish
