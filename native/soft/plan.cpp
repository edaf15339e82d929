// A soft tree's structure, checked, and its trees in groups whose columns are laid out together.
#include "soft/plan.hpp"

#include <algorithm>

#include "common/require.hpp"

namespace dm::soft {
namespace {

constexpr int64_t kColumnsLaidOut = 512;  // of a tile, unless one tree reads more

}  // namespace

Plan::Plan(const int32_t* given, const int64_t* starts, int64_t n, const int32_t* selection,
           const int8_t* answers, const int32_t* outputs, int64_t columns, int64_t k)
    : n_columns(columns),
      n_outputs(k),
      narrow(n > 0 && outputs[0] >= 0),
      test_start(starts, starts + n + 1),
      feeds(outputs, outputs + n),
      most_tests(0),
      most_used(0) {
    common::require(starts[0] == 0, "test_start does not begin at 0");
    for (int64_t i = 0; i < n; ++i) {
        common::require(starts[i] <= starts[i + 1], "test_start decreases");
        common::require(narrow ? feeds[i] >= 0 && feeds[i] < k : feeds[i] == -1,
                        "feeds must name an output in every tree, or be -1 in every tree");
        most_tests = std::max(most_tests, starts[i + 1] - starts[i]);
    }
    const int64_t J = n_tests();
    common::require(3 * J + 1 < (int64_t{1} << 31), "more than 2**31 slots");
    missing.assign(answers, answers + J);
    for (int64_t j = 0; j < J; ++j) {
        common::require(missing[j] == 1 || missing[j] == -1, "missing must be -1 or +1");
        common::require(selection[j] >= 0 && selection[j] < columns,
                        "selection names no column of z");
    }
    make_groups(selection);
    children.resize(2 * J);
    n_below.assign(J, 0);
    for (int64_t i = 0; i < n; ++i) {
        const int64_t first = starts[i], size = starts[i + 1] - first, leaf = first + i;
        std::vector<bool> seen(static_cast<size_t>(2 * size + 1));
        for (int64_t e = 2 * first; e < 2 * (first + size); ++e) {
            const int64_t c = given[e];
            const int64_t slot = c >= 0 ? c - first : size + ~c - leaf;
            common::require(
                c >= 0 ? slot > e / 2 - first && slot < size : slot >= size && slot <= 2 * size,
                "children must come after their parent, in its own tree");
            common::require(!seen[slot], "a node is the child of two tests");
            seen[slot] = true;
            children[e] = static_cast<int32_t>(slot);
        }
        // 2 n distinct children among 2 n nodes that are not the root: every node has a parent.
        for (int64_t j = size - 1; j >= 0; --j)
            for (int side = 0; side < 2; ++side) {
                const int32_t c = children[2 * (first + j) + side];
                n_below[first + j] += c < size ? n_below[first + c] : 1;
            }
    }
}

void Plan::make_groups(const int32_t* selection) {
    column.resize(n_tests());
    std::vector<int64_t> group_of(static_cast<size_t>(n_columns), -1);  // the last to read it
    int64_t n_used = 0;
    for (int64_t i = 0; i < n_trees(); ++i) {
        auto count = [&](int64_t group, bool keep) {
            int64_t n_new = 0;
            for (int64_t j = test_start[i]; j < test_start[i + 1]; ++j) {
                n_new += group_of[selection[j]] != group;
                if (keep) group_of[selection[j]] = group;
            }
            return n_new;
        };
        int64_t group = static_cast<int64_t>(groups.size()) - 1;
        if (group < 0 || n_used + count(group, false) > kColumnsLaidOut) {
            groups.push_back({i, i, {}});
            ++group;
            n_used = 0;
        }
        n_used += count(group, true);
        groups.back().last = i + 1;
    }
    for (Group& group : groups) {
        const int64_t first = test_start[group.first], last = test_start[group.last];
        std::vector<int32_t>& used = group.used;
        used.assign(selection + first, selection + last);
        std::sort(used.begin(), used.end());
        used.erase(std::unique(used.begin(), used.end()), used.end());
        most_used = std::max(most_used, static_cast<int64_t>(used.size()));
        for (int64_t j = first; j < last; ++j)
            column[j] = static_cast<int32_t>(
                std::lower_bound(used.begin(), used.end(), selection[j]) - used.begin());
    }
}

}  // namespace dm::soft
