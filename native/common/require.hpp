// What a caller must give, or be told of.
#pragma once

#include <stdexcept>

namespace dm::common {

// ValueError in Python.
inline void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

}  // namespace dm::common
