"""Machines as C headers: compiled, called, and compared with the machine to the bit."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from compiled_c import COMPILER, STRICT, compiled
from library_models import LIBRARIES, data, models, table
from strategies import make_machine, probe_rows

import decision_machines as dm
from decision_machines.errors import InputError, UnsupportedModelError
from decision_machines.libraries.c.answers import has_link
from decision_machines.libraries.c.text import number
from decision_machines.machine.links import LINKS, STEPS
from decision_machines.machine.look_ups import LookUps, Term

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


def same(a, b):
    return np.array_equal(np.asarray(a, np.float64), np.asarray(b, np.float64), equal_nan=True)


@pytest.fixture(scope="module")
def random_models(tmp_path_factory):
    """Machines of every rule, dtype, width and shape, one-leaf trees and empty forests too."""
    rng = np.random.default_rng(7)
    floats = (np.float32, np.float64)
    kinds = itertools.product(floats, floats, (1, 3), (False, True), (False, True))
    machines = [
        make_machine(
            rng.integers(1, 12, size=rng.integers(0, 14)).tolist(),
            rng,
            dtype=dtype,
            output_dtype=sums,
            values_dtype=sums,
            values="real",
            n_outputs=k,
            narrow=narrow,
            oblique=oblique,
        )
        for dtype, sums, k, narrow, oblique in kinds
    ]
    machines += [
        replace(m, output=replace(m.output, aggregate=aggregate))
        for m, aggregate in zip(machines[:2], ("min", "max"), strict=True)
    ]
    return compiled(machines, tmp_path_factory.mktemp("random"))


def test_margins_and_leaves_of_random_machines_are_equal(random_models):
    for model in random_models:
        X = probe_rows(model.machine, 60)
        assert same(model.margin(X), model.machine.margin(X)), model.machine
        assert np.array_equal(model.apply(X), model.machine.apply(X))
        found, refused = model.batch(np.concatenate([X, X[:3]]))  # a block, a rest, a tail
        assert refused == 0
        assert same(found, model.machine.margin(np.concatenate([X, X[:3]])))


def test_leaf_values_that_are_nan_are_the_least_and_the_largest(tmp_path):
    machine = make_machine([3] * 5, np.random.default_rng(0), values="real", rules=False)
    V = machine.V.copy()
    V[[1, 7]] = np.nan
    machines = [
        replace(machine, V=V, output=replace(machine.output, aggregate=aggregate))
        for aggregate in ("min", "max")
    ]
    for model in compiled(machines, tmp_path):
        X = probe_rows(machine, 60)
        assert np.isnan(model.machine.margin(X)).any()
        assert same(model.margin(X), model.machine.margin(X))


@pytest.fixture(scope="module")
def library_models(tmp_path_factory):
    known = [(lib, name) for lib in LIBRARIES for name in models(lib)]
    machines = [dm.convert(models(lib)[name]) for lib, name in known]
    made = compiled(machines, tmp_path_factory.mktemp("libraries"))
    return {f"{lib} {name}": model for (lib, name), model in zip(known, made, strict=True)}


EXACT = ("xgboost", "lightgbm", "catboost")
"""Libraries that call the C library's exponential, or whose own is in the header."""


@pytest.mark.parametrize("name", [f"{lib} {name}" for lib in LIBRARIES for name in models(lib)])
def test_models_of_every_library(library_models, name):
    model = library_models[name]
    machine = model.machine
    X = probe_rows(replace(machine, columns=machine.columns.coded()), 80)
    coded = replace(machine, columns=machine.columns.coded())
    assert same(model.margin(X), coded.margin(X))
    assert np.array_equal(model.apply(X), coded.apply(X))
    response, expected = model.response(coded.margin(X)), coded.response(X)
    if name.startswith(EXACT):
        assert same(response, expected)
    else:
        np.testing.assert_array_max_ulp(response, expected.astype(np.float64), 4)
    if machine.output.classes is not None:
        found = coded.predict_proba(X)
        found = np.concatenate(found, axis=1) if isinstance(found, list) else found
        np.testing.assert_allclose(model.predict_proba(X), found, rtol=1e-6, atol=1e-12)
    predicted = np.asarray(coded.predict(X)).reshape(len(X), -1)
    if predicted.dtype.kind in "OUS":
        assert machine.output.classes is not None
        groups = [g.tolist() for g in machine.output.classes]
        for g, labels in enumerate(groups):
            at = model.predict(X)[:, g].astype(int)
            assert np.array_equal(np.array(labels)[at].astype(str), predicted[:, g].astype(str))
    elif machine.output.decision in ("response", "margin"):
        np.testing.assert_allclose(model.predict(X), predicted, rtol=1e-6)
    else:
        assert same(model.predict(X), predicted)


def test_links_are_those_of_the_machine_or_refused(tmp_path):
    rng = np.random.default_rng(0)
    known = [link for link in LINKS.values() if link.family is not STEPS]
    machines = []
    for link, dtype in itertools.product(known, (np.float32, np.float64)):
        if link.plain.name.startswith("catboost_") and dtype == np.float32:
            continue  # refused, below
        if not has_link(link.plain.name):
            assert link.plain.name.startswith(("ydf_", "treelite_", "interpret_", "spark_"))
            continue  # refused, below
        k = link.family.n_outputs or 3
        machine = make_machine([3, 4], rng, n_outputs=k, output_dtype=dtype, plain_output=True)
        params = (5.0,) * link.least_params
        machines.append(
            replace(machine, output=replace(machine.output, link=link.name, link_params=params))
        )
    margins = np.concatenate([rng.standard_normal((40, 3)) * s for s in (1, 30, 900)])
    for model in compiled(machines, tmp_path):
        output = model.machine.output
        m = margins[:, : len(output)].astype(output.dtype)
        from decision_machines.run.decide import respond

        with np.errstate(all="ignore"):
            expected = respond(model.machine, m).astype(np.float64)
        ulp = 2.0**-22 if output.dtype == np.float32 else 2.0**-51
        tiny = 1e-37 if output.dtype == np.float32 else 1e-300
        np.testing.assert_allclose(model.response(m), expected, rtol=2 * ulp, atol=tiny)


@pytest.mark.parametrize("link", ["ydf_sigmoid", "treelite_softmax", "interpret_exp"])
def test_links_without_c_are_refused_and_their_margins_are_not(link, tmp_path):
    machine = make_machine([3], np.random.default_rng(0))
    machine = replace(machine, output=replace(machine.output, link=link))
    with pytest.raises(UnsupportedModelError, match=link):
        machine.to_c(tmp_path / "m.h")
    assert machine.to_c(tmp_path / "m.h", margins=True).exists()


def test_catboosts_exponential_of_float32_sums_is_refused():
    machine = make_machine([3], np.random.default_rng(0), output_dtype=np.float32)
    machine = replace(machine, output=replace(machine.output, link="catboost_exp"))
    with pytest.raises(UnsupportedModelError, match="sums of float64"):
        machine.to_c("never.h")


def test_steps_of_an_onnx_graph_are_refused():
    machine = dm.figure_one()
    machine = replace(machine, output=replace(machine.output, link="onnx"))
    with pytest.raises(UnsupportedModelError, match="link is 'onnx'"):
        machine.to_c("never.h")


def test_statistics_of_combinations_are_refused():
    machine = make_machine([3], np.random.default_rng(0), n_features=2, rules=False)
    look_ups = LookUps(
        column_table=np.array([0, 0]),
        column_statistic=np.array([0, 0]),
        term_start=np.array([0, 1]),
        term_feature=np.array([0]),
        term_kind=np.array([Term.LABEL]),
        term_number=np.zeros(1),
        term_missing=np.zeros(1),
        term_adds=np.zeros(1, np.uint64),
        label_start=np.array([0, 1]),
        label_adds=np.ones(1, np.uint64),
        key_start=np.array([0, 1]),
        keys=np.ones(1, np.uint64),
        n_statistics=np.array([1]),
        values=np.zeros(2, np.float32),
    )
    columns = replace(machine.columns, rule=np.full(2, dm.Rule.LOOK_UP), look_ups=look_ups)
    with pytest.raises(UnsupportedModelError, match="combinations of features"):
        replace(machine, columns=columns).to_c("never.h")


def test_labels_are_looked_up_by_text(tmp_path):
    frame, _ = table()
    names = [("sklearn", "HistGradientBoosting, table"), ("xgboost", "XGBClassifier, table")]
    machines = [dm.convert(models(lib)[name]) for lib, name in names]
    for model in compiled(machines, tmp_path):
        codes = model.machine.features(frame)
        f = list(frame.columns).index("color")
        for row in range(20):
            assert model.label(f, frame["color"][row]) == (codes[row, f], 0)
        code, unknown = model.label(f, "ultraviolet")
        assert unknown == 1
        assert np.isnan(code) or code == -1
        assert same(model.margin(codes), model.machine.margin(frame))


def test_folded_pipelines_take_raw_numbers_and_refuse_what_they_refuse(tmp_path):
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

    X, y = data("two")
    forest = RandomForestClassifier(5, max_depth=4, random_state=0)
    pipelines = [
        make_pipeline(SimpleImputer(), StandardScaler(), forest).fit(X, y),
        make_pipeline(SimpleImputer(), KBinsDiscretizer(4, encode="ordinal"), forest).fit(X, y),
        make_pipeline(StandardScaler(), forest).fit(X, y),
    ]
    machines = [dm.convert(p) for p in pipelines]
    for model, pipeline in zip(compiled(machines, tmp_path), pipelines, strict=True):
        np.testing.assert_allclose(model.predict_proba(X), pipeline.predict_proba(X), rtol=1e-15)
        assert same(model.margin(X), model.machine.margin(X))
        infinite = X.copy()
        infinite[3, 2] = np.inf
        with pytest.raises((InputError, ValueError)):
            model.machine.margin(infinite)
        assert model.refusals(infinite)[3] == 3
        assert model.batch(infinite)[1] == 4
        assert same(model.batch(infinite)[0][:3], model.machine.margin(X[:3]))


HOSTILE = [
    "*/ #error",
    '"; int x',
    "a\\",
    "??/",
    "new\nline",
    "雪🌲",
    "DM_N_TREES",
    "dm_x",
    "%s",
    "",
]


def test_hostile_names_and_labels_cannot_break_out(tmp_path):
    machine = make_machine([4, 3], np.random.default_rng(0), n_features=len(HOSTILE), rules=False)
    labels = {0: tuple(HOSTILE)}
    classes = (np.array(HOSTILE[:2], object),)
    machine = replace(
        machine,
        source="*/ hostile\n??/",
        columns=replace(machine.columns, names=tuple(HOSTILE), categories=labels),
        output=replace(
            machine.output, link="sigmoid", decision="above", classes=classes, dtype=np.float64
        ),
    )
    (model,) = compiled([machine], tmp_path)
    for code, label in enumerate(HOSTILE):
        assert model.label(0, label) == (code, 0)
    rows = np.random.default_rng(1).standard_normal((9, len(HOSTILE)))
    coded = replace(machine, columns=machine.columns.coded())
    assert same(model.margin(rows), coded.margin(rows))
    assert {*np.unique(model.predict(rows))} <= {0.0, 1.0}


@pytest.mark.parametrize("prefix", ["", "1a", "a b", "a;", "é", "a-b"])
def test_a_prefix_that_is_not_a_name_is_refused(prefix, tmp_path):
    with pytest.raises(InputError, match="prefix"):
        dm.figure_one().to_c(tmp_path / "m.h", prefix=prefix)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_strict_compilers_take_it_without_a_word(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (model,) = compiled([dm.figure_one()], tmp_path, compiler, (*STRICT, "-O2"))
    assert same(model.margin([[2, 1, 2, 2]]), [[5]])


def test_fast_math_is_refused_by_the_header(tmp_path):
    with pytest.raises(subprocess.CalledProcessError):
        compiled([dm.figure_one()], tmp_path, flags=("-ffast-math",))


def test_sanitizers_find_nothing(tmp_path):
    machine = make_machine([9, 1, 5] * 4, np.random.default_rng(3), values="real")
    machine.to_c(tmp_path / "model.h")
    rows = probe_rows(machine, 40)
    numbers = ", ".join(number(v, single=False) for v in rows.reshape(-1).tolist())
    (tmp_path / "main.c").write_text(
        f"""#include <stdio.h>
#include "model.h"
static const double rows[] = {{{numbers}}};
static double all[{len(rows)} * DM_N_OUTPUTS];
int main(void)
{{
    int i;
    for (i = 0; i < {len(rows)}; i++) {{
        double out[DM_N_OUTPUTS];
        int32_t leaf[DM_N_TREES];
        dm_apply(rows + i * DM_N_FEATURES, leaf);
        dm_predict(rows + i * DM_N_FEATURES, out);
        dm_margin(rows + i * DM_N_FEATURES, out);
        printf("%a\\n", out[0]);
    }}
    return (int)dm_margin_batch(rows, {len(rows)}, all);
}}
"""
    )
    flags = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    try:
        subprocess.run(
            [COMPILER, *flags, tmp_path / "main.c", "-o", tmp_path / "main", "-lm"],
            check=True,
            capture_output=True,
        )
    except subprocess.CalledProcessError:
        pytest.skip("the compiler has no sanitizers here")
    done = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True)
    found = [float.fromhex(line) for line in done.stdout.split()]
    assert same(found, machine.margin(rows)[:, 0])


def test_the_code_does_not_grow_with_the_model(tmp_path):
    small = make_machine([4] * 8, np.random.default_rng(0), rules=False)
    large = make_machine([40] * 80, np.random.default_rng(0), rules=False)

    def code(machine):
        text = machine.to_c(tmp_path / "m.h").read_text()
        return sum("{" in line and "static const" not in line for line in text.splitlines()) - sum(
            line.startswith("{") for line in text.splitlines()
        )

    assert code(small) == code(large)


@pytest.mark.parametrize("name", ["LGBMClassifier", "XGBClassifier"])
def test_arm_gives_the_same_bits(name, tmp_path):
    compiler, emulator = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
    if compiler is None or emulator is None:
        pytest.skip("aarch64-linux-gnu-gcc or qemu-aarch64 is not installed")
    library = "lightgbm" if name.startswith("LGBM") else "xgboost"
    machine = dm.convert(models(library)[name])
    X = data("two")[0][:60, : machine.n_features].astype(np.float64)
    machine.to_c(tmp_path / "model.h")
    listed = ", ".join("NAN" if v != v else f"{v!r}" for v in X.ravel().tolist())
    listed = listed.replace("-inf", "-INFINITY").replace(" inf", " INFINITY")
    (tmp_path / "main.c").write_text(
        "#include <math.h>\n#include <stdio.h>\n"
        f'#include "model.h"\nstatic const double x[] = {{{listed}}};\n'
        "int main(void) {\n    double m[DM_N_OUTPUTS];\n"
        f"    for (int i = 0; i < {len(X)}; ++i) {{\n"
        "        if (dm_margin(x + i * DM_N_FEATURES, m)) return 1;\n"
        '        for (int k = 0; k < DM_N_OUTPUTS; ++k) printf("%a\\n", m[k]);\n    }\n'
        "    return 0;\n}\n"
    )
    built = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-static", "main.c"]
    subprocess.run([*built, "-o", "main", "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run([emulator, "main"], cwd=tmp_path, check=True, capture_output=True)
    found = [float.fromhex(line) for line in done.stdout.decode().split()]
    assert np.array_equal(np.reshape(found, (len(X), -1)), machine.margin(X))
