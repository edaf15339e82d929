// A buffer of a Python object, held as long as this lives.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

namespace dm::common {

class View {
public:
    View() = default;
    View(nanobind::handle object, int flags) {
        held_ = PyObject_GetBuffer(object.ptr(), &view_, flags) == 0;
        if (!held_) PyErr_Clear();
    }
    // With strides and a format, as rows are read.
    explicit View(nanobind::handle object) : View(object, PyBUF_STRIDES | PyBUF_FORMAT) {}
    ~View() {
        if (held_) PyBuffer_Release(&view_);
    }
    View(const View&) = delete;
    View(View&& other) noexcept : view_(other.view_), held_(other.held_) { other.held_ = false; }
    View& operator=(View&& other) noexcept {
        std::swap(view_, other.view_);
        std::swap(held_, other.held_);
        return *this;
    }
    bool held() const { return held_; }
    const Py_buffer* operator->() const { return &view_; }

private:
    Py_buffer view_{};
    bool held_ = false;
};

}  // namespace dm::common
