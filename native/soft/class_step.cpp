// A training step of soft oblique trees on one target. Compiled once for each, with its flags and
// its name in DM_TARGET.
#include "soft/class_step.hpp"

#include <cmath>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#ifndef DM_TARGET
#define DM_TARGET scalar
#endif

namespace dm::soft::DM_TARGET {
namespace {

#include "common/sigmoid.hpp"
#include "common/subnormals.hpp"
#include "soft/class_product.hpp"

// log of positive normal numbers, to 2e-7 or as many units: 2 atanh((x - 1) / (x + 1)) of x
// between the roots of 1/2 and 2, and the exponent's share. For the loss that is shown, no
// gradient.
inline Vec<float> log(Vec<float> x) {
    typedef Lanes<float>::word Word;
    constexpr uint32_t root = 0x3f3504f3;  // of 1/2
    const Word shifted = bits<Word>(x) - root + Word{};
    const Vec<float> mantissa = bits<Vec<float>>((shifted & 0x007fffffu) + root);
    // Exponents above as whole numbers of a float: 2^23 + 127 + e has them in its low bits.
    const Word raised = ((shifted + (127u << 23)) >> 23) + 0x4b000000u;
    const Vec<float> e = bits<Vec<float>>(raised) - 8388735.0f;
    const Vec<float> s = (mantissa - 1.0f) / (mantissa + 1.0f), z = s * s;
    const Vec<float> series = 1.0f + z * (1 / 3.0f + z * (1 / 5.0f + z * (1 / 7.0f + z / 9.0f)));
    return e * 0.69314718f + 2.0f * s * series;
}

// Where everything of a step lies in its scratch.
struct Scratch {
    float* x;       // (n_tiles, n_features + 1, kClassTile), the last of them ones
    float* x_rows;  // (n_tiles, kClassTile, wide_features)
    float* target;  // (n_tiles, n_classes, kClassTile)
    float* S;       // (n_leaves, wide_classes) softmax(V)
    float* dS;      // (n_leaves, wide_classes)
    float* dW;      // (n_tests, wide_features)
    float* dt;      // (n_tests, kClassLine) sums by lane
    float* gates;   // (n_tests, kClassTile): q, then gates, then dq
    float* P;       // (n_tests + n_leaves, kClassTile)
    float* E;       // (n_tests + n_leaves, kClassTile)
    float* G;       // (n_classes, kClassTile), the answers before
    float* G_rows;  // (kClassTile, wide_classes)
    int64_t size;

    Scratch(const ClassSizes& a, float* memory) {
        int64_t at = 0;
        auto take = [&](int64_t n) {
            float* taken = memory ? memory + at : nullptr;
            at += (n + kClassLine - 1) / kClassLine * kClassLine;
            return taken;
        };
        const int64_t J = a.n_tests(), L = a.n_leaves(), tiles = a.n_tiles();
        x = take(tiles * (a.n_features + 1) * kClassTile);
        x_rows = take(tiles * kClassTile * a.wide_features());
        target = take(tiles * a.n_classes * kClassTile);
        S = take(L * a.wide_classes());
        dS = take(L * a.wide_classes());
        dW = take(J * a.wide_features());
        dt = take(J * kClassLine);
        gates = take(J * kClassTile);
        P = take((J + L) * kClassTile);
        E = take((J + L) * kClassTile);
        G = take(a.n_classes * kClassTile);
        G_rows = take(kClassTile * a.wide_classes());
        size = at;
    }
};

// (n, stride) of which some columns are used -> (columns, kClassTile)
void turn(const float* from, int64_t n, int64_t stride, int64_t columns, float* to) {
    for (int64_t i = 0; i < columns; ++i)
        for (int64_t r = 0; r < n; ++r) to[i * kClassTile + r] = from[r * stride + i];
}

// Rows of the step into tiles; rows beyond the last are zeros, with a target of 0.
void lay_out(const ClassStep& step, const Scratch& own) {
    const ClassSizes& a = step.sizes;
    const int64_t n = a.n_features, K = a.n_classes, wide = a.wide_features();
    for (int64_t tile = 0; tile < a.n_tiles(); ++tile) {
        float* x = own.x + tile * (n + 1) * kClassTile;
        float* x_rows = own.x_rows + tile * kClassTile * wide;
        float* target = own.target + tile * K * kClassTile;
        const int64_t first = tile * kClassTile;
        for (int64_t r = 0; r < kClassTile; ++r) {
            const bool is_row = first + r < a.n_rows;
            const int64_t row = is_row ? step.rows[first + r] : 0;
            float* to = x_rows + r * wide;
            int64_t used = 0;
            if (is_row) std::memcpy(to, step.X + row * n, static_cast<size_t>(used = n) * 4);
            std::memset(to + used, 0, static_cast<size_t>(wide - used) * 4);
            x[n * kClassTile + r] = is_row;
            for (int64_t k = 0; k < K; ++k)
                target[k * kClassTile + r] = is_row ? step.target[row * K + k] : 0;
        }
        turn(x_rows, kClassTile, wide, n, x);
    }
}

// S = softmax(V), zeros in the padding.
void soften(const float* V, int64_t L, int64_t K, int64_t wide, float* S) {
    for (int64_t l = 0; l < L; ++l, V += K, S += wide) {
        float most = V[0];
        for (int64_t k = 1; k < K; ++k) most = V[k] > most ? V[k] : most;
        for (int64_t k = 0; k < K; ++k) S[k] = V[k] - most;
        Vec<float> sums = broadcast<float>(0);
        for (int64_t k = 0; k < K; k += kLanes<float>)
            store<float>(S + k, exp<float>(clamp<float>(load<float>(S + k))));
        for (int64_t k = K; k < wide; ++k) S[k] = 0;
        for (int64_t k = 0; k < K; k += kLanes<float>) sums = sums + load<float>(S + k);
        const float sum = sum_lanes<float>(sums);
        for (int64_t k = 0; k < K; k += kLanes<float>)
            store<float>(S + k, load<float>(S + k) / sum);
    }
}

// Weights of all nodes, and gates in place of q.
void descend(int64_t J, int64_t used, float beta, float* q, float* P) {
    for (int64_t r = 0; r < used; r += kLanes<float>) store<float>(P + r, broadcast<float>(1));
    for (int64_t j = 0; j < J; ++j, q += kClassTile) {
        const float* here = P + j * kClassTile;
        float *left = P + (2 * j + 1) * kClassTile, *right = left + kClassTile;
        for (int64_t r = 0; r < used; r += kLanes<float>) {
            Vec<float> g_left, g;
            gates<float>(clamp<float>(load<float>(q + r) * beta), g_left, g);
            store<float>(q + r, g);
            const Vec<float> weight = load<float>(here + r), part = weight * g;
            store<float>(right + r, part);
            store<float>(left + r, weight - part);
        }
    }
}

// From the gradients of the leaves' weights, in E, to those of q, in place of the gates.
void ascend(int64_t J, int64_t used, float beta, const float* P, float* E, float* gates,
            float* dt) {
    for (int64_t j = J - 1; j >= 0; --j) {
        float* g = gates + j * kClassTile;
        const float *left = E + (2 * j + 1) * kClassTile, *right = left + kClassTile;
        const float* weight = P + j * kClassTile;
        Vec<float> sum = load<float>(dt + j * kClassLine);
        for (int64_t r = 0; r < used; r += kLanes<float>) {
            const Vec<float> e = load<float>(left + r), gate = load<float>(g + r);
            const Vec<float> difference = load<float>(right + r) - e;
            store<float>(E + j * kClassTile + r, e + gate * difference);
            const Vec<float> dq =
                (load<float>(weight + r) * difference) * ((gate - gate * gate) * beta);
            store<float>(g + r, dq);
            sum = sum + dq;
        }
        store<float>(dt + j * kClassLine, sum);
    }
}

// G from the answers, in place, and once more with rows first; returns the loss.
double compare(int64_t K, int64_t used, float scale, float least, const float* target, float* G,
               float* G_rows, int64_t wide) {
    double loss = 0;
    for (int64_t k = 0; k < K; ++k) {
        Vec<float> sum = broadcast<float>(0);
        for (int64_t r = 0; r < used; r += kLanes<float>) {
            float* at = G + k * kClassTile + r;
            const Vec<float> wanted = load<float>(target + k * kClassTile + r);
            const Vec<float> answer = load<float>(at) + least;
            sum = sum - wanted * log(answer);
            store<float>(at, wanted * scale / answer);
        }
        loss += sum_lanes<float>(sum);
        for (int64_t r = 0; r < used; ++r) G_rows[r * wide + k] = G[k * kClassTile + r];
    }
    return loss;
}

double tree_gradient(const ClassStep& step, const Scratch& own, int64_t tree) {
    const ClassSizes& a = step.sizes;
    const int64_t n = a.n_features, K = a.n_classes, J = a.n_tests(), L = a.n_leaves();
    const int64_t wide_n = a.wide_features(), wide_K = a.wide_classes();
    const float* W = step.W + tree * J * (n + 1);
    const float beta = step.beta[tree];
    soften(step.V + tree * L * K, L, K, wide_K, own.S);
    std::memset(own.dS, 0, static_cast<size_t>(L * wide_K) * 4);
    std::memset(own.dW, 0, static_cast<size_t>(J * wide_n) * 4);
    std::memset(own.dt, 0, static_cast<size_t>(J * kClassLine) * 4);
    std::memset(own.G_rows, 0, static_cast<size_t>(kClassTile * wide_K) * 4);
    float *p = own.P + J * kClassTile, *E_leaf = own.E + J * kClassTile;
    double loss = 0;
    for (int64_t tile = 0; tile < a.n_tiles(); ++tile) {
        const int64_t left = a.n_rows - tile * kClassTile;
        const int64_t rows = left < kClassTile ? left : kClassTile;
        const int64_t used = (rows + kLanes<float> - 1) / kLanes<float> * kLanes<float>;
        const float* x = own.x + tile * (n + 1) * kClassTile;
        const float* x_rows = own.x_rows + tile * kClassTile * wide_n;
        product<false>({W, n + 1, 1}, {x, kClassTile}, {own.gates, kClassTile}, J, n + 1, used);
        descend(J, used, beta, own.gates, own.P);
        product<false>({own.S, 1, wide_K}, {p, kClassTile}, {own.G, kClassTile}, K, L, used);
        loss += compare(K, used, -1.0f / static_cast<float>(a.n_rows), step.least,
                        own.target + tile * K * kClassTile, own.G, own.G_rows, wide_K);
        product<false>({own.S, wide_K, 1}, {own.G, kClassTile}, {E_leaf, kClassTile}, L, K, used);
        product<true>({p, kClassTile, 1}, {own.G_rows, wide_K}, {own.dS, wide_K}, L, rows, K);
        ascend(J, used, beta, own.P, own.E, own.gates, own.dt);
        product<true>({own.gates, kClassTile, 1}, {x_rows, wide_n}, {own.dW, wide_n}, J, rows, n);
    }
    float *dW = step.dW + tree * J * (n + 1), *dV = step.dV + tree * L * K;
    for (int64_t j = 0; j < J; ++j) {
        std::memcpy(dW + j * (n + 1), own.dW + j * wide_n, static_cast<size_t>(n) * 4);
        dW[j * (n + 1) + n] = sum_lanes<float>(load<float>(own.dt + j * kClassLine));
    }
    for (int64_t l = 0; l < L; ++l) {
        const float *S = own.S + l * wide_K, *dS = own.dS + l * wide_K;
        Vec<float> sum = broadcast<float>(0);
        for (int64_t k = 0; k < K; k += kLanes<float>)
            sum = sum + load<float>(S + k) * load<float>(dS + k);
        const float mean = sum_lanes<float>(sum);
        for (int64_t k = 0; k < K; ++k) dV[l * K + k] = S[k] * (dS[k] - mean);
    }
    return loss;
}

int64_t scratch(const ClassSizes& sizes) { return Scratch(sizes, nullptr).size; }

double gradient(const ClassStep& step) {
    [[maybe_unused]] const FlushSubnormals during;
    const Scratch own(step.sizes, step.scratch);
    lay_out(step, own);
    double loss = 0;
    for (int64_t tree = 0; tree < step.sizes.n_trees; ++tree)
        loss += tree_gradient(step, own, tree);
    return loss;
}

// A gradient that is not finite is taken as 0: one bad batch must not end a whole training.
void adam(const ClassUpdate& u, int64_t from, int64_t n, float rate) {
    const float b1 = u.keep_first, b2 = u.keep_second;
    float* __restrict theta = u.parameters + from;
    float* __restrict first = u.first + from;
    float* __restrict second = u.second + from;
    const float* __restrict gradient = u.gradient + from;
    for (int64_t i = 0; i < n; ++i) {
        const float g = gradient[i] - gradient[i] == 0 ? gradient[i] : 0.0f;
        first[i] = first[i] + (1 - b1) * (g - first[i]);
        second[i] = b2 * second[i] + (1 - b2) * (g * g);
        theta[i] -= rate * (first[i] / (std::sqrt(second[i]) + 1e-8f));
    }
}

float length(const float* w, int64_t n) {
    Vec<float> squares = broadcast<float>(0);
    int64_t i = 0;
    for (; i + kLanes<float> <= n; i += kLanes<float>)
        squares = squares + load<float>(w + i) * load<float>(w + i);
    float sum = sum_lanes<float>(squares);
    for (; i < n; ++i) sum += w[i] * w[i];
    return std::sqrt(sum);
}

void update(const ClassUpdate& u) {
    [[maybe_unused]] const FlushSubnormals during;
    const ClassSizes& a = u.sizes;
    const int64_t n = a.n_features, in_tests = a.n_tests() * (n + 1);
    const int64_t in_leaves = a.n_leaves() * a.n_classes;
    for (int64_t tree = 0; tree < a.n_trees; ++tree) {
        adam(u, tree * in_tests, in_tests, u.rate[tree]);
        adam(u, a.n_trees * in_tests + tree * in_leaves, in_leaves, u.rate[tree]);
        const float kept = 1 - u.decay[tree], threshold = u.threshold[tree];
        if (kept == 1 && threshold == 0 && !u.is_unit[tree]) continue;
        for (int64_t j = 0; j < a.n_tests(); ++j) {
            float* w = u.parameters + tree * in_tests + j * (n + 1);
            for (int64_t i = 0; i < n; ++i) w[i] *= kept;
            if (threshold > 0)
                for (int64_t i = 0; i < n; ++i) {
                    const float size = std::fabs(w[i]) - threshold;
                    w[i] = std::copysign(size > 0 ? size : 0.0f, w[i]);
                }
            if (u.is_unit[tree]) {
                const float size = length(w, n), scale = 1 / (size > 1e-12f ? size : 1e-12f);
                for (int64_t i = 0; i < n; ++i) w[i] *= scale;
            }
        }
    }
}

}  // namespace

extern const ClassKernels class_kernels = {DM_NAME(DM_TARGET), scratch, gradient, update};

}  // namespace dm::soft::DM_TARGET
