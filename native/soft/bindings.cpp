// Python's door to the soft tree: check shapes, release the GIL, call.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>

#include "common/arrays.hpp"
#include "common/interruptible.hpp"
#include "common/require.hpp"
#include "soft/entmax.hpp"
#include "soft/passes.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dm::soft {
namespace {

using common::In;
using common::Out;
using common::require;

// (m, n) in any strides.
template <typename T>
using Strided = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

template <typename T>
const TypedKernels<T>* kernels_of(const std::string& target) {
    const Kernels* found = find_kernels(target);
    require(found != nullptr, "this processor has no such target");
    if constexpr (sizeof(T) == 4)
        return &found->floats;
    else
        return &found->doubles;
}

template <typename A>
bool has_shape(const A& array, int64_t rows, int64_t columns) {
    return static_cast<int64_t>(array.shape(0)) == rows &&
           static_cast<int64_t>(array.shape(1)) == columns;
}

template <typename T>
Call<T> call_of(const Plan& plan, const std::string& target, const Strided<const T>& z,
                const In<T, 1>& t, const In<T, 1>& nudge, const In<T, 1>& slope, const In<T, 2>& V,
                double skip, int64_t n_threads) {
    const size_t n_tests = static_cast<size_t>(plan.n_tests());
    require(static_cast<int64_t>(z.shape(1)) == plan.n_columns, "z has the wrong width");
    require(t.shape(0) == n_tests && nudge.shape(0) == n_tests && slope.shape(0) == n_tests,
            "t, nudge and slope must be (J,)");
    require(has_shape(V, plan.n_leaves(), plan.width()), "V has the wrong shape");
    require(skip >= 0 && skip < 1, "skip must be from 0 to below 1");
    return {kernels_of<T>(target), z.data(), z.stride(0),
            z.stride(1),           t.data(), nudge.data(),
            slope.data(),          V.data(), static_cast<int64_t>(z.shape(0)),
            static_cast<T>(skip),  n_threads};
}

// Weights of tests that weigh several columns: starts (J + 1,), columns and weights.
template <typename T>
using Mixes = std::optional<std::tuple<In<int64_t, 1>, In<int32_t, 1>, In<T, 1>>>;

template <typename T>
void add_mixes(const Plan& plan, const Mixes<T>& mixes, Call<T>& call) {
    if (!mixes) return;
    const auto& [start, column, weight] = *mixes;
    const int64_t n_tests = plan.n_tests();
    require(static_cast<int64_t>(start.shape(0)) == n_tests + 1 && start(0) == 0 &&
                start(n_tests) == static_cast<int64_t>(column.shape(0)) &&
                column.shape(0) == weight.shape(0),
            "starts must be (J + 1,), from 0 to the number of weights");
    for (int64_t j = 0; j < n_tests; ++j) require(start(j) <= start(j + 1), "starts must not fall");
    for (size_t e = 0; e < column.shape(0); ++e)
        require(column(e) >= 0 && column(e) < plan.n_columns, "a weight has no such column");
    require(!(call.skip > 0), "tests that weigh several columns are not cut");
    call.mix_start = start.data();
    call.mix_column = column.data();
    call.mix_weight = weight.data();
}

template <typename T>
void py_forward(const Plan& plan, const std::string& target, Strided<const T> z, In<T, 1> t,
                In<T, 1> nudge, In<T, 1> slope, In<T, 2> V, double skip, int64_t n_threads,
                Out<T, 2> out, Mixes<T> mixes) {
    auto call = call_of<T>(plan, target, z, t, nudge, slope, V, skip, n_threads);
    add_mixes(plan, mixes, call);
    require(has_shape(out, call.m, plan.n_outputs), "out has the wrong shape");
    common::interruptible([&] { forward<T>(plan, call, out.data()); });
}

template <typename T>
void py_backward(const Plan& plan, const std::string& target, Strided<const T> z, In<T, 1> t,
                 In<T, 1> nudge, In<T, 1> slope, In<T, 2> V, double skip, int64_t n_threads,
                 In<T, 2> G, Out<T, 1> dt, Out<T, 1> dslope, Out<T, 2> dV,
                 std::optional<Strided<T>> dz, Mixes<T> mixes, std::optional<Out<T, 1>> dmix) {
    auto call = call_of<T>(plan, target, z, t, nudge, slope, V, skip, n_threads);
    add_mixes(plan, mixes, call);
    require(mixes.has_value() == dmix.has_value() &&
                (!dmix || dmix->shape(0) == std::get<1>(*mixes).shape(0)),
            "gradients of weights must be as many as the weights");
    require(has_shape(G, call.m, plan.n_outputs), "the gradient has the wrong shape");
    require(dt.shape(0) == t.shape(0) && dslope.shape(0) == t.shape(0) &&
                has_shape(dV, plan.n_leaves(), plan.width()) &&
                (!dz || has_shape(*dz, call.m, plan.n_columns)),
            "an output has the wrong shape");
    common::interruptible([&] {
        backward<T>(plan, call, G.data(),
                    {dt.data(), dslope.data(), dV.data(), dmix ? dmix->data() : nullptr,
                     dz ? dz->data() : nullptr, dz ? dz->stride(0) : 0, dz ? dz->stride(1) : 0});
    });
}

template <typename T>
void py_exp(const std::string& target, In<T, 1> x, Out<T, 1> out) {
    require(out.shape(0) == x.shape(0), "out must be as long as x");
    kernels_of<T>(target)->exp(x.data(), static_cast<int64_t>(x.shape(0)), out.data());
}

template <typename T>
void py_gates(const std::string& target, In<T, 1> q, Out<T, 1> left, Out<T, 1> right) {
    require(left.shape(0) == q.shape(0) && right.shape(0) == q.shape(0),
            "left and right must be as long as q");
    kernels_of<T>(target)->gates(q.data(), static_cast<int64_t>(q.shape(0)), left.data(),
                                 right.data());
}

void make_plan(Plan* self, In<int32_t, 2> children, In<int64_t, 1> test_start,
               In<int32_t, 1> selection, In<int8_t, 1> missing, In<int32_t, 1> feeds,
               int64_t n_columns, int64_t n_outputs) {
    require(test_start.shape(0) >= 1, "test_start is empty");
    const size_t n_trees = test_start.shape(0) - 1, n_tests = children.shape(0);
    require(children.shape(1) == 2 && test_start(n_trees) == static_cast<int64_t>(n_tests),
            "children must be (J, 2), test_start must end at J");
    require(
        selection.shape(0) == n_tests && missing.shape(0) == n_tests && feeds.shape(0) == n_trees,
        "selection and missing must be (J,), feeds (T,)");
    require(n_columns >= 0 && n_columns < (int64_t{1} << 31) && n_outputs >= 0,
            "n_columns and n_outputs are sizes");
    new (self) Plan(children.data(), test_start.data(), static_cast<int64_t>(n_trees),
                    selection.data(), missing.data(), feeds.data(), n_columns, n_outputs);
}

template <typename T>
nb::tuple py_entmax15(In<T, 2> logits) {
    require(logits.shape(1) >= 1, "logits must have a column");
    auto found = [&] {
        nb::gil_scoped_release release;
        return entmax15<T>(logits.data(), static_cast<int64_t>(logits.shape(0)),
                           static_cast<int64_t>(logits.shape(1)));
    }();
    return nb::make_tuple(common::give(std::move(found.start)),
                          common::give(std::move(found.column)),
                          common::give(std::move(found.weight)));
}

template <typename T>
void py_entmax15_gradient(In<int64_t, 1> start, In<int32_t, 1> column, In<T, 1> weight, In<T, 1> dw,
                          Out<T, 2> dlogits) {
    const size_t n = column.shape(0);
    require(start.shape(0) == dlogits.shape(0) + 1 && weight.shape(0) == n && dw.shape(0) == n,
            "an array has the wrong shape");
    entmax15_gradient<T>(start.data(), column.data(), weight.data(), dw.data(),
                         static_cast<int64_t>(dlogits.shape(0)),
                         static_cast<int64_t>(dlogits.shape(1)), dlogits.data());
}

// One function for float32 and one for float64. Arrays are taken as they are: a converted copy of
// an output would be lost.
template <typename T>
void bind_of(nb::class_<Plan>& plan, nb::module_& m, const std::string& bits) {
    plan.def(("forward" + bits).c_str(), &py_forward<T>, "target"_a, "z"_a.noconvert(),
             "t"_a.noconvert(), "nudge"_a.noconvert(), "slope"_a.noconvert(), "V"_a.noconvert(),
             "skip"_a, "n_threads"_a, "out"_a.noconvert(), "mixes"_a.none() = nb::none(),
             "The sum over all trees into `out`.");
    plan.def(("backward" + bits).c_str(), &py_backward<T>, "target"_a, "z"_a.noconvert(),
             "t"_a.noconvert(), "nudge"_a.noconvert(), "slope"_a.noconvert(), "V"_a.noconvert(),
             "skip"_a, "n_threads"_a, "G"_a.noconvert(), "dt"_a.noconvert(), "dslope"_a.noconvert(),
             "dV"_a.noconvert(), "dz"_a.noconvert().none(), "mixes"_a.none() = nb::none(),
             "dmix"_a.noconvert().none() = nb::none(),
             "Gradients into dt, dslope, dV and dz, from that of out.");
    m.def(("entmax15_" + bits).c_str(), &py_entmax15<T>, "logits"_a.noconvert(),
          "1.5-entmax by row: starts, columns and weights of what is not 0.");
    m.def(("entmax15_gradient_" + bits).c_str(), &py_entmax15_gradient<T>, "start"_a, "column"_a,
          "weight"_a.noconvert(), "dw"_a.noconvert(), "dlogits"_a.noconvert(),
          "The logits' gradient from that of the weights.");
    m.def(("soft_exp" + bits).c_str(), &py_exp<T>, "target"_a, "x"_a.noconvert(),
          "out"_a.noconvert(), "The kernels' own exponential.");
    m.def(("soft_gates" + bits).c_str(), &py_gates<T>, "target"_a, "q"_a.noconvert(),
          "left"_a.noconvert(), "right"_a.noconvert(), "The kernels' own logistic gates.");
}

}  // namespace

void bind(nb::module_& m) {
    // A tensor kept until the end keeps its graph, and that the plan: no leak to report.
    nb::set_leak_warnings(false);
    nb::class_<Plan> plan(m, "SoftPlan", "Trees whose gates are soft; their structure alone.");
    plan.def("__init__", &make_plan, "children"_a, "test_start"_a, "selection"_a, "missing"_a,
             "feeds"_a, "n_columns"_a, "n_outputs"_a)
        .def_ro("n_outputs", &Plan::n_outputs)
        .def_ro("n_columns", &Plan::n_columns);
    bind_of<float>(plan, m, "32");
    bind_of<double>(plan, m, "64");
}

}  // namespace dm::soft
