"""Machines as C headers of whole numbers: exit leaves are the machine's, sums are what they say."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from compiled_c import COMPILER, STRICT
from library_models import LIBRARIES, models
from strategies import make_machine, probe_rows

import decision_machines as dm
from decision_machines.errors import UnsupportedModelError

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")

CALLS = """
#include "{p}.h"
int {p}_numbers(const double *x, uint16_t *code) {{ return {p}_code_numbers(x, code); }}
void {p}_leaves(const uint16_t *code, int32_t *leaf) {{ {p}_apply(code, leaf); }}
void {p}_sums(const uint16_t *code, int64_t *out) {{ {p}_margin(code, out); }}
int {p}_largest(const uint16_t *code) {{ return {p}_best(code); }}
#if {P}_WHOLE_NUMBERS
void {p}_whole(const int32_t *x, uint16_t *code) {{ {p}_code_integers(x, code); }}
#endif
"""


def pointer(a):
    return ctypes.c_void_p(a.ctypes.data)


class Whole:
    """A model of the compiled library, called row by row."""

    def __init__(self, library, prefix, machine, text):
        self.library, self.prefix, self.machine = library, prefix, machine
        found = re.findall(rf"#define {prefix.upper()}_(SHIFT|EXACT|N_SLOTS) (-?\d+)", text)
        self.constants = {name: int(value) for name, value in found}

    def call(self, name, X, width, dtype):
        X = np.ascontiguousarray(X)
        out = np.zeros((len(X), max(width, 1)), dtype)
        function = getattr(self.library, f"{self.prefix}_{name}")
        refused = [function(pointer(X[i : i + 1]), pointer(out[i : i + 1])) for i in range(len(X))]
        return out[:, :width], refused

    def codes(self, X, name="numbers"):
        n = self.constants["N_SLOTS"]
        dtype = np.float64 if name == "numbers" else np.int32
        return self.call(name, X.astype(dtype), n + 1, np.uint16)[0]

    def leaves(self, codes):
        return self.call("leaves", codes, self.machine.n_trees, np.int32)[0]

    def sums(self, codes):
        return self.call("sums", codes, self.machine.n_outputs, np.int64)[0]


def compiled(machines, folder, flags=STRICT, compiler=COMPILER):
    found = []
    for i, machine in enumerate(machines):
        text = machine.to_c(folder / f"m{i}.h", integers=True, prefix=f"m{i}").read_text()
        found.append((f"m{i}", machine, text))
    (folder / "all.c").write_text("".join(CALLS.format(p=n, P=n.upper()) for n, _, _ in found))
    made = [compiler, *flags, "-shared", "-fPIC", "all.c", "-o", "all.so", "-lm"]
    subprocess.run(made, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "all.so"))
    return [Whole(library, *one) for one in found]


def sums_of(machine, leaves, shift):
    """The sums by hand: every value rounded to so many bits, then added in whole numbers."""
    output, trees = machine.output, machine.trees
    factor = output.scale / output.divisor

    def fixed(values, by=factor):
        return np.rint(np.ldexp(np.asarray(values, np.float64) * by, shift)).astype(np.int64)

    found = np.tile(fixed(output.base, factor if output.base_first else 1.0), (len(leaves), 1))
    V = fixed(machine.V)
    for tree in range(machine.n_trees):
        value = V[trees.leaf_start[tree] + leaves[:, tree]]
        if machine.is_narrow:
            found[:, trees.feeds[tree]] += value[:, 0]
        else:
            found += value
    return found


def check(model, X):
    machine = model.machine
    codes = model.codes(X)
    leaves, shift = model.leaves(codes), model.constants["SHIFT"]
    assert np.array_equal(leaves, machine.apply(X))
    sums = model.sums(codes)
    assert np.array_equal(sums, sums_of(machine, leaves, shift))
    margin = machine.margin(X).astype(np.float64)
    rounded = 0 if model.constants["EXACT"] else (machine.n_trees + 1) / 2 * 2.0**-shift
    # What the machine's own sum, and one division, may lose.
    largest = np.abs(machine.V).max(initial=0) * machine.n_trees + np.abs(machine.output.base).max()
    slack = np.finfo(machine.output.dtype).eps * (machine.n_trees + 2) * float(largest)
    assert np.all(np.abs(np.ldexp(sums.astype(np.float64), -shift) - margin) <= rounded + slack)


@pytest.fixture(scope="module")
def random_models(tmp_path_factory):
    rng = np.random.default_rng(3)
    machines = [
        make_machine(
            rng.integers(1, 12, size=rng.integers(0, 10)).tolist(),
            rng,
            dtype=dtype,
            output_dtype=sums,
            values_dtype=sums,
            values="real",
            n_outputs=k,
            narrow=k > 1 and dtype == sums,
        )
        for dtype in (np.float32, np.float64)
        for sums in (np.float32, np.float64)
        for k in (1, 3)
    ]
    machines.append(make_machine([6] * 5, rng, rules=False, values="real"))
    return compiled(machines, tmp_path_factory.mktemp("whole"))


def test_leaves_are_the_machines_and_sums_are_added_in_whole_numbers(random_models):
    for model in random_models:
        check(model, probe_rows(model.machine, 60).astype(np.float64))


def test_models_of_every_library_or_refused_by_name(tmp_path):
    known = [dm.convert(model) for lib in LIBRARIES for model in models(lib).values()]
    machines = []
    for machine in known:
        if machine.linear is not None or machine.output.aggregate != "sum":
            with pytest.raises(UnsupportedModelError, match="C of whole numbers"):
                machine.to_c(tmp_path / "one.h", integers=True)
        else:
            machines.append(replace(machine, columns=machine.columns.coded()))
    for model in compiled(machines, tmp_path):
        check(model, probe_rows(model.machine, 40).astype(np.float64))


def test_rows_of_whole_numbers_need_no_floating_point(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(-50, 50, (300, 4))
    from sklearn.ensemble import RandomForestClassifier

    machine = dm.convert(RandomForestClassifier(5, random_state=0).fit(X, X[:, 0] * X[:, 1] > 9))
    (model,) = compiled([machine], tmp_path)
    ends = np.iinfo(np.int32)
    rows = np.concatenate([X, [[ends.min] * 4, [ends.max] * 4]])
    codes = model.codes(rows, "whole")
    assert np.array_equal(model.leaves(codes), machine.apply(rows.astype(np.float64)))
    found = [model.library.m0_largest(pointer(codes[i : i + 1])) for i in range(len(X))]
    assert np.array_equal(machine.output.classes[0][found], machine.predict(X))


def test_values_that_are_whole_are_exact(tmp_path):
    machine = dm.figure_one()
    (model,) = compiled([machine], tmp_path)
    assert (model.constants["SHIFT"], model.constants["EXACT"]) == (0, 1)
    X = probe_rows(machine, 50).astype(np.float64)
    assert np.array_equal(model.sums(model.codes(X)), machine.margin(X))


@pytest.mark.parametrize("compiler", ["gcc", "clang", "aarch64-linux-gnu-gcc"])
def test_without_registers_of_floating_point(tmp_path, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    machine = make_machine([9] * 6, np.random.default_rng(0), rules=False, values="real")
    X = np.random.default_rng(1).integers(-3, 4, (20, machine.n_features))
    machine.to_c(tmp_path / "model.h", integers=True)
    rows = ",".join(f"{{{','.join(map(str, row))}}}" for row in X.tolist())
    (tmp_path / "main.c").write_text(
        '#define DM_INTEGER_ONLY\n#include <stdio.h>\n#include "model.h"\n'
        f"static const int32_t rows[{len(X)}][{X.shape[1]}] = {{{rows}}};\n"
        "int main(void) {\n  int i, t;\n"
        f"  for (i = 0; i < {len(X)}; i++) {{\n"
        "    uint16_t code[DM_N_SLOTS];\n    int32_t leaf[DM_N_TREES];\n"
        "    dm_code_integers(rows[i], code);\n    dm_apply(code, leaf);\n"
        '    for (t = 0; t < DM_N_TREES; t++) printf("%d ", (int)leaf[t]);\n  }\n  return 0;\n}\n'
    )
    flags = [*STRICT, "-Wno-unused-function", "-mgeneral-regs-only", "-static"]
    subprocess.run([compiler, *flags, "main.c", "-o", "main"], cwd=tmp_path, check=True)
    run = ["./main"] if compiler in ("gcc", "clang") else ["qemu-aarch64", "./main"]
    if shutil.which(run[0]) is None and len(run) > 1:
        pytest.skip("qemu-aarch64 is not installed")
    done = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, text=True)
    found = np.array(done.stdout.split(), np.int64).reshape(len(X), -1)
    assert np.array_equal(found, machine.apply(X.astype(np.float64)))


def test_under_sanitizers(tmp_path):
    machine = make_machine([9] * 6, np.random.default_rng(0), values="real")
    machine.to_c(tmp_path / "model.h", integers=True)
    (tmp_path / "main.c").write_text(
        '#include "model.h"\nint main(void) {\n'
        "  double x[DM_N_FEATURES];\n  uint16_t code[DM_N_SLOTS];\n"
        "  int32_t leaf[DM_N_TREES];\n  int64_t out[DM_N_OUTPUTS];\n  int i, j;\n"
        "  for (i = 0; i < 50; i++) {\n"
        "    for (j = 0; j < DM_N_FEATURES; j++) x[j] = i % 7 == j ? NAN : i * 1e9 - j;\n"
        "    if (dm_code_numbers(x, code)) continue;\n"
        "    dm_apply(code, leaf);\n    dm_margin(code, out);\n"
        "    if (dm_best(code) < 0) return 1;\n  }\n  return 0;\n}\n"
    )
    flags = [*STRICT, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run([COMPILER, *flags, "main.c", "-o", "main", "-lm"], cwd=tmp_path, check=True)
    subprocess.run(["./main"], cwd=tmp_path, check=True)


def test_what_does_not_fit_is_refused_by_name(tmp_path):
    rng = np.random.default_rng(0)
    oblique = make_machine([4], rng, oblique=True)
    most = make_machine([4, 3], rng)
    most = replace(most, output=replace(most.output, aggregate="max"))
    for machine, words in ((oblique, "several columns"), (most, "aggregate")):
        with pytest.raises(UnsupportedModelError, match=words):
            machine.to_c(tmp_path / "model.h", integers=True)
