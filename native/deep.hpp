// Down a deep tree, many rows at once, over 8-byte nodes and 16-bit codes.
//
// Included by kernels.cpp, once for each target. Selecting from the bottom costs every test for
// every row; where a tree has thousands of leaves, following the path costs less.
#pragma once

namespace {

template <typename Node, typename Leaf>
void walk_plain(const Node* nodes, const uint8_t* codes, int64_t tile_rows, int64_t row, int64_t n,
                Leaf* leaves) {
    constexpr int64_t kAtOnce = 16;  // enough to hide the latency of a load
    for (int64_t i = 0; i < n; i += kAtOnce) {
        const int64_t m = n - i < kAtOnce ? n - i : kAtOnce;
        int32_t at[kAtOnce] = {};
        bool any = true;
        while (any) {
            any = false;
            for (int64_t r = 0; r < m; ++r) {
                const Node& node = nodes[at[r] < 0 ? 0 : at[r]];
                uint16_t code;
                std::memcpy(&code, codes + 2 * (node.plane * tile_rows + row + i + r), 2);
                const int32_t left = node.left, right = node.right;
                int32_t next = code <= node.code ? left : right;
                next = at[r] < 0 ? at[r] : next;
                at[r] = next;
                any |= next >= 0;
            }
        }
        for (int64_t r = 0; r < m; ++r) leaves[i + r] = static_cast<Leaf>(~at[r]);
    }
}

#if defined(__AVX512F__) && !defined(DM_SCALAR)

// Codes are read four bytes at a time: the buffer has two bytes beyond the last code.
void walk16(const Node16* nodes, const uint8_t* codes, int64_t tile_rows, int64_t row, int64_t n,
            uint16_t* leaves) {
    constexpr int kVectors = 4;
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i rows = _mm512_set1_epi32(static_cast<int>(tile_rows));
    const __m512i low = _mm512_set1_epi32(0xFFFF);
    const int* first = reinterpret_cast<const int*>(nodes);
    for (int64_t i = 0; i < n; i += 16 * kVectors) {
        __m512i at[kVectors], place[kVectors];
        __mmask16 inside[kVectors];
        for (int v = 0; v < kVectors; ++v) {
            at[v] = _mm512_setzero_si512();
            place[v] = _mm512_add_epi32(lane, _mm512_set1_epi32(static_cast<int>(row + i + 16 * v)));
            inside[v] = 0xFFFF;
        }
        unsigned any = 1;
        while (any) {
            any = 0;
            for (int v = 0; v < kVectors; ++v) {
                const __m512i zero = _mm512_setzero_si512();
                const __m512i test =
                    _mm512_mask_i32gather_epi32(zero, inside[v], at[v], first, 8);
                const __m512i child =
                    _mm512_mask_i32gather_epi32(zero, inside[v], at[v], first + 1, 8);
                const __m512i where = _mm512_add_epi32(
                    _mm512_mullo_epi32(_mm512_and_si512(test, low), rows), place[v]);
                const __m512i code = _mm512_and_si512(
                    _mm512_mask_i32gather_epi32(zero, inside[v], where, codes, 2), low);
                const __mmask16 right = _mm512_cmpgt_epu32_mask(code, _mm512_srli_epi32(test, 16));
                const __m512i left = _mm512_slli_epi32(child, 16);
                const __m512i next =
                    _mm512_srai_epi32(_mm512_mask_mov_epi32(left, right, child), 16);
                at[v] = _mm512_mask_mov_epi32(at[v], inside[v], next);
                inside[v] = _mm512_cmpge_epi32_mask(at[v], zero);
                any |= inside[v];
            }
        }
        for (int v = 0; v < kVectors; ++v) {
            const __m512i leaf = _mm512_xor_si512(at[v], _mm512_set1_epi32(-1));
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(leaves + i + 16 * v),
                                _mm512_cvtepi32_epi16(leaf));
        }
    }
}

#else

void walk16(const Node16* nodes, const uint8_t* codes, int64_t tile_rows, int64_t row, int64_t n,
            uint16_t* leaves) {
    walk_plain(nodes, codes, tile_rows, row, n, leaves);
}

#endif

void walk32(const Node32* nodes, const uint8_t* codes, int64_t tile_rows, int64_t row, int64_t n,
            uint32_t* leaves) {
    walk_plain(nodes, codes, tile_rows, row, n, leaves);
}

}  // namespace
