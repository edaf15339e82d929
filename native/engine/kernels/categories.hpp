// Categories: one code for each row and feature, and any set as a table of bits by code.
//
// Included by kernels.cpp, once for each target. Codes of a byte are looked up 64 at a time by
// permutes; a table of 256 bits fits in a register. Wider codes are looked up one by one, or by
// gathers.
#pragma once

namespace {

// Where each x stands in Categories::codes: at its category, at n_near for anything else, at
// n_near + 1 for NaN.
template <typename T>
void find_categories(const Categories& c, const T* x, int64_t n, int32_t* at) {
    const T lowest = c.negative_fractions ? T(-1) : T(0);
    const int32_t other = static_cast<int32_t>(c.n_near);
    const bool any = !c.whole;
    for (int64_t i = 0; i < n; ++i) {
        const T value = x[i];
        const bool is_category =
            ((value > lowest) | (value == T(0))) & (value < static_cast<T>(2147483648.0));
        const int32_t category = static_cast<int32_t>(is_category ? value : T(0));
        const bool is_near =
            is_category & (any | (static_cast<T>(category) == value)) & (category < other);
        const int32_t found = is_near ? category : other;
        at[i] = value == value ? found : other + 1;
    }
}

// The code of a category that is not near.
template <typename T>
uint16_t far_code(const Categories& c, T x) {
    const double value = static_cast<double>(x);
    const uint16_t other = c.codes[c.n_near];
    if (!(value >= static_cast<double>(c.n_near)) || !(value < 2147483648.0)) return other;
    const int64_t category = static_cast<int64_t>(value);
    if (c.whole && static_cast<double>(category) != value) return other;
    int64_t low = 0, high = c.n_far;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (c.far[middle] < category)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c.n_far && c.far[low] == category ? c.far_codes[low] : other;
}

template <typename T, typename Code>
void code_categories_as(const Categories& c, const T* x, int64_t n, Code* codes) {
    alignas(64) int32_t at[kCodeRows];
    find_categories(c, x, n, at);
    for (int64_t i = 0; i < n; ++i) codes[i] = static_cast<Code>(c.codes[at[i]]);
    if (!c.n_far) return;
    for (int64_t i = 0; i < n; ++i)
        if (at[i] == c.n_near) codes[i] = static_cast<Code>(far_code(c, x[i]));
}

void code_categories(const Categories& c, const void* x, bool single, int64_t n, int width,
                     void* codes) {
    auto with = [&](const auto* values) {
        if (width == 1)
            code_categories_as(c, values, n, static_cast<uint8_t*>(codes));
        else
            code_categories_as(c, values, n, static_cast<uint16_t*>(codes));
    };
    if (single)
        with(static_cast<const float*>(x));
    else
        with(static_cast<const double*>(x));
}

void spread_bits(const uint8_t* bits, int64_t n, uint16_t* codes) {
    int64_t i = 0;
#if defined(__AVX512BW__) && !defined(DM_SCALAR)
    for (; i + 32 <= n; i += 32) {
        uint32_t mask;
        std::memcpy(&mask, bits + i / 8, 4);
        _mm512_storeu_si512(codes + i, _mm512_maskz_set1_epi16(mask, 1));
    }
#elif defined(__AVX2__) && !defined(DM_SCALAR)
    const __m256i bit = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096,
                                          8192, 16384, -32768);
    for (; i + 16 <= n; i += 16) {
        int16_t mask;
        std::memcpy(&mask, bits + i / 8, 2);
        const __m256i own = _mm256_and_si256(_mm256_set1_epi16(mask), bit);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + i),
                            _mm256_srli_epi16(_mm256_cmpeq_epi16(own, bit), 15));
    }
#endif
    for (; i + 8 <= n; i += 8) {
        const uint32_t byte = bits[i / 8];
        for (int bit = 0; bit < 8; ++bit) codes[i + bit] = byte >> bit & 1;
    }
    for (; i < n; ++i) codes[i] = bits[i / 8] >> (i % 8) & 1;
}

// A bit for each of 64 codes: whether the table has it. In a table of 16 * Parts bytes the code's
// byte is looked up by its upper bits, and the byte's bit by its lower three.
#if defined(__AVX512VBMI__) && !defined(DM_SCALAR)

template <int Parts>
struct InSet {
    static constexpr int kRegisters = 2 * Parts;
    __m512i answers[4];  // a byte to a code
    explicit InSet(const uint8_t* table) {
        for (int i = 0; i < kRegisters; ++i) {
            uint64_t bits;
            std::memcpy(&bits, table + 8 * i, 8);
            answers[i] = _mm512_movm_epi8(bits);
        }
    }
    uint64_t operator()(const uint8_t* codes) const {
        const __m512i x = _mm512_loadu_si512(codes);
        __m512i found = _mm512_permutex2var_epi8(answers[0], x, answers[1]);
        if constexpr (Parts == 2)
            found = _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), found,
                                           _mm512_permutex2var_epi8(answers[2], x, answers[3]));
        return _mm512_movepi8_mask(found);
    }
};

#elif defined(__AVX512BW__) && !defined(DM_SCALAR)

template <int Parts>
struct InSet {
    __m512i table[2], bit;
    explicit InSet(const uint8_t* from) {
        for (int i = 0; i < Parts; ++i)
            table[i] = _mm512_broadcast_i32x4(
                _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16 * i)));
        bit = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201ull));
    }
    uint64_t operator()(const uint8_t* codes) const {
        const __m512i x = _mm512_loadu_si512(codes);
        const __m512i place = _mm512_and_si512(_mm512_srli_epi16(x, 3), _mm512_set1_epi8(15));
        __m512i byte = _mm512_shuffle_epi8(table[0], place);
        if constexpr (Parts == 2)
            byte = _mm512_mask_shuffle_epi8(byte, _mm512_movepi8_mask(x), table[1], place);
        const __m512i own = _mm512_shuffle_epi8(bit, _mm512_and_si512(x, _mm512_set1_epi8(7)));
        return _mm512_test_epi8_mask(byte, own);
    }
};

#elif defined(__AVX2__) && !defined(DM_SCALAR)

template <int Parts>
struct InSet {
    __m256i table[2];
    explicit InSet(const uint8_t* from) {
        for (int i = 0; i < Parts; ++i)
            table[i] = _mm256_broadcastsi128_si256(
                _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16 * i)));
    }
    uint32_t half(const uint8_t* codes) const {
        const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
        const __m256i place = _mm256_and_si256(_mm256_srli_epi16(x, 3), _mm256_set1_epi8(15));
        __m256i byte = _mm256_shuffle_epi8(table[0], place);
        if constexpr (Parts == 2)
            byte = _mm256_blendv_epi8(byte, _mm256_shuffle_epi8(table[1], place), x);
        const __m256i bits = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ull));
        const __m256i own = _mm256_shuffle_epi8(bits, _mm256_and_si256(x, _mm256_set1_epi8(7)));
        return static_cast<uint32_t>(
            _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_and_si256(byte, own), own)));
    }
    uint64_t operator()(const uint8_t* codes) const {
        return half(codes) | static_cast<uint64_t>(half(codes + 32)) << 32;
    }
};

#elif defined(__SSE4_1__) && !defined(DM_SCALAR)

template <int Parts>
struct InSet {
    __m128i table[2];
    explicit InSet(const uint8_t* from) {
        for (int i = 0; i < Parts; ++i)
            table[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16 * i));
    }
    uint64_t quarter(const uint8_t* codes) const {
        const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
        const __m128i place = _mm_and_si128(_mm_srli_epi16(x, 3), _mm_set1_epi8(15));
        __m128i byte = _mm_shuffle_epi8(table[0], place);
        if constexpr (Parts == 2)
            byte = _mm_blendv_epi8(byte, _mm_shuffle_epi8(table[1], place), x);
        const __m128i bits = _mm_set1_epi64x(static_cast<long long>(0x8040201008040201ull));
        const __m128i own = _mm_shuffle_epi8(bits, _mm_and_si128(x, _mm_set1_epi8(7)));
        return static_cast<uint64_t>(
            _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_and_si128(byte, own), own)));
    }
    uint64_t operator()(const uint8_t* codes) const {
        return quarter(codes) | quarter(codes + 16) << 16 | quarter(codes + 32) << 32 |
               quarter(codes + 48) << 48;
    }
};

#elif defined(__ARM_NEON) && !defined(DM_SCALAR)

template <int Parts>
struct InSet {
    uint8x16x2_t table;
    explicit InSet(const uint8_t* from) {
        table.val[0] = vld1q_u8(from);
        table.val[1] = vld1q_u8(from + 16);
    }
    uint8x16_t quarter(const uint8_t* codes) const {
        const uint8x16_t x = vld1q_u8(codes), place = vshrq_n_u8(x, 3);
        const uint8x16_t byte =
            Parts == 2 ? vqtbl2q_u8(table, place) : vqtbl1q_u8(table.val[0], place);
        const uint8x16_t bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ull));
        return vtstq_u8(byte, vqtbl1q_u8(bits, vandq_u8(x, vdupq_n_u8(7))));
    }
    uint64_t operator()(const uint8_t* codes) const {
        return neon_bits(quarter(codes), quarter(codes + 16), quarter(codes + 32),
                         quarter(codes + 48));
    }
};

#else

template <int Parts>
struct InSet {
    uint8_t table[kTableBytes];
    explicit InSet(const uint8_t* from) { std::memcpy(table, from, kTableBytes); }
    uint64_t operator()(const uint8_t* codes) const {
        uint64_t found = 0;
        for (int i = 0; i < 8; ++i)  // in the order of turned bits
            for (int j = 0; j < 8; ++j) {
                const uint8_t code = codes[8 * i + j];
                found |= static_cast<uint64_t>(table[code >> 3] >> (code & 7) & 1) << (8 * j + i);
            }
        return found;
    }
};

#endif

// The same of codes of 16 bits.
struct InWideSet {
    const uint8_t* table;
    explicit InWideSet(const uint8_t* from) : table(from) {}
    uint64_t operator()(const uint8_t* codes) const {
#if defined(__AVX512F__) && !defined(DM_SCALAR)
        uint64_t found = 0;
        for (int i = 0; i < 4; ++i) {
            const __m512i x = _mm512_cvtepu16_epi32(
                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + 32 * i)));
            const __m512i word = _mm512_i32gather_epi32(_mm512_srli_epi32(x, 5), table, 4);
            const __m512i bit =
                _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_and_si512(x, _mm512_set1_epi32(31)));
            found |= static_cast<uint64_t>(_mm512_test_epi32_mask(word, bit)) << (16 * i);
        }
        return found;
#else
        uint64_t found = 0;
        for (int row = 0; row < 64; ++row) {
            uint16_t code;
            std::memcpy(&code, codes + 2 * row, 2);
            const uint64_t answer = table[code >> 3] >> (code & 7) & 1;
#if defined(DM_TURNED_BITS)
            found |= answer << (8 * (row % 8) + row / 8);
#else
            found |= answer << row;
#endif
        }
        return found;
#endif
    }
};

template <typename In>
void in_set(const uint8_t* table, const uint8_t* codes, int bytes, int64_t words, uint64_t* out) {
    const In has(table);
    for (int64_t i = 0; i < words; ++i) out[i] = has(codes + 64 * bytes * i);
}

inline void set_bitmap(const Plane& plane, const uint8_t* table, const uint8_t* codes,
                       int64_t words, uint64_t* out) {
    if (plane.width == 2)
        in_set<InWideSet>(table, codes, 2, words, out);
    else if (plane.n_codes <= 128)
        in_set<InSet<1>>(table, codes, 1, words, out);
    else
        in_set<InSet<2>>(table, codes, 1, words, out);
}

}  // namespace
