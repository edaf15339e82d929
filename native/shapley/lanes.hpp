// Rows in the lanes of a vector: the few operations that the kernels of Shapley values need.
//
// Compiled once for each target, within the kernels.
#pragma once

#include <cstdint>
#include <type_traits>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

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

#if defined(DM_SCALAR)
template <typename T>
using Native = T;
template <typename T>
using Mask = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
#else
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

template <typename T>
constexpr int kLanes = kBytes ? kBytes / static_cast<int>(sizeof(T)) : 1;

// A number in every lane. (x - 0 is x, and costs nothing; x + 0 is not always.)
template <typename T>
inline Native<T> all(T value) {
    return value - Native<T>{};
}

// a * b + c, rounded once where the target can. The compiler may not fuse by itself: it would fuse
// a * b + c * d one way in one copy of a loop and the other way in the next, and the last bit of a
// row would depend on its place in the batch.
template <typename T>
inline Native<T> fused(const Native<T>& a, const Native<T>& b, const Native<T>& c) {
#if defined(DM_SCALAR)
    return a * b + c;
#elif defined(__AVX512F__)
    if constexpr (sizeof(T) == 8)
        return (Native<T>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
    else
        return (Native<T>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__) && defined(__FMA__)
    if constexpr (sizeof(T) == 8)
        return (Native<T>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
    else
        return (Native<T>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
    if constexpr (sizeof(T) == 8)
        return (Native<T>)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
    else
        return (Native<T>)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

template <typename T>
inline Mask<T> goes_left(const Native<T>& z, T t) {
#if defined(DM_SCALAR)
    return z <= t ? -1 : 0;
#else
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

// Lanes that are chosen: a bit each where the target has registers of bits, else a mask.
#if defined(__AVX512F__) && !defined(DM_SCALAR)
template <typename T>
struct Chosen {
    uint16_t bits;  // not of a type that could stand for any other
    Chosen operator&(const Chosen& other) const {
        return {static_cast<uint16_t>(bits & other.bits)};
    }
    Chosen operator~() const { return {static_cast<uint16_t>(~bits)}; }
};

template <typename T>
inline Chosen<T> left_of(const Native<T>& z, T t) {
    if constexpr (sizeof(T) == 8)
        return {_mm512_cmp_pd_mask((__m512d)z, _mm512_set1_pd(t), _CMP_LE_OQ)};
    else
        return {_mm512_cmp_ps_mask((__m512)z, _mm512_set1_ps(t), _CMP_LE_OQ)};
}

template <typename T>
inline Native<T> either(const Chosen<T>& chosen, const Native<T>& yes, const Native<T>& no) {
    if constexpr (sizeof(T) == 8)
        return (Native<T>)_mm512_mask_blend_pd(static_cast<__mmask8>(chosen.bits), (__m512d)no,
                                               (__m512d)yes);
    else
        return (Native<T>)_mm512_mask_blend_ps(chosen.bits, (__m512)no, (__m512)yes);
}

template <typename T>
inline Native<T> only(const Chosen<T>& chosen, const Native<T>& value) {
    if constexpr (sizeof(T) == 8)
        return (Native<T>)_mm512_maskz_mov_pd(static_cast<__mmask8>(chosen.bits), (__m512d)value);
    else
        return (Native<T>)_mm512_maskz_mov_ps(chosen.bits, (__m512)value);
}
#else
template <typename T>
struct Chosen {
    Mask<T> bits;
    Chosen operator&(const Chosen& other) const { return {bits & other.bits}; }
    Chosen operator~() const { return {~bits}; }
};

template <typename T>
inline Chosen<T> left_of(const Native<T>& z, T t) {
    return {goes_left<T>(z, t)};
}

template <typename T>
inline Native<T> either(const Chosen<T>& chosen, const Native<T>& yes, const Native<T>& no) {
    return chosen.bits ? yes : no;
}

template <typename T>
inline Native<T> only(const Chosen<T>& chosen, const Native<T>& value) {
    return where<T>(chosen.bits, value);
}
#endif

}  // namespace
}  // namespace DM_TARGET
}  // namespace dm::shapley
