// Ranks in runs: for quick steps of a search, a feature has at most kMostBins of them.
#pragma once

#include <cstdint>
#include <vector>

namespace dm::search {

struct Bins {
    std::vector<uint8_t> bin;     // (n, m)
    std::vector<int32_t> n_bins;  // (n,)
    std::vector<int32_t> upper;   // (n, kMostBins) the largest rank of each run
};

// Runs of ranks with about as many rows each; a feature of few ranks keeps them.
Bins bins_of(const std::vector<uint16_t>& rank,  // (n, m)
             const std::vector<int32_t>& n_ranks, int64_t m);

}  // namespace dm::search
