#!/bin/bash
# Debian packages: six, and one for each MPI library that the build found. Each has the right files and dependencies.
# The command runs, and finds the plugins.
. "$(dirname "$0")/../cli/lib.sh"
needs dpkg-deb dpkg-shlibdeps
cpack --config "$ATT_BUILD/CPackConfig.cmake" -G DEB -B "$work" -D CPACK_PACKAGING_INSTALL_PREFIX=/usr >log 2>&1 ||
    { cat log; exit 1; }

# holds PACKAGE PATTERN...: checks that the package has files for the shell patterns, which start at its root.
holds() {
    local package=$1 pattern
    shift
    dpkg-deb -x "$package"_*.deb "$package" || fail "$package cannot be unpacked"
    for pattern in "$@" "usr/share/doc/$package/copyright"; do
        compgen -G "$package/$pattern" >/dev/null || fail "$package has no $pattern"
    done
}
depends() { # PACKAGE NAME...
    local package=$1 name
    shift
    dpkg-deb -f "$package"_*.deb Depends >depends
    for name in "$@"; do
        grep -qE "(^|[ ,])$name([ ,(]|$)" depends || fail "$package does not depend on $name: $(cat depends)"
    done
}
holds libattscope0.2 'usr/lib*/libattscope.so.0.2'
holds libattscope-lab0.2 'usr/lib*/libattscope-lab.so.0.2'
holds libattscope-lab-dev usr/include/attscope/lab.h usr/include/attscope/lab/json.h 'usr/lib*/libattscope-lab.so' \
    'usr/lib*/libattscope-lab.a' 'usr/lib*/pkgconfig/attscope-lab.pc' 'usr/lib*/cmake/attscope/attscope-lab-targets.cmake'
holds libattscope-dev 'usr/include/attscope/attscope.h' 'usr/lib*/libattscope.so' 'usr/lib*/libattscope.a' \
    'usr/lib*/pkgconfig/attscope.pc' 'usr/lib*/cmake/attscope/attscopeConfig.cmake'
holds attscope usr/bin/attscope usr/share/man/man1/attscope-train.1 usr/share/bash-completion/completions/attscope
holds python3-attscope usr/lib/python3/dist-packages/attscope/__init__.py \
    usr/lib/python3/dist-packages/attscope/py.typed
depends libattscope0.2 libc6 'libdnnl2?[^ ]*' libjansson4 'libarchive13[^ ]*' 'libcurl4[^ ]*'
depends libattscope-dev libattscope0.2 libdnnl-dev libcurl4-openssl-dev
depends libattscope-lab0.2 libc6 libjansson4 'libmicrohttpd12[^ ]*'
depends libattscope-lab-dev libattscope-dev libjansson-dev libmicrohttpd-dev
depends attscope libc6 'libdnnl2?[^ ]*' libjansson4
depends python3-attscope python3 python3-numpy
# Packages that use private functions of another package, or its library and headers, need the same version of it.
version=$(dpkg-deb -f libattscope0.2_*.deb Version)
needs_same() { # PACKAGE OTHER
    dpkg-deb -f "$1"_*.deb Depends | grep -qF "$2 (= $version)" || fail "$1 does not depend on the exact version of $2"
}
needs_same libattscope-lab0.2 libattscope0.2
needs_same libattscope-dev libattscope0.2
needs_same libattscope-lab-dev libattscope-lab0.2
needs_same python3-attscope libattscope-lab0.2
packages='libattscope0.2 libattscope-dev libattscope-lab0.2 libattscope-lab-dev attscope python3-attscope'

# The plugins. Only their packages need MPI.
for mpi in openmpi mpich; do
    if [ ! -e "$ATT_BUILD/attscope-plugins/$mpi.so" ]; then
        echo "skipped: this build has no plugin for $mpi"
        continue
    fi
    packages="$packages attscope-$mpi"
    holds attscope-$mpi "usr/lib*/attscope-plugins/$mpi.so"
    needs_same attscope-$mpi libattscope0.2
    depends attscope-$mpi libc6 "lib$mpi[0-9]+[^ ]*"
    ! grep -qE 'dnnl|jansson' depends || fail "attscope-$mpi depends on more than MPI: $(cat depends)"
done
for package in libattscope0.2 libattscope-lab0.2 attscope; do
    ! dpkg-deb -f "$package"_*.deb Depends | grep -qiE 'mpi' || fail "$package depends on MPI"
done
[ "$(find . -maxdepth 1 -name '*.deb' | wc -l)" -eq "$(wc -w <<<"$packages")" ] ||
    fail "unexpected packages: $(ls ./*.deb)"
# No file is in two packages.
for package in $packages; do
    (cd $package && find . ! -type d)
done | sort | uniq -d >twice
[ ! -s twice ] || fail "files in two packages: $(cat twice)"
! find libattscope0.2 libattscope-lab0.2 attscope -name '*.h' -o -name '*.a' | grep . ||
    fail 'a runtime package contains files for development'
attscope/usr/bin/attscope --version >/dev/null || fail 'the packaged command does not run'

# The Python package finds the packaged libraries, and its scripts compile it.
dpkg-deb -e python3-attscope_*.deb control
grep -qx 'py3compile -p python3-attscope' control/postinst && grep -qx 'py3clean -p python3-attscope' control/prerm ||
    fail 'python3-attscope is not compiled when it is installed'
[ "$(dpkg-deb -f python3-attscope_*.deb Architecture)" = all ] || fail 'python3-attscope is for one architecture'
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    libraries=$(find "$work/libattscope0.2" "$work/libattscope-lab0.2" -name '*.so.0.2' -printf '%h:')
    export PYTHONPATH=$work/python3-attscope/usr/lib/python3/dist-packages PYTHONDONTWRITEBYTECODE=1
    LD_LIBRARY_PATH=$libraries /usr/bin/python3 >stdout -c '
import attscope
print(attscope.open("vit_tiny_patch16_224", seed=1, img_size=32))' ||
        fail 'the packaged Python package does not work'
    grep -qx '<attscope.Network vit_tiny_patch16_224>' stdout || fail "the Python package prints $(cat stdout)"
else
    echo 'skipped: there is no python3-numpy'
fi

# The command without a plugin names the missing package. With the package it trains on two processes.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset ATTSCOPE_PLUGINS
tiny='bench processes --img-size 32 --depth 1 -b 4 --repeats 1 --warmup 1 --threads 1'
# shellcheck disable=SC2086
! attscope/usr/bin/attscope $tiny --mpi mpich 2>stderr || fail 'the command finds a plugin that is not installed'
grep -q 'in the package attscope-mpich' stderr || fail "another message without a plugin: $(cat stderr)"
for mpi in openmpi mpich; do
    compgen -G "attscope-$mpi/usr/lib*/attscope-plugins/$mpi.so" >/dev/null || continue
    dpkg-deb -x attscope_*.deb with-$mpi && dpkg-deb -x attscope-${mpi}_*.deb with-$mpi
    command -v mpirun.$mpi >/dev/null || { echo "skipped: there is no mpirun.$mpi"; continue; }
    [ $mpi = mpich ] && options= || options='--oversubscribe --bind-to none'
    # shellcheck disable=SC2086
    timeout 120 mpirun.$mpi $options -n 2 with-$mpi/usr/bin/attscope $tiny >stdout 2>stderr ||
        fail "the packaged command fails with $mpi: $(cat stdout stderr)"
    grep -q '^2 processes connected by' stdout || fail "the packaged command does not find $mpi: $(cat stdout stderr)"
done
finish
