#include "search/local_search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/interrupts.hpp"

namespace dm::search {

namespace {

constexpr double kTwoLevels = 0.1;      // of the moves put two levels of tests in a place
constexpr int64_t kPairedFeatures = 6;  // of them at most, drawn anew each time

}  // namespace

// -- growth ---------------------------------------------------------------------------------------

// Put the features to look at first in features_; how many is in their size: all, or a few.
void LocalSearch::pick_features(bool partly) {
    const int64_t n = rows_.n;
    features_.resize(n);
    std::iota(features_.begin(), features_.end(), 0);
    if (!partly || n <= 2) return;
    const int64_t few = std::max<int64_t>(2, std::min<int64_t>(n, n / 4 + 2));
    for (int64_t i = 0; i < few; ++i) std::swap(features_[i], features_[i + random_.below(n - i)]);
    features_.resize(few);
}

// The purest test that a leaf could have.
void LocalSearch::look(Tree& tree, int32_t at, bool partly) {
    Node& node = tree.nodes[at];
    node.next = Split{};
    node.gain = 0.0;
    node.known = Node::Known::fully;
    if (node.depth >= settings_.max_depth || node.count() < 2 * settings_.least ||
        node.loss <= 1e-12 * root_loss_)
        return;
    pick_features(partly);
    if (partly) node.known = Node::Known::partly;
    search_->enter(&tree.rows[node.first], node.count(), nullptr);
    for (const int32_t feature : features_)
        search_->purest(settings_.objective, feature, settings_.least, node.next,
                        price(tree, at, feature, node.about.weight));
    if (node.next.found())
        node.gain = node.loss - node.next.loss - settings_.leaf_cost * root_loss_;
}

// Split leaves, the one that gains most first, until there are max_leaves. The first split is not
// at `barred`.
void LocalSearch::spend(Tree& tree, bool partly, int32_t barred) {
    while (tree.n_leaves < settings_.max_leaves) {
        int32_t best = -1;
        double most = 1e-12 * root_loss_;
        for (size_t i = 0; i < tree.nodes.size(); ++i) {
            Node& node = tree.nodes[i];
            if (node.parent == -2 || !node.is_leaf() || static_cast<int32_t>(i) == barred) continue;
            if (node.known == Node::Known::no || (!partly && node.known == Node::Known::partly))
                look(tree, static_cast<int32_t>(i), partly);
            if (node.gain > most) most = node.gain, best = static_cast<int32_t>(i);
        }
        if (best < 0) return;
        const Split test = tree.nodes[best].next;
        split(tree, best, test);
        barred = -1;
    }
}

void LocalSearch::grow(bool in_bins) {
    if (in_bins) search_ = &coarse_;
    const auto keep = [&] {
        search_ = &fine_;
        total_loss(current_);
        best_ = current_;
    };
    try {
        spend(current_, false, -1);
    } catch (const common::Interrupted&) {
        keep();  // a leaf is looked at before anything is changed: what is grown is whole
        throw;
    }
    keep();
}

// -- TAO's step -----------------------------------------------------------------------------------

double LocalSearch::row_loss(const Tree& tree, int32_t leaf, int32_t row) const {
    const int32_t k = rows_.k;
    const double* cost = &tree.cost[int64_t{leaf} * k];
    if (rows_.classify()) return cost[rows_.label[row]];
    const double* y = rows_.y + int64_t{row} * k;
    const Objective& objective = settings_.objective;
    double loss = 0.0;
    for (int32_t c = 0; c < k; ++c) switch (objective.number) {
            case NumberLoss::squared: loss += (y[c] - cost[c]) * (y[c] - cost[c]); break;
            case NumberLoss::poisson: loss += cost[c] - y[c] * std::log(cost[c]); break;
            case NumberLoss::quantile:
                loss += y[c] > cost[c] ? objective.quantile * (y[c] - cost[c])
                                       : (1.0 - objective.quantile) * (cost[c] - y[c]);
        }
    return loss;
}

int32_t LocalSearch::exit_leaf(const Tree& tree, int32_t at, int32_t row) const {
    const uint16_t* ranks = by_row_ + int64_t{row} * rows_.n;
    while (!tree.nodes[at].is_leaf()) {
        const Node& node = tree.nodes[at];
        at = node.test.goes_left(ranks[node.test.feature]) ? node.left : node.right;
    }
    return at;
}

// The best test of a node while all else stays, leaves' values included; at a twig the values
// follow the test. Whether the test changed.
bool LocalSearch::better(Tree& tree, int32_t at, bool partly) {
    Node& node = tree.nodes[at];
    const Node &left = tree.nodes[node.left], &right = tree.nodes[node.right];
    const double slack = 1e-9 * root_loss_;
    Split best;
    pick_features(partly);
    const double weight = settings_.feature_cost.empty() ? 0.0 : weight_of(tree, at);
    const double own_price = price(tree, at, node.test.feature, weight);
    if (left.is_leaf() && right.is_leaf()) {
        best.loss = left.loss + right.loss + own_price - slack;
        search_->enter(&tree.rows[node.first], node.count(), nullptr);
        for (const int32_t feature : features_)
            search_->purest(settings_.objective, feature, settings_.least, best,
                            price(tree, at, feature, weight));
    } else {
        double present = 0.0;
        for (int64_t i = node.first; i < node.last;) {
            const int32_t own = exit_leaf(tree, at, tree.rows[i]);
            const int64_t last = tree.nodes[own].last;
            const bool is_left = i < left.last;
            const int32_t other = is_left ? node.right : node.left;
            for (; i < last; ++i) {
                const int32_t row = tree.rows[i];
                const double less =
                    row_loss(tree, own, row) - row_loss(tree, exit_leaf(tree, other, row), row);
                lean_[i - node.first] = rows_.w[row] * (is_left ? less : -less);
                if (is_left) present += rows_.w[row] * less;
            }
        }
        best.loss = present + own_price - slack;
        search_->enter(&tree.rows[node.first], node.count(), lean_.data());
        for (const int32_t feature : features_)
            search_->preferred(feature, settings_.least, best, price(tree, at, feature, weight));
    }
    if (!best.found()) return false;
    node.test = best;
    refresh(tree, at);
    return true;
}

// TAO's step at every node of a subtree, from the bottom up.
void LocalSearch::sweep(Tree& tree, int32_t at, bool partly, int rounds) {
    std::vector<int32_t> order{at};
    for (size_t i = 0; i < order.size(); ++i) {
        const Node& node = tree.nodes[order[i]];
        if (node.is_leaf()) continue;
        order.push_back(node.left), order.push_back(node.right);
    }
    for (int round = 0; round < rounds; ++round) {
        bool any = false;
        for (size_t i = order.size(); i-- > 0;) {
            const Node& node = tree.nodes[order[i]];
            if (!node.is_leaf() && node.count() > 1) any |= better(tree, order[i], partly);
        }
        if (!any) return;
    }
}

// -- moves ----------------------------------------------------------------------------------------

// A test of a random feature that parts the node's rows: its purest cut, or that of a random row.
Split LocalSearch::random_test(Tree& tree, int32_t at) {
    const Node& node = tree.nodes[at];
    Split test;
    if (node.count() < 2) return test;
    const bool purest = random_.unit() < 0.5;
    if (purest) search_->enter(&tree.rows[node.first], node.count(), nullptr);
    for (int attempt = 0; attempt < 4 && !test.found(); ++attempt) {
        const int32_t feature = static_cast<int32_t>(random_.below(rows_.n));
        if (purest) {
            search_->purest(settings_.objective, feature, settings_.least, test);
        } else {
            const int32_t row = tree.rows[node.first + random_.below(node.count())];
            const uint16_t rank = rows_.rank[int64_t{feature} * rows_.m + row];
            if (rank == kMissing) continue;
            test.feature = feature, test.cut = rank, test.missing_left = random_.unit() < 0.5;
        }
    }
    return test;
}

// The best two levels of tests of a few features in the place of what is at touched_.
bool LocalSearch::two_levels(Tree& tree) {
    const Node& node = tree.nodes[touched_];
    if ((!rows_.classify() && settings_.objective.is_quantile()) || node.count() < 4 ||
        node.depth + 2 > settings_.max_depth)
        return false;
    features_.resize(rows_.n);
    std::iota(features_.begin(), features_.end(), 0);
    const int64_t few = std::min<int64_t>(kPairedFeatures, rows_.n);
    for (int64_t i = 0; i < few; ++i)
        std::swap(features_[i], features_[i + random_.below(rows_.n - i)]);
    features_.resize(few);
    const TwoLevels found = pairs_.best(settings_.objective, &tree.rows[node.first], node.count(),
                                        features_, settings_.least);
    if (!found.found()) return false;
    collapse(tree, touched_);
    split(tree, touched_, found.top);
    const int32_t left = tree.nodes[touched_].left, right = tree.nodes[touched_].right;
    if (found.left.found() && tree.n_leaves < settings_.max_leaves) split(tree, left, found.left);
    if (found.right.found() && tree.n_leaves < settings_.max_leaves)
        split(tree, right, found.right);
    return true;
}

// Change one place; touched_ says where. False where nothing could be changed.
bool LocalSearch::change(Tree& tree) {
    inner_.clear();
    for (size_t i = 0; i < tree.nodes.size(); ++i)
        if (tree.nodes[i].parent != -2 && !tree.nodes[i].is_leaf())
            inner_.push_back(static_cast<int32_t>(i));
    if (inner_.empty()) return false;
    const auto any_inner = [&] { return inner_[random_.below(inner_.size())]; };
    touched_ = any_inner(), barred_ = -1;
    if (random_.unit() < kTwoLevels && two_levels(tree)) return true;
    const double kind = random_.unit();
    if (kind < 0.35) {  // another test, the subtrees as they are
        const Split test = random_test(tree, touched_);
        if (!test.found()) return false;
        tree.nodes[touched_].test = test;
        refresh(tree, touched_);
    } else if (kind < 0.6) {  // another test, what is below grown anew
        collapse(tree, touched_);
        const Split test = random_test(tree, touched_);
        if (!test.found()) return false;
        split(tree, touched_, test);
    } else if (kind < 0.8) {  // a twig off, of a few the one that costs least
        int32_t cheapest = -1;
        double least = 0.0;
        for (int attempt = 0; attempt < 8; ++attempt) {
            const int32_t at = any_inner();
            const Node& node = tree.nodes[at];
            if (!tree.nodes[node.left].is_leaf() || !tree.nodes[node.right].is_leaf()) continue;
            double weight = 0.0, loss = 0.0, squares = 0.0;
            std::vector<double> totals(rows_.k, 0.0);
            for (const int32_t child : {node.left, node.right}) {
                for (int32_t c = 0; c < rows_.k; ++c)
                    totals[c] += tree.totals[int64_t{child} * rows_.k + c];
                weight += tree.nodes[child].about.weight, loss += tree.nodes[child].loss;
                squares += tree.nodes[child].about.squares;
            }
            // What a quantile's leaf would lose is not known from sums: any twig may go.
            const bool is_quantile = !rows_.classify() && settings_.objective.is_quantile();
            const double cost = is_quantile
                                    ? random_.unit()
                                    : leaf_loss(settings_.objective, rows_.classify(), rows_.k,
                                                totals.data(), {weight, squares, 0}) -
                                          loss;
            if (cheapest < 0 || cost < least) least = cost, cheapest = at;
        }
        if (cheapest < 0) return false;
        collapse(tree, cheapest);
        barred_ = cheapest;
        touched_ = std::max(0, tree.nodes[cheapest].parent);
    } else {  // a node replaced by its child
        const Node& node = tree.nodes[touched_];
        const bool left = tree.nodes[node.right].is_leaf() ||
                          (!tree.nodes[node.left].is_leaf() && random_.unit() < 0.5);
        lift(tree, touched_, left);
    }
    return true;
}

void LocalSearch::move() {
    common::poll();
    const double progress =
        static_cast<double>(moves_done_++) / static_cast<double>(settings_.n_moves);
    trial_ = current_;
    if (!change(trial_)) return;
    const bool partly = random_.unit() < 0.5;
    int32_t top = touched_;
    // Mostly what is below the change is bettered; now and then all above it too.
    mend(trial_);
    spend(trial_, partly, barred_);
    if (trial_.nodes[top].parent == -2) top = 0;
    sweep(trial_, top, partly, 1);
    total_loss(trial_);
    // What is still far behind will not catch up.
    if (trial_.loss > 1.1 * current_.loss) return;
    sweep(trial_, top, partly, 1);
    if (random_.unit() < 0.1)
        for (int32_t at = trial_.nodes[top].parent; at >= 0; at = trial_.nodes[at].parent)
            better(trial_, at, partly);
    while (mend(trial_)) spend(trial_, partly, -1);
    spend(trial_, false, -1);
    total_loss(trial_);
    const double temperature = settings_.temperature * std::max(0.0, 1.0 - progress) * root_loss_ /
                               static_cast<double>(settings_.max_leaves);
    const double allowed = temperature > 0.0 ? -temperature * std::log(1.0 - random_.unit()) : 0.0;
    if (trial_.loss > current_.loss + allowed) return;
    std::swap(trial_, current_);
    if (current_.loss < best_.loss) best_ = current_;
}

void LocalSearch::advance(int64_t n_moves) {
    struct Back {
        LocalSearch& own;
        ~Back() { own.search_ = &own.fine_; }  // a move may be interrupted, too
    } back{*this};
    search_ = &coarse_;
    for (int64_t i = 0; i < n_moves; ++i) move();
}

void LocalSearch::polish() {
    trial_ = best_;
    for (int round = 0; round < 4; ++round) {
        const double before = trial_.loss;
        sweep(trial_, 0, false, 1);
        while (mend(trial_)) spend(trial_, false, -1);
        spend(trial_, false, -1);
        total_loss(trial_);
        if (trial_.loss >= best_.loss) return;
        best_ = trial_;
        if (before - trial_.loss < 1e-4 * before) return;
    }
}

// Measure the current tree anew and make it the best.
void LocalSearch::restart() {
    Tree root;
    root.nodes.resize(1), root.nodes[0].last = rows_.m;
    root.totals.resize(rows_.k), root.cost.resize(rows_.k), root.rows = current_.rows;
    measure(root, 0);
    root_loss_ = root.nodes[0].loss;
    row_share_ = root_loss_ / root.nodes[0].about.weight;
    refresh(current_, 0);
    total_loss(current_);
    best_ = current_;
    moves_done_ = settings_.n_moves;  // what follows is descent alone
}

void LocalSearch::aim(const Objective& objective) {
    settings_.objective = objective;
    current_ = best_;
    restart();
}

void LocalSearch::adopt(const TreeArrays& found) {
    collapse(current_, 0);
    std::iota(current_.rows.begin(), current_.rows.end(), 0);
    const auto visit = [&](const auto& self, int32_t at, int64_t id) -> void {
        if (found.left[id] < 0) return;
        Split test;
        test.feature = found.feature[id], test.cut = found.cut[id];
        test.missing_left = found.missing_left[id] != 0;
        split(current_, at, test);
        const int32_t left = current_.nodes[at].left, right = current_.nodes[at].right;
        self(self, left, found.left[id]);
        self(self, right, found.right[id]);
    };
    visit(visit, 0, 0);
    mend(current_);
    restart();
}

}  // namespace dm::search
