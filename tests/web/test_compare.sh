#!/bin/bash
# Tests the pages of `attscope serve` with several checkpoints in a headless Chromium, by compare.py: linked layers, names
# of tokens, similar images, the view of a network, the keyboard.
. "$(dirname "$0")/lib.sh"
needs_server
needs_shared data/weights/deit_tiny_patch16_224.safetensors data/weights/resnet20-12fca82f.th \
    data/weights/resnet56-4bfd9763.th data/imagenet200/val
python3 -B "$here/compare.py" "$ATTSCOPE" "$ATT_SHARED" "$work"
