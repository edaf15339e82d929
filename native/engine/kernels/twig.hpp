// Twigs: what is left of a deep tree below its top, walked over nodes of 4 bytes and 16-bit codes.
//
// Included by kernels.cpp, once for each target. A step is a chain of two loads and an addition,
// some twelve cycles; eight rows take their steps in turn, so that the processor always has the
// next row's step to do. For that a row's place must stay in a register: spilled to memory and
// back it took half as long again, and so the step is spelled out where a compiler might choose
// otherwise. A leaf leads to itself, and rows go on together until the last of them is at a leaf.
#pragma once

namespace {

#if defined(__AVX2__) && !defined(__AVX512BW__) && !defined(DM_SCALAR)
#define DM_HAS_TWIGS

// One row after the other.
inline uint16_t twig_leaf(const TwigNode* nodes, const uint16_t* codes, uint64_t at) {
    while (nodes[at].step != 0) {
        const TwigNode& node = nodes[at];
        at += node.step + static_cast<uint64_t>(node.code < codes[node.plane]);
    }
    return nodes[at].code;
}

// One step: at += step + (code < the row's code). The comparison's borrow is the addition's carry.
template <int Offset>
inline void twig_step(const TwigNode* nodes, const uint16_t* codes, uint64_t& at) {
    uint64_t code, step;
    asm("movzbl 2(%[nodes], %[at], 4), %k[code]\n\t"
        "movzbl 3(%[nodes], %[at], 4), %k[step]\n\t"
        "movzwl %c[offset](%[codes], %[code], 2), %k[code]\n\t"
        "cmpw %w[code], (%[nodes], %[at], 4)\n\t"
        "adcq %[step], %[at]"
        : [at] "+r"(at), [code] "=&r"(code), [step] "=&r"(step)
        : [nodes] "r"(nodes), [codes] "r"(codes), [offset] "i"(Offset)
        : "cc", "memory");
}

constexpr int kTwigSteps = 3;  // before anyone asks whether all rows are at leaves

// Stride: 16-bit codes to a row.
template <int Stride>
void twigs_of(const TwigNode* nodes, const uint16_t* codes, int64_t n, uint32_t* at) {
    int64_t r = 0;
    for (; r + 8 <= n; r += 8) {
        const uint16_t* row = codes + r * Stride;
        uint64_t a = at[r], b = at[r + 1], c = at[r + 2], d = at[r + 3];
        uint64_t e = at[r + 4], f = at[r + 5], g = at[r + 6], h = at[r + 7];
        int left;
        do {
            for (int step = 0; step < kTwigSteps; ++step) {
                twig_step<0>(nodes, row, a);
                twig_step<2 * Stride>(nodes, row, b);
                twig_step<4 * Stride>(nodes, row, c);
                twig_step<6 * Stride>(nodes, row, d);
                twig_step<8 * Stride>(nodes, row, e);
                twig_step<10 * Stride>(nodes, row, f);
                twig_step<12 * Stride>(nodes, row, g);
                twig_step<14 * Stride>(nodes, row, h);
            }
            left = nodes[a].step | nodes[b].step | nodes[c].step | nodes[d].step | nodes[e].step |
                   nodes[f].step | nodes[g].step | nodes[h].step;
        } while (left);
        at[r] = nodes[a].code;
        at[r + 1] = nodes[b].code;
        at[r + 2] = nodes[c].code;
        at[r + 3] = nodes[d].code;
        at[r + 4] = nodes[e].code;
        at[r + 5] = nodes[f].code;
        at[r + 6] = nodes[g].code;
        at[r + 7] = nodes[h].code;
    }
    for (; r < n; ++r) at[r] = twig_leaf(nodes, codes + r * Stride, at[r]);
}

void twigs(const TwigNode* nodes, const uint16_t* codes, int64_t stride, int64_t n, uint32_t* at) {
    if (stride == 32) return twigs_of<32>(nodes, codes, n, at);
    if (stride == 64) return twigs_of<64>(nodes, codes, n, at);
    if (stride == 128) return twigs_of<128>(nodes, codes, n, at);
    twigs_of<256>(nodes, codes, n, at);
}

#endif

}  // namespace
