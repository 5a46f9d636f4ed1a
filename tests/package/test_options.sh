#!/bin/bash
# -DATT_SQLITE=OFF -DATT_REPORT=OFF -DATT_ODE=OFF -DATT_SERVE=OFF -DATT_HUB=OFF: libraries and command build on a system without SQLite,
# D3, SUNDIALS, muParser, libmicrohttpd and libcurl, and messages say what they were built without. Only files that the
# options affect are compiled again.
. "$(dirname "$0")/../cli/lib.sh"
source=$(cd "$here/../.." && pwd)
cached() { sed -n "s/^$1:[A-Z]*=//p" "$ATT_BUILD/CMakeCache.txt"; } # NAME: prints a setting of the current build

printf '#!/bin/sh\ncase "$*" in *sqlite*) exit 1 ;; esac\nexec pkg-config "$@"\n' >pkg-config
chmod +x pkg-config
mkdir build
cmake -S "$source" -B build -G "$(cached CMAKE_GENERATOR)" -DATT_SQLITE=OFF -DATT_REPORT=OFF -DATT_ODE=OFF -DATT_SERVE=OFF -DATT_HUB=OFF \
    -DPKG_CONFIG_EXECUTABLE="$work/pkg-config" -DATT_D3="$work/none" \
    -DCMAKE_C_COMPILER="$(cached CMAKE_C_COMPILER)" -DCMAKE_C_FLAGS="$(cached CMAKE_C_FLAGS)" \
    -DCMAKE_BUILD_TYPE="$(cached CMAKE_BUILD_TYPE)" -DATT_WERROR="$(cached ATT_WERROR)" \
    -DCMAKE_C_COMPILER_LAUNCHER="$here/same_object;$ATT_BUILD" >log 2>&1 &&
    cmake --build build --target attscope_lab attscope_command >>log 2>&1 ||
    { echo 'FAILED: it does not build'; tail -50 log; exit 1; }
for file in build/libattscope.so build/libattscope-lab.so build/attscope; do
    ! readelf -d "$file" | grep -qE 'sqlite|sundials|muparser|microhttpd|curl' || fail "$file needs what is off"
done
! grep -q sqlite build/attscope.pc || fail 'attscope.pc names SQLite'

# The command trains and measures without a database, and refuses to write a report.
ATTSCOPE=$work/build/attscope
idx data
run 0 train data $network $recipe --epochs 1 --output out --experiment run
err_has 'out/runs.sqlite is not written: this build of attscope has no SQLite (-DATT_SQLITE=OFF)'
run 0 measure out/run data --with entropy
err_has 'out/runs.sqlite is not written'
[ -s out/run/metrics.jsonl ] && [ -s out/run/measure.jsonl ] || fail "records are missing: $(ls out/run)"
[ ! -e out/runs.sqlite ] || fail 'there is a database'
run 1 report out/run -o report.html
err_is <<<'attscope: report.html is not written: this build of attscope has no page for reports (-DATT_REPORT=OFF)'
[ ! -e report.html ] || fail 'a refused report leaves a file'

# Euler and RK4 need nothing else. Other methods, systems from files and the page are refused.
run 0 ode heat
out_has 'rk4        1000 '
run 1 ode heat --method bdf
err_has 'bdf: this build of attscope has no SUNDIALS; install SUNDIALS 6 (libsundials-dev) and configure with -DATT_ODE=ON'
printf "x' = -x\nx(0) = 1\n" >decay.ode
run 1 ode decay.ode
err_has 'decay.ode: this build of attscope has no muParser for systems from files'
run 1 ode heat --page page.html
err_has 'page.html is not written: this build of attscope has no page for reports'

run 1 serve out
err_is <<'TEXT'
attscope: this build of attscope has no web server; install libmicrohttpd (libmicrohttpd-dev) and configure with -DATT_SERVE=ON
TEXT

# Weights in the cache are found.
HF_HUB_CACHE=$work/cache run 1 inspect hf-hub:org/vit
err_is <<'TEXT'
attscope: org/vit: not in the cache, and this build of attscope has no downloads; install libcurl (libcurl4-openssl-dev) and configure with -DATT_HUB=ON
TEXT
snapshot=cache/models--org--vit/snapshots/0123456789012345678901234567890123456789
mkdir -p $snapshot cache/models--org--vit/refs
printf '%s' "${snapshot##*/}" >cache/models--org--vit/refs/main
cp out/run/last.safetensors $snapshot/model.safetensors
HF_HUB_CACHE=$work/cache HF_HUB_OFFLINE=1 run 0 inspect hf-hub:org/vit
out_has "$snapshot/model.safetensors"

# The shared library gives programs the same message.
cat >program.c <<'TEXT'
#include <attscope/lab/report.h>
#include <stdio.h>
int main(void)
{
    att_context *context = NULL;
    const char *const run = "out/run";
    if (att_context_create(NULL, &context) != ATT_OK)
        return 1;
    if (att_report_write(context, &run, 1, NULL, "report.html", NULL) == ATT_ERR_UNSUPPORTED)
        puts(att_context_message(context));
    att_context_destroy(&context);
}
TEXT
cc program.c -o program -I"$source/include" -Lbuild -Wl,-rpath,"$work/build" -lattscope-lab -lattscope ||
    fail 'a program does not build with these libraries'
./program | grep -q 'report.html is not written' || fail 'the shared library writes a report'
finish
