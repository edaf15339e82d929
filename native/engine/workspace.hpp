// Buffers that a thread needs while it predicts; an engine keeps them between calls.
#pragma once

#include <cstring>

#include "common/buffer.hpp"
#include "engine/kernels/kernels.hpp"

namespace dm::engine {

struct Workspace {
    common::Buffer codes;         // planes of codes, one after another
    common::Buffer row_codes;     // 16-bit codes of a row together; or rows of z of oblique trees
    common::Buffer record_codes;  // codes of a row together, as records read them
    bool has_nan = false;         // one of them is kNanCode
    common::Buffer slots;         // bitmaps of tests and selects
    common::Buffer labels;        // of exit leaves
    common::Buffer top_labels;    // of the exits of a tree's top
    common::Buffer ends;          // nodes where walks stand, and rows under way
    common::Buffer sums;          // by output
    common::Buffer row_sums;      // by row, where records add values
    common::Buffer raw;           // sparse rows, spread out
    common::Buffer z;             // features of linear leaves; all that one row needs

    // Room for the slots of a group, the first two of them constants.
    uint8_t* prepare_slots(int64_t n_slots) {
        slots.reserve(n_slots * kBlockBytes);
        std::memset(slots.as(), 0, kBlockBytes);
        std::memset(slots.as() + kBlockBytes, 255, kBlockBytes);
        return slots.as();
    }
};

}  // namespace dm::engine
