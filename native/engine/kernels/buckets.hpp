// Ranks among many thresholds: a grid of buckets over their range says which few could be below x,
// and all of these are compared at once.
//
// Included by kernels.cpp, once for each target. Down a search tree of thousands of keys a row
// waits for a load at each level; here for two.
#pragma once

namespace {

// How many of the Keys keys from `keys` on are below x.
template <int Keys>
inline uint32_t count_below(const float* keys, float x) {
#if defined(__AVX2__) && !defined(DM_SCALAR)
    uint32_t found = 0;
    for (int i = 0; i < Keys; i += 8)
        found += static_cast<uint32_t>(__builtin_popcount(static_cast<unsigned>(_mm256_movemask_ps(
            _mm256_cmp_ps(_mm256_loadu_ps(keys + i), _mm256_set1_ps(x), _CMP_LT_OQ)))));
    return found;
#else
    uint32_t found = 0;
    for (int i = 0; i < Keys; ++i) found += static_cast<uint32_t>(keys[i] < x);
    return found;
#endif
}

template <int Keys>
void ranks_in_buckets(const Buckets& own, const uint16_t* first, const float* keys, const float* x,
                      int64_t n, uint32_t* ranks) {
    const float last = static_cast<float>(own.n - 1);
    for (int64_t i = 0; i < n; ++i) ranks[i] = bucket_of(own, last, x[i]);
    for (int64_t i = 0; i < n; ++i) {
        const uint32_t from = first[ranks[i]];
        ranks[i] = from + count_below<Keys>(keys + from, x[i]);
    }
}

// Ranks of n values; x and ranks have room for the next multiple of 8.
inline void bucket_ranks(const Coding& coding, const Column& column, const float* x, int64_t n,
                         uint32_t* ranks) {
    const uint16_t* first = coding.bucket_first + column.buckets.first;
    const float* keys = coding.keys32 + column.keys;
    if (column.buckets.keys <= 8)
        ranks_in_buckets<8>(column.buckets, first, keys, x, n, ranks);
    else
        ranks_in_buckets<16>(column.buckets, first, keys, x, n, ranks);
}

}  // namespace
