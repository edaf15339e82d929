"""Model files give the library's own answers when they are read back."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.mark.parametrize("library", ["sklearn", "xgboost", "lightgbm", "catboost"])
def test_files_that_are_made_here_are_read_here(library, tmp_path):
    import check_files
    import make_files

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert make_files.make(tmp_path, (library,)) > 2
        results = check_files.check(tmp_path)
    assert set(results.values()) == {"equal"}, results
