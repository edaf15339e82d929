// Python's door to the engine: read rows where they lie, release the GIL, predict.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "common/interruptible.hpp"
#include "common/require.hpp"
#include "common/targets.hpp"
#include "engine/engine.hpp"
#include "engine/kernels/find.hpp"
#include "engine/python_machine.hpp"
#include "engine/python_rows.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dm::engine {
namespace {

using common::require;

constexpr int64_t kRowsWithGil = 16;  // letting go of it would cost more than it gives

struct Description {
    std::string target;
    std::vector<std::string> kernels;                 // by tree
    std::vector<std::pair<int64_t, int64_t>> groups;  // of trees
    int64_t n_sections, n_distinct_tests, n_selects, n_bytes, n_few_bytes;
};

class PyEngine {
public:
    // `machine` is a Machine: plans read its arrays where they lie.
    PyEngine(nb::handle_t<HeldMachine> machine, const std::string& target, Kind kind)
        : machine_(nb::borrow(machine)),
          view_(nb::cast<const HeldMachine&>(machine).view()),
          kernels_(find_kernels(target)) {
        require(kernels_ != nullptr, "no such target on this processor");
        const nb::module_ numpy = nb::module_::import_("numpy");
        array_type_ = numpy.attr("ndarray");
        empty_ = numpy.attr("empty");
        one_row_ = nb::make_tuple(nb::make_tuple(1, view_.output.n),
                                  numpy.attr(view_.output.single ? "float32" : "float64"));
        engine_ = compiled({kind, true});
    }

    bool array(nb::handle X, nb::handle out, bool wants_leaves, int64_t n_threads) const {
        const View x(X);
        Source source;
        if (!read_array(x, view_.columns, source)) return false;
        run(source, out, wants_leaves, n_threads);
        return true;
    }

    bool features(nb::sequence columns, int64_t n_rows, nb::handle out, bool wants_leaves,
                  int64_t n_threads) const {
        std::vector<GivenFeature> views;
        views.reserve(nb::len(columns));
        for (nb::handle column : columns) views.emplace_back(column);
        Source source;
        if (!read_features(views, n_rows, view_.columns, source)) return false;
        run(source, out, wants_leaves, n_threads);
        return true;
    }

    bool sparse(nb::handle data, nb::handle indices, nb::handle indptr, nb::handle out,
                bool wants_leaves, int64_t n_threads) const {
        const View values(data), columns(indices), starts(indptr);
        Source source;
        if (!read_sparse(values, columns, starts, view_.columns, source)) return false;
        run(source, out, wants_leaves, n_threads);
        return true;
    }

    // All in one call: the interpreter's share of a prediction is as large as the engine's.
    nb::object row(nb::handle X) const {
        if (reinterpret_cast<PyObject*>(Py_TYPE(X.ptr())) != array_type_.ptr()) return nb::none();
        const View x(X);
        if (!x.held() || x->ndim != 2 || x->shape[0] != 1 ||
            x->shape[1] != view_.columns.n_features)
            return nb::none();
        Source source;
        if (!read_array(x, view_.columns, source)) return nb::none();
        nb::object out = nb::steal(PyObject_CallObject(empty_.ptr(), one_row_.ptr()));
        if (!out) throw nb::python_error();
        run(source, out, false, 1);
        return out;
    }

    Description describe() const {
        const Plan& plan = engine_->plan;
        Description found{kernels_->name,
                          {},
                          {},
                          static_cast<int64_t>(plan.sections.size()),
                          0,
                          0,
                          plan.n_bytes(),
                          few_ ? few_->plan.n_bytes() : 0};
        for (const Tree& tree : plan.trees) found.kernels.push_back(entry_of(tree.kind).name);
        for (const Section& section : plan.sections)
            for (const Group& group : section.groups) {
                found.groups.emplace_back(group.first, group.last);
                found.n_distinct_tests += static_cast<int64_t>(group.tests.size());
                found.n_selects += static_cast<int64_t>(group.selects.size());
            }
        return found;
    }

private:
    std::shared_ptr<Engine> compiled(const Wanted& wanted) const {
        nb::gil_scoped_release release;
        return std::make_shared<Engine>(compile(view_, kernels_, wanted));
    }

    // The engine for so many rows, which the caller holds during its call.
    std::shared_ptr<const Engine> engine_for(int64_t n_rows) const {
        const int64_t few_rows = kernels_->packs ? kPackRows : kFewRows;
        static_assert(kRecordRows < kPackRows);
        if (n_rows >= few_rows || engine_->plan.can_walk()) return engine_;
        if (!few_) {
            std::shared_ptr<Engine> made = compiled({kind_for_few(view_, *kernels_), false});
            if (!few_) few_ = std::move(made);
        }
        const int64_t most = few_->plan.kind == Kind::pack ? few_rows
                             : few_->plan.is_records()     ? kRecordRows + 1
                                                           : kFewRows;
        return n_rows < most ? few_ : engine_;
    }

    void run(const Source& source, nb::handle out, bool wants_leaves, int64_t n_threads) const {
        const View to(out, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE);
        const int64_t width = wants_leaves ? view_.trees.n : view_.output.n;
        const int64_t item = wants_leaves || view_.output.single ? 4 : 8;
        require(to.held() && to->len == source.n_rows * width * item && to->itemsize == item,
                "out has the wrong shape or dtype");
        require(n_threads >= 1, "n_threads must be at least 1");
        const std::shared_ptr<const Engine> engine = engine_for(source.n_rows);
        auto call = [&] {
            if (wants_leaves)
                engine->apply(source, n_threads, static_cast<int32_t*>(to->buf));
            else
                engine->margin(source, n_threads, to->buf);
        };
        if (source.n_rows < kRowsWithGil) return call();
        common::interruptible(call);
    }

    nb::object machine_;
    const Machine& view_;
    nb::object array_type_, empty_, one_row_;
    const Kernels* kernels_;
    std::shared_ptr<const Engine> engine_;
    // For few rows, where engine_ cannot walk: compiled when they come. Guarded by the GIL, and a
    // second thread that comes meanwhile compiles its own, which replaces an equal one.
    mutable std::shared_ptr<const Engine> few_;
};

}  // namespace

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
}

}  // namespace dm::engine
