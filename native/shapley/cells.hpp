// Values that are looked up by the pattern of a few bits of a row, for G vectors of rows at a time.
//
// Compiled once for each target, within the kernels.
#pragma once

#include <algorithm>
#include <cstring>

#include "shapley/kernels.hpp"
#include "shapley/lanes.hpp"

namespace dm::shapley {
namespace DM_TARGET {
namespace {

#define DM_EACH for (int r = 0; r < G; ++r)

template <typename T, int G>
class LookUp {
    using Vec = Native<T>;
    using Int = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    static constexpr int n = kLanes<T>;

public:
    LookUp(const Cells<T>& tree, const Rows<T>& rows, void* scratch)
        : tree_(tree), rows_(rows), left_(static_cast<Mask<T>*>(scratch)) {}

    // Vectors from `first` on, while G are left; where it stopped.
    int64_t run(int64_t first) {
        for (; first + G <= rows_.n_vectors; first += G) {
            z_ = reinterpret_cast<const Vec*>(rows_.z) + first * rows_.n_reads;
            phi_ = reinterpret_cast<Vec*>(rows_.phi) + first * rows_.n_outputs * rows_.n_slots;
            if (tree_.is_symmetric) {
                symmetric();
                continue;
            }
            for (int64_t j = 0; j < tree_.n_tests; ++j)
                DM_EACH left_[j * G + r] = answer(tree_.tests[j], r);
            for (int64_t i = 0; i < tree_.n_cells; ++i) cell(tree_.cells[i]);
            for (int64_t i = 0; i < tree_.n_leaves; ++i) leaf(tree_.leaves[i]);
        }
        return first;
    }

private:
    Mask<T> answer(const Asked<T>& test, int r) const {
        return goes_left<T>(z_[test.read * G + r], test.t);
    }
    Vec& phi(int32_t place, int r) { return phi_[place * G + r]; }

    // Bit b is set where test b is answered to the right.
    void symmetric() {
        const Cell<T>& cell = tree_.cells[0];
        Mask<T> at[G]{};
        for (int32_t b = 0; b < cell.n_bits; ++b) {
            const Int value = static_cast<Int>(cell.n_values) << b;
            DM_EACH at[r] += ~answer(tree_.tests[b], r) & value;
        }
        add(cell, at);
    }

    void cell(const Cell<T>& cell) {
        Mask<T> at[G]{};
        for (int32_t b = 0; b < cell.n_bits; ++b) {
            Mask<T> has[G];
            bit(cell.first_bit + b, has);
            const Int value = static_cast<Int>(cell.n_values) << b;
            DM_EACH at[r] += has[r] & value;
        }
        add(cell, at);
    }

    // Which rows give every answer that the bit's terms ask for.
    void bit(int32_t number, Mask<T>* has) const {
        const Term *term = tree_.terms + tree_.term_start[number],
                   *end = tree_.terms + tree_.term_start[number + 1];
        DM_EACH has[r] = left_[term->test * G + r] ^ static_cast<Int>(term->side);
        for (++term; term < end; ++term)
            DM_EACH has[r] &= left_[term->test * G + r] ^ static_cast<Int>(term->side);
    }

    // `at`: where each lane's row of the table starts.
    void add(const Cell<T>& cell, const Mask<T>* at) {
        DM_EACH {
            alignas(64) Int starts[n];
            std::memcpy(starts, at + r, sizeof starts);
            const T* from[n];
            for (int lane = 0; lane < n; ++lane) from[lane] = cell.table + starts[lane];
            for (int32_t v = 0; v < cell.n_values; v += kAtOnce) {
                Vec found[kAtOnce];
                turned(from, v, found);
                const int32_t many = std::min(cell.n_values - v, kAtOnce);
                if (many == kAtOnce)
                    for (int32_t k = 0; k < kAtOnce; ++k) phi(cell.places[v + k], r) += found[k];
                else
                    for (int32_t k = 0; k < many; ++k) phi(cell.places[v + k], r) += found[k];
            }
        }
    }

    // From v on, kAtOnce values of every lane's row of a table, by value.
#if defined(__AVX2__) && !defined(DM_SCALAR)
    static constexpr int32_t kAtOnce = sizeof(T) == 8 ? 4 : 1;
#else
    static constexpr int32_t kAtOnce = 1;
#endif
    static void turned(const T* const* from, int32_t v, Vec* found) {
#if defined(__AVX512F__) && !defined(DM_SCALAR)
        if constexpr (sizeof(T) == 8) {
            const auto two = [&](int lane) {
                return _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_loadu_pd(from[lane] + v)),
                                          _mm256_loadu_pd(from[lane + 4] + v), 1);
            };
            const __m512d a = two(0), b = two(1), c = two(2), d = two(3);
            const __m512d ab0 = _mm512_unpacklo_pd(a, b), ab1 = _mm512_unpackhi_pd(a, b);
            const __m512d cd0 = _mm512_unpacklo_pd(c, d), cd1 = _mm512_unpackhi_pd(c, d);
            const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
            const __m512i high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
            found[0] = (Vec)_mm512_permutex2var_pd(ab0, low, cd0);
            found[1] = (Vec)_mm512_permutex2var_pd(ab1, low, cd1);
            found[2] = (Vec)_mm512_permutex2var_pd(ab0, high, cd0);
            found[3] = (Vec)_mm512_permutex2var_pd(ab1, high, cd1);
            return;
        }
#elif defined(__AVX2__) && !defined(DM_SCALAR)
        if constexpr (sizeof(T) == 8) {
            const __m256d a = _mm256_loadu_pd(from[0] + v), b = _mm256_loadu_pd(from[1] + v);
            const __m256d c = _mm256_loadu_pd(from[2] + v), d = _mm256_loadu_pd(from[3] + v);
            const __m256d ab0 = _mm256_unpacklo_pd(a, b), ab1 = _mm256_unpackhi_pd(a, b);
            const __m256d cd0 = _mm256_unpacklo_pd(c, d), cd1 = _mm256_unpackhi_pd(c, d);
            found[0] = (Vec)_mm256_permute2f128_pd(ab0, cd0, 0x20);
            found[1] = (Vec)_mm256_permute2f128_pd(ab1, cd1, 0x20);
            found[2] = (Vec)_mm256_permute2f128_pd(ab0, cd0, 0x31);
            found[3] = (Vec)_mm256_permute2f128_pd(ab1, cd1, 0x31);
            return;
        }
#endif
        alignas(64) T values[n];
        for (int lane = 0; lane < n; ++lane) values[lane] = from[lane][v];
        std::memcpy(found, values, sizeof values);
    }

    // A number of a table for each lane.
    static Vec of(const T* table, const Mask<T>& at) {
#if defined(__AVX512F__) && !defined(DM_SCALAR)
        if constexpr (sizeof(T) == 8)
            return (Vec)_mm512_i64gather_pd((__m512i)at, table, 8);
        else
            return (Vec)_mm512_i32gather_ps((__m512i)at, table, 4);
#else
        alignas(64) Int numbers[n];
        std::memcpy(numbers, &at, sizeof numbers);
#if defined(__AVX2__) && !defined(DM_SCALAR)
        if constexpr (sizeof(T) == 8)
            return Vec{table[numbers[0]], table[numbers[1]], table[numbers[2]], table[numbers[3]]};
#endif
        alignas(64) T values[n];
        Vec found;
        for (int lane = 0; lane < n; ++lane) values[lane] = table[numbers[lane]];
        std::memcpy(&found, values, sizeof found);
        return found;
#endif
    }

    // See LeafCell.
    void leaf(const LeafCell<T>& leaf) {
        Mask<T> has[kMostLeafBits][G], pattern[G]{};
        for (int32_t b = 0; b < leaf.n_bits; ++b) {
            bit(leaf.first_bit + b, has[b]);
            const Int value = Int{1} << b;
            DM_EACH pattern[r] |= has[b][r] & value;
        }
        const int64_t size = int64_t{1} << leaf.n_bits;
        const T *gain = leaf.table, *loss = gain + size, *without = loss + size;
        DM_EACH {
            const Vec lost = of(loss, pattern[r]), gained = of(gain, pattern[r]) + lost;
            for (int32_t b = 0; b < leaf.n_bits; ++b) {
                const Vec other = of(without, pattern[r] & ~(Int{1} << b));
                const Vec share = where<T>(has[b][r], gained - other) - lost;
                for (int32_t o = 0; o < leaf.n_outputs; ++o) {
                    Vec& to = phi(leaf.places[b * leaf.n_outputs + o], r);
                    to = fused<T>(share, all<T>(leaf.values[o]), to);
                }
            }
        }
    }

    const Cells<T>& tree_;
    const Rows<T>& rows_;
    Mask<T>* left_;
    const Vec* z_ = nullptr;
    Vec* phi_ = nullptr;
};

#undef DM_EACH

}  // namespace
}  // namespace DM_TARGET
}  // namespace dm::shapley
