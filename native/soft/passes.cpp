#include "soft/passes.hpp"

#include <algorithm>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "common/targets.hpp"
#include "common/threads.hpp"
#include "soft/gradient_sums.hpp"
#include "soft/prepared.hpp"
#include "soft/workspace.hpp"

namespace dm::soft {
namespace {

constexpr int64_t kWorkForThread = 1 << 16;  // rows times tests that outweigh starting a thread

#include "common/subnormals.hpp"

int64_t threads_for(const Plan& plan, int64_t m, int64_t n_threads) {
    return std::clamp<int64_t>(m * std::max<int64_t>(plan.n_tests(), 1) / kWorkForThread, 1,
                               std::max<int64_t>(n_threads, 1));
}

// Rows row..row + n of G into the workspace, by output.
template <typename T>
void lay_gradient(const T* G, int64_t k, int64_t row, int64_t n, T* out) {
    for (int64_t c = 0; c < k; ++c) {
        T* to = out + c * kTile;
        for (int64_t r = 0; r < n; ++r) to[r] = G[(row + r) * k + c];
        std::fill(to + n, to + kTile, T(0));
    }
}

}  // namespace

template <typename T>
void forward(const Plan& plan, const Call<T>& call, T* out) {
    const Prepared<T> prepared(plan, call);
    const Layout layout(plan, call);
    const int64_t k = plan.n_outputs;
    const int64_t n_tiles = (call.m + kTile - 1) / kTile;
    common::share(n_tiles, threads_for(plan, call.m, call.n_threads), [&](auto next) {
        [[maybe_unused]] FlushSubnormals flush;
        Workspace<T> own(plan, layout, false, false);
        for (int64_t i = next(); i >= 0; i = next()) {
            const int64_t row = i * kTile, n = std::min(kTile, call.m - row);
            T* sums = own.out.get();
            std::fill(sums, sums + k * kTile, T(0));
            for (const Group& group : *layout.groups) {
                const Rows<T> rows = own.lay(group, call, row, n);
                for (int64_t tree = group.first; tree < group.last; ++tree)
                    call.kernels->forward(prepared.tree(plan, call, tree), rows, call.skip,
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
    const Layout layout(plan, call);
    const GradientSums<T> sums(plan, call);
    auto add_tile = [&](int64_t block, int64_t row, int64_t n, Workspace<T>& own) {
        lay_gradient(G, plan.n_outputs, row, n, own.G.get());
        for (const Group& group : *layout.groups) {
            Rows<T> rows = own.lay(group, call, row, n);
            if (gradients.dz) {
                rows.dz = own.dz.get();
                std::fill_n(rows.dz, static_cast<int64_t>(group.used.size()) * kTile, T(0));
            }
            for (int64_t tree = group.first; tree < group.last; ++tree)
                call.kernels->backward(prepared.tree(plan, call, tree), rows, call.skip,
                                       sums.of(block, tree), own.scratch.get());
            if (gradients.dz)
                add_dz(rows, group.used, gradients, gradients.dz + row * gradients.dz_row);
        }
    };
    common::share(sums.n_blocks(), threads_for(plan, call.m, call.n_threads), [&](auto next) {
        [[maybe_unused]] FlushSubnormals flush;
        Workspace<T> own(plan, layout, true, gradients.dz != nullptr);
        for (int64_t block = next(); block >= 0; block = next()) {
            const int64_t end = std::min((block + 1) * sums.rows(), call.m);
            for (int64_t row = block * sums.rows(); row < end; row += kTile)
                add_tile(block, row, std::min(kTile, end - row), own);
        }
    });
    sums.write(call, gradients);
}

template void forward<float>(const Plan&, const Call<float>&, float*);
template void forward<double>(const Plan&, const Call<double>&, double*);
template void backward<float>(const Plan&, const Call<float>&, const float*,
                              const Gradients<float>&);
template void backward<double>(const Plan&, const Call<double>&, const double*,
                               const Gradients<double>&);

const Kernels* find_kernels(const std::string& target) {
    return common::find_kernels<Kernels>(DM_OF_EVERY_TARGET(kernels), target);
}

}  // namespace dm::soft
