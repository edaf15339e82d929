// Python's door to routed layers: check shapes, release the GIL, call.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>

#include "common/arrays.hpp"
#include "common/require.hpp"
#include "routed/plan.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dm::routed {
namespace {

using common::In;
using common::require;
using Arrays = std::tuple<In<float, 3>, In<float, 2>, In<float, 3>, In<float, 2>>;

Given given_of(const Arrays& arrays) {
    const auto& [first, first_bias, second, second_bias] = arrays;
    const size_t count = first.shape(0), h = first.shape(2), k = second.shape(2);
    require(count >= 1 && h >= 1 && k >= 1 && first.shape(1) >= 1, "a size is below 1");
    require(first_bias.shape(0) == count && first_bias.shape(1) == h,
            "first_bias must be (E, h) where first is (E, n, h)");
    require(second.shape(0) == count && second.shape(1) == h, "second must be (E, h, k)");
    require(second_bias.shape(0) == count && second_bias.shape(1) == k,
            "second_bias must be (E, k)");
    return {static_cast<int64_t>(count),
            static_cast<int64_t>(first.shape(1)),
            static_cast<int64_t>(h),
            static_cast<int64_t>(k),
            first.data(),
            first_bias.data(),
            second.data(),
            second_bias.data()};
}

void make_plan(Plan* self, const std::string& target, In<float, 2> tests, In<float, 1> thresholds,
               const Arrays& experts, const std::optional<Arrays>& dense, double certainty,
               bool is_classes) {
    const Given given = given_of(experts);
    require((given.count & (given.count - 1)) == 0, "experts must be a power of two");
    require(static_cast<int64_t>(tests.shape(0)) == given.count - 1 &&
                static_cast<int64_t>(thresholds.shape(0)) == given.count - 1 &&
                static_cast<int64_t>(tests.shape(1)) == given.n,
            "tests must be (E - 1, n), thresholds (E - 1,)");
    Given other{};
    if (dense) {
        other = given_of(*dense);
        require(other.count == 1 && other.n == given.n && other.k == given.k,
                "the dense network must be one, as wide as the experts");
    }
    new (self) Plan(target, tests.data(), thresholds.data(), given, dense ? &other : nullptr,
                    static_cast<float>(certainty), is_classes);
}

template <typename T, int N>
nb::ndarray<nb::numpy, T, nb::ndim<N>> made(std::unique_ptr<T[]> values,
                                            std::initializer_list<size_t> shape) {
    T* data = values.release();
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<N>>(data, shape, owner);
}

void check(const Plan& plan, const In<float, 2>& x) {
    require(static_cast<int64_t>(x.shape(1)) == plan.n(), "rows have the wrong width");
}

auto py_run(const Plan& plan, In<float, 2> x) {
    check(plan, x);
    const size_t m = x.shape(0), k = static_cast<size_t>(plan.k());
    std::unique_ptr<float[]> out(new float[m * k]);
    {
        nb::gil_scoped_release release;
        plan.run(x.data(), static_cast<int64_t>(m), out.get(), nullptr, nullptr);
    }
    return made<float, 2>(std::move(out), {m, k});
}

auto py_route(const Plan& plan, In<float, 2> x) {
    check(plan, x);
    const size_t m = x.shape(0);
    std::unique_ptr<float[]> out(new float[m * static_cast<size_t>(plan.k())]);
    std::unique_ptr<int32_t[]> expert(new int32_t[m]);
    std::unique_ptr<uint8_t[]> deferred(new uint8_t[m]);
    {
        nb::gil_scoped_release release;
        plan.run(x.data(), static_cast<int64_t>(m), out.get(), expert.get(), deferred.get());
    }
    return nb::make_tuple(made<int32_t, 1>(std::move(expert), {m}),
                          made<uint8_t, 1>(std::move(deferred), {m}));
}

}  // namespace

void bind(nb::module_& m) {
    nb::class_<Plan>(m, "RoutedPlan", "A tree of experts, laid out for inference.")
        .def("__init__", &make_plan, "target"_a, "tests"_a, "thresholds"_a, "experts"_a,
             "dense"_a.none(), "certainty"_a, "is_classes"_a)
        .def("run", &py_run, "x"_a.noconvert(), "Answers of (m, n) rows.")
        .def("route", &py_route, "x"_a.noconvert(),
             "The expert of each row, and whether it was deferred.");
}

}  // namespace dm::routed
