#include "optimal/solver.hpp"

#include <algorithm>
#include <numeric>
#include <queue>

namespace dm::optimal {
namespace {

// Cuts of each feature before one of them is gone through.
constexpr int64_t kProbes = 2;

}  // namespace

Solved Solver::leaf(const Node& node, double limit) {
    Solved found;
    found.bound = stumps_.leaf(node) + problem_.penalty;
    if (found.bound < limit - problem_.slack && node.m >= problem_.least) found.value = found.bound;
    return found;
}

Solved Solver::stump(const Node& node, double limit) {
    Solved found = leaf(node, limit);
    const Stump best = stumps_.best(node, -1, 0, 0);
    found.bound = std::min(found.bound, best.relaxed + 2 * problem_.penalty);
    const double value = best.loss + 2 * problem_.penalty;
    if (value < std::min(limit, found.value) - problem_.slack) {
        found.value = value;
        found.tree.tests[0] = test_at(problem_, node, best.feature, best.below, best.above);
    }
    return found;
}

void Solver::weights_by_rank(const Node& node, int32_t f, std::vector<double>& out) const {
    const int32_t* order = node.order_of(f);
    const int32_t* rank = node.rank_of(f);
    out.resize(node.n_ranks[f]);
    double sum = 0.0;
    for (int32_t i = 0; i < node.m; ++i) out[rank[order[i]]] = sum += node.w[order[i]];
}

// The best tree of two levels with this cut at its root, exactly, where it is below `best`.
// Tests of `second` alone are tried on either side, or of all features where it is null.
void Solver::confirm(const Node& node, int32_t f, int32_t cut, int64_t leaves,
                     const int32_t* second, Solved& best) {
    const double penalty = problem_.penalty;
    const int32_t* order = node.order_of(f);
    const int32_t* rank = node.rank_of(f);
    const int32_t n_left = static_cast<int32_t>(
        std::upper_bound(order, order + node.m, cut,
                         [rank](int32_t c, int32_t row) { return c < rank[row]; }) -
        order);
    double leaf[2] = {leaf_left_[cut] + penalty, leaf_right_[cut] + penalty};
    if (n_left < problem_.least) leaf[0] = kInfinite;
    if (node.m - n_left < problem_.least) leaf[1] = kInfinite;
    Stump stump[2];
    double split[2] = {kInfinite, kInfinite};
    for (int side = 0; side < 2 && leaves >= 3; ++side) {
        stump[side] = stumps_.best(node, f, cut, side, second ? second[side] : -1);
        split[side] = stump[side].loss + 2 * penalty;
    }
    double value = best.value;
    int32_t chosen = -1;
    for (int32_t which = 0; which < 4; ++which) {  // bit `side`: whether that side is split
        if (which == 3 && leaves < 4) continue;
        const double sum = (which & 1 ? split[0] : leaf[0]) + (which & 2 ? split[1] : leaf[1]);
        if (sum < value - problem_.slack) {
            value = sum;
            chosen = which;
        }
    }
    if (chosen < 0) return;
    best.value = value;
    best.tree = Tree{};
    best.tree.tests[0] = test_at(problem_, node, f, order[n_left - 1], order[n_left]);
    for (int side = 0; side < 2; ++side)
        if (chosen & (1 << side))
            best.tree.tests[1 + side] =
                test_at(problem_, node, stump[side].feature, stump[side].below, stump[side].above);
}

void Solver::complete(const Node& node, int64_t leaves, Solved& solved) {
    if (solved.f < 0) return;
    stumps_.leaves(node, solved.f, leaf_left_, leaf_right_);
    const int32_t f = solved.f;
    const double promised = solved.value;
    solved.f = -1;
    solved.value = kInfinite;
    confirm(node, f, solved.cut, leaves, solved.second, solved);
    // Where losses are not exact another feature can be better.
    if (solved.value > promised) {
        solved.value = kInfinite;
        confirm(node, f, solved.cut, leaves, nullptr, solved);
    }
}

Solved Solver::two_levels(const Node& node, int64_t leaves, double limit,
                          const FeatureBounds* known, FeatureBounds* learned) {
    const double penalty = problem_.penalty, slack = problem_.slack;
    const int64_t n = problem_.n;
    Solved best = leaf(node, limit);
    if (best.value == kInfinite) best.value = limit;
    // What a side is worth at least, given its leaf's and its two leaves' losses.
    const auto side_value = [&](double one, double two) {
        return std::min(one + penalty, two + 2 * penalty);
    };
    struct Piece {
        int32_t first, last;
        double left_one, left_two, right_one, right_two;  // losses at its ends
        int64_t left, right;  // where `second_` has them by feature of the second test
        double bound;

        bool operator<(const Piece& other) const {  // the largest is tried first
            if (bound != other.bound) return bound > other.bound;
            return first > other.first;
        }
    };
    const auto bound_of = [&](double left_one, double left_two, double right_one,
                              double right_two) {
        if (leaves >= 4) return side_value(left_one, left_two) + side_value(right_one, right_two);
        return std::min(left_one + penalty + side_value(right_one, right_two),
                        right_one + penalty + side_value(left_one, left_two));
    };
    std::vector<int32_t> features(problem_.n);
    std::iota(features.begin(), features.end(), 0);
    if (known)
        std::stable_sort(features.begin(), features.end(),
                         [&](int32_t a, int32_t b) { return (*known)[a] < (*known)[b]; });
    // Two leaves are never worse than one, unless leaves cost something.
    const bool is_relaxed = problem_.least == 1;
    const bool needs_leaves = leaves < 4 || penalty > 0.0 || !is_relaxed;
    const std::vector<double>& one_left = needs_leaves ? leaf_left_ : one_leaf_;
    const std::vector<double>& one_right = needs_leaves ? leaf_right_ : one_leaf_;
    Screen* screen = nullptr;
    int32_t entered = -1;
    // What is left to do of each feature, and what is proven of the cuts that are done.
    std::vector<std::vector<Piece>> pieces(n);
    std::vector<double> feature_bound(n, kInfinite);
    const auto keep = [&](int32_t f, Piece piece) {
        if (piece.first > piece.last) return;
        piece.bound = bound_of(piece.left_one, piece.left_two, piece.right_one, piece.right_two);
        pieces[f].push_back(piece);
        std::push_heap(pieces[f].begin(), pieces[f].end());
    };
    // Cuts of feature f until it is done, or so many are tried; the least value among them.
    const auto explore = [&](int32_t f, int64_t most_cuts) {
        double least = kInfinite;
        while (!pieces[f].empty() && pieces[f].front().bound < best.value - slack) {
            if (most_cuts-- == 0) return least;
            if (!screen) screen = &screens_.enter(node);
            if (entered != f) {
                entered = f;
                screen->enter_feature(f);
                if (needs_leaves)
                    stumps_.leaves(node, f, leaf_left_, leaf_right_);
                else
                    one_leaf_.assign(node.n_ranks[f], kInfinite);
                weights_by_rank(node, f, weight_);
            }
            std::pop_heap(pieces[f].begin(), pieces[f].end());
            const Piece piece = pieces[f].back();
            pieces[f].pop_back();
            stop_.look();
            const int32_t cut = piece.first + (piece.last - piece.first) / 2;
            double two[2];
            const int64_t at = static_cast<int64_t>(second_.size());
            second_.resize(at + 2 * n);
            const double room = best.value - slack;
            screen->losses(cut,
                           {second_.data() + piece.left, second_.data() + piece.right,
                            room - side_value(piece.right_one, piece.right_two),
                            room - side_value(piece.left_one, piece.left_two)},
                           second_.data() + at, second_.data() + at + n, two);
            double value = bound_of(one_left[cut], two[0], one_right[cut], two[1]);
            if (value < best.value - slack && screen->exact_losses(cut, two))
                value = bound_of(one_left[cut], two[0], one_right[cut], two[1]);
            least = std::min(least, value);
            feature_bound[f] = std::min(feature_bound[f], value);
            if (value < best.value - slack) {
                if (is_relaxed) {
                    best.value = value;
                    best.f = f;
                    best.cut = cut;
                    for (int side = 0; side < 2; ++side) {
                        const auto first = second_.begin() + at + side * n;
                        best.second[side] =
                            static_cast<int32_t>(std::min_element(first, first + n) - first);
                    }
                } else {
                    confirm(node, f, cut, leaves, nullptr, best);
                }
            }
            // Cuts nearby cannot be better by more than the weight that changes sides.
            int32_t before = cut - 1, behind = cut + 1;
            if (problem_.loss == Loss::error) {
                const double spare = value - (best.value - slack);
                while (before >= piece.first && weight_[cut] - weight_[before] <= spare) --before;
                while (behind <= piece.last && weight_[behind] - weight_[cut] <= spare) ++behind;
                const double reached = std::max(weight_[cut] - weight_[before + 1],
                                                weight_[behind - 1] - weight_[cut]);
                feature_bound[f] = std::min(feature_bound[f], value - reached);
            }
            keep(f, {piece.first, before, piece.left_one, piece.left_two, one_right[cut], two[1],
                     piece.left, at + n, 0.0});
            keep(f, {behind, piece.last, one_left[cut], two[0], piece.right_one, piece.right_two,
                     at, piece.right, 0.0});
        }
        for (const Piece& piece : pieces[f])
            feature_bound[f] = std::min(feature_bound[f], piece.bound);
        pieces[f].clear();
        return least;
    };
    second_.assign(n, 0.0);
    std::vector<int32_t> open;
    for (const int32_t f : features) {
        if (node.n_ranks[f] < 2) continue;
        if (known && (*known)[f] >= best.value - slack) {
            feature_bound[f] = (*known)[f];
        } else {
            const double bound = std::max(known ? (*known)[f] : 0.0, 2 * penalty);
            pieces[f].push_back({0, node.n_ranks[f] - 2, 0.0, 0.0, 0.0, 0.0, 0, 0, bound});
            open.push_back(f);
        }
    }
    // Where nothing is known of features, a few cuts of each tell which to begin with.
    if (!known && open.size() > 1) {
        std::vector<double> least(n, kInfinite);
        for (const int32_t f : open) least[f] = explore(f, kProbes);
        std::stable_sort(open.begin(), open.end(),
                         [&](int32_t a, int32_t b) { return least[a] < least[b]; });
    }
    const size_t n_probed = second_.size();
    for (const int32_t f : open) {
        second_.resize(n_probed);
        explore(f, std::numeric_limits<int64_t>::max());
    }
    for (const double bound : feature_bound) best.bound = std::min(best.bound, bound);
    if (learned) {
        *learned = feature_bound;
        // A test that all rows pass is one, too: more rows may make it tell some apart.
        double least = best.bound;
        if (screen) {
            double two[2];
            second_.assign(3 * n, 0.0);
            screen->losses(node.n_ranks[entered] - 1,
                           {second_.data(), second_.data(), kInfinite, kInfinite},
                           second_.data() + n, second_.data() + 2 * n, two);
            least = side_value(one_left[node.n_ranks[entered] - 1], two[0]);
        }
        for (double& bound : *learned) bound = std::min(bound, least);
    }
    if (best.value >= limit) best.value = kInfinite;
    return best;
}

std::vector<Interval> Solver::all_cuts(const Node& node, int32_t depth, int64_t leaves,
                                       const FeatureBounds* known) const {
    std::vector<Interval> found;
    const int64_t most = most_leaves(depth - 1);
    leaves = std::min(leaves, 2 * most);
    for (int32_t f = 0; f < problem_.n; ++f) {
        if (node.n_ranks[f] < 2) continue;
        for (int64_t left = std::max<int64_t>(1, leaves - most); left <= std::min(most, leaves - 1);
             ++left) {
            const double bound = std::max(known ? (*known)[f] : 0.0, 2 * problem_.penalty);
            found.push_back({f, 0, node.n_ranks[f] - 2, left, leaves - left, problem_.penalty,
                             problem_.penalty, bound, nullptr, nullptr});
        }
    }
    return found;
}

Solver::Tried Solver::attempt(const Node& node, int32_t depth, const Interval& interval,
                              double limit) {
    Tried out;
    Level& level = levels_[depth];
    const int32_t f = interval.f;
    const int32_t cut = interval.first + (interval.last - interval.first) / 2;
    split(problem_, node, f, cut, level.left, level.right, level.scratch);
    auto left_features = std::make_shared<FeatureBounds>();
    auto right_features = std::make_shared<FeatureBounds>();
    // No more than what decides whether cuts up to the other end of the interval are worth a look.
    Solved left = solve(level.left, depth - 1, interval.left_leaves, limit - interval.right_bound,
                        interval.left_features.get(), left_features.get());
    Solved right = solve(level.right, depth - 1, interval.right_leaves, limit - interval.left_bound,
                         interval.right_features.get(), right_features.get());
    const double left_bound = std::max(interval.left_bound, left.bound);
    const double right_bound = std::max(interval.right_bound, right.bound);
    const double bound = std::max(interval.bound, left_bound + right_bound);
    out.solved.bound = bound;
    if (left.value + right.value < limit - problem_.slack) {
        complete(level.left, interval.left_leaves, left);
        complete(level.right, interval.right_leaves, right);
        out.solved.value = left.value + right.value;
        out.solved.tree.put(1, left.tree);
        out.solved.tree.put(2, right.tree);
        const int32_t* order = node.order_of(f);
        const int32_t n_left = level.left.m;
        out.solved.tree.tests[0] = test_at(problem_, node, f, order[n_left - 1], order[n_left]);
        limit = out.solved.value;
    }
    int32_t before = cut - 1, behind = cut + 1;
    if (problem_.loss == Loss::error) {
        weights_by_rank(node, f, level.weight);
        const std::vector<double>& weight = level.weight;
        const double room = bound - (limit - problem_.slack);
        while (before >= interval.first && weight[cut] - weight[before] <= room) --before;
        while (behind <= interval.last && weight[behind] - weight[cut] <= room) ++behind;
        const double reached =
            std::max(weight[cut] - weight[before + 1], weight[behind - 1] - weight[cut]);
        out.solved.bound = std::min(bound, std::max(interval.bound, bound - reached));
    }
    const auto keep = [&](Interval part) {
        part.bound = std::max(interval.bound, part.left_bound + part.right_bound);
        if (part.first > part.last) return;
        if (part.bound >= limit - problem_.slack)
            out.solved.bound = std::min(out.solved.bound, part.bound);
        else
            out.left.push_back(std::move(part));
    };
    Interval part = interval;
    part.last = before;
    part.right_bound = right_bound;
    part.right_features = right_features;
    keep(part);
    part = interval;
    part.first = behind;
    part.left_bound = left_bound;
    part.left_features = left_features;
    keep(part);
    return out;
}

Solved Solver::more_levels(const Node& node, int32_t depth, int64_t leaves, double limit,
                           const FeatureBounds* known, FeatureBounds* learned) {
    Solved best = leaf(node, limit);
    if (best.value == kInfinite) best.value = limit;
    std::priority_queue<Interval> queue;
    for (Interval& interval : all_cuts(node, depth, leaves, known)) queue.push(std::move(interval));
    while (!queue.empty()) {
        const Interval interval = queue.top();
        queue.pop();
        if (interval.bound >= best.value - problem_.slack) {
            best.bound = std::min(best.bound, interval.bound);
            break;  // so are all that follow
        }
        Tried tried = attempt(node, depth, interval, best.value);
        if (tried.solved.value < best.value) {
            best.value = tried.solved.value;
            best.tree = tried.solved.tree;
        }
        best.bound = std::min(best.bound, tried.solved.bound);
        for (Interval& part : tried.left) queue.push(std::move(part));
    }
    if (learned) learned->assign(problem_.n, best.bound);
    if (best.value >= limit) best.value = kInfinite;
    return best;
}

Solved Solver::solve(const Node& node, int32_t depth, int64_t leaves, double limit,
                     const FeatureBounds* known, FeatureBounds* learned) {
    stop_.look();
    if (learned) learned->assign(problem_.n, 0.0);
    if (depth == 0 || leaves == 1) return leaf(node, limit);
    // Nothing is below the price of a leaf.
    if (problem_.penalty >= limit - problem_.slack) {
        Solved none;
        none.bound = problem_.penalty;
        return none;
    }
    if (node.n_classes == 1) {
        Solved found = leaf(node, limit);
        if (learned) learned->assign(problem_.n, found.bound);
        return found;
    }
    if (depth == 1 || leaves == 2) return stump(node, limit);
    if (depth == 2 || leaves == 3) return two_levels(node, leaves, limit, known, learned);
    return more_levels(node, depth, leaves, limit, known, learned);
}

}  // namespace dm::optimal
