// Python's door to the engine: read arrays where they lie, release the GIL, predict.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>

#include "common/arrays.hpp"
#include "common/require.hpp"
#include "common/targets.hpp"
#include "engine/engine.hpp"
#include "engine/kernels/find.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dm::engine {
namespace {

using common::require;

template <typename T>
using In = common::In<T, 1>;

// A buffer of a Python object, held as long as this lives.
class View {
public:
    View(nb::handle object, int flags) {
        if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) {
            PyErr_Clear();
            view_.obj = nullptr;
            held_ = false;
        }
    }
    ~View() {
        if (held_) PyBuffer_Release(&view_);
    }
    View(const View&) = delete;
    View(View&& other) noexcept : view_(other.view_), held_(other.held_) { other.held_ = false; }
    bool held() const { return held_; }
    const Py_buffer* operator->() const { return &view_; }

private:
    Py_buffer view_{};
    bool held_ = true;
};

// The dtype of a buffer in native byte order, where it is one that the kernels read.
std::optional<Dtype> dtype_of(const char* format, Py_ssize_t item) {
    if (!format) return std::nullopt;
    if (*format == '@' || *format == '=') ++format;
    if (format[0] == '\0' || format[1] != '\0') return std::nullopt;
    auto whole = [&](bool is_signed) -> std::optional<Dtype> {
        switch (item) {
            case 1: return is_signed ? Dtype::i8 : Dtype::u8;
            case 2: return is_signed ? Dtype::i16 : Dtype::u16;
            case 4: return is_signed ? Dtype::i32 : Dtype::u32;
            case 8: return is_signed ? Dtype::i64 : Dtype::u64;
            default: return std::nullopt;
        }
    };
    switch (*format) {
        case 'f': return Dtype::f32;
        case 'd': return Dtype::f64;
        case '?': return Dtype::boolean;
        case 'b':
        case 'h':
        case 'i':
        case 'l':
        case 'q': return whole(true);
        case 'B':
        case 'H':
        case 'I':
        case 'L':
        case 'Q': return whole(false);
        default: return std::nullopt;
    }
}

class PyEngine {
public:
    PyEngine(const std::string& target, int force, nb::dict parts) : parts_(parts) {
        kernels_ = find_kernels(target);
        require(kernels_ != nullptr, "no such target on this processor");
        array_type_ = parts["array_type"];
        empty_ = parts["empty"];
        one_row_ = nb::make_tuple(nb::make_tuple(1, parts["n_outputs"]), parts["dtype"]);
        engine_ = compile(force, true);
    }

    // Margins or leaves of a two-dimensional array into `out`. False where its dtype is not read
    // here, and nothing is done.
    bool array(nb::handle X, nb::handle out, bool wants_leaves, int64_t n_threads,
               bool integers_single) const {
        const View x(X, PyBUF_STRIDES | PyBUF_FORMAT);
        if (!x.held() || x->ndim != 2) return false;
        const auto dtype = dtype_of(x->format, x->itemsize);
        if (!dtype) return false;
        require(x->shape[1] == engine_->plan.n_features, "X has the wrong width");
        run(array_source(*x.operator->(), *dtype, integers_single), out, wants_leaves, n_threads);
        return true;
    }

    // Margins of one row, or None where X is not a NumPy array of one row that `array` reads. All
    // in one call: the interpreter's share of a prediction is as large as the engine's.
    nb::object row(nb::handle X, bool integers_single) const {
        if (reinterpret_cast<PyObject*>(Py_TYPE(X.ptr())) != array_type_.ptr()) return nb::none();
        const View x(X, PyBUF_STRIDES | PyBUF_FORMAT);
        if (!x.held() || x->ndim != 2 || x->shape[0] != 1 ||
            x->shape[1] != engine_->plan.n_features)
            return nb::none();
        const auto dtype = dtype_of(x->format, x->itemsize);
        if (!dtype) return nb::none();
        nb::object out = nb::steal(PyObject_CallObject(empty_.ptr(), one_row_.ptr()));
        if (!out) throw nb::python_error();
        run(array_source(*x.operator->(), *dtype, integers_single), out, false, 1);
        return out;
    }

    // The same of a list of one-dimensional arrays, one for each feature.
    bool features(nb::list columns, int64_t n_rows, nb::handle out, bool wants_leaves,
                  int64_t n_threads) const {
        require(static_cast<int64_t>(columns.size()) == engine_->plan.n_features,
                "X has the wrong width");
        std::vector<View> views;
        views.reserve(columns.size());
        Source source;
        source.n_rows = n_rows;
        source.integers_single = engine_->plan.single;
        for (nb::handle column : columns) {
            views.emplace_back(column, PyBUF_STRIDES | PyBUF_FORMAT);
            const View& view = views.back();
            if (!view.held() || view->ndim != 1) return false;
            const auto dtype = dtype_of(view->format, view->itemsize);
            if (!dtype) return false;
            require(view->shape[0] == n_rows, "columns differ in length");
            source.features.push_back(
                {static_cast<const char*>(view->buf), view->strides[0], *dtype});
        }
        run(source, out, wants_leaves, n_threads);
        return true;
    }

    // The same of compressed sparse rows, without duplicates.
    bool sparse(nb::handle data, nb::handle indices, nb::handle indptr, nb::handle out,
                bool wants_leaves, int64_t n_threads) const {
        const View values(data, PyBUF_STRIDES | PyBUF_FORMAT);
        const View columns(indices, PyBUF_STRIDES | PyBUF_FORMAT);
        const View starts(indptr, PyBUF_STRIDES | PyBUF_FORMAT);
        if (!values.held() || !columns.held() || !starts.held()) return false;
        const auto dtype = dtype_of(values->format, values->itemsize);
        const auto kind = dtype_of(columns->format, columns->itemsize);
        const auto start_kind = dtype_of(starts->format, starts->itemsize);
        auto is_index = [](const auto& found, const View& view) {
            return found && (*found == Dtype::i32 || *found == Dtype::i64) && view->ndim == 1 &&
                   view->strides[0] == view->itemsize;
        };
        if (!dtype || values->ndim != 1 || !is_index(kind, columns) ||
            !is_index(start_kind, starts))
            return false;
        require(starts->shape[0] >= 1, "indptr is empty");
        Source source;
        source.is_sparse = true;
        source.n_rows = starts->shape[0] - 1;
        source.entries = {static_cast<const char*>(values->buf), values->strides[0], *dtype};
        int64_t last = 0, most = 0, least = 0;
        auto check_starts = [&](const auto* at) {
            require(at[0] >= 0, "indptr starts below 0");
            for (int64_t i = 0; i < source.n_rows; ++i)
                require(at[i] <= at[i + 1], "indptr decreases");
            last = at[source.n_rows];
        };
        auto check_columns = [&](const auto* at) {
            for (int64_t i = 0; i < last; ++i) {
                most = std::max<int64_t>(most, at[i]);
                least = std::min<int64_t>(least, at[i]);
            }
        };
        if (*start_kind == Dtype::i32)
            check_starts(source.indptr32 = static_cast<const int32_t*>(starts->buf));
        else
            check_starts(source.indptr64 = static_cast<const int64_t*>(starts->buf));
        require(last <= columns->shape[0] && last <= values->shape[0], "indptr reaches too far");
        if (*kind == Dtype::i32)
            check_columns(source.indices32 = static_cast<const int32_t*>(columns->buf));
        else
            check_columns(source.indices64 = static_cast<const int64_t*>(columns->buf));
        require(least >= 0 && (last == 0 || most < engine_->plan.n_features), "no such column");
        run(source, out, wants_leaves, n_threads);
        return true;
    }

    nb::dict describe() const {
        const Plan& plan = engine_->plan;
        nb::dict found;
        nb::list trees, groups;
        for (const Tree& tree : plan.trees) {
            const char* names[] = {"select", "deep"};
            trees.append(plan.oblique.is_made ? "oblique"
                         : plan.row.is_made   ? "pack"
                         : plan.raw_only      ? "raw"
                                              : names[static_cast<int>(tree.kind)]);
        }
        int64_t tests = 0, selects = 0;
        for (const Section& section : plan.sections)
            for (const Group& group : section.groups) {
                groups.append(nb::make_tuple(group.first, group.last));
                tests += static_cast<int64_t>(group.tests.size());
                selects += static_cast<int64_t>(group.selects.size());
            }
        found["target"] = plan.kernels->name;
        found["kernels"] = trees;
        found["groups"] = groups;
        found["sections"] = plan.sections.size();
        found["distinct_tests"] = tests;
        found["selects"] = selects;
        found["bytes"] = plan.n_bytes();
        found["few_bytes"] = few_ ? few_->plan.n_bytes() : 0;
        return found;
    }

private:
    static Source array_source(const Py_buffer& x, Dtype dtype, bool integers_single) {
        Source source;
        source.n_rows = x.shape[0];
        source.integers_single = integers_single;
        source.is_array = true;
        source.first = {static_cast<const char*>(x.buf), x.strides[0], dtype};
        source.next = x.strides[1];
        return source;
    }

    // The machine's arrays, held in parts_, compiled.
    std::unique_ptr<Engine> compile(int force, bool wants_values) const {
        const nb::dict& parts = parts_;
        Machine m{};
        auto number = [&](const char* name) { return nb::cast<int64_t>(parts[name]); };
        auto real = [&](const char* name) { return nb::cast<double>(parts[name]); };
        auto flag = [&](const char* name) { return nb::cast<bool>(parts[name]); };
        m.n_features = number("n_features");
        m.n_outputs = number("n_outputs");
        m.single = flag("single");
        m.integers_single = flag("integers_single");
        m.missing_value = real("missing_value");
        m.absent = real("absent");
        m.negative_fractions = flag("negative_fractions");
        m.whole = flag("whole");
        m.narrow = flag("narrow");
        m.sum_single = flag("sum_single");
        m.base_first = flag("base_first");
        m.divisor = real("divisor");
        m.scale = real("scale");
        m.aggregate = static_cast<Aggregate>(number("aggregate"));
        auto feature = nb::cast<In<int32_t>>(parts["feature"]);
        auto rule = nb::cast<In<uint8_t>>(parts["rule"]);
        auto set_start = nb::cast<In<int64_t>>(parts["set_start"]);
        auto members = nb::cast<In<int64_t>>(parts["members"]);
        auto answers = nb::cast<In<int8_t>>(parts["answers"]);
        auto outside = nb::cast<In<int8_t>>(parts["outside"]);
        const bool is_oblique = parts.contains("weight_start");
        In<int32_t> selection, weight_column;
        In<int64_t> weight_start;
        In<float> weight32;
        In<double> weight64;
        if (is_oblique) {
            weight_start = nb::cast<In<int64_t>>(parts["weight_start"]);
            weight_column = nb::cast<In<int32_t>>(parts["weight_column"]);
            if (m.single)
                weight32 = nb::cast<In<float>>(parts["weight"]);
            else
                weight64 = nb::cast<In<double>>(parts["weight"]);
        } else {
            selection = nb::cast<In<int32_t>>(parts["selection"]);
        }
        auto t = nb::cast<In<double>>(parts["t"]);
        auto missing = nb::cast<In<int8_t>>(parts["missing"]);
        auto children = nb::cast<In<int32_t>>(parts["children"]);
        auto test_start = nb::cast<In<int64_t>>(parts["test_start"]);
        auto feeds = nb::cast<In<int32_t>>(parts["feeds"]);
        In<float> V32;
        In<double> V64;
        if (m.sum_single)
            V32 = nb::cast<In<float>>(parts["V"]);
        else
            V64 = nb::cast<In<double>>(parts["V"]);
        auto base = nb::cast<In<double>>(parts["base"]);
        m.n_columns = static_cast<int64_t>(feature.shape(0));
        m.n_trees = static_cast<int64_t>(feeds.shape(0));
        m.n_tests = static_cast<int64_t>(t.shape(0));
        const int64_t n_leaves = m.n_tests + m.n_trees, k = m.narrow ? 1 : m.n_outputs;
        auto size = [](const auto& array) { return static_cast<int64_t>(array.shape(0)); };
        require(size(rule) == m.n_columns && (is_oblique || size(selection) == m.n_tests) &&
                    size(missing) == m.n_tests && size(children) == 2 * m.n_tests &&
                    size(test_start) == m.n_trees + 1 && size(base) == m.n_outputs &&
                    (m.sum_single ? size(V32) : size(V64)) == n_leaves * k &&
                    size(answers) == size(members) && size(set_start) == size(outside) + 1,
                "the machine's arrays do not fit together");
        m.feature = feature.data();
        m.rule = rule.data();
        m.set_start = set_start.data();
        m.members = members.data();
        m.answers = answers.data();
        m.outside = outside.data();
        if (is_oblique) {
            const int64_t n_terms = size(weight_column);
            require(size(weight_start) == m.n_tests + 1 &&
                        (m.single ? size(weight32) : size(weight64)) == n_terms &&
                        weight_start.data()[0] == 0 && weight_start.data()[m.n_tests] == n_terms,
                    "the weights do not fit together");
            for (int64_t i = 0; i < n_terms; ++i)
                require(weight_column.data()[i] >= 0 && weight_column.data()[i] < m.n_columns,
                        "no such column");
            for (int64_t j = 0; j < m.n_tests; ++j)
                require(weight_start.data()[j] <= weight_start.data()[j + 1],
                        "the weights do not fit together");
            m.weight_start = weight_start.data();
            m.weight_column = weight_column.data();
            m.weight = m.single ? static_cast<const void*>(weight32.data()) : weight64.data();
        } else {
            m.selection = selection.data();
        }
        m.t = t.data();
        m.missing = missing.data();
        m.children = children.data();
        m.test_start = test_start.data();
        m.feeds = feeds.data();
        m.V = m.sum_single ? static_cast<const void*>(V32.data()) : V64.data();
        m.base = base.data();
        In<int64_t> linear_start;
        In<int32_t> linear_feature;
        In<double> intercept, coefficient, linear_constant;
        if (parts.contains("linear_start")) {
            linear_start = nb::cast<In<int64_t>>(parts["linear_start"]);
            linear_feature = nb::cast<In<int32_t>>(parts["linear_feature"]);
            intercept = nb::cast<In<double>>(parts["intercept"]);
            coefficient = nb::cast<In<double>>(parts["coefficient"]);
            linear_constant = nb::cast<In<double>>(parts["linear_constant"]);
            m.linear_constant = linear_constant.data();
            require(size(linear_constant) == n_leaves * k && size(linear_start) == n_leaves + 1 &&
                        size(intercept) == n_leaves * k &&
                        size(coefficient) == size(linear_feature) * k,
                    "the linear leaves do not fit together");
            m.linear_start = linear_start.data();
            m.linear_feature = linear_feature.data();
            m.intercept = intercept.data();
            m.coefficient = coefficient.data();
            m.linear_single = flag("linear_single");
        }
        m.wants_values = wants_values;
        nb::gil_scoped_release release;
        return std::make_unique<Engine>(engine::compile(m, kernels_, force));
    }

    void run(const Source& source, nb::handle out, bool wants_leaves, int64_t n_threads) const {
        const Plan& plan = engine_->plan;
        const View to(out, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE);
        const int64_t width = wants_leaves ? plan.n_trees : plan.n_outputs;
        const int64_t item = wants_leaves || plan.sum_single ? 4 : 8;
        require(to.held() && to->len == source.n_rows * width * item && to->itemsize == item,
                "out has the wrong shape or dtype");
        require(n_threads >= 1, "n_threads must be at least 1");
        std::shared_ptr<Engine> few;  // held during the call
        const int64_t few_rows = kernels_->packs ? kPackRows : kFewRows;
        if (source.n_rows < few_rows && !plan.has_nodes()) {
            if (!few_) {
                std::shared_ptr<Engine> made = compile(4, false);
                if (!few_) few_ = std::move(made);
            }
            if (source.n_rows < kFewRows || few_->plan.row.is_made) few = few_;
        }
        const Engine& engine = few ? *few : *engine_;
        if (source.n_rows < 16) {  // letting go of the GIL would cost more than it gives
            call(engine, source, to->buf, wants_leaves, n_threads);
        } else {
            nb::gil_scoped_release release;
            call(engine, source, to->buf, wants_leaves, n_threads);
        }
    }
    static void call(const Engine& engine, const Source& source, void* out, bool wants_leaves,
                     int64_t n_threads) {
        if (wants_leaves)
            engine.apply(source, n_threads, static_cast<int32_t*>(out));
        else
            engine.margin(source, n_threads, out);
    }

    nb::dict parts_;  // plans read V where it lies
    nb::object array_type_, empty_, one_row_;
    const Kernels* kernels_ = nullptr;
    std::unique_ptr<Engine> engine_;
    // Nodes to walk, where engine_ has none: compiled when few rows come. Guarded by the GIL, and
    // a second thread that comes meanwhile compiles its own, which replaces an equal one.
    mutable std::shared_ptr<Engine> few_;
};

}  // namespace

void bind(nb::module_& m) {
    m.def("targets", &common::available_targets);
    nb::class_<PyEngine>(m, "Engine")
        .def(nb::init<const std::string&, int, nb::dict>(), "target"_a, "force"_a, "parts"_a)
        .def("array", &PyEngine::array)
        .def("row", &PyEngine::row, "X"_a.none(), "integers_single"_a)
        .def("features", &PyEngine::features)
        .def("sparse", &PyEngine::sparse)
        .def("describe", &PyEngine::describe);
}

}  // namespace dm::engine
