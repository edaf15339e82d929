// Which of two plans takes so many rows: the one for all, or the one for few.
#pragma once

#include <cstdint>

#include "engine/plan/plan.hpp"

namespace dm::engine {

static_assert(kRecordRows < kPackRows);

// Rows from which on the plan for all is always the faster one.
inline int64_t enough_rows(const Kernels& kernels) { return kernels.packs ? kPackRows : kFewRows; }

inline bool takes_few(const Plan& few, const Kernels& kernels, int64_t n_rows) {
    const int64_t most = few.kind == Kind::pack ? enough_rows(kernels)
                         : few.is_records()     ? kRecordRows + 1
                                                : kFewRows;
    return n_rows < most;
}

}  // namespace dm::engine
