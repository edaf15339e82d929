// Packs: how a machine of small trees is compiled for one row; see kernels/pack.hpp.
#pragma once

#include "engine/plan/plan.hpp"

namespace dm::engine {

// The packs of a machine whose columns one section codes, or none (is_made is false) where a tree
// or the columns' codes are too large.
RowPlan make_packs(const Machine& machine, const Section& section, const std::vector<Coded>& coded,
                   const std::vector<int32_t>& used_features);

// Where key k, counted in ascending order, stands in a column's implicit search tree.
int64_t key_place(const Column& column, uint32_t k);

}  // namespace dm::engine
