// Python's door to the engine: read rows where they lie, release the GIL, predict.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "common/targets.hpp"
#include "engine/one_row.hpp"
#include "engine/python_engine.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dm::engine {

void bind(nb::module_& m) {
    m.def("targets", &common::available_targets,
          "Targets that this processor runs, from the plainest to the fastest.");
    nb::enum_<Kind> kinds(m, "Kind", "A way to evaluate trees.");
    for (const KindEntry& entry : kKinds) kinds.value(entry.name, entry.kind, entry.about);
    bind_machine(m);
    nb::class_<Description>(m, "PlanDescription", "How an engine runs its machine.")
        .def_ro("target", &Description::target)
        .def_ro("kernels", &Description::kernels, "Names of kinds, by tree.")
        .def_ro("groups", &Description::groups, "First tree and the one after the last.")
        .def_ro("n_sections", &Description::n_sections, "Codings of the columns.")
        .def_ro("n_distinct_tests", &Description::n_distinct_tests)
        .def_ro("n_selects", &Description::n_selects)
        .def_ro("n_bytes", &Description::n_bytes)
        .def_ro("n_few_bytes", &Description::n_few_bytes, "Of the plan for few rows, if made.");
    nb::class_<PyEngine>(m, "Engine", "A machine compiled for one target.")
        .def(nb::init<nb::handle_t<HeldMachine>, const std::string&, Kind>(), "machine"_a,
             "target"_a = "auto", "kind"_a = Kind::by_tree)
        .def("array", &PyEngine::array, "X"_a, "out"_a, "wants_leaves"_a, "n_threads"_a,
             "Margins or leaves of a two-dimensional array into `out`; False where it is not read.")
        .def("features", &PyEngine::features, "columns"_a, "n_rows"_a, "out"_a, "wants_leaves"_a,
             "n_threads"_a,
             nb::sig("def features(self, columns: collections.abc.Sequence[object], n_rows: int, "
                     "out: object, wants_leaves: bool, n_threads: int) -> bool"),
             "The same of one-dimensional arrays, one for each feature, or tuples: an array, "
             "positions of the labels that it counts, a mask of missing rows, bits of rows that "
             "are not missing and the first row's among them; None for what there is not.")
        .def("sparse", &PyEngine::sparse, "data"_a, "indices"_a, "indptr"_a, "out"_a,
             "wants_leaves"_a, "n_threads"_a,
             "The same of compressed sparse rows, without duplicates.")
        .def("row", &PyEngine::row, "X"_a.none(),
             nb::sig("def row(self, X: object) -> numpy.typing.NDArray[typing.Any] | None"),
             "Margins of one row, or None where X is not a NumPy array of one row.")
        .def("describe", &PyEngine::describe);
    bind_one_row(m);
}

}  // namespace dm::engine
