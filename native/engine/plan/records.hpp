// Records: how deep trees are compiled where a target permutes codes; see kernels/record.hpp.
#pragma once

#include "engine/plan/plan.hpp"

namespace dm::engine {

// Bytes of a row's codes where so many columns are laid out for records; 0 where they are too many.
int64_t record_stride(CodeLayout layout, int64_t n_columns);

// Whether trees of a section can be trees of records: their columns are few enough, and no test is
// of a set of categories.
bool can_have_records(CodeLayout layout, const Section& section);

// Writes code number i of a row or record; in bytes, its high byte stands `half` bytes further.
inline void put_code(CodeLayout layout, uint16_t code, int64_t i, int64_t half, uint8_t* to) {
    if (layout == CodeLayout::words) {
        // All targets with words are little-endian.
        to[2 * i] = static_cast<uint8_t>(code);
        to[2 * i + 1] = static_cast<uint8_t>(code >> 8);
    } else {
        to[i] = static_cast<uint8_t>(code) ^ 128;
        to[half + i] = static_cast<uint8_t>(code >> 8) ^ 128;
    }
}

// Whether the top of a tree of records is done by selects, where there are rows enough.
bool has_record_top(const Plan& plan, int64_t tree);

// Records of the trees of that kind, and tops where they help, into the plan. `size` holds the
// leaves below each test.
void add_records(const std::vector<int32_t>& size, const std::vector<Coded>& coded, Plan& plan);

}  // namespace dm::engine
