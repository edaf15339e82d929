// Compressed sparse rows spread out, into one column for each feature that the plan uses.
#include <algorithm>
#include <cmath>

#include "engine/engine.hpp"

namespace dm::engine {
namespace {

// Stored entries of rows row..row + n into one column for each used feature.
template <typename T, typename Index, typename Start>
void spread(const Source& source, const Kernels& kernels, double missing_value, double absent,
            const FeaturePlaces& feature_at, int64_t n_used, const Index* indices,
            const Start* indptr, int64_t row, int64_t n, int64_t stride, T* out) {
    T empty = static_cast<T>(absent);
    if (static_cast<double>(empty) == missing_value) empty = static_cast<T>(NAN);
    for (int64_t f = 0; f < n_used; ++f) std::fill(out + f * stride, out + f * stride + n, empty);
    T values[256];
    for (int64_t r = 0; r < n; ++r)
        for (int64_t at = indptr[row + r]; at < indptr[row + r + 1]; at += 256) {
            const int64_t m = std::min<int64_t>(256, indptr[row + r + 1] - at);
            kernels.load(source.entries, at, m, false, sizeof(T) == 4, missing_value, values);
            for (int64_t i = 0; i < m; ++i) {
                const int32_t place = feature_at[indices[at + i]];
                if (place >= 0) out[place * stride + r] = values[i];
            }
        }
}

}  // namespace

void Engine::spread_sparse(const Source& source, int64_t row, int64_t n, int64_t stride,
                           void* out) const {
    const Machine::Columns& columns = plan.machine.columns;
    auto with = [&](const auto* indices, const auto* indptr) {
        const int64_t n_used = static_cast<int64_t>(plan.used_features.size());
        if (columns.single)
            spread(source, *plan.kernels, columns.missing_value, columns.absent, feature_at_,
                   n_used, indices, indptr, row, n, stride, static_cast<float*>(out));
        else
            spread(source, *plan.kernels, columns.missing_value, columns.absent, feature_at_,
                   n_used, indices, indptr, row, n, stride, static_cast<double*>(out));
    };
    if (source.indices32)
        source.indptr32 ? with(source.indices32, source.indptr32)
                        : with(source.indices32, source.indptr64);
    else
        source.indptr32 ? with(source.indices64, source.indptr32)
                        : with(source.indices64, source.indptr64);
}

}  // namespace dm::engine
