"""Pictures of Shapley values: what is drawn is what was computed."""

from dataclasses import replace

import numpy as np
import pytest
from strategies import make_machine

from decision_machines.errors import InputError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


def machine_and_rows():
    rng = np.random.default_rng(0)
    machine = make_machine(
        [12, 9, 7], rng, n_features=6, n_outputs=2, rules=False, plain_output=True, values="real"
    )
    rows = rng.normal(size=(60, 6))
    rows[4, 2] = np.nan
    return machine.with_cover(rows), rows


@pytest.fixture(autouse=True)
def closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def test_bars_are_means_of_absolute_values():
    machine, rows = machine_and_rows()
    shown = machine.plot_shap(rows, kind="bar", output=1)
    mean = np.abs(machine.shap_values(rows)[:, :, 1]).mean(axis=0)
    widths = sorted(patch.get_width() for patch in shown.ax_.patches)
    np.testing.assert_allclose(widths, np.sort(mean))


def test_a_waterfall_goes_from_the_base_to_the_margin():
    machine, rows = machine_and_rows()
    shown = machine.plot_shap(rows[4], kind="waterfall", most=3)
    bars = shown.ax_.patches
    assert bars[0].get_x() == pytest.approx(machine.shap_base()[0])
    end = bars[-1].get_x() + bars[-1].get_width()
    assert end == pytest.approx(machine.margin(rows[4:5])[0, 0])
    assert len(bars) == 4  # three features, and all others together


def test_a_waterfall_names_labels_and_gaps():
    machine, rows = machine_and_rows()
    columns = replace(machine.columns, names=list("abcdef"), categories={1: ("red", "green")})
    named = replace(machine, columns=columns)
    row = rows[4].astype(object)
    row[1] = 1.0
    shown = named.plot_shap(np.array(row, float), kind="waterfall")
    said = {label.get_text() for label in shown.ax_.get_yticklabels()}
    assert {"b = green", "c = missing"} <= said


def test_a_beeswarm_has_a_point_for_each_row_and_feature():
    machine, rows = machine_and_rows()
    shown = machine.plot_shap(rows, most=4)
    clouds = [c for c in shown.ax_.collections if len(c.get_offsets()) == len(rows)]
    assert len(clouds) == 4
    drawn = np.sort(clouds[-1].get_offsets()[:, 0])
    expected = np.sort(shown.values[:, shown.order[0]])
    np.testing.assert_allclose(drawn, expected)


def test_dependence_draws_one_feature():
    machine, rows = machine_and_rows()
    shown = machine.plot_shap(rows, kind="dependence", feature=2)
    cloud, gaps = shown.ax_.collections
    known = ~np.isnan(rows[:, 2])
    np.testing.assert_allclose(cloud.get_offsets()[:, 0], rows[known, 2])
    assert len(gaps.get_offsets()) == 1


@pytest.mark.parametrize(
    "wrong", [{"kind": "pie"}, {"output": 2}, {"kind": "waterfall"}, {"feature": "nobody"}]
)
def test_what_cannot_be_drawn_is_refused(wrong):
    machine, rows = machine_and_rows()
    with pytest.raises(InputError):
        machine.plot_shap(rows, **wrong)
