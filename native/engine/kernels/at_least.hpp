// Comparisons of 64 codes at once.
//
// Included by kernels.cpp, once for each target.
#pragma once

namespace {

// A bit for each of 64 codes: whether it is at least k.
#if defined(__AVX512BW__) && !defined(DM_SCALAR)

struct AtLeast8 {
    __m512i k;
    explicit AtLeast8(uint16_t at_least) : k(_mm512_set1_epi8(static_cast<char>(at_least))) {}
    uint64_t operator()(const uint8_t* codes) const {
        return _mm512_cmpge_epu8_mask(_mm512_loadu_si512(codes), k);
    }
};
struct AtLeast16 {
    __m512i k;
    explicit AtLeast16(uint16_t at_least) : k(_mm512_set1_epi16(static_cast<short>(at_least))) {}
    uint64_t operator()(const uint8_t* codes) const {
        const uint64_t low = _mm512_cmpge_epu16_mask(_mm512_loadu_si512(codes), k);
        const uint64_t high = _mm512_cmpge_epu16_mask(_mm512_loadu_si512(codes + 64), k);
        return low | high << 32;
    }
};

#elif defined(__AVX2__) && !defined(DM_SCALAR)

struct AtLeast8 {
    __m256i k;
    explicit AtLeast8(uint16_t at_least) : k(_mm256_set1_epi8(static_cast<char>(at_least))) {}
    uint32_t half(const uint8_t* codes) const {
        const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
        return static_cast<uint32_t>(
            _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(x, k), x)));
    }
    uint64_t operator()(const uint8_t* codes) const {
        return half(codes) | static_cast<uint64_t>(half(codes + 32)) << 32;
    }
};
struct AtLeast16 {
    __m256i k;
    explicit AtLeast16(uint16_t at_least) : k(_mm256_set1_epi16(static_cast<short>(at_least))) {}
    __m256i compare(const uint8_t* codes) const {
        const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
        return _mm256_cmpeq_epi16(_mm256_max_epu16(x, k), x);
    }
    uint32_t half(const uint8_t* codes) const {
        const __m256i both = _mm256_packs_epi16(compare(codes), compare(codes + 32));
        return static_cast<uint32_t>(
            _mm256_movemask_epi8(_mm256_permute4x64_epi64(both, 0b11011000)));
    }
    uint64_t operator()(const uint8_t* codes) const {
        return half(codes) | static_cast<uint64_t>(half(codes + 64)) << 32;
    }
};

#elif defined(__SSE4_1__) && !defined(DM_SCALAR)

struct AtLeast8 {
    __m128i k;
    explicit AtLeast8(uint16_t at_least) : k(_mm_set1_epi8(static_cast<char>(at_least))) {}
    uint64_t quarter(const uint8_t* codes) const {
        const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
        return static_cast<uint64_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(x, k), x)));
    }
    uint64_t operator()(const uint8_t* codes) const {
        return quarter(codes) | quarter(codes + 16) << 16 | quarter(codes + 32) << 32 |
               quarter(codes + 48) << 48;
    }
};
struct AtLeast16 {
    __m128i k;
    explicit AtLeast16(uint16_t at_least) : k(_mm_set1_epi16(static_cast<short>(at_least))) {}
    __m128i compare(const uint8_t* codes) const {
        const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
        return _mm_cmpeq_epi16(_mm_max_epu16(x, k), x);
    }
    uint64_t quarter(const uint8_t* codes) const {
        return static_cast<uint64_t>(
            _mm_movemask_epi8(_mm_packs_epi16(compare(codes), compare(codes + 16))));
    }
    uint64_t operator()(const uint8_t* codes) const {
        return quarter(codes) | quarter(codes + 32) << 16 | quarter(codes + 64) << 32 |
               quarter(codes + 96) << 48;
    }
};

#elif defined(__ARM_NEON) && !defined(DM_SCALAR)

inline uint64_t neon_bits(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d) {
    const uint8x16_t weight = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ull));
    const uint8x16_t ab = vpaddq_u8(vandq_u8(a, weight), vandq_u8(b, weight));
    const uint8x16_t cd = vpaddq_u8(vandq_u8(c, weight), vandq_u8(d, weight));
    const uint8x16_t all = vpaddq_u8(ab, cd);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}
struct AtLeast8 {
    uint8x16_t k;
    explicit AtLeast8(uint16_t at_least) : k(vdupq_n_u8(static_cast<uint8_t>(at_least))) {}
    uint64_t operator()(const uint8_t* codes) const {
        return neon_bits(vcgeq_u8(vld1q_u8(codes), k), vcgeq_u8(vld1q_u8(codes + 16), k),
                         vcgeq_u8(vld1q_u8(codes + 32), k), vcgeq_u8(vld1q_u8(codes + 48), k));
    }
};
struct AtLeast16 {
    uint16x8_t k;
    explicit AtLeast16(uint16_t at_least) : k(vdupq_n_u16(at_least)) {}
    uint8x16_t pair(const uint8_t* codes) const {
        const uint16x8_t low = vld1q_u16(reinterpret_cast<const uint16_t*>(codes));
        const uint16x8_t high = vld1q_u16(reinterpret_cast<const uint16_t*>(codes + 16));
        return vcombine_u8(vmovn_u16(vcgeq_u16(low, k)), vmovn_u16(vcgeq_u16(high, k)));
    }
    uint64_t operator()(const uint8_t* codes) const {
        return neon_bits(pair(codes), pair(codes + 32), pair(codes + 64), pair(codes + 96));
    }
};

#else

// Eight, or four, codes to a 64-bit word: the top bit of each lane becomes its answer. Bit 8 j + i
// of a result is row 8 i + j: so the answers are put together by shifts alone, and `bytes_of`
// undoes the order at no cost.
#define DM_TURNED_BITS

struct SmallAtLeast8 {  // of codes below 128
    uint64_t k;
    static constexpr uint64_t top = 0x8080808080808080ull;
    explicit SmallAtLeast8(uint16_t at_least) : k(at_least * 0x0101010101010101ull) {}
    uint64_t operator()(const uint8_t* codes) const {
        uint64_t found = 0;
        for (int i = 0; i < 8; ++i) {
            uint64_t x;
            std::memcpy(&x, codes + 8 * i, 8);
            found |= (((x | top) - k) & top) >> (7 - i);
        }
        return found;
    }
};
struct AtLeast8 {
    uint64_t k;
    static constexpr uint64_t top = 0x8080808080808080ull;
    explicit AtLeast8(uint16_t at_least) : k(at_least * 0x0101010101010101ull) {}
    uint64_t operator()(const uint8_t* codes) const {
        uint64_t found = 0;
        for (int i = 0; i < 8; ++i) {
            uint64_t x;
            std::memcpy(&x, codes + 8 * i, 8);
            const uint64_t low = (x | top) - (k & ~top);
            found |= (((x & ~k) | (~(x ^ k) & low)) & top) >> (7 - i);
        }
        return found;
    }
};
struct AtLeast16 {
    uint64_t k;
    static constexpr uint64_t top = 0x8000800080008000ull;
    explicit AtLeast16(uint16_t at_least) : k(at_least * 0x0001000100010001ull) {}
    // One answer to a byte, in the lowest bits of four bytes.
    uint64_t four(const uint8_t* codes) const {
        uint64_t x;
        std::memcpy(&x, codes, 8);
        const uint64_t low = (x | top) - (k & ~top);
        const uint64_t ge = (((x & ~k) | (~(x ^ k) & low)) & top) >> 15;
        const uint64_t two = (ge | ge >> 8) & 0x0000FFFF0000FFFFull;
        return (two | two >> 16) & 0xFFFFFFFFull;
    }
    uint64_t operator()(const uint8_t* codes) const {
        uint64_t found = 0;
        for (int i = 0; i < 8; ++i)
            found |= (four(codes + 16 * i) | four(codes + 16 * i + 8) << 32) << i;
        return found;
    }
};

#endif

}  // namespace
