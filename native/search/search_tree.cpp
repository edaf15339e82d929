// The tree that a search holds: its leaves, its shape, and the way out of it.
#include "search/local_search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "search/monotone.hpp"

namespace dm::search {

// -- the tree and its leaves ----------------------------------------------------------------------

LocalSearch::LocalSearch(const Rows& rows, const Rows& binned, const uint16_t* by_row,
                         const SearchSettings& settings)
    : rows_(rows),
      by_row_(by_row),
      settings_(settings),
      random_(settings.seed),
      fine_(rows),
      coarse_(binned),
      pairs_(binned) {
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
    row_share_ = root_loss_ / current_.nodes[0].about.weight;
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
    const Objective& objective = settings_.objective;
    const bool poisson = objective.number == NumberLoss::poisson;
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
                node.about.squares += poisson ? w * x_log_x(y) : w * y * y;
            }
        }
    }
    node.known = Node::Known::no;
    const double weight = node.about.weight;
    if (!rows_.classify() && objective.is_quantile()) {
        node.loss = 0.0;
        for (int32_t c = 0; c < k; ++c) {
            quantile_.start(objective.quantile);
            for (int64_t i = node.first; i < node.last; ++i)
                quantile_.add(rows_.y[int64_t{tree.rows[i]} * k + c], rows_.w[tree.rows[i]]);
            node.loss += quantile_.loss();
            cost[c] = quantile_.value();
        }
        return;
    }
    node.loss = leaf_loss(objective, rows_.classify(), k, totals, node.about);
    if (!rows_.classify()) {
        for (int32_t c = 0; c < k; ++c) {
            cost[c] = weight > 0.0 ? totals[c] / (weight + objective.ridge) : 0.0;
            // Where nothing was counted, as if half of a row's mean were (y has a mean of 1).
            if (poisson) cost[c] = std::max(cost[c], 0.5 / (weight + 1.0));
        }
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

void LocalSearch::total_loss(Tree& tree) {
    tree.loss = subtree_loss(tree, 0) +
                settings_.leaf_cost * root_loss_ * static_cast<double>(tree.n_leaves);
    double weight = 0.0;
    if (!settings_.feature_cost.empty()) tree.loss += paid(tree, 0, weight);
    if (!settings_.monotone.empty()) tree.loss += bent(tree);
}

// -- costs and constraints ------------------------------------------------------------------------

// What the rows of a subtree pay, each for the features that its path asks for first there.
double LocalSearch::paid(const Tree& tree, int32_t at, double& weight) const {
    const Node& node = tree.nodes[at];
    if (node.is_leaf()) {
        weight = node.about.weight;
        return 0.0;
    }
    double left = 0.0, right = 0.0;
    const double below = paid(tree, node.left, left) + paid(tree, node.right, right);
    weight = left + right;
    return below + price(tree, at, node.test.feature, weight);
}

double LocalSearch::price(const Tree& tree, int32_t at, int32_t feature, double weight) const {
    if (settings_.feature_cost.empty()) return 0.0;
    for (int32_t up = tree.nodes[at].parent; up >= 0; up = tree.nodes[up].parent)
        if (tree.nodes[up].test.feature == feature) return 0.0;
    return settings_.feature_cost[feature] * row_share_ * weight;
}

double LocalSearch::weight_of(const Tree& tree, int32_t at) const {
    double weight = 0.0;
    for (int64_t i = tree.nodes[at].first; i < tree.nodes[at].last; ++i)
        weight += rows_.w[tree.rows[i]];
    return weight;
}

// What it costs to bend the leaves' values until they are monotone, about.
double LocalSearch::bent(const Tree& tree) {
    TreeArrays& bare = bare_;
    bare.left.clear(), bare.right.clear(), bare.feature.clear(), bare.missing_left.clear();
    cut_.clear();
    std::vector<int32_t> place;
    const auto visit = [&](const auto& self, int32_t at) -> int64_t {
        const Node& node = tree.nodes[at];
        const int64_t id = static_cast<int64_t>(bare.left.size());
        place.push_back(at);
        bare.left.push_back(-1), bare.right.push_back(-1), bare.feature.push_back(-1);
        bare.missing_left.push_back(node.test.missing_left), cut_.push_back(node.test.cut);
        if (node.is_leaf()) return id;
        bare.feature[id] = node.test.feature;
        const int64_t left = self(self, node.left), right = self(self, node.right);
        bare.left[id] = left, bare.right[id] = right;
        return id;
    };
    visit(visit, 0);
    const NodeArrays arrays{bare.left.data(), bare.right.data(), bare.feature.data(), cut_.data(),
                            bare.missing_left.data()};
    const int64_t n_nodes = static_cast<int64_t>(place.size());
    const int32_t k = rows_.k;
    double cost = 0.0;
    for (int32_t c = rows_.classify() ? 1 : 0; c < k; ++c) {
        said_.assign(place.size(), 0.0);
        const auto own = [&](int64_t i) {
            const Node& leaf = tree.nodes[place[i]];
            const int64_t at = int64_t{place[i]} * k + c;
            return rows_.classify() ? tree.totals[at] / std::max(leaf.about.weight, 1e-300)
                                    : tree.cost[at];
        };
        for (int64_t i = 0; i < n_nodes; ++i)
            if (bare.left[i] < 0) said_[i] = own(i);
        make_monotone(arrays, n_nodes, settings_.monotone.data(), said_.data());
        for (int64_t i = 0; i < n_nodes; ++i) {
            if (bare.left[i] >= 0) continue;
            const double moved = std::abs(said_[i] - own(i));
            const bool is_squared =
                rows_.classify() || settings_.objective.number == NumberLoss::squared;
            cost += tree.nodes[place[i]].about.weight * (is_squared ? 2.0 * moved * moved : moved);
        }
    }
    return cost;
}

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
    for (const int32_t place : {kept, lost})
        tree.nodes[place] = Node{}, tree.nodes[place].parent = -2;
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

// -- what came of it ------------------------------------------------------------------------------

void LocalSearch::widest_gap(const Node& node, const Places& places, Split& test,
                             bool& swapped) const {
    const int64_t middle = best_.nodes[node.left].last;
    if (middle == node.first || middle == node.last) return;
    double widest = -1.0;
    // Another feature may cost more, or may have to be monotone.
    const bool is_bound = !settings_.feature_cost.empty() || !settings_.monotone.empty();
    for (int32_t step = 0; step < (is_bound ? 1 : rows_.n); ++step) {
        // The search's own feature first: another must do better than it.
        const int32_t own = node.test.feature, f = step == 0 ? own : step - (step <= own);
        const uint16_t* column = rows_.rank + int64_t{f} * rows_.m;
        int32_t low[2] = {kMissing, kMissing}, high[2] = {-1, -1};
        for (int side = 0; side < 2; ++side) {
            const int64_t last = side ? node.last : middle;
            for (int64_t i = side ? middle : node.first; i < last; ++i) {
                const int32_t rank = column[best_.rows[i]];
                low[side] = std::min(low[side], rank), high[side] = std::max(high[side], rank);
            }
        }
        if (std::max(high[0], high[1]) == kMissing) {
            if (step == 0) return;  // where some are missing, the search knows best
            continue;
        }
        const bool across = high[1] < low[0];
        if (high[0] >= low[1] && !across) continue;
        const int32_t below = across ? high[1] : high[0], above = across ? low[0] : low[1];
        const double gap =
            places.least[places.start[f] + above] - places.largest[places.start[f] + below];
        if (gap > widest) {
            widest = gap, swapped = across;
            test.feature = f, test.cut = below;
        }
    }
}

TreeArrays LocalSearch::tree(const Places* places) const {
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
        Split test = node.test;
        bool swapped = false;
        if (places) widest_gap(node, *places, test, swapped);
        out.feature[id] = test.feature, out.cut[id] = test.cut;
        const uint16_t* column = rows_.rank + int64_t{test.feature} * rows_.m;
        bool any_missing = false;
        for (int64_t i = node.first; i < node.last; ++i) {
            const int32_t rank = column[best_.rows[i]];
            if (rank == kMissing) {
                any_missing = true;
            } else if (rank <= test.cut) {
                out.below[id] = std::max(out.below[id], rank);
            } else if (out.above[id] < 0 || rank < out.above[id]) {
                out.above[id] = rank;
            }
        }
        const int64_t left = self(self, swapped ? node.right : node.left);
        const int64_t right = self(self, swapped ? node.left : node.right);
        out.left[id] = left, out.right[id] = right;
        out.weight[id] = out.weight[left] + out.weight[right];
        for (int32_t c = 0; c < k; ++c)
            out.totals[id * k + c] = out.totals[left * k + c] + out.totals[right * k + c];
        // Where none was missing, what is missing later goes with the many.
        out.missing_left[id] =
            any_missing ? test.missing_left : out.weight[left] >= out.weight[right];
        return id;
    };
    visit(visit, 0);
    return out;
}

}  // namespace dm::search
