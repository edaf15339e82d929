// Every kernel on every target of this processor against a plain descent, without Python: for
// compilers and processors that the Python tests do not reach.
//
//     make native-targets      (see targets.sh)
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "engine/engine.hpp"
#include "engine/kernels/find.hpp"

namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

// What tests weigh: one column each, some columns, or all of them.
enum class Weights { one, some, all };

struct Shape {
    std::vector<int> sizes;  // leaves of each tree
    int64_t n_features = 7;
    Weights weights = Weights::one;
    bool has_rules = true;  // NaN read as 0, and 0 as NaN, in two columns
};

// A machine of random trees, with the arrays that dm::engine::Machine points to.
struct Random {
    const int64_t n_features;
    std::vector<int32_t> feature, selection, children, feeds;
    std::vector<uint8_t> rule;
    std::vector<double> t, base{0.5}, V;
    std::vector<float> V32;
    std::vector<int8_t> missing;
    std::vector<int64_t> test_start{0}, weight_start{0};
    std::vector<int32_t> weight_column;
    std::vector<float> weight32;
    std::vector<double> weight64;
    dm::engine::Machine machine;

    Random(const Shape& shape, bool single, bool sum_single, std::mt19937& random)
        : n_features(shape.n_features) {
        for (int32_t f = 0; f < n_features; ++f) feature.push_back(f);
        rule.assign(n_features, 0);
        if (shape.has_rules) rule[1] = 1, rule[2] = 2;
        std::normal_distribution<double> normal;
        for (const int n_leaves : shape.sizes) {
            const int32_t begin = static_cast<int32_t>(t.size());
            int32_t leaf = static_cast<int32_t>(begin + feeds.size());
            grow(n_leaves, leaf, random);
            for (size_t j = begin; j < children.size() / 2; ++j) {
                selection.push_back(static_cast<int32_t>(random() % n_features));
                const double threshold = random() % 5 ? normal(random) : std::round(normal(random));
                t.push_back(single ? static_cast<double>(static_cast<float>(threshold))
                                   : threshold);
                missing.push_back(random() % 2 ? 1 : -1);
                for (int32_t c = 0; c < n_features; ++c) {
                    if (shape.weights == Weights::some && random() % 3) continue;
                    weight_column.push_back(c);
                    weight64.push_back(normal(random));
                    weight32.push_back(static_cast<float>(weight64.back()));
                }
                weight_start.push_back(static_cast<int64_t>(weight_column.size()));
            }
            feeds.push_back(0);
            test_start.push_back(static_cast<int64_t>(t.size()));
        }
        for (size_t i = 0; i < t.size() + feeds.size(); ++i) {
            V.push_back(normal(random));
            V32.push_back(static_cast<float>(V.back()));
        }
        machine.columns.n_features = machine.columns.n = n_features;
        machine.columns.feature = feature.data();
        machine.columns.rule = rule.data();
        machine.columns.single = single;
        machine.trees.n = static_cast<int64_t>(feeds.size());
        machine.trees.n_tests = static_cast<int64_t>(t.size());
        machine.trees.children = children.data();
        machine.trees.test_start = test_start.data();
        machine.trees.feeds = feeds.data();
        machine.tests.t = t.data();
        machine.tests.missing = missing.data();
        machine.output.V = sum_single ? static_cast<const void*>(V32.data()) : V.data();
        machine.output.single = sum_single;
        machine.output.base = base.data();
        if (shape.weights == Weights::one) {
            machine.tests.selection = selection.data();
            return;
        }
        machine.tests.weight_start = weight_start.data();
        machine.tests.weight_column = weight_column.data();
        machine.tests.weight = single ? static_cast<const void*>(weight32.data()) : weight64.data();
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

    double z_of(int64_t c, double x) const {
        if (rule[c] == 1 && x != x) return 0;
        if (rule[c] == 2 && std::fabs(x) <= static_cast<double>(1e-35f)) return kNan;
        return x;
    }

    // The weighted sum of test j, its terms added one after the other in the columns' own type.
    template <typename T>
    T sum_of(int64_t j, const double* x) const {
        T sum = 0;
        for (int64_t i = weight_start[j]; i < weight_start[j + 1]; ++i)
            sum += static_cast<T>(z_of(weight_column[i], x[weight_column[i]])) *
                   static_cast<const T*>(machine.tests.weight)[i];
        return sum;
    }

    int64_t exit_leaf(int64_t tree, const double* x) const {
        int32_t at = test_start[tree] == test_start[tree + 1]
                         ? ~static_cast<int32_t>(test_start[tree] + tree)
                         : static_cast<int32_t>(test_start[tree]);
        while (at >= 0) {
            const double q = !machine.tests.weight_start ? z_of(selection[at], x[selection[at]])
                             : machine.columns.single    ? sum_of<float>(at, x)
                                                         : sum_of<double>(at, x);
            const bool left = q == q ? q <= t[at] : missing[at] < 0;
            at = children[2 * at + (left ? 0 : 1)];
        }
        return ~at - (test_start[tree] + tree);
    }
};

// What was tried, beyond right and wrong answers.
struct Tally {
    int machines = 0, wrong = 0;
    std::map<dm::engine::Kind, int> trees;  // how many trees were evaluated in each way
};

template <typename X, typename Sum>
int count_wrong(const Random& own, const dm::engine::Engine& engine, const std::vector<X>& rows,
                dm::engine::Dtype dtype, int64_t n) {
    dm::engine::Source source;
    source.n_rows = n;
    source.is_array = true;
    source.first = {reinterpret_cast<const char*>(rows.data()),
                    own.n_features * static_cast<int64_t>(sizeof(X)), dtype};
    source.next = sizeof(X);
    std::vector<Sum> margins(n);
    std::vector<int32_t> leaves(n * own.machine.trees.n);
    engine.margin(source, 1, margins.data());
    engine.apply(source, 1, leaves.data());
    int wrong = 0;
    std::vector<double> x(own.n_features);
    for (int64_t r = 0; r < n; ++r) {
        for (int64_t f = 0; f < own.n_features; ++f) {
            const X given = rows[r * own.n_features + f];
            x[f] = own.machine.columns.single ? static_cast<float>(given) : given;
        }
        Sum sum = static_cast<Sum>(own.base[0]);
        for (int64_t tree = 0; tree < own.machine.trees.n; ++tree) {
            const int64_t leaf = own.exit_leaf(tree, x.data());
            wrong += leaves[r * own.machine.trees.n + tree] != leaf;
            sum +=
                static_cast<const Sum*>(own.machine.output.V)[own.test_start[tree] + tree + leaf];
        }
        wrong += std::memcmp(&sum, &margins[r], sizeof sum) != 0;
    }
    return wrong;
}

template <typename X, typename Sum>
void check(const Random& own, const std::vector<X>& rows, dm::engine::Dtype dtype, Tally& tally) {
    const int64_t n_rows = static_cast<int64_t>(rows.size()) / own.n_features;
    const bool is_oblique = own.machine.tests.is_oblique();
    for (const dm::engine::Kernels* kernels : dm::engine::available_kernels())
        for (const dm::engine::KindEntry& entry : dm::engine::kKinds) {
            if ((entry.kind == dm::engine::Kind::oblique) != is_oblique) continue;
            const dm::engine::Engine engine(
                dm::engine::compile(own.machine, kernels, {entry.kind, true}));
            for (const dm::engine::Tree& tree : engine.plan.trees) ++tally.trees[tree.kind];
            for (const int64_t n : {int64_t{1}, int64_t{30}, int64_t{77}, n_rows}) {
                if (n < dm::engine::kFewRows && !engine.plan.can_walk()) continue;
                const int wrong = count_wrong<X, Sum>(own, engine, rows, dtype, n);
                if (wrong)
                    std::printf("%s, kernel %s, %d rows: %d wrong\n", kernels->name, entry.name,
                                static_cast<int>(n), wrong);
                tally.wrong += wrong;
            }
        }
}

}  // namespace

int main() {
    std::mt19937 random(1);
    const std::vector<int> full(9, 64), many(40, 64), mixed{64, 31, 16, 5, 64};
    std::vector<Shape> shapes = {{{1}},  {{2, 1, 3}}, {mixed},
                                 {full}, {{300, 20}}, {{2000, 700, 64}}};
    // Records of columns in one register, two and four, and too many columns for them; a column of
    // more than 255 thresholds, in buckets.
    for (const int64_t n_features : {int64_t{20}, int64_t{50}, int64_t{128}, int64_t{130}})
        shapes.push_back({{900, 1, 40}, n_features});
    shapes.push_back({{3000}, 3});
    shapes.push_back({many});  // more than 255 thresholds in a column: packs of two planes for it
    for (const Weights weights : {Weights::some, Weights::all})
        for (const bool has_rules : {false, true})
            for (const int64_t n_features :
                 {int64_t{7}, int64_t{37}})  // less and more than a register
                for (const std::vector<int>& sizes : {std::vector<int>{1}, {2, 1, 3}, {300, 20}})
                    shapes.push_back({sizes, n_features, weights, has_rules});
    Tally tally;
    for (const Shape& shape : shapes)
        for (const bool single : {false, true})
            for (const bool sum_single : {false, true}) {
                const Random own(shape, single, sum_single, random);
                // Beside other features an oblique test is NaN if one of them is: fewer oddities.
                const unsigned odd = shape.weights == Weights::one ? 20 : 200;
                std::normal_distribution<double> normal;
                std::vector<float> floats;
                std::vector<double> doubles;
                for (int64_t i = 0; i < 1100 * shape.n_features; ++i) {
                    const unsigned kind = random() % odd;
                    double x = normal(random);
                    if (kind == 0) x = kNan;
                    if (kind == 1) x = INFINITY;
                    if (kind == 2) x = -INFINITY;
                    if (kind == 3) x = 0;
                    if (kind < 8 && kind > 3 && !own.t.empty()) x = own.t[random() % own.t.size()];
                    doubles.push_back(x);
                    floats.push_back(static_cast<float>(x));
                }
                if (sum_single) {
                    check<float, float>(own, floats, dm::engine::Dtype::f32, tally);
                    check<double, float>(own, doubles, dm::engine::Dtype::f64, tally);
                } else {
                    check<float, double>(own, floats, dm::engine::Dtype::f32, tally);
                    check<double, double>(own, doubles, dm::engine::Dtype::f64, tally);
                }
                ++tally.machines;
            }
    bool can_pack = false, has_records = false, has_twigs = false;
    std::printf("%d machines on", tally.machines);
    for (const dm::engine::Kernels* kernels : dm::engine::available_kernels()) {
        std::printf(" %s", kernels->name);
        can_pack |= kernels->packs != nullptr;
        has_records |= kernels->records != nullptr;
        has_twigs |= kernels->twigs != nullptr;
    }
    bool all_kinds = true;
    for (const dm::engine::KindEntry& entry : dm::engine::kKinds) {
        if (entry.kind == dm::engine::Kind::by_tree) continue;
        std::printf(", %d trees by %s", tally.trees[entry.kind], entry.name);
        all_kinds &= tally.trees[entry.kind] > 0 ||
                     (entry.kind == dm::engine::Kind::pack && !can_pack) ||
                     (entry.kind == dm::engine::Kind::record && !has_records) ||
                     (entry.kind == dm::engine::Kind::twig && !has_twigs);
    }
    std::printf(": %d wrong\n", tally.wrong);
    return tally.wrong != 0 || !all_kinds;
}
