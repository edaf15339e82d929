// Shapley values by paths, compiled once for each target.
#include "shapley/kernels.hpp"

#include <cstring>
#include <type_traits>

namespace dm::shapley {
namespace DM_TARGET {
namespace {

#if defined(DM_SCALAR)
constexpr int kBytes = 0;  // no vectors: one row after the other
#elif defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

// Two vectors side by side: one by itself would wait for its own results. As a number of rows, one
// number for each; with a mask of as many.
#if defined(DM_SCALAR)
constexpr int kPack = 1;
template <typename T>
using Native = T;
template <typename T>
using NativeMask = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
#else
constexpr int kPack = 2;
template <typename T>
struct NativeOf {
    using Int = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    typedef T Type __attribute__((vector_size(kBytes)));
    typedef Int Mask __attribute__((vector_size(kBytes)));
};
template <typename T>
using Native = typename NativeOf<T>::Type;
template <typename T>
using NativeMask = typename NativeOf<T>::Mask;
#endif

#define DM_EACH for (int r = 0; r < kPack; ++r)

template <typename T>
struct Mask {
    NativeMask<T> v[kPack];

    Mask operator~() const {
        Mask found;
        DM_EACH found.v[r] = ~v[r];
        return found;
    }
    Mask operator&(const Mask& other) const {
        Mask found;
        DM_EACH found.v[r] = v[r] & other.v[r];
        return found;
    }
};

template <typename T>
struct Pack {
    using V = Native<T>;
    V v[kPack];

    Pack() = default;
    Pack(T value) { DM_EACH v[r] = V{} + value; }
    Pack& operator+=(const Pack& b) {
        DM_EACH v[r] += b.v[r];
        return *this;
    }
    friend Pack operator+(const Pack& a, const Pack& b) {
        Pack found;
        DM_EACH found.v[r] = a.v[r] + b.v[r];
        return found;
    }
    friend Pack operator-(const Pack& a, const Pack& b) {
        Pack found;
        DM_EACH found.v[r] = a.v[r] - b.v[r];
        return found;
    }
    friend Pack operator*(const Pack& a, const Pack& b) {
        Pack found;
        DM_EACH found.v[r] = a.v[r] * b.v[r];
        return found;
    }
};

template <typename T>
constexpr int kLanes = kPack * (kBytes ? kBytes / static_cast<int>(sizeof(T)) : 1);

template <typename T>
Mask<T> goes_left(const Pack<T>& z, T t, bool nan_left) {
    Mask<T> found;
#if defined(DM_SCALAR)
    found.v[0] = (nan_left ? !(z.v[0] > t) : z.v[0] <= t) ? -1 : 0;
#else
    const Native<T> bound = Native<T>{} + t;
    if (nan_left)
        DM_EACH found.v[r] = ~(z.v[r] > bound);
    else
        DM_EACH found.v[r] = z.v[r] <= bound;
#endif
    return found;
}

// The value where the mask is set, else 0.
template <typename T>
Pack<T> where(const Mask<T>& mask, const Pack<T>& value) {
    Pack<T> found;
#if defined(DM_SCALAR)
    found.v[0] = mask.v[0] ? value.v[0] : T{0};
#else
    DM_EACH found.v[r] =
        reinterpret_cast<Native<T>>(mask.v[r] & reinterpret_cast<NativeMask<T>>(value.v[r]));
#endif
    return found;
}

// N points; 0: as many as the tree says.
template <typename T, int N>
class Walk {
    using Vec = Pack<T>;

public:
    Walk(const Tree<T>& tree, const Rows<T>& rows, void* scratch) : tree_(tree), rows_(rows) {
        const int64_t levels = tree.depth + 2;
        P_ = static_cast<Vec*>(scratch);
        H_ = P_ + levels * points();
        delta_ = H_ + 2 * levels * points();
        taken_ = reinterpret_cast<Mask<T>*>(delta_ + levels);
        refused_ = taken_ + levels;
        for (int64_t q = 0; q < points(); ++q) P_[q] = Vec(tree.weight[q]);
    }

    void run() {
        for (int64_t g = 0; g < rows_.n_groups; ++g)
            for (int64_t o = 0; o < tree_.width; ++o) run_group(g, o);
    }

private:
    int64_t points() const { return N ? N : tree_.n_points; }

    void run_group(int64_t g, int64_t o) {
        z_ = reinterpret_cast<const Vec*>(rows_.z) + g * rows_.n_columns;
        const int64_t at = g * rows_.n_outputs + tree_.output + o;
        phi_ = reinterpret_cast<Vec*>(rows_.phi) + at * rows_.n_slots;
        pairs_ = reinterpret_cast<Vec*>(rows_.pairs) + at * rows_.n_slots * rows_.n_slots;
        values_ = tree_.values + o;
        for (int64_t i = 0; i < tree_.n_steps; ++i) {
            const Step& step = tree_.steps[i];
            const Test<T>& test = tree_.tests[step.test];
            const int64_t level = step.level;
            switch (step.op) {
                case Op::down: down(test, level); break;
                case Op::down_right: down_right(test, level); break;
                case Op::turn: turn(test, level); break;
                case Op::up:
                    up(
                        step, test, [&](int64_t q) { return slot(2 * level + 1)[q]; },
                        [&](int64_t q) { return slot(2 * level + 2)[q]; });
                    break;
                case Op::up_left: {
                    const Vec right(value(test.right));
                    up(
                        step, test, [&](int64_t q) { return slot(2 * level + 2)[q]; },
                        [&](int64_t) { return right; });
                    break;
                }
                case Op::up_right: {
                    const Vec left(value(test.left));
                    up(
                        step, test, [&](int64_t) { return left; },
                        [&](int64_t q) { return slot(2 * level + 2)[q]; });
                    break;
                }
                case Op::two_leaves: two_leaves(step, test); break;
                case Op::bottom: bottom(step, test); break;
            }
        }
    }

    T value(int32_t child) const { return values_[~child * tree_.width]; }
    Vec* slot(int64_t i) { return H_ + i * points(); }
    Vec* P(int64_t level) { return P_ + level * points(); }

    // o - c, and the masks that tests of the same feature below, and interactions, ask for.
    Vec answer(const Test<T>& test, int64_t level) {
        const Mask<T> left = goes_left(z_[test.column], test.t, test.nan_left);
        Vec delta = where(left, Vec(1)) - Vec(test.c);
        if (test.prior >= 0) {
            const Mask<T> path = taken_[test.prior];
            delta = where(path, delta);
            taken_[level] = left & path;
            refused_[level] = ~left & path;
        } else if (test.is_prior) {
            taken_[level] = left;
            refused_[level] = ~left;
        }
        return delta;
    }

    void down(const Test<T>& test, int64_t level) {
        const Vec delta = answer(test, level), c(test.c), *from = P(level);
        Vec* to = P(level + 1);
        delta_[level] = delta;
        const T* u = points_of(test);
        for (int64_t q = 0; q < points(); ++q) to[q] = (c + delta * Vec(u[q])) * from[q];
    }

    void down_right(const Test<T>& test, int64_t level) {
        const Vec delta = answer(test, level), c(1 - test.c), *from = P(level);
        Vec* to = P(level + 1);
        delta_[level] = delta;
        if (test.is_prior) taken_[level] = refused_[level];
        const T* u = points_of(test);
        for (int64_t q = 0; q < points(); ++q) to[q] = (c - delta * Vec(u[q])) * from[q];
    }

    void turn(const Test<T>& test, int64_t level) {
        const Vec* from = P(level);
        Vec* to = P(level + 1);
        if (test.is_prior) taken_[level] = refused_[level];
        for (int64_t q = 0; q < points(); ++q) to[q] = from[q] - to[q];
    }

    const T* points_of(const Test<T>& test) const {
        return test.prior < 0 ? tree_.y : tree_.tables + test.table;
    }

    template <typename Left, typename Right>
    void up(const Step& step, const Test<T>& test, const Left& left, const Right& right) {
        if (rows_.pairs) return up_pairs(step, test, left, right);
        const Vec delta = delta_[step.level], c(test.c), *from = P(step.level);
        Vec* to = slot(step.to);
        const T* u = points_of(test);
        Vec sum(0);
        if (test.prior < 0) {
            for (int64_t q = 0; q < points(); ++q) {
                const Vec low = right(q), D = left(q) - low;
                sum = sum + from[q] * D;
                to[q] = low + (c + delta * Vec(u[q])) * D;
            }
        } else {
            const T* b = u + points();
            for (int64_t q = 0; q < points(); ++q) {
                const Vec low = right(q), D = left(q) - low;
                sum = sum + (from[q] * Vec(b[q])) * D;
                to[q] = low + (c + delta * Vec(u[q])) * D;
            }
        }
        add(test.slot, delta, sum);
    }

    void add(int32_t slot, const Vec& a, const Vec& b) { phi_[slot] = phi_[slot] + a * b; }

    template <typename Left, typename Right>
    void up_pairs(const Step& step, const Test<T>& test, const Left& left, const Right& right) {
        const int64_t level = step.level;
        const Vec delta = delta_[level], c(test.c), *from = P(level);
        Vec* to = slot(step.to);
        const T* u = points_of(test);
        Vec* terms = P(level + 1);  // of no more use below
        Vec sum(0), loss(0);
        for (int64_t q = 0; q < points(); ++q) {
            const Vec low = right(q), D = left(q) - low;
            const Vec weight = test.prior < 0 ? from[q] : from[q] * Vec(u[points() + q]);
            const Vec term = weight * D;
            sum += term;
            loss = loss + term * Vec(tree_.loss[q]);
            to[q] = low + (c + delta * Vec(u[q])) * D;
            terms[q] = term;
        }
        add(test.slot, delta, sum);
        const Vec half = delta * Vec(static_cast<T>(0.5));
        const int64_t number = &test - tree_.tests;
        for (int32_t i = tree_.above_start[number]; i < tree_.above_start[number + 1]; ++i) {
            const Above& above = tree_.above[i];
            const T* gain = tree_.gains + above.gain;
            Vec gained(0);
            for (int64_t q = 0; q < points(); ++q) gained = gained + terms[q] * Vec(gain[q]);
            const int64_t low = above.slot < test.slot ? above.slot : test.slot;
            const int64_t high = above.slot < test.slot ? test.slot : above.slot;
            Vec& pair = pairs_[low * rows_.n_slots + high];
            pair = pair + half * (loss + where(taken_[above.level], gained - loss));
        }
    }

    void two_leaves(const Step& step, const Test<T>& test) {
        const int64_t level = step.level;
        const Vec delta = answer(test, level), *from = P(level);
        if (rows_.pairs) {
            delta_[level] = delta;
            const Vec left(value(test.left)), right(value(test.right));
            return up_pairs(step, test, [&](int64_t) { return left; },
                            [&](int64_t) { return right; });
        }
        const T right = value(test.right), D = value(test.left) - right;
        Vec* to = slot(step.to);
        const T* u = points_of(test);
        const Vec slope = delta * Vec(D), start(right + test.c * D);
        Vec sum(0);
        if (test.prior < 0) {
            for (int64_t q = 0; q < points(); ++q) {
                sum += from[q];
                to[q] = start + slope * Vec(u[q]);
            }
        } else {
            const T* b = u + points();
            for (int64_t q = 0; q < points(); ++q) {
                sum = sum + from[q] * Vec(b[q]);
                to[q] = start + slope * Vec(u[q]);
            }
        }
        add(test.slot, slope, sum);
    }

    // A side of a bottom test: its value as start + slope * y. Of a leaf the slope is 0.
    struct Line {
        T start;
        Vec slope;
    };

    Line line(int32_t child, const Vec& weight) {
        if (child < 0) return {value(child), Vec(0)};
        const Test<T>& test = tree_.tests[child];
        const T right = value(test.right), D = value(test.left) - right;
        const Mask<T> left = goes_left(z_[test.column], test.t, test.nan_left);
        const Vec slope = where(left, Vec(D)) - Vec(test.c * D);
        add(test.slot, slope, weight);
        return {right + test.c * D, slope};
    }

    void bottom(const Step& step, const Test<T>& test) {
        const Vec *from = P(step.level), c(test.c);
        Vec* to = slot(step.to);
        const T* y = tree_.y;
        const Mask<T> is_left = goes_left(z_[test.column], test.t, test.nan_left);
        const Vec delta = where(is_left, Vec(1)) - c;
        Vec zeroth = from[0], first = from[0] * Vec(y[0]);
        for (int64_t q = 1; q < points(); ++q) {
            zeroth += from[q];
            first = first + from[q] * Vec(y[q]);
        }
        const Vec weight = c * zeroth + delta * first;
        const Line left = line(test.left, weight), right = line(test.right, zeroth - weight);
        const T start = left.start - right.start;
        const Vec slope = left.slope - right.slope;
        add(test.slot, delta, Vec(start) * zeroth + slope * first);
        const Vec h0(right.start + test.c * start),
            h1 = (right.slope + c * slope) + delta * Vec(start), h2 = delta * slope;
        for (int64_t q = 0; q < points(); ++q) to[q] = h0 + (h1 + h2 * Vec(y[q])) * Vec(y[q]);
    }

    const Tree<T>& tree_;
    const Rows<T>& rows_;
    Vec* P_;
    Vec* H_;
    Vec* delta_;
    Mask<T>* taken_;    // by level: the row takes the path so far, as far as the level's feature goes
    Mask<T>* refused_;  // the same of the other side
    const Vec* z_ = nullptr;
    Vec* phi_ = nullptr;
    Vec* pairs_ = nullptr;
    const T* values_ = nullptr;
};

template <typename T>
void add_tree(const Tree<T>& tree, const Rows<T>& rows, void* scratch) {
    switch (tree.n_points) {
        case 1: return Walk<T, 1>(tree, rows, scratch).run();
        case 2: return Walk<T, 2>(tree, rows, scratch).run();
        case 3: return Walk<T, 3>(tree, rows, scratch).run();
        case 4: return Walk<T, 4>(tree, rows, scratch).run();
        case 5: return Walk<T, 5>(tree, rows, scratch).run();
        case 6: return Walk<T, 6>(tree, rows, scratch).run();
        case 7: return Walk<T, 7>(tree, rows, scratch).run();
        case 8: return Walk<T, 8>(tree, rows, scratch).run();
        default: return Walk<T, 0>(tree, rows, scratch).run();
    }
}

template <typename T>
void add_cells(const Cells<T>& tree, const Rows<T>& rows, void* scratch) {
    using Vec = Pack<T>;
    using Int = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    constexpr int n = kLanes<T>;
    Mask<T>* left = static_cast<Mask<T>*>(scratch);
    for (int64_t g = 0; g < rows.n_groups; ++g) {
        const Vec* z = reinterpret_cast<const Vec*>(rows.z) + g * rows.n_columns;
        T* phi = rows.phi + g * rows.n_outputs * rows.n_slots * n;
        for (int64_t j = 0; j < tree.n_tests; ++j) {
            const Asked<T>& test = tree.tests[j];
            left[j] = goes_left(z[test.column], test.t, test.nan_left != 0);
        }
        for (int64_t i = 0; i < tree.n_cells; ++i) {
            const Cell<T>& cell = tree.cells[i];
            Mask<T> pattern{};
            const int32_t* start = tree.term_start + cell.first_bit;
            for (int32_t b = 0; b < cell.n_bits; ++b) {
                const Int value = Int{1} << b;
                const Term *term = tree.terms + start[b], *end = tree.terms + start[b + 1];
                Mask<T> bit;
                DM_EACH bit.v[r] = left[term->test].v[r] ^ static_cast<Int>(term->side);
                for (++term; term < end; ++term)
                    DM_EACH bit.v[r] &= left[term->test].v[r] ^ static_cast<Int>(term->side);
                DM_EACH pattern.v[r] |= bit.v[r] & value;
            }
            alignas(64) Int numbers[n];
            std::memcpy(numbers, &pattern, sizeof numbers);
            const T* table[n];
            for (int lane = 0; lane < n; ++lane)
                table[lane] = cell.table + static_cast<int64_t>(numbers[lane]) * cell.n_values;
            for (int32_t v = 0; v < cell.n_values; ++v) {
                T* to = phi + cell.places[v] * n;
                for (int lane = 0; lane < n; ++lane) to[lane] += table[lane][v];
            }
        }
    }
}

// With u the features that a background row misses and o those that the row has, a feature in o
// gains the integral of y^(|u| - 1) (1 - y)^(d - |o|) over the u within o that hold it, and one
// outside o loses that of y^|u| (1 - y)^(d - |o| - 1) over all u within o: sums over subsets.
void leaf_table(const LeafGame& game, double* scratch, double* out) {
    const int64_t d = game.n_bits, size = int64_t{1} << d;
    double *Z = scratch, *share = scratch + size;
    for (int64_t i = 0; i < d * size; ++i) out[i] = 0;
    for (int64_t q = 0; q < game.n_points; ++q) {
        const double y = game.y[q], rest = 1 - y;
        Z[0] = 1;
        share[0] = game.weight[q] / y;
        for (int64_t i = 0; i < d; ++i) share[0] *= rest;
        for (int64_t half = 1; half < size; half *= 2)
            for (int64_t o = 0; o < half; ++o) {
                Z[half + o] = Z[o] * y;
                share[half + o] = share[o] / rest;
            }
        for (int64_t u = 0; u < size; ++u) Z[u] *= game.missed[u];
        for (int64_t half = 1; half < size; half *= 2)
            for (int64_t o = 0; o < size; o += 2 * half)
                for (int64_t k = 0; k < half; ++k) Z[o + half + k] += Z[o + k];
        const double loss = y / rest;
        for (int64_t i = 0; i < d; ++i) {
            const int64_t half = int64_t{1} << i;
            double* own = out + i * size;
            for (int64_t o = 0; o < size; o += 2 * half)
                for (int64_t k = o; k < o + half; ++k) {
                    own[k] -= loss * share[k] * Z[k];
                    own[k + half] += share[k + half] * (Z[k + half] - Z[k]);
                }
        }
    }
}

}  // namespace

const Kernels kernels = {DM_NAME(DM_TARGET),
                         {kLanes<double>, &add_tree<double>, &add_cells<double>},
                         {kLanes<float>, &add_tree<float>, &add_cells<float>},
                         &leaf_table};

}  // namespace DM_TARGET
}  // namespace dm::shapley
