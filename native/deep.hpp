// Deep trees: every row of a tile walks, a few steps at a time, over 8-byte nodes and 16-bit codes.
//
// Included by kernels.cpp, once for each target. Selecting from the bottom costs every test for
// every row, which is too much for thousands of leaves. Here no step depends on a branch: a leaf
// leads to itself, children stand side by side, and after each round of steps the rows that are
// not done are gathered for the next. Rows are independent, so the processor has many of them
// under way; a row's codes stand together and stay in the first-level cache.
#pragma once

namespace {

// `Steps` steps from node `at`. Sets `moved` to whether the last of them was one.
template <int Steps>
inline uint32_t walk(const WalkNode* nodes, const uint16_t* codes, uint32_t at, bool& moved) {
    uint32_t before = at;
    for (int step = 0; step < Steps; ++step) {
        before = at;
        const WalkNode node = nodes[at];
        at = node.child + static_cast<uint32_t>(codes[node.plane] > node.code);
    }
    moved = at != before;
    return at;
}

// The node where each row ends. Rows that are under way stand in buffers.rows.
void deep(const WalkNode* nodes, const uint16_t* codes, int64_t stride, int64_t n, uint32_t* rows,
          uint32_t* ends) {
    int64_t under_way = 0;
    for (int64_t i = 0; i < n; ++i) {
        bool moved;
        ends[i] = walk<8>(nodes, codes + i * stride, 0, moved);
        rows[under_way] = static_cast<uint32_t>(i);
        under_way += moved;
    }
    while (under_way) {
        const int64_t m = under_way;
        under_way = 0;
        for (int64_t i = 0; i < m; ++i) {
            const uint32_t row = rows[i];
            bool moved;
            ends[row] = walk<4>(nodes, codes + row * stride, ends[row], moved);
            rows[under_way] = row;
            under_way += moved;
        }
    }
}

// sum[row] += the value of the leaf where it ends.
template <typename T>
void add_ends(const uint32_t* ends, int64_t n, const uint32_t* leaves, const T* values, T* sum) {
    for (int64_t i = 0; i < n; ++i) sum[i] += values[leaves[ends[i]]];
}

// Exit leaves of `n_trees` trees for one row, several trees at once.
void few(const WalkNode* nodes, const int64_t* start, int64_t n_trees, const uint16_t* codes,
         const uint32_t* leaves, uint32_t* found) {
    constexpr int64_t kAtOnce = 16;
    for (int64_t tree = 0; tree < n_trees; tree += kAtOnce) {
        const int64_t m = n_trees - tree < kAtOnce ? n_trees - tree : kAtOnce;
        uint32_t at[kAtOnce] = {};
        bool any = true;
        while (any) {
            any = false;
            for (int64_t i = 0; i < m; ++i) {
                bool moved;
                at[i] = walk<4>(nodes + start[tree + i], codes, at[i], moved);
                any |= moved;
            }
        }
        for (int64_t i = 0; i < m; ++i) found[tree + i] = leaves[start[tree + i] + at[i]];
    }
}

}  // namespace
