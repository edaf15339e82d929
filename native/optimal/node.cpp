#include "optimal/node.hpp"

#include <algorithm>
#include <numeric>

namespace dm::optimal {
namespace {

int32_t n_orders(const Problem& problem) {
    return problem.n + (problem.loss == Loss::absolute ? problem.k : 0);
}

void make_room(const Problem& problem, int32_t m, Node& node) {
    node.m = m;
    node.id.resize(m);
    node.order.resize(int64_t{n_orders(problem)} * m);
    node.rank.resize(int64_t{problem.n} * m);
    node.n_ranks.resize(problem.n);
    node.w.resize(m);
    if (problem.label) node.label.resize(m);
    if (problem.y) node.y.resize(int64_t{problem.k} * m);
}

// Labels among those that occur, and sums.
void finish(const Problem& problem, Node& node) {
    node.weight = std::accumulate(node.w.begin(), node.w.end(), 0.0);
    if (problem.label) {
        std::vector<int32_t> code(problem.k, -1);
        for (int32_t i = 0; i < node.m; ++i) code[problem.label[node.id[i]]] = 0;
        node.n_classes = 0;
        for (int32_t& c : code)
            if (c == 0) c = node.n_classes++;
        for (int32_t i = 0; i < node.m; ++i) node.label[i] = code[problem.label[node.id[i]]];
    }
    node.squares = 0.0;
    if (problem.loss == Loss::squared)
        for (int32_t t = 0; t < problem.k; ++t) {
            const double* y = node.target(t);
            for (int32_t i = 0; i < node.m; ++i) node.squares += node.w[i] * y[i] * y[i];
        }
}

}  // namespace

void make_root(const Problem& problem, Node& root) {
    const int32_t m = static_cast<int32_t>(problem.m);
    make_room(problem, m, root);
    std::iota(root.id.begin(), root.id.end(), 0);
    std::copy(problem.w, problem.w + m, root.w.begin());
    if (problem.y) std::copy(problem.y, problem.y + int64_t{problem.k} * m, root.y.begin());
    std::copy(problem.rank, problem.rank + int64_t{problem.n} * m, root.rank.begin());
    std::vector<int32_t> start;
    for (int32_t f = 0; f < problem.n; ++f) {
        const int32_t* rank = root.rank_of(f);
        const int32_t most = *std::max_element(rank, rank + m);
        root.n_ranks[f] = most + 1;
        start.assign(most + 2, 0);
        for (int32_t i = 0; i < m; ++i) ++start[rank[i] + 1];
        std::partial_sum(start.begin(), start.end(), start.begin());
        int32_t* order = root.order.data() + int64_t{f} * m;
        for (int32_t i = 0; i < m; ++i) order[start[rank[i]]++] = i;
    }
    for (int32_t f = problem.n; f < n_orders(problem); ++f) {
        int32_t* order = root.order.data() + int64_t{f} * m;
        const double* y = root.target(f - problem.n);
        std::iota(order, order + m, 0);
        std::stable_sort(order, order + m, [y](int32_t a, int32_t b) { return y[a] < y[b]; });
    }
    finish(problem, root);
}

void split(const Problem& problem, const Node& node, int32_t f, int32_t cut, Node& left,
           Node& right, std::vector<int32_t>& scratch) {
    const int32_t m = node.m;
    const int32_t* root = node.rank_of(f);
    // New number of a row; ~number on the right.
    scratch.resize(m);
    int32_t n_left = 0, n_right = 0;
    for (int32_t i = 0; i < m; ++i) scratch[i] = root[i] <= cut ? n_left++ : ~n_right++;
    make_room(problem, n_left, left);
    make_room(problem, n_right, right);
    for (int32_t i = 0; i < m; ++i) {
        const int32_t to = scratch[i];
        Node& child = to >= 0 ? left : right;
        const int32_t at = to >= 0 ? to : ~to;
        child.id[at] = node.id[i];
        child.w[at] = node.w[i];
        for (int32_t t = 0; problem.y && t < problem.k; ++t)
            child.y[int64_t{t} * child.m + at] = node.target(t)[i];
    }
    for (int32_t g = 0; g < n_orders(problem); ++g) {
        const int32_t* order = node.order_of(g);
        int32_t* to_left = left.order.data() + int64_t{g} * n_left;
        int32_t* to_right = right.order.data() + int64_t{g} * n_right;
        if (g >= problem.n) {
            for (int32_t i = 0; i < m; ++i) {
                const int32_t to = scratch[order[i]];
                if (to >= 0)
                    *to_left++ = to;
                else
                    *to_right++ = ~to;
            }
            continue;
        }
        const int32_t* rank = node.rank_of(g);
        int32_t* left_rank = left.rank.data() + int64_t{g} * n_left;
        int32_t* right_rank = right.rank.data() + int64_t{g} * n_right;
        int32_t now[2] = {-1, -1}, last[2] = {-1, -1};
        for (int32_t i = 0; i < m; ++i) {
            const int32_t row = order[i], to = scratch[row], r = rank[row];
            const bool is_right = to < 0;
            now[is_right] += r != last[is_right];
            last[is_right] = r;
            if (is_right) {
                *to_right++ = ~to;
                right_rank[~to] = now[1];
            } else {
                *to_left++ = to;
                left_rank[to] = now[0];
            }
        }
        left.n_ranks[g] = now[0] + 1;
        right.n_ranks[g] = now[1] + 1;
    }
    finish(problem, left);
    finish(problem, right);
}

Test test_at(const Problem& problem, const Node& node, int32_t f, int32_t below, int32_t above) {
    const int32_t* rank = problem.rank + int64_t{f} * problem.m;
    return {f, rank[node.id[below]], rank[node.id[above]]};
}

}  // namespace dm::optimal
