#include "structure/measure.hpp"

#include <vector>

namespace dm::structure {

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

}  // namespace dm::structure
