#include "soft.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "targets.hpp"

namespace dm {
namespace {

constexpr int64_t kBlockRowsLeast = 128;           // rows summed by themselves, at least
constexpr int64_t kBlocksMost = 32;                // sums kept apart until the end, at most
constexpr int64_t kPartialBytes = int64_t{1} << 28;  // and their memory
constexpr int64_t kColumnsAtOnce = 16;    // read from each row
constexpr int64_t kColumnsLaidOut = 512;  // of a tile, unless one tree reads more
constexpr int64_t kWorkForThread = 1 << 16;  // rows times tests that outweigh starting a thread

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

// Weights far from a row's path underflow; a flushed zero is as good and a hundred times faster
// than a subnormal number.
class FlushSubnormals {
public:
#if defined(__SSE2__)
    FlushSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
    ~FlushSubnormals() { _mm_setcsr(before_); }

private:
    unsigned before_;
#endif
};

struct FreeDeleter {
    void operator()(void* p) const { std::free(p); }
};

template <typename T>
class Aligned {
public:
    explicit Aligned(int64_t n) {
        const size_t bytes = (static_cast<size_t>(n) * sizeof(T) + 127) / 64 * 64;
        data_.reset(std::aligned_alloc(64, bytes));
        if (!data_) throw std::bad_alloc();
        std::memset(data_.get(), 0, bytes);
    }
    T* get() const { return static_cast<T*>(data_.get()); }

private:
    std::unique_ptr<void, FreeDeleter> data_;
};

// Calls work(next), where next() gives each of 0..n - 1 once and then -1, on several threads.
template <typename Work>
void share(int64_t n, int64_t n_threads, const Work& work) {
    std::atomic<int64_t> counter{0};
    std::mutex guard;
    std::exception_ptr failure;
    auto run = [&] {
        try {
            [[maybe_unused]] FlushSubnormals flush;
            work([&] {
                const int64_t i = counter++;
                return i < n ? i : int64_t{-1};
            });
        } catch (...) {
            std::lock_guard<std::mutex> lock(guard);
            failure = std::current_exception();
        }
    };
    std::vector<std::thread> threads;
    // Where the system refuses a thread, the ones that run do the work.
    try {
        for (int64_t i = 1; i < std::min(n_threads, n); ++i) threads.emplace_back(run);
    } catch (const std::exception&) {
    }
    run();
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

// Beyond this a gate at its limit, times z - t, is no longer nothing.
template <typename T>
bool is_tame(T x) {
    return std::fabs(x) <= (sizeof(T) == 4 ? T(1e15) : T(1e100));
}

// What all threads read: the tests' parameters judged, and values with the means below each test.
template <typename T>
struct Prepared {
    std::vector<uint8_t> wild;  // (J,)
    std::vector<T> values;      // by tree: its leaves' values, then its tests' means; if cut

    Prepared(const SoftPlan& plan, const SoftCall<T>& call) : wild(plan.n_tests()) {
        for (int64_t j = 0; j < plan.n_tests(); ++j) {
            require(call.t[j] == call.t[j], "t holds NaN");
            require(call.slope[j] == call.slope[j], "slope holds NaN");
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

    SoftTree<T> tree(const SoftPlan& plan, const SoftCall<T>& call, int64_t i) const {
        const int64_t first = plan.test_start[i], w = plan.width();
        return {plan.test_start[i + 1] - first,
                plan.children.data() + 2 * first,
                plan.column.data() + first,
                plan.missing.data() + first,
                wild.data() + first,
                call.t + first,
                call.slope + first,
                values.empty() ? call.V + (first + i) * w : values.data() + (2 * first + i) * w,
                w,
                plan.narrow ? plan.feeds[i] : 0};
    }
};

// One thread's memory: a tile of rows, and the kernels' scratch.
template <typename T>
struct Workspace {
    Aligned<T> z, out, G, dz;
    std::vector<uint8_t> wild;
    Aligned<char> scratch;

    Workspace(const SoftPlan& plan, bool backward, bool with_dz)
        : z(plan.most_used * kSoftTile),
          out(backward ? 0 : plan.n_outputs * kSoftTile),
          G(backward ? plan.n_outputs * kSoftTile : 0),
          dz(with_dz ? plan.most_used * kSoftTile : 0),
          wild(static_cast<size_t>(plan.most_used)),
          scratch(soft_scratch_bytes(plan.most_tests, plan.width())) {}

    // Lay out a group's columns of rows row..row + n, n <= kSoftTile.
    SoftRows<T> lay(const SoftPlan& plan, const SoftGroup& group, const SoftCall<T>& call,
                    int64_t row, int64_t n) {
        const std::vector<int32_t>& used = group.used;
        const int64_t n_used = static_cast<int64_t>(used.size());
        for (int64_t c = 0; c < n_used; ++c)
            std::fill(z.get() + c * kSoftTile + n, z.get() + (c + 1) * kSoftTile, T(0));
        if (call.z_row == 1) {
            for (int64_t c = 0; c < n_used; ++c) {
                const T* from = call.z + row + used[c] * call.z_column;
                std::copy(from, from + n, z.get() + c * kSoftTile);
            }
        } else {
            // A few columns at a time, so that a row's cache line is read once.
            for (int64_t c = 0; c < n_used; c += kColumnsAtOnce) {
                const int64_t last = std::min(c + kColumnsAtOnce, n_used);
                for (int64_t r = 0; r < n; ++r) {
                    const T* from = call.z + (row + r) * call.z_row;
                    for (int64_t i = c; i < last; ++i)
                        z.get()[i * kSoftTile + r] = from[used[i] * call.z_column];
                }
            }
        }
        for (int64_t c = 0; c < n_used; ++c) {
            int all_tame = 1;
            for (int64_t r = 0; r < n; ++r) all_tame &= is_tame(z.get()[c * kSoftTile + r]);
            wild[c] = !all_tame;
        }
        return {n, z.get(), wild.data(), out.get(), G.get(), nullptr};
    }
};

// A group's gradients of z to where they belong.
template <typename T>
void add_dz(const SoftRows<T>& rows, const std::vector<int32_t>& used,
            const SoftGradients<T>& gradients, T* dz) {
    const int64_t n_used = static_cast<int64_t>(used.size());
    if (gradients.dz_row == 1) {
        for (int64_t c = 0; c < n_used; ++c) {
            const T* from = rows.dz + c * kSoftTile;
            T* to = dz + used[c] * gradients.dz_column;
            for (int64_t r = 0; r < rows.n; ++r) to[r] += from[r];
        }
        return;
    }
    for (int64_t c = 0; c < n_used; c += kColumnsAtOnce)
        for (int64_t r = 0; r < rows.n; ++r)
            for (int64_t i = c; i < std::min(c + kColumnsAtOnce, n_used); ++i)
                dz[r * gradients.dz_row + used[i] * gradients.dz_column] +=
                    rows.dz[i * kSoftTile + r];
}

inline void forward_tree(const SoftKernels& k, const SoftTree<float>& tree,
                         const SoftRows<float>& rows, float skip, void* scratch) {
    k.forward32(tree, rows, skip, scratch);
}
inline void forward_tree(const SoftKernels& k, const SoftTree<double>& tree,
                         const SoftRows<double>& rows, double skip, void* scratch) {
    k.forward64(tree, rows, skip, scratch);
}
inline void backward_tree(const SoftKernels& k, const SoftTree<float>& tree,
                          const SoftRows<float>& rows, float skip, const SoftSums<float>& sums,
                          void* scratch) {
    k.backward32(tree, rows, skip, sums, scratch);
}
inline void backward_tree(const SoftKernels& k, const SoftTree<double>& tree,
                          const SoftRows<double>& rows, double skip, const SoftSums<double>& sums,
                          void* scratch) {
    k.backward64(tree, rows, skip, sums, scratch);
}

int64_t threads_for(const SoftPlan& plan, int64_t m, int64_t n_threads) {
    return std::clamp<int64_t>(m * std::max<int64_t>(plan.n_tests(), 1) / kWorkForThread, 1,
                               std::max<int64_t>(n_threads, 1));
}

}  // namespace

SoftPlan::SoftPlan(const int32_t* given, const int64_t* starts, int64_t n, const int32_t* selection,
                   const int8_t* answers, const int32_t* outputs, int64_t columns, int64_t k)
    : n_columns(columns), n_outputs(k), narrow(n > 0 && outputs[0] >= 0),
      test_start(starts, starts + n + 1), feeds(outputs, outputs + n), most_tests(0),
      most_used(0) {
    require(starts[0] == 0, "test_start does not begin at 0");
    for (int64_t i = 0; i < n; ++i) {
        require(starts[i] <= starts[i + 1], "test_start decreases");
        require(narrow ? feeds[i] >= 0 && feeds[i] < k : feeds[i] == -1,
                "feeds must name an output in every tree, or be -1 in every tree");
        most_tests = std::max(most_tests, starts[i + 1] - starts[i]);
    }
    const int64_t J = n_tests();
    require(3 * J + 1 < (int64_t{1} << 31), "more than 2**31 slots");
    missing.assign(answers, answers + J);
    for (int64_t j = 0; j < J; ++j) {
        require(missing[j] == 1 || missing[j] == -1, "missing must be -1 or +1");
        require(selection[j] >= 0 && selection[j] < columns, "selection names no column of z");
    }
    make_groups(selection);
    children.resize(2 * J);
    n_below.assign(J, 0);
    for (int64_t i = 0; i < n; ++i) {
        const int64_t first = starts[i], size = starts[i + 1] - first, leaf = first + i;
        std::vector<bool> seen(static_cast<size_t>(2 * size + 1));
        for (int64_t e = 2 * first; e < 2 * (first + size); ++e) {
            const int64_t c = given[e];
            const int64_t slot = c >= 0 ? c - first : size + ~c - leaf;
            require(c >= 0 ? slot > e / 2 - first && slot < size : slot >= size && slot <= 2 * size,
                    "children must come after their parent, in its own tree");
            require(!seen[slot], "a node is the child of two tests");
            seen[slot] = true;
            children[e] = static_cast<int32_t>(slot);
        }
        // 2 n distinct children among 2 n nodes that are not the root: every node has a parent.
        for (int64_t j = size - 1; j >= 0; --j)
            for (int side = 0; side < 2; ++side) {
                const int32_t c = children[2 * (first + j) + side];
                n_below[first + j] += c < size ? n_below[first + c] : 1;
            }
    }
}

void SoftPlan::make_groups(const int32_t* selection) {
    column.resize(n_tests());
    std::vector<int64_t> group_of(static_cast<size_t>(n_columns), -1);  // the last to read it
    int64_t n_used = 0;
    for (int64_t i = 0; i < n_trees(); ++i) {
        auto count = [&](int64_t group, bool keep) {
            int64_t n_new = 0;
            for (int64_t j = test_start[i]; j < test_start[i + 1]; ++j) {
                n_new += group_of[selection[j]] != group;
                if (keep) group_of[selection[j]] = group;
            }
            return n_new;
        };
        int64_t group = static_cast<int64_t>(groups.size()) - 1;
        if (group < 0 || n_used + count(group, false) > kColumnsLaidOut) {
            groups.push_back({i, i, {}});
            ++group;
            n_used = 0;
        }
        n_used += count(group, true);
        groups.back().last = i + 1;
    }
    for (SoftGroup& group : groups) {
        const int64_t first = test_start[group.first], last = test_start[group.last];
        std::vector<int32_t>& used = group.used;
        used.assign(selection + first, selection + last);
        std::sort(used.begin(), used.end());
        used.erase(std::unique(used.begin(), used.end()), used.end());
        most_used = std::max(most_used, static_cast<int64_t>(used.size()));
        for (int64_t j = first; j < last; ++j)
            column[j] = static_cast<int32_t>(
                std::lower_bound(used.begin(), used.end(), selection[j]) - used.begin());
    }
}

template <typename T>
void soft_forward(const SoftPlan& plan, const SoftCall<T>& call, T* out) {
    const Prepared<T> prepared(plan, call);
    const int64_t k = plan.n_outputs;
    const int64_t n_tiles = (call.m + kSoftTile - 1) / kSoftTile;
    share(n_tiles, threads_for(plan, call.m, call.n_threads), [&](auto next) {
        Workspace<T> own(plan, false, false);
        for (int64_t i = next(); i >= 0; i = next()) {
            const int64_t row = i * kSoftTile, n = std::min(kSoftTile, call.m - row);
            T* sums = own.out.get();
            std::fill(sums, sums + k * kSoftTile, T(0));
            for (const SoftGroup& group : plan.groups) {
                const SoftRows<T> rows = own.lay(plan, group, call, row, n);
                for (int64_t tree = group.first; tree < group.last; ++tree)
                    forward_tree(*call.kernels, prepared.tree(plan, call, tree), rows, call.skip,
                                 own.scratch.get());
            }
            for (int64_t c = 0; c < k; ++c)
                for (int64_t r = 0; r < n; ++r) out[(row + r) * k + c] = sums[c * kSoftTile + r];
        }
    });
}

template <typename T>
void soft_backward(const SoftPlan& plan, const SoftCall<T>& call, const T* G,
                   const SoftGradients<T>& gradients) {
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

    share(n_blocks, threads_for(plan, call.m, call.n_threads), [&](auto next) {
        Workspace<T> own(plan, true, gradients.dz != nullptr);
        for (int64_t b = next(); b >= 0; b = next()) {
            T* sums = partials.get() + b * partial;
            const int64_t end = std::min((b + 1) * size, call.m);
            for (int64_t row = b * size; row < end; row += kSoftTile) {
                const int64_t n = std::min(kSoftTile, end - row);
                for (int64_t c = 0; c < k; ++c) {
                    T* to = own.G.get() + c * kSoftTile;
                    for (int64_t r = 0; r < n; ++r) to[r] = G[(row + r) * k + c];
                    std::fill(to + n, to + kSoftTile, T(0));
                }
                T* dz = gradients.dz ? gradients.dz + row * gradients.dz_row : nullptr;
                for (const SoftGroup& group : plan.groups) {
                    SoftRows<T> rows = own.lay(plan, group, call, row, n);
                    const int64_t n_used = static_cast<int64_t>(group.used.size());
                    if (dz) {
                        rows.dz = own.dz.get();
                        std::fill(rows.dz, rows.dz + n_used * kSoftTile, T(0));
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
                    if (child < n) share_of[child * w + c] = own;
                    else dV[(child - n) * w + c] = static_cast<T>(total(at + (child - n) * w + c) + own);
                }
            }
    }
}

template void soft_forward<float>(const SoftPlan&, const SoftCall<float>&, float*);
template void soft_forward<double>(const SoftPlan&, const SoftCall<double>&, double*);
template void soft_backward<float>(const SoftPlan&, const SoftCall<float>&, const float*,
                                   const SoftGradients<float>&);
template void soft_backward<double>(const SoftPlan&, const SoftCall<double>&, const double*,
                                    const SoftGradients<double>&);

const SoftKernels* find_soft_kernels(const std::string& name) {
    const Kernels* target = find_target(name);
    if (!target) return nullptr;
    static const SoftKernels* const all[] = {
        &scalar::soft_kernels,
#if defined(__x86_64__)
        &v2::soft_kernels, &v3::soft_kernels, &v4::soft_kernels, &v4_vbmi::soft_kernels,
#elif defined(__ARM_NEON)
        &neon::soft_kernels,
#endif
    };
    for (const SoftKernels* kernels : all)
        if (std::strcmp(kernels->name, target->name) == 0) return kernels;
    return nullptr;
}

}  // namespace dm
