// Buffers that a thread needs while it predicts; an engine keeps them between calls.
#pragma once

#include "common/buffer.hpp"

namespace dm::engine {

class Workspace {
public:
    common::Buffer codes, row_codes, slots, labels, top_labels, ends, sums, raw, z;
};

}  // namespace dm::engine
