#!/bin/sh
# Builds and runs tests/native/targets.cpp with the compiler in CXX, and RUN in front of the program:
#     CXX=clang++ tests/native/targets.sh
#     CXX=aarch64-linux-gnu-g++ RUN="qemu-aarch64 -L /usr/aarch64-linux-gnu" tests/native/targets.sh
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
CXX=${CXX:-c++}
flags="-std=c++17 -O2 -Wall -Wextra -Wno-psabi -ffp-contract=off -pthread -I$root/native"
case $($CXX --version) in
    *clang*) ;;
    # GCC finds registers left undefined on purpose in its own headers.
    *) flags="$flags -Wno-maybe-uninitialized" ;;
esac
kernels() {
    name=$1
    shift
    $CXX $flags -DDM_TARGET="$name" "$@" -c "$root/native/engine/kernels/kernels.cpp" -o "$build/$name.o"
}
kernels scalar -DDM_SCALAR
case $($CXX -dumpmachine) in
    x86_64*)
        kernels v2 -march=x86-64-v2
        kernels v3 -march=x86-64-v3
        kernels v4 -march=x86-64-v4
        kernels v4_vbmi -march=x86-64-v4 -mavx512vbmi
        ;;
    aarch64*) kernels neon ;;
esac
engine="$root/native/common/targets.cpp $root/native/engine/kernels/find.cpp"
for source in "$root"/native/engine/*.cpp "$root"/native/engine/plan/*.cpp; do
    case $source in
        */bindings.cpp) ;;
        *) engine="$engine $source" ;;
    esac
done
$CXX $flags "$root/tests/native/targets.cpp" $engine "$build"/*.o -o "$build/targets"
${RUN:-} "$build/targets"
