#include "search/monotone.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace dm::search {

namespace {

// The numbers of one feature that reach a leaf, low < x ≤ high, and whether a missing one does.
struct Range {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    bool missing = true;

    bool has_numbers() const { return low < high; }
};

bool meet(const Range& a, const Range& b) {
    return (a.missing && b.missing) || std::max(a.low, b.low) < std::min(a.high, b.high);
}

// Whether a number of a is at most some number of b.
bool may_precede(const Range& a, const Range& b) {
    return (a.missing && b.missing) || (a.has_numbers() && b.has_numbers() && a.low < b.high);
}

class Boxes {
public:
    Boxes(const NodeArrays& tree, int64_t n_nodes, const int8_t* sign) : tree_(tree) {
        for (int64_t i = 0; i < n_nodes; ++i)
            if (tree.left[i] >= 0) features_.push_back(tree.feature[i]);
        std::sort(features_.begin(), features_.end());
        features_.erase(std::unique(features_.begin(), features_.end()), features_.end());
        for (const int32_t f : features_) sign_.push_back(sign[f]);
        std::vector<Range> whole(features_.size());
        visit(0, whole);
    }

    const std::vector<int64_t>& leaves() const { return leaves_; }

    bool precedes(size_t a, size_t b) const {
        for (size_t f = 0; f < features_.size(); ++f) {
            const Range &x = box_[a * features_.size() + f], &y = box_[b * features_.size() + f];
            const bool can = sign_[f] == 0  ? meet(x, y)
                             : sign_[f] > 0 ? may_precede(x, y)
                                            : may_precede(y, x);
            if (!can) return false;
        }
        return true;
    }

private:
    void visit(int64_t at, std::vector<Range>& box) {
        if (tree_.left[at] < 0) {
            leaves_.push_back(at);
            box_.insert(box_.end(), box.begin(), box.end());
            return;
        }
        const size_t f = std::lower_bound(features_.begin(), features_.end(), tree_.feature[at]) -
                         features_.begin();
        const Range before = box[f];
        const bool missing_left = tree_.missing_left[at] != 0;
        box[f].high = std::min(before.high, tree_.t[at]);
        box[f].missing = before.missing && missing_left;
        visit(tree_.left[at], box);
        box[f] = before;
        box[f].low = std::max(before.low, tree_.t[at]);
        box[f].missing = before.missing && !missing_left;
        visit(tree_.right[at], box);
        box[f] = before;
    }

    const NodeArrays& tree_;
    std::vector<int32_t> features_;
    std::vector<int8_t> sign_;
    std::vector<int64_t> leaves_;
    std::vector<Range> box_;
};

}  // namespace

void make_monotone(const NodeArrays& tree, int64_t n_nodes, const int8_t* sign, double* value) {
    const Boxes boxes(tree, n_nodes, sign);
    const std::vector<int64_t>& leaves = boxes.leaves();
    const size_t L = leaves.size(), words = (L + 63) / 64;
    std::vector<uint64_t> after(L * words, 0);  // bit b of row a: b comes after a
    const auto has = [&](size_t a, size_t b) { return after[a * words + b / 64] >> (b % 64) & 1; };
    for (size_t a = 0; a < L; ++a)
        for (size_t b = 0; b < L; ++b)
            if (a == b || boxes.precedes(a, b))
                after[a * words + b / 64] |= uint64_t{1} << (b % 64);
    for (size_t via = 0; via < L; ++via)
        for (size_t a = 0; a < L; ++a)
            if (has(a, via))
                for (size_t i = 0; i < words; ++i) after[a * words + i] |= after[via * words + i];
    std::vector<double> most(L), least(L);
    for (size_t a = 0; a < L; ++a) most[a] = least[a] = value[leaves[a]];
    for (size_t a = 0; a < L; ++a)
        for (size_t b = 0; b < L; ++b)
            if (has(a, b)) {
                most[b] = std::max(most[b], value[leaves[a]]);
                least[a] = std::min(least[a], value[leaves[b]]);
            }
    for (size_t a = 0; a < L; ++a)
        if (most[a] != least[a]) value[leaves[a]] = most[a] / 2 + least[a] / 2;
}

}  // namespace dm::search
