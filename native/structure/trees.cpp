#include "structure/trees.hpp"

#include <utility>

namespace dm::structure {

Layout layout(const int64_t* left, const int64_t* right, const int64_t* node_start,
              int64_t n_trees) {
    Layout out;
    out.test_start.push_back(0);
    struct Visit {
        int64_t node;
        int64_t slot;  // where in `children` to note the number this node gets; -1 for a root
    };
    std::vector<Visit> stack;
    std::vector<char> seen;
    for (int64_t tree = 0; tree < n_trees; ++tree) {
        const int64_t begin = node_start[tree], size = node_start[tree + 1] - begin;
        auto fail = [&](Fault fault, int64_t node) {
            out.fault = fault;
            out.fault_tree = tree;
            out.fault_node = node;
            return out;
        };
        if (size <= 0) return fail(Fault::out_of_range, 0);
        seen.assign(static_cast<std::size_t>(size), 0);
        stack.push_back({0, -1});
        while (!stack.empty()) {
            const Visit visit = stack.back();
            stack.pop_back();
            if (visit.node < 0 || visit.node >= size) return fail(Fault::out_of_range, visit.node);
            if (seen[visit.node]) return fail(Fault::visited_twice, visit.node);
            seen[visit.node] = 1;
            const int64_t l = left[begin + visit.node], r = right[begin + visit.node];
            int32_t number;
            if (l < 0 && r < 0) {
                number = ~static_cast<int32_t>(out.leaves.size());
                out.leaves.push_back(begin + visit.node);
            } else if (l < 0 || r < 0) {
                return fail(Fault::half_leaf, visit.node);
            } else {
                number = static_cast<int32_t>(out.tests.size());
                out.tests.push_back(begin + visit.node);
                const int64_t slot = static_cast<int64_t>(out.children.size());
                out.children.push_back(0);
                out.children.push_back(0);
                stack.push_back({r, slot + 1});
                stack.push_back({l, slot});
            }
            if (visit.slot >= 0) out.children[visit.slot] = number;
        }
        out.test_start.push_back(static_cast<int64_t>(out.tests.size()));
    }
    return out;
}

Breach check(const int32_t* children, const int64_t* test_start, int64_t n_trees, int32_t* depth,
             int32_t* first_leaf, int32_t* n_leaves, int32_t* leaf_depth) {
    std::vector<char> test_seen, leaf_seen;
    for (int64_t tree = 0; tree < n_trees; ++tree) {
        const int64_t begin = test_start[tree], end = test_start[tree + 1];
        const int64_t leaf_begin = begin + tree, leaf_end = end + tree + 1;
        test_seen.assign(static_cast<std::size_t>(end - begin), 0);
        leaf_seen.assign(static_cast<std::size_t>(leaf_end - leaf_begin), 0);
        for (int64_t j = begin; j < end; ++j)
            for (int side = 0; side < 2; ++side) {
                const int64_t child = children[2 * j + side];
                const int64_t number = child >= 0 ? child : ~child;
                const bool inside = child >= 0 ? number > j && number < end
                                               : number >= leaf_begin && number < leaf_end;
                if (!inside) return {Rule::after_parent, j, side};
                char& seen =
                    child >= 0 ? test_seen[number - begin] : leaf_seen[number - leaf_begin];
                if (seen) return {Rule::one_parent, j, side};
                seen = 1;
            }
        for (int64_t j = begin + 1; j < end; ++j)
            if (!test_seen[j - begin]) return {Rule::one_parent, j, -1};
        for (int64_t i = leaf_begin; begin < end && i < leaf_end; ++i)
            if (!leaf_seen[i - leaf_begin]) return {Rule::one_parent, i, -2};
    }
    measure(children, test_start, n_trees, depth, first_leaf, n_leaves);
    for (int64_t j = 0; j < test_start[n_trees]; ++j) {
        const int32_t l = children[2 * j], r = children[2 * j + 1];
        if (l < 0 && ~l != first_leaf[j]) return {Rule::left_to_right, j, 0};
        if (r < 0 && ~r != first_leaf[j] + (l >= 0 ? n_leaves[l] : 1))
            return {Rule::left_to_right, j, 1};
    }
    leaf_depths(children, test_start, n_trees, depth, leaf_depth);
    return {};
}

void measure(const int32_t* children, const int64_t* test_start, int64_t n_trees, int32_t* depth,
             int32_t* first_leaf, int32_t* n_leaves) {
    for (int64_t tree = 0; tree < n_trees; ++tree) {
        const int64_t begin = test_start[tree], end = test_start[tree + 1];
        for (int64_t j = end - 1; j >= begin; --j) {
            n_leaves[j] = 0;
            for (int side = 0; side < 2; ++side) {
                const int32_t child = children[2 * j + side];
                n_leaves[j] += child >= 0 ? n_leaves[child] : 1;
            }
        }
        if (begin == end) continue;
        depth[begin] = 0;
        first_leaf[begin] = static_cast<int32_t>(begin + tree);
        for (int64_t j = begin; j < end; ++j) {
            const int32_t l = children[2 * j], r = children[2 * j + 1];
            if (l >= 0) {
                depth[l] = depth[j] + 1;
                first_leaf[l] = first_leaf[j];
            }
            if (r >= 0) {
                depth[r] = depth[j] + 1;
                first_leaf[r] = first_leaf[j] + (l >= 0 ? n_leaves[l] : 1);
            }
        }
    }
}

void leaf_depths(const int32_t* children, const int64_t* test_start, int64_t n_trees,
                 const int32_t* depth, int32_t* leaf_depth) {
    for (int64_t tree = 0; tree < n_trees; ++tree) {
        if (test_start[tree] == test_start[tree + 1]) leaf_depth[test_start[tree] + tree] = 0;
        for (int64_t j = test_start[tree]; j < test_start[tree + 1]; ++j)
            for (int side = 0; side < 2; ++side) {
                const int32_t child = children[2 * j + side];
                if (child < 0) leaf_depth[~child] = depth[j] + 1;
            }
    }
}

void templates(const int32_t* children, const int64_t* test_start, int64_t first, int64_t last,
               const int64_t* indptr, int32_t* indices, int8_t* data) {
    const int64_t test0 = test_start[first], leaf0 = test0 + first;
    std::vector<int32_t> path;  // tests from the root to the present node, with the side taken
    std::vector<int8_t> side;
    struct Visit {
        int32_t node;
        int32_t depth;
        int8_t side;
    };
    std::vector<Visit> stack;
    for (int64_t tree = first; tree < last; ++tree) {
        if (test_start[tree] == test_start[tree + 1]) continue;  // one leaf: an empty template
        const int32_t root = static_cast<int32_t>(test_start[tree]);
        stack.push_back({children[2 * root + 1], 1, 1});
        stack.push_back({children[2 * root], 1, -1});
        path.assign(1, root);
        side.assign(1, -1);
        while (!stack.empty()) {
            const Visit visit = stack.back();
            stack.pop_back();
            path.resize(visit.depth);
            side.resize(visit.depth);
            side[visit.depth - 1] = visit.side;
            if (visit.node >= 0) {
                path.push_back(visit.node);
                side.push_back(0);
                stack.push_back({children[2 * visit.node + 1], visit.depth + 1, 1});
                stack.push_back({children[2 * visit.node], visit.depth + 1, -1});
                continue;
            }
            const int64_t at = indptr[~visit.node - leaf0];
            for (int32_t d = 0; d < visit.depth; ++d) {
                indices[at + d] = static_cast<int32_t>(path[d] - test0);
                data[at + d] = side[d];
            }
        }
    }
}

void template_product(const int32_t* children, int64_t n_tests, const int8_t* h, int64_t n_rows,
                      int32_t* p) {
    if (n_tests == 0) {
        for (int64_t row = 0; row < n_rows; ++row) p[row] = 0;
        return;
    }
    std::vector<int32_t> sum(static_cast<std::size_t>(n_tests));
    for (int64_t row = 0; row < n_rows; ++row, h += n_tests, p += n_tests + 1) {
        sum[0] = 0;
        for (int64_t j = 0; j < n_tests; ++j) {
            const int32_t below[2] = {sum[j] - h[j], sum[j] + h[j]};
            for (int side = 0; side < 2; ++side) {
                const int32_t child = children[2 * j + side];
                if (child >= 0)
                    sum[child] = below[side];
                else
                    p[~child] = below[side];
            }
        }
    }
}

}  // namespace dm::structure
