// One row as people have it, read and answered in one call.
#pragma once

#include <nanobind/nanobind.h>

#include "common/empty_array.hpp"
#include "engine/python_engine.hpp"
#include "inputs/row_reader.hpp"

namespace dm::engine {

class OneRow {
public:
    OneRow(nanobind::handle_t<inputs::RowReader> reader, nanobind::handle_t<PyEngine> engine);

    // (1, n_outputs) margins; None where it takes more than the reader to read the row.
    nanobind::object margins(nanobind::handle row) const;
    // (2,) probabilities 1 - p and p, where p = sigmoid(slope * margin, at least `least`), of a
    // machine of one output. `sigmoid` is a function of an array and of one for its results, which
    // may be the same: what the model's library calls is called here, so that no bit differs.
    nanobind::object pair(nanobind::handle row, nanobind::handle sigmoid, double slope,
                          double least) const;

private:
    // Whether the row could be read.
    bool run(nanobind::handle row, void* margins) const;
    template <typename T>
    nanobind::object pair_of(nanobind::handle row, nanobind::handle sigmoid, T slope,
                             T least) const;

    nanobind::object held_reader_, held_engine_;
    inputs::RowReader& reader_;
    const PyEngine& engine_;
    common::EmptyArray margins_, two_;
};

void bind_one_row(nanobind::module_& m);

}  // namespace dm::engine
