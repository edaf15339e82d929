// Trees prepared for the kernels of Shapley values by paths.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "shapley/kernels.hpp"
#include "shapley/reads.hpp"
#include "shapley/rule.hpp"

namespace dm::shapley {

// A machine's trees as Python hands them over; read while a plan is made.
struct Forest {
    int64_t n_trees;
    const int32_t* children;    // (tests, 2) a test, or ~leaf
    const int64_t* test_start;  // (n_trees + 1,)
    const int32_t* column;      // (tests,)
    const int32_t* slot;        // (tests,) the feature among those that are tested
    const double* t;            // (tests,)
    const int8_t* missing;      // (tests,) -1 or +1
    const double* share;        // (tests,) of the cover that goes left
    const double* values;       // (leaves, width)
    int64_t width;
    const int32_t* feeds;  // (n_trees,) an output, or -1 for all of them
    int64_t n_columns, n_slots, n_outputs;
};

template <typename T>
class Plan {
public:
    // `point`: values by this one point instead of by a rule that integrates (1/2: Banzhaf values,
    // 0: what a feature adds to none); NaN for Shapley values.
    Plan(const Forest& forest, bool pairs, double point);

    int64_t n_columns, n_slots, n_outputs;
    bool pairs;
    int64_t n_trees() const { return static_cast<int64_t>(trees_.size()); }
    Tree<T> tree(int64_t i) const;
    int64_t scratch() const { return scratch_; }
    const std::vector<Read>& reads() const { return reads_.list(); }
    int64_t n_bytes() const;

private:
    struct Points {
        std::vector<T> y, weight, loss;
    };
    struct Part {
        int64_t n_points, depth, output;
        size_t steps, tests, tables, values, above_start, above, gains;  // where its parts start
        int64_t n_steps;
    };

    void add_tree(const Forest& forest, int64_t tree);
    const Points& points(const Rule& rule);

    Reads reads_;
    std::map<int64_t, Points> points_;
    std::vector<Part> trees_;
    std::vector<Step> steps_;
    std::vector<Test<T>> tests_;
    std::vector<T> tables_, values_, gains_;
    std::vector<int32_t> above_start_;
    std::vector<Above> above_;
    Rule rule_of(int64_t n_features) const;

    int64_t width_, scratch_ = 0;
    double point_;
};

}  // namespace dm::shapley
