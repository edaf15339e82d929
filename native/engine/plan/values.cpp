#include "engine/plan/values.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "engine/plan/selects.hpp"

namespace dm::engine {
namespace {

constexpr size_t kMostValues = 256;  // that a byte tells apart

template <typename Sum>
void add(bool can_split, Plan& plan, std::vector<Sum>& values) {
    const Machine& m = plan.machine;
    const int64_t k = m.output.width();
    const Sum* V = static_cast<const Sum*>(m.output.V);
    const bool has_tables = !m.linear && plan.wanted.values;
    std::vector<Sum> by_label;
    int64_t most = 0;
    for (int64_t i = 0; i < m.trees.n; ++i) {
        Tree& tree = plan.trees[i];
        const int64_t n = m.trees.tests_of(i) + 1;
        const bool select = tree.kind == Kind::select;
        const int64_t room = select ? int64_t{1} << bits_for(n) : n;
        tree.values = static_cast<int64_t>(values.size());
        tree.n_labels = static_cast<uint32_t>(room);
        tree.split = can_split && select && n <= 64;
        if (!has_tables || tree.kind == Kind::record || tree.kind == Kind::twig) continue;
        for (int64_t output = 0; output < k; ++output) {
            by_label.assign(static_cast<size_t>(room), Sum(0));
            for (int64_t leaf = 0; leaf < n; ++leaf)
                by_label[label_of(static_cast<uint32_t>(leaf), tree.gray)] =
                    V[(m.trees.first_leaf(i) + leaf) * k + output];
            const size_t at = values.size();
            values.insert(values.end(), by_label.begin(), by_label.end());
            if (!tree.split) continue;
            const unsigned char* from = reinterpret_cast<const unsigned char*>(by_label.data());
            unsigned char* to = reinterpret_cast<unsigned char*>(values.data() + at);
            for (int64_t label = 0; label < room; ++label)
                for (size_t byte = 0; byte < sizeof(Sum); ++byte)
                    to[room * byte + label] = from[label * sizeof(Sum) + byte];
        }
        most = std::max(most, tree.values + (k - 1) * room + 64);
    }
    // Kernels read 64 values of a table, however many it has.
    if (static_cast<int64_t>(values.size()) < most) values.resize(static_cast<size_t>(most));
    values.shrink_to_fit();
}

}  // namespace

void add_values(Plan& plan) {
    const Machine::Output& output = plan.machine.output;
    const bool can_split =
        (plan.kernels->splits & (output.single ? kSplitsFloat : kSplitsDouble)) &&
        output.aggregate == Aggregate::sum;
    if (output.single)
        add<float>(can_split, plan, plan.values32);
    else
        add<double>(can_split, plan, plan.values64);
}

void add_few_values(Plan& plan) {
    const Machine& machine = plan.machine;
    if (!plan.wanted.values || machine.output.aggregate != Aggregate::sum || machine.linear) return;
    const int64_t n = machine.trees.n_leaves();
    const int64_t bytes = machine.output.width() * (machine.output.single ? 4 : 8);
    const char* V = static_cast<const char*>(machine.output.V);
    std::unordered_map<std::string_view, uint8_t> known;  // by their bytes: -0 is not 0
    std::vector<uint8_t> value_of;
    std::vector<char> table;
    value_of.reserve(static_cast<size_t>(n));
    for (int64_t leaf = 0; leaf < n; ++leaf) {
        const std::string_view own(V + leaf * bytes, static_cast<size_t>(bytes));
        const auto [found, is_new] = known.try_emplace(own, static_cast<uint8_t>(known.size()));
        if (is_new) {
            if (known.size() > kMostValues) return;
            table.insert(table.end(), own.begin(), own.end());
        }
        value_of.push_back(found->second);
    }
    plan.few_values = {std::move(value_of), std::move(table)};
}

}  // namespace dm::engine
