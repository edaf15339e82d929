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

// Exit leaves of `n_trees` trees for one row: as above, trees in the place of rows.
constexpr int kFewSteps = 2;  // measured

template <typename Node>
void few(const Node* nodes, const int64_t* start, int64_t n_trees, const uint16_t* codes,
         uint32_t* rows, uint32_t* found) {
    bool moved;
    for (int64_t i = 0; i < n_trees; ++i)
        found[i] = walk<kFewSteps>(nodes + start[i], codes, 0, moved);
    for (int64_t i = 0; i < n_trees; ++i) {
        found[i] = walk<kFewSteps>(nodes + start[i], codes, found[i], moved);
        rows[i] = static_cast<uint32_t>(i);
    }
    for (int64_t under_way = n_trees; under_way;) {
        const int64_t count = under_way;
        under_way = 0;
        for (int64_t i = 0; i < count; ++i) {
            const uint32_t tree = rows[i];
            found[tree] = walk<kFewSteps>(nodes + start[tree], codes, found[tree], moved);
            rows[under_way] = tree;
            under_way += moved;
        }
    }
    for (int64_t i = 0; i < n_trees; ++i) found[i] = nodes[start[i] + found[i]].leaf;
}

}  // namespace
