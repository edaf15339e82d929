// A machine's arrays that Python hands over, checked once, and held while plans read them.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <variant>

#include "common/arrays.hpp"
#include "engine/plan/machine.hpp"

namespace dm::engine {

// Each holds its arrays, and knows its part of the machine. The checks of a part by itself are in
// its constructor, those between parts in HeldMachine's.

template <int N>
using InReal = std::variant<common::In<float, N>, common::In<double, N>>;

struct HeldColumns {
    common::In<int32_t, 1> feature;
    common::In<uint8_t, 1> rule;
    Machine::Columns view;
};

struct HeldSets {
    common::In<int64_t, 1> start, members;
    common::In<int8_t, 1> answers, outside;
    Machine::Sets view;
};

struct HeldTrees {
    common::In<int32_t, 2> children;
    common::In<int64_t, 1> test_start;
    common::In<int32_t, 1> feeds;
    Machine::Trees view;
};

struct HeldWeights {
    common::In<int64_t, 1> start;
    common::In<int32_t, 1> column;
    InReal<1> weight;
};

struct HeldTests {
    common::In<double, 1> t;
    common::In<int8_t, 1> missing;
    std::optional<common::In<int32_t, 1>> selection;
    std::optional<HeldWeights> weights;
};

struct HeldOutput {
    InReal<2> V;
    common::In<double, 1> base;
    Machine::Output view;
};

struct HeldLinear {
    common::In<int64_t, 1> start;
    common::In<int32_t, 1> feature;
    common::In<double, 2> intercept, coefficient, constant;
    bool single;
};

// Throws std::invalid_argument where the parts do not fit together.
class HeldMachine {
public:
    HeldMachine(HeldColumns columns, std::optional<HeldSets> sets, HeldTrees trees, HeldTests tests,
                HeldOutput output, std::optional<HeldLinear> linear);
    const Machine& view() const { return view_; }

private:
    void check_tests();
    void check_output();
    void check_linear();

    HeldColumns columns_;
    std::optional<HeldSets> sets_;
    HeldTrees trees_;
    HeldTests tests_;
    HeldOutput output_;
    std::optional<HeldLinear> linear_;
    Machine view_;
};

void bind_machine(nanobind::module_& m);

}  // namespace dm::engine
