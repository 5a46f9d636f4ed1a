#!/bin/bash
# Tests the pages of `attscope serve` about checkpoints in a headless Chromium, by explore.py.
. "$(dirname "$0")/lib.sh"
needs_server
if ! [ -f "${ATT_SHARED:-}/data/weights/deit_tiny_patch16_224.safetensors" ]; then
    echo 'skipped: ATT_SHARED has no weights of DeiT-Tiny'
    exit 77
fi
python3 -B "$here/explore.py" "$ATTSCOPE" "$ATT_SHARED" "$work"
