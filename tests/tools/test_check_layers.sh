#!/bin/sh
# tools/check-layers accepts a correct tree and names each kind of violation.
set -eu
check=$(cd "$(dirname "$0")/../../tools" && pwd)/check-layers
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

for folder in cmake src/low/core src/data src/high/train src/high/tasks src/high/left src/high/right/inner/tier src/high/top \
    lab/report lab/page cli examples include/attscope/lab; do
    mkdir -p "$tree/$folder"
done
cat >"$tree/cmake/folders.cmake" <<'CMAKE'
set(ATT_WINGS src/low src/data src/high lab/report lab/page)
att_folder(src/low/core)
att_folder(src/data)
att_folder(src/high/left USES att_core Some::library)
att_folder(src/high/tasks)
att_folder(src/high/train)
att_folder(src/high/right/inner USES
           att_core)
att_folder(src/high/top USES att_left att_right_inner)
att_folder(lab/report)
att_folder(lab/page USES att_core att_report)
CMAKE
touch "$tree/src/low/core/a.h" "$tree/src/high/left/b.h" "$tree/src/high/right/inner/c.h" "$tree/lab/report/r.h"
clean() {
    printf '#include <stdio.h>\n#include "low/core/a.h"\n' >"$tree/src/high/left/b.c"
    printf '#include <attscope/api.h>\n#include "low/core/a.h"\n#include "high/right/inner/c.h"\n' \
        >"$tree/src/high/right/inner/tier/c.c"
    printf '#include "high/left/b.h"\n#include "low/core/a.h"\n#include "high/right/inner/c.h"\n' \
        >"$tree/src/high/top/top.c"
    printf '#include <attscope/api.h>\n#include "shared.h"\n' >"$tree/cli/main.c"
    touch "$tree/cli/shared.h"
    printf '#include <attscope/api.h>\n' >"$tree/examples/one.c"
    printf '#include <attscope/lab/json.h>\n' >"$tree/src/low/core/json.h"
    printf '#include <attscope/lab.h>\n#include <attscope/lab/page.h>\n#include "lab/report/r.h"\n' >"$tree/lab/page/p.c"
    printf '#include <attscope/lab/page.h>\n' >"$tree/include/attscope/lab.h"
    printf '#include <attscope/api.h>\n' >"$tree/include/attscope/lab/page.h"
    : >"$tree/include/attscope/api.h"
    printf '#include <attscope/api.h>\n' >"$tree/include/attscope/attscope.h"
    rm -f "$tree/include/attscope/lab/more.h"
    printf '/* reads "logits" */\nchar *x = "images", *w = "logit", *y = ATT_IMAGE "image";\natt_rule_require("logits");\n' \
        >"$tree/src/high/train/t.c"
    printf 'char *x = "logits", *y = "top1", *z = {.key = "its_option"}, *u = {.info = {.name = "its_name"}};\n' \
        >"$tree/src/high/tasks/t.c"
    printf 'char *x = "logits";\n' >"$tree/cli/task_t.c"
    rm -rf "$tree/src/low/core/a.c" "$tree/src/stray"
}
refuses() { # PATTERN
    if "$check" "$tree" 2>"$tree/message"; then
        echo "FAILED: accepted, expected: $1"
        exit 1
    fi
    grep -qF "$1" "$tree/message" || { echo "FAILED: no '$1' in:"; cat "$tree/message"; exit 1; }
    clean
}

clean
"$check" "$tree" || { echo "FAILED: refused a well-layered tree"; exit 1; }

printf '#include "high/left/b.h"\n' >"$tree/src/low/core/a.c"
refuses 'src/low/core/a.c: core must not use left'
printf '  #  include <high/left/b.h>\n' >"$tree/src/low/core/a.c"
refuses 'src/low/core/a.c: core must not use left'
printf '#include "high/right/inner/c.h"\n' >>"$tree/src/high/left/b.c"
refuses 'src/high/left/b.c: left must not use right_inner'
printf '#include "high/left/b.h"\n' >>"$tree/src/high/right/inner/tier/c.c"
refuses 'src/high/right/inner/tier/c.c: right_inner must not use left'
printf '#include <attscope/lab/page.h>\n' >"$tree/src/low/core/a.c"
refuses 'src/low/core/a.c: is of the first library and must not include <attscope/lab/page.h>'
printf '#include <attscope/lab.h>\n' >"$tree/src/low/core/a.c"
refuses 'src/low/core/a.c: is of the first library and must not include <attscope/lab.h>'
printf '#include <attscope/lab/page.h>\n' >"$tree/include/attscope/api.h"
refuses 'include/attscope/api.h: includes <attscope/lab/page.h>, which is of the second library'
touch "$tree/include/attscope/lab/more.h"
refuses 'include/attscope/lab.h: lacks <attscope/lab/more.h>'
: >"$tree/include/attscope/attscope.h"
refuses 'include/attscope/attscope.h: lacks <attscope/api.h>'
printf '#include <curl/curl.h>\n' >"$tree/src/low/core/a.c"
refuses 'src/low/core/a.c: includes <curl/curl.h>, but only curl.c of the folder hub opens connections'
printf '#include "../left/b.h"\n' >"$tree/src/low/core/a.c"
refuses 'src/low/core/a.c: includes "../left/b.h"'
printf '#include "b.h"\n' >>"$tree/src/high/left/b.c"
refuses 'src/high/left/b.c: includes "b.h", which is no file named from src/ or as lab/...'
mkdir "$tree/src/stray" && touch "$tree/src/stray/s.c"
refuses 'src/stray/s.c: in no folder of cmake/folders.cmake'
printf '#include "low/core/a.h"\n' >>"$tree/cli/main.c"
refuses 'cli/main.c: includes "low/core/a.h"'
printf '#include "../src/low/core/a.h"\n' >>"$tree/cli/main.c"
refuses 'cli/main.c: includes "../src/low/core/a.h"'
printf '#include "low/core/a.h"\n' >>"$tree/examples/one.c"
refuses 'examples/one.c: includes "low/core/a.h"'
for literal in '"its_option"' '"its_name"' '"logits"' '"target"' '"image"' '"top"' '"probability"' '"top1"' '"best eval_top1 of all"'; do
    printf '/* a comment */ char *z = %s; /* another */\n' "$literal" >>"$tree/src/high/left/b.c"
    refuses "src/high/left/b.c: names $literal"
done
printf 'char *z = "image";\n' >>"$tree/cli/main.c"
refuses 'cli/main.c: names "image"'
printf '#include "lab/report/r.h"\n' >"$tree/src/low/core/a.c"
refuses 'src/low/core/a.c: core must not use report'
for line in 'src/low/late' 'src/elsewhere' 'lab/page/more USES att_nothing'; do
    sed "\$aatt_folder($line)" -i.kept "$tree/cmake/folders.cmake"
    refuses "${line%% *}"
    mv "$tree/cmake/folders.cmake.kept" "$tree/cmake/folders.cmake"
done
