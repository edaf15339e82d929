// What a small random forest says of each training row, by the trees that have not seen it.
#pragma once

#include <cstdint>
#include <vector>

#include "search/split_search.hpp"

namespace dm::search {

struct OutOfBag {
    std::vector<double> sum;     // (m, k) over the trees whose sample left the row out
    std::vector<int32_t> count;  // (m,) how many trees those are
};

// Each tree grows on a bootstrap sample to leaves of `least` rows, looking at `n_tried` random
// features at each node. The answer does not depend on n_threads.
OutOfBag out_of_bag(const Rows& rows, int64_t n_trees, int64_t least, int64_t n_tried,
                    uint64_t seed, int64_t n_threads);

}  // namespace dm::search
