// One thread's memory for soft trees: a tile of rows laid out by column, and their gradients.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "common/buffer.hpp"
#include "soft/passes.hpp"

namespace dm::soft {

constexpr int64_t kColumnsAtOnce = 16;  // read from each row

// n zeros.
template <typename T>
class Aligned {
public:
    explicit Aligned(int64_t n) { buffer_.reserve(n * static_cast<int64_t>(sizeof(T))); }
    T* get() const { return buffer_.as<T>(); }

private:
    common::Buffer buffer_;
};

// Beyond this a gate at its limit, times z - t, is no longer nothing.
template <typename T>
inline bool is_tame(T x) {
    return std::fabs(x) <= (sizeof(T) == 4 ? T(1e15) : T(1e100));
}

// Which columns are laid out for which trees in a call: the plan's own groups, or all columns for
// all trees where tests weigh several.
struct Layout {
    std::vector<Group> whole;
    const std::vector<Group>* groups;
    int64_t most_used, most_mixed = 0;  // columns of a group, weights of a tree

    template <typename T>
    Layout(const Plan& plan, const Call<T>& call)
        : groups(&plan.groups), most_used(plan.most_used) {
        if (!call.mix_start) return;
        whole.push_back({0, plan.n_trees(), std::vector<int32_t>(plan.n_columns)});
        std::iota(whole[0].used.begin(), whole[0].used.end(), 0);
        groups = &whole;
        most_used = plan.n_columns;
        most_mixed = 1;  // tests keep what they read even where none weighs a column
        for (int64_t i = 0; i < plan.n_trees(); ++i)
            most_mixed = std::max(most_mixed, call.mix_start[plan.test_start[i + 1]] -
                                                  call.mix_start[plan.test_start[i]]);
    }
};

// One thread's memory: a tile of rows, and the kernels' scratch.
template <typename T>
struct Workspace {
    Aligned<T> z, out, G, dz;
    std::vector<uint8_t> wild;
    Aligned<char> scratch;

    Workspace(const Plan& plan, const Layout& layout, bool backward, bool with_dz)
        : z(layout.most_used * kTile),
          out(backward ? 0 : plan.n_outputs * kTile),
          G(backward ? plan.n_outputs * kTile : 0),
          dz(with_dz ? layout.most_used * kTile : 0),
          wild(static_cast<size_t>(layout.most_used)),
          scratch(scratch_bytes(plan.most_tests, plan.width(), layout.most_mixed)) {}

    // Lay out a group's columns of rows row..row + n, n <= kTile.
    Rows<T> lay(const Group& group, const Call<T>& call, int64_t row, int64_t n) {
        const std::vector<int32_t>& used = group.used;
        const int64_t n_used = static_cast<int64_t>(used.size());
        for (int64_t c = 0; c < n_used; ++c)
            std::fill(z.get() + c * kTile + n, z.get() + (c + 1) * kTile, T(0));
        if (call.z_row == 1) {
            for (int64_t c = 0; c < n_used; ++c) {
                const T* from = call.z + row + used[c] * call.z_column;
                std::copy(from, from + n, z.get() + c * kTile);
            }
        } else {
            // A few columns at a time, so that a row's cache line is read once.
            for (int64_t c = 0; c < n_used; c += kColumnsAtOnce) {
                const int64_t last = std::min(c + kColumnsAtOnce, n_used);
                for (int64_t r = 0; r < n; ++r) {
                    const T* from = call.z + (row + r) * call.z_row;
                    for (int64_t i = c; i < last; ++i)
                        z.get()[i * kTile + r] = from[used[i] * call.z_column];
                }
            }
        }
        for (int64_t c = 0; c < n_used; ++c) {
            int all_tame = 1;
            for (int64_t r = 0; r < n; ++r) all_tame &= is_tame(z.get()[c * kTile + r]);
            wild[c] = !all_tame;
        }
        return {n, z.get(), wild.data(), out.get(), G.get(), nullptr};
    }
};

// A group's gradients of z to where they belong.
template <typename T>
void add_dz(const Rows<T>& rows, const std::vector<int32_t>& used, const Gradients<T>& gradients,
            T* dz) {
    const int64_t n_used = static_cast<int64_t>(used.size());
    if (gradients.dz_row == 1) {
        for (int64_t c = 0; c < n_used; ++c) {
            const T* from = rows.dz + c * kTile;
            T* to = dz + used[c] * gradients.dz_column;
            for (int64_t r = 0; r < rows.n; ++r) to[r] += from[r];
        }
        return;
    }
    for (int64_t c = 0; c < n_used; c += kColumnsAtOnce)
        for (int64_t r = 0; r < rows.n; ++r)
            for (int64_t i = c; i < std::min(c + kColumnsAtOnce, n_used); ++i)
                dz[r * gradients.dz_row + used[i] * gradients.dz_column] += rows.dz[i * kTile + r];
}

}  // namespace dm::soft
