// Rank coding: code(z) = how many of the column's thresholds are below z, so z <= t_k is code <= k.
//
// Included by kernels.cpp, once for each target. A column's keys are 31 pivots, every 2^shift-th
// threshold, searched by permutes of registers, and then the thresholds, searched by gathers.
#pragma once

namespace {

// The float32 of LightGBM's zero.
constexpr float kZero = 1e-35f;

template <typename Raw, typename Through, typename T>
void load_as(const Feature& feature, int64_t row, int64_t n, T* x) {
    const char* p = feature.data + row * feature.stride;
    if (feature.stride == static_cast<int64_t>(sizeof(Raw))) {
        for (int64_t i = 0; i < n; ++i) {
            Raw value;
            std::memcpy(&value, p + i * static_cast<int64_t>(sizeof(Raw)), sizeof value);
            x[i] = static_cast<T>(static_cast<Through>(value));
        }
        return;
    }
    for (int64_t i = 0; i < n; ++i, p += feature.stride) {
        Raw value;
        std::memcpy(&value, p, sizeof value);
        x[i] = static_cast<T>(static_cast<Through>(value));
    }
}

template <typename Through, typename T>
void load_integers(const Feature& feature, int64_t row, int64_t n, T* x) {
    switch (feature.dtype) {
        case Dtype::i8: return load_as<int8_t, Through>(feature, row, n, x);
        case Dtype::i16: return load_as<int16_t, Through>(feature, row, n, x);
        case Dtype::i32: return load_as<int32_t, Through>(feature, row, n, x);
        case Dtype::i64: return load_as<int64_t, Through>(feature, row, n, x);
        case Dtype::u16: return load_as<uint16_t, Through>(feature, row, n, x);
        case Dtype::u32: return load_as<uint32_t, Through>(feature, row, n, x);
        case Dtype::u64: return load_as<uint64_t, Through>(feature, row, n, x);
        default: return load_as<uint8_t, Through>(feature, row, n, x);
    }
}

template <typename T>
void load_values(const Feature& feature, int64_t row, int64_t n, bool integers_single,
                 double missing_value, T* x) {
    if (feature.dtype == Dtype::f32)
        load_as<float, float>(feature, row, n, x);
    else if (feature.dtype == Dtype::f64)
        load_as<double, double>(feature, row, n, x);
    else if (integers_single)
        load_integers<float>(feature, row, n, x);
    else
        load_integers<double>(feature, row, n, x);
    if (missing_value == missing_value)
        for (int64_t i = 0; i < n; ++i)
            x[i] = static_cast<double>(x[i]) == missing_value ? static_cast<T>(NAN) : x[i];
}

void load(const Feature& feature, int64_t row, int64_t n, bool integers_single, bool single,
          double missing_value, void* x) {
    if (single)
        load_values(feature, row, n, integers_single, missing_value, static_cast<float*>(x));
    else
        load_values(feature, row, n, integers_single, missing_value, static_cast<double*>(x));
}

// NaN has rank 0: no comparison with it holds.
template <typename T>
uint32_t rank(const T* keys, int shift, T x) {
    uint32_t at = 0;
    for (uint32_t step = 16; step; step >>= 1) at += keys[at + step - 1] < x ? step : 0;
    keys += kPivots;
    at <<= shift;
    for (uint32_t step = (1u << shift) >> 1; step; step >>= 1)
        at += keys[at + step - 1] < x ? step : 0;
    return at;
}

template <typename T>
void ranks_plain(const T* keys, int shift, const T* x, int64_t n, uint32_t* at) {
    for (int64_t i = 0; i < n; ++i) at[i] = rank(keys, shift, x[i]);
}

// The twins below read x up to the next multiple of 16 and write as many ranks.
#if defined(__AVX512F__) && !defined(DM_SCALAR)

void ranks(const float* keys, int shift, const float* x, int64_t n, uint32_t* at) {
    const __m512 low = _mm512_loadu_ps(keys), high = _mm512_loadu_ps(keys + 16);
    const float* body = keys + kPivots;
    for (int64_t i = 0; i < n; i += 16) {
        const __m512 value = _mm512_loadu_ps(x + i);
        // The first of 31 pivots is number 15: the same for all lanes.
        __m512i found = _mm512_setzero_si512();
        const __m512 middle = _mm512_set1_ps(keys[15]);
        __mmask16 below = _mm512_cmp_ps_mask(middle, value, _CMP_LT_OQ);
        found = _mm512_maskz_set1_epi32(below, 16);
        for (int step = 8; step; step >>= 1) {
            const __m512i probe = _mm512_add_epi32(found, _mm512_set1_epi32(step - 1));
            const __m512 key = _mm512_permutex2var_ps(low, probe, high);
            below = _mm512_cmp_ps_mask(key, value, _CMP_LT_OQ);
            found = _mm512_mask_add_epi32(found, below, found, _mm512_set1_epi32(step));
        }
        found = _mm512_slli_epi32(found, shift);
        for (int step = (1 << shift) >> 1; step; step >>= 1) {
            const __m512 key = _mm512_i32gather_ps(found, body + step - 1, 4);
            below = _mm512_cmp_ps_mask(key, value, _CMP_LT_OQ);
            found = _mm512_mask_add_epi32(found, below, found, _mm512_set1_epi32(step));
        }
        _mm512_storeu_si512(at + i, found);
    }
}

void ranks(const double* keys, int shift, const double* x, int64_t n, uint32_t* at) {
    const double* body = keys + kPivots;
    const __m512d key0 = _mm512_loadu_pd(keys), key1 = _mm512_loadu_pd(keys + 8);
    const __m512d key2 = _mm512_loadu_pd(keys + 16), key3 = _mm512_loadu_pd(keys + 24);
    for (int64_t i = 0; i < n; i += 8) {
        const __m512d value = _mm512_loadu_pd(x + i);
        const __mmask8 upper =
            _mm512_cmp_pd_mask(_mm512_set1_pd(keys[15]), value, _CMP_LT_OQ);
        __m512i found = _mm512_maskz_set1_epi64(upper, 16);
        for (int step = 8; step; step >>= 1) {
            const __m512i probe = _mm512_add_epi64(found, _mm512_set1_epi64(step - 1));
            const __m512d key =
                _mm512_mask_blend_pd(upper, _mm512_permutex2var_pd(key0, probe, key1),
                                     _mm512_permutex2var_pd(key2, probe, key3));
            const __mmask8 below = _mm512_cmp_pd_mask(key, value, _CMP_LT_OQ);
            found = _mm512_mask_add_epi64(found, below, found, _mm512_set1_epi64(step));
        }
        __m256i place = _mm512_cvtepi64_epi32(_mm512_slli_epi64(found, shift));
        for (int step = (1 << shift) >> 1; step; step >>= 1) {
            const __m512d key = _mm512_i32gather_pd(place, body + step - 1, 8);
            const __mmask8 below = _mm512_cmp_pd_mask(key, value, _CMP_LT_OQ);
            place = _mm256_mask_add_epi32(place, below, place, _mm256_set1_epi32(step));
        }
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + i), place);
    }
}

#elif defined(__AVX2__) && !defined(DM_SCALAR)

void ranks(const float* keys, int shift, const float* x, int64_t n, uint32_t* at) {
    // Pivots 3, 7, ... 27 decide the first three steps in one register of eight.
    const __m256 coarse = _mm256_setr_ps(keys[3], keys[7], keys[11], keys[15], keys[19], keys[23],
                                         keys[27], INFINITY);
    const float* body = keys + kPivots;
    for (int64_t i = 0; i < n; i += 8) {
        const __m256 value = _mm256_loadu_ps(x + i);
        __m256i found = _mm256_setzero_si256();
        for (int step = 4; step; step >>= 1) {
            const __m256i probe = _mm256_add_epi32(found, _mm256_set1_epi32(step - 1));
            const __m256 below =
                _mm256_cmp_ps(_mm256_permutevar8x32_ps(coarse, probe), value, _CMP_LT_OQ);
            found = _mm256_add_epi32(
                found, _mm256_and_si256(_mm256_castps_si256(below), _mm256_set1_epi32(step)));
        }
        found = _mm256_slli_epi32(found, 2);
        for (int step = 2; step; step >>= 1) {
            const __m256 key = _mm256_i32gather_ps(keys + step - 1, found, 4);
            const __m256 below = _mm256_cmp_ps(key, value, _CMP_LT_OQ);
            found = _mm256_add_epi32(
                found, _mm256_and_si256(_mm256_castps_si256(below), _mm256_set1_epi32(step)));
        }
        found = _mm256_slli_epi32(found, shift);
        for (int step = (1 << shift) >> 1; step; step >>= 1) {
            const __m256 key = _mm256_i32gather_ps(body + step - 1, found, 4);
            const __m256 below = _mm256_cmp_ps(key, value, _CMP_LT_OQ);
            found = _mm256_add_epi32(
                found, _mm256_and_si256(_mm256_castps_si256(below), _mm256_set1_epi32(step)));
        }
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + i), found);
    }
}

void ranks(const double* keys, int shift, const double* x, int64_t n, uint32_t* at) {
    const double* body = keys + kPivots;
    auto halve = [](__m256i wide) {  // the low halves of four 64-bit masks
        return _mm256_castsi256_si128(
            _mm256_permutevar8x32_epi32(wide, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6)));
    };
    for (int64_t i = 0; i < n; i += 4) {
        const __m256d value = _mm256_loadu_pd(x + i);
        __m128i found = _mm_setzero_si128();
        auto descend = [&](const double* from, int step) {
            const __m256d below =
                _mm256_cmp_pd(_mm256_i32gather_pd(from + step - 1, found, 8), value, _CMP_LT_OQ);
            found = _mm_add_epi32(
                found, _mm_and_si128(halve(_mm256_castpd_si256(below)), _mm_set1_epi32(step)));
        };
        for (int step = 16; step; step >>= 1) descend(keys, step);
        found = _mm_slli_epi32(found, shift);
        for (int step = (1 << shift) >> 1; step; step >>= 1) descend(body, step);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(at + i), found);
    }
}

#else

template <typename T>
void ranks(const T* keys, int shift, const T* x, int64_t n, uint32_t* at) {
    ranks_plain(keys, shift, x, n, at);
}

#endif

template <typename Code>
void put(const uint32_t* at, int64_t n, void* plane) {
    Code* out = static_cast<Code*>(plane);
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Code>(at[i]);
}

template <typename Code, typename T>
void mark_nan(const T* x, int64_t n, uint32_t code, void* plane) {
    Code* out = static_cast<Code*>(plane);
    for (int64_t i = 0; i < n; ++i)
        if (x[i] != x[i]) out[i] = static_cast<Code>(code);
}

// -1, +1, or 0 for missing.
template <typename T>
int8_t member(const Coding& coding, int64_t column, T x) {
    const Column& c = coding.columns[column];
    const double value = static_cast<double>(x);
    if (value != value) return 0;
    const bool is_category = (value > (coding.negative_fractions ? -1.0 : 0.0) || value == 0.0) &&
                             value < 2147483648.0;
    if (!is_category) return c.outside;
    const int64_t category = static_cast<int64_t>(value);
    if (coding.table_of[column] >= 0)
        return category < c.set_size ? coding.tables[coding.table_of[column] + category]
                                     : c.outside;
    const int64_t* members = coding.members + c.set;
    int64_t low = 0, high = c.set_size;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (members[middle] < category)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c.set_size && members[low] == category ? coding.answers[c.set + low] : c.outside;
}

template <typename T, typename Code>
void code_members(const Coding& coding, int64_t column, const T* x, int64_t n, void* low,
                  void* high) {
    const Column& c = coding.columns[column];
    Code* planes[2] = {static_cast<Code*>(low), static_cast<Code*>(high)};
    for (int side = 0; side < 2; ++side) {
        if (!planes[side]) continue;
        const Code by_answer[3] = {static_cast<Code>(c.code0),
                                   static_cast<Code>(side ? c.n : 0), static_cast<Code>(c.code1)};
        for (int64_t i = 0; i < n; ++i)
            planes[side][i] = by_answer[member(coding, column, x[i]) + 1];
    }
}

template <typename T>
void code_column(const Coding& coding, int64_t column, const T* keys, const T* given, int64_t n,
                 void* low, void* high) {
    const Column& c = coding.columns[column];
    if (c.rule == Rule::member)
        return c.width == 1 ? code_members<T, uint8_t>(coding, column, given, n, low, high)
                            : code_members<T, uint16_t>(coding, column, given, n, low, high);
    alignas(64) T own[kCodeRows];
    alignas(64) uint32_t at[kCodeRows];
    const T* x = given;
    if (c.rule == Rule::nan_as_zero) {
        for (int64_t i = 0; i < n; ++i) own[i] = given[i] == given[i] ? given[i] : T(0);
        x = own;
    } else if (c.rule == Rule::zero_as_nan) {
        for (int64_t i = 0; i < n; ++i) own[i] = std::abs(given[i]) <= T(kZero) ? T(NAN) : given[i];
        x = own;
    }
    for (int64_t i = n; i % 16; ++i) (x == own ? own : const_cast<T*>(given))[i] = T(0);
    ranks(keys + c.keys, c.shift, x, n, at);
    void* planes[2] = {low, high};
    for (void* plane : planes) {
        if (!plane) continue;
        c.width == 1 ? put<uint8_t>(at, n, plane) : put<uint16_t>(at, n, plane);
    }
    if (high) c.width == 1 ? mark_nan<uint8_t>(x, n, c.n, high) : mark_nan<uint16_t>(x, n, c.n, high);
}

// x has room for kCodeRows values.
void code(const Coding& coding, int64_t column, const void* x, bool single, int64_t n, void* low,
          void* high) {
    if (single)
        code_column(coding, column, coding.keys32, static_cast<const float*>(x), n, low, high);
    else
        code_column(coding, column, coding.keys64, static_cast<const double*>(x), n, low, high);
}

}  // namespace
