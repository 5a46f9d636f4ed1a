#!/bin/bash
# A residual network with modules in some blocks: trained, recognised from its file, measured; wrong options are
# refused.
. "$(dirname "$0")/lib.sh"
too_long_sanitized
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
err_has 'trains resnet29, 8 x 8 x 1, 4 classes, 14560 parameters, no modules'
train 0 some --epochs 2 --modules se:ratio=4@after_branch:layer2:all,layer3:0 --measure nsi,tns
err_has ' parameters, se:ratio=4@after_branch:layer2:all,layer3:0'
for line in 'modules: se:ratio=4@after_branch:layer2:all,layer3:0'; do
    grep -qxF "$line" out/some/args.yaml || fail "args.yaml has no line $line"
done

# The network is recognised from its file alone.
cp out/some/last.safetensors alone.safetensors
run 0 inspect alone.safetensors
for option in 'img_size         8' 'in_chans         1' 'num_classes      4' 'depth            20' 'width            4' 'layers           2,2,2' \
    'block            bottleneck' 'stem_type        conv3' 'shortcut         conv' \
    'modules          se:ratio=4@after_branch:layer2:all,layer3:0'; do
    out_has " $option"
done
run 0 validate data --checkpoint alone.safetensors
run 0 measure alone.safetensors data --with nsi,tns
out_has 'layer3.1.add'
# The first step of each stage is marked, in every reading: in the table, in the record and as JSON.
[ "$(grep -cE '^  layer[123]\.0\.add \* +[0-9]' stdout)" = 9 ] || fail 'first steps of stages are not marked'
[ "$(grep -cE '^  layer[123]\.1\.add   +[0-9]' stdout)" = 9 ] || fail 'other steps are marked'
[ "$(grep -cF '  * the first step of its stage, which TNS leaves out' stdout)" = 1 ] || fail 'the output does not explain the mark'
run 0 measure alone.safetensors data --with nsi,tns --output measured --experiment marked --json marked.json
[ "$(grep -c '"excluded_from_tns": true' marked.json)" = 9 ] || fail 'the JSON does not mark excluded figures'
[ "$(grep -o '"excluded_from_tns":true' measured/marked/measure.jsonl | wc -l)" = 9 ] || fail 'the record has no marks of first steps'
run 0 measure alone.safetensors data --with tns --output measured --experiment marked
[ "$(grep -o '"excluded_from_tns":true' measured/marked/measure.jsonl | wc -l)" = 9 ] || fail 'a figure that was kept lost its mark'
# The record describes the measurement with the fields of a run's record, without options of another family.
run 0 measure alone.safetensors data --with tns --output measured --experiment alone
for fact in '"depth":20' '"layers":"2,2,2"' '"stem_type":"conv3"' '"width":4' \
    '"modules":"se:ratio=4@after_branch:layer2:all,layer3:0"'; do
    head -n 1 measured/alone/measure.jsonl | grep -qF "$fact" || fail "measure.jsonl begins without $fact"
done
for fact in patch_size embed_dim num_heads tokens; do
    ! head -n 1 measured/alone/measure.jsonl | grep -qF "\"$fact\"" || fail "measure.jsonl has $fact of a residual network"
done
for maps in '--maps 1' '--map-images 0'; do
    # shellcheck disable=SC2086
    run 2 measure out/some/last.safetensors data --with accuracy $maps
    err_has 'attscope: maps show attention between tokens, and resnet29 has none'
done

# A network for grey images is resumed, although its recorded means differ by channel; args.yaml, which has one mean,
# gives the same run.
run 0 train data -c out/plain/args.yaml --experiment twin
cmp out/plain/last.safetensors out/twin/last.safetensors || fail 'args.yaml does not give the same run'
run 0 train data --resume out/plain/last.safetensors
err_has 'nothing left to train'

# Modules that are added to weights without them are initialised.
train 0 more --epochs 1 --initial-checkpoint out/plain/last.safetensors --modules eca@after_branch:every:2
err_has 'initial values'
err_has ', eca@after_branch:every:2'

# Several modules, in the same block and in different ones.
train 0 two --epochs 1 --modules se:ratio=4+srm@after_branch:0-1
run 0 validate data --checkpoint out/two/last.safetensors
run 0 inspect out/two/last.safetensors
out_has ' modules          se:ratio=4+srm@after_branch:0-1'

# StepNet's flags complete the module's text, and files record that text.
recorded() { # NAME TEXT
    grep -qxF "modules: $2" "out/$1/args.yaml" || fail "$1: modules is not recorded as $2"
}
train 0 text --epochs 1 --modules step:adaptor=dct,input=x_t
train 0 flags --epochs 1 --modules step --adaptor dct --adaptor-input x_t
recorded flags step:adaptor=dct,input=x_t
for line in 'adaptor: null' 'adaptor_input: null'; do
    grep -qxF "$line" out/flags/args.yaml || fail "args.yaml has no line $line"
done
cmp out/text/last.safetensors out/flags/last.safetensors || fail 'the flags and the text of --modules give different weights'
run 0 inspect out/flags/last.safetensors
out_has ' modules          step:adaptor=dct,input=x_t'
run 0 train data -c out/flags/args.yaml --experiment again
cmp out/text/last.safetensors out/again/last.safetensors || fail 'args.yaml does not give the same run'
run 0 train data --resume out/flags/last.safetensors
recorded flags step:adaptor=dct,input=x_t
printf 'modules: step:ratio=2\nadaptor: bottleneck\nadaptor_input: both\n' >step.yaml
train 0 recipe --epochs 1 -c step.yaml --adaptor-input difference
recorded recipe step:ratio=2,adaptor=bottleneck,input=difference
train 0 recipe --epochs 1 -c step.yaml --adaptor-input difference --resume auto
recorded recipe step:ratio=2,adaptor=bottleneck,input=difference

step() { # MESSAGE FLAG...: the command must fail with exactly this message
    local message=$1
    shift
    train 2 none "$@"
    err_is <<<"attscope: $message"
}
step '--adaptor dct is an option of --modules step, but --modules is not given' --adaptor dct
step '--adaptor-input x_t is an option of --modules step, but --modules is se:ratio=8' --modules se:ratio=8 --adaptor-input x_t
step '--adaptor-input x_t: --modules already sets input, in step:ratio=2,input=both; leave one of them out' \
    --modules step:ratio=2,input=both --adaptor-input x_t
long=step:ratio=1.$(printf '0%.0s' {1..230})
step "--adaptor affine makes modules too long: $long,adaptor=affine" --modules $long --adaptor affine
step '--adaptor: there is no "dtc"; did you mean dct?' --modules step --adaptor dtc
step '--adaptor-input: there is no "nothing", only x_t, x_t1, difference, both' --modules step --adaptor-input nothing
run 2 validate data --checkpoint out/flags/last.safetensors --modules eca --adaptor dct
err_is <<<'attscope: --adaptor dct is an option of --modules step, but --modules is eca'
run 0 train --help-network
for words in '--adaptor NAME ' 'iebn, bottleneck,' '--adaptor-input NAME ' 'x_t1, difference, both'; do out_has "$words"; done

train 2 none --modules se@after_branch:layer9:all
err_has 'there is no stage 9; the network has layer1 to layer3'
train 2 none --modules @after_branch:all
err_has 'modules "@after_branch:all" places a module without naming it, but the network has none; name the module'
train 2 none --modules se@after_branch:0,0,0
err_has 'block 0 is named twice'
train 2 none --modules se:ratio=8,ratio=4
err_has 'module se: ratio is given twice'
train 2 none --modules se:bogus=1
err_has 'attscope: module se has no option "bogus", only ratio, bias, divisor, hidden'
train 2 none --modules fca --width 6
err_has 'its 16 frequencies need a multiple of 16 channels, not 24'
train 2 none --modules srm --img-size 4
err_has 'the map has a single pixel in layer3.0.srm'
train 2 none --batch-size 1 --img-size 4
err_has 'attscope: --batch-size (batch_size) 1: batch norm layer3.0.bn2 has one value per channel of an image'
train 2 none --batch-size 1 --modules srm
err_has 'attscope: --batch-size (batch_size) 1: batch norm layer1.0.srm.bn has one value per channel of an image'
train 2 none --layers 1,1,1
err_has 'depth 20 does not go with layers 1,1,1, which are 11 deep; leave one of them out'
train 2 none --modules see
err_has 'did you mean se?'
train 2 none --patch-size 4
err_has 'patch_size is an option of the families "vit", "eva", "mixer", "swin", "attention_cnn" and "convnext", not of "resnet"'
train 2 none --depth 21
err_has '9 n + 2 layers deep (11, 20, 29, ...)'
train 2 none --img-size 3
err_has 'img_size 3'
finish
