// The structure of soft trees, which stays while their parameters are trained.
#pragma once

#include <cstdint>
#include <vector>

namespace dm::soft {

// Trees, one after another, whose columns are laid out together.
struct Group {
    int64_t first, last;        // trees
    std::vector<int32_t> used;  // columns of z that they read, ascending
};

// Trees whose structure is fixed while t, slope and V are trained.
struct Plan {
    int64_t n_columns;  // of z
    int64_t n_outputs;
    bool narrow;  // V has one value per leaf, for the output that its tree feeds
    std::vector<int64_t> test_start;  // (T + 1,)
    std::vector<int32_t> children;    // (J, 2) as slots of each tree
    std::vector<int32_t> column;      // (J,) place in `used` of the tree's group
    std::vector<Group> groups;
    std::vector<int8_t> missing;    // (J,)
    std::vector<int32_t> feeds;     // (T,)
    std::vector<int32_t> n_below;   // (J,) leaves below each test
    int64_t most_tests, most_used;  // of a tree, of a group

    int64_t n_trees() const { return static_cast<int64_t>(test_start.size()) - 1; }
    int64_t n_tests() const { return test_start.back(); }
    int64_t n_leaves() const { return n_tests() + n_trees(); }
    int64_t width() const { return narrow ? 1 : n_outputs; }

    // children: (J, 2), a test or ~leaf, numbered over all trees, parents first. Throws
    // std::invalid_argument where that is not so.
    Plan(const int32_t* children, const int64_t* test_start, int64_t n_trees,
         const int32_t* selection, const int8_t* missing, const int32_t* feeds, int64_t n_columns,
         int64_t n_outputs);

private:
    void make_groups(const int32_t* selection);
};

}  // namespace dm::soft
