// Shapley values against a background of rows, at a cost that does not grow with it.
//
// A leaf's share of a value depends on the row and on a background row only through two patterns:
// which of the features that the leaf asks for answers give them. The background's patterns are
// counted once for each leaf. Few features: a table by the row's pattern answers for all of the
// background. Many: the row's pattern is held against each distinct one of the background's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shapley/plan.hpp"
#include "shapley/rule.hpp"
#include "shapley/tables.hpp"
#include "shapley/values.hpp"

namespace dm::shapley {

class Background {
public:
    // z: (n_rows, n_columns) of the background. Values are the forest's, which must outlive this.
    Background(const Forest& forest, const double* z, int64_t n_rows);

    int64_t n_columns() const { return forest_.n_columns; }
    int64_t n_slots() const { return forest_.n_slots; }
    int64_t n_outputs() const { return forest_.n_outputs; }
    int64_t n_bytes() const;
    int64_t n_deep() const { return static_cast<int64_t>(deep_.size()); }

    void add_values(const Kernels& kernels, const double* z, int64_t n_rows, int64_t n_threads,
                    const Values<double>& values) const;
    // Values, and interactions, by patterns alone.
    void add_pairs(const double* z, int64_t n_rows, int64_t n_threads,
                   const Values<double>& values) const;

private:
    // A leaf: the features that it asks, the answers, and the background's patterns.
    struct Leaf {
        int64_t number;
        int32_t tree;
        std::vector<int32_t> slots;
        std::vector<int32_t> term_start;  // by feature
        std::vector<Term> terms;          // tests in the tree's own numbering
        std::vector<uint64_t> has;        // words of each distinct pattern: features that it has
        std::vector<double> shares;       // of the background rows with that pattern
        int64_t n_words() const { return (static_cast<int64_t>(slots.size()) + 63) / 64; }
    };
    struct Part {
        int32_t tree;
        std::vector<Term> path;  // tests above
        int64_t root;            // a test, or ~leaf
    };

    void count(int64_t tree, const double* z, int64_t n_rows);
    void divide(int64_t tree);
    void build(const Kernels& kernels, int64_t first, int64_t last, Tables<double>& to) const;
    void build_leaf(const Kernels& kernels, int64_t number, int64_t first_bit,
                    std::vector<double>& scratch, Tables<double>& to) const;
    void missed(const Leaf& leaf, double* shares) const;
    // Exact for a leaf of d features.
    const Rule& rule_of(int64_t d) const { return rules_[static_cast<size_t>(d)]; }
    void build_cell(const Kernels& kernels, const Part& part, int64_t first_bit,
                    std::vector<double>& scratch, Tables<double>& to) const;
    void add_pairs_of(const Leaf& leaf, const std::vector<uint8_t>& gives, int64_t gains,
                      int64_t losses, double share, int64_t row, int64_t output,
                      const Values<double>& values) const;
    template <bool Pairs>
    void by_patterns(const std::vector<int64_t>& leaves, const double* z, int64_t n_rows,
                     int64_t n_threads, const Values<double>& values) const;
    bool goes_left(int64_t test, const double* row) const;
    int64_t output_of(int64_t tree, int64_t o) const {
        return forest_.feeds[tree] < 0 || forest_.width > 1 ? o : forest_.feeds[tree];
    }

    Forest forest_;
    std::vector<Leaf> leaves_;
    std::vector<Part> parts_;                          // cells, by tree
    std::vector<int64_t> first_part_{0};               // by tree
    std::vector<int64_t> deep_;                        // leaves without a cell
    std::vector<std::pair<int64_t, int64_t>> chunks_;  // of trees whose tables are made together
    std::vector<Rule> rules_;                          // by features of a leaf
    std::vector<double> beta_;                         // (a + b choose a) weights, see beta
    int64_t most_ = 0;                                 // features of a leaf
    mutable std::shared_ptr<std::vector<Tables<double>>> kept_;

    // a! b! / (a + b + 1)!
    double beta(int64_t a, int64_t b) const {
        return beta_[static_cast<size_t>(a * (most_ + 1) + b)];
    }
};

}  // namespace dm::shapley
