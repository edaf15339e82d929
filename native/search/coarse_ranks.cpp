#include "search/coarse_ranks.hpp"

#include <cstddef>

#include "search/split_search.hpp"

namespace dm::search {

CoarseRanks coarse_ranks(const std::vector<uint16_t>& rank, const std::vector<int32_t>& n_ranks,
                         int64_t m) {
    const int64_t n = static_cast<int64_t>(n_ranks.size());
    CoarseRanks out{rank, n_ranks,
                    std::vector<int32_t>(static_cast<std::size_t>(n) * kMostCoarse, 0)};
    for (int64_t f = 0; f < n; ++f) {
        int32_t* upper = &out.upper[f * kMostCoarse];
        uint16_t* own = &out.rank[f * m];
        if (n_ranks[f] <= kMostCoarse) {
            for (int32_t r = 0; r < n_ranks[f]; ++r) upper[r] = r;
            continue;
        }
        std::vector<int64_t> count(n_ranks[f], 0);
        std::vector<uint16_t> run(n_ranks[f]);
        int64_t left = 0;  // rows that are in no run yet
        for (int64_t i = 0; i < m; ++i)
            if (own[i] != kMissing) ++count[own[i]], ++left;
        int32_t at = 0;
        int64_t held = 0;
        for (int32_t r = 0; r < n_ranks[f]; ++r) {
            run[r] = static_cast<uint16_t>(at), upper[at] = r;
            held += count[r];
            if (at < kMostCoarse - 1 && held * (kMostCoarse - at) >= left)
                left -= held, held = 0, ++at;
        }
        out.n_ranks[f] = at + (held > 0);
        for (int64_t i = 0; i < m; ++i)
            if (own[i] != kMissing) own[i] = run[own[i]];
    }
    return out;
}

}  // namespace dm::search
