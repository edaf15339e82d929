// Shapley values by paths, compiled once for each target.
#include "shapley/kernels.hpp"

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

// Lanes of T, and masks of as many.
template <typename T>
struct Lanes {
#if defined(DM_SCALAR)
    static constexpr int n = 1;
    using Vec = T;
    using Mask = int32_t;
    static Mask at_most(T z, T t) { return z <= t ? -1 : 0; }
    static Mask above(T z, T t) { return z > t ? -1 : 0; }
#else
    static constexpr int n = kBytes / static_cast<int>(sizeof(T));
    using Int = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    typedef T Vec __attribute__((vector_size(sizeof(T) * n)));
    typedef Int Mask __attribute__((vector_size(sizeof(T) * n)));
    static Mask at_most(Vec z, T t) { return z <= Vec{} + t; }
    static Mask above(Vec z, T t) { return z > Vec{} + t; }
#endif
    static Mask goes_left(Vec z, T t, bool nan_left) {
        return nan_left ? ~above(z, t) : at_most(z, t);
    }
    static Vec choose(Mask m, Vec a, Vec b) { return m ? a : b; }
};

template <typename V>
auto lane_of(const V& v, int lane) {
    if constexpr (std::is_arithmetic_v<V>)
        return v;
    else
        return v[lane];
}

template <typename V, typename T>
void set_lane(V& v, int lane, T value) {
    if constexpr (std::is_arithmetic_v<V>)
        v = value;
    else
        v[lane] = value;
}

// N points; 0: as many as the tree says.
template <typename T, int N>
class Walk {
    using L = Lanes<T>;
    using Vec = typename L::Vec;
    using Mask = typename L::Mask;

public:
    Walk(const Tree<T>& tree, const Rows<T>& rows, void* scratch) : tree_(tree), rows_(rows) {
        const int64_t levels = tree.depth + 2;
        P_ = static_cast<Vec*>(scratch);
        H_ = P_ + levels * points();
        delta_ = H_ + 2 * levels * points();
        taken_ = reinterpret_cast<Mask*>(delta_ + levels);
        refused_ = taken_ + levels;
        for (int64_t q = 0; q < points(); ++q) P_[q] = Vec{} + tree.weight[q];
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
                case Op::turn: turn(level); break;
                case Op::up:
                    up(
                        step, test, [&](int64_t q) { return slot(2 * level + 1)[q]; },
                        [&](int64_t q) { return slot(2 * level + 2)[q]; });
                    break;
                case Op::up_left: {
                    const Vec right = Vec{} + value(test.right);
                    up(
                        step, test, [&](int64_t q) { return slot(2 * level + 2)[q]; },
                        [&](int64_t) { return right; });
                    break;
                }
                case Op::up_right: {
                    const Vec left = Vec{} + value(test.left);
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

    // o - c, and the masks that tests of the same feature below ask for.
    Vec answer(const Test<T>& test, int64_t level) {
        const Mask left = L::goes_left(z_[test.column], test.t, test.nan_left);
        const Vec c = Vec{} + test.c;
        Vec delta = L::choose(left, 1 - c, -c);
        Mask taken = left, refused = ~left;
        if (test.prior >= 0) {
            const Mask path = taken_[test.prior];
            delta = L::choose(path, delta, Vec{});
            taken &= path;
            refused &= path;
        }
        taken_[level] = taken;
        refused_[level] = refused;
        return delta;
    }

    void down(const Test<T>& test, int64_t level) {
        const Vec delta = answer(test, level), *from = P(level);
        Vec* to = P(level + 1);
        delta_[level] = delta;
        const T* u = points_of(test);
        for (int64_t q = 0; q < points(); ++q) to[q] = (test.c + delta * u[q]) * from[q];
    }

    void down_right(const Test<T>& test, int64_t level) {
        const Vec delta = answer(test, level), *from = P(level);
        Vec* to = P(level + 1);
        delta_[level] = delta;
        taken_[level] = refused_[level];
        const T* u = points_of(test);
        for (int64_t q = 0; q < points(); ++q) to[q] = from[q] - (test.c + delta * u[q]) * from[q];
    }

    void turn(int64_t level) {
        const Vec* from = P(level);
        Vec* to = P(level + 1);
        taken_[level] = refused_[level];
        for (int64_t q = 0; q < points(); ++q) to[q] = from[q] - to[q];
    }

    const T* points_of(const Test<T>& test) const {
        return test.prior < 0 ? tree_.y : tree_.tables + test.table;
    }

    template <typename Left, typename Right>
    void up(const Step& step, const Test<T>& test, const Left& left, const Right& right) {
        if (rows_.pairs) return up_pairs(step, test, left, right);
        const Vec delta = delta_[step.level], *from = P(step.level);
        Vec* to = slot(step.to);
        const T* u = points_of(test);
        Vec sum{};
        if (test.prior < 0) {
            for (int64_t q = 0; q < points(); ++q) {
                const Vec low = right(q), D = left(q) - low;
                sum += from[q] * D;
                to[q] = low + (test.c + delta * u[q]) * D;
            }
        } else {
            const T* b = u + points();
            for (int64_t q = 0; q < points(); ++q) {
                const Vec low = right(q), D = left(q) - low;
                sum += from[q] * b[q] * D;
                to[q] = low + (test.c + delta * u[q]) * D;
            }
        }
        phi_[test.slot] += delta * sum;
    }

    template <typename Left, typename Right>
    void up_pairs(const Step& step, const Test<T>& test, const Left& left, const Right& right) {
        const int64_t level = step.level;
        const Vec delta = delta_[level], *from = P(level);
        Vec* to = slot(step.to);
        const T* u = points_of(test);
        Vec* terms = P(level + 1);  // of no more use below
        Vec sum{}, loss{};
        for (int64_t q = 0; q < points(); ++q) {
            const Vec low = right(q), D = left(q) - low;
            const Vec term = test.prior < 0 ? from[q] * D : from[q] * u[points() + q] * D;
            sum += term;
            loss += term * tree_.loss[q];
            to[q] = low + (test.c + delta * u[q]) * D;
            terms[q] = term;
        }
        phi_[test.slot] += delta * sum;
        const Vec half = delta * static_cast<T>(0.5);
        const int64_t number = &test - tree_.tests;
        for (int32_t i = tree_.above_start[number]; i < tree_.above_start[number + 1]; ++i) {
            const Above& above = tree_.above[i];
            const T* gain = tree_.gains + above.gain;
            Vec gained{};
            for (int64_t q = 0; q < points(); ++q) gained += terms[q] * gain[q];
            const int64_t low = above.slot < test.slot ? above.slot : test.slot;
            const int64_t high = above.slot < test.slot ? test.slot : above.slot;
            pairs_[low * rows_.n_slots + high] +=
                half * L::choose(taken_[above.level], gained, loss);
        }
    }

    void two_leaves(const Step& step, const Test<T>& test) {
        const int64_t level = step.level;
        if (rows_.pairs) {
            delta_[level] = answer(test, level);
            const Vec left = Vec{} + value(test.left), right = Vec{} + value(test.right);
            return up_pairs(
                step, test, [&](int64_t) { return left; }, [&](int64_t) { return right; });
        }
        const Vec delta = answer(test, level), *from = P(level);
        const T right = value(test.right), D = value(test.left) - right;
        Vec* to = slot(step.to);
        const T* u = points_of(test);
        const Vec slope = delta * D;
        const T start = right + test.c * D;
        Vec sum{};
        if (test.prior < 0) {
            for (int64_t q = 0; q < points(); ++q) {
                sum += from[q];
                to[q] = start + slope * u[q];
            }
        } else {
            const T* b = u + points();
            for (int64_t q = 0; q < points(); ++q) {
                sum += from[q] * b[q];
                to[q] = start + slope * u[q];
            }
        }
        phi_[test.slot] += slope * sum;
    }

    // A side of a bottom test: its value as start + slope * y.
    struct Line {
        Vec start, slope;
    };

    Line line(int32_t child, const Vec& weight) {
        if (child < 0) return {Vec{} + value(child), Vec{}};
        const Test<T>& test = tree_.tests[child];
        const Mask is_left = L::goes_left(z_[test.column], test.t, test.nan_left);
        const Vec c = Vec{} + test.c;
        const T right = value(test.right), D = value(test.left) - right;
        const Vec slope = L::choose(is_left, (1 - c) * D, -c * D);
        phi_[test.slot] += slope * weight;
        return {Vec{} + (right + test.c * D), slope};
    }

    void bottom(const Step& step, const Test<T>& test) {
        const Vec* from = P(step.level);
        Vec* to = slot(step.to);
        const T* y = tree_.y;
        const Mask is_left = L::goes_left(z_[test.column], test.t, test.nan_left);
        const Vec c = Vec{} + test.c;
        const Vec delta = L::choose(is_left, 1 - c, -c);
        Vec zeroth = from[0], first = from[0] * y[0];
        for (int64_t q = 1; q < points(); ++q) {
            zeroth += from[q];
            first += from[q] * y[q];
        }
        const Vec weight = c * zeroth + delta * first;
        const Line left = line(test.left, weight), right = line(test.right, zeroth - weight);
        const Vec start = left.start - right.start, slope = left.slope - right.slope;
        phi_[test.slot] += delta * (start * zeroth + slope * first);
        const Vec h0 = right.start + c * start, h1 = right.slope + c * slope + delta * start,
                  h2 = delta * slope;
        for (int64_t q = 0; q < points(); ++q) to[q] = h0 + (h1 + h2 * y[q]) * y[q];
    }

    const Tree<T>& tree_;
    const Rows<T>& rows_;
    Vec* P_;
    Vec* H_;
    Vec* delta_;
    Mask* taken_;    // by level: the row takes the path so far, as far as the level's feature goes
    Mask* refused_;  // the same of the other side
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
    using L = Lanes<T>;
    using Vec = typename L::Vec;
    using Mask = typename L::Mask;
    constexpr int n = L::n;
    Mask* left = static_cast<Mask*>(scratch);
    for (int64_t g = 0; g < rows.n_groups; ++g) {
        const Vec* z = reinterpret_cast<const Vec*>(rows.z) + g * rows.n_columns;
        Vec* phi = reinterpret_cast<Vec*>(rows.phi) + g * rows.n_outputs * rows.n_slots;
        for (int64_t j = 0; j < tree.n_tests; ++j) {
            const Asked<T>& test = tree.tests[j];
            left[j] = L::goes_left(z[test.column], test.t, test.nan_left != 0);
        }
        for (int64_t i = 0; i < tree.n_cells; ++i) {
            const Cell<T>& cell = tree.cells[i];
            Mask pattern{};
            for (int32_t b = 0; b < cell.n_bits; ++b) {
                const int32_t* start = tree.term_start + cell.first_bit + b;
                const Term* term = tree.terms + start[0];
                Mask bit = left[term->test] ^ (Mask{} + term->side);
                for (++term; term < tree.terms + start[1]; ++term)
                    bit &= left[term->test] ^ (Mask{} + term->side);
                pattern |= bit & (Mask{} + (1 << b));
            }
            if constexpr (n == 1) {
                const T* table = cell.table + static_cast<int64_t>(pattern) * cell.n_values;
                for (int32_t v = 0; v < cell.n_values; ++v) phi[cell.places[v]] += table[v];
            } else {
                const T* table[n];
                for (int lane = 0; lane < n; ++lane)
                    table[lane] =
                        cell.table + static_cast<int64_t>(lane_of(pattern, lane)) * cell.n_values;
                for (int32_t v = 0; v < cell.n_values; ++v) {
                    Vec found;
                    for (int lane = 0; lane < n; ++lane) set_lane(found, lane, table[lane][v]);
                    phi[cell.places[v]] += found;
                }
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
                         {Lanes<double>::n, &add_tree<double>, &add_cells<double>},
                         {Lanes<float>::n, &add_tree<float>, &add_cells<float>},
                         &leaf_table};

}  // namespace DM_TARGET
}  // namespace dm::shapley
