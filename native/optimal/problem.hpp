// What is to be solved, and the trees that solve it.
//
// A value is the loss of a tree on rows plus `penalty` for each leaf. Bounds come from a relaxed
// problem, in which leaves may have any number of rows: there a subset of the rows never has a
// larger optimum than the rows themselves, which is false with `least` above 1.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

namespace dm::optimal {

constexpr int32_t kDeepest = 5;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

enum class Loss : int32_t {
    error,    // weight of the rows that are not of their leaf's largest class
    squared,  // weighted squared distance from the mean, summed over targets
    absolute  // weighted distance from the median, summed over targets
};

struct Problem {
    int64_t m;
    int32_t n;
    Loss loss;
    int32_t k;             // classes, or targets
    const int32_t* rank;   // (n, m) dense ranks of each feature
    const int32_t* label;  // (m,) or null
    const double* y;       // (k, m) or null
    const double* w;       // (m,)
    bool is_whole;         // whether all weights are whole numbers
    int64_t least;         // rows of a leaf
    double penalty;        // for each leaf
    double slack;          // values that differ by less are equal
};

// A test "rank <= below"; of the rows that reach it, none lies between `below` and `above`.
struct Test {
    int32_t feature = -1;  // a leaf
    int32_t below = 0;
    int32_t above = 0;
};

// Node i has children 2 i + 1 and 2 i + 2.
struct Tree {
    std::array<Test, (1 << kDeepest) - 1> tests;

    // Puts `other` at node `at`.
    void put(int32_t at, const Tree& other, int32_t from = 0) {
        const int32_t size = static_cast<int32_t>(tests.size());
        if (at >= size) return;
        tests[at] = from < size ? other.tests[from] : Test{};
        if (tests[at].feature < 0) return;
        put(2 * at + 1, other, 2 * from + 1);
        put(2 * at + 2, other, 2 * from + 2);
    }
};

struct Solved {
    double bound = 0.0;        // no tree of the relaxed problem has less
    double value = kInfinite;  // of the best tree, where it is below what was asked for
    Tree tree;
    // Where f >= 0 only the root of a tree of two levels is known: most of them are never needed.
    int32_t f = -1, cut = 0;
    int32_t second[2] = {-1, -1};  // features of the second tests
};

}  // namespace dm::optimal
