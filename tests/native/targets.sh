#!/bin/sh
# Builds and runs tests/native/targets.cpp with the compiler in CXX, and RUN in front of the program:
#     CXX=clang++ tests/native/targets.sh
#     CXX=aarch64-linux-gnu-g++ RUN="qemu-aarch64 -L /usr/aarch64-linux-gnu" tests/native/targets.sh
# With EMULATED=1 AVX-512 is done in plain C++ (SIMDe; Debian: libsimde-dev), so that its kernels
# can be checked on processors without it.
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
    $CXX $flags -DDM_TARGET="$name" "$@" -c "$root/native/engine/kernels/kernels.cpp" \
        -o "$build/$name.o"
}
emulated() {
    name=$1
    shift
    for has in SSE3 SSSE3 SSE4_1 SSE4_2 POPCNT AVX AVX2 BMI BMI2 FMA \
        AVX512F AVX512BW AVX512CD AVX512DQ AVX512VL; do
        set -- "$@" "-D__${has}__"
    done
    kernels "$name" -isystem "$root/tests/native/emulated" "$@"
}
targets=$root/native/common/targets.cpp
kernels scalar -DDM_SCALAR
case $($CXX -dumpmachine) in
    x86_64*)
        kernels v2 -march=x86-64-v2
        kernels v3 -march=x86-64-v3
        if [ "${EMULATED:-0}" = 1 ]; then
            targets=$root/tests/native/emulated/targets.cpp
            emulated v4
            emulated v4_vbmi -D__AVX512VBMI__
        else
            kernels v4 -march=x86-64-v4
            kernels v4_vbmi -march=x86-64-v4 -mavx512vbmi
        fi
        ;;
    aarch64* | arm64*) kernels neon ;;
esac
engine="$targets $root/native/engine/kernels/find.cpp"
for source in "$root"/native/engine/*.cpp "$root"/native/engine/plan/*.cpp; do
    case $source in
        */bindings.cpp | */one_row.cpp | */python_*.cpp) ;; # Python is not there
        *) engine="$engine $source" ;;
    esac
done
$CXX $flags "$root/tests/native/targets.cpp" $engine "$build"/*.o -o "$build/targets"
${RUN:-} "$build/targets"
