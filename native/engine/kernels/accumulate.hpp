// Values of the exit leaves added to the rows' sums, tree after tree, in the source's dtype.
//
// Included by kernels.cpp, once for each target.
#pragma once

namespace {

template <typename T>
inline T lesser(T a, T b) {
    return a < b || a != a ? a : b;
}
template <typename T>
inline T greater(T a, T b) {
    return a > b || a != a ? a : b;
}

template <typename Label, typename T>
void add_plain(const Label* labels, int64_t n, const T* values, Aggregate aggregate, T* sum) {
    if (aggregate == Aggregate::sum)
        for (int64_t i = 0; i < n; ++i) sum[i] += values[labels[i]];
    else if (aggregate == Aggregate::min)
        for (int64_t i = 0; i < n; ++i) sum[i] = lesser(sum[i], values[labels[i]]);
    else
        for (int64_t i = 0; i < n; ++i) sum[i] = greater(sum[i], values[labels[i]]);
}

// Gathers are no faster than plain loads where microcode guards them, so none are used.

#if defined(__AVX512VBMI__) && !defined(DM_SCALAR)

// Up to 64 values, stored as planes of their bytes: a permute looks 64 rows up in each plane, and
// unpacking puts the bytes together. Unpacking works within quarters of a register, so the labels
// are first put in the order that makes the values come out in the rows'. A plane is as long as
// there are labels; what is read beyond it is not looked up.
constexpr int kSplits = kSplitsFloat | kSplitsDouble;

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

inline void add_few(const uint8_t* labels, int64_t n, const float* values, int64_t n_labels,
                    float* sum) {
    const uint8_t* planes = reinterpret_cast<const uint8_t*>(values);
    const __m512i order = _mm512_load_si512(kOrder4.row);
    __m512i plane[4];
    for (int i = 0; i < 4; ++i) plane[i] = _mm512_loadu_si512(planes + n_labels * i);
    for (int64_t r = 0; r < n; r += 64) {
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

inline void add_few(const uint8_t* labels, int64_t n, const double* values, int64_t n_labels,
                    double* sum) {
    const uint8_t* planes = reinterpret_cast<const uint8_t*>(values);
    const __m512i order = _mm512_load_si512(kOrder8.row);
    __m512i plane[8];
    for (int i = 0; i < 8; ++i) plane[i] = _mm512_loadu_si512(planes + n_labels * i);
    for (int64_t r = 0; r < n; r += 64) {
        const __m512i at = _mm512_permutexvar_epi8(order, _mm512_loadu_si512(labels + r));
        __m512i byte[8], word[8], half[8];
        for (int i = 0; i < 8; ++i) byte[i] = _mm512_permutexvar_epi8(at, plane[i]);
        for (int i = 0; i < 4; ++i) {
            word[i] = _mm512_unpacklo_epi8(byte[2 * i], byte[2 * i + 1]);
            word[4 + i] = _mm512_unpackhi_epi8(byte[2 * i], byte[2 * i + 1]);
        }
        for (int s = 0; s < 2; ++s)
            for (int i = 0; i < 2; ++i) {
                half[4 * s + i] =
                    _mm512_unpacklo_epi16(word[4 * s + 2 * i], word[4 * s + 2 * i + 1]);
                half[4 * s + 2 + i] =
                    _mm512_unpackhi_epi16(word[4 * s + 2 * i], word[4 * s + 2 * i + 1]);
            }
        for (int i = 0; i < 4; ++i) {
            double* to = sum + r + 16 * i;
            const __m512d low =
                _mm512_castsi512_pd(_mm512_unpacklo_epi32(half[2 * i], half[2 * i + 1]));
            const __m512d high =
                _mm512_castsi512_pd(_mm512_unpackhi_epi32(half[2 * i], half[2 * i + 1]));
            _mm512_storeu_pd(to, _mm512_add_pd(_mm512_loadu_pd(to), low));
            _mm512_storeu_pd(to + 8, _mm512_add_pd(_mm512_loadu_pd(to + 8), high));
        }
    }
}
#define DM_ADDS_FEW

#elif defined(__AVX512F__) && !defined(DM_SCALAR)

// Up to 64 values in registers, looked up by permutes of pairs. Reads 64 values in any case.
constexpr int kSplits = 0;

inline void add_few(const uint8_t* labels, int64_t n, const float* values, int64_t, float* sum) {
    __m512 table[4];
    for (int i = 0; i < 4; ++i) table[i] = _mm512_loadu_ps(values + 16 * i);
    for (int64_t r = 0; r < n; r += 16) {
        const __m512i at =
            _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(labels + r)));
        const __m512 value = _mm512_mask_blend_ps(_mm512_test_epi32_mask(at, _mm512_set1_epi32(32)),
                                                  _mm512_permutex2var_ps(table[0], at, table[1]),
                                                  _mm512_permutex2var_ps(table[2], at, table[3]));
        _mm512_storeu_ps(sum + r, _mm512_add_ps(_mm512_loadu_ps(sum + r), value));
    }
}

inline void add_few(const uint8_t* labels, int64_t n, const double* values, int64_t, double* sum) {
    __m512d table[8];
    for (int i = 0; i < 8; ++i) table[i] = _mm512_loadu_pd(values + 8 * i);
    for (int64_t r = 0; r < n; r += 8) {
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

#elif defined(__AVX2__) && !defined(DM_SCALAR)

// As with 64-byte permutes, by four of 16 bytes and blends. It pays for floats only.
constexpr int kSplits = kSplitsFloat;

inline void add_few(const uint8_t* labels, int64_t n, const float* values, int64_t n_labels,
                    float* sum) {
    const uint8_t* planes = reinterpret_cast<const uint8_t*>(values);
    const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    auto part = [&](int plane, int quarter) {
        return _mm256_broadcastsi128_si256(_mm_loadu_si128(
            reinterpret_cast<const __m128i*>(planes + n_labels * plane + 16 * quarter)));
    };
    for (int64_t r = 0; r < n; r += 32) {
        const __m256i at = _mm256_permutevar8x32_epi32(
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(labels + r)), order);
        const __m256i bit4 = _mm256_slli_epi16(at, 3), bit5 = _mm256_slli_epi16(at, 2);
        const __m256i low4 = _mm256_and_si256(at, _mm256_set1_epi8(15));
        __m256i byte[4];
        for (int i = 0; i < 4; ++i) {
            const __m256i low = _mm256_blendv_epi8(_mm256_shuffle_epi8(part(i, 0), low4),
                                                   _mm256_shuffle_epi8(part(i, 1), low4), bit4);
            const __m256i high = _mm256_blendv_epi8(_mm256_shuffle_epi8(part(i, 2), low4),
                                                    _mm256_shuffle_epi8(part(i, 3), low4), bit4);
            byte[i] = _mm256_blendv_epi8(low, high, bit5);
        }
        const __m256i low01 = _mm256_unpacklo_epi8(byte[0], byte[1]);
        const __m256i low23 = _mm256_unpacklo_epi8(byte[2], byte[3]);
        const __m256i high01 = _mm256_unpackhi_epi8(byte[0], byte[1]);
        const __m256i high23 = _mm256_unpackhi_epi8(byte[2], byte[3]);
        const __m256i value[4] = {
            _mm256_unpacklo_epi16(low01, low23), _mm256_unpackhi_epi16(low01, low23),
            _mm256_unpacklo_epi16(high01, high23), _mm256_unpackhi_epi16(high01, high23)};
        for (int i = 0; i < 4; ++i) {
            float* to = sum + r + 8 * i;
            _mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), _mm256_castsi256_ps(value[i])));
        }
    }
}
inline void add_few(const uint8_t* labels, int64_t n, const double* values, int64_t, double* sum) {
    add_plain(labels, n, values, Aggregate::sum, sum);
}
#define DM_ADDS_FEW
#define DM_DOUBLES_PLAIN

#else
constexpr int kSplits = 0;
#endif

// Whether values of this type are looked up one by one.
#if defined(DM_DOUBLES_PLAIN)
template <typename T>
constexpr bool kAddsPlain = sizeof(T) == 8;
#elif defined(DM_ADDS_FEW)
template <typename T>
constexpr bool kAddsPlain = false;
#endif

template <typename T>
void add(const void* labels, int label_bytes, int64_t n, const T* values, int64_t n_labels,
         Aggregate aggregate, T* sum) {
    const uint8_t* bytes = static_cast<const uint8_t*>(labels);
    const uint16_t* words = static_cast<const uint16_t*>(labels);
    const uint32_t* longs = static_cast<const uint32_t*>(labels);
#ifdef DM_ADDS_FEW
    if (aggregate == Aggregate::sum && label_bytes == 1 && n_labels <= 64)
        return add_few(bytes, n, values, n_labels, sum);
#endif
    (void)n_labels;
    if (label_bytes == 1) return add_plain(bytes, n, values, aggregate, sum);
    if (label_bytes == 2) return add_plain(words, n, values, aggregate, sum);
    return add_plain(longs, n, values, aggregate, sum);
}

// Sums stay in registers while values of several trees are added, and labels come eight at a time.
template <typename T>
void add_trees_plain(const uint8_t* labels, int64_t n, const T* const* values, T* sum) {
    const T *a = values[0], *b = values[1], *c = values[2], *d = values[3];
    static_assert(kAddTrees == 4);
    for (int64_t i = 0; i < n; i += 8) {
        uint64_t at[4];
        for (int tree = 0; tree < 4; ++tree)
            std::memcpy(at + tree, labels + tree * kBlockRows + i, 8);
        for (int r = 0; r < 8; ++r) {
            T total = sum[i + r];
            total += a[at[0] >> (8 * r) & 255];
            total += b[at[1] >> (8 * r) & 255];
            total += c[at[2] >> (8 * r) & 255];
            total += d[at[3] >> (8 * r) & 255];
            sum[i + r] = total;
        }
    }
}

template <typename T>
void add_trees(const uint8_t* labels, int64_t n, const T* const* values, const int64_t* n_labels,
               T* sum) {
#ifdef DM_ADDS_FEW
    if constexpr (!kAddsPlain<T>) {
        for (int64_t tree = 0; tree < kAddTrees; ++tree)
            add(labels + tree * kBlockRows, 1, n, values[tree], n_labels[tree], Aggregate::sum,
                sum);
        return;
    }
#endif
    (void)n_labels;
    add_trees_plain(labels, n, values, sum);
}

}  // namespace
