#!/usr/bin/env bash
# attscope convert, and PyTorch checkpoints in the other commands.
. "$(dirname "$0")/lib.sh"
goldens=$here/../goldens/checkpoints

run 0 convert "$goldens/kinds_zip.pth" kinds.safetensors
out_is <<'END'
from         kinds_zip.pth: PyTorch's state_dict without the prefix module.; averaged weights: state_dict_ema without the prefix module.; left out: epoch, optimizer, args, metric, history, huge, names, blob, ...
tensors      21, 1 skipped: the state of the training, such as the optimiser's
elements     114
bytes        412
network      unknown
written      kinds.safetensors
END
err_has 'kinds.safetensors will not contain the name of its network'
run 0 inspect kinds.safetensors --json -
out_has '"name": "transposed"'
out_has '"param_count": 114'
run 0 convert "$goldens/kinds_old.pth" average.safetensors --use-ema --json -
out_has '"tensors": 1'
out_has '"elements": 6'
# Converting twice gives the same tensors.
run 0 convert kinds.safetensors again.safetensors
out_has 'tensors      21, 0 skipped'

# The input is not overwritten, by whichever path.
cp kinds.safetensors before.safetensors
ln -s kinds.safetensors link.safetensors
ln kinds.safetensors hard.safetensors
for out in kinds.safetensors ./kinds.safetensors link.safetensors hard.safetensors; do
    usage "convert would overwrite its input: $out is the file kinds.safetensors; give OUT another name" \
        convert kinds.safetensors $out
done
cmp -s kinds.safetensors before.safetensors || fail 'a refused conversion changed its input'

mkdir held && cp kinds.safetensors held/model.safetensors
run 0 convert held of_folder.safetensors
err_has 'held is a folder; using its model.safetensors'
run 1 convert average.safetensors x.safetensors --use-ema
err_has 'holds no averaged weights beside its weights'
usage 'OUT and --json both write to x.safetensors: name another file for one of them' \
    convert kinds.safetensors x.safetensors --json x.safetensors
usage "convert writes safetensors: \"x.pth\" should end in .safetensors" convert kinds.safetensors x.pth
printf 'PK\3\4' >cut.pth
run 1 convert cut.pth x.safetensors
err_has 'cut.pth: a zip archive without its end, probably truncated'
[ ! -e x.safetensors ] || fail 'a file was written although the input cannot be read'

# A network gives the same results from its own file and from the converted file, which names the network itself.
vit='--model vit_tiny_patch16_224 --num-heads 2'
idx data
run 0 inspect "$goldens/vit_old.pth" $vit
out_has "tensors      PyTorch's model without the prefix _orig_mod.; left out: epoch"
for option in 'img_size            8' 'in_chans            1' 'num_classes         4' 'patch_size          4' \
    'embed_dim           8' 'depth               1' 'num_heads           2'; do
    out_has " $option"
done
run 2 inspect "$goldens/vit_old.pth" --model nosuch
err_has 'there is no model "nosuch"'
run 2 inspect "$goldens/vit_old.pth" --model resnetaa50
err_has 'attscope does not support it'
run 1 inspect "$goldens/vit_old.pth" --model resnet18
mkdir hub
echo 'model_kwargs: {rope_theta: 100}' >hub/args.yaml
cp "$goldens/vit_old.pth" hub/vit.pth
run 1 validate data --checkpoint hub/vit.pth
err_has 'hub/args.yaml: the network was made with rope_theta 100, which attscope does not support'
! grep -q -- '--model NAME' stderr || fail 'the message asks for a name, which would not help'
rm hub/args.yaml
run 1 validate data --checkpoint hub/vit.pth
err_has 'name the network with --model NAME'
# Evaluations use timm's test size and crop unless a flag gives them. shown: "SIZE CROP" of the last validate.
figures() { grep -E '"(top1|top5|loss)"' "$1"; }
validate() { run 0 validate data $vit --threads 1 --json "$@"; }
shown() { awk '/"(img_size|crop_pct)":/ { gsub(",", ""); printf "%s%s", sep, $2; sep = " " }' "$1"; }
rm -f hub/config.json
validate plain.json --checkpoint hub/vit.pth
validate wide.json --checkpoint hub/vit.pth --img-size 16 --crop-pct 0.5
echo '{"pretrained_cfg": {"crop_pct": 0.9, "test_input_size": [1, 16, 16], "test_crop_pct": 0.5}}' >hub/config.json
validate test.json --checkpoint hub/vit.pth
err_has "evaluated at 16 pixels, crop 0.5, as timm's validate.py does with these weights; --use-train-size uses 8 pixels, crop 0.9"
[ "$(shown test.json)" = '16 0.5' ] || fail "$command_line: $(shown test.json)"
[ "$(figures test.json)" = "$(figures wide.json)" ] || fail 'evaluation at the test size is not that with --img-size'
while read -r expected flags; do
    validate said.json --checkpoint hub/vit.pth $flags
    [ "$(shown said.json)" = "${expected/x/ }" ] || fail "$command_line: $(shown said.json)"
done <<'CASES'
8x0.9 --use-train-size
16x0.75 --crop-pct 0.75
8x0.5 --img-size 8
12x0.75 --img-size 12 --crop-pct 0.75
CASES
! grep -q "timm's validate.py" stderr || fail "$command_line: a note about values that the flags gave"
echo '{"pretrained_cfg": {"test_input_size": [1, 3, 3]}}' >hub/config.json
run 1 validate data --checkpoint hub/vit.pth $vit --threads 1
err_has "timm's validate.py takes images of 3 x 3 pixels with these weights, which this network cannot take: img_size 3"
err_has '--use-train-size uses the image size that the weights were trained with'
err_has 'img_size 3 is smaller than patch_size 4'
validate said.json --checkpoint hub/vit.pth --use-train-size
[ "$(figures said.json)" = "$(figures plain.json)" ] || fail '--use-train-size changes figures'
run 0 validate data --checkpoint "$goldens/vit_old.pth" $vit --threads 1 --json before.json
err_has "weights: PyTorch's model without the prefix _orig_mod."
run 0 convert "$goldens/vit_old.pth" vit.safetensors $vit
out_has 'network      vit_tiny_patch16_224'
run 0 validate data --checkpoint vit.safetensors --threads 1 --json after.json
[ "$(figures before.json)" = "$(figures after.json)" ] || fail 'converted weights give other results'
[ -n "$(figures after.json)" ] || fail 'there are no figures'
run 0 measure "$goldens/vit_old.pth" data $vit --with entropy --threads 1
run 0 train data $vit --initial-checkpoint "$goldens/vit_old.pth" $recipe --epochs 1 --output output --experiment from_pth \
    --model-ema --model-ema-decay 0.5
trained=output/from_pth/last.safetensors
run 0 validate data --checkpoint $trained --use-ema --threads 1 --json averaged.json
run 0 convert $trained averaged --use-ema
run 0 validate data --checkpoint averaged --threads 1 --json folder.json
[ "$(figures averaged.json)" = "$(figures folder.json)" ] || fail 'the folder has not the averaged weights'
run 0 validate data --checkpoint $trained --threads 1 --json folder.json
[ "$(figures averaged.json)" != "$(figures folder.json)" ] || fail 'averaging changes nothing'
# A network trained by attscope is evaluated at the size of its training.
cp hub/config.json output/from_pth
validate said.json --checkpoint output/from_pth/last.safetensors
[ "$(shown said.json | cut -d' ' -f1)" = 8 ] || fail "$command_line: $(shown said.json)"
run 1 train data --resume "$goldens/vit_old.pth" $vit $recipe --epochs 1
run 1 validate data --checkpoint "$goldens/kinds_zip.pth" $vit
err_has 'tensor "plain" belongs to no ViT'

# Tensors with a dtype that no weight has.
LC_ALL=C sed 's/"norm.bias": *{"dtype": *"F32"/"norm.bias":{"dtype":"I32"/' vit.safetensors >typed.safetensors
[ "$(wc -c <typed.safetensors)" = "$(wc -c <vit.safetensors)" ] && ! cmp -s typed.safetensors vit.safetensors ||
    fail 'the type was not changed in place'
wrong='typed.safetensors does not fit the model: 1 of a type other than F32, F16, BF16 and F64: norm.bias I32'
run 1 convert typed.safetensors x.safetensors $vit
err_has "$wrong"
[ ! -e x.safetensors ] || fail 'a file was written although the weights do not fit the network'
run 1 validate data --checkpoint typed.safetensors
err_has "$wrong"
: >empty.pth
# inspect says what other commands say about weights that do not fit, and shows the file. One value that is not finite is
# named, although the outputs may be finite.
cut_tensor() { # FROM TO NAME
    python3 - "$@" <<'END' || fail "cut_tensor $*"
import json, struct, sys
data = open(sys.argv[1], "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + length])
del header[sys.argv[3]]
kept = b""
for tensor in header.values():
    if "data_offsets" in tensor:
        begin, end = (8 + length + offset for offset in tensor["data_offsets"])
        tensor["data_offsets"] = [len(kept), len(kept) + end - begin]
        kept += data[begin:end]
text = json.dumps(header).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + kept)
END
}
needs python3
cut_tensor vit.safetensors lacking.safetensors blocks.0.attn.proj.bias
run 1 inspect lacking.safetensors
err_has 'lacking.safetensors: proj_bias is given as true, but the tensors show false'
out_has 'blocks.0.attn.proj.weight'
cut_tensor vit.safetensors lacking.safetensors blocks.0.norm2.bias
for command in inspect "validate data --checkpoint"; do
    run 1 $command lacking.safetensors
    err_has 'lacking.safetensors does not fit the model: 1 missing: blocks.0.norm2.bias'
done
run 1 inspect lacking.safetensors --json lacking.json
out_has 'network      vit_tiny_patch16_224'
out_has 'blocks.0.attn.proj.weight'
grep -q '"refusal": "lacking.safetensors does not fit' lacking.json || fail 'the JSON does not say why the file is refused'
fill_tensors vit.safetensors broken.safetensors inf head.bias
run 0 inspect broken.safetensors
err_has 'warning: broken.safetensors: tensor head.bias has 4 values that are NaN or infinite: the file is damaged'

# The classifier of timm's files of CLIP is the projection, known by a bias of zeros.
run 0 train data --model vit_base_patch32_clip_224 --img-size 8 --patch-size 4 --in-chans 1 --embed-dim 8 --depth 1 \
    --num-heads 2 --num-classes 128 --val-split '' --epochs 0 --batch-size 2 --output out --experiment clip
run 0 convert out/clip converted.safetensors
cut_tensor converted.safetensors clip.safetensors __metadata__
clip='--model vit_base_patch32_clip_224 --num-heads 2'
fill_tensors clip.safetensors scores.safetensors 0.5 head.bias
fill_tensors clip.safetensors features.safetensors 0 head.bias
mkdir -p clipped && mv scores.safetensors features.safetensors clipped
run 0 validate data --checkpoint clipped/scores.safetensors $clip
run 1 validate data --checkpoint clipped/features.safetensors $clip
err_has 'its 128 values are features, not scores of classes'

run 1 inspect empty.pth
err_has 'empty.pth: an empty file; expected weights, as safetensors or as torch.save() writes them'
# Weights for colours become weights for grey images, as loading makes them.
for class in cat dog; do
    mkdir -p "photos/train/$class" && cp "$here/../goldens/images/420.jpg" "photos/train/$class"
done
run 0 train photos --model resnet20 --depth 8 --width 4 --img-size 16 --val-split '' --epochs 0 --batch-size 2 \
    --output out --experiment rgb
run 0 convert out/rgb/last.safetensors grey.safetensors --in-chans 1
err_has 'conv1.weight: summed over the three colours, for grey images'
run 0 predict grey.safetensors photos/train --logits --json converted.json
run 0 predict out/rgb/last.safetensors photos/train --in-chans 1 --logits --json loaded.json
cmp converted.json loaded.json || fail 'the file of grey weights gives other outputs than the weights for colours with --in-chans 1'
run 1 validate photos --split train --checkpoint grey.safetensors --in-chans 3
err_has 'reads images of 1 channel, not of 3'

# Folders for timm and transformers.
run 0 convert "$goldens/vit_old.pth" for/timm $vit --json converted.json
out_has 'written      for/timm: model.safetensors, config.json'
grep -q '"config": "for/timm/config.json"' converted.json || fail 'the JSON does not name config.json'
grep -q '"file": "for/timm/model.safetensors"' converted.json || fail 'the JSON does not name the weights'
run 0 validate data --checkpoint for/timm --threads 1 --json folder.json
[ "$(figures before.json)" = "$(figures folder.json)" ] || fail 'the folder gives other results'
for part in '"architecture": "vit_tiny_patch16_224"' '"num_classes": 4' '"img_size": 8' '"depth": 1' '"num_heads": 2'; do
    grep -qF "$part" for/timm/config.json || fail "config.json lacks $part"
done
mkdir empty.safetensors
run 0 convert for/timm empty.safetensors --img-size 12
err_has 'for/timm is a folder; using its model.safetensors'
run 0 inspect empty.safetensors
out_has 'img_size            12'
! grep -q 'resampled' stderr || fail 'the position embedding was not resampled by convert'
run 0 convert out/rgb for/timm --json rgb.json
! grep -q '"config"' rgb.json || fail 'the JSON names a config.json that was not written'
err_has 'for/timm/config.json is not written: timm cannot build this network: it has none called "resnet20"'
[ ! -e for/timm/config.json ] || fail 'a folder has the config.json of another network'
run 0 inspect for/timm
out_has 'network      resnet20'
run 0 train photos --model resnet18 --img-size 32 --val-split '' --epochs 0 --batch-size 2 --output out --experiment r18
run 0 convert out/r18 attending.safetensors --to-attention layer1.0.conv1
run 0 convert attending.safetensors for/conv --to-convolution all
out_has 'written      for/conv: model.safetensors, config.json'
run 0 convert attending.safetensors for/attention/
err_has 'config.json is not written: timm cannot build this network: attention_layers is layer1.0.conv1'
run 2 convert held held
err_has 'convert would write beside its input: held is the folder of held/model.safetensors; give another folder'
usage 'convert would write beside checkpoints: out/rgb is the folder of a training run; give another folder' \
    convert vit.safetensors out/rgb
mkdir linked && ln -s ../held/model.safetensors linked/model.safetensors
run 2 convert held linked
err_has 'convert would overwrite its input: linked/model.safetensors is the file held/model.safetensors; give OUT another name'
run 1 convert kinds.safetensors for/unknown
[ ! -e for/unknown ] || fail 'a folder was made for an unknown network'
: >file
run 1 convert vit.safetensors file/below
err_has 'file is a file, but must be a folder'

# Other preprocessing than the file's. It is in each form of the output.
layouts=$here/../goldens/layouts
run 0 convert "$goldens/vit_old.pth" other.safetensors $vit --mean 0.25 --crop-pct 0.5 --crop-mode squash
err_has 'the checkpoint: vit_tiny_patch16_224'
run 0 inspect other.safetensors
out_has 'mean 0.25, std 0.5, crop 0.5 squash, bicubic'
run 0 convert out/r18 other.safetensors --to-attention layer1.0.conv1 --std 0.25 --interpolation bilinear
run 0 inspect other.safetensors
out_has 'std 0.25 0.25 0.25, crop 0.95 center, bilinear'
echo '{"pretrained_cfg": {"crop_pct": 0.9, "test_input_size": [1, 16, 16], "test_crop_pct": 0.75}}' >hub/config.json
run 0 convert hub/vit.pth for/crop $vit --crop-pct 0.5
grep -q '"crop_pct": 0.5' for/crop/config.json || fail 'config.json lacks the crop'
! grep -q test_crop_pct for/crop/config.json || fail 'config.json has the crop that --crop-pct replaces'
run 0 convert "$layouts/clip_vision" for/clip
err_has 'it has no crop_mode "floor"; attscope convert --crop-mode center, squash or border writes another one'
run 0 convert "$layouts/clip_vision" for/clip --crop-mode center
out_has 'written      for/clip: model.safetensors, config.json'
run 0 convert "$layouts/dinov3" for/dino
err_has 'it has no interpolation "bilinear_float"; attscope convert --interpolation bicubic, bilinear or nearest writes'
run 0 convert "$layouts/dinov3" for/dino --interpolation bilinear
out_has 'written      for/dino: model.safetensors, config.json'
run 1 convert kinds.safetensors x.safetensors --crop-pct 0.5
err_has 'no network of attscope has any of its 21 tensors'
usage "--mean, --std, --crop-pct, --crop-mode and --interpolation describe a network that is written: name OUT.safetensors after the checkpoint" \
    convert attending.safetensors --to-convolution all --crop-pct 0.5

# Networks for other programs.
run 0 convert "$layouts/vit" hf --to transformers
out_is <<'END'
from         model.safetensors: names and settings of transformers' ViT, changed to timm's
network      vit_base_patch16_224
written      hf
END
err_has "written as transformers' ViT (ViTForImageClassification)"
run 0 predict hf photos/train --logits --json written.json
run 0 predict "$layouts/vit" photos/train --logits --json own.json
cmp written.json own.json || fail 'the written network gives other outputs'
run 1 convert "$layouts/vit" hf --to transformers
err_has 'hf exists and is no empty folder; give the new folder another name'
run 0 convert out/r18 resnet.safetensors --to torchvision --json -
out_has '"file": "resnet.safetensors"'
err_has "written as torchvision's ResNet (ResNet)"
err_has 'torchvision'"'"'s files do not say how images are prepared; for this network: 32 x 32, crop_pct '
run 1 convert "$layouts/vit" border --to transformers --crop-mode border
err_has "transformers' ViT cannot express how its images are prepared (8 x 8, "
err_has '--crop-mode, --crop-pct and --interpolation of attscope convert change that'
run 0 convert "$layouts/vit" center --to transformers --crop-mode center --crop-pct 0.5 --mean 0.125
err_has 'transformers crops about one image in four one pixel beside'
run 0 convert "$layouts/vit" all --to transformers --crop-mode center --crop-pct 0.7
err_has 'transformers crops all images one pixel beside'
run 0 inspect center
out_has 'mean 0.125 0.125 0.125, std 0.5 0.5 0.5, crop 0.5 floor'
run 1 convert out/rgb/last.safetensors small --to transformers
err_has "resnet20 cannot be written for transformers: its tensor \"linear.weight\" has no place in transformers' ResNet"
[ ! -e small ] && [ ! -e small.tmp ] || fail 'a refused network left files behind'
usage '--to transformers writes a folder: name it after the checkpoint, as OUT' \
    convert "$layouts/vit" x.safetensors --to transformers
usage 'convert writes safetensors: "x" should end in .safetensors' convert "$layouts/vit" x --to torchvision
usage '--to, --to-attention, --to-convolution and --prune-heads: give only one of them' \
    convert "$layouts/vit" x --to transformers --prune-heads

finish
