// Rank coding: code(z) = how many of the column's thresholds are below z, so z <= t_k is code <= k.
//
// Included by kernels.cpp, once for each target.
#pragma once

namespace {

// The float32 of LightGBM's zero.
constexpr float kZero = 1e-35f;

// The keys of a column stand as an implicit tree: the children of key i are keys 2 i and 2 i + 1.
// Down it, i = 2 i + (key < x); at the bottom, i less its leading bit is the rank. NaN has rank 0:
// no comparison with it holds. The top of the tree stays in registers, where a permute looks a
// level up: gathers are slow on many processors (and were made slower by microcode).
constexpr int64_t kCodeGroup = 16;  // ranks found together; x and ranks have room for whole groups

inline void ranks_plain(const float* keys, int levels, const float* x, uint32_t* at) {
    for (int64_t i = 0; i < kCodeGroup; i += 8) {
        uint32_t place[8] = {1, 1, 1, 1, 1, 1, 1, 1};
        for (int level = 0; level < levels; ++level)
            for (int r = 0; r < 8; ++r)
                place[r] = 2 * place[r] + static_cast<uint32_t>(keys[place[r]] < x[i + r]);
        for (int r = 0; r < 8; ++r) at[i + r] = place[r];
    }
}

#if defined(__AVX512F__) && !defined(DM_SCALAR)

// The first levels of the tree, up to 8, in registers.
template <int Levels>
struct Top {
    __m512 keys[Levels > 4 ? 1 << (Levels - 4) : 1];

    explicit Top(const float* from) {
        for (int i = 0; i < (Levels > 4 ? 1 << (Levels - 4) : 1); ++i)
            keys[i] = _mm512_loadu_ps(from + 16 * i);
    }
    // Key i of 2^Level keys from keys[First] on; turns: the answers so far, the first one first.
    template <int First, int Count>
    __m512 look_up(__m512i i, const __mmask16* turns) const {
        if constexpr (Count == 1)
            return _mm512_permutexvar_ps(i, keys[First]);
        else if constexpr (Count == 2)
            return _mm512_permutex2var_ps(keys[First], i, keys[First + 1]);
        else
            return _mm512_mask_blend_ps(turns[0], look_up<First, Count / 2>(i, turns + 1),
                                        look_up<First + Count / 2, Count / 2>(i, turns + 1));
    }
    template <int Level>
    void descend(__m512 x, __m512i& i, __mmask16* turns) const {
        if constexpr (Level < Levels) {
            __m512 key;
            if constexpr (Level < 4)
                key = _mm512_permutexvar_ps(i, keys[0]);
            else
                key = look_up<1 << (Level - 4), 1 << (Level - 4)>(i, turns);
            turns[Level] = _mm512_cmp_ps_mask(key, x, _CMP_LT_OQ);
            i = _mm512_add_epi32(i, i);
            i = _mm512_mask_add_epi32(i, turns[Level], i, _mm512_set1_epi32(1));
            descend<Level + 1>(x, i, turns);
        }
    }
};

template <int Levels>
void ranks_top(const float* keys, int levels, const float* x, int64_t n, uint32_t* at) {
    const Top<Levels> top(keys);
    for (int64_t r = 0; r < n; r += 16) {
        const __m512 value = _mm512_loadu_ps(x + r);
        __m512i i = _mm512_set1_epi32(1);
        __mmask16 turns[Levels];
        top.template descend<0>(value, i, turns);
        for (int level = Levels; level < levels; ++level) {
            const __m512 key = _mm512_i32gather_ps(i, keys, 4);
            const __mmask16 below = _mm512_cmp_ps_mask(key, value, _CMP_LT_OQ);
            i = _mm512_add_epi32(i, i);
            i = _mm512_mask_add_epi32(i, below, i, _mm512_set1_epi32(1));
        }
        _mm512_storeu_si512(at + r, i);
    }
}

inline void find_ranks(const float* keys, int levels, const float* x, int64_t n, uint32_t* at) {
    if (levels <= 4) return ranks_top<4>(keys, levels, x, n, at);
    if (levels == 5) return ranks_top<5>(keys, levels, x, n, at);
    if (levels == 6) return ranks_top<6>(keys, levels, x, n, at);
    if (levels == 7) return ranks_top<7>(keys, levels, x, n, at);
    ranks_top<8>(keys, levels, x, n, at);
}

#elif defined(__AVX2__) && !defined(DM_SCALAR)

template <int Levels>
struct Top {
    const float* keys;

    template <int First, int Count>
    __m256 look_up(__m256i i, const __m256* turns) const {
        if constexpr (Count == 1)
            return _mm256_permutevar8x32_ps(_mm256_loadu_ps(keys + 8 * First), i);
        else
            return _mm256_blendv_ps(look_up<First, Count / 2>(i, turns + 1),
                                    look_up<First + Count / 2, Count / 2>(i, turns + 1), turns[0]);
    }
    template <int Level>
    void descend(__m256 x, __m256i& i, __m256* turns) const {
        if constexpr (Level < Levels) {
            __m256 key;
            if constexpr (Level < 3)
                key = _mm256_permutevar8x32_ps(_mm256_loadu_ps(keys), i);
            else
                key = look_up<1 << (Level - 3), 1 << (Level - 3)>(i, turns);
            turns[Level] = _mm256_cmp_ps(key, x, _CMP_LT_OQ);
            i = _mm256_sub_epi32(_mm256_add_epi32(i, i), _mm256_castps_si256(turns[Level]));
            descend<Level + 1>(x, i, turns);
        }
    }
};

template <int Levels>
void ranks_top(const float* keys, int levels, const float* x, int64_t n, uint32_t* at) {
    const Top<Levels> top{keys};
    for (int64_t r = 0; r < n; r += 8) {
        __m256i i = _mm256_set1_epi32(1);
        __m256 turns[Levels];
        top.template descend<0>(_mm256_loadu_ps(x + r), i, turns);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + r), i);
    }
    for (int64_t r = 0; levels > Levels && r < n; r += 8)
        for (int level = Levels; level < levels; ++level)
            for (int64_t lane = r; lane < r + 8; ++lane)
                at[lane] = 2 * at[lane] + static_cast<uint32_t>(keys[at[lane]] < x[lane]);
}

inline void find_ranks(const float* keys, int levels, const float* x, int64_t n, uint32_t* at) {
    if (levels <= 4) return ranks_top<4>(keys, levels, x, n, at);
    if (levels == 5) return ranks_top<5>(keys, levels, x, n, at);
    if (levels == 6) return ranks_top<6>(keys, levels, x, n, at);
    ranks_top<7>(keys, levels, x, n, at);
}

#else

inline void find_ranks(const float* keys, int levels, const float* x, int64_t n, uint32_t* at) {
    for (int64_t r = 0; r < n; r += kCodeGroup) ranks_plain(keys, levels, x + r, at + r);
}

#endif

// The least key that is not below x, where the search for x ended at `at`: the one where it last
// turned left. There may be none: then what stands before the tree, NaN, which equals nothing.
inline float lowest_not_below(const float* keys, uint32_t at) {
    return keys[at >> (__builtin_ctz(~at) + 1)];
}

// Ranks of doubles by their floats, both rounded down: only where x and a key become the same
// float must the doubles be compared.
inline uint32_t rank_double(const Coding& coding, const Column& c, double x) {
    const uint32_t* sorted = coding.sorted + c.sorted;
    uint32_t low = 0, high = c.n;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (coding.t[sorted[middle]] < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

inline float round_down(double x) {
    const float found = static_cast<float>(x);
    return static_cast<double>(found) > x ? std::nextafterf(found, -INFINITY) : found;
}

template <typename Code>
void put(const uint32_t* at, uint32_t leading, int64_t n, void* plane) {
    Code* out = static_cast<Code*>(plane);
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Code>(at[i] - leading);
}

template <typename Code, typename T>
void put_high(const uint32_t* at, uint32_t leading, const T* x, uint32_t nan_code, int64_t n,
              void* plane) {
    Code* out = static_cast<Code*>(plane);
    for (int64_t i = 0; i < n; ++i)
        out[i] = static_cast<Code>(x[i] == x[i] ? at[i] - leading : nan_code);
}

template <typename T>
void code_column(const Coding& coding, int64_t column, const T* given, int64_t n, void* low,
                 void* high) {
    const Column& c = coding.columns[column];
    alignas(64) T x[kCodeRows];
    alignas(64) float rounded[kCodeRows];
    alignas(64) uint32_t at[kCodeRows];
    const int64_t whole = (n + kCodeGroup - 1) / kCodeGroup * kCodeGroup;
    if (c.rule == Rule::nan_as_zero)
        for (int64_t i = 0; i < n; ++i) x[i] = given[i] == given[i] ? given[i] : T(0);
    else if (c.rule == Rule::zero_as_nan)
        for (int64_t i = 0; i < n; ++i) x[i] = std::abs(given[i]) <= T(kZero) ? T(NAN) : given[i];
    else
        for (int64_t i = 0; i < n; ++i) x[i] = given[i];
    for (int64_t i = n; i < whole; ++i) x[i] = T(0);
    const float* keys = coding.keys32 + c.keys;
    const bool has_buckets = c.buckets.n > 0;
    const uint32_t leading = has_buckets ? 0 : 1u << c.levels;
    auto find = [&](const float* values) {
        if (has_buckets)
            bucket_ranks(coding, c, values, n, at);
        else
            find_ranks(keys, c.levels, values, whole, at);
    };
    if constexpr (sizeof(T) == 4) {
        find(x);
    } else {
        for (int64_t i = 0; i < whole; ++i) rounded[i] = round_down(x[i]);
        find(rounded);
        for (int64_t i = 0; i < n; ++i) {
            const float key = has_buckets ? keys[at[i]] : lowest_not_below(keys, at[i]);
            if (key == rounded[i]) at[i] = leading + rank_double(coding, c, x[i]);
        }
    }
    if (low) c.width == 1 ? put<uint8_t>(at, leading, n, low) : put<uint16_t>(at, leading, n, low);
    if (high)
        c.width == 1 ? put_high<uint8_t>(at, leading, x, c.nan, n, high)
                     : put_high<uint16_t>(at, leading, x, c.nan, n, high);
}

// x has room for kCodeRows values.
void code(const Coding& coding, int64_t column, const void* x, bool single, int64_t n, void* low,
          void* high) {
    if (single)
        code_column(coding, column, static_cast<const float*>(x), n, low, high);
    else
        code_column(coding, column, static_cast<const double*>(x), n, low, high);
}

inline uint32_t rank_one(const Coding& coding, const Column& c, float x) {
    const float* keys = coding.keys32 + c.keys;
    if (c.buckets.n) {
        uint32_t rank;
        bucket_ranks(coding, c, &x, 1, &rank);
        return rank;
    }
    uint32_t at = 1;
    for (int level = 0; level < c.levels; ++level)
        at = 2 * at + static_cast<uint32_t>(keys[at] < x);
    return at - (1u << c.levels);
}
inline uint32_t rank_one(const Coding& coding, const Column& c, double x) {
    const float rounded = round_down(x);
    const uint32_t rank = rank_one(coding, c, rounded);
    const float* keys = coding.keys32 + c.keys;
    const float key = c.buckets.n ? keys[rank] : lowest_not_below(keys, rank + (1u << c.levels));
    return key == rounded ? rank_double(coding, c, x) : rank;
}

template <typename T>
void code_one(const Coding& coding, const T* given, uint16_t* codes) {
    for (int64_t column = 0; column < coding.n_columns; ++column) {
        const Column& c = coding.columns[column];
        T x = given[column];
        if (c.rule == Rule::nan_as_zero) x = x == x ? x : T(0);
        if (c.rule == Rule::zero_as_nan) x = std::abs(x) <= T(kZero) ? T(NAN) : x;
        const uint32_t code = rank_one(coding, c, x);
        if (c.low >= 0) codes[c.low_number] = static_cast<uint16_t>(code);
        if (c.high >= 0) codes[c.high_number] = static_cast<uint16_t>(x == x ? code : c.nan);
    }
}

void code_row(const Coding& coding, const void* x, bool single, uint16_t* codes) {
    if (single)
        code_one(coding, static_cast<const float*>(x), codes);
    else
        code_one(coding, static_cast<const double*>(x), codes);
}

}  // namespace
