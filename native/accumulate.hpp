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

#if defined(__AVX512F__) && !defined(DM_SCALAR)

inline __m512i labels16(const uint8_t* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline __m512i labels16(const uint16_t* p) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline __m512i labels16(const uint32_t* p) { return _mm512_loadu_si512(p); }

template <typename Label>
void add_gather(const Label* labels, const float* values, float* sum) {
    for (int64_t i = 0; i < kBlockRows; i += 16) {
        const __m512 value = _mm512_i32gather_ps(labels16(labels + i), values, 4);
        _mm512_storeu_ps(sum + i, _mm512_add_ps(_mm512_loadu_ps(sum + i), value));
    }
}
template <typename Label>
void add_gather(const Label* labels, const double* values, double* sum) {
    for (int64_t i = 0; i < kBlockRows; i += 16) {
        const __m512i at = labels16(labels + i);
        const __m512d low = _mm512_i32gather_pd(_mm512_castsi512_si256(at), values, 8);
        const __m512d high = _mm512_i32gather_pd(_mm512_extracti64x4_epi64(at, 1), values, 8);
        _mm512_storeu_pd(sum + i, _mm512_add_pd(_mm512_loadu_pd(sum + i), low));
        _mm512_storeu_pd(sum + i + 8, _mm512_add_pd(_mm512_loadu_pd(sum + i + 8), high));
    }
}
#define DM_GATHERS

#elif defined(__AVX2__) && !defined(DM_SCALAR)

inline __m256i labels8(const uint8_t* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
inline __m256i labels8(const uint16_t* p) {
    return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline __m256i labels8(const uint32_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

template <typename Label>
void add_gather(const Label* labels, const float* values, float* sum) {
    for (int64_t i = 0; i < kBlockRows; i += 8) {
        const __m256 value = _mm256_i32gather_ps(values, labels8(labels + i), 4);
        _mm256_storeu_ps(sum + i, _mm256_add_ps(_mm256_loadu_ps(sum + i), value));
    }
}
template <typename Label>
void add_gather(const Label* labels, const double* values, double* sum) {
    for (int64_t i = 0; i < kBlockRows; i += 8) {
        const __m256i at = labels8(labels + i);
        const __m256d low = _mm256_i32gather_pd(values, _mm256_castsi256_si128(at), 8);
        const __m256d high = _mm256_i32gather_pd(values, _mm256_extracti128_si256(at, 1), 8);
        _mm256_storeu_pd(sum + i, _mm256_add_pd(_mm256_loadu_pd(sum + i), low));
        _mm256_storeu_pd(sum + i + 4, _mm256_add_pd(_mm256_loadu_pd(sum + i + 4), high));
    }
}
#define DM_GATHERS

#endif

constexpr bool kSplits = false;

template <typename T>
void add(const void* labels, int label_bytes, const T* values, bool split,
         Aggregate aggregate, T* sum) {
    (void)split;
    const uint8_t* bytes = static_cast<const uint8_t*>(labels);
    const uint16_t* words = static_cast<const uint16_t*>(labels);
    const uint32_t* longs = static_cast<const uint32_t*>(labels);
#ifdef DM_GATHERS
    if (aggregate == Aggregate::sum) {
        if (label_bytes == 1) return add_gather(bytes, values, sum);
        if (label_bytes == 2) return add_gather(words, values, sum);
        return add_gather(longs, values, sum);
    }
#endif
    if (label_bytes == 1) return add_plain(bytes, values, aggregate, sum);
    if (label_bytes == 2) return add_plain(words, values, aggregate, sum);
    return add_plain(longs, values, aggregate, sum);
}

}  // namespace
