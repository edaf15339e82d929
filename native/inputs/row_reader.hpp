// One row as people have it, a mapping from names to values or a list of them, as an array.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "common/empty_array.hpp"
#include "inputs/label_positions.hpp"

namespace dm::inputs {

class RowReader {
public:
    // `names`: of the features, or None. `labels`: by feature, LabelPositions or None.
    // `labels_in_lists`: whether a number in a list, too, is a label where its feature has any.
    RowReader(nanobind::object names, nanobind::list labels, bool single, bool labels_in_lists);

    // An array of one row; None where the row is not a dictionary of exactly these names, a list or
    // a tuple, or holds what only Python code reads.
    nanobind::object read(nanobind::handle row);
    // The same into memory for n_features() floats or doubles; whether it could be read.
    bool fill(nanobind::handle row, void* x);
    int64_t n_features() const { return static_cast<int64_t>(labels_.size()); }
    bool single() const { return single_; }

private:
    template <typename T>
    bool fill_as(nanobind::handle row, T* x);
    // Whether a value could be read.
    bool value(size_t feature, nanobind::handle given, bool is_named, double& x);

    std::vector<nanobind::object> names_;  // empty where there are none
    std::vector<LabelPositions*> labels_;  // or null
    nanobind::list held_;
    bool single_, labels_in_lists_;
    common::EmptyArray array_;
};

void bind_row_reader(nanobind::module_& m);

}  // namespace dm::inputs
