#!/bin/bash
# Every recipe in recipes/ is read, and its training starts: one update of a tiny network on tiny images.
. "$(dirname "$0")/lib.sh"
recipes="$here/../../recipes"
idx data

# setting FILE LINE: the settings of the run in FILE include LINE.
setting() { grep -qxF -- "$2" "$1/args.yaml" || { fail "$1/args.yaml has no '$2'"; grep "^${2%%:*}" "$1/args.yaml"; }; }

# start RECIPE FLAG...: trains for one epoch of one update.
start() {
    local name=$1
    shift
    run 0 train data -c "$recipes/$name.yaml" --img-size 8 --in-chans 1 --num-classes 4 --mean 0.5 --std 0.5 --epochs 1 \
        --warmup-epochs 0 -b 48 --grad-accum-steps 2 --threads 2 --no-amp --output out --experiment "$name" "$@"
    out_has '1 epoch, 1 update'
}

small='--patch-size 4 --embed-dim 16 --depth 1 --num-heads 2'
for file in "$recipes"/*.yaml; do
    name=$(basename "$file" .yaml)
    case $name in
    attention-cnn-pruned) start "$name" --model attention_cnn_quadratic $small ;; # the checkpoint names its network
    synthetic-objects-classifier) start "$name" --layers 1,1,1,1 --width 4 --img-size 32 ;;
    step-resnet164) start "$name" --layers 1,1,1 ;;
    step-resnet50) start "$name" --layers 1,1,1,1 --width 4 --img-size 32 ;;
    cifar10-quick) start "$name" --layers 1,1,1 ;;
    upernet-*) # masks of three classes, of which one may fill a crop
        photographs masks
        layers='--patch-size 4 --embed-dim 16 --depth 4 --num-heads 2 --taps 0,1,2,3'
        case $name in
        *resnet*) layers='--layers 1,1,1,1' ;;
        *swin*) layers='--patch-size 2 --embed-dim 8 --depths 1,1,1,1 --stage-heads 1,1,1,1 --window-size 2' ;;
        esac
        run 0 train masks -c "$file" --img-size 32 $layers --num-classes 3 --img-scale 64 32 -b 8 --updates 3 \
            --eval-every 2 --warmup-updates 1 --head-channels 8 --aux-channels 8 --threads 2 --output out \
            --experiment "$name"
        out_has '1 epoch, 3 updates'
        ;;
    faster-rcnn-* | synthetic-objects) # need boxes
        [ -d boxes ] || boxes boxes
        layers='--layers 1,1,1,1 --width 4 --head-channels 4 --box-channels 4'
        run 0 train boxes -c "$file" --img-size 32 64 --img-scale 64 32 $layers --num-classes 2 -b 8 --epochs 1 \
            --warmup-updates 1 --threads 2 --val-split '' --output out --experiment "$name"
        out_has '1 epoch, 2 updates'
        ;;
    segment-*) # needs masks
        photographs masks
        run 0 train masks -c "$file" --img-size 16 $small --epochs 1 -b 16 --threads 2 --output out --experiment "$name"
        out_has '1 epoch, 1 update'
        ;;
    *) start "$name" $small ;; # words
    esac
done

# What must not get lost: the settings of the recipes, as the run records them.
for name in deit-{ti,s,b} cb-vit-{ti,s,b}; do
    for line in 'opt: adamw' 'lr: 0.001' 'weight_decay: 0.05' 'sched: cosine' 'warmup_lr: 1e-06' 'min_lr: 1e-05' \
        'aa: rand-m9-mstd0.5-inc1' 'reprob: 0.25' 'aug_repeats: 3' 'mixup: 0.8' 'cutmix: 1' 'smoothing: 0.1' \
        'drop_path: 0.1' 'model_ema: false' 'train_crop_mode: rrc' 'crop_pct: 0.875'; do
        setting "out/$name" "$line"
    done
done
for name in upernet-{vit-b,swin-t,beit-b} upernet-cb-vit; do
    for line in 'opt: adamw' 'sched: poly' 'poly_power: 1' 'min_lr: 0' 'train_crop_mode: rsc' 'cat_max_ratio: 0.75' \
        'photometric_distortion: true' 'pixel_mean: all'; do
        setting "out/$name" "$line"
    done
done
for name in faster-rcnn-resnet50-{mmdetection-1x,torchvision}; do
    for line in 'opt: momentum' 'lr: 0.02' 'weight_decay: 0.0001' 'weight_decay_on: all' 'sched: multistep' \
        'crowd_share: 1' 'box_samples: 512' 'anchor_samples: 256'; do
        setting "out/$name" "$line"
    done
done
for name in step-resnet{164,50}; do
    for line in 'modules: step' 'opt: momentum' 'lr: 0.1' 'weight_decay: 0.0001' 'sched: multistep' 'smoothing: 0'; do
        setting "out/$name" "$line"
    done
done
setting out/upernet-cb-vit 'lr: 6e-05'
setting out/upernet-cb-vit 'head: uper'
setting out/upernet-vit-b 'neck: multi_level'
setting out/upernet-beit-b 'layer_decay: 0.9'
setting out/upernet-resnet50 'poly_power: 0.9'
setting out/upernet-resnet50 'weight_decay_on: all'
setting out/cb-vit-s 'modules: cb'
setting out/deit-s 'modules: none'
setting out/deit-ti 'model: deit_tiny_patch16_224'
setting out/deit-b 'model: deit_base_patch16_224'
finish
