#include "local_search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dm {

// -- numbers at random ----------------------------------------------------------------------------

Random::Random(uint64_t seed) {
    for (uint64_t& s : s_) {
        uint64_t z = (seed += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        s = z ^ (z >> 31);
    }
}

uint64_t Random::next() {
    const auto rotated = [](uint64_t x, int k) { return (x << k) | (x >> (64 - k)); };
    const uint64_t result = rotated(s_[1] * 5, 7) * 9, t = s_[1] << 17;
    s_[2] ^= s_[0], s_[3] ^= s_[1], s_[1] ^= s_[2], s_[0] ^= s_[3];
    s_[2] ^= t, s_[3] = rotated(s_[3], 45);
    return result;
}

double Random::unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

int64_t Random::below(int64_t n) { return static_cast<int64_t>(unit() * static_cast<double>(n)); }

// -- the tree and its leaves ----------------------------------------------------------------------

LocalSearch::LocalSearch(const Rows& rows, const Rows& coarse, const uint16_t* by_row,
                         const SearchSettings& settings)
    : rows_(rows), by_row_(by_row), settings_(settings), random_(settings.seed), fine_(rows),
      coarse_(coarse) {
    settings_.max_leaves = std::max<int64_t>(1, std::min(settings.max_leaves, rows.m));
    settings_.least = std::max<int64_t>(1, settings.least);
    const size_t places = static_cast<size_t>(2 * settings_.max_leaves + 1);
    current_.nodes.resize(places);
    current_.totals.resize(places * rows.k), current_.cost.resize(places * rows.k);
    current_.rows.resize(rows.m);
    std::iota(current_.rows.begin(), current_.rows.end(), 0);
    for (size_t i = places; i-- > 1;) {
        current_.nodes[i].parent = -2;
        current_.free.push_back(static_cast<int32_t>(i));
    }
    current_.nodes[0].last = rows.m;
    features_.resize(rows.n);
    std::iota(features_.begin(), features_.end(), 0);
    spare_.resize(rows.m), lean_.resize(rows.m);
    measure(current_, 0);
    root_loss_ = current_.nodes[0].loss;
    total_loss(current_);
    best_ = current_;
}

// Totals, loss and costs of a leaf from its rows.
void LocalSearch::measure(Tree& tree, int32_t leaf) {
    Node& node = tree.nodes[leaf];
    const int32_t k = rows_.k;
    double* totals = &tree.totals[int64_t{leaf} * k];
    double* cost = &tree.cost[int64_t{leaf} * k];
    std::fill(totals, totals + k, 0.0);
    node.about = {};
    node.about.count = node.count();
    for (int64_t i = node.first; i < node.last; ++i) {
        const int64_t row = tree.rows[i];
        const double w = rows_.w[row];
        node.about.weight += w;
        if (rows_.classify()) {
            totals[rows_.label[row]] += w;
        } else {
            for (int32_t c = 0; c < k; ++c) {
                const double y = rows_.y[row * k + c];
                totals[c] += w * y;
                node.about.squares += w * y * y;
            }
        }
    }
    const Objective& objective = settings_.objective;
    node.loss = leaf_loss(objective, rows_.classify(), k, totals, node.about);
    node.known = Node::Known::no;
    const double weight = node.about.weight;
    if (!rows_.classify()) {
        for (int32_t c = 0; c < k; ++c) 
            cost[c] = weight > 0.0 ? totals[c] / (weight + objective.ridge) : 0.0;
        return;
    }
    double squares = 0.0;
    int32_t largest = 0;
    for (int32_t c = 0; c < k; ++c) {
        const double p = weight > 0.0 ? totals[c] / weight : 0.0;
        squares += p * p;
        if (totals[c] > totals[largest]) largest = c;
    }
    for (int32_t c = 0; c < k; ++c) {
        const double p = weight > 0.0 ? totals[c] / weight : 0.0;
        cost[c] = objective.gini * (1.0 - 2.0 * p + squares) + objective.error * (c != largest);
        // A class that a leaf has not seen costs as if half a row of it stood there.
        if (objective.entropy > 0.0)
            cost[c] -= objective.entropy * std::log(std::max(p, 0.5 / (weight + 1.0)));
    }
}

// Send the rows of a subtree down anew.
void LocalSearch::refresh(Tree& tree, int32_t at) {
    Node& node = tree.nodes[at];
    if (node.is_leaf()) return measure(tree, at);
    const uint16_t* column = rows_.rank + int64_t{node.test.feature} * rows_.m;
    int64_t kept = node.first, n_right = 0;
    for (int64_t i = node.first; i < node.last; ++i) {
        const int32_t row = tree.rows[i];
        const bool left = node.test.goes_left(column[row]);
        tree.rows[kept] = row, spare_[n_right] = row;
        kept += left, n_right += !left;
    }
    std::copy_n(spare_.begin(), n_right, tree.rows.begin() + kept);
    Node &left = tree.nodes[node.left], &right = tree.nodes[node.right];
    left.first = node.first, left.last = kept;
    right.first = kept, right.last = node.last;
    refresh(tree, node.left);
    refresh(tree, node.right);
}

void LocalSearch::refresh_depth(Tree& tree, int32_t at, int32_t depth) {
    Node& node = tree.nodes[at];
    node.depth = depth;
    if (node.is_leaf()) return;
    refresh_depth(tree, node.left, depth + 1);
    refresh_depth(tree, node.right, depth + 1);
}

double LocalSearch::subtree_loss(const Tree& tree, int32_t at) const {
    const Node& node = tree.nodes[at];
    if (node.is_leaf()) return node.loss;
    return subtree_loss(tree, node.left) + subtree_loss(tree, node.right);
}

void LocalSearch::total_loss(Tree& tree) const { tree.loss = subtree_loss(tree, 0); }

// -- changes of shape -----------------------------------------------------------------------------

// Free the places of all below a node.
void LocalSearch::release(Tree& tree, int32_t at) {
    Node& node = tree.nodes[at];
    if (node.is_leaf()) return;
    for (const int32_t child : {node.left, node.right}) {
        release(tree, child);
        tree.nodes[child] = Node{};
        tree.nodes[child].parent = -2;
        tree.free.push_back(child);
    }
    node.left = node.right = -1;
    --tree.n_leaves;
}

void LocalSearch::collapse(Tree& tree, int32_t at) {
    release(tree, at);
    measure(tree, at);
}

// Put a child in its parent's place; the other child's subtree goes.
void LocalSearch::lift(Tree& tree, int32_t at, bool left) {
    Node& node = tree.nodes[at];
    const int32_t kept = left ? node.left : node.right, lost = left ? node.right : node.left;
    release(tree, lost);
    for (const int32_t place : {kept, lost}) tree.free.push_back(place);
    const Node child = tree.nodes[kept];
    for (const int32_t place : {kept, lost}) tree.nodes[place] = Node{}, tree.nodes[place].parent = -2;
    --tree.n_leaves;
    node.left = child.left, node.right = child.right, node.test = child.test;
    if (!node.is_leaf()) tree.nodes[node.left].parent = tree.nodes[node.right].parent = at;
    refresh_depth(tree, at, node.depth);
    refresh(tree, at);
}

void LocalSearch::split(Tree& tree, int32_t at, const Split& test) {
    int32_t places[2];
    for (int32_t& place : places) {
        place = tree.free.back();
        tree.free.pop_back();
        tree.nodes[place] = Node{};
        tree.nodes[place].parent = at;
        tree.nodes[place].depth = tree.nodes[at].depth + 1;
    }
    Node& node = tree.nodes[at];
    node.left = places[0], node.right = places[1];
    node.test = test;
    ++tree.n_leaves;
    refresh(tree, at);
}

// Leaves too small go, their sibling takes the parent's place. Whether there were any.
bool LocalSearch::mend(Tree& tree) {
    bool any = false;
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 1; i < tree.nodes.size(); ++i) {
            const Node& node = tree.nodes[i];
            if (node.parent < 0 || !node.is_leaf() || node.count() >= settings_.least) continue;
            const int32_t parent = node.parent;
            lift(tree, parent, tree.nodes[parent].right == static_cast<int32_t>(i));
            any = again = true;
        }
    }
    return any;
}

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
        search_->purest(settings_.objective, feature, settings_.least, node.next);
    if (node.next.found()) node.gain = node.loss - node.next.loss;
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

void LocalSearch::grow() {
    spend(current_, false, -1);
    total_loss(current_);
    best_ = current_;
}

// -- TAO's step -----------------------------------------------------------------------------------

double LocalSearch::row_loss(const Tree& tree, int32_t leaf, int32_t row) const {
    const int32_t k = rows_.k;
    const double* cost = &tree.cost[int64_t{leaf} * k];
    if (rows_.classify()) return cost[rows_.label[row]];
    const double* y = rows_.y + int64_t{row} * k;
    double loss = 0.0;
    for (int32_t c = 0; c < k; ++c) loss += (y[c] - cost[c]) * (y[c] - cost[c]);
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
    if (left.is_leaf() && right.is_leaf()) {
        best.loss = left.loss + right.loss - slack;
        search_->enter(&tree.rows[node.first], node.count(), nullptr);
        for (const int32_t feature : features_)
            search_->purest(settings_.objective, feature, settings_.least, best);
    } else {
        double present = 0.0;
        for (int64_t i = node.first; i < node.last;) {
            const int32_t own = exit_leaf(tree, at, tree.rows[i]);
            const int64_t last = tree.nodes[own].last;
            const bool is_left = i < left.last;
            const int32_t other = is_left ? node.right : node.left;
            for (; i < last; ++i) {
                const int32_t row = tree.rows[i];
                const double less = row_loss(tree, own, row) -
                                    row_loss(tree, exit_leaf(tree, other, row), row);
                lean_[i - node.first] = rows_.w[row] * (is_left ? less : -less);
                if (is_left) present += rows_.w[row] * less;
            }
        }
        best.loss = present - slack;
        search_->enter(&tree.rows[node.first], node.count(), lean_.data());
        for (const int32_t feature : features_)
            search_->preferred(feature, settings_.least, best);
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

// Change one place; touched_ says where. False where nothing could be changed.
bool LocalSearch::change(Tree& tree) {
    inner_.clear();
    for (size_t i = 0; i < tree.nodes.size(); ++i)
        if (tree.nodes[i].parent != -2 && !tree.nodes[i].is_leaf())
            inner_.push_back(static_cast<int32_t>(i));
    if (inner_.empty()) return false;
    const auto any_inner = [&] { return inner_[random_.below(inner_.size())]; };
    touched_ = any_inner(), barred_ = -1;
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
            const double cost = leaf_loss(settings_.objective, rows_.classify(), rows_.k,
                                          totals.data(), {weight, squares, 0}) - loss;
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
    const double progress = static_cast<double>(moves_done_++) / static_cast<double>(settings_.n_moves);
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
    search_ = &coarse_;
    for (int64_t i = 0; i < n_moves; ++i) move();
    search_ = &fine_;
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

// -- what came of it ------------------------------------------------------------------------------

TreeArrays LocalSearch::tree() const {
    TreeArrays out;
    const int32_t k = rows_.k;
    const auto visit = [&](const auto& self, int32_t at) -> int64_t {
        const Node& node = best_.nodes[at];
        const int64_t id = static_cast<int64_t>(out.left.size());
        out.left.push_back(-1), out.right.push_back(-1);
        out.feature.push_back(-1), out.cut.push_back(-1);
        out.below.push_back(-1), out.above.push_back(-1), out.missing_left.push_back(0);
        out.count.push_back(node.count());
        out.totals.resize((id + 1) * k, 0.0), out.weight.push_back(0.0);
        if (node.is_leaf()) {
            out.weight[id] = node.about.weight;
            std::copy_n(&best_.totals[int64_t{at} * k], k, &out.totals[id * k]);
            return id;
        }
        out.feature[id] = node.test.feature, out.cut[id] = node.test.cut;
        const uint16_t* column = rows_.rank + int64_t{node.test.feature} * rows_.m;
        bool any_missing = false;
        for (int64_t i = node.first; i < node.last; ++i) {
            const int32_t rank = column[best_.rows[i]];
            if (rank == kMissing) {
                any_missing = true;
            } else if (rank <= node.test.cut) {
                out.below[id] = std::max(out.below[id], rank);
            } else if (out.above[id] < 0 || rank < out.above[id]) {
                out.above[id] = rank;
            }
        }
        const int64_t left = self(self, node.left), right = self(self, node.right);
        out.left[id] = left, out.right[id] = right;
        out.weight[id] = out.weight[left] + out.weight[right];
        for (int32_t c = 0; c < k; ++c)
            out.totals[id * k + c] = out.totals[left * k + c] + out.totals[right * k + c];
        // Where none was missing, what is missing later goes with the many.
        out.missing_left[id] =
            any_missing ? node.test.missing_left : out.weight[left] >= out.weight[right];
        return id;
    };
    visit(visit, 0);
    return out;
}

}  // namespace dm
