#!/bin/bash
# attscope tour: finds its files beside the folder of the command and opens the explorer, or says where they come from.
. "$(dirname "$0")/lib.sh"
needs_server
mkdir bin
cp "$ATTSCOPE" bin/attscope
export LD_LIBRARY_PATH=$ATT_BUILD${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

run 2 tour anything
bin/attscope tour >out 2>err && fail 'tour: it runs without its files'
grep -qF "$PWD/share/attscope/tour does not exist: releases have the tour; in a clone, tools/make-tour makes it" err ||
    fail "tour: $(cat err)"

tour=share/attscope/tour
mkdir -p $tour/pictures
cp "$ATT_GOLDENS/images/rgb.png" $tour/pictures/circle.png
run 0 convert "$ATT_GOLDENS/checkpoints/vit_old.pth" $tour/shapes.safetensors --model vit_tiny_patch16_224 --num-heads 2
bin/attscope tour >out 2>err &
server=$! address=
while kill -0 $server 2>/dev/null && ! IFS= read -r address <out; do sleep 0.05; done
[[ $address =~ ^http://127\.0\.0\.1:([0-9]+)/explore\?token=([0-9a-f]{64})$ ]] || fail "tour: it prints '$address'"
exec 3<>"/dev/tcp/127.0.0.1/${BASH_REMATCH[1]}"
printf 'GET /api/images?first=0&count=8 HTTP/1.1\r\nHost: localhost\r\nAuthorization: token %s\r\nConnection: close\r\n\r\n' \
    "${BASH_REMATCH[2]}" >&3
cat <&3 >answer
exec 3>&-
grep -q 'circle' answer || fail "tour: the explorer's images: $(cat answer)"
kill $server
wait $server || fail "tour: exit status $? after SIGTERM"
finish
