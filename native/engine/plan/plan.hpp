// A machine compiled for prediction: coded thresholds, and for each tree the kernel that costs
// least.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/kernels/kernels.hpp"
#include "engine/plan/kinds.hpp"
#include "engine/plan/machine.hpp"

namespace dm::engine {

// Measured: from here on a padded block is cheaper than walking, or than packs.
constexpr int64_t kFewRows = 24, kPackRows = 104;
// Up to here rows go through records from the root on, without selects for the tops of trees.
constexpr int64_t kRecordRows = 64;

struct Tree {
    int64_t values;  // where its values start, n_labels for each output it has
    uint32_t n_labels;
    Kind kind;
    uint8_t label_bytes;
    bool gray;   // labels are Gray codes of the leaves' numbers, else the numbers themselves
    bool split;  // values stand as planes of bytes
};

// The tops of some deep trees, evaluated together by selects: their labels, a byte each, say where
// rows go on, a node of the walk or a place in records.
struct Tops {
    int64_t first = 0, last = 0;  // trees
    std::vector<Test> tests;
    std::vector<Select> selects;
    std::vector<uint16_t> bits;
    std::vector<SelectTree> trees;  // by tree, and one more that ends the last
    int64_t n_slots = 0;
    std::vector<uint32_t> nodes;  // by tree and label
    std::vector<uint32_t> start;  // by tree, where its nodes start, and where the last one's end
};

// A run of trees of one kind. By selects they are evaluated together.
struct Group {
    Kind kind;
    int64_t first, last;  // trees
    std::vector<Test> tests;
    std::vector<Select> selects;
    std::vector<uint16_t> bits;
    std::vector<SelectTree> trees;  // by tree, and one more that ends the last
    int64_t n_slots = 0;
};

// A feature of categories, coded once for all sets of a section; see plan/categories.hpp.
struct CategoryFeature {
    uint32_t feature;
    uint8_t width;                // bytes to a code
    uint32_t start;               // of its plane of codes, in bytes to a row
    uint32_t n_codes;             // the last is NaN's
    uint32_t first_set, n_sets;   // its distinct sets, as planes
    std::vector<uint16_t> codes;  // as in Categories
    std::vector<int64_t> far;
    std::vector<uint16_t> far_codes;
    std::vector<uint8_t> sets_by_code;  // for walks: the answers of all sets, bits to a code

    int64_t code_bytes() const { return (n_sets + 7) / 8; }  // of sets_by_code
    Categories view(const Machine::Sets& sets) const {
        return {codes.data(),     static_cast<int64_t>(codes.size()) - 2, far.data(),
                far_codes.data(), static_cast<int64_t>(far.size()),       sets.negative_fractions,
                sets.whole};
    }
};

// A plane as records read it: a column, and whether NaN goes left by it and right by the other.
struct RecordPlane {
    uint8_t column;
    bool is_other;
};

// The thresholds of a section's columns, see Coding.
struct Thresholds {
    std::vector<float> keys32;
    std::vector<uint16_t> bucket_first;
    std::vector<uint32_t> sorted;
    bool operator==(const Thresholds& other) const {
        return keys32 == other.keys32 && bucket_first == other.bucket_first &&
               sorted == other.sorted;
    }
};

// A run of trees that share one coding of the columns.
struct Section {
    std::vector<Column> columns;
    std::shared_ptr<Thresholds> thresholds = std::make_shared<Thresholds>();
    bool are_shared = false;  // the thresholds, with another plan of the machine, which counts them
    std::vector<CategoryFeature> categories;
    std::vector<uint8_t> tables;  // of the sets
    int64_t first, last;          // trees
    int64_t row_bytes = 0;        // of all planes
    int64_t n_planes = 0;
    std::vector<Plane> planes;
    std::vector<RecordColumn> record_columns;  // where trees are trees of records
    std::vector<RecordPlane> record_planes;    // (n_planes,) how their tests read a plane
    bool has_planes = false;                   // selects read them over the whole tile
    bool has_record = false, has_twig = false, has_deep = false;
    std::vector<Group> groups;

    // Codes to a row where walks and twigs read them; twigs read one more than there are planes.
    int64_t row_stride() const {
        if (!has_twig) return n_planes;
        int64_t stride = 32;
        while (stride <= n_planes) stride *= 2;
        return stride;
    }
    // Tests and selects, of a group or of a top, as kernels read them.
    template <typename Tests>
    SelectGroup view(const Tests& of) const {
        return {of.tests.data(),   static_cast<int64_t>(of.tests.size()),
                planes.data(),     tables.data(),
                of.selects.data(), of.bits.data()};
    }
};

// A test after coding: its plane, and right where the code is above `code`.
struct Coded {
    uint16_t plane, code;
};

// Nodes of trees that are walked over codes; empty where no tree is.
struct WalkPlan {
    std::vector<WalkNode> nodes;
    std::vector<WideNode> wide_nodes;  // instead, where a tree has too many leaves
    std::vector<int64_t> start;        // (n_trees + 1,)
};

// Trees of records; see kernels/record.hpp.
struct RecordPlan {
    std::vector<Record> records;
    std::vector<uint32_t> roots;    // (n_trees,) places
    std::vector<int64_t> first{0};  // (n_trees + 1,) records, by tree
    int64_t depth = 0;              // the greatest number of tests on a path through a record
};

// Below the tops of trees of twigs; see kernels/twig.hpp.
struct TwigPlan {
    std::vector<TwigNode> nodes;
    std::vector<int64_t> start;  // (n_trees + 1,) nodes, by tree; empty where no tree has twigs
};

// Where the leaves of deep trees have few different values: which of them, by leaf of the machine,
// and these values, of the sums' type, one for each output. Empty where they have many.
struct FewValues {
    std::vector<uint8_t> value_of;
    std::vector<char> table;
};

// What one row needs where it goes through packs; see kernels/pack.hpp.
struct PackPlan {
    std::vector<RowColumn> columns;
    std::vector<uint32_t> level_sizes;
    std::vector<float> keys;
    int64_t n_planes = 0;
    std::vector<Pack> packs;
    std::vector<uint8_t> roots;
    std::vector<PackTree> trees;
    int doublings = 0;
    // By category feature, code and pack: its tests of sets that go right.
    std::vector<uint64_t> rights;
    std::vector<int64_t> rights_of;  // where those of a feature start
};

// What oblique tests need beyond the machine's arrays; see kernels/oblique.hpp.
struct ObliquePlan {
    std::vector<int32_t> columns;  // that some test weighs, ascending
    std::vector<int32_t> column;   // by term: its place among them; empty where all tests have all
};

// What a plan is to be made of.
struct Wanted {
    Kind kind = Kind::by_tree;
    bool values = true;  // leaf values by label; few rows read V itself
};

struct Plan {
    Machine machine;
    const Kernels* kernels = nullptr;
    Wanted wanted;
    Kind kind = Kind::by_tree;           // of all trees, or by_tree: each has its own
    std::vector<int32_t> read_columns;   // that some test reads, ascending
    std::vector<int32_t> used_features;  // that these columns or linear leaves read, ascending
    std::vector<int64_t> set_of;         // (n_columns,) a column's set, or -1
    std::vector<Tree> trees;             // (n_trees,)
    std::vector<float> values32;         // by tree, output and label, where sums are float32
    std::vector<double> values64;        // and where they are float64
    std::vector<Section> sections;       // where columns are coded
    std::vector<Tops> tops;
    std::vector<int32_t> tops_of;    // (n_trees,) or -1, where a top is of no use
    RecordPlan records;              // of `record` trees
    TwigPlan twigs;                  // of `twig` trees
    FewValues few_values;            // of both
    WalkPlan walks;                  // of `deep` trees
    PackPlan packs;                  // where all trees are `pack`
    std::vector<RawNode> raw_nodes;  // where all trees are `raw`
    ObliquePlan oblique;             // where all trees are `oblique`

    // Whether all trees are trees of records.
    bool is_records() const {
        for (const Section& section : sections)
            for (const Group& group : section.groups)
                if (group.kind != Kind::record) return false;
        return !records.roots.empty();
    }
    // Whether few rows can go through it without the work of a whole block.
    bool can_walk() const {
        return kind != Kind::by_tree || !walks.start.empty() || machine.trees.n == 0 ||
               is_records();
    }
    template <typename Sum>
    const Sum* values() const {
        if constexpr (sizeof(Sum) == 4)
            return values32.data();
        else
            return values64.data();
    }
    // Thresholds that are equal to those of another plan are held once.
    void share_thresholds(const Plan& other);
    int64_t n_bytes() const;
};

// z of one column from its feature's x.
double z_of(const Plan& plan, int64_t column, double x);

Plan compile(const Machine& machine, const Kernels* kernels, const Wanted& wanted = {});

}  // namespace dm::engine
