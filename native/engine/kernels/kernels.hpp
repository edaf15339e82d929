// What the kernels of every target share: views of a compiled plan, and the table of entry points.
//
// Plain structs and raw pointers only. This header is compiled once for each target, and an inline
// function of the standard library, compiled here for AVX-512, might be the one that the linker
// keeps for everyone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/every_target.hpp"

namespace dm::engine {

constexpr int64_t kBlockRows = 1024;  // rows to one operation of a tree
constexpr int64_t kBlockBytes = kBlockRows / 8;
constexpr int64_t kCodeRows = 128;  // rows whose features are coded together, while they are in L1

constexpr int64_t kBeside = 8;  // features that are read together where a row's lie together

enum class Rule : uint8_t { value = 0, nan_as_zero = 1, zero_as_nan = 2, member = 3 };
enum class Dtype : uint8_t { f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean };
constexpr int kSplitsFloat = 1, kSplitsDouble = 2;
enum class Aggregate : uint8_t { sum, min, max };

// One feature as the caller holds it: value of row r at data + r * stride, in `dtype`.
struct Feature {
    const char* data;
    int64_t stride;
    Dtype dtype;
    const double* labels = nullptr;  // x by value, where values count labels
    int64_t n_labels = 0;            // others are missing
    const uint8_t* mask = nullptr;   // by row: true where it is missing
    const uint8_t* valid = nullptr;  // a bit by row, from first_bit on: set where it is not
    int64_t first_bit = 0;
};

// A grid over the range of a column's thresholds, of buckets that hold few of them each.
struct Buckets {
    float low, scale;  // bucket = (x - low) * scale, monotone in x as it is rounded
    uint32_t n;        // buckets, or 0 where the column has a search tree instead
    uint32_t first;    // where the ranks of the buckets' first thresholds start
    uint8_t keys;      // the most thresholds of a bucket
};

// The bucket of x; NaN's is the first. `last` is the number of the last one.
inline uint32_t bucket_of(const Buckets& buckets, float last, float x) {
    float place = (x - buckets.low) * buckets.scale;
    place = place > 0.0f ? place : 0.0f;
    place = place < last ? place : last;
    return static_cast<uint32_t>(static_cast<int32_t>(place));
}

// One column of the machine with its thresholds, sorted: code(z) = how many are below z.
struct Column {
    uint32_t feature;
    Rule rule;
    uint8_t levels;  // of the search tree of its thresholds
    uint8_t width;   // bytes to a code, 1 or 2
    uint32_t n;      // thresholds; the largest code
    uint32_t keys;   // where its search tree of 2^levels keys starts in keys32; or, where it has
                     // buckets, its keys in ascending order
    Buckets buckets;
    uint32_t sorted;    // where its thresholds start in Coding::sorted
    int32_t low, high;  // planes where NaN has code 0 / the code `nan`, in bytes to a row; or -1
    int32_t low_number, high_number;  // the same planes, counted
    uint32_t nan;                     // NaN's code in the high plane
};

// How a run of trees sees the columns.
struct Coding {
    const Column* columns;
    int64_t n_columns;
    const float* keys32;  // search trees of thresholds rounded down: exact for every float32 x
    const uint16_t* bucket_first;
    const double* t;         // the machine's own thresholds
    const uint32_t* sorted;  // tests of float64 columns, by ascending threshold in each column
};

// How the categories of one feature are coded, once for all sets; see categories.hpp.
struct Categories {
    const uint16_t* codes;      // by category, then of all that no set holds, then of NaN
    int64_t n_near;             // categories that stand in `codes`
    const int64_t* far;         // further ones, ascending,
    const uint16_t* far_codes;  // and their codes
    int64_t n_far;
    bool negative_fractions;  // above -1 they are category 0
    bool whole;               // only whole numbers are categories
};

// A test of a group: right where code >= at_least.
struct Test {
    uint16_t plane, at_least;
};

// Where a plane of codes stands; or a set of categories, whose plane is made of those of its
// feature's codes when a test needs it: 1 where a bit table has the code, else 0.
struct Plane {
    uint32_t start;  // in bytes to a row
    uint8_t width;   // bytes to a code
    bool is_small;   // codes are below 128
    bool is_set;
    uint16_t n_codes;  // of a set's feature, where its width is 1
    int64_t table;     // of a set, in bytes
};

// slots[to] = slots[test] ? slots[right] : slots[left], for a bit of the leaf's label. `to` counts
// from the first slot after the tests. Packed: there are some two of them to every test.
struct __attribute__((packed)) Select {
    uint16_t test, left, right;
    uint8_t to;
};

// A tree of a select group. The exit leaf's label stands in bit planes.
struct SelectTree {
    uint32_t first;      // of its operations, up to the next tree's
    uint32_t bits : 27;  // where the slots of its label's bits start, lowest first
    uint32_t n_bits : 5;
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

// Up to 32 tests of one deep tree: a subtree of it, or several. A test leads to a test of the same
// record (a number below kRecordTests), or to an exit of the record (kRecordTests and more).
constexpr int64_t kRecordTests = 32;
constexpr int kRecordBits = 5;  // of a test's number in a place
struct alignas(64) Record {
    uint8_t code[2 * kRecordTests];  // right where the column's code is above; see CodeLayout
    // `left` and `right` begin a line of 64 bytes: all of it is loaded, and half is masked out.
    uint8_t left[kRecordTests], column[kRecordTests], right[kRecordTests];
    uint32_t missing_left;  // a bit for each test that NaN passes to the left
    uint8_t unused[28];
    uint32_t exits[kRecordTests];  // places
};
// Where a row stands in a tree of records: the record << kRecordBits | a test of it, or
// kAtLeaf | the leaf's number.
constexpr uint32_t kAtLeaf = uint32_t{1} << 31;
constexpr int64_t kMostRecordColumns = 128;

// A test or a leaf below the top of a deep tree: left, `step` nodes on, where the plane's code is
// at most `code`, else right, to the node after that. A leaf steps nowhere: `code` is its number,
// and its plane is one more than there are, whose codes are 0.
struct TwigNode {
    uint16_t code;
    uint8_t plane, step;
};
constexpr int64_t kMostTwigPlanes = 255, kMostTwigLeaves = 255;  // leaves of one twig
constexpr int64_t kMostTwigTreeLeaves = 65536;

// How records and rows hold 16-bit codes: as words, or all low bytes before all high bytes, both
// with their highest bit turned, so that signed bytes compare as the codes do.
enum class CodeLayout : uint8_t { none, words, bytes };

// A column's codes in rows: those of a plane, and kNanCode where another plane, if it has one, has
// a different code.
struct RecordColumn {
    int32_t plane, other;
};
constexpr uint16_t kNanCode = 65535;

struct RecordTrees {
    const Record* records;
    const uint8_t* codes;  // of each row together, `stride` bytes to a row
    int64_t stride;
    bool has_nan;   // a code is kNanCode
    bool are_far;   // records are in no near cache: each is fetched while others are gone through
    int64_t depth;  // the greatest number of tests on a path through a record
};

// Tests of one or more trees of up to 64 tests together, numbered from left to right within their
// tree. One row is a register of codes, one to a byte.
constexpr int64_t kPackTests = 64, kPackTrees = 8;
constexpr int64_t kMostPackPlanes = 256;
struct alignas(64) Pack {
    uint8_t plane[kPackTests], code[kPackTests];  // right where the plane's code is above
    uint8_t left[kPackTests], right[kPackTests];  // the child's test; the test itself for a leaf
};

// Where a tree stands in its pack. Test j has leaf j - first to its left, j + 1 - first to its
// right.
struct PackTree {
    uint32_t values;  // of leaf j: values + j, over all leaves of the machine
    uint8_t first;
    bool ends_pack;  // it is the last tree of its pack
};

// How one row is coded in bytes: ranks by search trees of 16 keys to a node, level after level.
struct RowColumn {
    uint32_t column;  // of the section
    uint32_t x;       // the feature's place among the used ones
    uint32_t keys;    // where its top node starts in RowCoding::keys, in floats
    uint8_t levels;
    uint8_t n_planes;   // for each of low and high: 255 thresholds to a plane
    int16_t low, high;  // their first planes, or -1
};
struct RowCoding {
    const RowColumn* columns;
    const float* keys;            // thresholds rounded down; each level after the one above it
    const uint32_t* level_sizes;  // nodes to a level, kMostRowLevels for each column
};
constexpr int kMostRowLevels = 4;

// A row's codes, and the packs that they go through.
struct RowPacks {
    const Pack* packs;
    const uint8_t* roots;  // first tests of the packs' trees, kPackTrees for each pack
    const PackTree* trees;
    int64_t n_trees;
    const uint8_t* codes;
    int64_t n_planes;
    int doublings;
    const uint64_t* rights;  // by pack, its tests of sets that go right; null where it has none
};

// Tests that weigh several columns: right where the sum of z[column] weight is above t.
struct ObliqueTests {
    const int64_t* start;   // (n_tests + 1,) where a test's terms start, by ascending column
    const int32_t* column;  // by term, as z has them; null where every test has all n_terms of z
    const void* weight;     // by term, of z's type
    int64_t n_terms;
    const double* t;
    const int8_t* missing;
    const int32_t* children;  // (n_tests, 2)
};
constexpr int64_t kUnderWayBytes = 8;  // to a row under way

constexpr int64_t kAddTrees = 4;  // whose values are added in one go

// Slots: all 0, all 1, the tests' results, and then what the trees' selects find.
constexpr int64_t kFirstTest = 2;
constexpr int64_t kTableBytes = 32;  // the bits of all codes of a byte

// Where planes of codes stand: plane p of row r at codes + planes[p].start * rows + r * width.
struct PlaneCodes {
    const uint8_t* codes;
    const Plane* planes;
    int64_t rows;
};

struct SelectGroup {
    const Test* tests;
    int64_t n_tests;
    const Plane* planes;
    const uint8_t* tables;  // bits of sets by code, each of at least kTableBytes
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
    // Exit leaves of all trees for one row.
    void (*few)(const Node* nodes, const int64_t* start, int64_t n_trees, const uint16_t* codes,
                uint32_t* found);
};

// What is computed in floats, and again in doubles: T is the type of the sums, for oblique trees
// that of z.
template <typename T>
struct TypedKernels {
    // sum[row, output] += V[leaf of places[row], output], for `width` outputs.
    void (*add_places)(const uint32_t* places, int64_t n, const T* V, int64_t width, T* sum);
    // The same from tables of few values, n_trees trees one after the other for each row: by labels
    // of a byte, `stride` of them to a tree.
    void (*add_few_values)(const uint8_t* labels, int64_t stride, int64_t n_trees, int64_t n,
                           const T* values, int64_t width, T* sum);
    // sum[row] = sum[row] (+, min, max) values[labels[row]], by the bytes of a label.
    void (*add)(const void* labels, int label_bytes, int64_t n, const T* values, int64_t n_labels,
                Aggregate aggregate, T* sum);
    // The same sum of kAddTrees trees, one after the other for each row, by labels of a byte: each
    // tree has kBlockRows of them. `values` and `n_labels` are by tree.
    void (*add_trees)(const uint8_t* labels, int64_t n, const T* const* values,
                      const int64_t* n_labels, T* sum);
    // The sum of the values of all trees' exit leaves for one row by packs, from `sum` on, tree
    // after tree; null where Kernels::packs is.
    T (*pack_sum)(const RowPacks& packs, const T* values, T sum);
    // Exit leaves of one oblique tree, counted over all trees, for n rows of z; see oblique.hpp.
    void (*oblique)(const ObliqueTests& tests, int32_t root, const T* z, int64_t stride, int64_t n,
                    void* buffer, uint32_t* leaves);
};

// Entry points of one target. n is at most kBlockRows where rows are a block. Kernels may read and
// write up to the next multiple of 64 rows: buffers that hold a block have room for kBlockRows.
struct Kernels {
    const char* name;
    // Of tests and selects, relative to AVX-512's; steps of a walk cost the same everywhere.
    double select_cost;
    double record_cost;  // of a tree of more than one record, in the units of tests and selects
    double twig_cost;    // of a tree of twigs
    int splits;          // which values of up to 64 leaves stand as planes of their bytes
    // Values of one feature, cast as the machine casts them. x is float where `single`.
    void (*load)(const Feature& feature, int64_t row, int64_t n, bool integers_single, bool single,
                 double missing_value, void* x);
    // Values of kBeside features that lie side by side, floats or doubles; n is at most kCodeRows.
    void (*load_rows)(const Feature& first, int64_t row, int64_t n, bool single, void* x);
    // Codes of one column into its planes; low and high point at the first row, or are null.
    void (*code)(const Coding& coding, int64_t column, const void* x, bool single, int64_t n,
                 void* low, void* high);
    // Codes of the categories of one feature, `width` bytes to each; n is at most kCodeRows.
    void (*code_categories)(const Categories& categories, const void* x, bool single, int64_t n,
                            int width, void* codes);
    // 16-bit codes, 0 or 1, of n planes from as many bits.
    void (*spread_bits)(const uint8_t* bits, int64_t n, uint16_t* codes);
    // Results of all tests of a group over the first n rows of a block, a bit to a row.
    void (*tests)(const SelectGroup& group, const uint8_t* codes, int64_t tile_rows, int64_t row,
                  int64_t n, uint8_t* slots);
    // Labels of one tree over one block, from its tests' results.
    void (*select)(const SelectGroup& group, const SelectTree& tree, int64_t n, uint8_t* slots,
                   void* labels);
    // ends[row] = nodes[labels[row]] for the labels of a top. Labels and ends have room for the
    // next multiple of 64 rows, and labels are less than n_nodes.
    void (*top_exits)(const uint8_t* labels, int64_t n, const uint32_t* nodes, int64_t n_nodes,
                      uint32_t* ends);
    Walks<WalkNode> walks;
    Walks<WideNode> wide_walks;
    // Deep trees by records; null, and the layout none, where the target has no permute for them.
    CodeLayout code_layout;
    // One record further: for each item, from the place at[item] to the one that it leads to, in
    // at[item] and by number in next. The row of an item is item & row_mask.
    void (*records)(const RecordTrees& trees, const uint32_t* items, int64_t n, uint32_t row_mask,
                    uint32_t* at, uint32_t* next);
    // Those of n items whose places are not leaves, into `to`; how many. Null items are 0..n - 1;
    // items may be `to`. Both have room for the next multiple of 64.
    int64_t (*under_way)(const uint32_t* items, const uint32_t* places, int64_t n, uint32_t* to);
    // From the node that at[row] holds to the number of a leaf, over rows of `stride` codes: 32,
    // 64, 128 or 256. Null where records are faster, or where it was not measured.
    void (*twigs)(const TwigNode* nodes, const uint16_t* codes, int64_t stride, int64_t n,
                  uint32_t* at);
    // Codes of n rows from planes to rows, for records; whether one of them is kNanCode. Rows up to
    // the next multiple of 16 are read and written.
    bool (*turn_codes)(const PlaneCodes& planes, const RecordColumn* columns, int64_t n_columns,
                       int64_t row, int64_t n, int64_t stride, uint8_t* out);
    // 16-bit codes of one row; x by column, float where `single`.
    void (*code_row)(const Coding& coding, const void* x, bool single, uint16_t* codes);
    // One row by packs; null where the target has no permute of bytes.
    void (*code_bytes)(const Coding& coding, const RowCoding& row, const void* x, bool single,
                       uint8_t* codes);
    // Exit leaves of all trees.
    void (*packs)(const RowPacks& packs, uint32_t* found);
    TypedKernels<float> floats;
    TypedKernels<double> doubles;
};

DM_ON_EVERY_TARGET(Kernels, kernels)

}  // namespace dm::engine
