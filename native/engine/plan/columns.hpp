// Columns as codes: which trees share one coding, and each column's thresholds in order.
#pragma once

#include "engine/plan/plan.hpp"

namespace dm::engine {

// Where the runs of trees start that one 16-bit coding of the columns serves, and where the last
// ends. Empty where the columns cannot be coded: tests are oblique, a single tree has more
// thresholds in a column than there are codes, or there are too many columns.
std::vector<int64_t> section_starts(const Plan& plan);

// The columns that trees first..last read, their distinct thresholds, and into `coded` the tests.
Section make_section(const Machine& machine, int64_t first, int64_t last,
                     const std::vector<int64_t>& set_of, std::vector<Coded>& coded);

}  // namespace dm::engine
