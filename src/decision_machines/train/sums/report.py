"""What a sum of machines says of itself."""

from __future__ import annotations

from typing import Any


class SumReport(dict[str, Any]):
    """What was tried, what each gave, what the sum gives; a dictionary that prints as a table.

    All losses are means over rows that neither trained nor stopped nor tuned what is judged. The
    sum's are of rows that its weights were not chosen by either.

    Keys: "objective", "rows", "judged" (rows), "folds", "constant" (the loss of the best constant),
    "tried" (name, soft, hard, weights, seconds and folds of each), "soft", "hard" (losses of the
    sums), "gain" (1 - soft / constant), "notes", "interrupted", "seconds"; for intervals "margins",
    "hard margins" and "targets" of the rows that judged.
    """

    def __str__(self) -> str:
        folds = self["folds"]
        how = f"{folds} folds" if folds > 1 else "rows held out"
        lines = [
            f"A sum of machines for {self['objective']}: {self['rows']} rows, "
            f"{self['judged']} judge by {how}"
            + (", interrupted" if self["interrupted"] else "")
            + f"; {self['seconds']:.1f} s",
            f"  {'':34} {'soft':>10} {'weight':>7} {'hard':>10} {'weight':>7} {'seconds':>8}",
        ]
        for one in self["tried"]:
            name = one["name"] + ("" if one["folds"] == folds else " (first fold)")
            lines.append(
                f"  {name:34} {one['soft']:10.5g} {one['soft weight']:7.2f} "
                f"{one['hard']:10.5g} {one['hard weight']:7.2f} {one['seconds']:8.1f}"
            )
        lines.append(f"  {'the sum':34} {self['soft']:10.5g} {'':7} {self['hard']:10.5g}")
        lines += [f"  note: {note}" for note in self["notes"]]
        return "\n".join(lines)

    __repr__ = __str__
