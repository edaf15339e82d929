#include "search/coarse_ranks.hpp"

#include <cstddef>

#include "search/split_search.hpp"

namespace dm::search {

Bins bins_of(const std::vector<uint16_t>& rank, const std::vector<int32_t>& n_ranks, int64_t m) {
    const int64_t n = static_cast<int64_t>(n_ranks.size());
    Bins out{std::vector<uint8_t>(rank.size()), n_ranks,
             std::vector<int32_t>(static_cast<std::size_t>(n) * kMostBins, 0)};
    for (int64_t f = 0; f < n; ++f) {
        int32_t* upper = &out.upper[f * kMostBins];
        const uint16_t* own = &rank[f * m];
        std::vector<uint8_t> run(n_ranks[f]);
        if (n_ranks[f] <= kMostBins) {
            for (int32_t r = 0; r < n_ranks[f]; ++r) upper[r] = r, run[r] = static_cast<uint8_t>(r);
        } else {
            std::vector<int64_t> count(n_ranks[f], 0);
            int64_t left = 0;  // rows that are in no run yet
            for (int64_t i = 0; i < m; ++i)
                if (own[i] != kMissing) ++count[own[i]], ++left;
            int32_t at = 0;
            int64_t held = 0;
            for (int32_t r = 0; r < n_ranks[f]; ++r) {
                run[r] = static_cast<uint8_t>(at), upper[at] = r;
                held += count[r];
                if (at < kMostBins - 1 && held > 0 && held * (kMostBins - at) >= left)
                    left -= held, held = 0, ++at;
            }
            out.n_bins[f] = run[n_ranks[f] - 1] + 1;
        }
        uint8_t* bins = &out.bin[f * m];
        for (int64_t i = 0; i < m; ++i) bins[i] = own[i] == kMissing ? kMissingBin : run[own[i]];
    }
    return out;
}

}  // namespace dm::search
