#include "engine/python_machine.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>

#include <utility>

#include "common/require.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dm::engine {
namespace {

using common::In;
using common::require;

template <typename A>
int64_t size(const A& array, int axis = 0) {
    return static_cast<int64_t>(array.shape(axis));
}

// The same of arrays that are float32 or float64.
template <typename... A>
int64_t size(const std::variant<A...>& array, int axis = 0) {
    return std::visit([&](const auto& a) { return static_cast<int64_t>(a.shape(axis)); }, array);
}

template <typename... A>
const void* data_of(const std::variant<A...>& array) {
    return std::visit([](const auto& a) -> const void* { return a.data(); }, array);
}

template <typename... A>
bool is_single(const std::variant<A...>& array) {
    return array.index() == 0;
}

// Starts of runs: from 0, never falling, to `end`.
void check_starts(const In<int64_t, 1>& start, int64_t end, const char* what) {
    const int64_t n = size(start) - 1;
    require(n >= 0 && start(0) == 0 && start(n) == end, what);
    for (int64_t i = 0; i < n; ++i) require(start(i) <= start(i + 1), what);
}

// All of an array from `least` to below `end`.
void check_range(const In<int32_t, 1>& array, int64_t least, int64_t end, const char* what) {
    for (int64_t i = 0; i < size(array); ++i) require(array(i) >= least && array(i) < end, what);
}

// A constructor that takes what `make` takes. Arrays are bound to it as they are: a wrong dtype is
// an error, not a copy.
template <typename Held, typename... Arguments>
auto placed(Held (*make)(Arguments...)) {
    return [make](Held* self, Arguments... arguments) {
        new (self) Held(make(std::move(arguments)...));
    };
}

HeldColumns columns_of(int64_t n_features, In<int32_t, 1> feature, In<uint8_t, 1> rule, bool single,
                       bool integers_single, double missing_value, double absent) {
    require(n_features >= 0 && n_features < (int64_t{1} << 31), "n_features is a size");
    require(size(rule) == size(feature), "feature and rule must be (n_columns,)");
    check_range(feature, 0, n_features, "a column of no feature");
    for (int64_t c = 0; c < size(rule); ++c)
        require(rule(c) <= static_cast<uint8_t>(Rule::member), "a column of no rule");
    const Machine::Columns view{n_features, size(feature),   feature.data(), rule.data(),
                                single,     integers_single, missing_value,  absent};
    return {std::move(feature), std::move(rule), view};
}

HeldSets sets_of(In<int64_t, 1> start, In<int64_t, 1> members, In<int8_t, 1> answers,
                 In<int8_t, 1> outside, bool negative_fractions, bool whole) {
    require(size(answers) == size(members), "members and answers must be as long");
    require(size(start) == size(outside) + 1, "outside must be (n_sets,), start (n_sets + 1,)");
    check_starts(start, size(members), "start does not cover the members");
    const Machine::Sets view{size(outside),  start.data(),       members.data(), answers.data(),
                             outside.data(), negative_fractions, whole};
    return {std::move(start), std::move(members), std::move(answers), std::move(outside), view};
}

HeldTrees trees_of(In<int32_t, 2> children, In<int64_t, 1> test_start, In<int32_t, 1> feeds) {
    require(size(children, 1) == 2, "children must be (n_tests, 2)");
    require(size(test_start) == size(feeds) + 1,
            "feeds must be (n_trees,), test_start (n_trees + 1,)");
    check_starts(test_start, size(children), "test_start does not cover the tests");
    require(size(children) + size(feeds) < (int64_t{1} << 31), "more than 2**31 leaves");
    const Machine::Trees view{size(feeds), size(children), children.data(), test_start.data(),
                              feeds.data()};
    return {std::move(children), std::move(test_start), std::move(feeds), view};
}

HeldWeights weights_of(In<int64_t, 1> start, In<int32_t, 1> column, InReal<1> weight) {
    require(size(weight) == size(column), "column and weight must be as long");
    check_starts(start, size(column), "start does not cover the weights");
    return {std::move(start), std::move(column), std::move(weight)};
}

HeldTests tests_of(In<double, 1> t, In<int8_t, 1> missing, std::optional<In<int32_t, 1>> selection,
                   std::optional<HeldWeights> weights) {
    require(size(missing) == size(t), "t and missing must be (n_tests,)");
    require(selection.has_value() != weights.has_value(),
            "tests have either a selection or weights");
    require(!selection || size(*selection) == size(t), "selection must be (n_tests,)");
    require(!weights || size(weights->start) == size(t) + 1, "start must be (n_tests + 1,)");
    return {std::move(t), std::move(missing), std::move(selection), std::move(weights)};
}

HeldOutput output_of(InReal<2> V, bool narrow, In<double, 1> base, bool base_first, double divisor,
                     double scale, Aggregate aggregate) {
    const int64_t n = size(base);
    require(size(V, 1) == (narrow ? 1 : n), "V must be (n_leaves, n_outputs), or narrow");
    const Machine::Output view{n,          narrow,  is_single(V), data_of(V), base.data(),
                               base_first, divisor, scale,        aggregate};
    return {std::move(V), std::move(base), view};
}

HeldLinear linear_of(In<int64_t, 1> start, In<int32_t, 1> feature, In<double, 2> intercept,
                     In<double, 2> coefficient, In<double, 2> constant, bool single) {
    check_starts(start, size(feature), "start does not cover the terms");
    require(size(coefficient) == size(feature), "coefficient must be (n_terms, width)");
    return {std::move(start),       std::move(feature),  std::move(intercept),
            std::move(coefficient), std::move(constant), single};
}

}  // namespace

HeldMachine::HeldMachine(HeldColumns columns, std::optional<HeldSets> sets, HeldTrees trees,
                         HeldTests tests, HeldOutput output, std::optional<HeldLinear> linear)
    : columns_(std::move(columns)),
      sets_(std::move(sets)),
      trees_(std::move(trees)),
      tests_(std::move(tests)),
      output_(std::move(output)),
      linear_(std::move(linear)) {
    view_.columns = columns_.view;
    view_.trees = trees_.view;
    if (sets_) view_.sets = sets_->view;
    int64_t n_members = 0;
    for (int64_t c = 0; c < view_.columns.n; ++c)
        n_members += view_.columns.rule_of(c) == Rule::member;
    require(n_members == view_.sets.n, "one set of categories for each column that has them");
    check_tests();
    check_output();
    if (linear_) check_linear();
}

void HeldMachine::check_tests() {
    require(size(tests_.t) == view_.trees.n_tests, "t must be (n_tests,)");
    view_.tests.t = tests_.t.data();
    view_.tests.missing = tests_.missing.data();
    if (tests_.selection) {
        check_range(*tests_.selection, 0, view_.columns.n, "a test of no column");
        view_.tests.selection = tests_.selection->data();
        return;
    }
    const HeldWeights& weights = *tests_.weights;
    check_range(weights.column, 0, view_.columns.n, "a weight of no column");
    require(is_single(weights.weight) == view_.columns.single,
            "weights must have the columns' dtype");
    view_.tests.weight_start = weights.start.data();
    view_.tests.weight_column = weights.column.data();
    view_.tests.weight = data_of(weights.weight);
}

void HeldMachine::check_output() {
    view_.output = output_.view;
    require(size(output_.V) == view_.trees.n_leaves(), "V must be (n_leaves, ...)");
    const bool narrow = view_.output.narrow;
    check_range(trees_.feeds, narrow ? 0 : -1, narrow ? view_.output.n : 0,
                "a tree that feeds no output");
}

void HeldMachine::check_linear() {
    const int64_t n_leaves = view_.trees.n_leaves(), width = view_.output.width();
    auto has_shape = [&](const In<double, 2>& array, int64_t rows) {
        return size(array, 0) == rows && size(array, 1) == width;
    };
    require(size(linear_->start) == n_leaves + 1, "linear: start must be (n_leaves + 1,)");
    require(has_shape(linear_->intercept, n_leaves) && has_shape(linear_->constant, n_leaves) &&
                has_shape(linear_->coefficient, size(linear_->feature)),
            "linear: intercept and constant must be (n_leaves, width), coefficient (n_terms, "
            "width)");
    check_range(linear_->feature, 0, view_.columns.n_features, "linear: a term of no feature");
    view_.linear = {linear_->start.data(),     linear_->feature.data(),
                    linear_->intercept.data(), linear_->coefficient.data(),
                    linear_->constant.data(),  linear_->single};
}

void bind_machine(nb::module_& m) {
    nb::class_<HeldMachine> machine(
        m, "Machine", "A machine's arrays as the engine reads them: checked and held, not copied.");
    nb::enum_<Aggregate>(machine, "Aggregate", "What becomes of the values of all trees.")
        .value("sum", Aggregate::sum)
        .value("min", Aggregate::min)
        .value("max", Aggregate::max);
    nb::class_<HeldColumns>(machine, "Columns", "How raw features become the columns z.")
        .def("__init__", placed(columns_of), nb::kw_only(), "n_features"_a, "feature"_a.noconvert(),
             "rule"_a.noconvert(), "single"_a, "integers_single"_a, "missing_value"_a, "absent"_a);
    nb::class_<HeldSets>(machine, "Sets", "Sets of categories, one for each column of members.")
        .def("__init__", placed(sets_of), nb::kw_only(), "start"_a.noconvert(),
             "members"_a.noconvert(), "answers"_a.noconvert(), "outside"_a.noconvert(),
             "negative_fractions"_a, "whole"_a);
    nb::class_<HeldTrees>(machine, "Trees", "The structure of the trees.")
        .def("__init__", placed(trees_of), nb::kw_only(), "children"_a.noconvert(),
             "test_start"_a.noconvert(), "feeds"_a.noconvert());
    nb::class_<HeldWeights>(machine, "Weights", "The terms of oblique tests, by column.")
        .def("__init__", placed(weights_of), nb::kw_only(), "start"_a.noconvert(),
             "column"_a.noconvert(), "weight"_a.noconvert());
    nb::class_<HeldTests>(machine, "Tests", "Thresholds, and what is compared with them.")
        .def("__init__", placed(tests_of), nb::kw_only(), "t"_a.noconvert(),
             "missing"_a.noconvert(), "selection"_a.noconvert() = nb::none(),
             "weights"_a = nb::none());
    nb::class_<HeldOutput>(machine, "Output", "Leaf values, and how they become margins.")
        .def("__init__", placed(output_of), nb::kw_only(), "V"_a.noconvert(), "narrow"_a,
             "base"_a.noconvert(), "base_first"_a, "divisor"_a, "scale"_a, "aggregate"_a);
    nb::class_<HeldLinear>(machine, "Linear", "Leaves that are linear functions of x.")
        .def("__init__", placed(linear_of), nb::kw_only(), "start"_a.noconvert(),
             "feature"_a.noconvert(), "intercept"_a.noconvert(), "coefficient"_a.noconvert(),
             "constant"_a.noconvert(), "single"_a);
    machine.def(nb::init<HeldColumns, std::optional<HeldSets>, HeldTrees, HeldTests, HeldOutput,
                         std::optional<HeldLinear>>(),
                nb::kw_only(), "columns"_a, "sets"_a = nb::none(), "trees"_a, "tests"_a, "output"_a,
                "linear"_a = nb::none());
}

}  // namespace dm::engine
