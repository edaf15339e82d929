// The exact best test of one feature for the rows at a node of a tree.
//
// Features are ranks: rank r of a feature is its r-th smallest training value, so a test is
// "rank ≤ cut goes left" and there are as many tests as ranks. Two questions are answered, both by
// one walk over the rows in the order of their ranks:
//
// - purest: the cut that leaves the least loss when both sides become leaves (CART's step);
// - preferred: the cut with the least Σ of `lean` over the rows sent left, where lean is a row's
//   loss in the left subtree less its loss in the right one (TAO's step, a minimum prefix sum).
//
// Rows whose feature is missing go left or right together, whichever loses less.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace dm::search {

constexpr uint16_t kMissing = 65535;
constexpr uint8_t kMissingBin = 255;
constexpr int32_t kMostBins = 255;

// What numbers lose: squared error, half the Poisson deviance, or the pinball loss of a quantile.
enum class NumberLoss : uint8_t { squared, poisson, quantile };

// The loss of a leaf that answers with what loses least. Of classes a mixture, each part weighted;
// squared error is `gini` for numbers: both are Σ w |y − mean|², y one-hot for classes.
struct Objective {
    double gini = 1.0;
    double entropy = 0.0;
    double error = 0.0;  // rows not of the leaf's largest class
    double ridge = 0.0;  // squared: as if so many rows at the overall mean stood in each leaf
    NumberLoss number = NumberLoss::squared;
    double quantile = 0.5;  // the share of rows below what a leaf says

    bool is_quantile() const { return number == NumberLoss::quantile; }
};

// Training rows; all pointers are borrowed.
struct Rows {
    int64_t m = 0;
    int32_t n = 0;                     // features
    int32_t k = 0;                     // classes, or outputs
    const uint16_t* rank = nullptr;    // (n, m)
    const int32_t* n_ranks = nullptr;  // (n,)
    const int32_t* label = nullptr;    // (m,) or null: regression
    const double* y = nullptr;         // (m, k) or null: classification
    const double* w = nullptr;         // (m,) positive
    double each = 0.0;                 // the weight of every row, or 0 where weights differ
    const uint8_t* bin = nullptr;      // (n, m) in place of ranks: runs of them
    const int32_t* upper = nullptr;    // (n, kMostBins) the largest rank of each run

    bool classify() const { return label != nullptr; }
};

struct Split {
    double loss = std::numeric_limits<double>::infinity();  // both sides together, or Σ lean left
    int32_t feature = -1;
    int32_t cut = -1;  // rank ≤ cut goes left
    bool missing_left = false;

    bool found() const { return feature >= 0; }
    bool goes_left(uint16_t rank) const { return rank == kMissing ? missing_left : rank <= cut; }
};

// What a leaf must know of its rows: totals (k,), their weight, and what they would lose if it
// answered 0 (squared), or Σ w y log y (Poisson).
struct Totals {
    double weight = 0.0;
    double squares = 0.0;
    int64_t count = 0;
};

// Of numbers whose loss is the pinball one it is found from the rows, by `QuantileLoss`.
double leaf_loss(const Objective& objective, bool classify, int32_t k, const double* totals,
                 const Totals& about);

double x_log_x(double x);

// The pinball loss of the best constant, as numbers come one by one.
class QuantileLoss {
public:
    void start(double quantile);
    void add(double y, double w);
    double loss() const;
    double value() const;  // the least number with at least the quantile's share at or below it

private:
    struct Entry {
        double y, w;
    };
    double quantile_ = 0.5;
    std::vector<Entry> low_, high_;  // heaps: the largest, the least first
    double low_w_ = 0.0, high_w_ = 0.0, low_sum_ = 0.0, high_sum_ = 0.0;
};

// Holds the room that searches need; one for each thread.
class SplitSearch {
public:
    explicit SplitSearch(const Rows& rows) : rows_(rows) {}

    // The rows at a node, from now on; `lean` (count,) may be null.
    void enter(const int32_t* ids, int64_t count, const double* lean);

    // Better `best` by the tests of one feature that leave at least `least` rows on either side;
    // `extra` is added to their losses.
    void purest(const Objective& objective, int32_t feature, int64_t least, Split& best,
                double extra = 0.0);
    void preferred(int32_t feature, int64_t least, Split& best, double extra = 0.0);

private:
    int32_t cut_of(int32_t feature, int64_t rank) const {
        return rows_.bin ? rows_.upper[int64_t{feature} * kMostBins + rank]
                         : static_cast<int32_t>(rank);
    }
    // `visit(column, missing)` with the feature's bins or ranks.
    template <typename Visit>
    void read(int32_t feature, Visit visit) const {
        const int64_t at = int64_t{feature} * rows_.m;
        if (rows_.bin)
            visit(rows_.bin + at, kMissingBin);
        else
            visit(rows_.rank + at, kMissing);
    }
    void offer(double loss, int32_t feature, int64_t rank, bool missing_left, Split& best) const {
        loss += extra_;
        if (loss < best.loss) best = {loss, feature, cut_of(feature, rank), missing_left};
    }
    void purest_by_counts(int32_t feature, int64_t least, Split& best);
    void purest_of_bins(int32_t feature, int64_t least, Split& best);
    void purest_number(int32_t feature, int64_t least, Split& best);
    bool ends_rank(int64_t p, int64_t present) const {
        return p + 1 == present || sorted_[p] != sorted_[p + 1];
    }
    int64_t order(int32_t feature);  // fills order_; returns how many are not missing
    void sweep_gini(int64_t present, bool missing_left);
    void sweep_entropy(int64_t present, bool missing_left);
    void sweep_error(int64_t present, bool missing_left);
    void sweep_quantile(int64_t present, bool missing_left);
    double xlogx(double x) const;
    double count_log_count(int64_t count) const;

    struct Bin {
        double sum = 0.0, weight = 0.0;
        int64_t count = 0;
    };
    typedef double Leaning __attribute__((vector_size(16)));  // Σ lean, and how many rows

    // Where histograms keep missing values: behind the ranks, and where a byte has no rank.
    int64_t missing_place(int32_t feature) const {
        return rows_.bin ? int64_t{kMissingBin} : int64_t{rows_.n_ranks[feature]};
    }
    template <typename T>
    static int64_t place(T rank, int64_t missing) {
        if constexpr (sizeof(T) == 1) return rank;
        return rank == kMissing ? missing : int64_t{rank};
    }

    const Rows& rows_;
    std::vector<Bin> bins_;
    std::vector<Leaning> leaning_, lean_pairs_;
    const int32_t* ids_ = nullptr;
    const double* lean_ = nullptr;
    int64_t count_ = 0;
    double extra_ = 0.0;
    std::vector<uint16_t> rank_, sorted_;
    std::vector<int32_t> order_, spare_, start_, label_, counts_;
    std::vector<int64_t> left_count_, all_count_;
    std::vector<double> w_, y_, left_, right_, loss_, most_right_, histogram_;
    Objective objective_;
    QuantileLoss quantile_;
    mutable std::vector<double> xlogx_;
};

}  // namespace dm::search
