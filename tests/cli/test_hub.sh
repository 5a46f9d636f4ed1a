#!/bin/bash
# Names of pretrained weights in place of checkpoints: every command that takes a checkpoint downloads them or finds them
# in the cache. tests/networks/hub checks the downloads themselves.
. "$(dirname "$0")/lib.sh"
needs python3
unset HF_TOKEN HF_TOKEN_PATH HF_HUB_CACHE HF_HUB_OFFLINE XDG_CACHE_HOME
unset SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE
export HOME=$work HF_HOME=$work/hf TORCH_HOME=$work/torch no_proxy=127.0.0.1,localhost

# More than 1 MB of weights, so that downloads show their progress.
wide='--model vit_tiny_patch16_224 --img-size 8 --patch-size 4 --in-chans 1 --num-classes 4 --embed-dim 128 --depth 2 --num-heads 2'
idx data
# shellcheck disable=SC2086
run 0 train data $wide --epochs 0 --threads 1 --output out --experiment drawn
weights=weights.safetensors
run 0 convert out/drawn/last.safetensors $weights
mkfifo ends
python3 "$here/../networks/hub/server.py" "$weights" <ends >port 2>/dev/null &
exec 4>ends # the server ends with this descriptor
while kill -0 $! && [ ! -s port ]; do sleep 0.02; done
export HF_ENDPOINT=http://127.0.0.1:$(cat port)
hash=$(sha256sum <"$weights" | cut -d' ' -f1)
folder=hf/hub/models--noconfig--vit
snapshot=$folder/snapshots/0123456789abcdef0123456789abcdef01234567

# inspect NAME downloads; progress is plain lines in a pipe.
run 0 inspect hf-hub:noconfig/vit
out_has "$snapshot/model.safetensors"
err_has 'downloading model.safetensors of noconfig/vit (1.5 MiB)'
grep -qE '^download  1/1  [0-9.]+ MB/s  ETA 0:00$' stderr || fail "$command_line: no progress: $(cat stderr)"
! grep -q "$(printf '\r')" stderr || fail "$command_line: a bar in a pipe"
cmp -s "$weights" "$snapshot/model.safetensors" || fail 'the file in the cache is another one'

# Of the weights of a network that attscope lacks, only the header is requested.
run 1 inspect hf-hub:foreign/vit
err_has 'blocks.0.gamma'
python3 -c 'import os, urllib.request; print(urllib.request.urlopen(os.environ["HF_ENDPOINT"] + "/log").read().decode())' >log
[ "$(grep -c 'GET localhost /cdn/foreign/vit/model.safetensors bytes=0-65535' log)" = 1 ] || fail "no request of a header: $(grep foreign log)"
[ "$(grep -c 'GET.*foreign' log)" = 3 ] || fail "more than the configuration and a header: $(grep foreign log)"
[ -z "$(find hf/hub/models--foreign--vit/blobs -type f -size +1)" ] || fail "what was refused is there: $(ls hf/hub/models--foreign--vit/blobs)"

# Without a connection, all commands find it in the cache.
export HF_HUB_OFFLINE=1
name=hf-hub:noconfig/vit
run 0 inspect $name@main
err_is </dev/null
run 0 validate data --checkpoint $name --threads 1
cp stdout by_name
run 0 validate data --checkpoint "$weights" --threads 1
grep -v checkpoint stdout | diff - <(grep -v checkpoint by_name) || fail 'validate gives other figures by name'
run 0 measure $name data --with entropy --threads 1
run 0 predict $name "$here/../goldens/images/420.jpg" --threads 1
run 0 convert $name converted.safetensors
run 0 train data $wide --initial-checkpoint $name --epochs 1 --batch-size 48 --warmup-epochs 0 --no-aug --threads 1 --output out --experiment tuned
grep -q "initial_checkpoint: .*$name" out/tuned/args.yaml || fail "args.yaml lacks the name: $(grep initial out/tuned/args.yaml)"
run 0 train data $wide --teacher $name --epochs 1 --batch-size 48 --warmup-epochs 0 --no-aug --threads 1 --output out --experiment taught
run 0 bench start $name "$here/../goldens/images/420.jpg" --repeats 1 --warmup 1 --threads 1
if ! "$ATTSCOPE" serve /nowhere 2>&1 | grep -qF 'this build of attscope has no web server'; then
    : >served
    "$ATTSCOPE" serve $name >served 2>/dev/null &
    child=$!
    while kill -0 $child 2>/dev/null && [ ! -s served ]; do sleep 0.05; done
    kill -INT $child
    wait $child || fail 'serve does not take a name'
fi
run 1 inspect hf-hub:good/vit
err_is <<<"attscope: good/vit: not in the cache $work/hf/hub, and HF_HUB_OFFLINE forbids to download it"
run 1 inspect timm/vit_tiny_patch16_225
err_has 'did you mean "vit_tiny_patch16_224"?'
run 2 inspect hf-hub:vit
err_has '"hf-hub:vit" is no name of pretrained weights; expected timm/NETWORK.TAG, hf-hub:ORG/NAME'
run 1 validate data --checkpoint torchvision/resnet50.IMAGENET1K_V2
err_is <<<"attscope: torchvision's resnet50-11ad3fa6.pth is not in $work/torch/hub/checkpoints, and HF_HUB_OFFLINE forbids to download it"
unset HF_HUB_OFFLINE

# A local path has precedence.
mkdir -p timm/vit
cp "$weights" timm/vit/model.safetensors
run 0 inspect timm/vit
out_has 'timm/vit/model.safetensors'

# Ctrl-C leaves a part, which the next call continues.
part=hf/hub/models--slow--vit/blobs/$hash
"$ATTSCOPE" inspect hf-hub:slow/vit >stdout 2>stderr &
child=$!
while kill -0 $child 2>/dev/null && [ "$(stat -c %s "$part.incomplete" 2>/dev/null || echo 0)" -eq 0 ]; do sleep 0.01; done
kill -INT $child
status=0
wait $child || status=$?
[ $status -eq 130 ] || fail "inspect: exit status $status after Ctrl-C, expected 130: $(cat stderr)"
{ [ -s "$part.incomplete" ] && [ ! -e "$part" ]; } || fail "$(ls hf/hub/models--slow--vit/blobs) after Ctrl-C"
run 0 inspect hf-hub:slow/vit
err_has ', continued)'
[ ! -e "$part.incomplete" ] || fail 'the part is still there'

# HTTPS: a certificate must be trusted, and a redirect must not leave HTTPS, not even for this machine.
if openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key -out certificate -days 2 \
    -subj /CN=localhost -addext subjectAltName=DNS:localhost >/dev/null 2>&1; then
    mkfifo also_ends
    CERTIFICATE=certificate KEY=key python3 "$here/../networks/hub/server.py" "$weights" <also_ends >secure_port 2>/dev/null &
    exec 5>also_ends
    while kill -0 $! && [ ! -s secure_port ]; do sleep 0.02; done
    HF_ENDPOINT=https://localhost:$(cat secure_port)
    run 1 inspect hf-hub:noconfig/secure
    err_has 'config.json of noconfig/secure: localhost: '
    err_has certificate
    export SSL_CERT_FILE=certificate
    run 0 inspect hf-hub:noconfig/secure
    run 1 inspect hf-hub:downgrade/secure
    err_has 'redirected to http://localhost, which is not encrypted'
    HF_ENDPOINT=https://127.0.0.1:$(cat secure_port) run 1 inspect hf-hub:good/secure # not the certificate's name
    err_has 'config.json of good/secure: 127.0.0.1: '
    unset SSL_CERT_FILE
    CURL_CA_BUNDLE=certificate run 0 inspect hf-hub:noconfig/curl
    mkdir folder_of_certificates
    cp certificate "folder_of_certificates/$(openssl x509 -in certificate -noout -hash).0"
    REQUESTS_CA_BUNDLE=folder_of_certificates run 0 inspect hf-hub:noconfig/requests
    SSL_CERT_FILE=absent run 1 inspect hf-hub:noconfig/absent
    err_has 'install the system'
    exec 5>&-
else
    echo 'skipped: HTTPS, because there is no openssl'
fi

# Weights in several files, in a folder.
mkdir shards
cp $weights shards/a.safetensors
python3 - shards/a.safetensors >shards/model.safetensors.index.json <<'END'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
print(json.dumps({"weight_map": {name: "a.safetensors" for name in header if name != "__metadata__"}}))
END
# shellcheck disable=SC2086
run 0 validate data --checkpoint shards --threads 1 $wide
err_has 'shards is a folder; using its model.safetensors.index.json'
grep -v checkpoint stdout | diff - <(grep -v checkpoint by_name) || fail 'validate gives other figures for an index'

# torchvision's files are known by their names, which contain a part of their hash.
mkdir -p torch/hub/checkpoints
# shellcheck disable=SC2086
run 0 train data --model resnet18 --img-size 32 --in-chans 3 --num-classes 4 --epochs 0 --threads 1 --output out --experiment resnet
run 0 convert out/resnet/last.safetensors resnet.safetensors
python3 - resnet.safetensors torch/hub/checkpoints/resnet18-f37072fd.pth <<'END'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + length])
header.pop("__metadata__")
text = json.dumps(header).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + data[8 + length:])
END
run 0 inspect torchvision/resnet18
out_has "torchvision's name of the file (resnet18)"
out_has 'crop 0.875 center, bilinear'
exec 4>&-

# The tokenizer of a network for texts comes with its weights.
mkdir net
cp "$here"/../goldens/encoders/bert/{config.json,model.safetensors} net
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' a b c d e f g h i j k l m n o >net/vocab.txt
printf 'a b c\nK\n' >texts.txt
mkfifo texts_end
python3 "$here/../networks/hub/server.py" net/model.safetensors net/config.json net/vocab.txt <texts_end >texts_port \
    2>/dev/null &
exec 4>texts_end
while kill -0 $! && [ ! -s texts_port ]; do sleep 0.02; done
export HF_ENDPOINT=http://127.0.0.1:$(cat texts_port)
run 0 embed hf-hub:pieces/bert texts.txt -o named.npz --threads 1
err_has 'downloading vocab.txt of pieces/bert'
run 0 embed net texts.txt -o folder.npz --threads 1
cmp -s named.npz folder.npz || fail 'embed gives other vectors by name'
exec 4>&-
finish
