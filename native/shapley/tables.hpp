// Trees whose values are looked up: parts of them by the pattern of a few bits of a row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "shapley/kernels.hpp"

namespace dm::shapley {

template <typename T>
struct Tables {
    struct Part {
        int32_t first_bit, n_bits, n_values;
        size_t places, table;  // where they start
    };

    int64_t n_columns, n_slots, n_outputs;
    std::vector<Asked<T>> tests;
    std::vector<Part> cells;
    std::vector<int32_t> term_start{0};
    std::vector<Term> terms;
    std::vector<int32_t> places;
    std::vector<T> table;
    std::vector<size_t> first_test{0}, first_cell{0}, first_bit{0};  // by tree, and the ends

    int64_t n_trees() const { return static_cast<int64_t>(first_test.size()) - 1; }
    // Whatever was added since the last tree ended is one tree.
    void end_tree() {
        first_test.push_back(tests.size());
        first_cell.push_back(cells.size());
        first_bit.push_back(term_start.size() - 1);
    }
    int64_t most_tests() const {
        size_t most = 0;
        for (size_t i = 1; i < first_test.size(); ++i)
            most = std::max(most, first_test[i] - first_test[i - 1]);
        return static_cast<int64_t>(most);
    }
    // The cells of a tree; `held` keeps them while they are read.
    Cells<T> tree(int64_t i, std::vector<Cell<T>>& held) const {
        const size_t at = static_cast<size_t>(i);
        held.clear();
        for (size_t c = first_cell[at]; c < first_cell[at + 1]; ++c)
            held.push_back({cells[c].first_bit, cells[c].n_bits, cells[c].n_values,
                            places.data() + cells[c].places, table.data() + cells[c].table});
        return {tests.data() + first_test[at],
                static_cast<int64_t>(first_test[at + 1] - first_test[at]),
                held.data(),
                static_cast<int64_t>(held.size()),
                term_start.data() + first_bit[at],
                terms.data()};
    }
};

}  // namespace dm::shapley
