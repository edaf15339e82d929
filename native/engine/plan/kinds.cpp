#include "engine/plan/kinds.hpp"

#include <algorithm>

#include "engine/plan/selects.hpp"

namespace dm::engine {
namespace {

// What a test, a select and a step of a walk cost, measured on trees of 64 to 4 096 leaves
// (AVX-512, nanoseconds for 1 024 rows); only the ratios matter. A test is cheaper than it is
// alone, because trees share tests. On that machine selects won up to 1 024 leaves, walks from
// 2 048.
constexpr double kCostTest = 7.0, kCostSelect = 2.0, kCostStep = 1100.0;
constexpr int64_t kMostSelectLeaves = 4096;
// Measured: a row walks trees of fewer tests as fast as it goes through their records.
constexpr int64_t kTestsForRecords = 128;

bool is_coded(const Candidate& c) { return !c.machine.tests.is_oblique() && c.n_codings > 0; }

bool has_records(const Candidate& c) { return is_coded(c) && c.kernels.records != nullptr; }

bool has_twigs(const Candidate& c) { return is_coded(c) && c.kernels.twigs != nullptr; }

bool is_packed(const Candidate& c) {
    if (!is_coded(c) || c.kernels.packs == nullptr || c.n_codings != 1) return false;
    for (int64_t tree = 0; tree < c.machine.trees.n; ++tree)
        if (c.machine.trees.tests_of(tree) > kPackTests) return false;
    return true;
}

bool is_axis_aligned(const Candidate& c) { return !c.machine.tests.is_oblique(); }

bool is_oblique(const Candidate& c) { return c.machine.tests.is_oblique(); }

}  // namespace

const std::array<KindEntry, 8> kKinds = {{
    {Kind::by_tree, "auto", "For each tree the cheapest one of select, record, twig and deep.",
     is_coded, Kind::raw},
    {Kind::select, "select", "All tests of a tree as bitmaps, then selects between them.", is_coded,
     Kind::raw},
    {Kind::record, "record", "Records of 32 tests, the top of large trees by selects.", has_records,
     Kind::deep},
    {Kind::twig, "twig", "The top by selects, then walks over nodes of 4 bytes.", has_twigs,
     Kind::record},
    {Kind::deep, "deep", "A walk over coded columns, the top of large trees by selects.", is_coded,
     Kind::raw},
    {Kind::pack, "pack", "One row at a time, 64 tests to a register of bytes.", is_packed,
     Kind::deep},
    {Kind::raw, "raw", "One row at a time, a walk over the columns themselves.", is_axis_aligned,
     Kind::oblique},
    {Kind::oblique, "oblique", "Tests that weigh several columns, a level at a time.", is_oblique,
     Kind::by_tree},
}};

Kind compatible_kind(Kind wanted, const Candidate& candidate) {
    // Ends: every machine is oblique, or can be walked over its columns.
    while (!entry_of(wanted).is_compatible(candidate)) wanted = entry_of(wanted).otherwise;
    return wanted;
}

Kind kind_for_few(const Machine& machine, const Kernels& kernels) {
    const Machine::Trees& trees = machine.trees;
    const bool are_small = trees.n_tests < kTestsForRecords * trees.n;
    return are_small || !kernels.records ? Kind::pack : Kind::record;
}

Kind kind_of_tree(Kind wanted, const Machine::Trees& trees, int64_t tree, const Kernels& kernels,
                  const std::vector<int32_t>& size, Possible possible) {
    if (wanted == Kind::deep || wanted == Kind::pack) return Kind::deep;
    const Kind without = possible.record ? Kind::record : Kind::deep;
    const Kind other = possible.twig && wanted != Kind::record ? Kind::twig : without;
    const int64_t n_tests = trees.tests_of(tree);
    if (wanted == Kind::record || wanted == Kind::twig || n_tests >= kMostSelectLeaves)
        return other;
    if (wanted == Kind::select) return Kind::select;
    double path = 0;  // sum of depths of all leaves = sum of sizes of all tests
    double selects = 0;
    for (int64_t j = trees.test_start[tree + 1] - 1; j >= trees.test_start[tree]; --j) {
        const int32_t left = trees.children[2 * j];
        const int32_t left_size = left >= 0 ? size[left] : 1;
        path += size[j];
        selects += bits_for(std::max(left_size, size[j] - left_size));
    }
    // Rows tend to the large leaves, which are not deep: a path is about its mean depth.
    const double walk = kCostStep * path / static_cast<double>(n_tests + 1);
    const double record = kernels.record_cost * (n_tests < kRecordTests ? 0.5 : 1.0);
    const double select =
        kernels.select_cost * (kCostTest * static_cast<double>(n_tests) + kCostSelect * selects);
    const double cost = other == Kind::twig     ? kernels.twig_cost
                        : other == Kind::record ? record
                                                : walk;
    return select <= cost ? Kind::select : other;
}

}  // namespace dm::engine
