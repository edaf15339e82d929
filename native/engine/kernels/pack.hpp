// One row: the paper's h = sign(S x - t) of up to 64 tests in two instructions.
//
// Included by kernels.cpp, once for each target. The row's codes fill one register (or two, or
// four). A permute by S brings every test of a pack its code, one comparison with the tests' codes
// gives h, and h chooses each test's next test. The last test of a path leads to itself, so
// composing the map with itself, a permute each time, carries every root to the end of its path in
// log2(depth) instructions; with tests numbered from left to right its leaf stands beside it.
#pragma once

namespace {

#if defined(__AVX512VBMI__) && !defined(DM_SCALAR)
#define DM_HAS_PACKS

// How many of a column's keys are below x, 16 keys at a time.
inline uint32_t row_rank(const float* keys, const uint32_t* level_sizes, int levels, float x) {
    const __m512 value = _mm512_set1_ps(x);
    uint32_t rank = 0;
    for (int level = 0; level < levels; ++level) {
        const __mmask16 below =
            _mm512_cmp_ps_mask(_mm512_loadu_ps(keys + 16 * rank), value, _CMP_LT_OQ);
        keys += 16 * level_sizes[level];
        rank = 16 * rank + static_cast<uint32_t>(__builtin_popcount(below));
    }
    return rank;
}

inline uint32_t row_rank(const Coding&, const RowCoding& row, const RowColumn& own, const Column&,
                         const uint32_t* sizes, float x) {
    return row_rank(row.keys + own.keys, sizes, own.levels, x);
}
inline uint32_t row_rank(const Coding& coding, const RowCoding& row, const RowColumn& own,
                         const Column& column, const uint32_t* sizes, double x) {
    const float rounded = round_down(x);
    const float* keys = row.keys + own.keys;
    const uint32_t rank = row_rank(keys, sizes, own.levels, rounded);
    for (int level = 0; level + 1 < own.levels; ++level) keys += 16 * sizes[level];
    // The last level holds all keys, and a padding of infinities.
    if (keys[rank] == rounded) return rank_double(coding, column, x);
    return rank;
}

inline void put_bytes(uint32_t code, int16_t plane, int n_planes, uint8_t* codes) {
    codes[plane] = static_cast<uint8_t>(code < 255 ? code : 255);
    for (int i = 1; i < n_planes; ++i) {
        code = code < 255 ? 0 : code - 255;
        codes[plane + i] = static_cast<uint8_t>(code < 255 ? code : 255);
    }
}

template <typename T>
void code_row_bytes(const Coding& coding, const RowCoding& row, const T* given, uint8_t* codes) {
    for (int64_t i = 0; i < coding.n_columns; ++i) {
        const RowColumn& own = row.columns[i];
        const Column& c = coding.columns[own.column];
        T x = given[own.x];
        if (c.rule == Rule::nan_as_zero) x = x == x ? x : T(0);
        if (c.rule == Rule::zero_as_nan) x = std::abs(x) <= T(kZero) ? T(NAN) : x;
        const uint32_t code =
            row_rank(coding, row, own, c, row.level_sizes + kMostRowLevels * i, x);
        if (own.low >= 0) put_bytes(code, own.low, own.n_planes, codes);
        if (own.high >= 0) put_bytes(x == x ? code : c.nan, own.high, own.n_planes, codes);
    }
}

void code_bytes(const Coding& coding, const RowCoding& row, const void* x, bool single,
                uint8_t* codes) {
    if (single)
        code_row_bytes(coding, row, static_cast<const float*>(x), codes);
    else
        code_row_bytes(coding, row, static_cast<const double*>(x), codes);
}

// A row's codes, 64 to a register.
template <int Registers>
struct RowCodes {
    __m512i codes[Registers];
    explicit RowCodes(const uint8_t* from) {
        for (int i = 0; i < Registers; ++i) codes[i] = _mm512_loadu_si512(from + 64 * i);
    }
    __m512i look_up(__m512i plane) const {
        if constexpr (Registers == 1) {
            return _mm512_permutexvar_epi8(plane, codes[0]);
        } else if constexpr (Registers == 2) {
            return _mm512_permutex2var_epi8(codes[0], plane, codes[1]);
        } else {
            return _mm512_mask_blend_epi8(_mm512_movepi8_mask(plane),
                                          _mm512_permutex2var_epi8(codes[0], plane, codes[1]),
                                          _mm512_permutex2var_epi8(codes[2], plane, codes[3]));
        }
    }
};

// The last tests of the paths from a pack's roots, a byte each; h: a bit for each test that goes
// right, given those of sets. All in registers: to store the map and read bytes of it took twice as
// long.
template <int Doublings, int Registers>
inline uint64_t last_tests(const Pack& pack, const uint8_t* roots, const RowCodes<Registers>& codes,
                           uint64_t sets, uint64_t& h) {
    const __m512i code = codes.look_up(_mm512_load_si512(pack.plane));
    const __mmask64 right = _mm512_cmpgt_epu8_mask(code, _mm512_load_si512(pack.code)) | sets;
    h = right;
    __m512i next =
        _mm512_mask_mov_epi8(_mm512_load_si512(pack.left), right, _mm512_load_si512(pack.right));
    for (int i = 0; i < Doublings; ++i) next = _mm512_permutexvar_epi8(next, next);
    const __m128i first = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(roots));
    const __m512i last = _mm512_permutexvar_epi8(_mm512_castsi128_si512(first), next);
    return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm512_castsi512_si128(last)));
}

template <int Doublings, int Registers, typename Use>
inline void each_tree(const RowPacks& row, const Use& use) {
    const RowCodes<Registers> codes(row.codes);
    const Pack* pack = row.packs;
    const uint8_t* roots = row.roots;
    for (int64_t i = 0; i < row.n_trees; ++pack, roots += kPackTrees) {
        uint64_t h;
        const uint64_t sets = row.rights ? row.rights[pack - row.packs] : 0;
        uint64_t tests = last_tests<Doublings>(*pack, roots, codes, sets, h);
        bool is_last;
        do {
            const PackTree& tree = row.trees[i];
            const uint64_t test = tests & 255;
            tests >>= 8;
            is_last = tree.ends_pack;
            use(i++, tree, static_cast<uint32_t>(test + (h >> test & 1)));
        } while (!is_last);
    }
}

template <int Registers, typename Use>
inline void with_doublings(const RowPacks& row, const Use& use) {
    if (row.doublings <= 2) return each_tree<2, Registers>(row, use);
    if (row.doublings == 3) return each_tree<3, Registers>(row, use);
    if (row.doublings == 4) return each_tree<4, Registers>(row, use);
    if (row.doublings == 5) return each_tree<5, Registers>(row, use);
    each_tree<6, Registers>(row, use);
}

template <typename Use>
inline void with_registers(const RowPacks& row, const Use& use) {
    if (row.n_planes <= 64) return with_doublings<1>(row, use);
    if (row.n_planes <= 128) return with_doublings<2>(row, use);
    with_doublings<4>(row, use);
}

void packs(const RowPacks& row, uint32_t* found) {
    with_registers(
        row, [&](int64_t i, const PackTree& tree, uint32_t leaf) { found[i] = leaf - tree.first; });
}

template <typename T>
T pack_sum(const RowPacks& row, const T* values, T sum) {
    T total = sum;
    with_registers(row, [&](int64_t, const PackTree& tree, uint32_t leaf) {
        total += values[static_cast<int64_t>(tree.values) + leaf];
    });
    return total;
}

#endif

}  // namespace
