// Values of the exit leaves added to the rows' sums, tree after tree, in the source's dtype.
//
// Included by kernels.cpp, once for each target. Always over a whole block.
#pragma once

namespace {

template <typename T>
inline T lesser(T a, T b) { return a < b || a != a ? a : b; }
template <typename T>
inline T greater(T a, T b) { return a > b || a != a ? a : b; }

template <typename Label, typename T>
void add_plain(const Label* labels, const T* values, Aggregate aggregate, T* sum) {
    if (aggregate == Aggregate::sum)
        for (int64_t i = 0; i < kBlockRows; ++i) sum[i] += values[labels[i]];
    else if (aggregate == Aggregate::min)
        for (int64_t i = 0; i < kBlockRows; ++i) sum[i] = lesser(sum[i], values[labels[i]]);
    else
        for (int64_t i = 0; i < kBlockRows; ++i) sum[i] = greater(sum[i], values[labels[i]]);
}

// Gathers are no faster than plain loads where microcode guards them, so none are used.

#if defined(__AVX512VBMI__) && !defined(DM_SCALAR)

// Up to 64 values, stored as planes of their bytes: a permute looks 64 rows up in each plane, and
// unpacking puts the bytes together. Unpacking works within quarters of a register, so the labels
// are first put in the order that makes the values come out in the rows'.
constexpr bool kSplits = true;

template <int Size>
struct Order {
    alignas(64) uint8_t row[64];
    constexpr Order() : row() {
        constexpr int each = 16 / Size;  // of one quarter of one register
        for (int p = 0; p < 64; ++p)
            row[p] = static_cast<uint8_t>(4 * each * (p % 16 / each) + each * (p / 16) + p % each);
    }
};
constexpr Order<4> kOrder4;
constexpr Order<8> kOrder8;

inline void add_few(const uint8_t* labels, const float* values, float* sum) {
    const uint8_t* planes = reinterpret_cast<const uint8_t*>(values);
    const __m512i order = _mm512_load_si512(kOrder4.row);
    __m512i plane[4];
    for (int i = 0; i < 4; ++i) plane[i] = _mm512_loadu_si512(planes + 64 * i);
    for (int64_t r = 0; r < kBlockRows; r += 64) {
        const __m512i at = _mm512_permutexvar_epi8(order, _mm512_loadu_si512(labels + r));
        __m512i byte[4], word[4], value[4];
        for (int i = 0; i < 4; ++i) byte[i] = _mm512_permutexvar_epi8(at, plane[i]);
        for (int i = 0; i < 2; ++i) {
            word[i] = _mm512_unpacklo_epi8(byte[2 * i], byte[2 * i + 1]);
            word[2 + i] = _mm512_unpackhi_epi8(byte[2 * i], byte[2 * i + 1]);
        }
        for (int i = 0; i < 2; ++i) {
            value[2 * i] = _mm512_unpacklo_epi16(word[2 * i], word[2 * i + 1]);
            value[2 * i + 1] = _mm512_unpackhi_epi16(word[2 * i], word[2 * i + 1]);
        }
        for (int i = 0; i < 4; ++i) {
            float* to = sum + r + 16 * i;
            _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), _mm512_castsi512_ps(value[i])));
        }
    }
}

inline void add_few(const uint8_t* labels, const double* values, double* sum) {
    const uint8_t* planes = reinterpret_cast<const uint8_t*>(values);
    const __m512i order = _mm512_load_si512(kOrder8.row);
    __m512i plane[8];
    for (int i = 0; i < 8; ++i) plane[i] = _mm512_loadu_si512(planes + 64 * i);
    for (int64_t r = 0; r < kBlockRows; r += 64) {
        const __m512i at = _mm512_permutexvar_epi8(order, _mm512_loadu_si512(labels + r));
        __m512i byte[8], word[8], half[8];
        for (int i = 0; i < 8; ++i) byte[i] = _mm512_permutexvar_epi8(at, plane[i]);
        for (int i = 0; i < 4; ++i) {
            word[i] = _mm512_unpacklo_epi8(byte[2 * i], byte[2 * i + 1]);
            word[4 + i] = _mm512_unpackhi_epi8(byte[2 * i], byte[2 * i + 1]);
        }
        for (int s = 0; s < 2; ++s)
            for (int i = 0; i < 2; ++i) {
                half[4 * s + i] = _mm512_unpacklo_epi16(word[4 * s + 2 * i], word[4 * s + 2 * i + 1]);
                half[4 * s + 2 + i] =
                    _mm512_unpackhi_epi16(word[4 * s + 2 * i], word[4 * s + 2 * i + 1]);
            }
        for (int i = 0; i < 4; ++i) {
            double* to = sum + r + 16 * i;
            const __m512d low = _mm512_castsi512_pd(_mm512_unpacklo_epi32(half[2 * i], half[2 * i + 1]));
            const __m512d high = _mm512_castsi512_pd(_mm512_unpackhi_epi32(half[2 * i], half[2 * i + 1]));
            _mm512_storeu_pd(to, _mm512_add_pd(_mm512_loadu_pd(to), low));
            _mm512_storeu_pd(to + 8, _mm512_add_pd(_mm512_loadu_pd(to + 8), high));
        }
    }
}
#define DM_ADDS_FEW

#elif defined(__AVX512F__) && !defined(DM_SCALAR)

// Up to 64 values in registers, looked up by permutes of pairs. Reads 64 values in any case.
constexpr bool kSplits = false;

inline void add_few(const uint8_t* labels, const float* values, float* sum) {
    __m512 table[4];
    for (int i = 0; i < 4; ++i) table[i] = _mm512_loadu_ps(values + 16 * i);
    for (int64_t r = 0; r < kBlockRows; r += 16) {
        const __m512i at =
            _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(labels + r)));
        const __m512 value = _mm512_mask_blend_ps(
            _mm512_test_epi32_mask(at, _mm512_set1_epi32(32)),
            _mm512_permutex2var_ps(table[0], at, table[1]),
            _mm512_permutex2var_ps(table[2], at, table[3]));
        _mm512_storeu_ps(sum + r, _mm512_add_ps(_mm512_loadu_ps(sum + r), value));
    }
}

inline void add_few(const uint8_t* labels, const double* values, double* sum) {
    __m512d table[8];
    for (int i = 0; i < 8; ++i) table[i] = _mm512_loadu_pd(values + 8 * i);
    for (int64_t r = 0; r < kBlockRows; r += 8) {
        const __m512i at =
            _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(labels + r)));
        const __mmask8 bit4 = _mm512_test_epi64_mask(at, _mm512_set1_epi64(16));
        const __mmask8 bit5 = _mm512_test_epi64_mask(at, _mm512_set1_epi64(32));
        const __m512d low =
            _mm512_mask_blend_pd(bit4, _mm512_permutex2var_pd(table[0], at, table[1]),
                                 _mm512_permutex2var_pd(table[2], at, table[3]));
        const __m512d high =
            _mm512_mask_blend_pd(bit4, _mm512_permutex2var_pd(table[4], at, table[5]),
                                 _mm512_permutex2var_pd(table[6], at, table[7]));
        const __m512d value = _mm512_mask_blend_pd(bit5, low, high);
        _mm512_storeu_pd(sum + r, _mm512_add_pd(_mm512_loadu_pd(sum + r), value));
    }
}
#define DM_ADDS_FEW

#else
constexpr bool kSplits = false;
#endif

template <typename T>
void add(const void* labels, int label_bytes, const T* values, int64_t n_labels,
         Aggregate aggregate, T* sum) {
    const uint8_t* bytes = static_cast<const uint8_t*>(labels);
    const uint16_t* words = static_cast<const uint16_t*>(labels);
    const uint32_t* longs = static_cast<const uint32_t*>(labels);
#ifdef DM_ADDS_FEW
    if (aggregate == Aggregate::sum && label_bytes == 1 && n_labels <= 64)
        return add_few(bytes, values, sum);
#endif
    (void)n_labels;
    if (label_bytes == 1) return add_plain(bytes, values, aggregate, sum);
    if (label_bytes == 2) return add_plain(words, values, aggregate, sum);
    return add_plain(longs, values, aggregate, sum);
}

}  // namespace
