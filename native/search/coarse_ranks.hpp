// Ranks in runs: for quick steps of a search, a feature has at most 256 of them.
#pragma once

#include <cstdint>
#include <vector>

namespace dm::search {

constexpr int32_t kMostCoarse = 256;

struct CoarseRanks {
    std::vector<uint16_t> rank;    // (n, m)
    std::vector<int32_t> n_ranks;  // (n,)
    std::vector<int32_t> upper;    // (n, kMostCoarse) the largest rank of each run
};

// Runs of ranks with about as many rows each; a feature of few ranks keeps them.
CoarseRanks coarse_ranks(const std::vector<uint16_t>& rank,  // (n, m)
                         const std::vector<int32_t>& n_ranks, int64_t m);

}  // namespace dm::search
