#!/bin/bash
# A residual network with modules in some blocks: trained, told from its file, measured; what does not fit is refused.
. "$(dirname "$0")/lib.sh"
idx data

residual='--model resnet29 --depth 20 --width 4 --img-size 8 --in-chans 1 --num-classes 4'
# shellcheck disable=SC2086
train() { # CODE NAME FLAG...
    local code=$1 name=$2
    shift 2
    run "$code" train data $residual --batch-size 16 --lr 0.1 --warmup-epochs 0 --no-aug --threads 2 --output out \
        --experiment "$name" "$@"
}

train 0 plain --epochs 1
train 0 some --epochs 2 --attn se:ratio=4 --attn-blocks layer2:all,layer3:0 --measure nsi,tns
for line in 'attn: se:ratio=4' 'attn_blocks: layer2:all,layer3:0'; do
    grep -qxF "$line" out/some/args.yaml || fail "args.yaml has no line $line"
done

# The file alone tells the network.
cp out/some/last.safetensors alone.safetensors
run 0 inspect alone.safetensors
out_has 'dimensions   8 x 8 x 1 pixels, width 4, depth 20, classes 4'
out_has 'blocks       2,2,2 (bottleneck), stem conv3, shortcuts conv'
out_has 'attention    se:ratio=4 in layer2:all,layer3:0'
run 0 validate data --checkpoint alone.safetensors
run 0 measure alone.safetensors data --with nsi,tns
out_has 'layer3.1.add'

# A grey network goes on where it stood, though the means of a network for colours differ by channel; args.yaml, which
# has one of them, gives the same run.
run 0 train data -c out/plain/args.yaml --experiment twin
cmp out/plain/last.safetensors out/twin/last.safetensors || fail 'args.yaml does not give the same run'
run 0 train data --resume out/plain/last.safetensors
err_has 'nothing is left to train'

# Modules on top of weights without them start anew.
train 0 more --epochs 1 --initial-checkpoint out/plain/last.safetensors --attn eca --attn-blocks every:2
err_has 'start anew'

train 2 none --attn se --attn-blocks layer9:all
err_has 'there is no stage 9; the network has layer1 to layer3'
train 2 none --attn-blocks all
err_has 'attn_blocks "all" says which blocks have a module, but attn does not say which module'
train 2 none --attn se --attn-blocks 0,0,0
err_has 'block 0 is named twice'
train 2 none --attn se --attn-blocks ''
err_has '--attn-blocks: "" is not a short name'
train 2 none --attn se:ratio=8,ratio=4
err_has 'module se: ratio is said twice'
train 2 none --attn se:bogus=1
err_has 'attscope: module se has no option "bogus", only ratio, bias, divisor'
train 2 none --attn fca --width 6
err_has 'its 16 frequencies take a branch whose channels are a multiple of 16, not 24'
train 2 none --attn srm --img-size 4
err_has 'the map has a single pixel in layer3.0.srm'
train 2 none --batch-size 1 --img-size 4
err_has 'attscope: batch_size 1: batch norm layer3.0.bn2 gets one number a channel from an image'
train 2 none --batch-size 1 --attn srm
err_has 'attscope: batch_size 1: batch norm layer1.0.srm.bn gets one number a channel from an image'
train 2 none --layers 1,1,1
err_has 'depth 20 does not go with layers 1,1,1, which are 11 deep; leave one of them out'
train 2 none --attn see
err_has 'did you mean se?'
train 2 none --patch-size 4
err_has 'patch_size is an option of the family "vit", not of "resnet"'
train 2 none --depth 21
err_has '9 n + 2 layers deep (11, 20, 29, ...)'
train 2 none --img-size 3
err_has 'img_size 3'
finish
