// Packs: how a machine of small trees is compiled for one row; see kernels/pack.hpp.
#pragma once

#include <optional>

#include "engine/plan/plan.hpp"

namespace dm::engine {

// The packs of a plan that has one section, or none where a tree or the columns' codes are too
// large.
std::optional<PackPlan> make_packs(const Plan& plan, const std::vector<Coded>& coded);

// Where key k, counted in ascending order, stands in a column's implicit search tree,
// or among its keys where it has buckets.
int64_t key_place(const Column& column, uint32_t k);

}  // namespace dm::engine
