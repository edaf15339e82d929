// What the ways through deep trees share: from a top's labels to nodes, and from leaves to sums.
//
// Included by kernels.cpp, once for each target.
#pragma once

namespace {

// ends[row] = nodes[labels[row]], of up to 256 nodes.
void top_exits(const uint8_t* labels, int64_t n, const uint32_t* nodes, int64_t n_nodes,
               uint32_t* ends) {
#if defined(__AVX512F__) && !defined(DM_SCALAR)
    if (n_nodes == 64) {  // of a full top
        __m512i node[4];
        for (int i = 0; i < 4; ++i) node[i] = _mm512_loadu_si512(nodes + 16 * i);
        for (int64_t r = 0; r < n; r += 16) {
            const __m512i label =
                _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(labels + r)));
            const __m512i low = _mm512_permutex2var_epi32(node[0], label, node[1]);
            const __m512i high = _mm512_permutex2var_epi32(node[2], label, node[3]);
            const __mmask16 is_high = _mm512_test_epi32_mask(label, _mm512_set1_epi32(32));
            _mm512_storeu_si512(ends + r, _mm512_mask_mov_epi32(low, is_high, high));
        }
        return;
    }
#else
    static_cast<void>(n_nodes);
#endif
    for (int64_t r = 0; r < n; ++r) ends[r] = nodes[labels[r]];
}

template <typename T>
void add_places(const uint32_t* places, int64_t n, const T* V, int64_t width, T* sum) {
    constexpr uint32_t leaf = kAtLeaf - 1;
    if (width == 1) {
        for (int64_t i = 0; i < n; ++i) sum[i] += V[places[i] & leaf];
    } else if (width == 2) {
        for (int64_t i = 0; i < n; ++i)
            for (int64_t output = 0; output < 2; ++output)
                sum[2 * i + output] += V[2 * static_cast<int64_t>(places[i] & leaf) + output];
    } else {
        for (int64_t i = 0; i < n; ++i) {
            const T* values = V + width * static_cast<int64_t>(places[i] & leaf);
            T* own = sum + width * i;
            for (int64_t output = 0; output < width; ++output) own[output] += values[output];
        }
    }
}

// Some of a row's outputs, which stay in registers from tree to tree.
template <int Outputs, typename T>
void add_outputs(const uint8_t* labels, int64_t stride, int64_t n_trees, int64_t n, const T* values,
                 int64_t width, T* sum) {
    for (int64_t r = 0; r < n; ++r) {
        T own[Outputs];
        for (int i = 0; i < Outputs; ++i) own[i] = sum[r * width + i];
        for (int64_t tree = 0; tree < n_trees; ++tree) {
            const T* value = values + width * labels[tree * stride + r];
            for (int i = 0; i < Outputs; ++i) own[i] += value[i];
        }
        for (int i = 0; i < Outputs; ++i) sum[r * width + i] = own[i];
    }
}

#if defined(__AVX512F__) && !defined(DM_SCALAR)
#define DM_OUTPUT_LANES

// Sixteen floats or eight doubles, of which those of a mask are read and written.
struct FloatLanes {
    static constexpr int kLanes = 16;
    __m512 own;
    FloatLanes(const float* from, __mmask16 used) : own(_mm512_maskz_loadu_ps(used, from)) {}
    void add(const float* from, __mmask16 used) {
        own = _mm512_add_ps(own, _mm512_maskz_loadu_ps(used, from));
    }
    void store(float* to, __mmask16 used) const { _mm512_mask_storeu_ps(to, used, own); }
};
struct DoubleLanes {
    static constexpr int kLanes = 8;
    __m512d own;
    DoubleLanes(const double* from, __mmask16 used)
        : own(_mm512_maskz_loadu_pd(static_cast<__mmask8>(used), from)) {}
    void add(const double* from, __mmask16 used) {
        own = _mm512_add_pd(own, _mm512_maskz_loadu_pd(static_cast<__mmask8>(used), from));
    }
    void store(double* to, __mmask16 used) const {
        _mm512_mask_storeu_pd(to, static_cast<__mmask8>(used), own);
    }
};
template <typename T>
using OutputLanes = std::conditional_t<sizeof(T) == 4, FloatLanes, DoubleLanes>;

// The same for up to two registers of outputs, of `left` that there are; how many.
template <int Registers, typename T>
void add_lanes(const uint8_t* labels, int64_t stride, int64_t n_trees, int64_t n, const T* values,
               int64_t width, __mmask16 used, T* sum) {
    using Lanes = OutputLanes<T>;
    const __mmask16 first = Registers > 1 ? __mmask16{65535} : used;
    for (int64_t r = 0; r < n; ++r) {
        T* to = sum + r * width;
        Lanes own(to, first), more(to + (Registers - 1) * Lanes::kLanes, used);
        for (int64_t tree = 0; tree < n_trees; ++tree) {
            const T* value = values + width * labels[tree * stride + r];
            own.add(value, first);
            if constexpr (Registers > 1) more.add(value + Lanes::kLanes, used);
        }
        own.store(to, first);
        if constexpr (Registers > 1) more.store(to + Lanes::kLanes, used);
    }
}
template <typename T>
int64_t add_lanes(const uint8_t* labels, int64_t stride, int64_t n_trees, int64_t n,
                  const T* values, int64_t width, int64_t left, T* sum) {
    constexpr int64_t lanes = OutputLanes<T>::kLanes;
    const int64_t in_last = left > lanes ? left - lanes : left;
    const __mmask16 used = static_cast<__mmask16>(in_last >= lanes ? 65535 : (1 << in_last) - 1);
    const auto add = left > lanes ? add_lanes<2, T> : add_lanes<1, T>;
    add(labels, stride, n_trees, n, values, width, used, sum);
    return left > 2 * lanes ? 2 * lanes : left;
}

#endif

template <typename T>
void add_few_values(const uint8_t* labels, int64_t stride, int64_t n_trees, int64_t n,
                    const T* values, int64_t width, T* sum) {
    for (int64_t i = 0; i < width;) {
        const int64_t left = width - i;
        const T* own = values + i;
#if defined(DM_OUTPUT_LANES)
        if (left > 2) {
            i += add_lanes(labels, stride, n_trees, n, own, width, left, sum + i);
            continue;
        }
#endif
        const auto add = left >= 8   ? add_outputs<8, T>
                         : left >= 4 ? add_outputs<4, T>
                         : left >= 2 ? add_outputs<2, T>
                                     : add_outputs<1, T>;
        add(labels, stride, n_trees, n, own, width, sum + i);
        i += left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    }
}

}  // namespace
