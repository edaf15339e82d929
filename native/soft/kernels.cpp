// The soft tree on one target. Compiled once for each, with its flags and its name in DM_TARGET.
#include "soft/kernels.hpp"

#if defined(__AVX2__) && !defined(DM_SCALAR)
#include <immintrin.h>
#endif

#ifndef DM_TARGET
#define DM_TARGET scalar
#endif

namespace dm::soft::DM_TARGET {
namespace {

#include "common/sigmoid.hpp"

// Vectors of rows that descend together: enough that one test's overhead is shared and its
// latencies overlap, few enough that a tree's weights stay in the first-level cache.
constexpr int kStrip = 4;
static_assert(kStrip * 64 <= kStripBytes, "a strip fits its place in the scratch");

template <typename T>
struct Scratch {
    typedef Vec<T> Strip[kStrip];
    Strip* slots;      // (2 n_tests + 1,) P on the way down, U on the way up
    Strip* gates;      // (n_tests, 2) left and right
    Vec<T>*dq, *dq_z;  // (n_tests,) sums by lane
    Vec<T>* dvalues;   // (2 n_tests + 1, width) sums by lane, if has_lane_sums
    int32_t* ends;     // slots where descents end
    uint8_t* visited;  // (2 n_tests + 1,) slots whose children have weights
    Strip* mixes;      // (n_tests,) what tests that weigh several columns read
    Vec<T>* dmix;      // by weight, sums by lane

    Scratch(void* memory, int64_t n_tests, int64_t width) {
        char* at = static_cast<char*>(memory);
        auto take = [&](int64_t bytes) {
            char* taken = at;
            at += (bytes + 63) / 64 * 64;
            return taken;
        };
        const int64_t strip = sizeof(Strip), vec = sizeof(Vec<T>);
        slots = reinterpret_cast<Strip*>(take((2 * n_tests + 1) * strip));
        gates = reinterpret_cast<Strip*>(take(2 * n_tests * strip));
        dq = reinterpret_cast<Vec<T>*>(take(n_tests * vec));
        dq_z = reinterpret_cast<Vec<T>*>(take(n_tests * vec));
        dvalues = reinterpret_cast<Vec<T>*>(
            take((has_lane_sums(n_tests, width) ? (2 * n_tests + 1) * width : 0) * vec));
        ends = reinterpret_cast<int32_t*>(take((2 * n_tests + 2) * 4));
        visited = reinterpret_cast<uint8_t*>(take(2 * n_tests + 1));
        mixes = reinterpret_cast<Strip*>(take(0));
        dmix = reinterpret_cast<Vec<T>*>(at + n_tests * strip);
    }
};

// Whether a weight of the strip is at least `skip`.
template <typename T>
inline bool reaches(const Vec<T>* P, T skip) {
    Vec<T> most = P[0];
    for (int v = 1; v < kStrip; ++v) most = P[v] > most ? P[v] : most;
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
        return _mm512_cmp_ps_mask(most, broadcast<T>(skip), _CMP_GE_OQ);
    else
        return _mm512_cmp_pd_mask(most, broadcast<T>(skip), _CMP_GE_OQ);
#elif defined(__AVX2__)
    if constexpr (sizeof(T) == 4)
        return _mm256_movemask_ps(_mm256_cmp_ps(most, broadcast<T>(skip), _CMP_GE_OQ));
    else
        return _mm256_movemask_pd(_mm256_cmp_pd(most, broadcast<T>(skip), _CMP_GE_OQ));
#else
    T lanes[kLanes<T>];
    store<T>(lanes, most);
    bool any = false;
    for (int64_t i = 0; i < kLanes<T>; ++i) any |= lanes[i] >= skip;
    return any;
#endif
}

// z - t where either may be infinite: the same infinity is a tie.
template <typename T>
inline Vec<T> distance(Vec<T> z, T t) {
    const Vec<T> d = z - t;
    return d == d ? d : broadcast<T>(0);
}

// Gates of one test for a strip. NaN takes the missing answer; a gate of the limit is 0 or 1, so
// that no gradient passes, for z - t may be anything there.
template <typename T>
inline void test_gates(const Tree<T>& tree, int64_t test, bool wild, const T* z, Vec<T>* left,
                       Vec<T>* right) {
    const T t = tree.t[test], nudge = tree.nudge[test], slope = tree.slope[test];
    if (!wild) {
        for (int v = 0; v < kStrip; ++v)
            gates<T>(clamp<T>((load<T>(z + v * kLanes<T>) - t - nudge) * slope), left[v], right[v]);
        return;
    }
    const Vec<T> zero = broadcast<T>(0), one = broadcast<T>(1);
    const Vec<T> limit = broadcast<T>(Exp<T>::limit);
    const Vec<T> missing = tree.missing[test] > 0 ? one : zero;
    for (int v = 0; v < kStrip; ++v) {
        const Vec<T> x = load<T>(z + v * kLanes<T>);
        const Vec<T> q = clamp<T>((distance<T>(x, t) - nudge) * slope);
        gates<T>(q, left[v], right[v]);
        right[v] = q >= limit ? one : (q <= -limit ? zero : right[v]);
        left[v] = q >= limit ? zero : (q <= -limit ? one : left[v]);
        right[v] = x == x ? right[v] : missing;
        left[v] = x == x ? left[v] : one - missing;
    }
}

template <typename T>
inline bool is_wild(const Tree<T>& tree, const Rows<T>& rows, int64_t test) {
    return tree.wild[test] | rows.wild[tree.column[test]];
}

// What a test that weighs several columns reads, for a strip; true where a column is wild.
template <typename T>
inline bool mix(const Tree<T>& tree, const Rows<T>& rows, int64_t test, int64_t row, Vec<T>* to) {
    Vec<T> sum[kStrip];
    for (int v = 0; v < kStrip; ++v) sum[v] = broadcast<T>(0);
    bool wild = tree.wild[test];
    for (int64_t e = tree.mix_start[test]; e < tree.mix_start[test + 1]; ++e) {
        const T weight = tree.mix_weight[e];
        const T* z = rows.z + tree.mix_column[e] * kTile + row;
        wild |= rows.wild[tree.mix_column[e]];
        for (int v = 0; v < kStrip; ++v) sum[v] += load<T>(z + v * kLanes<T>) * weight;
    }
    for (int v = 0; v < kStrip; ++v) to[v] = sum[v];
    return wild;
}

// Gradients of the weights, and of the columns that they weigh, from that of what was read.
template <typename T>
inline void unmix(const Tree<T>& tree, const Rows<T>& rows, int64_t test, int64_t row,
                  const Vec<T>* dread, const Scratch<T>& own) {
    for (int64_t e = tree.mix_start[test]; e < tree.mix_start[test + 1]; ++e) {
        const int64_t at = tree.mix_column[e] * kTile + row;
        Vec<T> sum = own.dmix[e - tree.mix_start[0]];
        for (int v = 0; v < kStrip; ++v) sum += dread[v] * load<T>(rows.z + at + v * kLanes<T>);
        own.dmix[e - tree.mix_start[0]] = sum;
        if (!rows.dz) continue;
        const T weight = tree.mix_weight[e];
        for (int v = 0; v < kStrip; ++v) {
            T* dz = rows.dz + at + v * kLanes<T>;
            store<T>(dz, load<T>(dz) + dread[v] * weight);
        }
    }
}

// Weights from the root down, for the strip that starts at `row`. With `Cut`, a test that every row
// of the strip reaches with less than `skip` ends their descent. Returns how many slots end one;
// without `Cut` those are the leaves' own, in order.
template <typename T, bool Cut, bool Keep, bool Mixed>
int64_t descend(const Tree<T>& tree, const Rows<T>& rows, int64_t row, T skip,
                const Scratch<T>& own) {
    const int64_t n_tests = tree.n_tests;
    const Vec<T> one = broadcast<T>(1);
    int64_t n_ends = 0;
    for (int v = 0; v < kStrip; ++v) own.slots[0][v] = one;
    if (Cut) {
        __builtin_memset(own.visited, 0, static_cast<size_t>(2 * n_tests + 1));
        own.visited[0] = 1;
        if (!n_tests) own.ends[n_ends++] = 0;
    }
    for (int64_t j = 0; j < n_tests; ++j) {
        if (Cut && !own.visited[j]) continue;
        Vec<T> left[kStrip], right[kStrip];
        bool wild;
        const T* z;
        if constexpr (Mixed) {
            wild = mix<T>(tree, rows, j, row, own.mixes[j]);
            z = reinterpret_cast<const T*>(own.mixes[j]);
        } else {
            wild = is_wild(tree, rows, j);
            z = rows.z + tree.column[j] * kTile + row;
        }
        test_gates<T>(tree, j, wild, z, left, right);
        if (Keep)
            for (int v = 0; v < kStrip; ++v) {
                own.gates[2 * j][v] = left[v];
                own.gates[2 * j + 1][v] = right[v];
            }
        const int32_t* child = tree.children + 2 * j;
        for (int v = 0; v < kStrip; ++v) {
            const Vec<T> P = own.slots[j][v];
            left[v] *= P;
            right[v] *= P;
            own.slots[child[0]][v] = left[v];
            own.slots[child[1]][v] = right[v];
        }
        if (!Cut) continue;
        const bool on[2] = {reaches<T>(left, skip), reaches<T>(right, skip)};
        for (int side = 0; side < 2; ++side) {
            // Without a branch: whether a test is reached is a coin toss to the processor.
            const bool goes_on = on[side] & (child[side] < n_tests);
            own.visited[child[side]] = goes_on;
            own.ends[n_ends] = child[side];
            n_ends += !goes_on;
        }
    }
    return Cut ? n_ends : n_tests + 1;
}

// Where the value of a slot stands: leaves first, then the means below tests.
template <typename T>
inline int64_t place(const Tree<T>& tree, int64_t slot) {
    return slot < tree.n_tests ? slot + tree.n_tests + 1 : slot - tree.n_tests;
}

// out += P * value over the slots where descents end.
template <typename T, bool Cut>
void add_values(const Tree<T>& tree, const Rows<T>& rows, int64_t row, int64_t n_ends,
                const Scratch<T>& own) {
    for (int64_t c = 0; c < tree.width; ++c) {
        T* out = rows.out + (tree.output + c) * kTile + row;
        Vec<T> sum[kStrip];
        for (int v = 0; v < kStrip; ++v) sum[v] = load<T>(out + v * kLanes<T>);
        for (int64_t i = 0; i < n_ends; ++i) {
            const int64_t slot = Cut ? own.ends[i] : tree.n_tests + i;
            const T value = tree.values[(Cut ? place(tree, slot) : i) * tree.width + c];
            for (int v = 0; v < kStrip; ++v) sum[v] += own.slots[slot][v] * value;
        }
        for (int v = 0; v < kStrip; ++v) store<T>(out + v * kLanes<T>, sum[v]);
    }
}

// Where descents end: gradients of the values, and P becomes U.
template <typename T, bool Cut>
void turn(const Tree<T>& tree, const Rows<T>& rows, int64_t row, int64_t n_ends,
          const Sums<T>& sums, const Scratch<T>& own) {
    const T* G = rows.G + tree.output * kTile + row;
    if (tree.width == 1) {
        Vec<T> g[kStrip];
        for (int v = 0; v < kStrip; ++v) g[v] = load<T>(G + v * kLanes<T>);
        for (int64_t i = 0; i < n_ends; ++i) {
            const int64_t slot = Cut ? own.ends[i] : tree.n_tests + i;
            const int64_t at = Cut ? place(tree, slot) : i;
            const T value = tree.values[at];
            Vec<T> sum = own.dvalues[at];
            for (int v = 0; v < kStrip; ++v) {
                const Vec<T> weighted = own.slots[slot][v] * g[v];
                sum += weighted;
                own.slots[slot][v] = weighted * value;
            }
            own.dvalues[at] = sum;
        }
        return;
    }
    const bool by_lane = has_lane_sums(tree.n_tests, tree.width);
    for (int64_t i = 0; i < n_ends; ++i) {
        const int64_t slot = Cut ? own.ends[i] : tree.n_tests + i;
        const int64_t at = (Cut ? place(tree, slot) : i) * tree.width;
        const T* value = tree.values + at;
        T* dvalue = sums.dvalues + at;
        Vec<T> P[kStrip], E[kStrip];
        for (int v = 0; v < kStrip; ++v) {
            P[v] = own.slots[slot][v];
            E[v] = broadcast<T>(0);
        }
        for (int64_t c = 0; c < tree.width; ++c) {
            Vec<T> sum = broadcast<T>(0);
            for (int v = 0; v < kStrip; ++v) {
                const Vec<T> g = load<T>(G + c * kTile + v * kLanes<T>);
                sum += P[v] * g;
                E[v] += g * value[c];
            }
            if (by_lane)
                own.dvalues[at + c] += sum;
            else
                dvalue[c] += sum_lanes<T>(sum);
        }
        for (int v = 0; v < kStrip; ++v) own.slots[slot][v] = P[v] * E[v];
    }
}

// U from the leaves up, and the gradient of every test on the way.
template <typename T, bool Cut, bool Mixed>
void ascend(const Tree<T>& tree, const Rows<T>& rows, int64_t row, const Scratch<T>& own) {
    const int64_t n_tests = tree.n_tests;
    const Vec<T> zero = broadcast<T>(0);
    for (int64_t j = n_tests - 1; j >= 0; --j) {
        if (Cut && !own.visited[j]) continue;
        const int32_t* side = tree.children + 2 * j;
        const T t = tree.t[j], nudge = tree.nudge[j], slope = tree.slope[j];
        // What a mixed test read may be anything where a gate is at its limit.
        const bool wild = Mixed || is_wild(tree, rows, j);
        const int64_t at = Mixed ? 0 : tree.column[j] * kTile + row;
        const T* z = Mixed ? reinterpret_cast<const T*>(own.mixes[j]) : rows.z + at;
        Vec<T> dq_sum = own.dq[j], dq_z_sum = own.dq_z[j];
        Vec<T> dq[kStrip];
        for (int v = 0; v < kStrip; ++v) {
            const Vec<T> left = own.slots[side[0]][v], right = own.slots[side[1]][v];
            const Vec<T> to_left = own.gates[2 * j][v], to_right = own.gates[2 * j + 1][v];
            dq[v] = to_left * right - to_right * left;
            dq_sum += dq[v];
            own.slots[j][v] = left + right;
            Vec<T> d = load<T>(z + v * kLanes<T>) - t - nudge;
            if (wild) {
                d = distance<T>(load<T>(z + v * kLanes<T>), t) - nudge;
                d = to_left == zero ? zero : (to_right == zero ? zero : d);
            }
            dq_z_sum += dq[v] * d;
        }
        own.dq[j] = dq_sum;
        own.dq_z[j] = dq_z_sum;
        if constexpr (Mixed) {
            const T finite = slope - slope == T(0) ? slope : T(0);
            for (int v = 0; v < kStrip; ++v) dq[v] *= finite;
            unmix<T>(tree, rows, j, row, dq, own);
        } else if (rows.dz) {
            // An endless slope is a hard test: its dq is 0.
            const T finite = slope - slope == T(0) ? slope : T(0);
            for (int v = 0; v < kStrip; ++v) {
                T* dz = rows.dz + at + v * kLanes<T>;
                store<T>(dz, load<T>(dz) + dq[v] * finite);
            }
        }
    }
}

template <typename T, bool Cut, bool Mixed>
void forward(const Tree<T>& tree, const Rows<T>& rows, T skip, const Scratch<T>& own) {
    for (int64_t row = 0; row < rows.n; row += kStrip * kLanes<T>) {
        const int64_t n_ends = descend<T, Cut, false, Mixed>(tree, rows, row, skip, own);
        add_values<T, Cut>(tree, rows, row, n_ends, own);
    }
}

template <typename T, bool Cut, bool Mixed>
void backward(const Tree<T>& tree, const Rows<T>& rows, T skip, const Sums<T>& sums,
              const Scratch<T>& own) {
    const int64_t n_tests = tree.n_tests;
    const int64_t n_values = (Cut ? 2 * n_tests + 1 : n_tests + 1) * tree.width;
    const bool by_lane = has_lane_sums(n_tests, tree.width);
    const int64_t n_mixed = Mixed ? tree.mix_start[n_tests] - tree.mix_start[0] : 0;
    for (int64_t e = 0; e < n_mixed; ++e) own.dmix[e] = broadcast<T>(0);
    for (int64_t j = 0; j < n_tests; ++j) own.dq[j] = own.dq_z[j] = broadcast<T>(0);
    if (by_lane)
        for (int64_t i = 0; i < n_values; ++i) own.dvalues[i] = broadcast<T>(0);
    for (int64_t row = 0; row < rows.n; row += kStrip * kLanes<T>) {
        const int64_t n_ends = descend<T, Cut, true, Mixed>(tree, rows, row, skip, own);
        turn<T, Cut>(tree, rows, row, n_ends, sums, own);
        ascend<T, Cut, Mixed>(tree, rows, row, own);
    }
    for (int64_t j = 0; j < n_tests; ++j) {
        sums.dq[j] += sum_lanes<T>(own.dq[j]);
        sums.dq_z[j] += sum_lanes<T>(own.dq_z[j]);
    }
    if (by_lane)
        for (int64_t i = 0; i < n_values; ++i) sums.dvalues[i] += sum_lanes<T>(own.dvalues[i]);
    for (int64_t e = 0; e < n_mixed; ++e) sums.dmix[e] += sum_lanes<T>(own.dmix[e]);
}

template <typename T>
void forward_tree(const Tree<T>& tree, const Rows<T>& rows, T skip, void* scratch) {
    const Scratch<T> own(scratch, tree.n_tests, tree.width);
    if (tree.mix_start) return forward<T, false, true>(tree, rows, skip, own);
    skip > 0 ? forward<T, true, false>(tree, rows, skip, own)
             : forward<T, false, false>(tree, rows, skip, own);
}

template <typename T>
void backward_tree(const Tree<T>& tree, const Rows<T>& rows, T skip, const Sums<T>& sums,
                   void* scratch) {
    const Scratch<T> own(scratch, tree.n_tests, tree.width);
    if (tree.mix_start) return backward<T, false, true>(tree, rows, skip, sums, own);
    skip > 0 ? backward<T, true, false>(tree, rows, skip, sums, own)
             : backward<T, false, false>(tree, rows, skip, sums, own);
}

// Call `one` with whole vectors of x, the last one filled up with zeros.
template <typename T, typename One>
void each(const T* x, int64_t n, One one) {
    for (int64_t i = 0; i < n; i += kLanes<T>) {
        T values[kLanes<T>] = {};
        const int64_t m = n - i < kLanes<T> ? n - i : kLanes<T>;
        for (int64_t k = 0; k < m; ++k) values[k] = x[i + k];
        one(load<T>(values), i, m);
    }
}

template <typename T>
void put(Vec<T> v, int64_t m, T* out) {
    T values[kLanes<T>];
    store<T>(values, v);
    for (int64_t k = 0; k < m; ++k) out[k] = values[k];
}

template <typename T>
void exp_all(const T* x, int64_t n, T* out) {
    each<T>(x, n, [&](Vec<T> v, int64_t i, int64_t m) { put<T>(exp<T>(clamp<T>(v)), m, out + i); });
}

template <typename T>
void gates_all(const T* q, int64_t n, T* left, T* right) {
    each<T>(q, n, [&](Vec<T> v, int64_t i, int64_t m) {
        Vec<T> a, b;
        gates<T>(clamp<T>(v), a, b);
        put<T>(a, m, left + i);
        put<T>(b, m, right + i);
    });
}

template <typename T>
constexpr TypedKernels<T> kTyped = {forward_tree<T>, backward_tree<T>, exp_all<T>, gates_all<T>};

}  // namespace

extern const Kernels kernels = {DM_NAME(DM_TARGET), kTyped<float>, kTyped<double>};

}  // namespace dm::soft::DM_TARGET
