"""Two processes train as one does, up to the order in which sums are added."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import decision_machines as dm
from decision_machines.train.tune import distributed
from decision_machines.train.tune.descent import Setting

LONGEST = 600
"""Seconds after which two processes are taken to wait for one another."""


def results():
    """What tuning gives for numbers with weights, and for a ranking in groups."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, (101, 4))
    y, w = X @ [1.0, 2, 0, 1] + rng.standard_normal(101), rng.uniform(0.5, 2, 101)
    options = {"settings": [Setting(0.3)], "epochs": 2, "batch_size": 16, "verbose": False}
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


def start(rank, port, folder):
    """This file as a process of two, in the environment that torchrun gives its processes."""
    told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "TORCHELASTIC_RUN_ID": "test"}
    told |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
    env = os.environ | {name: str(value) for name, value in told.items()}
    out = folder / f"{rank}.npz"
    return subprocess.Popen([sys.executable, __file__, str(out)], env=env, stderr=subprocess.PIPE)


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")
def test_two_processes_give_what_one_does(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    both = [start(rank, port, tmp_path) for rank in (0, 1)]
    alone = results()
    try:
        for process in both:
            said = process.communicate(timeout=LONGEST)[1].decode()
            assert process.returncode == 0, said[-4000:]
    finally:
        for process in both:
            process.kill()
    two = [np.load(tmp_path / f"{rank}.npz") for rank in (0, 1)]
    for name, value in alone.items():
        assert np.array_equal(two[0][name], two[1][name]), name
        assert np.allclose(two[0][name], value, rtol=1e-6, atol=1e-9), name
    assert not np.array_equal(alone["numbers leaves.V"], dm.figure_one().V)


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


if __name__ == "__main__":
    found = results()
    assert torch.distributed.get_world_size() == 2
    np.savez(Path(sys.argv[1]), **found)
