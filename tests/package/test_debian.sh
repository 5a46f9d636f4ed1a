#!/bin/bash
# Debian packages: there are five, each with the right files and dependencies, and the command runs.
set -u
for tool in dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

cd "$work" || exit 1
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
depends libattscope0.2 libc6 'libdnnl2?[^ ]*' libjansson4 'libarchive13[^ ]*'
depends libattscope-dev libattscope0.2 libdnnl-dev
depends libattscope-lab0.2 libc6 libjansson4
depends libattscope-lab-dev libattscope-dev libjansson-dev
depends attscope libc6 'libdnnl2?[^ ]*' libjansson4
# Packages that use private functions of another package, or its library and headers, need the same version of it.
version=$(dpkg-deb -f libattscope0.2_*.deb Version)
needs_same() { # PACKAGE OTHER
    dpkg-deb -f "$1"_*.deb Depends | grep -qF "$2 (= $version)" || fail "$1 does not depend on the exact version of $2"
}
needs_same libattscope-lab0.2 libattscope0.2
needs_same libattscope-dev libattscope0.2
needs_same libattscope-lab-dev libattscope-lab0.2
[ "$(find . -maxdepth 1 -name '*.deb' | wc -l)" -eq 5 ] || fail "unexpected packages: $(ls ./*.deb)"
# No file is in two packages.
for package in libattscope0.2 libattscope-dev libattscope-lab0.2 libattscope-lab-dev attscope; do
    (cd $package && find . ! -type d)
done | sort | uniq -d >twice
[ ! -s twice ] || fail "files in two packages: $(cat twice)"
! find libattscope0.2 libattscope-lab0.2 attscope -name '*.h' -o -name '*.a' | grep . ||
    fail 'a runtime package contains files for development'
attscope/usr/bin/attscope --version >/dev/null || fail 'the packaged command does not run'
exit $((failures > 0))
