// Select from the bottom, a bit to a row: the template product B h, factored along the tree.
//
// Included by kernels.cpp, once for each target. The results of the distinct tests of a group of
// trees are bitmaps over a block of rows. A subtree's exit leaf is a label in bit planes; a test
// merges two subtrees by one select for each bit in which their labels vary: 512 rows to an
// instruction of AVX-512. Labels are Gray codes of the leaves from left to right, which keeps the
// bits that vary in a subtree few (two selects to a test in 64-leaf boosted trees).
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

// Eight, or four, codes to a 64-bit word: the top bit of each lane becomes its answer.
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
            const uint64_t ge = ((x & ~k) | (~(x ^ k) & low)) & top;
            found |= ((ge >> 7) * 0x0102040810204080ull >> 56) << (8 * i);
        }
        return found;
    }
};
struct AtLeast16 {
    uint64_t k;
    static constexpr uint64_t top = 0x8000800080008000ull;
    explicit AtLeast16(uint16_t at_least) : k(at_least * 0x0001000100010001ull) {}
    uint64_t operator()(const uint8_t* codes) const {
        uint64_t found = 0;
        for (int i = 0; i < 16; ++i) {
            uint64_t x;
            std::memcpy(&x, codes + 8 * i, 8);
            const uint64_t low = (x | top) - (k & ~top);
            const uint64_t ge = (((x & ~k) | (~(x ^ k) & low)) & top) >> 15;
            found |= ((ge | ge >> 15 | ge >> 30 | ge >> 45) & 15) << (4 * i);
        }
        return found;
    }
};

#endif

template <typename AtLeast>
void bitmap(const uint8_t* codes, int bytes, uint16_t at_least, uint64_t* out) {
    const AtLeast compare(at_least);
    for (int64_t i = 0; i < kBlockRows / 64; ++i) out[i] = compare(codes + 64 * bytes * i);
}

void tests(const SelectGroup& group, const uint8_t* codes, int64_t tile_rows, int64_t row,
           uint8_t* slots) {
    uint64_t* out = reinterpret_cast<uint64_t*>(slots + kFirstTest * kBlockBytes);
    for (int64_t j = 0; j < group.n_tests; ++j, out += kBlockRows / 64) {
        const Test test = group.tests[j];
        const Plane plane = group.planes[test.plane];
        const uint8_t* at = codes + plane.start * tile_rows + row * plane.width;
        if (plane.width == 1)
            bitmap<AtLeast8>(at, 1, test.at_least, out);
        else
            bitmap<AtLeast16>(at, 2, test.at_least, out);
    }
}

#if defined(DM_SCALAR)
using Bits = uint64_t;
#elif defined(__AVX512F__)
typedef uint64_t Bits __attribute__((vector_size(64), may_alias));
#elif defined(__AVX2__)
typedef uint64_t Bits __attribute__((vector_size(32), may_alias));
#else
typedef uint64_t Bits __attribute__((vector_size(16), may_alias));
#endif

inline Bits choose(Bits test, Bits left, Bits right) {
#if defined(__AVX512F__) && !defined(DM_SCALAR)
    return (Bits)_mm512_ternarylogic_epi64((__m512i)test, (__m512i)right, (__m512i)left, 0xCA);
#else
    return ((left ^ right) & test) ^ left;
#endif
}

inline void run_selects(const Select* op, const Select* end, uint8_t* slots, uint8_t* own) {
    constexpr int64_t size = kBlockBytes / static_cast<int64_t>(sizeof(Bits));
    for (; op != end; ++op) {
        const Bits* test = reinterpret_cast<const Bits*>(slots + op->test * kBlockBytes);
        const Bits* left = reinterpret_cast<const Bits*>(slots + op->left * kBlockBytes);
        const Bits* right = reinterpret_cast<const Bits*>(slots + op->right * kBlockBytes);
        Bits* to = reinterpret_cast<Bits*>(own + op->to * kBlockBytes);
        Bits found[size];
        for (int64_t i = 0; i < size; ++i) found[i] = choose(test[i], left[i], right[i]);
        for (int64_t i = 0; i < size; ++i) to[i] = found[i];
    }
}

// Up to 8 bit planes to a byte for each of 64 rows.
#if defined(__AVX512BW__) && !defined(DM_SCALAR)
inline void bytes_of(const uint64_t* const* planes, int64_t word, int n_bits, uint8_t* out) {
    __m512i label = _mm512_setzero_si512();
    for (int bit = 0; bit < n_bits; ++bit)
        label = _mm512_mask_add_epi8(label, planes[bit][word], label,
                                     _mm512_set1_epi8(static_cast<char>(1 << bit)));
    _mm512_storeu_si512(out, label);
}
#elif defined(__AVX2__) && !defined(DM_SCALAR)
inline void bytes_of(const uint64_t* const* planes, int64_t word, int n_bits, uint8_t* out) {
    const __m256i spread =
        _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3,
                         3, 3, 3, 3, 3, 3, 3);
    const __m256i own = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ull));
    for (int half = 0; half < 2; ++half) {
        __m256i label = _mm256_setzero_si256();
        for (int bit = 0; bit < n_bits; ++bit) {
            int32_t rows;
            std::memcpy(&rows, reinterpret_cast<const char*>(planes[bit] + word) + 4 * half, 4);
            const __m256i each =
                _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(rows), spread), own);
            const __m256i is_set = _mm256_cmpeq_epi8(each, own);
            label = _mm256_or_si256(
                label, _mm256_and_si256(is_set, _mm256_set1_epi8(static_cast<char>(1 << bit))));
        }
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 32 * half), label);
    }
}
#else
// Transpose 8 by 8 bits: byte j of plane i gives bit i of rows 8 j to 8 j + 7.
inline void bytes_of(const uint64_t* const* planes, int64_t word, int n_bits, uint8_t* out) {
    for (int j = 0; j < 8; ++j) {
        uint64_t x = 0;
        for (int bit = 0; bit < n_bits; ++bit)
            x |= (planes[bit][word] >> (8 * j) & 255) << (8 * bit);
        uint64_t swap = (x ^ (x >> 7)) & 0x00AA00AA00AA00AAull;
        x ^= swap ^ (swap << 7);
        swap = (x ^ (x >> 14)) & 0x0000CCCC0000CCCCull;
        x ^= swap ^ (swap << 14);
        swap = (x ^ (x >> 28)) & 0x00000000F0F0F0F0ull;
        x ^= swap ^ (swap << 28);
        std::memcpy(out + 8 * j, &x, 8);
    }
}
#endif

template <int N>
void expand(const uint64_t* const* planes, uint8_t* labels) {
    for (int64_t word = 0; word < kBlockRows / 64; ++word)
        bytes_of(planes, word, N, labels + 64 * word);
}

void select(const SelectGroup& group, const SelectTree& tree, uint8_t* slots, void* labels) {
    run_selects(group.selects + tree.first, group.selects + tree.last, slots,
                slots + (kFirstTest + group.n_tests) * kBlockBytes);
    const uint64_t* planes[16];
    for (int bit = 0; bit < tree.n_bits; ++bit)
        planes[bit] = reinterpret_cast<const uint64_t*>(
            slots + group.bits[tree.bits + bit] * kBlockBytes);
    uint8_t* bytes = static_cast<uint8_t*>(labels);
    switch (tree.n_bits) {
        case 0: return expand<0>(planes, bytes);
        case 1: return expand<1>(planes, bytes);
        case 2: return expand<2>(planes, bytes);
        case 3: return expand<3>(planes, bytes);
        case 4: return expand<4>(planes, bytes);
        case 5: return expand<5>(planes, bytes);
        case 6: return expand<6>(planes, bytes);
        case 7: return expand<7>(planes, bytes);
        case 8: return expand<8>(planes, bytes);
        default: break;
    }
    uint16_t* wide = static_cast<uint16_t*>(labels);
    alignas(64) uint8_t low[64], high[64];
    for (int64_t word = 0; word < kBlockRows / 64; ++word) {
        bytes_of(planes, word, 8, low);
        bytes_of(planes + 8, word, tree.n_bits - 8, high);
        for (int i = 0; i < 64; ++i)
            wide[64 * word + i] = static_cast<uint16_t>(low[i] | high[i] << 8);
    }
}

}  // namespace
