#!/bin/sh
# Links the module with all of its types in view: no two rooms, and no two targets, may have
# different types or functions of one name. GCC only: Clang has no such warning.
#     tests/native/odr.sh [python]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${1:-$root/.venv/bin/python}
build=$root/build/odr
"$python" -m cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_COMPILER="${CXX:-g++}" -DPython_EXECUTABLE="$python" \
    -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)" \
    -DCMAKE_CXX_FLAGS="-flto=auto -Wodr -Werror=odr -Wlto-type-mismatch -Werror=lto-type-mismatch" >/dev/null
"$python" -m cmake --build "$build"
echo "No two types or functions of one name."
