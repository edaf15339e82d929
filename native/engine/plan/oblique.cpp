#include "engine/plan/oblique.hpp"

namespace dm::engine {

ObliquePlan make_oblique(const Machine& m) {
    ObliquePlan out;
    std::vector<int32_t> place(m.columns.n, -1);
    const int64_t n_terms = m.tests.weight_start[m.trees.n_tests];
    for (int64_t i = 0; i < n_terms; ++i) place[m.tests.weight_column[i]] = 0;
    for (int64_t c = 0; c < m.columns.n; ++c)
        if (place[c] == 0) {
            place[c] = static_cast<int32_t>(out.columns.size());
            out.columns.push_back(static_cast<int32_t>(c));
        }
    const int64_t width = static_cast<int64_t>(out.columns.size());
    // Terms are in the order of the columns, each column at most once: as many of them as columns
    // are all columns.
    bool is_dense = true;
    for (int64_t j = 0; j < m.trees.n_tests; ++j)
        is_dense &= m.tests.weight_start[j + 1] - m.tests.weight_start[j] == width;
    if (!is_dense)
        for (int64_t i = 0; i < n_terms; ++i) out.column.push_back(place[m.tests.weight_column[i]]);
    return out;
}

}  // namespace dm::engine
