// Columns as codes: which trees share one coding, and each column's thresholds in order.
#pragma once

#include "engine/plan/plan.hpp"

namespace dm::engine {

// Where the runs of trees start that one 16-bit coding of the columns serves, and where the last
// ends. `is_too_fine` is set where a single tree has more thresholds in a column than codes.
std::vector<int64_t> section_starts(const Machine& machine, bool& is_too_fine);

// The columns that trees first..last read, their distinct thresholds, and into `coded` the tests.
Section make_section(const Machine& machine, int64_t first, int64_t last,
                     const std::vector<int64_t>& set_of, std::vector<Coded>& coded);

}  // namespace dm::engine
