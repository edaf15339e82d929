// Buffers that a thread needs while it predicts; an engine keeps them between calls.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace dm {

struct FreeDeleter {
    void operator()(void* p) const { std::free(p); }
};

// Memory aligned to cache lines, zeroed once; grows, never shrinks.
class Buffer {
public:
    void reserve(int64_t bytes) {
        bytes = (bytes + 127) / 64 * 64;
        if (bytes <= size_) return;
        data_.reset(std::aligned_alloc(64, static_cast<size_t>(bytes)));
        if (!data_) throw std::bad_alloc();
        std::memset(data_.get(), 0, static_cast<size_t>(bytes));
        size_ = bytes;
    }
    template <typename T = uint8_t>
    T* as() const { return static_cast<T*>(data_.get()); }

private:
    std::unique_ptr<void, FreeDeleter> data_;
    int64_t size_ = 0;
};

class Workspace {
public:
    Buffer codes, row_codes, slots, labels, top_labels, ends, sums, raw, z;
};

}  // namespace dm
