"""Fine-tuning: a machine of any library goes on learning, soft and hard."""

from __future__ import annotations

from .fine_tune import tune

__all__ = ["tune"]
