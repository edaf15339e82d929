// Statistics found in tables by combinations of features (decision_machines.machine.look_ups).
#pragma once

#include <cstdint>
#include <vector>

namespace dm::look_ups {

enum class Ask : uint8_t { label, equals, above };

// What one term adds to the key of a row.
struct Term {
    int64_t input;  // row of x
    Ask ask;
    float number;  // the category or the border
    bool missing;  // whether NaN is above
    uint64_t adds;
    std::vector<uint64_t> labels;  // by category
};

struct Column {
    int64_t statistic, output;  // of the table; row of z
};

struct Slot {
    uint64_t key;
    uint32_t row;
};

// Keys in open addressing, at most half of the slots taken; `row` of a free slot is n_keys.
struct Table {
    std::vector<Term> terms;
    std::vector<Column> columns;
    std::vector<Slot> slots;
    int shift;        // a key's slot is the top bits of its product
    uint32_t n_keys;  // also the row of what is not held
    int64_t n_statistics;
    std::vector<float> values;  // (n_keys + 1, n_statistics), the last for a key not held
    // Where the terms have few answers together: the statistics of each combination of answers,
    // (n_columns, n_combinations), so that no key is added up and none is looked for. A label term
    // has an answer for each category and one for all else, another term no and yes; `steps` says
    // how far apart the combinations of two neighbouring answers of each term are.
    std::vector<float> dense;
    std::vector<int32_t> steps;
    int64_t n_combinations = 0;

    void hold(const uint64_t* keys, int64_t n);
    uint32_t row(uint64_t key) const;
    void list_combinations();  // after the columns are known
};

struct Tables {
    int64_t n_inputs, n_outputs;
    std::vector<Table> tables;
    std::vector<bool> has_labels;  // (n_inputs,) whether a term asks for the input's label

    // x (n_inputs, n_rows) → z (n_outputs, n_rows)
    void read(const float* x, int64_t n_rows, int64_t n_threads, float* z) const;

private:
    void read_block(const float* x, int64_t n_rows, int64_t first, int64_t size,
                    std::vector<int32_t>& categories, float* z) const;
};

}  // namespace dm::look_ups
