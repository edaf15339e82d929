"""Every test of this room starts from the same random numbers. One thread: the cores are shared."""

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _same_start():
    torch.manual_seed(0)
