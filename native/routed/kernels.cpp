// Compiled once for each target, with its flags and its name in DM_TARGET.
#include "routed/kernels.hpp"

#ifndef DM_TARGET
#define DM_TARGET scalar
#endif

namespace dm::routed::DM_TARGET {
namespace {

#include "common/sigmoid.hpp"

typedef Vec<float> V;
constexpr int64_t kWide = kLanes<float>;

float dot(const float* a, const float* b, int64_t n) {
    V sums[4] = {};
    int64_t i = 0;
    for (; i + 4 * kWide <= n; i += 4 * kWide)
        for (int u = 0; u < 4; ++u)
            sums[u] += load<float>(a + i + u * kWide) * load<float>(b + i + u * kWide);
    for (; i + kWide <= n; i += kWide) sums[0] += load<float>(a + i) * load<float>(b + i);
    float sum = sum_lanes<float>((sums[0] + sums[1]) + (sums[2] + sums[3]));
    for (; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

// out[r] = bias + x[r] W for `Rows` rows and `Vectors` vectors of columns. Terms are added by turns
// to `Turns` sums: one chain of additions alone would wait for each of them.
template <int Rows, int Vectors, int Turns>
inline void block(const float* const* x, const float* W, int64_t wide, int64_t terms,
                  const float* bias, float* out) {
    V sums[Turns][Rows][Vectors] = {};
    for (int r = 0; r < Rows; ++r)
        for (int v = 0; v < Vectors; ++v) sums[0][r][v] = load<float>(bias + v * kWide);
    int64_t i = 0;
    for (; i + Turns <= terms; i += Turns)
        for (int u = 0; u < Turns; ++u) {
            V w[Vectors];
            for (int v = 0; v < Vectors; ++v) w[v] = load<float>(W + (i + u) * wide + v * kWide);
            for (int r = 0; r < Rows; ++r)
                for (int v = 0; v < Vectors; ++v) sums[u][r][v] += x[r][i + u] * w[v];
        }
    for (; i < terms; ++i)
        for (int r = 0; r < Rows; ++r)
            for (int v = 0; v < Vectors; ++v)
                sums[0][r][v] += x[r][i] * load<float>(W + i * wide + v * kWide);
    for (int r = 0; r < Rows; ++r)
        for (int v = 0; v < Vectors; ++v) {
            V sum = sums[0][r][v];
            for (int u = 1; u < Turns; ++u) sum += sums[u][r][v];
            store<float>(out + r * wide + v * kWide, sum);
        }
}

template <int Rows, int Turns>
void product(const float* const* x, const float* W, int64_t wide, int64_t terms, const float* bias,
             float* out) {
    int64_t c = 0;
    for (; c + 2 * kWide <= wide; c += 2 * kWide)
        block<Rows, 2, Turns>(x, W + c, wide, terms, bias + c, out + c);
    for (; c < wide; c += kWide) block<Rows, 1, Turns>(x, W + c, wide, terms, bias + c, out + c);
}

// Both layers of up to kRowsAtOnce rows.
template <int Rows, int Turns>
void network(const Network& a, const float* const* x, float* hidden, float* out) {
    const int64_t wide = padded(a.h);
    product<Rows, Turns>(x, a.first, wide, a.n, a.first_bias, hidden);
    const V zero = {};
    for (int64_t i = 0; i < Rows * wide; i += kWide) {
        const V inner = load<float>(hidden + i);
        store<float>(hidden + i, inner > zero ? inner : zero);
    }
    const float* inner[Rows];
    for (int r = 0; r < Rows; ++r) inner[r] = hidden + r * wide;
    product<Rows, Turns>(inner, a.second, padded(a.k), a.h, a.second_bias, out);
}

void answer(const Network& a, const float* x, const int32_t* row, int64_t count, float* hidden,
            float* out) {
    const int64_t wide = padded(a.k);
    const float* at[kRowsAtOnce];
    int64_t done = 0;
    auto next = [&](int64_t rows) {
        for (int64_t r = 0; r < rows; ++r) at[r] = x + row[done + r] * a.n;
    };
    for (; done + 8 <= count; done += 8) {
        next(8);
        network<8, 1>(a, at, hidden, out + done * wide);
    }
    for (; done + 4 <= count; done += 4) {
        next(4);
        network<4, 2>(a, at, hidden, out + done * wide);
    }
    for (; done < count; ++done) {
        next(1);
        network<1, 4>(a, at, hidden, out + done * wide);
    }
}

}  // namespace

extern const Kernels kernels = {DM_NAME(DM_TARGET), dot, answer};

}  // namespace dm::routed::DM_TARGET
