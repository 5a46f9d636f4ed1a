#!/bin/bash
# tools/check-abi --compare accepts additions and refuses every other change of a function or type, except with a new
# SONAME.
set -euo pipefail
check=$(cd "$(dirname "$0")/../../tools" && pwd)/check-abi
command -v abidiff >/dev/null || { echo "SKIPPED: abidiff is not installed (tools/install-packages abi)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >base.h <<'H'
enum att_kind { ATT_FIRST, ATT_SECOND };
typedef struct att_options { int depth; long width; enum att_kind kind; } att_options;
typedef struct att_result { double loss; } att_result;
int att_train(const att_options *options, int epochs, att_result *result);
H
cat >base.c <<'C'
#include "base.h"
__attribute__((visibility("default"))) int att_train(const att_options *options, int epochs, att_result *result)
{
    result->loss = options->depth;
    return epochs;
}
C
library() { # FOLDER SCRIPT SONAME: builds the library after sed has changed its header and its source
    mkdir -p "$1"
    sed "$2" base.h >"$1/base.h"
    sed "$2" base.c >"$1/base.c"
    "${CC:-cc}" -g -shared -fPIC -fvisibility=hidden -Wl,-soname,"$3" -o "$1/libattscope.so" "$1/base.c"
}
compare() {
    "$check" --compare old old new new >message 2>&1
}
accepts() { # SCRIPT [SONAME]
    library new "$1" "${2:-libattscope.so.1}"
    compare || { echo "FAILED: refused: $1"; cat message; exit 1; }
}
refuses() { # SCRIPT WORD: the changes printed contain WORD
    library new "$1" libattscope.so.1
    local status=0
    compare || status=$?
    [ $status -eq 1 ] && grep -q 'raise the version' message && grep -q "$2" message ||
        { echo "FAILED: status $status, or no '$2': $1"; cat message; exit 1; }
}

library old '' libattscope.so.1
accepts ''
accepts '$a __attribute__((visibility("default"))) int att_more(void);
$a __attribute__((visibility("default"))) int att_variable;'
grep -q att_variable message || { echo "FAILED: an added variable is not printed"; exit 1; }
accepts 's/ATT_SECOND/&, ATT_THIRD/'

refuses 's/int depth;/& int inserted;/' inserted
refuses 's/int depth; long width;/long width; int depth;/' width
refuses 's/int epochs/long epochs/' epochs\\\|long
refuses 's/double loss;/& char more[64];/' more
refuses 's/ATT_FIRST, ATT_SECOND/ATT_SECOND, ATT_FIRST/' ATT_SECOND
refuses 's/att_train/att_teach/' att_train
accepts 's/double loss;/& char more[64];/' libattscope.so.2

for folders in 'new missing' 'missing new'; do
    read -r old new <<<"$folders"
    status=0
    "$check" --compare $old new $new new >message 2>&1 || status=$?
    [ $status -eq 2 ] || { echo "FAILED: status $status for a missing library"; cat message; exit 1; }
done
