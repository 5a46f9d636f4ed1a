#!/usr/bin/env bash
# attscope convert --to-attention: the file opens by itself in every command, with the same figures.
. "$(dirname "$0")/lib.sh"
too_long_sanitized
needs python3

idx data
small='--model resnet29 --depth 11 --width 4 --img-size 8 --in-chans 1 --num-classes 4'
run 0 train data $small $recipe --epochs 1 --output output --experiment plain
plain=output/plain/last.safetensors

figures() { grep -E '"(top1|top5)"' "$1"; }
run 0 convert "$plain" all.safetensors --to-attention all --json converted.json
out_has 'attention    13 convolutions as 45 heads'
out_has 'alpha        20, a head gives less than 8.2e-09 of its weight to other pixels'
out_has 'formula      score = -alpha |shift - center|^2, a center for each pixel of the kernel (Cordonnier et al., ICLR 2020)'
out_has 'of the largest output, on 4 random images'
grep -q '"alpha": 20' converted.json || fail 'the JSON has no alpha'
run 0 validate data --checkpoint "$plain" --threads 1 --json plain.json
run 0 validate data --checkpoint all.safetensors --threads 1 --json all.json
[ -n "$(figures plain.json)" ] && [ "$(figures plain.json)" = "$(figures all.json)" ] ||
    fail 'the converted network has another accuracy'
run 0 inspect all.safetensors
out_has 'attention_layers all'
out_has 'layer1.0.conv2.row_centers '
run 0 measure all.safetensors data --threads 1 --with entropy,distance --json measured.json
grep -q '"layer1.0.conv2"' measured.json || fail 'a layer of attention was not measured'
# A pixel is an eighth of the image in layer2.0.conv2, which has a stride, and a quarter in layer3.0.conv2.
out_has ' 0.1768 0.1250 0.1768 0.1250 0.0000 0.1250 0.1768 0.1250 0.1768'
out_has ' 0.3536 0.2500 0.3536 0.2500 0.0000 0.2500 0.3536 0.2500 0.3536'
run 0 predict all.safetensors data --threads 1

# Some layers, another alpha; then the rest.
run 0 convert "$plain" some.safetensors --to-attention 'conv1,layer?.0.conv2' --alpha 30
out_has 'attention    4 convolutions as 36 heads'
out_has 'alpha        30,'
run 0 convert some.safetensors rest.safetensors --to-attention all
out_has 'attention    9 convolutions as 9 heads'
run 0 train data --initial-checkpoint some.safetensors $recipe --epochs 1 --output output --experiment attending
run 0 inspect output/attending/last.safetensors
out_has 'attention_layers conv1,layer?.0.conv2'

# The way back: all layers, some of them, and figures without a file.
run 0 convert all.safetensors back.safetensors --to-convolution all --json back.json
out_has 'convolution  13 layers of 45 heads'
out_has 'of the largest output, on 4 random images'
out_has 'written      back.safetensors'
grep -q '"worst_layer"' back.json || fail 'the JSON does not name a layer'
run 0 inspect back.safetensors
out_has 'attention_layers none'
grep -q 'row_centers' stdout && fail 'a convolution kept the centers of its heads'
run 0 validate data --checkpoint back.safetensors --threads 1 --json back.json
[ "$(figures plain.json)" = "$(figures back.json)" ] || fail 'the network has another accuracy after the way back'
run 0 convert all.safetensors part.safetensors --to-convolution 'layer?.0.conv2,conv1'
run 0 inspect part.safetensors
out_has 'attention_layers layer1.0.conv1,layer1.0.conv3,layer1.0.downsample.0,layer2.0.conv1,'
rm part.safetensors
run 0 convert all.safetensors --to-convolution layer1.0.conv2
out_has 'convolution  1 layer of 9 heads'
grep -q '^written' stdout && fail 'written without a name'

# Refused in one sentence; nothing is written.
refused() { # CODE MESSAGE ARGUMENT...
    run $1 convert "$plain" no.safetensors "${@:3}"
    err_has "$2"
    [ ! -e no.safetensors ] || fail "$command_line: a file was written"
}
refused 1 'the network resnet29 has no convolution "layer1.0.convl"; did you mean "layer1.0.conv1"?' --to-attention layer1.0.convl
refused 1 '"fc" cannot become attention: it is a linear layer' --to-attention fc
refused 2 'alpha is 2, must be 13 to 1e+06' --to-attention all --alpha 2
run 1 convert all.safetensors no.safetensors --to-attention conv1
err_has '"conv1" is attention already'
run 0 convert "$plain" sharp.safetensors --to-attention conv1 --alpha 1e6
out_has 'less than 2.2e-308 of its weight'
# A classifier of zeros compares nothing; a NaN is named.
for value in 0 nan; do
    fill_tensors "$plain" "$value.safetensors" "$value" fc.weight fc.bias
done
refused_file() { # FILE MESSAGE
    run 1 convert "$1" no.safetensors --to-attention conv1
    err_has "$2"
    [ ! -e no.safetensors ] || fail "$command_line: a file was written"
}
usage '--to-attention needs a value: LAYERS (make these convolutions attention: names, which may contain * and ?, as conv1,layer1.*.conv2, or all)' \
    convert "$plain" no.safetensors --to-attention
# The least alpha is too small here; the one that the message names is large enough.
"$ATTSCOPE" convert "$plain" least.safetensors --to-attention all --alpha 13 >stdout 2>stderr && fail 'alpha 13 suffices'
err_has '1e-05 is promised, so nothing was written; --alpha '
run 0 convert "$plain" least.safetensors --to-attention all --alpha "$(sed 's/.*--alpha \([0-9]*\) .*/\1/' stderr)"
# A file that another program wrote has no name; the message says how to give it.
unnamed() { # FROM TO: the same tensors without metadata
    python3 - "$@" <<'END'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + length])
header.pop("__metadata__", None)
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + data[8 + length:])
END
}
unnamed all.safetensors unnamed.safetensors
refused_file unnamed.safetensors 'name the network with --model NAME; attscope models lists the names'
run 0 inspect unnamed.safetensors --model resnet29 --img-size 8
out_has 'attention_layers all'
refused_file 0.safetensors 'all outputs of the networks are 0 on 4 random inputs, so that nothing was compared'
refused_file nan.safetensors '"fc.weight" has'
usage '--to-attention: no layers are named; expected names of convolutions, or all' convert "$plain" no.safetensors --to-attention ''
refused 1 '--to-convolution needs attention in the place of convolutions (--to-attention), or heads' --to-convolution all
refused 1 'this network has no heads that attend by position only' --prune-heads
refused_attending() { # CODE MESSAGE ARGUMENT...
    run $1 convert all.safetensors no.safetensors "${@:3}"
    err_has "$2"
    [ ! -e no.safetensors ] || fail "$command_line: a file was written"
}
refused_attending 1 'the heads of this network are in the place of convolutions, one for each pixel' --prune-heads
refused_attending 2 '--kernel-size: the convolutions of all.safetensors have the kernels' --to-convolution all --kernel-size 3
refused_attending 1 '"fc" cannot become a convolution: it is a linear layer' --to-convolution fc
refused_attending 1 'the layer "conv1" is attention in this file, and attention_layers, "none", does not name it; leave out the option' \
    --attention-layers none
usage '--alpha belongs to --to-attention' convert "$plain" no.safetensors --alpha 20
run 1 convert "$here/../goldens/checkpoints/vit_old.pth" no.safetensors --model vit_tiny_patch16_224 --num-heads 2 --to-attention all
err_has 'vit_tiny_patch16_224 has no convolution that can become attention'
finish
