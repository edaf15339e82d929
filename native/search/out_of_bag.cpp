#include "search/out_of_bag.hpp"

#include <algorithm>
#include <numeric>

#include "common/threads.hpp"
#include "search/random.hpp"

namespace dm::search {

namespace {

// Trees are summed group by group in a fixed order, so that threads do not show in the sums.
constexpr int64_t kGroups = 4;

// Deeper than any tree of use, and far from the end of the stack.
constexpr int64_t kDeepest = 256;

class BaggedTree {
public:
    BaggedTree(const Rows& rows, int64_t least, int64_t n_tried, uint64_t seed)
        : sampled_(rows),
          w_(rows.m, 0.0),
          random_(seed),
          search_(sampled_),
          least_(least),
          n_tried_(n_tried),
          features_(rows.n),
          mean_(rows.k) {
        for (int64_t i = 0; i < rows.m; ++i) {
            const int64_t row = random_.below(rows.m);
            w_[row] += rows.w[row];
        }
        sampled_.w = w_.data(), sampled_.each = 0.0;
        for (int64_t i = 0; i < rows.m; ++i)
            (w_[i] > 0.0 ? seen_ : unseen_).push_back(static_cast<int32_t>(i));
        std::iota(features_.begin(), features_.end(), 0);
    }

    void add(double* sum, int32_t* count) {
        visit(0, seen_.size(), 0, unseen_.size(), kDeepest, sum, count);
    }

private:
    // Seen rows first..last grow the subtree, unseen rows from..to are sent down it.
    void visit(int64_t first, int64_t last, int64_t from, int64_t to, int64_t levels, double* sum,
               int32_t* count) {
        if (from == to) return;
        Split best;
        if (last - first >= 2 * least_ && levels > 0) {
            search_.enter(&seen_[first], last - first, nullptr);
            const int64_t n = sampled_.n;
            for (int64_t i = 0; i < n && (i < n_tried_ || !best.found()); ++i) {
                std::swap(features_[i], features_[i + random_.below(n - i)]);
                search_.purest(Objective{}, features_[i], least_, best);
            }
        }
        if (!best.found() || is_pure(first, last)) return answer(first, last, from, to, sum, count);
        const auto part = [&](std::vector<int32_t>& ids, int64_t begin, int64_t end) {
            const uint8_t* column = sampled_.bin + int64_t{best.feature} * sampled_.m;
            const int32_t* upper = sampled_.upper + int64_t{best.feature} * kMostBins;
            const auto middle =
                std::stable_partition(ids.begin() + begin, ids.begin() + end, [&](int32_t row) {
                    const uint8_t bin = column[row];
                    return bin == kMissingBin ? best.missing_left : upper[bin] <= best.cut;
                });
            return static_cast<int64_t>(middle - ids.begin());
        };
        const int64_t middle = part(seen_, first, last), centre = part(unseen_, from, to);
        visit(first, middle, from, centre, levels - 1, sum, count);
        visit(middle, last, centre, to, levels - 1, sum, count);
    }

    bool is_pure(int64_t first, int64_t last) const {
        if (!sampled_.classify()) return false;
        const int32_t label = sampled_.label[seen_[first]];
        return std::all_of(seen_.begin() + first, seen_.begin() + last,
                           [&](int32_t row) { return sampled_.label[row] == label; });
    }

    void answer(int64_t first, int64_t last, int64_t from, int64_t to, double* sum,
                int32_t* count) {
        const int32_t k = sampled_.k;
        std::fill(mean_.begin(), mean_.end(), 0.0);
        double weight = 0.0;
        for (int64_t i = first; i < last; ++i) {
            const int64_t row = seen_[i];
            weight += w_[row];
            if (sampled_.classify()) {
                mean_[sampled_.label[row]] += w_[row];
            } else {
                for (int32_t c = 0; c < k; ++c) mean_[c] += w_[row] * sampled_.y[row * k + c];
            }
        }
        for (double& value : mean_) value /= weight;
        for (int64_t i = from; i < to; ++i) {
            const int64_t row = unseen_[i];
            for (int32_t c = 0; c < k; ++c) sum[row * k + c] += mean_[c];
            ++count[row];
        }
    }

    Rows sampled_;
    std::vector<double> w_;
    Random random_;
    SplitSearch search_;
    int64_t least_, n_tried_;
    std::vector<int32_t> features_, seen_, unseen_;
    std::vector<double> mean_;
};

}  // namespace

OutOfBag out_of_bag(const Rows& rows, int64_t n_trees, int64_t least, int64_t n_tried,
                    uint64_t seed, int64_t n_threads) {
    const size_t size = static_cast<size_t>(rows.m * rows.k);
    std::vector<OutOfBag> groups(kGroups);
    common::share(kGroups, n_threads, [&](auto next) {
        for (int64_t group = next(); group >= 0; group = next()) {
            OutOfBag& own = groups[group];
            own.sum.assign(size, 0.0), own.count.assign(rows.m, 0);
            for (int64_t tree = group; tree < n_trees; tree += kGroups)
                BaggedTree(rows, least, n_tried, seed + static_cast<uint64_t>(tree))
                    .add(own.sum.data(), own.count.data());
        }
    });
    OutOfBag& all = groups[0];
    for (int64_t group = 1; group < kGroups; ++group) {
        for (size_t i = 0; i < size; ++i) all.sum[i] += groups[group].sum[i];
        for (int64_t i = 0; i < rows.m; ++i) all.count[i] += groups[group].count[i];
    }
    return std::move(all);
}

}  // namespace dm::search
