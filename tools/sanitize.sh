#!/bin/sh
# The native tests under AddressSanitizer and UndefinedBehaviorSanitizer, in a build of their own.
# Usage: tools/sanitize.sh [python] [pytest arguments]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
python=${1:-$root/.venv/bin/python}
[ $# -gt 0 ] && shift
build=$root/build/sanitize
nanobind=$("$python" -m nanobind --cmake_dir)
"$python" -m cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=None -DDM_SANITIZE=ON \
    -DPython_EXECUTABLE="$python" -Dnanobind_DIR="$nanobind" >/dev/null
"$python" -m cmake --build "$build"
# The package beside the sanitized module, in front of the installed one.
stage=$build/stage
rm -rf "$stage"
mkdir -p "$stage"
cp -r "$root/src/decision_machines" "$stage/"
cp "$build"/_native*.so "$stage/decision_machines/"
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
# The interpreter leaks by design and its own allocator hides overruns.
LD_PRELOAD="$("$compiler" -print-file-name=libasan.so) $("$compiler" -print-file-name=libubsan.so) $("$compiler" -print-file-name=libstdc++.so)" \
ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
PYTHONMALLOC=malloc PYTHONPATH="$stage" \
"$python" -P -c "
import sys
# An editable install puts itself in front of every path.
sys.meta_path[:] = [f for f in sys.meta_path if 'ScikitBuild' not in type(f).__name__]
import decision_machines
assert decision_machines.__file__.startswith('$stage'), decision_machines.__file__
import pytest
sys.exit(pytest.main(sys.argv[1:]))" \
    "$root/tests/run/test_native.py" "$root/tests/run/test_categories.py" \
    "$root/tests/run/test_table_reader.py" "$root/tests/run/test_row_function.py" \
    "$root/tests/relax/test_native_soft.py" "$root/tests/explain/test_shapley.py" \
    "$root/tests/libraries/catboost/test_ctr.py" \
    "$root/tests/train/test_class_step.py" "$root/tests/train/test_axis.py" \
    "$root/tests/train/test_axis_splits.py" -q -p no:cacheprovider --rootdir "$root" "$@"
