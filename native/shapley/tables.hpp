// Trees whose values are looked up: parts of them by the pattern of a few bits of a row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "shapley/kernels.hpp"
#include "shapley/reads.hpp"

namespace dm::shapley {

template <typename T>
struct Tables {
    struct Part {
        int32_t first_bit, n_bits, n_values;
        size_t places, table;  // where they start
    };

    struct LeafPart {
        int32_t first_bit, n_bits, n_outputs;
        size_t places, values, table;
    };
    static constexpr size_t kSlack = 4;  // numbers that may be read behind the last table

    int64_t n_columns, n_slots, n_outputs;
    bool is_symmetric = false;
    Reads reads;
    std::vector<Asked<T>> tests;
    std::vector<Part> cells;
    std::vector<int32_t> term_start{0};
    std::vector<Term> terms;
    std::vector<int32_t> places;
    std::vector<T> table, values;
    std::vector<LeafPart> leaves;
    // By tree, and the ends.
    std::vector<size_t> first_test{0}, first_cell{0}, first_leaf{0}, first_bit{0};

    int64_t n_trees() const { return static_cast<int64_t>(first_test.size()) - 1; }
    // Whatever was added since the last tree ended is one tree.
    void end_tree() {
        first_test.push_back(tests.size());
        first_cell.push_back(cells.size());
        first_leaf.push_back(leaves.size());
        first_bit.push_back(term_start.size() - 1);
    }
    int64_t most_tests() const {
        size_t most = 0;
        for (size_t i = 1; i < first_test.size(); ++i)
            most = std::max(most, first_test[i] - first_test[i - 1]);
        return static_cast<int64_t>(most);
    }
    struct Held {
        std::vector<Cell<T>> cells;
        std::vector<LeafCell<T>> leaves;
    };
    // The cells of a tree; `held` keeps them while they are read.
    Cells<T> tree(int64_t i, Held& held) const {
        const size_t at = static_cast<size_t>(i);
        held.cells.clear();
        held.leaves.clear();
        for (size_t c = first_cell[at]; c < first_cell[at + 1]; ++c)
            held.cells.push_back({cells[c].first_bit, cells[c].n_bits, cells[c].n_values,
                                  places.data() + cells[c].places, table.data() + cells[c].table});
        for (size_t c = first_leaf[at]; c < first_leaf[at + 1]; ++c) {
            const LeafPart& leaf = leaves[c];
            held.leaves.push_back({leaf.first_bit, leaf.n_bits, leaf.n_outputs,
                                   places.data() + leaf.places, values.data() + leaf.values,
                                   table.data() + leaf.table});
        }
        return {tests.data() + first_test[at],
                static_cast<int64_t>(first_test[at + 1] - first_test[at]),
                held.cells.data(),
                static_cast<int64_t>(held.cells.size()),
                held.leaves.data(),
                static_cast<int64_t>(held.leaves.size()),
                term_start.data() + first_bit[at],
                terms.data(),
                is_symmetric};
    }
};

}  // namespace dm::shapley
