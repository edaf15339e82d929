#include "search/exit_nodes.hpp"

namespace dm::search {

void exit_nodes(const NodeArrays& tree, const double* X, int64_t m, int64_t n, int64_t* out) {
    for (int64_t i = 0; i < m; ++i) {
        int64_t at = 0;
        while (tree.left[at] >= 0) {
            const double x = X[i * n + tree.feature[at]];
            const bool goes_left = x != x ? tree.missing_left[at] != 0 : x <= tree.t[at];
            at = goes_left ? tree.left[at] : tree.right[at];
        }
        out[i] = at;
    }
}

}  // namespace dm::search
