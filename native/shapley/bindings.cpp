// Python's door to Shapley values: check shapes, release the GIL, call.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <optional>
#include <string>

#include "common/arrays.hpp"
#include "common/interruptible.hpp"
#include "common/require.hpp"
#include "shapley/background.hpp"
#include "shapley/values.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dm::shapley {
namespace {

using common::In;
using common::Out;
using common::require;

// The arrays of a machine's trees, as Python holds them, and what they hold as a forest.
struct HeldForest {
    In<int32_t, 2> children;
    In<int64_t, 1> test_start;
    In<int32_t, 1> column, slot;
    In<double, 1> t;
    In<int8_t, 1> missing;
    In<double, 1> share;
    In<double, 2> values;
    In<int32_t, 1> feeds;
    Forest view;
};

void make_forest(HeldForest* self, In<int32_t, 2> children, In<int64_t, 1> test_start,
                 In<int32_t, 1> column, In<int32_t, 1> slot, In<double, 1> t, In<int8_t, 1> missing,
                 In<double, 1> share, In<double, 2> values, In<int32_t, 1> feeds, int64_t n_columns,
                 int64_t n_slots, int64_t n_outputs) {
    require(test_start.shape(0) >= 1, "test_start is empty");
    const int64_t n_trees = static_cast<int64_t>(test_start.shape(0)) - 1;
    const int64_t n_tests = static_cast<int64_t>(children.shape(0));
    auto has_tests = [&](const auto& array) {
        return static_cast<int64_t>(array.shape(0)) == n_tests;
    };
    require(children.shape(1) == 2 && test_start(n_trees) == n_tests,
            "children must be (J, 2), test_start must end at J");
    require(has_tests(column) && has_tests(slot) && has_tests(t) && has_tests(missing) &&
                has_tests(share) && static_cast<int64_t>(feeds.shape(0)) == n_trees,
            "column, slot, t, missing and share must be (J,), feeds (T,)");
    const int64_t width = static_cast<int64_t>(values.shape(1));
    require(static_cast<int64_t>(values.shape(0)) == n_tests + n_trees &&
                (width == 1 || width == n_outputs),
            "values must be (L, 1) or (L, k)");
    for (int64_t j = 0; j < n_tests; ++j)
        require(column(j) >= 0 && column(j) < n_columns && slot(j) >= 0 && slot(j) < n_slots &&
                    share(j) >= 0 && share(j) <= 1,
                "a column, a slot or a share is out of range");
    for (int64_t tree = 0; tree < n_trees; ++tree) {
        require(feeds(tree) >= (width == 1 && n_outputs > 1 ? 0 : -1) && feeds(tree) < n_outputs,
                "feeds is out of range");
        const int64_t first = test_start(tree), last = test_start(tree + 1);
        require(first >= 0 && first <= last && last <= n_tests, "test_start decreases");
        for (int64_t j = first; j < last; ++j)
            for (int64_t side = 0; side < 2; ++side) {
                const int64_t child = children(j, side);
                require(child >= 0 ? child > j && child < last
                                   : ~child >= first + tree && ~child <= last + tree,
                        "children lie outside their tree");
            }
    }
    const Forest view{n_trees,      children.data(), test_start.data(), column.data(), slot.data(),
                      t.data(),     missing.data(),  share.data(),      values.data(), width,
                      feeds.data(), n_columns,       n_slots,           n_outputs};
    new (self)
        HeldForest{children, test_start, column, slot, t, missing, share, values, feeds, view};
}

template <typename T>
void make_plan(Plan<T>* self, const HeldForest& forest, bool pairs, std::optional<double> point) {
    require(!point || (*point >= 0 && *point < 1 && !pairs), "a point lies from 0 to 1");
    nb::gil_scoped_release release;
    new (self) Plan<T>(forest.view, pairs, point.value_or(std::nan("")));
}

template <typename T>
const TypedKernels<T>& typed(const Kernels& kernels) {
    if constexpr (sizeof(T) == 8)
        return kernels.doubles;
    else
        return kernels.floats;
}

template <typename T>
using Pairs = std::optional<Out<T, 4>>;

const Kernels& kernels_of(const std::string& target) {
    const Kernels* kernels = find_kernels(target);
    require(kernels != nullptr, "this processor has no such target");
    return *kernels;
}

// Where values go, checked.
template <typename T>
Values<T> values_of(const In<T, 2>& z, int64_t n_columns, int64_t n_slots, int64_t n_outputs,
                    const In<int32_t, 1>& features, double factor, int64_t n_threads,
                    const Out<T, 3>& out, const Pairs<T>& pairs) {
    const int64_t n_rows = static_cast<int64_t>(z.shape(0));
    require(static_cast<int64_t>(z.shape(1)) == n_columns, "z has the wrong width");
    require(static_cast<int64_t>(features.shape(0)) == n_slots && n_threads > 0,
            "features must be (slots,), n_threads above 0");
    const int64_t n_features = static_cast<int64_t>(out.shape(1));
    for (int64_t j = 0; j < n_slots; ++j)
        require(features(j) >= 0 && features(j) < n_features, "a feature is out of range");
    require(static_cast<int64_t>(out.shape(0)) == n_rows &&
                static_cast<int64_t>(out.shape(2)) == n_outputs,
            "out has the wrong shape");
    if (pairs)
        require(static_cast<int64_t>(pairs->shape(0)) == n_rows &&
                    static_cast<int64_t>(pairs->shape(1)) == n_features &&
                    static_cast<int64_t>(pairs->shape(2)) == n_features &&
                    static_cast<int64_t>(pairs->shape(3)) == n_outputs,
                "pairs has the wrong shape");
    return {features.data(), n_features, factor, out.data(), pairs ? pairs->data() : nullptr};
}

template <typename T>
void py_values(const Plan<T>& plan, const std::string& target, In<T, 2> z, In<int32_t, 1> features,
               double factor, int64_t n_threads, Out<T, 3> out, Pairs<T> pairs) {
    const Kernels& kernels = kernels_of(target);
    require(pairs.has_value() == plan.pairs, "pairs are made by a plan that has them");
    const auto values = values_of(z, plan.n_columns, plan.n_slots, plan.n_outputs, features, factor,
                                  n_threads, out, pairs);
    common::interruptible([&] {
        add_values(plan, typed<T>(kernels), z.data(), static_cast<int64_t>(z.shape(0)), n_threads,
                   values);
    });
}

// Symmetric trees: tree i asks tests start[i]..start[i + 1], each a bit that is set on the right.
template <typename T>
void make_tables(Tables<T>* self, In<int64_t, 1> start, In<int32_t, 1> column, In<double, 1> t,
                 In<int8_t, 1> missing, In<int64_t, 1> place_start, In<int32_t, 1> places,
                 In<T, 1> table, int64_t n_columns, int64_t n_slots, int64_t n_outputs) {
    require(start.shape(0) >= 1 && place_start.shape(0) == start.shape(0),
            "a start for each tree, and the end");
    const int64_t n_trees = static_cast<int64_t>(start.shape(0)) - 1;
    const int64_t n_tests = static_cast<int64_t>(t.shape(0));
    require(static_cast<int64_t>(column.shape(0)) == n_tests &&
                static_cast<int64_t>(missing.shape(0)) == n_tests,
            "column, t and missing must be (J,)");
    Tables<T> found;
    found.n_columns = n_columns;
    found.n_slots = n_slots;
    found.n_outputs = n_outputs;
    found.places.assign(places.data(), places.data() + places.shape(0));
    found.table.assign(table.data(), table.data() + table.shape(0));
    for (int32_t place : found.places)
        require(place >= 0 && place < n_slots * n_outputs, "a place is out of range");
    size_t at = 0;
    for (int64_t tree = 0; tree < n_trees; ++tree) {
        const int64_t n = start(tree + 1) - start(tree);
        const int64_t n_values = place_start(tree + 1) - place_start(tree);
        require(n >= 0 && n <= 20 && start(tree) >= 0 && start(tree + 1) <= n_tests &&
                    n_values >= 0 && place_start(tree) >= 0 &&
                    place_start(tree + 1) <= static_cast<int64_t>(places.shape(0)),
                "a tree is out of range");
        for (int64_t j = start(tree); j < start(tree + 1); ++j) {
            require(column(j) >= 0 && column(j) < n_columns, "a column is out of range");
            found.tests.push_back(
                {static_cast<T>(t(j)), found.reads.of(column(j), missing(j) < 0)});
            found.terms.push_back({static_cast<int32_t>(j - start(tree)), -1});
            found.term_start.push_back(static_cast<int32_t>(found.terms.size()));
        }
        found.cells.push_back({0, static_cast<int32_t>(n), static_cast<int32_t>(n_values),
                               static_cast<size_t>(place_start(tree)), at});
        at += static_cast<size_t>(n_values) << n;
        found.end_tree();
    }
    require(at == table.shape(0), "the table has the wrong size");
    found.is_symmetric = true;
    found.table.resize(at + Tables<T>::kSlack);
    new (self) Tables<T>(std::move(found));
}

template <typename T>
void py_table_values(const Tables<T>& tables, const std::string& target, In<T, 2> z,
                     In<int32_t, 1> features, double factor, int64_t n_threads, Out<T, 3> out) {
    const Kernels& kernels = kernels_of(target);
    const auto values = values_of<T>(z, tables.n_columns, tables.n_slots, tables.n_outputs,
                                     features, factor, n_threads, out, std::nullopt);
    common::interruptible([&] {
        add_tables(tables, typed<T>(kernels), z.data(), static_cast<int64_t>(z.shape(0)), n_threads,
                   values);
    });
}

void make_background(Background* self, const HeldForest& forest, In<double, 2> z) {
    require(static_cast<int64_t>(z.shape(1)) == forest.view.n_columns, "z has the wrong width");
    require(z.shape(0) > 0, "a background has rows");
    nb::gil_scoped_release release;
    new (self) Background(forest.view, z.data(), static_cast<int64_t>(z.shape(0)));
}

void py_background_values(const Background& background, const std::string& target, In<double, 2> z,
                          In<int32_t, 1> features, double factor, int64_t n_threads,
                          Out<double, 3> out, Pairs<double> pairs) {
    const Kernels& kernels = kernels_of(target);
    const auto values = values_of(z, background.n_columns(), background.n_slots(),
                                  background.n_outputs(), features, factor, n_threads, out, pairs);
    const int64_t n_rows = static_cast<int64_t>(z.shape(0));
    common::interruptible([&] {
        if (pairs)
            background.add_pairs(z.data(), n_rows, n_threads, values);
        else
            background.add_values(kernels, z.data(), n_rows, n_threads, values);
    });
}

template <typename T>
void bind_of(nb::module_& m, const std::string& bits) {
    // Arrays are taken as they are: a converted copy of an output would be lost.
    nb::class_<Plan<T>>(m, ("ShapleyPlan" + bits).c_str(),
                        "Trees prepared for Shapley values by paths.")
        .def("__init__", &make_plan<T>, "forest"_a, "pairs"_a, "point"_a = nb::none())
        .def_prop_ro("n_bytes", &Plan<T>::n_bytes)
        .def("values", &py_values<T>, "target"_a, "z"_a.noconvert(), "features"_a, "factor"_a,
             "n_threads"_a, "out"_a.noconvert(), "pairs"_a.noconvert().none(),
             "Values of rows are added to `out`, interactions to `pairs`.");
    nb::class_<Tables<T>>(m, ("ShapleyTables" + bits).c_str(),
                          "Symmetric trees whose Shapley values are looked up.")
        .def("__init__", &make_tables<T>, "start"_a, "column"_a, "t"_a, "missing"_a,
             "place_start"_a, "places"_a, "table"_a.noconvert(), "n_columns"_a, "n_slots"_a,
             "n_outputs"_a)
        .def("values", &py_table_values<T>, "target"_a, "z"_a.noconvert(), "features"_a, "factor"_a,
             "n_threads"_a, "out"_a.noconvert(), "Values of rows are added to `out`.");
}

}  // namespace

void bind(nb::module_& m) {
    nb::class_<HeldForest>(m, "ShapleyForest", "A machine's trees, checked and held.")
        .def("__init__", &make_forest, "children"_a, "test_start"_a, "column"_a, "slot"_a, "t"_a,
             "missing"_a, "share"_a, "values"_a, "feeds"_a, "n_columns"_a, "n_slots"_a,
             "n_outputs"_a);
    bind_of<double>(m, "64");
    bind_of<float>(m, "32");
    nb::class_<Background>(m, "ShapleyBackground",
                           "Trees prepared for Shapley values against a background of rows.")
        .def("__init__", &make_background, "forest"_a, "z"_a, nb::keep_alive<1, 2>())
        .def_prop_ro("n_bytes", &Background::n_bytes)
        .def_prop_ro("n_deep", &Background::n_deep)
        .def("values", &py_background_values, "target"_a, "z"_a.noconvert(), "features"_a,
             "factor"_a, "n_threads"_a, "out"_a.noconvert(), "pairs"_a.noconvert().none(),
             "Values of rows are added to `out`, and interactions, off the diagonal, to `pairs`.");
}

}  // namespace dm::shapley
