#!/bin/sh
# Compiles all C++ that needs no Python for systems that are not here, and links the test program of
# the kernels for them, which is not run. PYTHON has the package ziglang (PyPI), a cross compiler.
#     PYTHON=build/wheel-tools-3.11/bin/python tests/native/elsewhere.sh
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
PYTHON=${PYTHON:-python3}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
for target in aarch64-macos x86_64-macos x86_64-windows-gnu aarch64-linux-gnu.2.17; do
    compiler="$root/tools/zig-c++ $PYTHON $target"
    n=0
    for source in $(find "$root/native" -name '*.cpp' | sort); do
        if grep -q -E 'nanobind|python_' "$source"; then continue; fi
        $compiler -std=c++17 -O1 -Wall -Wextra -Werror -Wno-psabi -ffp-contract=off -I"$root/native" \
            -DDM_TARGET=scalar -DDM_SCALAR -c "$source" -o "$build/object.o"
        n=$((n + 1))
    done
    echo "$target: $n files compile"
    CXX=$compiler RUN=true "$root/tests/native/targets.sh"
    echo "$target: the kernels' tests are linked, for every target of its processor; not run here"
done
