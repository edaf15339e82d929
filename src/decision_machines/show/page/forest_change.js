// What would change the answer of a forest: the nearest x found, and how near any other could be.
//
// Boxes of inputs are ruled out by what the trees can add up to in them; boxes that are left are
// split by a test. A box from which nothing was left is proven to hold no such x. The search stops
// after so many boxes, and says what it has proven by then.

import { evaluate } from "../../libraries/javascript/evaluate.js";
import { Reach } from "./reach.js";
import { asChange, rowAt } from "./moves.js";

const CLIMBS = 60;
const MOST_SWEPT = 4096;

export class ForestChange {
  constructor(machine, cells, moves, goal, functions, { boxes, isOver }) {
    Object.assign(this, { machine, cells, moves, goal, functions });
    // Part of the time is kept for the second question.
    this.share = 0.6;
    this.isOver = () => isOver(this.share);
    this.reach = new Reach(machine, cells, functions);
    this.allowed = Uint8Array.from(moves.distance, (far) => (far < Infinity ? 1 : 0));
    this.most = boxes;
    this.boxes = 0;
  }

  /** {fewest, smallest}: each the best found (or null) with what is proven of all others. */
  *search() {
    const n = this.machine.nFeatures;
    const { status, place } = yield* this.#decide(this.allowed, n, this.#share(4));
    if (status === "none") return { fewest: null, smallest: null, isProvenNone: true };
    const witness = place && (yield* this.#drawNearer(place, n));
    const smallest = yield* this.#smallest(witness, n);
    [this.boxes, this.share] = [0, 1];
    const fewest = yield* this.#fewest(smallest.place ?? witness);
    return {
      smallest: this.#told(smallest.place, { sizeAtLeast: smallest.lower, isSmallest: smallest.isExact }),
      fewest: this.#told(fewest.place, { countAtLeast: fewest.lower, isFewest: fewest.place !== null && this.#count(fewest.place) === fewest.lower }),
      sizeAtLeast: smallest.lower,
      isProvenNone: !fewest.place && fewest.lower === Infinity,
    };
  }

  #told(place, proven) {
    return place && { ...asChange(this.moves, place), ...proven };
  }

  /** Bisection over the distances that cells have. */
  *#smallest(found, mostChanges) {
    const { distance } = this.moves;
    const radii = Float64Array.from(new Set(distance.filter((far) => far > 0 && far < Infinity))).sort();
    let place = found;
    let [low, high] = [0, place ? radii.indexOf(this.#size(place)) : radii.length];
    let isOpen = !place;
    while (low < high) {
      // Small distances are cheap to clear, so the bisection leans to them.
      const middle = low + ((high - low) >> 2);
      const ball = Uint8Array.from(distance, (far) => (far <= radii[middle] ? 1 : 0));
      const { status, place: nearer } = yield* this.#decide(ball, mostChanges, this.#share(3));
      if (nearer) {
        place = yield* this.#drawNearer(nearer, mostChanges);
        high = radii.indexOf(this.#size(place));
        isOpen = false;
      } else if (status === "none") low = middle + 1;
      else [high, isOpen] = [middle, true];
    }
    return { place, lower: low < radii.length ? radii[low] : Infinity, isExact: !isOpen };
  }

  *#fewest(found) {
    const most = found ? this.#count(found) : this.machine.nFeatures;
    for (let k = 1; k <= most; k += 1) {
      const { status, place } = yield* this.#decide(this.allowed, k, this.#share(2));
      if (place) {
        const { place: nearest } = yield* this.#smallest(yield* this.#drawNearer(place, k), k);
        return { place: nearest, lower: k };
      }
      if (status === "unknown") return { place: found, lower: k };
    }
    return { place: found, lower: found ? most : Infinity };
  }

  // -- one question: is there an x in this box, with at most so many changes, that meets the goal?

  *#decide(box, mostChanges, budget) {
    let place = yield* this.#climb(box, mostChanges);
    if (place) return { status: "found", place };
    const stack = [];
    let spent = 0;
    const look = (candidate) => {
      spent += 1;
      const confined = this.#confine(candidate, mostChanges);
      if (!confined) return null;
      const { worth, way } = this.reach.bound(confined);
      if (way === null || worth < 0) return null;
      const nearest = this.#nearestIn(confined);
      if (this.#isMet(nearest)) return nearest;
      const test = this.reach.branch(way);
      if (test >= 0) stack.push({ worth, box: confined, test });
      return null;
    };
    place = look(box);
    while (stack.length && !place && spent < budget && !this.isOver()) {
      const { box: here, test } = stack.pop();
      const depth = stack.length;
      for (const part of this.reach.split(here, test)) place ??= look(part);
      if (stack.length === depth + 2 && stack[depth].worth > stack[depth + 1].worth) stack.push(stack.splice(depth, 1)[0]);
      yield;
    }
    this.boxes += spent;
    return { status: place ? "found" : stack.length ? "unknown" : "none", place };
  }

  /** The box with at most so many features changed; null where it is empty. */
  #confine(box, mostChanges) {
    const { cells, moves } = this;
    const changed = [];
    for (let feature = 0; feature < moves.own.length; feature += 1) {
      if (box[moves.own[feature]]) continue;
      if (!box.subarray(cells.start[feature], cells.start[feature + 1]).includes(1)) return null;
      changed.push(feature);
    }
    if (changed.length > mostChanges) return null;
    if (changed.length < mostChanges) return box;
    const kept = new Uint8Array(box.length);
    for (const cell of moves.own) kept[cell] = box[cell];
    for (const feature of changed) kept.set(box.subarray(cells.start[feature], cells.start[feature + 1]), cells.start[feature]);
    return kept;
  }

  /** The cells of a box that are nearest in every feature. */
  #nearestIn(box) {
    const { cells, moves } = this;
    return moves.own.map((own, feature) => {
      if (box[own]) return own;
      let best = -1;
      for (let c = cells.start[feature]; c < cells.start[feature + 1]; c += 1) {
        if (box[c] && (best < 0 || moves.distance[c] < moves.distance[best])) best = c;
      }
      return best;
    });
  }

  #isMet(place) {
    return this.goal.isMet(evaluate(this.machine, rowAt(this.moves, place)).margin);
  }

  /** Cells in the box that meet the goal, by the best single change again and again; or null. */
  *#climb(box, mostChanges) {
    const { cells, moves } = this;
    const start = this.#confine(box, mostChanges);
    if (!start) return null;
    const place = this.#nearestIn(start);
    let worth = -Infinity;
    for (let step = 0; step < CLIMBS && !this.isOver(); step += 1) {
      if (this.#isMet(place)) return place;
      const isFull = this.#count(place) >= mostChanges;
      let best = { worth, feature: -1 };
      for (let feature = 0; feature < place.length; feature += 1) {
        if (isFull && place[feature] === moves.own[feature]) continue;
        const asked = some(box, cells.start[feature], cells.start[feature + 1], place[feature]);
        if (!asked.length) continue;
        this.reach.sweep(place, feature, asked).forEach((found, i) => {
          if (found > best.worth) best = { worth: found, feature, cell: asked[i] };
        });
        yield;
      }
      if (best.feature < 0) return null;
      place[best.feature] = best.cell;
      worth = best.worth;
    }
    return null;
  }

  /** Cells that still meet the goal, each feature moved back as far as it goes alone. */
  *#drawNearer(given, mostChanges) {
    const { cells, moves } = this;
    const place = given.slice();
    for (let round = 0; round < 4; round += 1) {
      let isMoved = false;
      const order = Array.from(place.keys()).filter((f) => place[f] !== moves.own[f]);
      order.sort((a, b) => moves.distance[place[b]] - moves.distance[place[a]]);
      for (const feature of order) {
        const nearer = [];
        for (let c = cells.start[feature]; c < cells.start[feature + 1]; c += 1) {
          if (moves.distance[c] < moves.distance[place[feature]]) nearer.push(c);
        }
        const worth = this.reach.sweep(place, feature, nearer);
        const slack = Math.max(0, ...this.functions.terms.map((term) => term.slack));
        const able = nearer.filter((_, i) => worth[i] >= -2 * slack).sort((a, b) => moves.distance[a] - moves.distance[b]);
        const before = place[feature];
        for (const cell of able) {
          place[feature] = cell;
          if (this.#isMet(place)) break;
          place[feature] = before;
        }
        isMoved ||= place[feature] !== before;
        yield;
      }
      if (!isMoved) break;
    }
    return this.#count(place) <= mostChanges ? place : given;
  }

  #size(place) {
    return place.reduce((far, cell) => Math.max(far, this.moves.distance[cell]), 0);
  }

  #count(place) {
    return place.reduce((n, cell, feature) => n + (cell !== this.moves.own[feature] ? 1 : 0), 0);
  }

  /** Boxes for the next question: a part of those that are left. */
  #share(parts) {
    return Math.max(Math.floor((this.most - this.boxes) / parts), 32);
  }
}

/** The cells of a box in a range, but one; of very many, some evenly spread. */
function some(box, start, end, but) {
  const found = [];
  for (let c = start; c < end; c += 1) if (box[c] && c !== but) found.push(c);
  if (found.length <= MOST_SWEPT) return found;
  const step = found.length / MOST_SWEPT;
  return Array.from({ length: MOST_SWEPT }, (_, i) => found[Math.floor(i * step)]);
}
