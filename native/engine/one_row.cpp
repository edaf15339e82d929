#include "engine/one_row.hpp"

#include <vector>

#include "common/require.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dm::engine {

using common::require;

OneRow::OneRow(nb::handle_t<inputs::RowReader> reader, nb::handle_t<PyEngine> engine)
    : held_reader_(nb::borrow(reader)),
      held_engine_(nb::borrow(engine)),
      reader_(nb::cast<inputs::RowReader&>(reader)),
      engine_(nb::cast<const PyEngine&>(engine)),
      margins_(nb::make_tuple(1, engine_.machine().output.n), engine_.machine().output.single),
      two_(nb::make_tuple(2), engine_.machine().output.single) {
    const Machine::Columns& columns = engine_.machine().columns;
    require(reader_.n_features() == columns.n_features && reader_.single() == columns.single,
            "the reader's rows are not the engine's");
}

bool OneRow::run(nb::handle row, void* margins) const {
    constexpr int64_t kNear = 64;  // features that need no memory of their own
    double near[kNear];
    std::vector<double> far(reader_.n_features() > kNear ? reader_.n_features() : 0);
    void* x = far.empty() ? near : far.data();
    if (!reader_.fill(row, x)) return false;
    engine_.row_margins(x, margins);
    return true;
}

nb::object OneRow::margins(nb::handle row) const {
    nb::object out = margins_.make();
    return run(row, common::values_of(out)->buf) ? out : nb::none();
}

template <typename T>
nb::object OneRow::pair_of(nb::handle row, nb::handle sigmoid, T slope, T least) const {
    nb::object out = two_.make();
    const common::View view = common::values_of(out);
    T* two = static_cast<T*>(view->buf);
    T margin;
    if (!run(row, &margin)) return nb::none();
    margin *= slope;
    two[0] = two[1] = margin < least ? least : margin;  // NaN stays
    PyObject* given[] = {out.ptr(), out.ptr()};
    if (!nb::steal(PyObject_Vectorcall(sigmoid.ptr(), given, 2, nullptr))) throw nb::python_error();
    two[0] = T(1) - two[1];
    return out;
}

nb::object OneRow::pair(nb::handle row, nb::handle sigmoid, double slope, double least) const {
    require(engine_.machine().output.n == 1, "a pair is made of one margin");
    return engine_.machine().output.single
               ? pair_of(row, sigmoid, static_cast<float>(slope), static_cast<float>(least))
               : pair_of(row, sigmoid, slope, least);
}

void bind_one_row(nb::module_& m) {
    nb::class_<OneRow>(m, "OneRow", "One row by names or in order, read and answered.")
        .def(nb::init<nb::handle_t<inputs::RowReader>, nb::handle_t<PyEngine>>(), "reader"_a,
             "engine"_a)
        .def("margins", &OneRow::margins, "row"_a.none(),
             nb::sig("def margins(self, row: object) -> numpy.typing.NDArray[typing.Any] | None"),
             "Margins of one row, or None where it takes more than this to read it.")
        .def("pair", &OneRow::pair, "row"_a.none(), "sigmoid"_a, "slope"_a, "least"_a,
             nb::sig("def pair(self, row: object, sigmoid: object, slope: float, least: float) -> "
                     "numpy.typing.NDArray[typing.Any] | None"),
             "Probabilities of two classes by a function that overwrites an array.");
}

}  // namespace dm::engine
