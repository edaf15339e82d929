// Every kernel on every target of this processor against a plain descent, without Python: for
// compilers and processors that the Python tests do not reach.
//
//     c++ -std=c++17 -O2 ... tests/native/targets.cpp native/*.cpp && ./a.out      (see targets.sh)
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "../../native/engine.hpp"
#include "../../native/targets.hpp"

namespace {

constexpr int64_t kFeatures = 7;
const double kNan = std::numeric_limits<double>::quiet_NaN();

// A machine of random trees, with the arrays that dm::Machine points to.
struct Random {
    std::vector<int32_t> feature, selection, children, feeds;
    std::vector<uint8_t> rule;
    std::vector<double> t, base{0.5}, V;
    std::vector<float> V32;
    std::vector<int8_t> missing;
    std::vector<int64_t> test_start{0}, set_start{0};
    dm::Machine machine{};

    Random(const std::vector<int>& sizes, bool single, bool sum_single, std::mt19937& random) {
        for (int32_t f = 0; f < kFeatures; ++f) feature.push_back(f);
        rule.assign(kFeatures, 0);
        rule[1] = 1;
        rule[2] = 2;
        std::normal_distribution<double> normal;
        for (const int n_leaves : sizes) {
            const int32_t begin = static_cast<int32_t>(t.size());
            int32_t leaf = static_cast<int32_t>(begin + feeds.size());
            grow(n_leaves, leaf, random);
            for (size_t j = begin; j < children.size() / 2; ++j) {
                selection.push_back(static_cast<int32_t>(random() % kFeatures));
                const double threshold = random() % 5 ? normal(random) : std::round(normal(random));
                t.push_back(single ? static_cast<double>(static_cast<float>(threshold)) : threshold);
                missing.push_back(random() % 2 ? 1 : -1);
            }
            feeds.push_back(0);
            test_start.push_back(static_cast<int64_t>(t.size()));
        }
        for (size_t i = 0; i < t.size() + feeds.size(); ++i) {
            V.push_back(normal(random));
            V32.push_back(static_cast<float>(V.back()));
        }
        machine.n_features = machine.n_columns = kFeatures;
        machine.n_tests = static_cast<int64_t>(t.size());
        machine.n_trees = static_cast<int64_t>(feeds.size());
        machine.n_outputs = 1;
        machine.single = single;
        machine.missing_value = kNan;
        machine.feature = feature.data();
        machine.rule = rule.data();
        machine.set_start = set_start.data();
        machine.selection = selection.data();
        machine.t = t.data();
        machine.missing = missing.data();
        machine.children = children.data();
        machine.test_start = test_start.data();
        machine.feeds = feeds.data();
        machine.narrow = true;
        machine.V = sum_single ? static_cast<const void*>(V32.data()) : V.data();
        machine.sum_single = sum_single;
        machine.base = base.data();
        machine.base_first = true;
        machine.divisor = machine.scale = 1;
    }

    // Tests in preorder, leaves from left to right; the root's number, or ~leaf.
    int32_t grow(int n_leaves, int32_t& leaf, std::mt19937& random) {
        if (n_leaves == 1) return ~leaf++;
        const size_t test = children.size() / 2;
        children.resize(children.size() + 2);
        const int left = 1 + static_cast<int>(random() % static_cast<unsigned>(n_leaves - 1));
        const int32_t a = grow(left, leaf, random), b = grow(n_leaves - left, leaf, random);
        children[2 * test] = a;
        children[2 * test + 1] = b;
        return static_cast<int32_t>(test);
    }

    int64_t exit_leaf(int64_t tree, const double* x) const {
        int32_t at = test_start[tree] == test_start[tree + 1]
                         ? ~static_cast<int32_t>(test_start[tree] + tree)
                         : static_cast<int32_t>(test_start[tree]);
        while (at >= 0) {
            double z = x[selection[at]];
            if (rule[selection[at]] == 1 && z != z) z = 0;
            if (rule[selection[at]] == 2 && std::fabs(z) <= static_cast<double>(1e-35f)) z = kNan;
            const bool left = z == z ? z <= t[at] : missing[at] < 0;
            at = children[2 * at + (left ? 0 : 1)];
        }
        return ~at - (test_start[tree] + tree);
    }
};

template <typename X, typename Sum>
int check(const Random& own, const std::vector<X>& rows, dm::Dtype dtype) {
    int wrong = 0;
    for (const dm::Kernels* kernels : dm::available_targets())
        for (int force = 0; force <= 4; ++force) {
            const dm::Engine engine(dm::compile(own.machine, kernels, force));
            for (const int64_t n : {int64_t{1}, int64_t{30}, int64_t(rows.size()) / kFeatures}) {
                if (n < dm::kFewRows && !engine.plan.has_nodes()) continue;
                dm::Source source;
                source.n_rows = n;
                source.is_array = true;
                source.first = {reinterpret_cast<const char*>(rows.data()),
                                kFeatures * static_cast<int64_t>(sizeof(X)), dtype};
                source.next = sizeof(X);
                std::vector<Sum> margins(n);
                std::vector<int32_t> leaves(n * own.machine.n_trees);
                engine.margin(source, 1, margins.data());
                engine.apply(source, 1, leaves.data());
                int own_wrong = 0;
                for (int64_t r = 0; r < n; ++r) {
                    double x[kFeatures];
                    for (int64_t f = 0; f < kFeatures; ++f)
                        x[f] = own.machine.single ? static_cast<float>(rows[r * kFeatures + f])
                                                  : rows[r * kFeatures + f];
                    Sum sum = static_cast<Sum>(own.base[0]);
                    for (int64_t tree = 0; tree < own.machine.n_trees; ++tree) {
                        const int64_t leaf = own.exit_leaf(tree, x);
                        own_wrong += leaves[r * own.machine.n_trees + tree] != leaf;
                        sum += static_cast<const Sum*>(own.machine.V)[own.test_start[tree] + tree + leaf];
                    }
                    own_wrong += std::memcmp(&sum, &margins[r], sizeof sum) != 0;
                }
                if (own_wrong)
                    std::printf("%s, kernel %d, %d rows: %d wrong\n", kernels->name, force,
                                static_cast<int>(n), own_wrong);
                wrong += own_wrong;
            }
        }
    return wrong;
}

}  // namespace

int main() {
    std::mt19937 random(1);
    const std::vector<std::vector<int>> shapes = {
        {1}, {2, 1, 3}, {64, 31, 16, 5, 64}, {64, 64, 64, 64, 64, 64, 64, 64, 64}, {300, 20}, {2000, 700, 64}};
    int wrong = 0, machines = 0;
    for (const auto& sizes : shapes)
        for (const bool single : {false, true})
            for (const bool sum_single : {false, true}) {
                const Random own(sizes, single, sum_single, random);
                std::normal_distribution<double> normal;
                std::vector<float> floats;
                std::vector<double> doubles;
                for (int64_t i = 0; i < 1100 * kFeatures; ++i) {
                    const unsigned kind = random() % 20;
                    double x = normal(random);
                    if (kind == 0) x = kNan;
                    if (kind == 1) x = INFINITY;
                    if (kind == 2) x = -INFINITY;
                    if (kind == 3) x = 0;
                    if (kind < 8 && kind > 3 && !own.t.empty()) x = own.t[random() % own.t.size()];
                    doubles.push_back(x);
                    floats.push_back(static_cast<float>(x));
                }
                if (sum_single)
                    wrong += check<float, float>(own, floats, dm::Dtype::f32) +
                             check<double, float>(own, doubles, dm::Dtype::f64);
                else
                    wrong += check<float, double>(own, floats, dm::Dtype::f32) +
                             check<double, double>(own, doubles, dm::Dtype::f64);
                ++machines;
            }
    std::printf("%d machines on", machines);
    for (const dm::Kernels* kernels : dm::available_targets()) std::printf(" %s", kernels->name);
    std::printf(": %d wrong\n", wrong);
    return wrong != 0;
}
