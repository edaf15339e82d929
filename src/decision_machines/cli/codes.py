"""Exit codes of `dm`; the command's help says what they mean."""

from __future__ import annotations

DONE, DIFFERS, WRONG, DEFECT, UNPROVEN, INTERRUPTED, UNREAD = 0, 1, 2, 3, 4, 130, 141
