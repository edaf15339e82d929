"""Every test of this room starts from the same random numbers."""

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _same_start():
    torch.manual_seed(0)
