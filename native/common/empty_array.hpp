// New NumPy arrays of one shape and dtype: what asks for them is made once.
#pragma once

#include <nanobind/nanobind.h>

#include "common/require.hpp"
#include "common/view.hpp"

namespace dm::common {

class EmptyArray {
public:
    EmptyArray(nanobind::tuple shape, bool single) : shape_(std::move(shape)) {
        const nanobind::module_ numpy = nanobind::module_::import_("numpy");
        empty_ = numpy.attr("empty");
        // A dtype itself: to find that of a type takes as long as to make the array.
        dtype_ = numpy.attr("dtype")(single ? "float32" : "float64");
    }

    nanobind::object make() const {
        PyObject* given[] = {shape_.ptr(), dtype_.ptr()};
        nanobind::object made =
            nanobind::steal(PyObject_Vectorcall(empty_.ptr(), given, 2, nullptr));
        if (!made) throw nanobind::python_error();
        return made;
    }

private:
    nanobind::object empty_, shape_, dtype_;
};

// The memory of such an array.
inline View values_of(nanobind::handle array) {
    View found(array, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE);
    require(found.held(), "numpy.empty gave no buffer");
    return found;
}

}  // namespace dm::common
