#!/bin/bash
# Tests the pages of `attscope serve` about checkpoints in a headless Chromium, by explore.py.
. "$(dirname "$0")/lib.sh"
needs_server
needs_shared data/weights/deit_tiny_patch16_224.safetensors data/imagenet200/val
python3 -B "$here/explore.py" "$ATTSCOPE" "$ATT_SHARED" "$work"
