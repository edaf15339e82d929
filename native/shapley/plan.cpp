#include "shapley/plan.hpp"

#include <algorithm>

#include "shapley/rule.hpp"

namespace dm::shapley {
namespace {

// A walk over one tree, test by test, with what stands above the test at hand.
class Path {
public:
    Path(const Forest& forest, int64_t tree)
        : forest_(forest),
          root_(forest.test_start[tree]),
          first_leaf_(root_ + tree),
          last_(static_cast<size_t>(forest.n_slots), -1) {}

    int64_t level() const { return static_cast<int64_t>(stack_.size()) - 1; }
    int64_t test() const { return stack_.back().test; }
    int64_t test_at(int64_t level) const { return stack_[static_cast<size_t>(level)].test; }
    int64_t slot() const { return forest_.slot[test()]; }
    // The level of the last test of this feature above, or -1, and the share of the cover that the
    // feature's tests above leave.
    int32_t prior() const { return stack_.back().prior; }
    double share_above() const { return stack_.back().above; }
    int64_t n_features() const { return n_features_; }
    const std::vector<int32_t>& last() const { return last_; }
    // The share that the feature's tests down to this level leave, on the side at hand.
    double share_at(int64_t level) const {
        return share_at(level, stack_[static_cast<size_t>(level)].side);
    }
    // The same, with the test at hand taken on the given side.
    double share_at(int64_t level, int side) const {
        const Entry& entry = stack_[static_cast<size_t>(level)];
        const double c = forest_.share[entry.test];
        return entry.above * ((level == this->level() ? side : entry.side) ? 1 - c : c);
    }
    int64_t child(int side) const { return forest_.children[2 * test() + side]; }
    int64_t local(int64_t child) const {
        return child >= 0 ? child - root_ : ~(~child - first_leaf_);
    }

    // Calls enter, turn (between the children) and leave for each test.
    template <typename Enter, typename Turn, typename Leave>
    void walk(const Enter& enter, const Turn& turn, const Leave& leave) {
        push(root_);
        if (!enter()) stack_.back().side = 2;
        while (!stack_.empty()) {
            Entry& top = stack_.back();
            if (top.side < 2 && top.next <= top.side) {
                ++top.next;
                const int64_t below = child(top.side);
                if (below >= 0) {
                    push(below);
                    if (!enter()) stack_.back().side = 2;
                }
            } else if (top.side == 0) {
                top.side = 1;
                turn();
            } else {
                const bool is_whole = top.side == 1;
                if (is_whole) leave();
                pop();
            }
        }
    }

private:
    struct Entry {
        int64_t test;
        int32_t prior;
        double above;
        int side = 0, next = 0;
    };

    void push(int64_t test) {
        const size_t slot = static_cast<size_t>(forest_.slot[test]);
        const int32_t prior = last_[slot];
        stack_.push_back({test, prior, prior < 0 ? 1.0 : share_at(prior)});
        last_[slot] = static_cast<int32_t>(level());
        n_features_ += prior < 0;
    }
    void pop() {
        last_[static_cast<size_t>(slot())] = prior();
        n_features_ -= prior() < 0;
        stack_.pop_back();
    }

    const Forest& forest_;
    int64_t root_, first_leaf_, n_features_ = 0;
    std::vector<int32_t> last_;  // by slot: the level of its last test on the path, or -1
    std::vector<Entry> stack_;
};

}  // namespace

template <typename T>
Plan<T>::Plan(const Forest& forest, bool pairs, double point)
    : n_columns(forest.n_columns),
      n_slots(forest.n_slots),
      n_outputs(forest.n_outputs),
      pairs(pairs),
      width_(forest.width),
      point_(point) {
    for (int64_t tree = 0; tree < forest.n_trees; ++tree)
        if (forest.test_start[tree + 1] > forest.test_start[tree]) add_tree(forest, tree);
    tables_.resize(tables_.size() + kMostLanes);
}

template <typename T>
Rule Plan<T>::rule_of(int64_t n_features) const {
    if (point_ == point_) return {{point_}, {1.0}};
    return gauss_legendre((n_features + 1) / 2);
}

template <typename T>
const typename Plan<T>::Points& Plan<T>::points(const Rule& rule) {
    const int64_t n = static_cast<int64_t>(rule.y.size());
    const auto known = points_.find(n);
    if (known != points_.end()) return known->second;
    Points found;
    for (size_t q = 0; q < rule.y.size(); ++q) {
        found.y.push_back(static_cast<T>(rule.y[q]));
        found.weight.push_back(static_cast<T>(rule.weight[q]));
        found.loss.push_back(static_cast<T>(-1 / (1 - rule.y[q])));
    }
    found.y.resize(2 * rule.y.size() + kMostLanes, T{1});
    found.weight.resize(rule.y.size() + kMostLanes);
    return points_.emplace(n, std::move(found)).first->second;
}

template <typename T>
void Plan<T>::add_tree(const Forest& forest, int64_t tree) {
    const int64_t root = forest.test_start[tree], n = forest.test_start[tree + 1] - root;
    int64_t most = 1, depth = 1;
    Path measure(forest, tree);
    measure.walk(
        [&] {
            most = std::max(most, measure.n_features());
            depth = std::max(depth, measure.level() + 1);
            return true;
        },
        [] {}, [] {});
    const Rule rule = rule_of(most);
    points(rule);
    const int64_t n_points = static_cast<int64_t>(rule.y.size());
    Part part{n_points,
              depth,
              std::max(forest.feeds[tree], 0),
              steps_.size(),
              tests_.size(),
              tables_.size(),
              values_.size(),
              above_start_.size(),
              above_.size(),
              gains_.size(),
              0};
    tests_.resize(tests_.size() + static_cast<size_t>(n));
    if (pairs) above_start_.resize(above_start_.size() + static_cast<size_t>(n) + 1);
    Path path(forest, tree);
    std::vector<int32_t> to{0};  // by level: the slot that takes H
    std::vector<std::vector<Above>> above(pairs ? static_cast<size_t>(n) : 0);
    auto add = [&](Op op) {
        steps_.push_back({op, static_cast<int32_t>(path.level()),
                          static_cast<int32_t>(path.test() - root),
                          to[static_cast<size_t>(path.level())]});
    };
    // The gains of this test's feature, for interactions with what stands below on either side.
    auto add_gains = [&](Test<T>& test) {
        test.gain = static_cast<int32_t>(gains_.size() - part.gains);
        for (int side = 0; side < 2; ++side) {
            const double z = path.share_at(path.level(), side);
            for (double y : rule.y) gains_.push_back(static_cast<T>((1 - z) / (z + (1 - z) * y)));
        }
    };
    auto is_low = [&](int64_t child) {
        return child < 0 || (forest.children[2 * child] < 0 && forest.children[2 * child + 1] < 0);
    };
    auto is_first = [&](int64_t child) {
        return child < 0 || path.last()[static_cast<size_t>(forest.slot[child])] < 0;
    };
    auto fill = [&](int64_t at, int32_t prior) {
        Test<T>& test = tests_[part.tests + static_cast<size_t>(at - root)];
        test.t = static_cast<T>(forest.t[at]);
        test.c = static_cast<T>(forest.share[at]);
        test.read = reads_.of(forest.column[at], forest.missing[at] < 0);
        test.slot = forest.slot[at];
        test.prior = prior;
        test.table = 0;
        test.left = static_cast<int32_t>(path.local(forest.children[2 * at]));
        test.right = static_cast<int32_t>(path.local(forest.children[2 * at + 1]));
        test.is_prior = pairs;
        return &test;
    };
    // u and b of a test whose feature's tests above leave the share z.
    auto add_table = [&](Test<T>& test, double z) {
        tests_[part.tests + static_cast<size_t>(path.test_at(test.prior) - root)].is_prior = 1;
        test.table = static_cast<int32_t>(tables_.size() - part.tables);
        // Where both y and z are 0, u and b are those of a y that is hardly more.
        for (double y : rule.y) {
            const double g = z * (1 - y) + y;
            tables_.push_back(static_cast<T>(g > 0 ? y / g : 1.0));
        }
        for (double y : rule.y) {
            const double g = z * (1 - y) + y;
            tables_.push_back(static_cast<T>(g > 0 ? z / (g * g) : 0.0));
        }
    };
    // The features above a test, but for its own, with the tests of leaves below that are done in
    // the same step.
    auto slot_of = [&](int64_t test) { return test < 0 ? -1 : int64_t{forest.slot[test]}; };
    auto pair_or_none = [&](int64_t a, int64_t b) {
        return static_cast<int32_t>(b < 0 || a == b ? n_slots * (n_slots - 1) / 2 : pair_of(a, b));
    };
    auto add_above = [&](int64_t at, int64_t left, int64_t right) {
        for (int64_t slot = 0; slot < n_slots; ++slot) {
            const int32_t last = path.last()[static_cast<size_t>(slot)];
            if (last >= 0 && slot != slot_of(at))
                above[static_cast<size_t>(at - root)].push_back(
                    {last, pair_or_none(slot, slot_of(at)), pair_or_none(slot, slot_of(left)),
                     pair_or_none(slot, slot_of(right))});
        }
    };
    // A test of leaves on a side of the test at hand.
    auto fill_low = [&](int64_t at, int side) {
        const int32_t prior = path.last()[static_cast<size_t>(forest.slot[at])];
        Test<T>* test = fill(at, prior);
        if (prior >= 0) add_table(*test, path.share_at(prior, side));
        if (pairs && slot_of(at) != path.slot())
            above[static_cast<size_t>(at - root)].push_back(
                {static_cast<int32_t>(path.level()), pair_or_none(path.slot(), slot_of(at)), 0, 0});
    };
    path.walk(
        [&] {
            const int64_t level = path.level(), left = path.child(0), right = path.child(1);
            Test<T>* test = fill(path.test(), path.prior());
            to.resize(static_cast<size_t>(level) + 2);
            if (path.prior() >= 0) {
                add_table(*test, path.share_above());
            }
            if (pairs) {
                const bool is_whole = is_low(left) && is_low(right);
                add_above(path.test(), is_whole ? left : -1, is_whole ? right : -1);
                add_gains(*test);
            }
            to[static_cast<size_t>(level) + 1] =
                static_cast<int32_t>(left >= 0 && right >= 0 ? level + 1 : 0);
            if (left < 0 && right < 0) {
                add(Op::two_leaves);
                return false;
            }
            if (is_low(left) && is_low(right)) {
                if (left >= 0) fill_low(left, 0);
                if (right >= 0) fill_low(right, 1);
                const bool is_new = !pairs && path.prior() < 0 && is_first(left) && is_first(right);
                if (is_new)
                    add(left < 0    ? Op::bottom_right
                        : right < 0 ? Op::bottom_left
                                    : Op::bottom_both);
                else
                    add(left < 0 ? Op::low_right : right < 0 ? Op::low_left : Op::low_both);
                return false;
            }
            add(left < 0 ? Op::down_right : Op::down);
            return true;
        },
        [&] {
            const int64_t level = path.level();
            if (path.child(0) >= 0 && path.child(1) >= 0) add(Op::turn);
            to[static_cast<size_t>(level) + 1] = 0;
        },
        [&] {
            add(path.child(0) < 0 ? Op::up_right : path.child(1) < 0 ? Op::up_left : Op::up);
        });
    part.n_steps = static_cast<int64_t>(steps_.size() - part.steps);
    for (size_t at = 0; at < above.size(); ++at) {
        above_start_[part.above_start + at] = static_cast<int32_t>(above_.size() - part.above);
        above_.insert(above_.end(), above[at].begin(), above[at].end());
    }
    if (pairs)
        above_start_[part.above_start + static_cast<size_t>(n)] =
            static_cast<int32_t>(above_.size() - part.above);
    const double* values = forest.values + (root + tree) * width_;
    for (int64_t i = 0; i < (n + 1) * width_; ++i) values_.push_back(static_cast<T>(values[i]));
    scratch_ = std::max(scratch_, scratch_bytes(depth, n_points));
    trees_.push_back(part);
}

template <typename T>
Tree<T> Plan<T>::tree(int64_t i) const {
    const Part& part = trees_[static_cast<size_t>(i)];
    const Points& points = points_.at(part.n_points);
    return {part.n_points,
            points.y.data(),
            points.weight.data(),
            points.loss.data(),
            steps_.data() + part.steps,
            part.n_steps,
            tests_.data() + part.tests,
            tables_.data() + part.tables,
            values_.data() + part.values,
            width_,
            part.output,
            part.depth,
            pairs ? above_start_.data() + part.above_start : nullptr,
            above_.data() + part.above,
            gains_.data() + part.gains};
}

template <typename T>
int64_t Plan<T>::n_bytes() const {
    auto bytes = [](const auto& held) {
        return static_cast<int64_t>(held.size() * sizeof(held[0]));
    };
    return bytes(trees_) + bytes(steps_) + bytes(tests_) + bytes(tables_) + bytes(values_) +
           bytes(gains_) + bytes(above_start_) + bytes(above_);
}

template class Plan<float>;
template class Plan<double>;

}  // namespace dm::shapley
