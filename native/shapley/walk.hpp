// A tree's program of steps, for G vectors of rows at a time.
//
// Compiled once for each target, within the kernels.
#pragma once

#include "shapley/kernels.hpp"
#include "shapley/lanes.hpp"
#include "shapley/steps.hpp"

namespace dm::shapley {
namespace DM_TARGET {
namespace {

#define DM_EACH for (int r = 0; r < G; ++r)

// N points; 0: as many as the tree says. Several vectors hide how long an operation takes, and
// share what a step costs. Every vector goes through the same operations, whatever G. Pairs: with
// interactions.
template <typename T, int N, int G, bool Pairs>
class Walk {
    using Vec = Native<T>;

public:
    Walk(const Tree<T>& tree, const Rows<T>& rows, void* scratch) : tree_(tree), rows_(rows) {
        const int64_t levels = tree.depth + 2;
        P_ = static_cast<Vec*>(scratch);
        H_ = P_ + levels * points() * G;
        gains_ = H_ + levels * points() * G;
        terms_ = gains_ + levels * points() * G;
        delta_ = terms_ + 3 * points() * G;
        taken_ = reinterpret_cast<Chosen<T>*>(delta_ + levels * G);
        refused_ = taken_ + levels * G;
        always_ = refused_ + levels * G;
        DM_EACH always_[r] = ~Chosen<T>{};
        for (int64_t q = 0; q < points(); ++q) DM_EACH P_[q * G + r] = all<T>(tree.weight[q]);
    }

    // Vectors from `first` on, while G are left; where it stopped.
    int64_t run(int64_t first) {
        for (; first + G <= rows_.n_vectors; first += G)
            for (int64_t o = 0; o < tree_.width; ++o) run_vectors(first, o);
        return first;
    }

private:
    template <typename U, typename Walker>
    friend void take_steps(const Tree<U>& tree, Walker& walker);

    int64_t points() const { return N ? N : tree_.n_points; }

    void run_vectors(int64_t first, int64_t o) {
        const int64_t at = tree_.output + o;
        z_ = reinterpret_cast<const Vec*>(rows_.z) + first * rows_.n_reads;
        phi_ =
            reinterpret_cast<Vec*>(rows_.phi) + (first * rows_.n_outputs + at * G) * rows_.n_slots;
        pairs_ = reinterpret_cast<Vec*>(rows_.pairs) +
                 (first * rows_.n_outputs + at * G) * rows_.n_pairs;
        values_ = tree_.values + o;
        take_steps(tree_, *this);
    }

    // H of a child: of a test, by point; of a leaf, its value.
    struct From {
        const Vec* H;
        Vec at(int64_t q, int r) const { return H[q * G + r]; }
    };
    struct Leaf {
        Vec value;
        Vec at(int64_t, int) const { return value; }
    };

    From test_at(int64_t at) { return {slot(at)}; }
    Leaf leaf(int32_t child) const { return {all<T>(value(child))}; }
    T value(int32_t child) const { return values_[~child * tree_.width]; }
    Vec* slot(int64_t i) { return H_ + i * points() * G; }
    Vec* gains(int64_t level) { return gains_ + level * points() * G; }
    static constexpr int held_points() { return N ? N : 1; }
    Vec* P(int64_t level) { return P_ + level * points() * G; }
    const T* points_of(const Test<T>& test) const {
        return test.prior < 0 ? tree_.y : tree_.tables + test.table;
    }
    const Vec& z(const Test<T>& test, int r) const {
        return z_[static_cast<int64_t>(test.read) * G + r];
    }
    void add(int32_t slot, int r, const Vec& a, const Vec& b) {
        Vec& phi = phi_[static_cast<int64_t>(slot) * G + r];
        phi = fused<T>(a, b, phi);
    }

    // o - c of every row, and the masks that tests of the same feature below, and interactions,
    // ask for.
    void answer(const Test<T>& test, int64_t level, Vec* delta) {
        const Vec gain = all<T>(1 - test.c), loss = all<T>(-test.c);
        Vec* kept = delta_ + level * G;
        if (test.prior < 0 && !test.is_prior) {
            DM_EACH kept[r] = delta[r] = either<T>(left_of<T>(z(test, r), test.t), gain, loss);
            return;
        }
        Chosen<T>*taken = taken_ + level * G, *refused = refused_ + level * G;
        const Chosen<T>* path = test.prior < 0 ? always_ : taken_ + test.prior * G;
        DM_EACH {
            const Chosen<T> left = left_of<T>(z(test, r), test.t), all_above = path[r];
            kept[r] = delta[r] = only<T>(all_above, either<T>(left, gain, loss));
            taken[r] = left & all_above;
            refused[r] = ~left & all_above;
        }
    }

    void turn_masks(const Test<T>& test, int64_t level) {
        if (test.is_prior) DM_EACH taken_[level * G + r] = refused_[level * G + r];
    }

    void down(const Test<T>& test, int64_t level) {
        Vec delta[G];
        answer(test, level, delta);
        if constexpr (Pairs) choose_gains(test, level, taken_ + level * G, false);
        const Vec c = all<T>(test.c), *from = P(level);
        Vec* to = P(level + 1);
        const T* u = points_of(test);
        for (int64_t q = 0; q < points(); ++q) {
            const Vec point = all<T>(u[q]);
            DM_EACH to[q * G + r] = fused<T>(delta[r], point, c) * from[q * G + r];
        }
    }

    void down_right(const Test<T>& test, int64_t level) {
        Vec delta[G];
        answer(test, level, delta);
        turn_masks(test, level);
        if constexpr (Pairs) choose_gains(test, level, taken_ + level * G, true);
        const Vec rest = all<T>(1 - test.c), *from = P(level);
        Vec* to = P(level + 1);
        const T* u = points_of(test);
        for (int64_t q = 0; q < points(); ++q) {
            const Vec point = all<T>(-u[q]);
            DM_EACH to[q * G + r] = fused<T>(delta[r], point, rest) * from[q * G + r];
        }
    }

    void turn(const Test<T>& test, int64_t level) {
        turn_masks(test, level);
        if constexpr (Pairs) choose_gains(test, level, taken_ + level * G, true);
        const Vec* from = P(level);
        Vec* to = P(level + 1);
        for (int64_t i = 0; i < points() * G; ++i) to[i] = from[i] - to[i];
    }

    template <typename Left, typename Right>
    void up(const Step& step, const Test<T>& test, const Left& left, const Right& right) {
        if constexpr (Pairs)
            up_pairs(step, test, left, right);
        else if (test.prior < 0)
            up_as<true>(step, test, left, right);
        else
            up_as<false>(step, test, left, right);
    }

    template <bool First, typename Left, typename Right>
    void up_as(const Step& step, const Test<T>& test, const Left& left, const Right& right) {
        const Vec c = all<T>(test.c), *from = P(step.level);
        Vec* to = slot(step.to);
        Vec delta[G];  // not where a store could change it
        DM_EACH delta[r] = delta_[step.level * G + r];
        const T *u = First ? tree_.y : tree_.tables + test.table, *b = u + points();
        Vec sum[G]{};
        for (int64_t q = 0; q < points(); ++q) {
            const Vec point = all<T>(u[q]), factor = First ? Vec{} : all<T>(b[q]);
            DM_EACH {
                const Vec low = right.at(q, r), D = left.at(q, r) - low, P = from[q * G + r];
                sum[r] = fused<T>(First ? P : P * factor, D, sum[r]);
                to[q * G + r] = fused<T>(fused<T>(delta[r], point, c), D, low);
            }
        }
        DM_EACH add(test.slot, r, delta[r], sum[r]);
    }

    template <typename Left, typename Right>
    void up_pairs(const Step& step, const Test<T>& test, const Left& left, const Right& right) {
        const Vec c = all<T>(test.c), *from = P(step.level);
        Vec *to = slot(step.to), delta[G], held[held_points() * G];
        DM_EACH delta[r] = delta_[step.level * G + r];
        Vec* terms = N ? held : terms_;
        const T *u = points_of(test), *b = u + points();
        for (int64_t q = 0; q < points(); ++q) {
            const Vec point = all<T>(u[q]), factor = all<T>(b[q]);
            DM_EACH {
                const Vec low = right.at(q, r), D = left.at(q, r) - low;
                terms[q * G + r] = from[q * G + r] * factor * (delta[r] * D);
                to[q * G + r] = fused<T>(fused<T>(delta[r], point, c), D, low);
            }
        }
        add_terms(test, terms);
    }

    void add_terms(const Test<T>& test, const Vec* terms) {
        add_phi(test.slot, terms);
        const AboveList list = above_of(test);
        for (const Above* above = list.first; above < list.end; ++above)
            add_pair(above->pair, terms, gains(above->level));
    }

    struct AboveList {
        const Above *first, *end;
    };
    AboveList above_of(const Test<T>& test) const {
        const int32_t* start = tree_.above_start + (&test - tree_.tests);
        return {tree_.above + start[0], tree_.above + start[1]};
    }
    void add_phi(int64_t slot, const Vec* terms) {
        Vec* phi = phi_ + slot * G;
        DM_EACH {
            Vec sum = phi[r];
            for (int64_t q = 0; q < points(); ++q) sum = sum + terms[q * G + r];
            phi[r] = sum;
        }
    }
    void add_pair(int64_t number, const Vec* terms, const Vec* gain) {
        Vec* pair = pairs_ + number * G;
        DM_EACH {
            Vec sum = pair[r];
            for (int64_t q = 0; q < points(); ++q)
                sum = fused<T>(terms[q * G + r], gain[q * G + r], sum);
            pair[r] = sum;
        }
    }

    // g of the test's feature, for what stands below on this side.
    void choose_gains(const Test<T>& test, int64_t level, const Chosen<T>* taken, bool is_right) {
        const T* own = tree_.gains + test.gain + (is_right ? points() : 0);
        Vec* to = gains(level);
        for (int64_t q = 0; q < points(); ++q) {
            const Vec gain = all<T>(own[q]), loss = all<T>(tree_.loss[q]);
            DM_EACH to[q * G + r] = either<T>(taken[r], gain, loss);
        }
    }

    void two_leaves(const Step& step, const Test<T>& test) {
        Vec delta[G];
        answer(test, step.level, delta);
        const T right = value(test.right), D = value(test.left) - right;
        if constexpr (Pairs)
            return up_pairs(step, test, Leaf{all<T>(value(test.left))}, Leaf{all<T>(right)});
        const Vec start = all<T>(right + test.c * D), height = all<T>(D), *from = P(step.level);
        Vec* to = slot(step.to);
        Vec sum[G]{}, slope[G];
        DM_EACH slope[r] = delta[r] * height;
        if (test.prior < 0) {
            for (int64_t q = 0; q < points(); ++q) {
                const Vec point = all<T>(tree_.y[q]);
                DM_EACH {
                    sum[r] = sum[r] + from[q * G + r];
                    to[q * G + r] = fused<T>(slope[r], point, start);
                }
            }
        } else {
            const T *u = tree_.tables + test.table, *b = u + points();
            for (int64_t q = 0; q < points(); ++q) {
                const Vec point = all<T>(u[q]), factor = all<T>(b[q]);
                DM_EACH {
                    sum[r] = fused<T>(from[q * G + r], factor, sum[r]);
                    to[q * G + r] = fused<T>(slope[r], point, start);
                }
            }
        }
        DM_EACH add(test.slot, r, slope[r], sum[r]);
    }

    // A side of a low test: start + slope * u, where it is a test of leaves; else its value.
    struct Low {
        T gain, loss, start;  // the slope of rows that go left, and of others
        const Test<T>* test;
        const T *u, *b;
        const Chosen<T>* path;  // rows that take the path at the tests of its feature above
    };
    template <bool IsTest>
    Low low(int32_t child, int64_t level, const Chosen<T>* of_side) const {
        if (!IsTest) return {0, 0, value(child), nullptr, nullptr, nullptr, nullptr};
        const Test<T>& test = tree_.tests[child];
        const T right = value(test.right), D = value(test.left) - right, mean = test.c * D;
        const T* u = points_of(test);
        return {D - mean,
                -mean,
                right + mean,
                &test,
                u,
                u + points(),
                test.prior < 0        ? always_
                : test.prior == level ? of_side
                                      : taken_ + test.prior * G};
    }
    Vec slope(const Low& low, int r) const {
        return either<T>(left_of<T>(z(*low.test, r), low.test->t), all<T>(low.gain),
                         all<T>(low.loss));
    }

    // Both children are leaves or tests of leaves, all of new features.
    template <bool Left, bool Right>
    void bottom(const Step& step, const Test<T>& test) {
        const Vec *from = P(step.level), c = all<T>(test.c);
        const Vec gain = all<T>(1 - test.c), loss = all<T>(-test.c);
        Vec* to = slot(step.to);
        const Low left = low<Left>(test.left, 0, nullptr),
                  right = low<Right>(test.right, 0, nullptr);
        const T gap_start = left.start - right.start;
        const Vec start = all<T>(gap_start);
        const Vec h0 = fused<T>(c, start, all<T>(right.start));
        DM_EACH {
            Vec zeroth{}, first{};
            for (int64_t q = 0; q < points(); ++q) {
                zeroth = zeroth + from[q * G + r];
                first = fused<T>(from[q * G + r], all<T>(tree_.y[q]), first);
            }
            const Vec delta = either<T>(left_of<T>(z(test, r), test.t), gain, loss);
            const Vec weight = fused<T>(delta, first, c * zeroth);
            Vec left_slope{}, right_slope{};
            if (Left) {
                left_slope = slope(left, r);
                add(left.test->slot, r, left_slope, weight);
            }
            if (Right) {
                right_slope = slope(right, r);
                add(right.test->slot, r, right_slope, zeroth - weight);
            }
            const Vec gap = left_slope - right_slope, h2 = delta * gap;
            add(test.slot, r, delta, fused<T>(gap, first, start * zeroth));
            const Vec h1 = fused<T>(delta, start, fused<T>(c, gap, right_slope));
            for (int64_t q = 0; q < points(); ++q) {
                const Vec point = all<T>(tree_.y[q]);
                to[q * G + r] = fused<T>(fused<T>(h2, point, h1), point, h0);
            }
        }
    }

    // The same by points: features may have been tested above.
    template <bool Left, bool Right>
    void low_tests(const Step& step, const Test<T>& test) {
        if constexpr (Pairs) return low_pairs<Left, Right>(step, test);
        const int64_t level = step.level;
        Chosen<T> taken[G], refused[G];
        const Chosen<T>* path = test.prior < 0 ? always_ : taken_ + test.prior * G;
        const Low left = low<Left>(test.left, level, taken);
        const Low right = low<Right>(test.right, level, refused);
        const Vec *from = P(level), c = all<T>(test.c);
        const Vec gain = all<T>(1 - test.c), loss = all<T>(-test.c);
        Vec* to = slot(step.to);
        const T *u = points_of(test), *b = u + points();
        DM_EACH {
            const Chosen<T> answer = left_of<T>(z(test, r), test.t), above = path[r];
            const Vec delta = only<T>(above, either<T>(answer, gain, loss));
            taken[r] = answer & above;
            refused[r] = ~answer & above;
            Vec left_slope{}, right_slope{}, sum{}, left_sum{}, right_sum{};
            if (Left) left_slope = only<T>(left.path[r], slope(left, r));
            if (Right) right_slope = only<T>(right.path[r], slope(right, r));
            for (int64_t q = 0; q < points(); ++q) {
                const Vec P = from[q * G + r], a = fused<T>(delta, all<T>(u[q]), c), left_P = a * P;
                Vec low = all<T>(right.start), high = all<T>(left.start);
                if (Right) {
                    right_sum = fused<T>(P - left_P, all<T>(right.b[q]), right_sum);
                    low = fused<T>(right_slope, all<T>(right.u[q]), low);
                }
                if (Left) {
                    left_sum = fused<T>(left_P, all<T>(left.b[q]), left_sum);
                    high = fused<T>(left_slope, all<T>(left.u[q]), high);
                }
                const Vec D = high - low;
                sum = fused<T>(P * all<T>(b[q]), D, sum);
                to[q * G + r] = fused<T>(a, D, low);
            }
            add(test.slot, r, delta, sum);
            if (Left) add(left.test->slot, r, left_slope, left_sum);
            if (Right) add(right.test->slot, r, right_slope, right_sum);
        }
    }

    // The same with interactions.
    template <bool Left, bool Right>
    void low_pairs(const Step& step, const Test<T>& test) {
        const int64_t level = step.level, n = points() * G;
        Chosen<T> taken[G], refused[G];
        const Chosen<T>* path = test.prior < 0 ? always_ : taken_ + test.prior * G;
        const Low left = low<Left>(test.left, level, taken);
        const Low right = low<Right>(test.right, level, refused);
        const Vec *from = P(level), c = all<T>(test.c);
        const Vec gain = all<T>(1 - test.c), loss = all<T>(-test.c);
        Vec *to = slot(step.to), held[3 * held_points() * G];
        Vec *terms = N ? held : terms_, *left_terms = terms + n, *right_terms = left_terms + n;
        const T *u = points_of(test), *b = u + points();
        DM_EACH {
            const Chosen<T> answer = left_of<T>(z(test, r), test.t), above = path[r];
            const Vec delta = only<T>(above, either<T>(answer, gain, loss));
            taken[r] = answer & above;
            refused[r] = ~answer & above;
            Vec left_slope{}, right_slope{};
            if (Left) left_slope = only<T>(left.path[r], slope(left, r));
            if (Right) right_slope = only<T>(right.path[r], slope(right, r));
            for (int64_t q = 0; q < points(); ++q) {
                const Vec P = from[q * G + r], a = fused<T>(delta, all<T>(u[q]), c), left_P = a * P;
                Vec low = all<T>(right.start), high = all<T>(left.start);
                if (Right) {
                    right_terms[q * G + r] = (P - left_P) * all<T>(right.b[q]) * right_slope;
                    low = fused<T>(right_slope, all<T>(right.u[q]), low);
                }
                if (Left) {
                    left_terms[q * G + r] = left_P * all<T>(left.b[q]) * left_slope;
                    high = fused<T>(left_slope, all<T>(left.u[q]), high);
                }
                const Vec D = high - low;
                terms[q * G + r] = P * all<T>(b[q]) * (delta * D);
                to[q * G + r] = fused<T>(a, D, low);
            }
        }
        add_phi(test.slot, terms);
        const AboveList list = above_of(test);
        for (const Above* above = list.first; above < list.end; ++above) {
            const Vec* gain = gains(above->level);
            Vec read[held_points() * G];  // once for three tests
            if (N) {
                for (int64_t i = 0; i < n; ++i) read[i] = gain[i];
                gain = read;
            }
            add_pair(above->pair, terms, gain);
            if (Left) add_pair(above->left, left_terms, gain);
            if (Right) add_pair(above->right, right_terms, gain);
        }
        if (Left) {
            choose_gains(test, level, taken, false);
            add_terms(*left.test, left_terms);
        }
        if (Right) {
            choose_gains(test, level, refused, true);
            add_terms(*right.test, right_terms);
        }
    }

    const Tree<T>& tree_;
    const Rows<T>& rows_;
    Vec* P_;
    Vec* H_;
    Vec* gains_;  // by level: g of the test's feature
    Vec* terms_;  // t of a test, and of those below that are done with it
    Vec* delta_;
    Chosen<T>* taken_;    // by level: the row takes the path so far, as far as its feature goes
    Chosen<T>* refused_;  // the same of the other side
    Chosen<T>* always_;
    const Vec* z_ = nullptr;
    Vec* phi_ = nullptr;
    Vec* pairs_ = nullptr;
    const T* values_ = nullptr;
};

#undef DM_EACH

}  // namespace
}  // namespace DM_TARGET
}  // namespace dm::shapley
