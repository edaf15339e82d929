"""C headers compiled and called: many models in one library, each by a prefix of its own."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np

COMPILER = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O0")
CALLS = """
#include "{p}.h"
int {p}_call_margin(const double *x, double *out) {{ return {p}_margin(x, out); }}
int {p}_call_predict(const double *x, double *out) {{ return {p}_predict(x, out); }}
int {p}_call_apply(const double *x, int32_t *out) {{ return {p}_apply(x, out); }}
size_t {p}_call_batch(const double *x, size_t n, double *o) {{ return {p}_margin_batch(x, n, o); }}
int {p}_n_predictions(void) {{ return {P}_N_PREDICTIONS; }}
void {p}_call_respond(const double *m, double *out) {{ {p}_respond(m, out); }}
int {p}_n_responses(void) {{ return {P}_N_RESPONSES; }}
#ifdef {P}_N_PROBABILITIES
int {p}_n_probabilities(void) {{ return {P}_N_PROBABILITIES; }}
int {p}_call_proba(const double *x, double *out) {{ return {p}_predict_proba(x, out); }}
#endif
#ifdef {P}_N_LABELS
int {p}_call_label(int f, const char *text, double *code) {{ return {p}_label(f, text, code); }}
#endif
"""


class Compiled:
    """A model of a compiled library."""

    def __init__(self, library, prefix, machine):
        self.library, self.prefix, self.machine = library, prefix, machine

    def _function(self, name):
        return getattr(self.library, f"{self.prefix}_{name}")

    def _rows(self, name, X, width, dtype=np.float64):
        X = np.ascontiguousarray(X, np.float64)
        out = np.full((len(X), max(width, 1)), -99, dtype)
        call = self._function(name)
        codes = [
            call(
                ctypes.c_void_p(X[i : i + 1].ctypes.data),
                ctypes.c_void_p(out[i : i + 1].ctypes.data),
            )
            for i in range(len(X))
        ]
        return out[:, :width], codes

    def margin(self, X):
        return self._rows("call_margin", X, self.machine.n_outputs)[0]

    def refusals(self, X):
        return self._rows("call_margin", X, self.machine.n_outputs)[1]

    def apply(self, X):
        return self._rows("call_apply", X, self.machine.n_trees, np.int32)[0]

    def predict(self, X):
        return self._rows("call_predict", X, self._function("n_predictions")())[0]

    def predict_proba(self, X):
        return self._rows("call_proba", X, self._function("n_probabilities")())[0]

    def response(self, margins):
        return self._rows("call_respond", margins, self._function("n_responses")())[0]

    def batch(self, X):
        X = np.ascontiguousarray(X, np.float64)
        out = np.full((len(X), self.machine.n_outputs), -99.0)
        call = self._function("call_batch")
        call.restype = ctypes.c_size_t
        refused = call(
            ctypes.c_void_p(X.ctypes.data),
            ctypes.c_size_t(len(X)),
            ctypes.c_void_p(out.ctypes.data),
        )
        return out, refused

    def label(self, feature, text):
        code = ctypes.c_double(-99)
        unknown = self._function("call_label")(feature, text.encode(), ctypes.byref(code))
        return code.value, unknown


def compiled(machines, folder, compiler=COMPILER, flags=STRICT):
    """The machines, each written as a header and all compiled into one library."""
    names = [f"m{i}" for i in range(len(machines))]
    for name, machine in zip(names, machines, strict=True):
        machine.to_c(folder / f"{name}.h", prefix=name)
    source = folder / "all.c"
    source.write_text("".join(CALLS.format(p=name, P=name.upper()) for name in names))
    made = folder / "all.so"
    subprocess.run([compiler, *flags, "-shared", "-fPIC", source, "-o", made, "-lm"], check=True)
    library = ctypes.CDLL(str(made))
    return [Compiled(library, name, m) for name, m in zip(names, machines, strict=True)]
