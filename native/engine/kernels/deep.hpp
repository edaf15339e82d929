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
template <int Steps, typename Node>
inline uint32_t walk(const Node* nodes, const uint16_t* codes, uint32_t at, bool& moved) {
    uint32_t before = at;
    for (int step = 0; step < Steps; ++step) {
        before = at;
        const Node& node = nodes[at];
        at += node.step + static_cast<uint32_t>(codes[node.plane] > node.code);
    }
    moved = at != before;
    return at;
}

constexpr int64_t kDeepRows = 128;  // whose codes stay in the first-level cache
constexpr int kSteps = 2;           // at a time: longer chains leave fewer rows under way at once
constexpr int kFirstSteps = 4;      // without asking which rows are done

// The node where each row ends, from the one that `ends` holds; `rows` holds those under way.
template <typename Node>
void deep(const Node* nodes, const uint16_t* codes, int64_t stride, int64_t n, uint32_t* rows,
          uint32_t* ends) {
    for (int64_t start = 0; start < n; start += kDeepRows) {
        const int64_t m = n - start < kDeepRows ? n - start : kDeepRows;
        const uint16_t* own = codes + start * stride;
        uint32_t* at = ends + start;
        bool moved;
        for (int step = 0; step < kFirstSteps; step += kSteps)
            for (int64_t i = 0; i < m; ++i)
                at[i] = walk<kSteps>(nodes, own + i * stride, at[i], moved);
        for (int64_t i = 0; i < m; ++i) rows[i] = static_cast<uint32_t>(i);
        for (int64_t under_way = m; under_way;) {
            const int64_t count = under_way;
            under_way = 0;
            for (int64_t i = 0; i < count; ++i) {
                const uint32_t row = rows[i];
                at[row] = walk<kSteps>(nodes, own + row * stride, at[row], moved);
                rows[under_way] = row;
                under_way += moved;
            }
        }
    }
}

// sum[row] += the value of the leaf where it ends.
template <typename Node, typename T>
void add_ends(const uint32_t* ends, int64_t n, const Node* nodes, const T* values, T* sum) {
    for (int64_t i = 0; i < n; ++i) sum[i] += values[nodes[ends[i]].leaf];
}

// Exit leaves of `n_trees` trees for one row. Trees go down side by side, in registers, until none
// of them moves: no store waits for a step, and none of their loads for one another.
constexpr int kTreesTogether = 8, kFewSteps = 2;  // measured

template <int Together, typename Node>
inline void few_together(const Node* nodes, const int64_t* start, const uint16_t* codes,
                         uint32_t* found) {
    const Node* at[Together];
    for (int i = 0; i < Together; ++i) at[i] = nodes + start[i];
    uint32_t moved;
    do {
        moved = 0;
        for (int step = 0; step < kFewSteps; ++step)
            for (int i = 0; i < Together; ++i) {
                const uint32_t own = at[i]->step;
                at[i] += own + static_cast<uint32_t>(codes[at[i]->plane] > at[i]->code);
                if (step + 1 == kFewSteps) moved |= own;
            }
    } while (moved);
    for (int i = 0; i < Together; ++i) found[i] = at[i]->leaf;
}

template <typename Node>
void few(const Node* nodes, const int64_t* start, int64_t n_trees, const uint16_t* codes,
         uint32_t* found) {
    int64_t tree = 0;
    for (; tree + kTreesTogether <= n_trees; tree += kTreesTogether)
        few_together<kTreesTogether>(nodes, start + tree, codes, found + tree);
    for (; tree < n_trees; ++tree) few_together<1>(nodes, start + tree, codes, found + tree);
}

}  // namespace
