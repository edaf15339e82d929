// Labels of one feature as their positions among those that a model knows.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dm::inputs {

// Positions by UTF-8 text: open addressing, at most half full.
class TextTable {
public:
    TextTable() : slots_(16) {}
    // The position of a text, or null where it is unknown.
    const double* find(std::string_view text) const;
    void insert(std::string_view text, double position);
    int64_t size() const { return static_cast<int64_t>(n_); }

private:
    struct Slot {
        uint64_t hash = 0;
        size_t at = 0;
        uint32_t size = 0;
        bool is_used = false;
        double position = 0;
    };
    static uint64_t hash_of(std::string_view text);
    size_t place_of(std::string_view text, uint64_t hash) const;
    void put(std::string_view text, uint64_t hash, double position);

    std::vector<Slot> slots_;
    std::string texts_;
    size_t n_ = 0;
};

// Labels by themselves, as Python compares them, or by their text. What is not among the known ones
// is asked of a Python function, and remembered up to a number of labels.
class LabelPositions {
public:
    // `known`: label -> position, a float; it grows. `ask`: any value -> its position. Where
    // `only_text`, numbers that are equal to an integer are asked for each time.
    LabelPositions(nanobind::dict known, nanobind::callable ask, bool only_text);

    double of(nanobind::handle label);
    // An array of objects, into float64.
    void objects(nanobind::handle values, nanobind::handle out);
    // Arrow text: `offsets` of 32 or 64 bits into `data`, from row `first` on; `valid` has a bit
    // for each row, or is None.
    void text(nanobind::handle data, nanobind::handle offsets, bool wide, nanobind::handle valid,
              int64_t first, nanobind::handle out);

private:
    double asked(nanobind::handle label);
    double of_text(std::string_view text);

    nanobind::dict known_;
    nanobind::callable ask_;
    bool only_text_;
    TextTable texts_;
};

void bind_label_positions(nanobind::module_& m);

}  // namespace dm::inputs
