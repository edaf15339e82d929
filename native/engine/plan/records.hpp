// Records: how deep trees are compiled where a target permutes codes; see kernels/record.hpp.
#pragma once

#include "engine/plan/plan.hpp"

namespace dm::engine {

// Bytes of a row's codes where so many columns are laid out for records; 0 where they are too many.
int64_t record_stride(CodeLayout layout, int64_t n_columns);

// Whether the top of a tree of records is done by selects, where there are rows enough.
bool has_record_top(const Plan& plan, int64_t tree);

// Records of the trees of that kind, and tops where they help, into the plan. `size` holds the
// leaves below each test.
void add_records(const std::vector<int32_t>& size, const std::vector<Coded>& coded, Plan& plan);

}  // namespace dm::engine
