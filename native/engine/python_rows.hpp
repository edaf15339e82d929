// Rows that Python holds, as the engine reads them: where they lie.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "engine/plan/machine.hpp"
#include "engine/source.hpp"

namespace dm::engine {

// A buffer of a Python object, held as long as this lives.
class View {
public:
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
    bool held() const { return held_; }
    const Py_buffer* operator->() const { return &view_; }

private:
    Py_buffer view_{};
    bool held_ = false;
};

// Each fills `source` and returns true, or returns false where the engine does not read such
// arrays. What cannot be rows of the machine at all is an error (ValueError).

// A two-dimensional array.
bool read_array(const View& X, const Machine::Columns& columns, Source& source);

// One-dimensional arrays, one for each feature.
bool read_features(const std::vector<View>& features, int64_t n_rows,
                   const Machine::Columns& columns, Source& source);

// Compressed sparse rows, without duplicates.
bool read_sparse(const View& data, const View& indices, const View& indptr,
                 const Machine::Columns& columns, Source& source);

}  // namespace dm::engine
