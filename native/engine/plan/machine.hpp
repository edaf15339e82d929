// The machine as the engine reads it: the arrays of decision_machines.machine, where they lie.
#pragma once

#include <cstdint>
#include <limits>

#include "engine/kernels/kernels.hpp"

namespace dm::engine {

// Owns nothing: the arrays outlive every plan that is made of them.
struct Machine {
    // How raw features become the columns z that tests read.
    struct Columns {
        int64_t n_features = 0, n = 0;
        const int32_t* feature = nullptr;  // (n,)
        const uint8_t* rule = nullptr;     // (n,) as in Rule
        bool single = false;               // z is float32, else float64
        bool integers_single = false;      // integers pass through float32
        double missing_value = std::numeric_limits<double>::quiet_NaN();
        double absent = 0;  // what sparse rows leave out

        Rule rule_of(int64_t column) const { return static_cast<Rule>(rule[column]); }
    };
    // Sets of categories, one for each column whose rule is `member`, in the order of the columns.
    struct Sets {
        int64_t n = 0;
        const int64_t* start = nullptr;    // (n + 1,)
        const int64_t* members = nullptr;  // ascending within a set
        const int8_t* answers = nullptr;   // -1, 0 or +1 by member
        const int8_t* outside = nullptr;   // (n,) the same for all other categories
        bool negative_fractions = false;   // above -1 they are category 0
        bool whole = false;                // only whole numbers are categories
    };
    // Leaves of a tree come after the leaves of those before it, one more to a tree than tests.
    struct Trees {
        int64_t n = 0, n_tests = 0;
        const int32_t* children = nullptr;    // (n_tests, 2) a test, or ~leaf
        const int64_t* test_start = nullptr;  // (n + 1,)
        const int32_t* feeds = nullptr;       // (n,) an output, or -1 for all of them

        int64_t n_leaves() const { return n_tests + n; }
        int64_t first_leaf(int64_t tree) const { return test_start[tree] + tree; }
        int64_t tests_of(int64_t tree) const { return test_start[tree + 1] - test_start[tree]; }
    };
    // Right where z[selection], or the sum of weight * z, is above t.
    struct Tests {
        const double* t = nullptr;               // (n_tests,)
        const int8_t* missing = nullptr;         // (n_tests,) -1 or +1
        const int32_t* selection = nullptr;      // (n_tests,), or null where tests have weights
        const int64_t* weight_start = nullptr;   // (n_tests + 1,), or null where they have not
        const int32_t* weight_column = nullptr;  // by ascending column within a test
        const void* weight = nullptr;            // of the columns' type

        bool is_oblique() const { return weight_start != nullptr; }
    };
    // Leaf values, and how they become margins.
    struct Output {
        int64_t n = 1;
        bool narrow = true;            // a leaf has one value, for the output that its tree feeds
        bool single = false;           // sums are float32, else float64
        const void* V = nullptr;       // (n_leaves, width), of the sums' type
        const double* base = nullptr;  // (n,)
        bool base_first = true;
        double divisor = 1, scale = 1;
        Aggregate aggregate = Aggregate::sum;

        int64_t width() const { return narrow ? 1 : n; }
    };
    // Leaves that are linear functions of x.
    struct Linear {
        const int64_t* start = nullptr;       // (n_leaves + 1,), or null: leaves are constants
        const int32_t* feature = nullptr;     // by term
        const double* intercept = nullptr;    // (n_leaves, width)
        const double* coefficient = nullptr;  // (terms, width)
        const double* constant = nullptr;     // (n_leaves, width) where an x is NaN
        bool single = false;                  // computed in float32

        explicit operator bool() const { return start != nullptr; }
    };

    Columns columns;
    Sets sets;
    Trees trees;
    Tests tests;
    Output output;
    Linear linear;
};

}  // namespace dm::engine
