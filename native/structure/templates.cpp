#include "structure/templates.hpp"

#include <vector>

namespace dm::structure {

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
