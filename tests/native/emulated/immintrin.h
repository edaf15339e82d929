// AVX-512 in plain C++, for processors that have none: SIMDe's functions by their Intel names, and
// the few that it has not.
#pragma once

#define SIMDE_ENABLE_NATIVE_ALIASES
#define SIMDE_NO_NATIVE
#include <simde/x86/avx512.h>
#include <simde/x86/fma.h>

#include <cstdint>
#include <cstring>

typedef uint8_t __mmask8;
typedef uint16_t __mmask16;
typedef uint32_t __mmask32;
typedef uint64_t __mmask64;

// A macro of SIMDe's takes a call with commas in an argument for more arguments.
#undef _mm512_mask_blend_ps
inline simde__m512 _mm512_mask_blend_ps(__mmask16 mask, simde__m512 a, simde__m512 b) {
    return simde_mm512_mask_blend_ps(mask, a, b);
}

inline simde__m512 _mm512_i32gather_ps(simde__m512i index, const void* base, int scale) {
    int32_t at[16];
    float found[16];
    simde_mm512_storeu_si512(at, index);
    for (int i = 0; i < 16; ++i)
        std::memcpy(found + i, static_cast<const char*>(base) + int64_t{at[i]} * scale, 4);
    return simde_mm512_loadu_ps(found);
}

inline simde__m512i _mm512_i32gather_epi32(simde__m512i index, const void* base, int scale) {
    return simde_mm512_castps_si512(_mm512_i32gather_ps(index, base, scale));
}

inline simde__m512i _mm512_cvtepu16_epi32(simde__m256i words) {
    uint16_t from[16];
    int32_t to[16];
    simde_mm256_storeu_si256(reinterpret_cast<simde__m256i*>(from), words);
    for (int i = 0; i < 16; ++i) to[i] = from[i];
    return simde_mm512_loadu_si512(to);
}

inline simde__m512i _mm512_mask_loadu_epi8(simde__m512i otherwise, __mmask64 mask,
                                           const void* from) {
    uint8_t found[64];
    simde_mm512_storeu_si512(found, otherwise);
    for (int i = 0; i < 64; ++i)
        if (mask >> i & 1) found[i] = static_cast<const uint8_t*>(from)[i];
    return simde_mm512_loadu_si512(found);
}

inline simde__m512i _mm512_cvtepu8_epi32(simde__m128i bytes) {
    uint8_t from[16];
    int32_t to[16];
    simde_mm_storeu_si128(reinterpret_cast<simde__m128i*>(from), bytes);
    for (int i = 0; i < 16; ++i) to[i] = from[i];
    return simde_mm512_loadu_si512(to);
}

inline simde__m512i _mm512_cvtepu8_epi64(simde__m128i bytes) {
    uint8_t from[16];
    int64_t to[8];
    simde_mm_storeu_si128(reinterpret_cast<simde__m128i*>(from), bytes);
    for (int i = 0; i < 8; ++i) to[i] = from[i];
    return simde_mm512_loadu_si512(to);
}

template <typename Compare>
inline __mmask32 emulated_words_mask(simde__m512i a, simde__m512i b, const Compare& compare) {
    uint16_t x[32], y[32];
    simde_mm512_storeu_si512(x, a);
    simde_mm512_storeu_si512(y, b);
    __mmask32 found = 0;
    for (int i = 0; i < 32; ++i) found |= static_cast<__mmask32>(compare(x[i], y[i])) << i;
    return found;
}

inline __mmask32 _mm512_cmpgt_epu16_mask(simde__m512i a, simde__m512i b) {
    return emulated_words_mask(a, b, [](uint16_t x, uint16_t y) { return x > y; });
}

inline __mmask32 _mm512_cmpeq_epi16_mask(simde__m512i a, simde__m512i b) {
    return emulated_words_mask(a, b, [](uint16_t x, uint16_t y) { return x == y; });
}

// Loads and stores of some lanes touch no other memory.
template <typename T, typename Register>
inline Register emulated_some(uint32_t mask, const T* from) {
    constexpr int lanes = 64 / static_cast<int>(sizeof(T));
    T found[lanes] = {};
    for (int i = 0; i < lanes; ++i)
        if (mask >> i & 1) found[i] = from[i];
    Register out;
    std::memcpy(&out, found, 64);
    return out;
}

template <typename T, typename Register>
inline void emulated_store_some(T* to, uint32_t mask, Register given) {
    constexpr int lanes = 64 / static_cast<int>(sizeof(T));
    T own[lanes];
    std::memcpy(own, &given, 64);
    for (int i = 0; i < lanes; ++i)
        if (mask >> i & 1) to[i] = own[i];
}

inline simde__m512 _mm512_maskz_loadu_ps(__mmask16 mask, const float* from) {
    return emulated_some<float, simde__m512>(mask, from);
}
inline simde__m512d _mm512_maskz_loadu_pd(__mmask8 mask, const double* from) {
    return emulated_some<double, simde__m512d>(mask, from);
}
inline void _mm512_mask_storeu_ps(float* to, __mmask16 mask, simde__m512 given) {
    emulated_store_some(to, mask, given);
}
inline void _mm512_mask_storeu_pd(double* to, __mmask8 mask, simde__m512d given) {
    emulated_store_some(to, mask, given);
}
