#!/bin/bash
# Instruments on a checkpoint and during a training run: output, records and messages; observing does not change a bit of
# the weights.
. "$(dirname "$0")/lib.sh"
too_long_sanitized
idx data

events() { grep -c "\"event\":\"$1\"" "$2"; }

# A training run that measures every update, or every fourth, ends with the same weights.
train 0 plain --epochs 2
train 0 watched --epochs 2 --measure all --measure-every 1
cmp out/plain/last.safetensors out/watched/last.safetensors || fail 'instruments change the weights'
[ "$(events measure out/watched/metrics.jsonl)" = 12 ] || fail 'not a measurement for each update'
[ "$(events measure out/plain/metrics.jsonl)" = 0 ] || fail 'measured although no instrument was requested'
grep -q '"split":"train","images":16,"measurements":\[{"instrument":"accuracy"' out/watched/metrics.jsonl ||
    fail 'measurements are missing'
train 0 some --epochs 2 --measure entropy,nsi --measure-every 4 --measure-nodes 'blocks.0.*'
[ "$(events measure out/some/metrics.jsonl)" = 3 ] || fail 'not a measurement for every fourth update'
for line in 'measure: entropy,nsi' 'measure_every: 4' 'measure_nodes: blocks.0.*'; do
    grep -qxF "$line" out/some/args.yaml || fail "args.yaml has no line $line"
done
for name in plain watched some; do
    [ -s out/$name/events.out.tfevents.attscope ] || fail "$name has no events for TensorBoard"
done
grep -qa 'entropy/blocks.0.attn/mean' out/some/events.out.tfevents.attscope || fail 'the TensorBoard file lacks entropy'
[ -s out/runs.sqlite ] || fail 'no database of runs'

# A training run that is stopped and resumed continues to measure; its records are those of one run.
times() { sed -E 's/"(seconds|images_per_second|wait_share)":[^,}]+/"\1":X/g' "$1"; }
train 0 long --epochs 12 --measure entropy --measure-every 7
# shellcheck disable=SC2086
"$ATTSCOPE" train data $network $recipe --epochs 12 --output out --experiment cut --measure entropy --measure-every 7 \
    --recovery-interval 5 >/dev/null 2>&1 &
child=$!
until [ -e out/cut/checkpoint-1.safetensors ] || ! kill -0 $child 2>/dev/null; do sleep 0.01; done
kill -KILL $child 2>/dev/null
wait $child 2>/dev/null
run 0 train --resume out/cut/last.safetensors
cmp out/cut/last.safetensors out/long/last.safetensors || fail 'weights differ from those without the kill'
times out/long/metrics.jsonl | grep -v run_begin >long.lines
times out/cut/metrics.jsonl | grep -v run_begin | diff long.lines - >/dev/null || fail 'the records differ from those without the kill'
[ "$(events run_begin out/cut/metrics.jsonl)" = 1 ] || fail 'more than one run_begin event'

run 2 train data --measure-every 0 --model vit_tiny_patch16_224
for lonely in '--measure-every 7' '--measure-nodes blocks.0.*'; do
    # shellcheck disable=SC2086
    usage '--measure-every and --measure-nodes need --measure LIST (names of instruments, or `all`)' \
        train nowhere --model vit_tiny_patch16_224 $lonely
done
# shellcheck disable=SC2086
run 2 train data $network $recipe --measure entopy --output out --experiment never
err_has 'attscope: there is no instrument "entopy"; did you mean "entropy"?'
[ ! -e out/never ] || fail 'a refused training made its folder'

# Measuring a checkpoint prints a table for each instrument and writes records beside the checkpoint.
run 0 measure out/plain/last.safetensors data --with entropy,tns --json found.json --maps 3
grep -qE '^measure  32/32 ' stderr || fail "$command_line: unexpected progress lines: $(cat stderr)"
sed -E 's/[0-9]+\.[0-9]+(e-[0-9]+)?/X/g; s/ +/ /g' stdout >shape && mv shape stdout
out_is <<'TEXT'
entropy: how evenly queries spread their attention [nats]
 formula H = mean over queries i of -sum_j a_ij ln a_ij; between 0 (one
 token) and ln N (all alike)
 source Hyeon-Woo et al., ICCV 2023
 reading - over all queries, including the class token and the padding of
 windows
 - N keys: all tokens, or those of the query's window, or with the
 zero tokens around a map
 - the bound of a layer is its ln N, with causal attention the mean
 of ln 1, ..., ln N
 - natural logarithm
 scale mean: 0 if every query attends to one token; the bound if it
 attends to all alike (the formula)
 mean: X to X by layer in DeiT-Tiny, of ln 197 = X
 (attscope measure, deit_tiny_patch16_224, 200 photographs of
 ImageNet)
 mean: X on average over the layers of a trained ViT-S (Hyeon-Woo
 et al., ICCV 2023)

 mean mean ± deviation n bound of each head
 blocks.0.attn X ± X 32 X X X

tns: total neural stiffness of the whole network, and its components
 formula TNS = zeta* (zeta* / mu - 1), zeta* = max_t zeta, mu = mean_t zeta:
 the integral of 1[exists t: zeta >= max(mu (1 + M1), M2)] over M1,
 M2 > 0
 source definition: Huang et al., ICCV 2023; the closed form follows from
 it
 reading - computed from nsi in its readings attention, gated and unit
 - the first step of each stage is excluded (a stage ends where
 shapes change; a ViT is one stage)
 - mu is per sample
 - TNS grows with the square of zeta, so compare the scale of zeta
 as well
 - images in which zeta of a step is not defined are counted, the
 others averaged
 options dt=gates
 scale tns: 0 if zeta is the same in all steps (the formula)
 tns attention: X in DeiT-Tiny (zeta* X, mu X) (attscope
 measure, deit_tiny_patch16_224, 200 photographs of ImageNet)
 tns attention: X in ResNet-56 (zeta* X, mu X), X in
 ResNet-20 (X, X) (attscope measure, resnet56 and resnet20,
 10,000 test images of CIFAR-10)

 statistic mean ± deviation n
 tns attention X ± X 32
 zeta* attention X ± X 32
 mu attention X ± X 32
 zeta*/mu attention X ± X 32
 tns gated X ± X 32
 zeta* gated X ± X 32
 mu gated X ± X 32
 zeta*/mu gated X ± X 32
 tns unit X ± X 32
 zeta* unit X ± X 32
 mu unit X ± X 32
 zeta*/mu unit X ± X 32

out/plain
TEXT
cp stdout with_explanations
run 0 measure out/plain/last.safetensors data --with entropy,jacobian --brief --output shown --experiment brief
grep -qE '^  nuclear +mean ± deviation +n +uniform +of each head$' stdout || fail "no value of uniform attention: $(cat stdout)"
grep -qE '^  blocks.0.attn +[0-9.]+ ± [^ ]+ +32 +0\.80* ' stdout || fail "no uniform attention: $(cat stdout)"
! grep -qE '^  (formula|source|reading|options|scale) ' stdout || fail "--brief explains: $(cat stdout)"
mv with_explanations stdout
tr -d ' \n' <found.json >stdout
for figure in '"model":"vit_tiny_patch16_224"' '"split":"t10k"' '"images":32' '"n":32,"bound":1.609437' '"formula":"H=mean' \
    '"options":{"tns":{"dt":"gates"}}' \
    '{"instrument":"entropy","node":"blocks.0.attn","head":1,"statistic":"mean","mean":1.'; do out_has "$figure"; done
[ "$(sed -E 's/.*"event":"([a-z_]*)".*/\1/' out/plain/measure.jsonl | tr '\n' ' ')" = 'run_begin measure run_end ' ] ||
    fail 'measure.jsonl differs'
grep -qE '"step":12,"seconds":[0-9.e-]*,"model":"vit_tiny_patch16_224","checkpoint":"out/plain/last.safetensors","weights":"[0-9a-f]{16}".*"data":"data".*"precision":"f32".*"parameters":3748,.*"tokens":5' \
    out/plain/measure.jsonl || fail 'measure.jsonl does not describe the measurement'
grep -qaF '"captions":"[\"0, ' out/plain/maps.safetensors || fail 'the caption of the first image does not begin with class 0'
run 0 inspect out/plain/maps.safetensors
out_has 'output.logits                                    F32   [3, 4]'
out_has 'blocks.0.attn.patches                            U16   [3, 2, 5, 4]'
[ "$(ls out/plain | grep -c tmp)" = 0 ] || fail 'temporary files stay'

# Figures do not depend on batch size and threads. Operands may be given as flags. Mixed precision can be measured.
run 0 measure out/plain/last.safetensors data --with entropy --json again.json -b 5 --threads 1 --workers 1
figure() { tr -d ' \n' <"$1" | sed -E 's/.*"blocks.0.attn","statistic":"mean","mean":([0-9.]+).*/\1/'; }
awk -v a="$(figure found.json)" -v b="$(figure again.json)" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 1e-12) }' ||
    fail "entropy depends on batches or threads: $(figure found.json) and $(figure again.json)"
run 0 measure --checkpoint out/plain/last.safetensors data --with entropy --json - --amp --amp-force
grep -q '"measurements"' stdout || fail 'no case in mixed precision'
! grep -q 'formula  ' stdout || fail 'tables in the JSON output'

# Outside the folder of a run, figures are only printed, unless --output names a folder for them.
mkdir alone
cp out/plain/last.safetensors alone/some.safetensors
run 0 measure alone/some.safetensors data --with accuracy
err_has 'no record is kept: alone/some.safetensors does not lie in a run'
[ "$(ls alone)" = some.safetensors ] || fail 'records beside a checkpoint of no run'
usage "maps need an output folder: alone/some.safetensors does not lie in a run's folder" \
    measure alone/some.safetensors data --maps 1
run 0 measure alone/some.safetensors data --with accuracy --output kept --maps 1
[ "$(ls kept kept/some | tr '\n' ' ')" = 'kept: runs.sqlite some  kept/some: maps.safetensors measure.jsonl ' ] ||
    fail "kept files: $(ls kept kept/some | tr '\n' ' ')"
run 0 measure alone/some.safetensors data --with accuracy --output kept --experiment named
[ -s kept/named/measure.jsonl ] || fail 'not in the named folder'

# The folder of a training records figures of its own checkpoints only, also if a copy of one lies elsewhere.
cp -r out/plain own
rm -f own/measure*.jsonl
train 0 foreign --epochs 1 --seed 7
run 1 measure out/foreign/last.safetensors data --with accuracy --output . --experiment own
err_has './own holds a training run that out/foreign/last.safetensors does not belong to; choose another --experiment'
[ ! -e own/measure.jsonl ] || fail 'figures of a foreign checkpoint in the folder of a training run'
for name in last model_best checkpoint-0; do
    run 0 measure own/$name.safetensors data --with accuracy
    run 0 measure out/plain/$name.safetensors data --with accuracy --output . --experiment own
done

# In another output folder, each training run has a folder of its own, and figures of other weights are never replaced.
for run in out/plain out/foreign own; do run 0 measure $run data --with entropy --output several; done
run 0 measure own/checkpoint-0.safetensors data --with entropy --output several
[ "$(ls several | tr '\n' ' ')" = 'foreign own own-checkpoint-0 plain runs.sqlite ' ] || fail "folders: $(ls several)"
run 0 measure out/plain data --with tns --output several
err_has 'kept from the earlier measurements: entropy'
cp several/plain/measure.jsonl several.jsonl
run 1 measure out/foreign data --with entropy --output several --experiment plain
err_has 'several/plain has figures of other weights (out/plain/model_best.safetensors), which would be replaced; choose another --experiment'
cmp several.jsonl several/plain/measure.jsonl || fail 'figures of other weights are replaced'
# A damaged line need not name the checkpoint.
sed -i '1s/"checkpoint":"[^"]*",\{0,1\}//' several/plain/measure.jsonl
run 1 measure out/foreign data --with entropy --output several --experiment plain
err_has 'several/plain has figures of other weights, which would be replaced; choose another --experiment'
cp several.jsonl several/plain/measure.jsonl

# A later measurement keeps the figures of other instruments if weights, data and settings are the same, and otherwise
# replaces all.
instruments() { grep -o '"instrument":"[a-z_]*"' out/plain/measure.jsonl | uniq | cut -d'"' -f4 | sort | tr '\n' ' '; }
run 0 measure out/plain/last.safetensors data --with entropy,tns
run 0 measure out/plain/last.safetensors data --with accuracy
err_has 'kept from the earlier measurements: entropy, tns'
out_has 'top1          25.0000 ± 7.7771        32'
out_has 'mean ± std error'
[ "$(instruments)" = 'accuracy entropy tns ' ] || fail "earlier figures: $(instruments)"
run 0 measure out/plain/last.safetensors data --with nsi --amp --amp-force
err_has 'the earlier measurements are replaced, because their "precision" differs'
err_has 'they are kept in out/plain/measure.previous.jsonl'
[ "$(instruments)" = 'nsi ' ] || fail "figures of two precisions were mixed: $(instruments)"
grep -q '"instrument":"entropy"' out/plain/measure.previous.jsonl || fail 'replaced figures are lost'
# The weights have one digest in f32 and f64. Another image size changes them; the setting is named, not the weights.
run 0 measure out/plain/last.safetensors data --with nsi
run 0 measure out/plain/last.safetensors data --with tns --f64
err_has 'the earlier measurements are replaced, because their "precision" differs'
run 0 measure out/plain/last.safetensors data --with nsi
run 0 measure out/plain/last.safetensors data --with tns --img-size 16
err_has 'the earlier measurements are replaced, because their "img_size" differs'
run 0 measure out/plain/last.safetensors data --with nsi
run 0 measure out/plain/model_best.safetensors data --with tns
cmp -s out/plain/last.safetensors out/plain/model_best.safetensors ||
    err_has 'the earlier measurements are replaced, because the weights differ'
run 0 measure out/plain/last.safetensors data --with nsi --amp --amp-force
run 0 measure out/plain/model_best.safetensors data --with tns --amp --amp-force
[ "$(instruments)" = 'tns ' ] || fail "figures of two checkpoints were mixed: $(instruments)"
run 0 measure out/plain data --with tns --amp --amp-force
err_has 'out/plain is a folder; using its model_best.safetensors'
[ "$(instruments)" = 'tns ' ] || fail "figures of a run's folder: $(instruments)"
run 0 measure alone data --with tns
err_has 'alone is a folder; using its some.safetensors'
run 1 measure data data
err_has 'attscope: data is a folder without weights; expected model_best.safetensors'

# Weights and images are compared by content, not by path. The figures of other nodes stay.
cp -r data copied
cp -r out/plain moved
rm moved/measure*.jsonl
run 0 measure moved/last.safetensors data --with entropy,nsi
for spelling in "$PWD/moved/last.safetensors copied" "./moved/last.safetensors ./data/"; do
    # shellcheck disable=SC2086
    run 0 measure $spelling --with tns
    err_has "kept from the earlier measurements: entropy, nsi"
done
run 0 measure moved/last.safetensors data --with accuracy
err_has 'kept from the earlier measurements: '
run 0 measure moved/last.safetensors data --with nsi --nodes 'blocks.0.add1'
[ "$(grep -o '"instrument":"nsi","node":"[a-z0-9.]*"' moved/measure.jsonl | sort -u | wc -l)" = 2 ] ||
    fail '--nodes with fewer nodes removed other figures'
run 0 measure moved/last.safetensors data --with nsi --nodes 'blocks.0.add1, *.add2' --json nodes.json
[ "$(grep -o '"node": "blocks.0.add[12]"' nodes.json | sort -u | wc -l)" = 2 ] || fail "--nodes with two patterns: $(cat nodes.json)"
head -c 16 data/t10k-images-idx3-ubyte >copied/t10k-images-idx3-ubyte
tail -c +17 data/t10k-images-idx3-ubyte | tr '\0-\376' '\1-\377' >>copied/t10k-images-idx3-ubyte
run 0 measure moved/last.safetensors copied --with entropy
err_has 'because the images differ'

# Measurements of one run at once wait for each other, and keep each other's figures.
twins=()
for with in entropy nsi tns accuracy; do
    "$ATTSCOPE" measure out/plain/last.safetensors data --with $with --output twins >"twin-$with" 2>&1 &
    twins+=($!)
done
for twin in "${twins[@]}"; do wait "$twin" || fail "a measurement failed beside others: $(cat twin-*)"; done
for with in entropy nsi tns accuracy; do
    grep -q "\"instrument\":\"$with\"" twins/plain/measure.jsonl || fail "measurements at once lost $with"
done

# A note reports that the maps belong to other weights than the figures.
run 0 measure moved/last.safetensors data --with entropy --maps 1
run 0 measure moved/last.safetensors data --with entropy --f64
grep -q 'other weights' stderr && fail 'figures in f64 seem to be of other weights than the maps'
run 0 measure moved/checkpoint-0.safetensors data --with entropy
err_has 'moved/maps.safetensors shows other weights: a report leaves it out; new maps replace it'
if cmp -s moved/checkpoint-0.safetensors moved/last.safetensors; then fail 'the test needs two checkpoints'; fi
mkdir two && cp moved/maps.safetensors two/ && cp moved/measure.jsonl two/
run 0 report two -o two.html
err_has 'two/maps.safetensors is of other weights than the figures, so the report omits it'
grep -q '"maps":null' two.html || fail 'the report shows maps of other weights than the figures'

# The accuracy equals that of validate: the counts exactly, the loss, summed in another order, up to rounding.
run 0 validate data --checkpoint out/plain/last.safetensors --json validated.json
grep -qE '^evaluate  32/32 ' stderr || fail "$command_line: unexpected progress lines: $(cat stderr)"
run 0 measure out/plain/last.safetensors data --with accuracy --json measured.json
number_of() { # FILE PATTERN
    tr -d ' \n' <"$1" | sed -nE "s/.*$2([0-9.e+-]+).*/\1/p"
}
for score in top1 top5 loss; do
    validated=$(number_of validated.json "\"$score\":") measured=$(number_of measured.json "\"$score\",\"mean\":")
    awk -v a="$validated" -v b="$measured" -v bound="$([ $score = loss ] && echo 1e-14 || echo 0)" \
        'BEGIN { d = a - b; exit !(a != "" && b != "" && d <= bound && d >= -bound) }' || # the measured difference of the loss is 2e-16
        fail "$score: validate says $validated, measure $measured"
done

# If the reader closes the pipe, the table is lost, but not the records.
rm -f out/plain/measure*.jsonl
run 0 measure out/plain/last.safetensors data --with all
all=$(instruments)
rm -f out/plain/measure*.jsonl
for reader in true 'head -n 1'; do
    (
        "$ATTSCOPE" measure out/plain/last.safetensors data --with all 2>/dev/null
        echo $? >status
    ) | $reader >/dev/null
    [ "$(cat status)" = 0 ] || fail "| $reader: exit status $(cat status)"
    [ -n "$all" ] && [ "$(instruments)" = "$all" ] || fail "| $reader: $(instruments)"
    ls out/plain | grep -q tmp && fail "| $reader: temporary files stay"
done

# The next measurement takes over what a killed one left. A measurement makes its folder before the first image. It
# writes its records at the end, so a temporary file stays only if the signal comes at that moment.
"$ATTSCOPE" measure out/plain/last.safetensors data --with nsi,collapse:norms=all --f64 --output killed >/dev/null 2>&1 &
child=$!
until [ -e killed/plain ] || ! kill -0 $child 2>/dev/null; do sleep 0.01; done
kill -KILL $child 2>/dev/null
wait $child 2>/dev/null
echo '{' >killed/plain/measure.jsonl.tmp
run 0 measure out/plain/last.safetensors data --with nsi --output killed
! find killed -name '*.tmp' | grep . || fail 'the temporary file of a killed measurement stays'
[ -s killed/plain/measure.jsonl ] || fail 'no records after a killed measurement'

# A failed measurement leaves no folder.
mkdir broken
echo 'no picture' >broken/a.png
run 1 measure out/plain/last.safetensors broken --with entropy --output none
[ -e none/runs.sqlite ] && [ ! -e none/plain ] || fail 'an empty folder stays'

# Instruments that need no classes accept images of any class, or without classes.
mkdir other
cp data/t10k-images-idx3-ubyte other
awk 'BEGIN { printf "\\0\\0\\10\\1\\0\\0\\0\\40"; for (i = 0; i < 32; i++) printf "\\11" }' | unescape >other/t10k-labels-idx1-ubyte
run 0 measure out/plain/last.safetensors other --with entropy,nsi
run 0 measure out/plain/last.safetensors other
err_has 'accuracy is left out: the images have no classes, or others than the network'
out_has 'entropy: how evenly'
run 1 measure out/plain/last.safetensors other --with accuracy
err_has 'is of class 9, but the model has 4 classes'
# With fewer folders than classes there is no accuracy, because the labels are not those of the network.
for class in a b c; do mkdir -p "three/$class" && cp "$here/../goldens/images/420.jpg" "three/$class"; done
run 0 measure out/plain/last.safetensors three
err_has 'accuracy is left out: the images have no classes, or others than the network'
! grep -q '"accuracy"' out/plain/measure.jsonl || fail 'the accuracy for other classes is recorded'
run 1 measure out/plain/last.safetensors three --with accuracy,nsi
err_has 'the network has 4 classes, the data 3, numbered by their sorted names, so labels would not match'
rm -f out/plain/measure*.jsonl

# Images, folders and archives are measured in the order of their paths; the names of images with maps are those that
# the user gave.
mkdir -p loose/deep
cp "$here/../goldens/images/420.jpg" loose/b.jpg
cp "$here/../goldens/images/420.jpg" loose/deep/420.jpg
cp "$here/../goldens/images/grey.jpg" no-ending
tar cf loose.tar loose
mkdir flat
cp loose/b.jpg loose/deep/420.jpg flat
maps() { head -c 5000 "$1/maps.safetensors" | tr -cd ' -[]-~'; } # prints the header without backslashes
run 0 measure alone/some.safetensors loose/b.jpg loose loose.tar no-ending --output paths --map-images 'no-*,deep/420.jpg,0'
err_has '6 images in 4 paths, without classes'
err_has 'accuracy is left out: the images have no classes, or others than the network'
grep -q '"data":"loose/b.jpg and 3 more".*"images":6,' paths/some/measure.jsonl || fail 'other images are measured'
maps paths/some | grep -qF '"names":"["no-ending","loose/deep/420.jpg","loose.tar/loose/deep/420.jpg","b.jpg"]"' ||
    fail "other images have maps: $(maps paths/some)"
[ "$(maps paths/some | grep -oE '"captions":"[^]]*' | grep -oE '["[]predicted: class [0-9]' | wc -l)" = 4 ] ||
    fail "captions of images without classes: $(maps paths/some)"
# Figures of the same images are kept together, wherever the images lie.
cp -r loose moved-loose
run 0 measure alone/some.safetensors loose/b.jpg loose/deep/420.jpg --with entropy --output paths
run 0 measure alone/some.safetensors moved-loose/b.jpg moved-loose/deep/420.jpg --with nsi --output paths
err_has 'kept from the earlier measurements: entropy'
run 0 measure alone/some.safetensors loose/b.jpg --with entropy --output paths
err_has 'loose/b.jpg: 1 image, without classes'
usage 'accuracy needs classes: name one data set instead of 2 paths of images' \
    measure alone/some.safetensors loose loose/b.jpg --with accuracy
run 1 measure alone/some.safetensors loose/b.jpg --with accuracy
err_has 'loose/b.jpg is an image, not a data set with classes; expected a folder of class folders'
mkdir classless
cp loose/b.jpg classless
run 1 measure alone/some.safetensors classless --with accuracy
err_has 'accuracy needs classes, but classless has no class folders: it contains no .jpg'
run 1 measure alone/some.safetensors loose nowhere.jpg
err_has 'attscope: nowhere.jpg does not exist'
for wrong in 'zebra.jpg|no image is called "zebra.jpg"; the first is called "420.jpg"' \
    '0,2|there is no image 2; the data set has 2, numbered from 0' '0,|"0," has an empty item'; do
    run 2 measure alone/some.safetensors flat --with entropy --output paths --map-images "${wrong%%|*}"
    err_has "${wrong#*|}"
done
run 0 measure out/plain/last.safetensors data --with entropy --output paths --experiment idx --map-images 31,4
maps paths/idx | grep -qF '"names":"["t10k-images-idx3-ubyte[31]","t10k-images-idx3-ubyte[4]"]"' ||
    fail "other images of an IDX file: $(maps paths/idx)"
run 0 measure out/plain/last.safetensors data --with entropy --output paths --experiment idx --map-images '*ubyte[7]'
maps paths/idx | grep -qF '"names":"["t10k-images-idx3-ubyte[7]"]"' || fail "not the image that is named: $(maps paths/idx)"

# Names may contain commas and backslashes. An image that is named twice has one map.
mkdir odd
for name in 'a,b.jpg' 'a\b.jpg' 'ab.jpg'; do cp loose/b.jpg "odd/$name"; done
run 0 measure alone/some.safetensors odd --with entropy --output paths --map-images 'a\,b.jpg,ab.jpg,0,a\,?.jpg'
tensor_rows() { head -c 5000 "$1/maps.safetensors" | tr -d '\\' | grep -aoE '"label":[^]]*"shape":\[[0-9]+' | grep -oE '[0-9]+$'; }
[ "$(tensor_rows paths/some)" = 2 ] || fail "$command_line: maps of $(tensor_rows paths/some) images, expected 2"
maps paths/some | grep -qF '"names":"["a,b.jpg","ab.jpg"]"' || fail "$command_line: $(maps paths/some)"
run 0 measure alone/some.safetensors odd --with entropy --output paths --map-images 'a\b.jpg'
maps paths/some | grep -qF '"names":"["ab.jpg"]"' || fail "$command_line: $(maps paths/some)" # "maps" drops backslashes
grep -qaF 'a\\\\b.jpg' paths/some/maps.safetensors || fail "$command_line: maps of another image than a\\b.jpg"
run 2 measure alone/some.safetensors odd --with entropy --output paths --map-images 'a\,c.jpg'
err_has 'no image is called "a,c.jpg"'

# An image that is too large is left out of the maps, as a damaged one is.
mkdir huge
cp "$here/../goldens/images/grey.jpg" huge/a.jpg
cp "$here/../goldens/images/grey.jpg" huge/b.jpg
frame=$(LC_ALL=C grep -obUaP '\xff\xc0' huge/a.jpg | head -n 1 | cut -d: -f1)
printf '\377\334\377\334' | dd of=huge/a.jpg bs=1 seek=$((frame + 5)) conv=notrunc 2>dd.log # 65500 x 65500 pixels
run 1 measure alone/some.safetensors huge --with entropy --output paths --maps 2
err_has '65500 x 65500 pixels are 4290250000; an image may have at most 67108864'
run 0 measure alone/some.safetensors huge --with entropy --output paths --maps 2 --skip-corrupt
maps paths/some | grep -qF '"names":"["b.jpg"]"' || fail "$command_line: $(maps paths/some)"

# Checkpoints named model.safetensors lie in one folder for each network, and their figures do so too.
mkdir -p hub/one hub/two
cp alone/some.safetensors hub/one/model.safetensors
cp alone/some.safetensors hub/two/pytorch_model.safetensors
run 0 measure hub/one/model.safetensors data --with entropy --output common
(cd hub/two && run 0 measure pytorch_model.safetensors ../../data --with entropy --output ../../common)
for name in one two; do [ -s common/$name/measure.jsonl ] || fail "no figures in common/$name: $(ls common)"; done

# A network whose activations are zero has no stiffness: |x_t| = 0.
header=$((8 + $(od -An -t u8 -N 8 alone/some.safetensors))) size=$(wc -c <alone/some.safetensors)
{ head -c $header alone/some.safetensors && head -c $((size - header)) /dev/zero; } >alone/dead.safetensors
run 0 measure alone/dead.safetensors data --with nsi
out_has '  not defined in 32 of 32 images'
out_has 'defined if |x_t| = 0'
out_has '  unit: the same figures as attention'
! grep -q 'nan' stdout || fail "$command_line: NaN in the table: $(cat stdout)"
run 0 measure alone/dead.safetensors data --with tns --json dead.json
[ "$(grep -c '  not defined in 32 of 32 images$' stdout)" = "$(grep -c '"mean": null' dead.json)" ] ||
    fail "$command_line: $(cat stdout)"
! grep -q 'nan' stdout || fail "$command_line: NaN in the table: $(cat stdout)"
out_has '  not defined in 32 of 32 images'

# A list with only exceptions means all other instruments.
named() { grep -o '"name": "[a-z_]*"' "$1" | cut -d'"' -f4; }
run 0 measure alone/some.safetensors data --with all --json all.json
run 0 measure alone/some.safetensors data --with -accuracy,-nsi --json some.json
[ "$(named some.json)" = "$(named all.json | grep -vxE 'accuracy|nsi')" ] && named all.json | grep -qx nsi ||
    fail "$command_line: unexpected instruments: $(cat some.json)"
run 0 measure alone/some.safetensors data --with -nsi
out_has 'accuracy: how often'
run 2 measure alone/some.safetensors data --with accuracy,-accuracy
err_is <<<'attscope: "accuracy,-accuracy" selects no instrument'

# Some of the images, evenly spread: image i n / N of n. Their accuracy is that of these images alone.
run 0 measure alone/some.safetensors data --with accuracy --limit 5 --json limited.json
tr -d ' \n' <limited.json >stdout
out_has '"images":5,'
run 0 measure alone/some.safetensors data --with accuracy --limit 1000 --json all.json
tr -d ' \n' <all.json >stdout
out_has '"images":32,'
# Readings without gates are the same: one table is enough.
run 0 measure alone/some.safetensors data --with nsi --brief
out_has '  gated: the same figures as attention'
[ "$(grep -c '^  nsi attention ' stdout)" -le 1 ] || fail "$command_line: equal tables are printed"
usage 'measure takes the checkpoint first: attscope measure CHECKPOINT DATA...' measure data alone/some.safetensors

# Wrong arguments are refused with one message.
usage '--with: no instrument is named; expected names, or all' measure alone/some.safetensors data --with ''
usage 'measure needs CHECKPOINT and DATA; see attscope measure --help' measure alone/some.safetensors
usage 'measure: "more" is one operand too many; see attscope measure --help' measure a --data-dir b more
# Unusable class names are refused before anything is measured.
cp out/plain/last.safetensors unmeasured.safetensors
mkfifo pipe
for arguments in '' '--maps 1'; do
    # shellcheck disable=SC2086
    run 2 measure unmeasured.safetensors data --output names --labels nosuch $arguments
    err_has 'labels: "nosuch" is neither a file nor a data set'
    # shellcheck disable=SC2086
    run 1 measure unmeasured.safetensors data --output names --labels cifar10 $arguments
    err_has 'cifar10 names 10 classes, but the network has 4'
    # shellcheck disable=SC2086
    run 1 measure unmeasured.safetensors data --output names --labels pipe $arguments
    err_has 'pipe is not a regular file'
done
[ ! -e names ] || fail "$command_line: the measurement began before the class names were checked"
usage 'maps takes the first images, map_images names them: only one of both can be given' \
    measure out/plain/last.safetensors data --maps 1 --map-images 3
usage 'experiment names a folder in output, which is missing' measure alone/some.safetensors data --experiment x
run 2 measure absent.safetensors nowhere --with entropy,distanse
err_has 'attscope: there is no instrument "distanse"; did you mean "distance"?'
run 0 measure alone/some.safetensors data --with nsi:per=block,residual:centre=median --json options.json
tr -d ' \n' <options.json >stdout
for figure in '{"instrument":"nsi","node":"blocks.0","statistic":"block"' '"statistic":"compositemedian"'; do out_has "$figure"; done
run 0 measure out/plain/last.safetensors data --with nsi
run 0 measure out/plain/last.safetensors data --with nsi:per=block
err_has 'kept from the earlier measurements: nsi'
[ "$(grep -o '"statistic":"[a-z]*"' out/plain/measure.jsonl | sort -u | cut -d'"' -f4 | tr '\n' ' ')" = 'attention block gated unit ' ] ||
    fail 'one reading of an instrument does not keep the others'
# A network with weights drawn anew: the seed alone decides, and the records have a folder of their own.
run 0 measure out/plain/last.safetensors data --with residual,head_chains:count=2,seed=3 --init-seed 5 --json random.json
err_has 'no record is kept of random weights'
run 0 measure out/plain/last.safetensors data --with residual,head_chains:count=2,seed=3 --init-seed 5 --output random
[ -s random/plain-init-5/measure.jsonl ] || fail "no records of random weights: $(find random)"
grep -q '"init_seed":"5"' random/plain-init-5/measure.jsonl || fail 'the records lack the seed of the weights'
first=$(grep -c . random.json)
run 0 measure out/plain/last.safetensors data --with residual,head_chains:count=2,seed=3 --init-seed 6 --json other.json
[ "$first" -eq "$(grep -c . other.json)" ] && ! cmp -s random.json other.json || fail 'another seed has the same weights'
run 2 measure out/plain/last.safetensors data --with residual --init-seed 5 --output out --experiment plain
err_has 'out/plain holds a training run, and the figures of random weights need a folder of their own'
run 2 measure absent.safetensors data --with nsi:block
err_has 'attscope: instrument nsi: "block" is not option=value; did you mean "per=block"?'
run 2 measure alone/some.safetensors data --nodes 'blocks.7.*'
err_has 'matches "blocks.7.*"'
run 2 measure alone/some.safetensors data --with entropy --nodes attn
err_has 'the network has no attention that matches "attn"; did you mean "*attn*"?'
usage 'measure takes one checkpoint at a time, and the operand after it, out/plain/last.safetensors, is a checkpoint, too' \
    measure alone/some.safetensors out/plain/last.safetensors data
run 1 measure absent.safetensors data --json nowhere/x.json
err_is <<'TEXT'
attscope: nowhere/x.json: No such file or directory
TEXT
echo 'not a database' >kept/runs.sqlite
run 1 measure alone/some.safetensors data --with accuracy --output kept
err_has 'attscope: kept/runs.sqlite is not an SQLite database; move it away'

# Mixed images have no single class, so no accuracy is recorded for them, not even NaN.
for measure in accuracy,entropy accuracy; do
    # shellcheck disable=SC2086
    run 0 train data $network $recipe --epochs 1 --mixup 0.8 --measure $measure --measure-every 2 --output mixed --experiment $measure
    err_has 'accuracy is not measured while training: mixed images have no single class'
    ! grep -q '"instrument":"accuracy"' mixed/$measure/metrics.jsonl || fail "$command_line: accuracy of mixed images is recorded"
done
[ "$(grep -c '"instrument":"entropy"' mixed/accuracy,entropy/metrics.jsonl)" = 3 ] || fail 'entropy of mixed images is missing'
! grep -q '"event":"measure"' mixed/accuracy/metrics.jsonl || fail 'measurements without figures'

run 0 measure --help
for word in entropy distance jacobian nsi tns residual accuracy '--help-instruments' '--with LIST' 'Example:'; do out_has "$word"; done
! grep -q 'ICCV 2023' stdout || fail "$command_line: sources, which --help-instruments shows"
run 0 measure --help-instruments
for word in entropy distance jacobian nsi tns residual accuracy 'ICCV 2023' 'per='; do out_has "$word"; done


# The modules of a checkpoint are shown, and a note says if a flag replaces them.
# shellcheck disable=SC2086
run 0 train data $network $recipe --epochs 1 --modules cb --output out --experiment context
run 0 validate data --checkpoint out/context
err_has ' 4 classes, cb; network: '
! grep -q 'replaces' stderr || fail "$command_line: a note about modules that no flag gave"
run 0 measure out/context data --modules none --with entropy
err_has ' 4 classes; network: '
err_has '--modules none replaces the modules of the checkpoint: cb'
# --budget adds costly instruments, in the order of the list, as far as the time is enough.
run 0 measure out/context data --with entropy --budget 1000000 --output budget --experiment all
err_has 'rank takes about'
grep -q '"instrument": *"rank"' budget/all/measure.jsonl || fail "$command_line: rank is not recorded"
grep -q '"instrument": *"paths"' budget/all/measure.jsonl || fail "$command_line: paths is not recorded"
run 0 measure out/context data --with -accuracy --budget 0.000001
err_has 'is left out: it takes longer than the'
out_has 'residual'
! grep -q '^accuracy' stdout || fail "$command_line: -accuracy is forgotten"
finish
