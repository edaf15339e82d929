// A tree's program of steps for one row, with points in the lanes of vectors.
//
// Every number comes from the operations of Walk in their order, so that a row alone has the bits
// that it has among others: sums over points are taken one by one. Compiled once for each target,
// within the kernels.
#pragma once

#include <cmath>
#include <cstring>

#include "shapley/kernels.hpp"
#include "shapley/lanes.hpp"
#include "shapley/steps.hpp"

namespace dm::shapley {
namespace DM_TARGET {
namespace {

// What `fused` is in each lane.
template <typename T>
inline T fused_one(T a, T b, T c) {
#if !defined(DM_SCALAR) && (defined(__FMA__) || defined(__aarch64__))
    return std::fma(a, b, c);
#else
    return a * b + c;
#endif
}

#define DM_EACH for (int64_t w = 0; w < vectors(); ++w)

// W vectors hold all points; 0: as many as the tree needs. Lanes behind the last point hold numbers
// that nothing reads.
template <typename T, int W>
class OneRow {
    using Vec = Native<T>;
    static constexpr int64_t n = kLanes<T>;

public:
    OneRow(const Tree<T>& tree, const Rows<T>& row, void* scratch)
        : tree_(tree), row_(row), n_points_(tree.n_points) {
        const int64_t levels = tree.depth + 2, size = vectors();
        P_ = static_cast<Vec*>(scratch);
        H_ = P_ + levels * size;
        D_ = H_ + levels * size;
        weighed_ = D_ + size;
        left_P_ = weighed_ + size;
        right_P_ = left_P_ + size;
        delta_ = reinterpret_cast<T*>(right_P_ + size);
        taken_ = reinterpret_cast<int32_t*>(delta_ + levels) + 1;
        taken_[-1] = 1;  // of a feature's first test
        refused_ = taken_ + levels;
        DM_EACH P_[w] = load(tree.weight, w);
    }

    void run() {
        for (int64_t o = 0; o < tree_.width; ++o) run_output(o);
    }

private:
    template <typename U, typename Walker>
    friend void take_steps(const Tree<U>& tree, Walker& walker);

    int64_t vectors() const { return W ? W : (n_points_ + n - 1) / n; }
    static Vec load(const T* from, int64_t w) {
        Vec found;
        std::memcpy(&found, from + w * n, sizeof found);
        return found;
    }

    void run_output(int64_t o) {
        phi_ = row_.phi + (tree_.output + o) * row_.n_slots;
        values_ = tree_.values + o;
        take_steps(tree_, *this);
    }

    struct From {
        const Vec* H;
        Vec at(int64_t w) const { return H[w]; }
    };
    struct Leaf {
        Vec value;
        Vec at(int64_t) const { return value; }
    };

    From test_at(int64_t at) { return {slot(at)}; }
    Leaf leaf(int32_t child) const { return {all<T>(value(child))}; }
    T value(int32_t child) const { return values_[~child * tree_.width]; }
    Vec* slot(int64_t i) { return H_ + i * vectors(); }
    Vec* P(int64_t level) { return P_ + level * vectors(); }
    const T* points_of(const Test<T>& test) const {
        return test.prior < 0 ? tree_.y : tree_.tables + test.table;
    }
    int32_t goes_left_at(const Test<T>& test) const { return row_.z[test.read] <= test.t; }
    // Looked up, not branched on: the processor would guess wrong at every other test.
    static T chosen(int32_t above, int32_t left, T yes, T no) {
        const T choices[] = {0, 0, no, yes};
        return choices[2 * above + left];
    }
    void add(int32_t slot, T a, T b) { phi_[slot] = fused_one<T>(a, b, phi_[slot]); }
    static const T* numbers(const Vec* of) { return reinterpret_cast<const T*>(of); }
    // The sum over points of a times b.
    T product(const T* a, const T* b) const {
        T sum = 0;
        for (int64_t q = 0; q < n_points_; ++q) sum = fused_one<T>(a[q], b[q], sum);
        return sum;
    }
    T sum(const Vec* of) const {
        T sum = 0;
        for (int64_t q = 0; q < n_points_; ++q) sum = sum + numbers(of)[q];
        return sum;
    }

    T answer(const Test<T>& test, int64_t level) {
        const int32_t left = goes_left_at(test), above = taken_[test.prior];
        taken_[level] = left & above;
        refused_[level] = ~left & above;
        return delta_[level] = chosen(above, left, 1 - test.c, -test.c);
    }

    void down(const Test<T>& test, int64_t level) {
        const Vec delta = all<T>(answer(test, level)), c = all<T>(test.c), *from = P(level);
        Vec* to = P(level + 1);
        const T* u = points_of(test);
        DM_EACH to[w] = fused<T>(delta, load(u, w), c) * from[w];
    }

    void down_right(const Test<T>& test, int64_t level) {
        const Vec delta = all<T>(answer(test, level)), rest = all<T>(1 - test.c), *from = P(level);
        taken_[level] = refused_[level];
        Vec* to = P(level + 1);
        const T* u = points_of(test);
        DM_EACH to[w] = fused<T>(delta, -load(u, w), rest) * from[w];
    }

    void turn(const Test<T>&, int64_t level) {
        taken_[level] = refused_[level];
        const Vec* from = P(level);
        Vec* to = P(level + 1);
        DM_EACH to[w] = from[w] - to[w];
    }

    template <typename Left, typename Right>
    void up(const Step& step, const Test<T>& test, const Left& left, const Right& right) {
        const T change = delta_[step.level];
        const Vec delta = all<T>(change), c = all<T>(test.c), *from = P(step.level);
        Vec* to = slot(step.to);
        const T *u = points_of(test), *b = u + n_points_;
        DM_EACH {
            const Vec low = right.at(w);
            D_[w] = left.at(w) - low;
            weighed_[w] = from[w] * load(b, w);
            to[w] = fused<T>(fused<T>(delta, load(u, w), c), D_[w], low);
        }
        add(test.slot, change, product(numbers(weighed_), numbers(D_)));
    }

    void two_leaves(const Step& step, const Test<T>& test) {
        const T right = value(test.right), D = value(test.left) - right;
        const T slope = answer(test, step.level) * D;
        const Vec start = all<T>(right + test.c * D), slopes = all<T>(slope), *from = P(step.level);
        Vec* to = slot(step.to);
        const T* u = points_of(test);
        DM_EACH to[w] = fused<T>(slopes, load(u, w), start);
        add(test.slot, slope, product(numbers(from), u + n_points_));
    }

    // As Walk::Low, of this row.
    struct Low {
        T slope, start;
        const Test<T>* test;
        const T *u, *b;
    };
    template <bool IsTest>
    Low low(int32_t child, int64_t level, int32_t of_side) const {
        if (!IsTest) return {0, value(child), nullptr, nullptr, nullptr};
        const Test<T>& test = tree_.tests[child];
        const T right = value(test.right), D = value(test.left) - right, mean = test.c * D;
        const T* u = points_of(test);
        const int32_t above = test.prior == level ? of_side : taken_[test.prior];
        return {chosen(above, goes_left_at(test), D - mean, -mean), right + mean, &test, u,
                u + n_points_};
    }

    template <bool Left, bool Right>
    void bottom(const Step& step, const Test<T>& test) {
        const Vec* from = P(step.level);
        Vec* to = slot(step.to);
        const Low left = low<Left>(test.left, -2, 0), right = low<Right>(test.right, -2, 0);
        const T start = left.start - right.start, c = test.c;
        const T delta = chosen(1, goes_left_at(test), 1 - c, -c);
        const T gap = left.slope - right.slope;
        const Vec h0 = all<T>(fused_one<T>(c, start, right.start)), h2 = all<T>(delta * gap);
        const Vec h1 = all<T>(fused_one<T>(delta, start, fused_one<T>(c, gap, right.slope)));
        DM_EACH {
            const Vec point = load(tree_.y, w);
            to[w] = fused<T>(fused<T>(h2, point, h1), point, h0);
        }
        const T zeroth = sum(from), first = product(numbers(from), tree_.y);
        const T weight = fused_one<T>(delta, first, c * zeroth);
        if (Left) add(left.test->slot, left.slope, weight);
        if (Right) add(right.test->slot, right.slope, zeroth - weight);
        add(test.slot, delta, fused_one<T>(gap, first, start * zeroth));
    }

    template <bool Left, bool Right>
    void low_tests(const Step& step, const Test<T>& test) {
        const int32_t answer = goes_left_at(test), above = taken_[test.prior];
        const Low left = low<Left>(test.left, step.level, answer & above);
        const Low right = low<Right>(test.right, step.level, ~answer & above);
        const T delta = chosen(above, answer, 1 - test.c, -test.c);
        const Vec *from = P(step.level), c = all<T>(test.c), deltas = all<T>(delta);
        const Vec left_slope = all<T>(left.slope), right_slope = all<T>(right.slope);
        Vec* to = slot(step.to);
        const T *u = points_of(test), *b = u + n_points_;
        DM_EACH {
            const Vec a = fused<T>(deltas, load(u, w), c), left_P = a * from[w];
            Vec low = all<T>(right.start), high = all<T>(left.start);
            if (Right) {
                right_P_[w] = from[w] - left_P;
                low = fused<T>(right_slope, load(right.u, w), low);
            }
            if (Left) {
                left_P_[w] = left_P;
                high = fused<T>(left_slope, load(left.u, w), high);
            }
            D_[w] = high - low;
            weighed_[w] = from[w] * load(b, w);
            to[w] = fused<T>(a, D_[w], low);
        }
        add(test.slot, delta, product(numbers(weighed_), numbers(D_)));
        if (Left) add(left.test->slot, left.slope, product(numbers(left_P_), left.b));
        if (Right) add(right.test->slot, right.slope, product(numbers(right_P_), right.b));
    }

    const Tree<T>& tree_;
    const Rows<T>& row_;
    int64_t n_points_;
    Vec *P_, *H_;
    Vec *D_, *weighed_, *left_P_, *right_P_;  // of the step at hand, by point
    T* delta_;                                // by level
    int32_t *taken_, *refused_;               // by level, see Walk
    T* phi_ = nullptr;
    const T* values_ = nullptr;
};

#undef DM_EACH

}  // namespace
}  // namespace DM_TARGET
}  // namespace dm::shapley
