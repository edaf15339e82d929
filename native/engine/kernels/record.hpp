// Deep trees by records of 32 tests: a permute brings every test of a record its code, a comparison
// gives all answers, and the map "test -> next test" carries a row from its first test to an exit.
//
// Included by kernels.cpp, once for each target. A step of a walk waits for two loads, and the row
// has a score of them before it; here a row takes one or two records, whose work does not depend
// on the path. Only following the map is a chain, of bytes that are near.
#pragma once

namespace {

#if (defined(__AVX2__) || (defined(__ARM_NEON) && defined(__aarch64__))) && !defined(DM_SCALAR)
#define DM_HAS_RECORDS

#if defined(__AVX512BW__)

constexpr CodeLayout kCodeLayout = CodeLayout::words;

// A row's codes, 32 to a register.
template <int Registers>
struct RecordRow {
    __m512i codes[Registers];
    explicit RecordRow(const uint8_t* from) {
        for (int i = 0; i < Registers; ++i) codes[i] = _mm512_loadu_si512(from + 64 * i);
    }
    __m512i look_up(__m512i column) const {
        if constexpr (Registers == 1) {
            return _mm512_permutexvar_epi16(column, codes[0]);
        } else if constexpr (Registers == 2) {
            return _mm512_permutex2var_epi16(codes[0], column, codes[1]);
        } else {
            return _mm512_mask_blend_epi16(_mm512_test_epi16_mask(column, _mm512_set1_epi16(64)),
                                           _mm512_permutex2var_epi16(codes[0], column, codes[1]),
                                           _mm512_permutex2var_epi16(codes[2], column, codes[3]));
        }
    }
    // The tests that send the row to the right.
    template <bool HasNan>
    __mmask32 right(const Record& record) const {
        const __m512i code = look_up(_mm512_cvtepi8_epi16(
            _mm256_load_si256(reinterpret_cast<const __m256i*>(record.column))));
        const __mmask32 above = _mm512_cmpgt_epu16_mask(code, _mm512_loadu_si512(record.code));
        if constexpr (!HasNan) return above;
        return above &
               ~(_mm512_cmpeq_epi16_mask(code, _mm512_set1_epi16(-1)) & record.missing_left);
    }
    // Where each test leads.
    template <bool HasNan>
    __m256i next(const Record& record) const {
        return _mm256_mask_blend_epi8(
            right<HasNan>(record), _mm256_load_si256(reinterpret_cast<const __m256i*>(record.left)),
            _mm256_load_si256(reinterpret_cast<const __m256i*>(record.right)));
    }
};

#elif defined(__AVX2__)

constexpr CodeLayout kCodeLayout = CodeLayout::bytes;

// Looks codes up in tables of 16 bytes, in a tree of blends by the bits of the column's number.
template <int Registers>
struct RecordRow {
    static constexpr int kTables = Registers;
    const uint8_t* codes;

    explicit RecordRow(const uint8_t* from) : codes(from) {}

    template <int First, int Count>
    __m256i look_up(__m256i column, const uint8_t* from) const {
        if constexpr (Count == 1) {
            const __m256i table = _mm256_broadcastsi128_si256(
                _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16 * First)));
            return _mm256_shuffle_epi8(table, column);
        } else {
            constexpr int half = Count > 4 ? 4 : Count > 2 ? 2 : 1;
            // The bit that tells the halves apart, as the highest of its byte.
            const __m256i is_second = _mm256_slli_epi16(column, half == 4 ? 1 : half == 2 ? 2 : 3);
            return _mm256_blendv_epi8(look_up<First, half>(column, from),
                                      look_up<First + half, Count - half>(column, from), is_second);
        }
    }
    template <bool HasNan>
    __m256i next(const Record& record) const {
        auto load = [](const uint8_t* from) {
            return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
        };
        const __m256i column = load(record.column);
        const __m256i low = look_up<0, kTables>(column, codes);
        const __m256i high = look_up<0, kTables>(column, codes + 16 * kTables);
        const __m256i own_high = load(record.code + kRecordTests);
        __m256i right =
            _mm256_or_si256(_mm256_cmpgt_epi8(high, own_high),
                            _mm256_and_si256(_mm256_cmpeq_epi8(high, own_high),
                                             _mm256_cmpgt_epi8(low, load(record.code))));
        if constexpr (HasNan) {
            // A byte for each bit: its byte of the four, and then its bit of that.
            const __m256i bytes = _mm256_shuffle_epi8(
                _mm256_set1_epi32(static_cast<int>(record.missing_left)),
                _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0));
            const __m256i bits = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201ull));
            const __m256i left = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bits), bits);
            const __m256i nan =
                _mm256_cmpeq_epi8(_mm256_min_epi8(low, high), _mm256_set1_epi8(127));
            right = _mm256_andnot_si256(_mm256_and_si256(nan, left), right);
        }
        return _mm256_blendv_epi8(load(record.left), load(record.right), right);
    }
};

#else

constexpr CodeLayout kCodeLayout = CodeLayout::bytes;

// Looks codes up in tables of 16 bytes, four of them at once.
template <int Registers>
struct RecordRow {
    static constexpr int kTables = Registers;
    const uint8_t* codes;

    explicit RecordRow(const uint8_t* from) : codes(from) {}

    uint8x16_t look_up(uint8x16_t column, const uint8_t* from) const {
        if constexpr (kTables == 1) return vqtbl1q_u8(vld1q_u8(from), column);
        if constexpr (kTables == 2) return vqtbl2q_u8(vld1q_u8_x2(from), column);
        if constexpr (kTables == 4) return vqtbl4q_u8(vld1q_u8_x4(from), column);
        return vqtbx4q_u8(vqtbl4q_u8(vld1q_u8_x4(from), column), vld1q_u8_x4(from + 64),
                          vsubq_u8(column, vdupq_n_u8(64)));
    }
    template <bool HasNan>
    void next(const Record& record, uint8_t* to) const {
        for (int i = 0; i < kRecordTests; i += 16) {
            const uint8x16_t column = vld1q_u8(record.column + i);
            const int8x16_t low = vreinterpretq_s8_u8(look_up(column, codes));
            const int8x16_t high = vreinterpretq_s8_u8(look_up(column, codes + 16 * kTables));
            const int8x16_t own_low = vreinterpretq_s8_u8(vld1q_u8(record.code + i));
            const int8x16_t own_high =
                vreinterpretq_s8_u8(vld1q_u8(record.code + kRecordTests + i));
            uint8x16_t right = vorrq_u8(vcgtq_s8(high, own_high),
                                        vandq_u8(vceqq_s8(high, own_high), vcgtq_s8(low, own_low)));
            if constexpr (HasNan) {
                const uint8x16_t bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ull));
                const uint32_t left = record.missing_left >> i;
                const uint8x16_t bytes = vcombine_u8(vdup_n_u8(static_cast<uint8_t>(left)),
                                                     vdup_n_u8(static_cast<uint8_t>(left >> 8)));
                const uint8x16_t nan = vceqq_s8(vminq_s8(low, high), vdupq_n_s8(127));
                right = vbicq_u8(right, vandq_u8(nan, vtstq_u8(bytes, bits)));
            }
            vst1q_u8(to + i,
                     vbslq_u8(right, vld1q_u8(record.right + i), vld1q_u8(record.left + i)));
        }
    }
};

#endif

// Rows that are under way together: first the answers of all of them are found, and then their
// exits. One row after the other, what waits for its loads and permutes would fill the processor's
// scheduler.
constexpr int kTogether = 8;

#if defined(__AVX512VBMI__)

// The exits of several rows: composing each map with itself, a permute each time. All permutes go
// through one port, which is what limits this; so the maps are put together by loads under a mask,
// and their entries are read from memory.
template <int Registers, int Steps, bool HasNan>
struct RecordExits {
    alignas(64) uint8_t next[kTogether][2 * kRecordTests];
    const Record* record[kTogether];
    __mmask32 right[kTogether];
    uint32_t exit[kTogether];

    void start(int i, const RecordRow<Registers>& row, const Record& own, uint32_t first) {
        record[i] = &own;
        right[i] = row.template right<HasNan>(own);
        exit[i] = first;
    }
    void finish(int n) {
        // Exits lead to themselves.
        const __m512i exits = _mm512_set_epi64(0x3f3e3d3c3b3a3938, 0x3736353433323130,
                                               0x2f2e2d2c2b2a2928, 0x2726252423222120, 0, 0, 0, 0);
        for (int i = 0; i < n; ++i) {
            __m512i map = _mm512_mask_loadu_epi8(exits, 0xffffffff, record[i]->left);
            map = _mm512_mask_loadu_epi8(map, right[i], record[i]->right);
            for (int reach = 1; reach < Steps; reach *= 2) map = _mm512_permutexvar_epi8(map, map);
            _mm512_store_si512(next[i], map);
        }
        for (int i = 0; i < n; ++i) exit[i] = next[i][exit[i]];
    }
    uint32_t at(int i) const { return exit[i]; }
};

#else

// Maps in memory: following one is a chain of loads, and the chains of all rows run at once.
template <int Registers, int Steps, bool HasNan>
struct RecordExits {
    alignas(64) uint8_t next[kTogether][2 * kRecordTests];
    uint32_t exit[kTogether] = {};  // where there are fewer rows, the others go nowhere

    RecordExits() {
        for (int i = 0; i < kTogether; ++i)
            for (int j = 0; j < 2 * kRecordTests; ++j) next[i][j] = static_cast<uint8_t>(j);
    }
    void start(int i, const RecordRow<Registers>& row, const Record& record, uint32_t first) {
#if defined(__AVX2__)
        _mm256_store_si256(reinterpret_cast<__m256i*>(next[i]), row.template next<HasNan>(record));
#else
        row.template next<HasNan>(record, next[i]);
#endif
        exit[i] = first;
    }
    void finish(int) {
        uint32_t own[kTogether];
        for (int i = 0; i < kTogether; ++i) own[i] = exit[i];
        for (int step = 0; step < Steps; ++step)
            for (int i = 0; i < kTogether; ++i) own[i] = next[i][own[i]];
        for (int i = 0; i < kTogether; ++i) exit[i] = own[i];
    }
    uint32_t at(int i) const { return exit[i]; }
};

#endif

constexpr int64_t kAhead = 16;  // items whose records are on their way

inline void fetch(const Record& record) {
    const char* from = reinterpret_cast<const char*>(&record);
    for (size_t i = 0; i < sizeof(Record); i += 64) __builtin_prefetch(from + i);
}

template <int Registers, int Steps, bool HasNan>
void through_records(const RecordTrees& trees, const uint32_t* items, int64_t n, uint32_t row_mask,
                     uint32_t* at, uint32_t* next) {
    RecordExits<Registers, Steps, HasNan> exits;
    for (int64_t first = 0; first < n; first += kTogether) {
        const int together = static_cast<int>(n - first < kTogether ? n - first : kTogether);
        if (trees.are_far)
            for (int64_t i = first + kAhead; i < first + kAhead + kTogether && i < n; ++i)
                fetch(trees.records[at[items[i]] >> kRecordBits]);
        auto start = [&](int i) {
            const uint32_t item = items[first + i], place = at[item];
            const RecordRow<Registers> row(trees.codes +
                                           static_cast<int64_t>(item & row_mask) * trees.stride);
            exits.start(i, row, trees.records[place >> kRecordBits],
                        place & static_cast<uint32_t>(kRecordTests - 1));
        };
        auto finish = [&](int i) {
            const uint32_t item = items[first + i];
            const Record& record = trees.records[at[item] >> kRecordBits];
            next[first + i] = at[item] = record.exits[exits.at(i) - kRecordTests];
        };
        if (together == kTogether) {
            for (int i = 0; i < kTogether; ++i) start(i);
            exits.finish(kTogether);
            for (int i = 0; i < kTogether; ++i) finish(i);
        } else {
            for (int i = 0; i < together; ++i) start(i);
            exits.finish(together);
            for (int i = 0; i < together; ++i) finish(i);
        }
    }
}

template <int Registers, bool HasNan>
void with_steps(const RecordTrees& trees, const uint32_t* items, int64_t n, uint32_t row_mask,
                uint32_t* at, uint32_t* next) {
    if (trees.depth <= 8)
        return through_records<Registers, 8, HasNan>(trees, items, n, row_mask, at, next);
    through_records<Registers, 12, HasNan>(trees, items, n, row_mask, at, next);
}

template <bool HasNan>
void with_registers(const RecordTrees& trees, const uint32_t* items, int64_t n, uint32_t row_mask,
                    uint32_t* at, uint32_t* next) {
    const int64_t registers = trees.stride / (kCodeLayout == CodeLayout::words ? 64 : 32);
    if (registers == 1) return with_steps<1, HasNan>(trees, items, n, row_mask, at, next);
    if (registers == 2) return with_steps<2, HasNan>(trees, items, n, row_mask, at, next);
    if constexpr (kCodeLayout == CodeLayout::bytes)
        if (registers > 4) return with_steps<8, HasNan>(trees, items, n, row_mask, at, next);
    with_steps<4, HasNan>(trees, items, n, row_mask, at, next);
}

void records(const RecordTrees& trees, const uint32_t* items, int64_t n, uint32_t row_mask,
             uint32_t* at, uint32_t* next) {
    if (trees.has_nan)
        with_registers<true>(trees, items, n, row_mask, at, next);
    else
        with_registers<false>(trees, items, n, row_mask, at, next);
}

#if defined(__AVX512F__)

int64_t under_way(const uint32_t* items, const uint32_t* places, int64_t n, uint32_t* to) {
    const __m512i first = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    int64_t found = 0;
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 given = static_cast<__mmask16>(n - i < 16 ? (1u << (n - i)) - 1 : 65535);
        const __m512i own = items ? _mm512_loadu_si512(items + i)
                                  : _mm512_add_epi32(first, _mm512_set1_epi32(static_cast<int>(i)));
        const __mmask16 is_test =
            static_cast<__mmask16>(given & ~_mm512_movepi32_mask(_mm512_loadu_si512(places + i)));
        // To a register, and then to memory: to compress into memory is slow on many processors.
        _mm512_storeu_si512(to + found, _mm512_maskz_compress_epi32(is_test, own));
        found += __builtin_popcount(is_test);
    }
    return found;
}

#elif defined(__AVX2__)

// For each mask of 8 lanes, the lanes that are in it, in order.
struct LanesOf {
    alignas(64) uint64_t lanes[256];
    constexpr LanesOf() : lanes() {
        for (int mask = 0; mask < 256; ++mask) {
            int found = 0;
            for (uint64_t lane = 0; lane < 8; ++lane)
                if (mask >> lane & 1) lanes[mask] |= lane << (8 * found++);
        }
    }
};
constexpr LanesOf kLanesOf;

int64_t under_way(const uint32_t* items, const uint32_t* places, int64_t n, uint32_t* to) {
    const __m256i first = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    int64_t found = 0;
    for (int64_t i = 0; i < n; i += 8) {
        const __m256i own = items ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(items + i))
                                  : _mm256_add_epi32(first, _mm256_set1_epi32(static_cast<int>(i)));
        const __m256i place = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(places + i));
        unsigned is_test = ~static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(place)));
        is_test &= n - i < 8 ? (1u << (n - i)) - 1 : 255u;
        const __m256i lanes = _mm256_cvtepu8_epi32(
            _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kLanesOf.lanes + is_test)));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + found),
                            _mm256_permutevar8x32_epi32(own, lanes));
        found += __builtin_popcount(is_test);
    }
    return found;
}

#else

int64_t under_way(const uint32_t* items, const uint32_t* places, int64_t n, uint32_t* to) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; ++i) {
        to[found] = items ? items[i] : static_cast<uint32_t>(i);
        found += places[i] < kAtLeaf;
    }
    return found;
}

#endif

#else

constexpr CodeLayout kCodeLayout = CodeLayout::none;

#endif

}  // namespace
