// Memory fetched before it is needed.
#pragma once

namespace dm::common {

// All from `first` up to `last`, into the second-level cache.
inline void prefetch(const void* first, const void* last) {
    for (const char* line = static_cast<const char*>(first); line < last; line += 64)
        __builtin_prefetch(line, 0, 2);
}

}  // namespace dm::common
