// Memory aligned to cache lines.
#pragma once

#include <cstdint>
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
        // Not std::aligned_alloc, which Windows lacks. Throws std::bad_alloc.
        data_.reset(::operator new(static_cast<size_t>(bytes), kLine));
        std::memset(data_.get(), 0, static_cast<size_t>(bytes));
        size_ = bytes;
    }
    template <typename T = uint8_t>
    T* as() const {
        return static_cast<T*>(data_.get());
    }

private:
    static constexpr std::align_val_t kLine{64};
    struct Free {
        void operator()(void* p) const { ::operator delete(p, kLine); }
    };
    std::unique_ptr<void, Free> data_;
    int64_t size_ = 0;
};

}  // namespace dm::common
