#!/bin/bash
# Built-in class names: for which networks they are used, what else gives names, and the labels of folders named by
# synsets.
. "$(dirname "$0")/lib.sh"
too_long_sanitized
idx data
picture=$here/../goldens/images/420.jpg
small='--model vit_tiny_patch16_224 --img-size 8 --patch-size 8 --embed-dim 8 --depth 1 --num-heads 2'

# drawn NAME CLASSES: makes an untrained network. foreign: the same file as other programs write it, without information
# about a training run.
drawn() {
    # shellcheck disable=SC2086
    run 0 train data $small --num-classes "$2" --in-chans 3 --epochs 0 --threads 1 --output out --experiment "$1"
}
foreign() {
    mkdir -p "$(dirname "$2")"
    run 0 convert "out/$1/last.safetensors" weights.safetensors
    LC_ALL=C sed 's/"attscope/"xttscope/g' weights.safetensors >"$2"
}
# names: prints the class name of the first prediction. predict CODE ARGUMENT...: the best three classes of a foreign
# network.
predict() {
    local code=$1
    shift
    # shellcheck disable=SC2086
    run "$code" predict "$@" --topk 3 --threads 1 $small
}
number() { awk 'NR == 2 { print $3 }' stdout; }
names() { awk 'NR == 2 { $1 = $2 = $3 = ""; print }' stdout | sed 's/^ *//'; }
expect() { # FILE: the class name must be that of the file's line
    local line
    line=$(($(number) + 1))
    [ "$(names)" = "$(sed -n ${line}p "$1")" ] || fail "$command_line: class $(number) is \"$(names)\", expected $1's"
}
lists=$here/../../src/base/core/classes
sed 's/^n[0-9]* //' "$lists/imagenet-1k.txt" >labels
cut -d' ' -f1 "$lists/imagenet-1k.txt" >synsets
: >nothing

# A network of another program with a thousand classes is taken as ImageNet's, also after convert; one that attscope
# trained is not.
drawn thousand 1000
foreign thousand thousand.safetensors
predict 0 thousand.safetensors "$picture"
err_has 'the class names are those of imagenet-1k; --labels NAME sets others'
expect labels
# shellcheck disable=SC2086
run 0 convert thousand.safetensors converted.safetensors $small
predict 0 converted.safetensors "$picture"
expect labels
predict 0 out/thousand/last.safetensors "$picture"
expect nothing
# shellcheck disable=SC2086
run 0 convert out/thousand/last.safetensors own.safetensors
predict 0 own.safetensors "$picture"
expect nothing
predict 0 out/thousand/last.safetensors "$picture" --labels imagenet-1k
expect labels
! grep -q 'class names' stderr || fail "$command_line: a note about class names that --labels gave"
predict 0 thousand.safetensors "$picture" --labels synsets
expect "$lists/imagenet-1k.txt"

# Ten classes have no names, unless the file or its folder is named after a data set.
drawn ten 10
foreign ten ten.safetensors
foreign ten vit_CIFAR-10.safetensors
foreign ten fashion_mnist/model.safetensors
foreign ten vit_cifar100.safetensors
predict 0 ten.safetensors "$picture"
err_has 'the names of the classes are not known; --labels, a file or a name such as cifar10, sets them'
expect nothing
predict 0 vit_cifar100.safetensors "$picture"
expect nothing
predict 0 vit_CIFAR-10.safetensors "$picture"
expect "$lists/cifar10.txt"
predict 0 fashion_mnist/model.safetensors "$picture"
expect "$lists/fashion-mnist.txt"
predict 0 ten.safetensors "$picture" --labels fashion-mnist --json -
grep -qxF "$(sed -n 's/.*"label": "\(.*\)",*$/\1/p' stdout | head -n 1)" "$lists/fashion-mnist.txt" || fail 'no label in JSON'
predict 1 ten.safetensors "$picture" --labels cifar100
err_has 'cifar100 names 100 classes, but the network has 10'
predict 2 ten.safetensors "$picture" --labels cifar-10
err_has 'labels: "cifar-10" is neither a file nor a data set whose classes are built in'

# A number of classes that only one order of ImageNet-21k has gives its names. COCO must be named.
drawn pruned 11221
foreign pruned pruned.safetensors
predict 0 pruned.safetensors "$picture"
err_has 'the class names are those of imagenet-21k-p; --labels NAME sets others'
awk '$2 ~ /p/ { print }' "$lists/imagenet-21k.txt" | cut -d' ' -f3- >pruned
expect pruned
drawn eighty 80
foreign eighty eighty.safetensors
predict 0 eighty.safetensors "$picture"
expect nothing
predict 0 eighty.safetensors "$picture" --labels coco
expect "$lists/coco.txt"

# A file of class names must have one line per class. Control characters of a terminal are not printed, from any source.
seq -f 'class %.0f' 9 >names
predict 1 ten.safetensors "$picture" --labels names
err_has 'names names 9 classes, but the network has 10'
seq -f 'class %.0f' 11 >names
predict 1 ten.safetensors "$picture" --labels names
err_has 'names names 11 classes, but the network has 10'
seq -f "$(printf '\033[31m\302\233')%.0f" 10 >names
predict 0 ten.safetensors "$picture" --labels names
grep -q '  ?\[31m??[0-9]*$' stdout || fail "$command_line: $(cat -v stdout)"
mkdir beside
cp ten.safetensors beside
printf '{"architecture":"vit\\u001b[31m\\n"}' >beside/config.json
predict 0 beside/ten.safetensors "$picture"
err_has 'config.json, which names vit?[31m?, was left out'
mkdir -p "$(printf 'steering/a\033b')" && cp "$picture" "$(printf 'steering/a\033b')"
# shellcheck disable=SC2086
run 0 train steering $small --epochs 1 --batch-size 1 --warmup-epochs 0 --no-aug --threads 1 --output out --experiment steered
predict 0 out/steered/last.safetensors "$picture"
grep -q '  0  a?b$' stdout || fail "$command_line: $(cat -v stdout)"

# convert keeps the names of a config.json, which does not go with the file: before the names of ImageNet, and also to
# number class folders.
foreign thousand configured/model.safetensors
seq -f 'kind %.0f' 1000 >kinds
{
    printf '{"label_names": ['
    sed 's/.*/"&"/' kinds | paste -sd,
    printf ']}'
} >configured/config.json
predict 0 configured/model.safetensors "$picture"
expect kinds
# shellcheck disable=SC2086
run 0 convert configured/model.safetensors kept.safetensors $small
predict 0 kept.safetensors "$picture"
expect kinds
run 0 convert kept.safetensors again.safetensors
predict 0 again.safetensors "$picture"
expect kinds
mkdir -p 'kinds_of_folders/kind 5' && cp "$picture" 'kinds_of_folders/kind 5'
run 0 validate kinds_of_folders --checkpoint kept.safetensors --threads 1
err_has 'kinds_of_folders: 1 image, 1000 classes, numbered by the class names of the training'

# If a checkpoint has fewer names than classes, the other classes are shown as numbers.
# shellcheck disable=SC2086
run 0 train steering $small --num-classes 3 --epochs 1 --batch-size 1 --warmup-epochs 0 --no-aug --threads 1 --output out --experiment few
predict 0 out/few/last.safetensors "$picture"
[ "$(sed 1d stdout | awk 'NF == 4' | wc -l)" -eq 1 ] || fail "$command_line: $(cat -v stdout)"
# A checkpoint with more names than classes is damaged: the names are not shown.
mkdir -p several/oneXXtwo && cp "$picture" several/oneXXtwo
# shellcheck disable=SC2086
run 0 train several $small --epochs 1 --batch-size 1 --warmup-epochs 0 --no-aug --threads 1 --output out --experiment more
LC_ALL=C sed 's/oneXXtwo/one\\ntwo/' out/more/last.safetensors >more.safetensors
predict 0 out/more/last.safetensors "$picture"
[ "$(names)" = oneXXtwo ] || fail "$command_line: $(cat -v stdout)"
predict 0 more.safetensors "$picture"
[ -z "$(names)" ] || fail "$command_line: $(cat -v stdout)"
! LC_ALL=C grep -q "$(printf '\033')" stdout stderr || fail "$command_line: a control character"

# Folders named by synsets get the labels of the network's classes, however few folders there are; class names are shown
# with the synsets.
for synset in n01440764 n03126707; do
    mkdir -p "photographs/$synset" && cp "$picture" "photographs/$synset/1.jpg"
done
# shellcheck disable=SC2086
run 0 validate photographs --checkpoint thousand.safetensors $small --threads 1
err_has 'photographs: 2 images, 1000 classes, numbered by the synsets of imagenet-1k'
# shellcheck disable=SC2086
run 0 train photographs $small --epochs 1 --batch-size 2 --warmup-epochs 0 --no-aug --threads 1 --output out --experiment two
predict 0 out/two/last.safetensors "$picture"
[ "$(sed 1d stdout | awk '{ print $4, $5 }' | sort | tr '\n' ' ')" = 'n01440764 tench n03126707 crane ' ] ||
    fail "$command_line: $(cat stdout)"
run 0 measure out/two/last.safetensors photographs --with entropy --maps 2 --threads 1
run 0 report out/two -o two.html
grep -q '"caption":"[^"]*n03126707 crane' two.html || fail 'the page has no label beside a synset'

# Folders named by class names whose sorted order is not that of the network.
sed 's|/|_|' "$lists/fashion-mnist.txt" | while read -r class; do
    mkdir -p "called/$class" && cp "$picture" "called/$class/1.jpg"
done
# shellcheck disable=SC2086
run 0 validate called --checkpoint fashion_mnist/model.safetensors $small --threads 1
err_has 'warning: class 0 is "Ankle boot" in the data and "T-shirt/top" in the network'
# A class map in which only class 0 of the network has another label.
mkdir -p one && cp -r called/Trouser one
{ echo other; sed -n 2,9p "$lists/fashion-mnist.txt"; echo T-shirt/top; } >shifted
# shellcheck disable=SC2086
run 0 validate one --checkpoint fashion_mnist/model.safetensors --class-map shifted $small --threads 1
err_has 'warning: class 9 is "T-shirt/top" in the data and "Ankle boot" in the network'

# A training run that begins with the classifier of other classes says so.
mkdir -p pets/cat pets/dog && cp "$picture" pets/cat/1.jpg && cp "$picture" pets/dog/1.jpg
brief="--epochs 1 --batch-size 2 --warmup-epochs 0 --no-aug --threads 1 --output out"
# shellcheck disable=SC2086
run 0 train pets --initial-checkpoint out/two/last.safetensors $brief --experiment pets
err_has 'out/two/last.safetensors: its classifier is kept, because it has as many classes as the data, but class 0 is "cat" in the data and "n01440764" in the file'
# shellcheck disable=SC2086
run 0 train called --initial-checkpoint fashion_mnist/model.safetensors $small $brief --experiment called
err_has 'but class 0 is "Ankle boot" in the data and "T-shirt/top" in the file'
# shellcheck disable=SC2086
run 0 train photographs --initial-checkpoint out/two/last.safetensors $brief --experiment again
! grep -q 'its classifier is kept' stderr || fail "$command_line: $(cat stderr)"

# ReaL: images without a right class are not judged. A damaged file is no damaged image.
mkdir -p real/n01440764 && cp "$picture" real/n01440764/ILSVRC2012_val_00000001.jpg
cp "$picture" real/n01440764/ILSVRC2012_val_00000003.jpg
echo '[[0, 5], [], []]' >real.json
# shellcheck disable=SC2086
run 0 validate real --checkpoint thousand.safetensors --real-labels real.json --json found.json $small --threads 1
out_has '2 images   ReaL: 1 of 2 images judged'
grep -q '"judged": 1,' found.json || fail 'no number of judged images in JSON'
echo '[[0, 5], []' >real.json
# shellcheck disable=SC2086
run 1 validate real --checkpoint thousand.safetensors --real-labels real.json $small --threads 1
err_has 'real.json'
! grep -q skip_corrupt stderr || fail "$command_line: advice about images"
finish
