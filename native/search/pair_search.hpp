// The best two levels of tests for the rows at a node: every test above with the best ones below.
//
// CART's step cannot see that two tests help where neither does alone. Features stand in a few
// groups of bins with about as many rows each, so that all pairs of features can be tried; the
// steps that follow find the exact cuts.
#pragma once

#include <cstdint>
#include <vector>

#include "search/split_search.hpp"

namespace dm::search {

struct TwoLevels {
    double loss = std::numeric_limits<double>::infinity();  // up to a constant of the node
    Split top, left, right;  // below: not found where one leaf is best

    bool found() const { return top.found(); }
};

class PairSearch {
public:
    explicit PairSearch(const Rows& rows) : rows_(rows) {}  // rows in bins

    TwoLevels best(const Objective& objective, const int32_t* ids, int64_t count,
                   const std::vector<int32_t>& features, int64_t least);

private:
    struct Below {
        double loss = std::numeric_limits<double>::infinity();
        int32_t feature = -1, group = -1;
    };
    void group(int32_t feature, int64_t place);
    void look(const Objective& objective, int64_t f, int64_t g, int64_t least);
    double loss_of(const Objective& objective, const double* totals) const;
    void below(const Objective& objective, const double* cells, int64_t g, int64_t least,
               Below& best);
    Split test(int64_t place, int32_t group) const;

    const Rows& rows_;
    const int32_t* ids_ = nullptr;
    int64_t count_ = 0;
    int32_t stride_ = 0, groups_ = 0;
    std::vector<int32_t> features_;
    std::vector<int32_t> n_groups_;  // of each feature; missing values are the one behind
    std::vector<int32_t> last_;      // (features, groups) the last bin of each group
    std::vector<uint8_t> code_;      // (features, count)
    std::vector<double> cell_, side_, other_, sum_, rest_;
    std::vector<Below> left_, right_;  // (features, groups)
};

}  // namespace dm::search
