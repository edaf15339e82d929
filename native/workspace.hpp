// Buffers that a thread needs while it predicts; an engine keeps them between calls.
#pragma once

#include "buffer.hpp"

namespace dm {

class Workspace {
public:
    Buffer codes, row_codes, slots, labels, top_labels, ends, sums, raw, z;
};

}  // namespace dm
