// What the kernels of every target share: views of a compiled plan, and the table of entry points.
//
// Plain structs and raw pointers only. This header is compiled once for each target, and an inline
// function of the standard library, compiled here for AVX-512, might be the one that the linker
// keeps for everyone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dm {

constexpr int64_t kBlockRows = 1024;  // rows to one operation of a tree
constexpr int64_t kBlockBytes = kBlockRows / 8;
constexpr int64_t kCodeRows = 128;  // rows whose features are coded together, while they are in L1

enum class Rule : uint8_t { value = 0, nan_as_zero = 1, zero_as_nan = 2, member = 3 };
enum class Dtype : uint8_t { f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean };
constexpr int kSplitsFloat = 1, kSplitsDouble = 2;
enum class Aggregate : uint8_t { sum, min, max };

// One feature as the caller holds it: value of row r at data + r * stride, in `dtype`.
struct Feature {
    const char* data;
    int64_t stride;
    Dtype dtype;
};

// One column of the machine with its thresholds, sorted: code(z) = how many are below z.
struct Column {
    uint32_t feature;
    Rule rule;
    uint8_t levels;       // of the search tree of its thresholds
    uint8_t width;        // bytes to a code, 1 or 2
    uint32_t n;           // thresholds; the largest code
    int64_t keys;         // where its search tree of 2^levels keys starts in keys32
    int64_t keys64;       // where its thresholds start in sorted32 and keys64
    int64_t low, high;    // planes where NaN has the lowest / highest code, in bytes to a row; or -1
    int32_t low_number, high_number;  // the same planes, counted
    uint32_t code0, code1;  // of z = 0 and z = 1
    int64_t set, set_size;  // members: answers by category (see Coding::answers)
    int8_t outside;
};

// How a run of trees sees the columns.
struct Coding {
    const Column* columns;
    int64_t n_columns;
    const float* keys32;    // search trees of thresholds rounded down: exact for every float32 x
    const double* keys64;   // thresholds of float64 columns, ascending in each column
    const int64_t* members;   // categories, ascending within a set
    const int8_t* answers;    // -1, 0 or +1 by member
    const int8_t* tables;     // answers by category itself, for sets of small categories
    const int64_t* table_of;  // (n_columns,) where a column's table starts, or -1
    bool negative_fractions;
    bool whole;  // only whole numbers are categories
};

// A test of a group: right where code >= at_least.
struct Test {
    uint16_t plane, at_least;
};

// Where a plane of codes stands.
struct Plane {
    uint32_t start;  // in bytes to a row
    uint32_t width;  // bytes to a code
};

// slots[to] = slots[test] ? slots[right] : slots[left], for a bit of the leaf's label. `to` counts
// from the first slot after the tests. Packed: there are some two of them to every test.
struct __attribute__((packed)) Select {
    uint16_t test, left, right;
    uint8_t to;
};

// A tree of a select group. The exit leaf's label stands in bit planes.
struct SelectTree {
    uint32_t first, last;  // its operations
    uint32_t bits;         // where the slots of its label's bits start, lowest first
    uint8_t n_bits;
    bool gray;  // label = Gray code of the leaf's number, else the number itself
};

// A test or a leaf of a tree that is walked: left, `step` nodes on, where the code is at most
// `code`, else right, to the node after that. A leaf steps nowhere; `leaf` is its number.
struct WalkNode {
    uint16_t plane, code, step, leaf;
};
// The same for trees of more than 65 535 leaves.
struct WideNode {
    uint16_t plane, code;
    uint32_t step, leaf;
};

// A test as one row walks it, over z itself, for machines that cannot be coded.
struct RawNode {
    double t;
    uint32_t z;           // 2 * column + (NaN goes left)
    int32_t left, right;  // a test of the tree >= 0, or ~leaf
};

// Slots: all 0, all 1, the tests' results, and then what the trees' selects find.
constexpr int64_t kFirstTest = 2;

struct SelectGroup {
    const Test* tests;
    int64_t n_tests;
    const Plane* planes;
    const Select* selects;
    const uint16_t* bits;
};

// Walks over one kind of nodes.
template <typename Node>
struct Walks {
    // The node where each row of a tile ends, from the node that `ends` holds; `rows` is a buffer.
    void (*deep)(const Node* nodes, const uint16_t* codes, int64_t stride, int64_t n,
                 uint32_t* rows, uint32_t* ends);
    // sum[row] += values[leaf of ends[row]]
    void (*add32)(const uint32_t* ends, int64_t n, const Node* nodes, const float* values,
                  float* sum);
    void (*add64)(const uint32_t* ends, int64_t n, const Node* nodes, const double* values,
                  double* sum);
    // Exit leaves of all trees for one row; `rows` is a buffer of as many.
    void (*few)(const Node* nodes, const int64_t* start, int64_t n_trees, const uint16_t* codes,
                uint32_t* rows, uint32_t* found);
};

// Entry points of one target. n is at most kBlockRows where rows are a block; buffers that hold
// rows of a block have room for all kBlockRows.
struct Kernels {
    const char* name;
    int splits;  // which values of up to 64 leaves stand as planes of their bytes
    // Values of one feature, cast as the machine casts them. x is float where `single`.
    void (*load)(const Feature& feature, int64_t row, int64_t n, bool integers_single, bool single,
                 double missing_value, void* x);
    // Codes of one column into its planes; low and high point at the first row, or are null.
    void (*code)(const Coding& coding, int64_t column, const void* x, bool single, int64_t n,
                 void* low, void* high);
    // Results of all tests of a group over one block, a bit to a row.
    void (*tests)(const SelectGroup& group, const uint8_t* codes, int64_t tile_rows, int64_t row,
                  uint8_t* slots);
    // Labels of one tree over one block, from its tests' results.
    void (*select)(const SelectGroup& group, const SelectTree& tree, uint8_t* slots, void* labels);
    Walks<WalkNode> walks;
    Walks<WideNode> wide_walks;
    // 16-bit codes of one row; x by column, float where `single`.
    void (*code_row)(const Coding& coding, const void* x, bool single, uint16_t* codes);
    // sum[row] = sum[row] (+, min, max) values[labels[row]], by the bytes of a label.
    void (*add32)(const void* labels, int label_bytes, const float* values, int64_t n_labels,
                  Aggregate aggregate, float* sum);
    void (*add64)(const void* labels, int label_bytes, const double* values, int64_t n_labels,
                  Aggregate aggregate, double* sum);
};

#define DM_DECLARE_TARGET(name) \
    namespace name {            \
    extern const Kernels kernels; \
    }
DM_DECLARE_TARGET(scalar)
DM_DECLARE_TARGET(v2)
DM_DECLARE_TARGET(v3)
DM_DECLARE_TARGET(v4)
DM_DECLARE_TARGET(v4_vbmi)
DM_DECLARE_TARGET(neon)
#undef DM_DECLARE_TARGET

}  // namespace dm
