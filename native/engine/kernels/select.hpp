// Select from the bottom, a bit to a row: the template product B h, factored along the tree.
//
// Included by kernels.cpp, once for each target. The results of the distinct tests of a group of
// trees are bitmaps over a block of rows. A subtree's exit leaf is a label in bit planes; a test
// merges two subtrees by one select for each bit in which their labels vary: 512 rows to an
// instruction of AVX-512. Labels are Gray codes of the leaves from left to right, which keeps the
// bits that vary in a subtree few (two selects to a test in 64-leaf boosted trees).
#pragma once

namespace {

template <typename AtLeast>
void bitmap(const uint8_t* codes, int bytes, uint16_t at_least, int64_t words, uint64_t* out) {
    const AtLeast compare(at_least);
    for (int64_t i = 0; i < words; ++i) out[i] = compare(codes + 64 * bytes * i);
}

template <int64_t Words>
void all_tests(const SelectGroup& group, const uint8_t* codes, int64_t tile_rows, int64_t row,
               int64_t given, uint8_t* slots) {
    const int64_t words = Words ? Words : given;
    uint64_t* out = reinterpret_cast<uint64_t*>(slots + kFirstTest * kBlockBytes);
    for (int64_t j = 0; j < group.n_tests; ++j, out += kBlockRows / 64) {
        const Test test = group.tests[j];
        const Plane plane = group.planes[test.plane];
        const uint8_t* at = codes + plane.start * tile_rows + row * plane.width;
        if (plane.is_set) {
            set_bitmap(plane, group.tables + plane.table, at, words, out);
            continue;
        }
#if defined(DM_TURNED_BITS)
        if (plane.is_small) {
            bitmap<SmallAtLeast8>(at, 1, test.at_least, words, out);
            continue;
        }
#endif
        if (plane.width == 1)
            bitmap<AtLeast8>(at, 1, test.at_least, words, out);
        else
            bitmap<AtLeast16>(at, 2, test.at_least, words, out);
    }
}

void tests(const SelectGroup& group, const uint8_t* codes, int64_t tile_rows, int64_t row,
           int64_t n, uint8_t* slots) {
    const int64_t words = (n + 63) / 64;
    if (words == kBlockRows / 64)  // known when compiled, and unrolled
        all_tests<kBlockRows / 64>(group, codes, tile_rows, row, words, slots);
    else
        all_tests<0>(group, codes, tile_rows, row, words, slots);
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

template <int64_t Rows>
void run_selects(const Select* op, const Select* end, uint8_t* slots, uint8_t* own) {
    constexpr int64_t size = Rows / 8 / static_cast<int64_t>(sizeof(Bits));
    for (; op != end; ++op) {
        const Bits* test = reinterpret_cast<const Bits*>(slots + op->test * kBlockBytes);
        const Bits* left = reinterpret_cast<const Bits*>(slots + op->left * kBlockBytes);
        const Bits* right = reinterpret_cast<const Bits*>(slots + op->right * kBlockBytes);
        Bits* to = reinterpret_cast<Bits*>(own + op->to * kBlockBytes);
        static_assert(size > 0 && Rows <= kBlockRows);
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
    const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2,
                                            2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
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
#elif defined(__SSE4_1__) && !defined(DM_SCALAR)
inline void bytes_of(const uint64_t* const* planes, int64_t word, int n_bits, uint8_t* out) {
    const __m128i spread = _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const __m128i own = _mm_set1_epi64x(static_cast<long long>(0x8040201008040201ull));
    for (int quarter = 0; quarter < 4; ++quarter) {
        __m128i label = _mm_setzero_si128();
        for (int bit = 0; bit < n_bits; ++bit) {
            const __m128i rows =
                _mm_cvtsi32_si128(static_cast<int>(planes[bit][word] >> (16 * quarter) & 65535));
            const __m128i each = _mm_and_si128(_mm_shuffle_epi8(rows, spread), own);
            label = _mm_or_si128(label, _mm_and_si128(_mm_cmpeq_epi8(each, own),
                                                      _mm_set1_epi8(static_cast<char>(1 << bit))));
        }
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 16 * quarter), label);
    }
}
#elif defined(__ARM_NEON) && !defined(DM_SCALAR)
inline void bytes_of(const uint64_t* const* planes, int64_t word, int n_bits, uint8_t* out) {
    const uint8x16_t own = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ull));
    for (int quarter = 0; quarter < 4; ++quarter) {
        uint8x16_t label = vdupq_n_u8(0);
        for (int bit = 0; bit < n_bits; ++bit) {
            const uint64_t rows = planes[bit][word] >> (16 * quarter);
            const uint8x16_t each = vcombine_u8(vdup_n_u8(static_cast<uint8_t>(rows)),
                                                vdup_n_u8(static_cast<uint8_t>(rows >> 8)));
            label = vorrq_u8(
                label, vandq_u8(vtstq_u8(each, own), vdupq_n_u8(static_cast<uint8_t>(1 << bit))));
        }
        vst1q_u8(out + 16 * quarter, label);
    }
}
#else
// Eight by eight bits turned about, in all eight bytes of the words at once: bit k of word i
// becomes bit i of word k. Then byte j of word k is the label of bit 8 j + k, which is row 8 k + j.
inline void bytes_of(const uint64_t* const* planes, int64_t word, int n_bits, uint8_t* out) {
    uint64_t w[8] = {};
    for (int bit = 0; bit < n_bits; ++bit) w[bit] = planes[bit][word];
    auto swap = [&](int step, uint64_t mask) {
        for (int i = 0; i < 8; ++i) {
            if (i & step) continue;
            const uint64_t moves = ((w[i] >> step) ^ w[i + step]) & mask;
            w[i + step] ^= moves;
            w[i] ^= moves << step;
        }
    };
    swap(4, 0x0F0F0F0F0F0F0F0Full);
    swap(2, 0x3333333333333333ull);
    swap(1, 0x5555555555555555ull);
    std::memcpy(out, w, 64);
}
#endif

template <int N>
void expand(const uint64_t* const* planes, int64_t words, uint8_t* labels) {
    for (int64_t word = 0; word < words; ++word) bytes_of(planes, word, N, labels + 64 * word);
}

void select(const SelectGroup& group, const SelectTree& tree, int64_t n, uint8_t* slots,
            void* labels) {
    const Select* first = group.selects + tree.first;
    const Select* last = group.selects + (&tree + 1)->first;
    uint8_t* own = slots + (kFirstTest + group.n_tests) * kBlockBytes;
    if (n > 512)
        run_selects<1024>(first, last, slots, own);
    else if (n > 128 || sizeof(Bits) > 16)
        run_selects<512>(first, last, slots, own);
    else if constexpr (sizeof(Bits) <= 16)
        run_selects<128>(first, last, slots, own);
    const int64_t words = (n + 63) / 64;
    const uint64_t* planes[16];
    for (int bit = 0; bit < tree.n_bits; ++bit)
        planes[bit] =
            reinterpret_cast<const uint64_t*>(slots + group.bits[tree.bits + bit] * kBlockBytes);
    uint8_t* bytes = static_cast<uint8_t*>(labels);
    switch (tree.n_bits) {
        case 0: return expand<0>(planes, words, bytes);
        case 1: return expand<1>(planes, words, bytes);
        case 2: return expand<2>(planes, words, bytes);
        case 3: return expand<3>(planes, words, bytes);
        case 4: return expand<4>(planes, words, bytes);
        case 5: return expand<5>(planes, words, bytes);
        case 6: return expand<6>(planes, words, bytes);
        case 7: return expand<7>(planes, words, bytes);
        case 8: return expand<8>(planes, words, bytes);
        default: break;
    }
    uint16_t* wide = static_cast<uint16_t*>(labels);
    alignas(64) uint8_t low[64], high[64];
    for (int64_t word = 0; word < words; ++word) {
        bytes_of(planes, word, 8, low);
        bytes_of(planes + 8, word, tree.n_bits - 8, high);
        for (int i = 0; i < 64; ++i)
            wide[64 * word + i] = static_cast<uint16_t>(low[i] | high[i] << 8);
    }
}

}  // namespace
