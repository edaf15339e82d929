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

// Rows of a group: kGroup vectors, which every step takes one after the other. It must stay 1:
// with more, the compiler fuses a * b + c * d one way for one vector and the other way for the
// next, and a row's last bit would depend on its place in the batch. Four would be a quarter
// faster.
#if defined(DM_SCALAR)
constexpr int kGroup = 1;
template <typename T>
using Native = T;
template <typename T>
using Mask = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
#else
constexpr int kGroup = 1;
template <typename T>
struct NativeOf {
    using Int = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    typedef T Type __attribute__((vector_size(kBytes)));
    typedef Int MaskType __attribute__((vector_size(kBytes)));
};
template <typename T>
using Native = typename NativeOf<T>::Type;
template <typename T>
using Mask = typename NativeOf<T>::MaskType;
#endif

#define DM_EACH for (int r = 0; r < kGroup; ++r)

template <typename T>
constexpr int kLanes = kGroup * (kBytes ? kBytes / static_cast<int>(sizeof(T)) : 1);

// A number in every lane. (x - 0 is x, and costs nothing; x + 0 is not always.)
template <typename T>
inline Native<T> all(T value) {
    return value - Native<T>{};
}

template <typename T>
inline Mask<T> goes_left(const Native<T>& z, T t, bool nan_left) {
#if defined(DM_SCALAR)
    return (nan_left ? !(z > t) : z <= t) ? -1 : 0;
#else
    if (nan_left) return ~(z > all<T>(t));
    return z <= all<T>(t);
#endif
}

// The value where the mask is set, else 0.
template <typename T>
inline Native<T> where(const Mask<T>& mask, const Native<T>& value) {
#if defined(DM_SCALAR)
    return mask ? value : T{0};
#else
    return reinterpret_cast<Native<T> >(mask & reinterpret_cast<Mask<T> >(value));
#endif
}

// N points; 0: as many as the tree says.
template <typename T, int N>
class Walk {
    using Vec = Native<T>;

public:
    Walk(const Tree<T>& tree, const Rows<T>& rows, void* scratch) : tree_(tree), rows_(rows) {
        const int64_t levels = tree.depth + 2;
        P_ = static_cast<Vec*>(scratch);
        H_ = P_ + levels * points() * kGroup;
        delta_ = H_ + 2 * levels * points() * kGroup;
        taken_ = reinterpret_cast<Mask<T>*>(delta_ + levels * kGroup);
        refused_ = taken_ + levels * kGroup;
        for (int64_t q = 0; q < points(); ++q) DM_EACH P_[q * kGroup + r] = all<T>(tree.weight[q]);
    }

    void run() {
        for (int64_t g = 0; g < rows_.n_groups; ++g)
            for (int64_t o = 0; o < tree_.width; ++o) run_group(g, o);
    }

private:
    int64_t points() const { return N ? N : tree_.n_points; }

    void run_group(int64_t g, int64_t o) {
        z_ = reinterpret_cast<const Vec*>(rows_.z) + g * rows_.n_columns * kGroup;
        const int64_t at = (g * rows_.n_outputs + tree_.output + o) * kGroup;
        phi_ = reinterpret_cast<Vec*>(rows_.phi) + at * rows_.n_slots;
        pairs_ = reinterpret_cast<Vec*>(rows_.pairs) + at * rows_.n_slots * rows_.n_slots;
        values_ = tree_.values + o;
        for (const Step *step = tree_.steps, *end = step + tree_.n_steps; step < end; ++step) {
            const Test<T>& test = tree_.tests[step->test];
            switch (step->op) {
                case Op::down: down(test, step->level); break;
                case Op::down_right: down_right(test, step->level); break;
                case Op::turn: turn(test, step->level); break;
                case Op::up:
                    up(*step, test, From{slot(2 * step->level + 1)},
                       From{slot(2 * step->level + 2)});
                    break;
                case Op::up_left:
                    up(*step, test, From{slot(2 * step->level + 2)},
                       Leaf{all<T>(value(test.right))});
                    break;
                case Op::up_right:
                    up(*step, test, Leaf{all<T>(value(test.left))},
                       From{slot(2 * step->level + 2)});
                    break;
                case Op::two_leaves: two_leaves(*step, test); break;
                case Op::bottom: bottom(*step, test); break;
            }
        }
    }

    // H of a child: of a test, by point; of a leaf, its value.
    struct From {
        const Vec* H;
        Vec at(int64_t q, int r) const { return H[q * kGroup + r]; }
    };
    struct Leaf {
        Vec value;
        Vec at(int64_t, int) const { return value; }
    };

    T value(int32_t child) const { return values_[~child * tree_.width]; }
    Vec* slot(int64_t i) { return H_ + i * points() * kGroup; }
    Vec* P(int64_t level) { return P_ + level * points() * kGroup; }
    const T* points_of(const Test<T>& test) const {
        return test.prior < 0 ? tree_.y : tree_.tables + test.table;
    }
    void add(int32_t slot, int r, const Vec& a, const Vec& b) {
        Vec& phi = phi_[slot * kGroup + r];
        phi = phi + a * b;
    }

    // o - c of every row, and the masks that tests of the same feature below, and interactions,
    // ask for.
    void answer(const Test<T>& test, int64_t level, Vec* delta) {
        const Vec* z = z_ + test.column * kGroup;
        const Vec one = all<T>(1), c = all<T>(test.c);
        const bool nan_left = test.nan_left;
        if (test.prior < 0 && !test.is_prior) {
            DM_EACH delta[r] = where<T>(goes_left<T>(z[r], test.t, nan_left), one) - c;
            return;
        }
        Mask<T>*taken = taken_ + level * kGroup, *refused = refused_ + level * kGroup;
        DM_EACH {
            const Mask<T> left = goes_left<T>(z[r], test.t, nan_left);
            delta[r] = where<T>(left, one) - c;
            taken[r] = left;
            refused[r] = ~left;
        }
        if (test.prior < 0) return;
        const Mask<T>* path = taken_ + test.prior * kGroup;
        DM_EACH {
            delta[r] = where<T>(path[r], delta[r]);
            taken[r] &= path[r];
            refused[r] &= path[r];
        }
    }

    void turn_masks(const Test<T>& test, int64_t level) {
        if (test.is_prior) DM_EACH taken_[level * kGroup + r] = refused_[level * kGroup + r];
    }

    void down(const Test<T>& test, int64_t level) {
        Vec* delta = delta_ + level * kGroup;
        answer(test, level, delta);
        const Vec c = all<T>(test.c), *from = P(level);
        Vec* to = P(level + 1);
        const T* u = points_of(test);
        for (int64_t q = 0; q < points(); ++q) {
            const Vec point = all<T>(u[q]);
            DM_EACH to[q * kGroup + r] = (c + delta[r] * point) * from[q * kGroup + r];
        }
    }

    void down_right(const Test<T>& test, int64_t level) {
        Vec* delta = delta_ + level * kGroup;
        answer(test, level, delta);
        turn_masks(test, level);
        const Vec rest = all<T>(1 - test.c), *from = P(level);
        Vec* to = P(level + 1);
        const T* u = points_of(test);
        for (int64_t q = 0; q < points(); ++q) {
            const Vec point = all<T>(u[q]);
            DM_EACH to[q * kGroup + r] = (rest - delta[r] * point) * from[q * kGroup + r];
        }
    }

    void turn(const Test<T>& test, int64_t level) {
        turn_masks(test, level);
        const Vec* from = P(level);
        Vec* to = P(level + 1);
        for (int64_t i = 0; i < points() * kGroup; ++i) to[i] = from[i] - to[i];
    }

    template <typename Left, typename Right>
    void up(const Step& step, const Test<T>& test, const Left& left, const Right& right) {
        if (rows_.pairs) return up_pairs(step, test, left, right);
        const Vec *delta = delta_ + step.level * kGroup, c = all<T>(test.c), *from = P(step.level);
        Vec* to = slot(step.to);
        const T *u = points_of(test), *b = u + points();
        const bool is_first = test.prior < 0;
        Vec sum[kGroup]{};
        for (int64_t q = 0; q < points(); ++q) {
            const Vec point = all<T>(u[q]), factor = is_first ? all<T>(1) : all<T>(b[q]);
            DM_EACH {
                const Vec low = right.at(q, r), D = left.at(q, r) - low;
                const Vec weight = from[q * kGroup + r];
                sum[r] = sum[r] + (is_first ? weight : weight * factor) * D;
                to[q * kGroup + r] = low + (c + delta[r] * point) * D;
            }
        }
        DM_EACH add(test.slot, r, delta[r], sum[r]);
    }

    template <typename Left, typename Right>
    void up_pairs(const Step& step, const Test<T>& test, const Left& left, const Right& right) {
        const Vec *delta = delta_ + step.level * kGroup, c = all<T>(test.c), *from = P(step.level);
        Vec* to = slot(step.to);
        const T *u = points_of(test), *b = u + points();
        const bool is_first = test.prior < 0;
        Vec* terms = P(step.level + 1);  // of no more use below
        Vec sum[kGroup]{}, loss[kGroup]{}, half[kGroup];
        for (int64_t q = 0; q < points(); ++q) {
            const Vec point = all<T>(u[q]), losing = all<T>(tree_.loss[q]);
            const Vec factor = is_first ? all<T>(1) : all<T>(b[q]);
            DM_EACH {
                const Vec low = right.at(q, r), D = left.at(q, r) - low;
                const Vec weight = from[q * kGroup + r];
                const Vec term = (is_first ? weight : weight * factor) * D;
                sum[r] = sum[r] + term;
                loss[r] = loss[r] + term * losing;
                to[q * kGroup + r] = low + (c + delta[r] * point) * D;
                terms[q * kGroup + r] = term;
            }
        }
        DM_EACH {
            add(test.slot, r, delta[r], sum[r]);
            half[r] = delta[r] * all<T>(static_cast<T>(0.5));
        }
        const int64_t number = &test - tree_.tests;
        for (int32_t i = tree_.above_start[number]; i < tree_.above_start[number + 1]; ++i) {
            const Above& above = tree_.above[i];
            const T* gain = tree_.gains + above.gain;
            Vec gained[kGroup]{};
            for (int64_t q = 0; q < points(); ++q) {
                const Vec gaining = all<T>(gain[q]);
                DM_EACH gained[r] = gained[r] + terms[q * kGroup + r] * gaining;
            }
            const int64_t low = above.slot < test.slot ? above.slot : test.slot;
            const int64_t high = above.slot < test.slot ? test.slot : above.slot;
            Vec* pair = pairs_ + (low * rows_.n_slots + high) * kGroup;
            const Mask<T>* taken = taken_ + above.level * kGroup;
            DM_EACH pair[r] =
                pair[r] + half[r] * (loss[r] + where<T>(taken[r], gained[r] - loss[r]));
        }
    }

    void two_leaves(const Step& step, const Test<T>& test) {
        Vec* delta = delta_ + step.level * kGroup;
        answer(test, step.level, delta);
        const T right = value(test.right), D = value(test.left) - right;
        if (rows_.pairs)
            return up_pairs(step, test, Leaf{all<T>(value(test.left))}, Leaf{all<T>(right)});
        const Vec start = all<T>(right + test.c * D), height = all<T>(D), *from = P(step.level);
        Vec* to = slot(step.to);
        const T *u = points_of(test), *b = u + points();
        const bool is_first = test.prior < 0;
        Vec sum[kGroup]{}, slope[kGroup];
        DM_EACH slope[r] = delta[r] * height;
        for (int64_t q = 0; q < points(); ++q) {
            const Vec point = all<T>(u[q]), factor = is_first ? all<T>(1) : all<T>(b[q]);
            DM_EACH {
                const Vec weight = from[q * kGroup + r];
                sum[r] = sum[r] + (is_first ? weight : weight * factor);
                to[q * kGroup + r] = start + slope[r] * point;
            }
        }
        DM_EACH add(test.slot, r, slope[r], sum[r]);
    }

    // A side of a bottom test: its value as start + slope * y. A leaf has no slope.
    T line(int32_t child, const Vec* weight, Vec* slope) {
        if (child < 0) {
            DM_EACH slope[r] = Vec{};
            return value(child);
        }
        const Test<T>& test = tree_.tests[child];
        const T right = value(test.right), D = value(test.left) - right;
        const Vec height = all<T>(D), mean = all<T>(test.c * D), *z = z_ + test.column * kGroup;
        const bool nan_left = test.nan_left;
        DM_EACH {
            slope[r] = where<T>(goes_left<T>(z[r], test.t, nan_left), height) - mean;
            add(test.slot, r, slope[r], weight[r]);
        }
        return right + test.c * D;
    }

    void bottom(const Step& step, const Test<T>& test) {
        const Vec *from = P(step.level), c = all<T>(test.c), one = all<T>(1);
        const Vec* z = z_ + test.column * kGroup;
        const bool nan_left = test.nan_left;
        Vec zeroth[kGroup]{}, first[kGroup]{}, delta[kGroup], weight[kGroup], rest[kGroup];
        for (int64_t q = 0; q < points(); ++q) {
            const Vec point = all<T>(tree_.y[q]);
            DM_EACH {
                zeroth[r] = zeroth[r] + from[q * kGroup + r];
                first[r] = first[r] + from[q * kGroup + r] * point;
            }
        }
        DM_EACH {
            delta[r] = where<T>(goes_left<T>(z[r], test.t, nan_left), one) - c;
            weight[r] = c * zeroth[r] + delta[r] * first[r];
            rest[r] = zeroth[r] - weight[r];
        }
        Vec left[kGroup], right[kGroup], h1[kGroup], h2[kGroup];
        const T left_start = line(test.left, weight, left);
        const T right_start = line(test.right, rest, right);
        const Vec start = all<T>(left_start - right_start);
        DM_EACH {
            const Vec slope = left[r] - right[r];
            add(test.slot, r, delta[r], start * zeroth[r] + slope * first[r]);
            h1[r] = (right[r] + c * slope) + delta[r] * start;
            h2[r] = delta[r] * slope;
        }
        const Vec h0 = all<T>(right_start + test.c * (left_start - right_start));
        Vec* to = slot(step.to);
        for (int64_t q = 0; q < points(); ++q) {
            const Vec point = all<T>(tree_.y[q]);
            DM_EACH to[q * kGroup + r] = h0 + (h1[r] + h2[r] * point) * point;
        }
    }

    const Tree<T>& tree_;
    const Rows<T>& rows_;
    Vec* P_;
    Vec* H_;
    Vec* delta_;
    Mask<T>* taken_;    // by level: the row takes the path so far, as far as its feature goes
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
    using Vec = Native<T>;
    using Int = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    constexpr int n = kLanes<T>;
    Mask<T>* left = static_cast<Mask<T>*>(scratch);
    for (int64_t g = 0; g < rows.n_groups; ++g) {
        const Vec* z = reinterpret_cast<const Vec*>(rows.z) + g * rows.n_columns * kGroup;
        T* phi = rows.phi + g * rows.n_outputs * rows.n_slots * n;
        for (int64_t j = 0; j < tree.n_tests; ++j) {
            const Asked<T>& test = tree.tests[j];
            const bool nan_left = test.nan_left != 0;
            DM_EACH left[j * kGroup + r] =
                goes_left<T>(z[test.column * kGroup + r], test.t, nan_left);
        }
        for (int64_t i = 0; i < tree.n_cells; ++i) {
            const Cell<T>& cell = tree.cells[i];
            Mask<T> pattern[kGroup]{};
            const int32_t* start = tree.term_start + cell.first_bit;
            for (int32_t b = 0; b < cell.n_bits; ++b) {
                const Int value = Int{1} << b;
                const Term *term = tree.terms + start[b], *end = tree.terms + start[b + 1];
                Mask<T> bit[kGroup];
                DM_EACH bit[r] = left[term->test * kGroup + r] ^ static_cast<Int>(term->side);
                for (++term; term < end; ++term)
                    DM_EACH bit[r] &= left[term->test * kGroup + r] ^ static_cast<Int>(term->side);
                DM_EACH pattern[r] |= bit[r] & value;
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
