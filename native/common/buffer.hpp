// Memory aligned to cache lines.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace dm::common {

// Zeroed once; grows, never shrinks, and what it held is lost when it grows.
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
    T* as() const {
        return static_cast<T*>(data_.get());
    }

private:
    struct Free {
        void operator()(void* p) const { std::free(p); }
    };
    std::unique_ptr<void, Free> data_;
    int64_t size_ = 0;
};

}  // namespace dm::common
