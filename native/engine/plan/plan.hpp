// A machine compiled for prediction: coded thresholds, and for each tree the kernel that costs
// least.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/kernels/kernels.hpp"

namespace dm::engine {

// Measured: from here on a padded block is cheaper than walking, or than packs.
constexpr int64_t kFewRows = 24, kPackRows = 104;

// The machine's arrays as they stand in Python; see decision_machines.machine.
struct Machine {
    int64_t n_features, n_columns, n_tests, n_trees, n_outputs;
    bool single;           // columns are float32
    bool integers_single;  // integers pass through float32
    double missing_value;
    double absent;
    const int32_t* feature;  // (n_columns,)
    const uint8_t* rule;     // (n_columns,)
    const int64_t* set_start;
    const int64_t* members;
    const int8_t* answers;
    const int8_t* outside;
    bool negative_fractions, whole;
    const int32_t* selection;   // (n_tests,)
    const double* t;            // (n_tests,); outlives the plan
    const int8_t* missing;      // (n_tests,); outlives the plan
    const int32_t* children;    // (n_tests, 2); outlives the plan
    const int64_t* test_start;  // (n_trees + 1,); outlives the plan
    const int32_t* feeds;       // (n_trees,); outlives the plan
    // Oblique tests instead of `selection`, or null; all of them outlive the plan.
    const int64_t* weight_start;   // (n_tests + 1,)
    const int32_t* weight_column;  // by ascending column
    const void* weight;            // of the columns' type
    bool narrow;
    const void* V;    // (n_leaves, narrow ? 1 : n_outputs), in the sum's dtype; outlives the plan
    bool sum_single;  // sums are float32
    const double* base;
    bool base_first;
    double divisor, scale;
    Aggregate aggregate;
    // Linear leaves, or null.
    const int64_t* linear_start;
    const int32_t* linear_feature;
    const double* intercept;
    const double* coefficient;
    const double* linear_constant;
    bool linear_single;
    bool wants_values = true;  // few rows read V itself
};

enum class Kind : uint8_t { select, deep };

struct Tree {
    int64_t values;  // where its values start, n_labels for each output it has
    uint32_t n_labels;
    Kind kind;
    uint8_t label_bytes;
    bool gray;   // labels are Gray codes of the leaves' numbers, else the numbers themselves
    bool split;  // values stand as planes of bytes
};

// The top of a deep tree, evaluated by selects: its labels say at which node the walk starts.
struct Top {
    std::vector<Test> tests;
    std::vector<Select> selects;
    std::vector<uint16_t> bits;
    SelectTree trees[2] = {};
    int64_t n_slots = 0;
    std::vector<uint32_t> nodes;  // by label
};

// A run of trees evaluated together over each block.
struct Group {
    Kind kind;
    int64_t first, last;  // trees
    std::vector<Test> tests;
    std::vector<Select> selects;
    std::vector<uint16_t> bits;
    std::vector<SelectTree> trees;  // by tree, and one more that ends the last
    int64_t n_slots = 0;
    SelectGroup view(const std::vector<Plane>& planes) const {
        return {tests.data(), static_cast<int64_t>(tests.size()), planes.data(), selects.data(),
                bits.data()};
    }
};

// A run of trees that share one coding of the columns.
struct Section {
    std::vector<Column> columns;
    std::vector<float> keys32;
    std::vector<uint32_t> sorted;
    std::vector<int8_t> tables;
    std::vector<int64_t> table_of;
    int64_t first, last;    // trees
    int64_t row_bytes = 0;  // of all planes
    int64_t n_planes = 0;
    std::vector<Plane> planes;
    bool has_select = false, has_deep = false;
    std::vector<Group> groups;
};

// A test after coding: its plane, and right where the code is above `code`.
struct Coded {
    uint16_t plane, code;
};

// What one row needs; see kernels/pack.hpp.
struct RowPlan {
    bool is_made = false;
    std::vector<RowColumn> columns;
    std::vector<uint32_t> level_sizes;
    std::vector<float> keys;
    int64_t n_planes = 0;
    std::vector<Pack> packs;
    std::vector<uint8_t> roots;
    std::vector<PackTree> trees;
    int doublings = 0;
};

// What oblique tests need beyond the machine's arrays; see kernels/oblique.hpp.
struct ObliquePlan {
    bool is_made = false;
    std::vector<int32_t> columns;  // that some test weighs, ascending
    std::vector<int32_t> column;   // by term: its place among them; empty where all tests have all
};

struct Plan {
    // What is left of the machine.
    int64_t n_features = 0, n_columns = 0, n_trees = 0, n_outputs = 0, n_tests = 0;
    bool single = false, integers_single = false, narrow = true, sum_single = false;
    bool base_first = true, negative_fractions = false, whole = false;
    double missing_value = 0, absent = 0, divisor = 1, scale = 1;
    Aggregate aggregate = Aggregate::sum;
    std::vector<double> base;
    std::vector<int32_t> feature;
    std::vector<uint8_t> rule;
    std::vector<int64_t> set_start, set_of, members;
    std::vector<int8_t> answers, outside;
    // The trees.
    const Kernels* kernels = nullptr;
    // The machine's own: values, thresholds, where the tests of a tree start, what it feeds.
    const void* V = nullptr;
    const double* t = nullptr;
    const int64_t* test_start = nullptr;  // (n_trees + 1,)
    const int32_t* feeds = nullptr;       // (n_trees,)
    const int8_t* missing = nullptr;
    const int32_t* children = nullptr;
    const int64_t* weight_start = nullptr;
    const void* weight = nullptr;
    ObliquePlan oblique;
    std::vector<Tree> trees;
    std::vector<Section> sections;
    std::vector<WalkNode> nodes;
    std::vector<WideNode> wide_nodes;  // instead, where a tree has too many leaves
    std::vector<Top> tops;  // (n_trees,) where there are nodes; without tests where of no use
    std::vector<int64_t> node_start;  // (n_trees + 1,)
    std::vector<float> values32;
    std::vector<double> values64;
    std::vector<int32_t> used_features;  // ascending
    RowPlan row;                         // instead of nodes, for few rows
    bool raw_only = false;               // a column has too many thresholds to be coded
    // Nodes over z itself, where raw_only.
    std::vector<RawNode> raw;
    std::vector<int32_t> raw_columns;  // columns that some test reads, ascending
    // Linear leaves.
    std::vector<int64_t> linear_start;
    std::vector<int32_t> linear_feature;
    std::vector<double> intercept, coefficient, linear_constant;
    bool linear_single = false;
    // Leaves of a tree come after the leaves of those before it, one more to a tree than tests.
    int64_t first_leaf(int64_t tree) const { return test_start[tree] + tree; }
    bool has_nodes() const {
        return raw_only || row.is_made || oblique.is_made || !node_start.empty() || n_trees == 0;
    }
    int64_t n_bytes() const;
};

// z of one column from its feature's x.
double z_of(const Plan& plan, int64_t column, double x);

ObliquePlan make_oblique(const Machine& machine);

Plan compile(const Machine& machine, const Kernels* kernels, int force);

}  // namespace dm::engine
