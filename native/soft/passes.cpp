#include "soft/passes.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "common/require.hpp"
#include "common/targets.hpp"
#include "common/threads.hpp"
#include "soft/workspace.hpp"

namespace dm::soft {
namespace {

constexpr int64_t kBlockRowsLeast = 128;             // rows summed by themselves, at least
constexpr int64_t kBlocksMost = 32;                  // sums kept apart until the end, at most
constexpr int64_t kPartialBytes = int64_t{1} << 28;  // and their memory
constexpr int64_t kWorkForThread = 1 << 16;  // rows times tests that outweigh starting a thread

#include "common/subnormals.hpp"

// What all threads read: the tests' parameters judged, and values with the means below each test.
template <typename T>
struct Prepared {
    std::vector<uint8_t> wild;  // (J,)
    std::vector<T> values;      // by tree: its leaves' values, then its tests' means; if cut

    Prepared(const Plan& plan, const Call<T>& call) : wild(plan.n_tests()) {
        for (int64_t j = 0; j < plan.n_tests(); ++j) {
            common::require(call.t[j] == call.t[j], "t holds NaN");
            common::require(call.slope[j] == call.slope[j], "slope holds NaN");
            common::require(std::isfinite(call.nudge[j]), "nudge holds NaN or infinity");
            wild[j] = !(is_tame(call.t[j]) && is_tame(call.slope[j]));
        }
        if (!(call.skip > 0)) return;
        const int64_t w = plan.width();
        values.resize(static_cast<size_t>((2 * plan.n_tests() + plan.n_trees()) * w));
        std::vector<double> sums;
        for (int64_t i = 0; i < plan.n_trees(); ++i) {
            const int64_t first = plan.test_start[i], n = plan.test_start[i + 1] - first;
            const T* V = call.V + (first + i) * w;
            T* to = values.data() + (2 * first + i) * w;
            std::copy(V, V + (n + 1) * w, to);
            sums.assign(static_cast<size_t>(n * w), 0.0);
            for (int64_t j = n - 1; j >= 0; --j)
                for (int64_t c = 0; c < w; ++c) {
                    for (int side = 0; side < 2; ++side) {
                        const int32_t child = plan.children[2 * (first + j) + side];
                        sums[j * w + c] +=
                            child < n ? sums[child * w + c] : double(V[(child - n) * w + c]);
                    }
                    to[(n + 1 + j) * w + c] =
                        static_cast<T>(sums[j * w + c] / plan.n_below[first + j]);
                }
        }
    }

    Tree<T> tree(const Plan& plan, const Call<T>& call, int64_t i) const {
        const int64_t first = plan.test_start[i], w = plan.width();
        return {plan.test_start[i + 1] - first,
                plan.children.data() + 2 * first,
                plan.column.data() + first,
                plan.missing.data() + first,
                wild.data() + first,
                call.t + first,
                call.nudge + first,
                call.slope + first,
                values.empty() ? call.V + (first + i) * w : values.data() + (2 * first + i) * w,
                w,
                plan.narrow ? plan.feeds[i] : 0};
    }
};

inline void forward_tree(const Kernels& k, const Tree<float>& tree, const Rows<float>& rows,
                         float skip, void* scratch) {
    k.forward32(tree, rows, skip, scratch);
}
inline void forward_tree(const Kernels& k, const Tree<double>& tree, const Rows<double>& rows,
                         double skip, void* scratch) {
    k.forward64(tree, rows, skip, scratch);
}
inline void backward_tree(const Kernels& k, const Tree<float>& tree, const Rows<float>& rows,
                          float skip, const Sums<float>& sums, void* scratch) {
    k.backward32(tree, rows, skip, sums, scratch);
}
inline void backward_tree(const Kernels& k, const Tree<double>& tree, const Rows<double>& rows,
                          double skip, const Sums<double>& sums, void* scratch) {
    k.backward64(tree, rows, skip, sums, scratch);
}

int64_t threads_for(const Plan& plan, int64_t m, int64_t n_threads) {
    return std::clamp<int64_t>(m * std::max<int64_t>(plan.n_tests(), 1) / kWorkForThread, 1,
                               std::max<int64_t>(n_threads, 1));
}

}  // namespace

template <typename T>
void forward(const Plan& plan, const Call<T>& call, T* out) {
    const Prepared<T> prepared(plan, call);
    const int64_t k = plan.n_outputs;
    const int64_t n_tiles = (call.m + kTile - 1) / kTile;
    common::share(n_tiles, threads_for(plan, call.m, call.n_threads), [&](auto next) {
        [[maybe_unused]] FlushSubnormals flush;
        Workspace<T> own(plan, false, false);
        for (int64_t i = next(); i >= 0; i = next()) {
            const int64_t row = i * kTile, n = std::min(kTile, call.m - row);
            T* sums = own.out.get();
            std::fill(sums, sums + k * kTile, T(0));
            for (const Group& group : plan.groups) {
                const Rows<T> rows = own.lay(group, call, row, n);
                for (int64_t tree = group.first; tree < group.last; ++tree)
                    forward_tree(*call.kernels, prepared.tree(plan, call, tree), rows, call.skip,
                                 own.scratch.get());
            }
            for (int64_t c = 0; c < k; ++c)
                for (int64_t r = 0; r < n; ++r) out[(row + r) * k + c] = sums[c * kTile + r];
        }
    });
}

template <typename T>
void backward(const Plan& plan, const Call<T>& call, const T* G, const Gradients<T>& gradients) {
    const Prepared<T> prepared(plan, call);
    const int64_t k = plan.n_outputs, w = plan.width(), J = plan.n_tests();
    const bool cut = call.skip > 0;
    const int64_t n_values = (cut ? 2 * J + plan.n_trees() : plan.n_leaves()) * w;
    // Each block of rows has sums of its own, added up in order at the end: how the rows are
    // parted follows from sizes alone, so the answer is the same on any number of threads.
    const int64_t partial = (2 * J + n_values + 15) / 16 * 16;
    const int64_t fit = kPartialBytes / std::max<int64_t>(partial * int64_t(sizeof(T)), 1);
    const int64_t most = std::clamp<int64_t>(fit, 1, kBlocksMost);
    int64_t size = std::max((call.m + most - 1) / most, kBlockRowsLeast);
    size = (size + kBlockRowsLeast - 1) / kBlockRowsLeast * kBlockRowsLeast;
    const int64_t n_blocks = (call.m + size - 1) / size;
    const Aligned<T> partials(n_blocks * partial);

    common::share(n_blocks, threads_for(plan, call.m, call.n_threads), [&](auto next) {
        [[maybe_unused]] FlushSubnormals flush;
        Workspace<T> own(plan, true, gradients.dz != nullptr);
        for (int64_t b = next(); b >= 0; b = next()) {
            T* sums = partials.get() + b * partial;
            const int64_t end = std::min((b + 1) * size, call.m);
            for (int64_t row = b * size; row < end; row += kTile) {
                const int64_t n = std::min(kTile, end - row);
                for (int64_t c = 0; c < k; ++c) {
                    T* to = own.G.get() + c * kTile;
                    for (int64_t r = 0; r < n; ++r) to[r] = G[(row + r) * k + c];
                    std::fill(to + n, to + kTile, T(0));
                }
                T* dz = gradients.dz ? gradients.dz + row * gradients.dz_row : nullptr;
                for (const Group& group : plan.groups) {
                    Rows<T> rows = own.lay(group, call, row, n);
                    const int64_t n_used = static_cast<int64_t>(group.used.size());
                    if (dz) {
                        rows.dz = own.dz.get();
                        std::fill(rows.dz, rows.dz + n_used * kTile, T(0));
                    }
                    for (int64_t i = group.first; i < group.last; ++i) {
                        const int64_t first = plan.test_start[i];
                        const int64_t at = (cut ? 2 * first + i : first + i) * w;
                        backward_tree(*call.kernels, prepared.tree(plan, call, i), rows, call.skip,
                                      {sums + first, sums + J + first, sums + 2 * J + at},
                                      own.scratch.get());
                    }
                    if (!dz) continue;
                    add_dz(rows, group.used, gradients, dz);
                }
            }
        }
    });

    auto total = [&](int64_t at) {
        double sum = 0;
        for (int64_t b = 0; b < n_blocks; ++b) sum += double(partials.get()[b * partial + at]);
        return sum;
    };
    for (int64_t j = 0; j < J; ++j) {
        const double slope = double(call.slope[j]);
        gradients.dt[j] = static_cast<T>(std::isfinite(slope) ? -slope * total(j) : 0.0);
        gradients.dslope[j] = static_cast<T>(total(J + j));
    }
    // A mean's gradient belongs in equal parts to the leaves below.
    std::vector<double> share_of;
    for (int64_t i = 0; i < plan.n_trees(); ++i) {
        const int64_t first = plan.test_start[i], n = plan.test_start[i + 1] - first;
        const int64_t at = 2 * J + (cut ? 2 * first + i : first + i) * w;
        T* dV = gradients.dV + (first + i) * w;
        if (!cut || n == 0) {
            for (int64_t e = 0; e < (n + 1) * w; ++e) dV[e] = static_cast<T>(total(at + e));
            continue;
        }
        share_of.assign(static_cast<size_t>(n * w), 0.0);
        for (int64_t j = 0; j < n; ++j)
            for (int64_t c = 0; c < w; ++c) {
                double& own = share_of[j * w + c];
                own += total(at + (n + 1 + j) * w + c) / plan.n_below[first + j];
                for (int side = 0; side < 2; ++side) {
                    const int64_t child = plan.children[2 * (first + j) + side];
                    if (child < n)
                        share_of[child * w + c] = own;
                    else
                        dV[(child - n) * w + c] =
                            static_cast<T>(total(at + (child - n) * w + c) + own);
                }
            }
    }
}

template void forward<float>(const Plan&, const Call<float>&, float*);
template void forward<double>(const Plan&, const Call<double>&, double*);
template void backward<float>(const Plan&, const Call<float>&, const float*,
                              const Gradients<float>&);
template void backward<double>(const Plan&, const Call<double>&, const double*,
                               const Gradients<double>&);

const Kernels* find_kernels(const std::string& name) {
    return common::find_kernels<Kernels>(DM_OF_EVERY_TARGET(kernels), name);
}

}  // namespace dm::soft
