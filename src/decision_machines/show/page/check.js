// The page checks itself: rows that Python has answered are answered here again.

import { unpack } from "../../libraries/javascript/machine.js";
import { evaluate } from "../../libraries/javascript/evaluate.js";
import { answerFor } from "./answer.js";
import { plural } from "./words.js";
import { byId } from "./svg.js";

const near = (a, b, limit) => Object.is(a, b) || a === b || Math.abs(a - b) <= limit * Math.max(1, Math.abs(b));

/** Say whether leaves and margins are the same to the bit, and responses but for the last places. */
export function checkItself(machine, check) {
  const [x, leaves, margin, response] = ["x", "leaves", "margin", "response"].map((name) => unpack(check[name]));
  const n = check.x.shape[0];
  const width = check.response.shape[1];
  const limit = machine.output.single ? 1e-6 : 1e-12;
  let wrong = 0;
  for (let row = 0; row < n; row += 1) {
    const found = evaluate(machine, x.subarray(row * machine.nFeatures, (row + 1) * machine.nFeatures));
    const answer = answerFor(machine, found.margin).response;
    const isSame =
      found.exits.every((leaf, tree) => leaf === leaves[row * machine.nTrees + tree]) &&
      found.margin.every((m, o) => Object.is(m, margin[row * machine.output.k + o])) &&
      (!answer || answer.every((v, o) => near(v, response[row * width + o], limit)));
    if (!isSame) wrong += 1;
  }
  const badge = byId("check");
  badge.classList.add(wrong ? "bad" : "good");
  badge.textContent = wrong
    ? `✗ ${wrong} of ${n} rows differ from Python in this browser`
    : `✓ ${n} rows × ${plural(machine.nTrees, "tree")} checked here: equal to Python`;
}
