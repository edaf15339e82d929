#include "inputs/row_reader.hpp"

#include <limits>

#include "common/require.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dm::inputs {

using common::require;

RowReader::RowReader(nb::object names, nb::list labels, bool single, bool labels_in_lists)
    : held_(std::move(labels)),
      single_(single),
      labels_in_lists_(labels_in_lists),
      array_(nb::make_tuple(1, nb::len(held_)), single) {
    for (nb::handle one : held_)
        labels_.push_back(one.is_none() ? nullptr : nb::cast<LabelPositions*>(one));
    if (!names.is_none())
        for (nb::handle name : names) names_.push_back(nb::borrow(name));
    require(names_.empty() || names_.size() == labels_.size(), "one name for each feature");
}

bool RowReader::value(size_t feature, nb::handle given, bool is_named, double& x) {
    PyObject* object = given.ptr();
    LabelPositions* labels = labels_[feature];
    if (labels && (is_named || labels_in_lists_ || PyUnicode_Check(object))) {
        x = labels->of(given);
        return true;
    }
    if (PyFloat_Check(object)) {
        x = PyFloat_AsDouble(object);
    } else if (object == Py_None) {
        x = std::numeric_limits<double>::quiet_NaN();
    } else {
        if (!PyLong_Check(object) && !PyType_GetSlot(Py_TYPE(object), Py_nb_float)) return false;
        x = PyFloat_AsDouble(object);
        if (x == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

template <typename T>
bool RowReader::fill_as(nb::handle row, T* x) {
    const size_t n = labels_.size();
    double one;
    if (PyDict_CheckExact(row.ptr())) {
        if (names_.size() != n || static_cast<size_t>(PyDict_Size(row.ptr())) != n) return false;
        for (size_t f = 0; f < n; ++f) {
            PyObject* found = PyDict_GetItemWithError(row.ptr(), names_[f].ptr());
            if (!found) {
                if (PyErr_Occurred()) throw nb::python_error();
                return false;
            }
            // A label's look-up may run Python code, which could drop the value.
            const nb::object given = nb::borrow(found);
            if (!value(f, given, true, one)) return false;
            x[f] = static_cast<T>(one);
        }
        return true;
    }
    const bool is_list = PyList_CheckExact(row.ptr());
    if (!is_list && !PyTuple_CheckExact(row.ptr())) return false;
    for (size_t f = 0; f < n; ++f) {
        if (static_cast<size_t>(Py_SIZE(row.ptr())) != n) return false;
        PyObject* found = is_list ? PyList_GetItem(row.ptr(), static_cast<Py_ssize_t>(f))
                                  : PyTuple_GetItem(row.ptr(), static_cast<Py_ssize_t>(f));
        const nb::object given = nb::borrow(found);
        if (!value(f, given, false, one)) return false;
        x[f] = static_cast<T>(one);
    }
    return static_cast<size_t>(Py_SIZE(row.ptr())) == n;
}

bool RowReader::fill(nb::handle row, void* x) {
    return single_ ? fill_as(row, static_cast<float*>(x)) : fill_as(row, static_cast<double*>(x));
}

nb::object RowReader::read(nb::handle row) {
    nb::object out = array_.make();
    return fill(row, common::values_of(out)->buf) ? out : nb::none();
}

void bind_row_reader(nb::module_& m) {
    nb::class_<RowReader>(m, "RowReader", "One row by names or in order, as an array.")
        .def(nb::init<nb::object, nb::list, bool, bool>(), "names"_a.none(), "labels"_a, "single"_a,
             "labels_in_lists"_a,
             nb::sig("def __init__(self, names: collections.abc.Iterable[str] | None, labels: "
                     "list[LabelPositions | None], single: bool, labels_in_lists: bool) -> None"))
        .def("read", &RowReader::read, "row"_a.none(),
             nb::sig("def read(self, row: object) -> numpy.typing.NDArray[typing.Any] | None"),
             "An array of one row, or None where it takes more than this to read.");
}

}  // namespace dm::inputs
