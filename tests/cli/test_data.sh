#!/usr/bin/env bash
# Folders with images that cannot be decoded, class names, and the report of waiting times.
. "$(dirname "$0")/lib.sh"

images=$here/../goldens/images
small='--model vit_tiny_patch16_224 --img-size 16 --patch-size 8 --embed-dim 16 --depth 1 --num-heads 2'
short='--epochs 1 --batch-size 4 --opt adamw --lr 1e-3 --warmup-epochs 0 --no-aug --threads 1 --output out'

# Two classes of eight images in each split. One training image is truncated; one evaluation image is not an image.
for split in train val; do
    for class in cat dog; do
        mkdir -p "data/$split/$class"
        for i in 1 2 3 4 5 6 7 8; do
            cp "$images/420.jpg" "data/$split/$class/$i.jpg"
        done
    done
done
head -c 300 "$images/420.jpg" >data/train/cat/3.jpg
echo 'no image' >data/val/dog/5.jpg

# shellcheck disable=SC2086
run 1 train data $small $short --experiment fatal
err_has 'attscope: data/train/cat/3.jpg: not a JPEG that can be decoded'
err_has '--skip-corrupt skips such images'
# shellcheck disable=SC2086
run 0 train data $small $short --experiment lenient --skip-corrupt --json lenient.json
err_has 'image replaced: data/train/cat/3.jpg: not a JPEG'
err_has 'image left out: data/val/dog/5.jpg: not a JPEG, PNG or WebP image'
err_has 'images that cannot be decoded: 1 replaced per epoch'
grep -qE '"train_corrupt": ?1' lenient.json || fail 'train_corrupt is not 1'
grep -qE '"event": ?"warning".*data/train/cat/3.jpg.*"set": ?"train"' out/lenient/metrics.jsonl || fail 'no warning in metrics.jsonl'
head -1 out/lenient/summary.csv | grep -q 'train_corrupt.*eval_corrupt' || fail 'summary.csv does not count corrupt images'
grep -qE '"event": ?"epoch".*"wait_share"' out/lenient/metrics.jsonl || fail 'no wait_share in metrics.jsonl'

checkpoint=out/lenient/last.safetensors
# Checkpoints keep the class names of the training; --labels gives others.
run 0 predict $checkpoint data/val/cat/1.jpg
[ "$(awk 'NR > 1 { print $NF }' stdout | sort | tr '\n' ' ')" = 'cat dog ' ] || fail "class names: $(cat stdout)"
printf 'cat\ndog\n' | cmp -s - out/lenient/classes.txt || fail 'classes.txt does not hold the class names'
printf 'miau\nwau\n' >others
printf '\n\r\n' >>others # empty lines at the end are ignored
run 0 predict $checkpoint data/val/cat/1.jpg --labels others
[ "$(awk 'NR > 1 { print $NF }' stdout | sort | tr '\n' ' ')" = 'miau wau ' ] || fail "labels: $(cat stdout)"

run 1 validate data --checkpoint $checkpoint
err_has 'attscope: data/val/dog/5.jpg: not a JPEG, PNG or WebP image'
err_has '--skip-corrupt leaves such images out'
run 0 validate data --checkpoint $checkpoint --skip-corrupt --json result.json
err_has 'skipped because they cannot be decoded or resized: 1 image'
grep -qE '"count": ?15' result.json || fail 'validate did not count 15 images'

# Labels of training and evaluation are matched by class name: "cat" is missing in the evaluation, "dog" keeps its
# label.
mkdir -p names/val && cp -r data/train names/train && cp -r data/train/dog names/val/dog && cp "$images/420.jpg" names/train/cat/3.jpg
# shellcheck disable=SC2086
run 0 train names $small $short --experiment names
err_has 'names, val: 8 images, 2 classes, numbered by the class names of the training'
run 0 validate names --checkpoint out/names/last.safetensors
err_has 'names, val: 8 images, 2 classes, numbered by the class names of the training'
trained=$(sed -n 's/.*"eval_loss": *\([0-9.]*\).*/\1/p' out/names/metrics.jsonl | tail -1)
grep -qF "loss $(printf %.4f "$trained")" stdout || fail "validate and training differ: $trained, $(cat stdout)"
mv names/val/dog names/val/wolf
# shellcheck disable=SC2086
run 1 train names $small $short --experiment other
err_has 'attscope: names: val has the class "wolf", which train lacks'
run 1 validate names --checkpoint out/names/last.safetensors
err_has "the network has 2 classes, the data 1, numbered by their sorted names, so labels would not match; give --class-map FILE with the names in the network's order"

# The list of classes that a training run writes is a class map, also with blanks in names, and as Windows writes it.
for class in 'bird of paradise' 'bird cherry'; do
    mkdir -p "birds/train/$class" && cp data/train/dog/[1-4].jpg "birds/train/$class"
done
cp -r birds/train birds/val
# shellcheck disable=SC2086
run 0 train birds $small $short --experiment birds
sed '1s/^/\xEF\xBB\xBF/; s/$/\r/' out/birds/classes.txt >birds.txt
run 0 validate birds --checkpoint out/birds/last.safetensors --class-map birds.txt
err_has 'birds, val: 8 images, 2 classes, numbered by the class map'

# A split whose images lie in no class folders is named.
rm -r birds/val && mkdir birds/val && cp data/train/dog/[12].jpg birds/val
# shellcheck disable=SC2086
run 1 train birds $small $short --experiment flat
err_has 'attscope: birds has no split "validation": val/ exists, but its images (2) are not in class folders; only "train" has class folders; put the images into one folder for each class'
err_has "--val-split '' to train without evaluation"

# Class folders named by numbers, and a checkpoint that does not name its classes.
run 0 convert $checkpoint nameless.safetensors
LC_ALL=C sed -i 's/attscope.train.classes/attscope.train.xxxxxxx/; s/attscope.train.task/attscope.train.xxxx/g' \
    nameless.safetensors
mkdir -p one/1 order/9 order/10
for folder in one/1 order/9 order/10; do cp data/train/dog/1.jpg $folder; done
run 1 validate one --checkpoint nameless.safetensors
err_has 'attscope: one: the class folders are named by numbers, but none is "0", so "1" can be class 0 or class 1 of the network; say which by --class-map FILE (class_map), one name a line'
run 0 measure nameless.safetensors one --with entropy
err_has 'one: 1 image, without classes'
run 0 validate order --checkpoint nameless.safetensors
err_has 'warning: the classes are numbered in timm'"'"'s order of their names ("9" before "10"), but torchvision sorts names as text ("10" before "9")'
err_has "if it was torchvision's, give --class-map FILE with the names in that order"
# A training records which numbers its classes have, and a conversion keeps them.
cp -r order zero && mv zero/9 zero/0 && mv zero/10 zero/1
# shellcheck disable=SC2086
run 0 train zero $small $short --batch-size 2 --experiment zero
run 0 convert out/zero/last.safetensors zero.safetensors
for file in out/zero/last.safetensors zero.safetensors; do
    run 0 validate one --checkpoint $file
    err_has 'one: 1 image, 2 classes, numbered by the class names of the training'
    run 1 validate order --checkpoint $file
    err_has 'attscope: order: folder "9" is not among the class names of the training ("0", "1"); pass --class-map FILE'
done
# shellcheck disable=SC2086
run 0 train order $small $short --batch-size 2 --experiment order
run 0 validate order --checkpoint out/order/last.safetensors
! grep -q torchvision stderr || fail "$command_line: a warning about an order that the training recorded"
# A training run whose classes are named from 1 on does not take a folder "0" for one of them.
mkdir -p ones/1 ones/2 zeros/0 zeros/1
for folder in ones/1 ones/2 zeros/0 zeros/1; do cp data/train/dog/1.jpg $folder; done
# shellcheck disable=SC2086
run 0 train ones $small $short --batch-size 2 --experiment ones
run 1 validate zeros --checkpoint out/ones/last.safetensors
err_has 'attscope: zeros: folder "0" is not among the class names of the training ("1", "2"); pass --class-map FILE'

# The labels of shards are names in both splits, or numbers in both.
mkdir wds labels
for split in train val; do
    for i in 0 1; do
        cp "$images/420.jpg" wds/$i.jpg
        { [ $split = train ] && echo "name $i" || echo $i; } >wds/$i.cls
    done
    tar cf labels/$split-0.tar -C wds 0.jpg 0.cls 1.jpg 1.cls
done
# shellcheck disable=SC2086
run 1 train labels $small $short --batch-size 2 --experiment labels
err_has 'labels, train: 2 images, 2 classes, numbered by the sorted labels'
err_has 'attscope: labels: the classes of train have names, such as "name 0", but the labels of val are numbers; expected'

# Files that are not images are counted, and folders without an image are named; in archives too.
mkdir -p kinds/ant/deep kinds/bee kinds/cow kinds/empty
cp "$images/420.jpg" kinds/ant/1.jpg && cp "$images/420.jpg" kinds/cow/1.jpg
cp "$images/lossy_rgb.webp" kinds/ant/3.webp && cp "$images/lossless_rgba.webp" kinds/cow/2.WebP
touch kinds/ant/2.gif kinds/ant/deep/3.BMP kinds/bee/4.gif kinds/bee/noending kinds/cow/.hidden kinds/list.txt
run 0 validate kinds --checkpoint out/names/last.safetensors
err_has 'kinds: 4 images, 2 classes'
err_has 'kinds: skipped files that are not .jpg, .jpeg, .png or .webp: .gif 2, .bmp 1, others 1'
err_has 'kinds: skipped folders without a .jpg, .jpeg, .png or .webp file: "bee" and 1 more'
rmdir kinds/empty && tar cf kinds.tar kinds
run 0 validate kinds.tar --checkpoint out/names/last.safetensors
err_has 'kinds.tar: skipped files that are not .jpg, .jpeg, .png or .webp: .gif 2, .bmp 1, others 1'
err_has 'kinds.tar: skipped folders without a .jpg, .jpeg, .png or .webp file: "bee"'
run 0 validate names --split train --checkpoint out/names/last.safetensors
! grep -q 'left out\|without any' stderr || fail "$command_line: the note mentions files that do not exist"

# predict also counts ignored files, and names a file of an unsupported format.
run 0 predict $checkpoint kinds kinds.tar
err_has 'kinds: skipped files that are not .jpg, .jpeg, .png or .webp: .gif 2, .bmp 1, .txt 1, others 1'
err_has 'kinds.tar: skipped files that are not .jpg, .jpeg, .png or .webp: .gif 2, .bmp 1, .txt 1, others 1'
out_has 'kinds/cow/2.WebP'
printf 'GIF89a' >kinds/ant/2.gif
run 1 predict $checkpoint kinds/ant/2.gif
err_has 'kinds/ant/2.gif: a GIF image; convert it to JPEG, PNG or WebP'
cp "$images/damaged_420.jpg" damaged.jpg
run 0 predict $checkpoint damaged.jpg
err_has 'damaged.jpg: damaged, decoded as far as possible: Corrupt JPEG data'

# A text, in place of images.
echo 'Attention is not all you need.' >words.txt
for command in "predict $checkpoint words.txt" "validate $checkpoint words.txt" "measure $checkpoint words.txt" \
    "embed $checkpoint words.txt -o x.npz" "probe $checkpoint words.txt words.txt" "maps $checkpoint words.txt -o m"; do
    run 1 $command
    err_has 'words.txt: not a JPEG, PNG or WebP image, but text; vit'
done

# predict continues after a file that cannot be read.
run 1 predict $checkpoint data/val/dog/5.jpg data/val/cat/1.jpg nothing.jpg
err_has 'attscope: data/val/dog/5.jpg: not a JPEG, PNG or WebP image'
err_has 'nothing.jpg'
err_has 'attscope: 2 of 3 images could not be processed'
out_has 'data/val/cat/1.jpg'
mkdir mixed && cp data/val/cat/1.jpg mixed/b.jpg && cp data/val/dog/5.jpg mixed/a.jpg && cp "$images/rgb.png" mixed/c.png
run 1 predict $checkpoint mixed --json mixed.json
[ "$(grep -c '"image"' mixed.json)" = 3 ] || fail 'mixed.json has not three images'
grep -q '"error"' mixed.json || fail 'mixed.json lacks the error message'
rm mixed/a.jpg
tar cf mixed.tar mixed
run 0 predict $checkpoint mixed mixed.tar
out_has 'mixed.tar/mixed/b.jpg'

# CIFAR-100's fine and coarse classes, and a head with fewer classes than the data set.
mkdir cifar
for i in $(seq 100); do echo "fine$i"; done >cifar/fine_label_names.txt
for i in $(seq 20); do echo "coarse$i"; done >cifar/coarse_label_names.txt
for split in train test; do
    for i in 0 1 2 3 4 5 6 19; do printf "\\$(printf %o "$i")\\$(printf %o $((5 * i + 4)))" && head -c 3072 /dev/zero; done >cifar/$split.bin
done
# shellcheck disable=SC2086
run 0 train cifar --coarse-labels $small $short --experiment coarse
run 1 validate cifar --checkpoint out/coarse/last.safetensors
err_has "the network has 20 classes, the data 100; the results are meaningful only if the numbers of the classes agree (--coarse-labels takes CIFAR-100's 20 superclasses, --class-map)"
run 0 validate cifar --checkpoint out/coarse/last.safetensors --coarse-labels
# shellcheck disable=SC2086
run 2 train cifar $small $short --num-classes 7 --experiment fine
err_has 'attscope: --num-classes 7, but the data has 100 classes, each of which needs an output'
[ ! -e out/fine ] || fail "$command_line: a training run that did not start left a folder"

# For a single image of an unsupported format, the message gives no advice.
for name in gif avif; do
    case $name in gif) bytes='GIF89a' ;; avif) bytes='\0\0\0\040ftypavif' ;; esac
    printf '%b' "$bytes" >alone.$name
    run 1 measure $checkpoint alone.$name --with nsi
    ! grep -q 'are grey\|skip_corrupt' stderr || fail "$command_line: $(cat stderr)"
done
err_has 'alone.avif: an AVIF image; convert it'

# A warning names the split that is used in place of the requested one; the record has it too.
mkdir -p lone/train lone/val && cp -r data/train/dog data/train/cat lone/train && cp -r data/train/dog data/train/cat lone/val
for split in train val; do cp "$images/420.jpg" lone/$split/cat/3.jpg; done
run 0 validate lone --split test --checkpoint $checkpoint
err_has 'lone has no split "test"; using "val" instead'
run 0 measure $checkpoint lone --split test --with accuracy --json split.json
grep -q '"split": *"val"' split.json || fail 'measure records another split than it took'
for split in val validation; do
    run 0 validate lone --split $split --checkpoint $checkpoint
    ! grep -q 'warning' stderr || fail "$command_line: $(cat stderr)"
done

# Images with one name from several paths are named by as much of their paths as tells them apart.
mkdir -p twice/a twice/b && cp "$images/420.jpg" twice/a/0.jpg && cp "$images/422.jpg" twice/b/0.jpg
run 0 measure $checkpoint twice/a/0.jpg twice/b/0.jpg --map-images a/0.jpg --output maps --experiment one
err_has '2 images in 2 paths'

mkdir empty
run 1 predict $checkpoint empty
err_has 'empty: it contains no .jpg, .jpeg, .png or .webp file'
finish
