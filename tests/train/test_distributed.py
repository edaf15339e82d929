"""Two processes train as one does, up to the order in which sums are added."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import decision_machines as dm
from decision_machines.train import distributed
from decision_machines.train.descent import Setting

SCRIPT = """
import faulthandler, os, sys
faulthandler.dump_traceback_later(300, exit=True)  # two processes that wait for one another
sys.path.insert(0, {folder!r})
from test_distributed import results
import numpy as np
found = results()
np.savez({out!r} + os.environ["RANK"] + ".npz", **found)
"""


def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, (101, 4))
    return X, X @ [1.0, 2, 0, 1] + rng.standard_normal(101), rng.uniform(0.5, 2, 101)


def results():
    """What tuning gives for numbers with weights, and for a ranking in groups."""
    torch.set_num_threads(1)
    X, y, w = rows()
    options = {"settings": [Setting(0.3)], "epochs": 2, "batch_size": 16, "show": False}
    numbers = dm.tune(dm.figure_one(), X, y, sample_weight=w, **options)
    ranked = np.clip(np.round(y / 4), 0, 4)
    group = np.arange(101) // 7
    ranking = dm.tune(dm.figure_one(), X, ranked, group=group, **options)
    found = {}
    for name, tuned in (("numbers", numbers), ("ranking", ranking)):
        found |= {f"{name} {k}": v.numpy() for k, v in tuned.soft.state_dict().items()}
        found |= {f"{name} t": tuned.machine.t, f"{name} V": tuned.machine.V}
        found[f"{name} loss"] = np.array([tuned.report.soft, tuned.report.hard])
    return found


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")
def test_two_processes_of_torchrun_give_what_one_does(tmp_path):
    script = tmp_path / "script.py"
    out = str(tmp_path / "found")
    script.write_text(SCRIPT.format(folder=str(__file__).rsplit("/", 1)[0], out=out))
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = subprocess.run([*run, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    alone = results()
    two = [np.load(f"{out}{rank}.npz") for rank in (0, 1)]
    for name, value in alone.items():
        assert np.array_equal(two[0][name], two[1][name]), name
        assert np.allclose(two[0][name], value, rtol=1e-6, atol=1e-9), name
    start = dm.figure_one()
    assert not np.array_equal(alone["numbers V"], start.V)


def test_shares_of_a_batch_are_all_of_it_and_groups_stay_whole(monkeypatch):
    monkeypatch.setattr(distributed, "n_processes", lambda: 3)
    index = torch.arange(20, 31)
    groups = torch.tensor([5, 5, 2, 2, 2, 9, 9, 7, 7, 7, 7])
    for ids in (None, groups):
        parts = []
        for rank in range(3):
            monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
            parts.append(distributed.share(index, ids))
        assert sorted(torch.cat(parts).tolist()) == index.tolist()
        if ids is not None:
            owners = {int(ids[row - 20]): set() for row in index.tolist()}
            for rank, part in enumerate(parts):
                for row in part.tolist():
                    owners[int(ids[row - 20])].add(rank)
            assert all(len(found) == 1 for found in owners.values())
