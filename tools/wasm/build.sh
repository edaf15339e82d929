#!/bin/sh
# The native engine as WebAssembly: build/wasm/decision_machines.wasm, with its loader beside it.
#     tools/wasm/build.sh [folder]
# Needs em++ (Debian: emscripten). What it makes has no threads, and imports a clock alone.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:-$root/build/wasm}
objects=$out/objects
mkdir -p "$objects"
flags="-std=c++17 -O3 -Wall -Wextra -Wno-psabi -fno-math-errno -ffp-contract=off -fwasm-exceptions
    -msimd128 -I$root/native"
compile() { # source, object, flags
    source=$1 object=$objects/$2
    shift 2
    if [ ! -e "$object" ] || [ -n "$(find "$root/native" -name '*.?pp' -newer "$object")" ]; then
        em++ $flags "$@" -c "$source" -o "$object"
    fi
}
kernels=$root/native/engine/kernels/kernels.cpp
compile "$kernels" scalar.o -DDM_TARGET=scalar -DDM_SCALAR
compile "$kernels" simd128.o -DDM_TARGET=simd128 -msse4.2
for source in "$root"/native/common/targets.cpp "$root"/native/structure/measure.cpp \
    "$root"/native/engine/*.cpp "$root"/native/engine/plan/*.cpp \
    "$root"/native/engine/kernels/find.cpp "$root"/native/library/*.cpp; do
    case $source in
        */bindings.cpp | */one_row.cpp | */python_*.cpp) ;; # Python is not there
        *) compile "$source" "$(echo "${source#"$root"/native/}" | tr / _).o" ;;
    esac
done
exported=_malloc,_free
for name in load_bytes free n_features n_outputs n_trees describe margin apply; do
    exported=$exported,_dm_model_$name
done
em++ $flags "$objects"/*.o --no-entry -s STANDALONE_WASM=1 -s ALLOW_MEMORY_GROWTH=1 \
    -s FILESYSTEM=0 -s EXPORTED_FUNCTIONS=$exported -o "$out/decision_machines.wasm"
cp "$root/native/library/decision_machines.mjs" "$out/"
ls -l "$out"/decision_machines.*
