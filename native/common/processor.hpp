// What an x86-64 processor and its system can run.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>

namespace dm::common {

// Asked of the processor itself: __builtin_cpu_supports needs a library of the compiler's that is
// not linked on Windows.
class Processor {
public:
    Processor() {
        unsigned a = 0, b = 0, c = 0, d = 0;
        if (!__get_cpuid(1, &a, &b, &c, &d)) return;
        features_ = c;
        if (c & bit(27)) saved_ = saved_registers();  // the system saves registers by XSAVE
        if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) extended_ = b, extended_c_ = c;
        if (__get_cpuid(0x80000001, &a, &b, &c, &d)) amd_ = c;
    }

    // The levels of the x86-64 ABI, by the features that each adds.
    bool has_v2() const {  // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF
        return has(features_, bit(0) | bit(9) | bit(13) | bit(19) | bit(20) | bit(23)) &&
               has(amd_, bit(0));
    }
    bool has_v3() const {  // FMA, MOVBE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT
        return has_v2() && has(features_, bit(12) | bit(22) | bit(28) | bit(29)) &&
               has(extended_, bit(3) | bit(5) | bit(8)) && has(amd_, bit(5)) && has(saved_, 0x06);
    }
    bool has_v4() const {  // AVX-512 F, DQ, CD, BW, VL
        return has_v3() && has(extended_, bit(16) | bit(17) | bit(28) | bit(30) | bit(31)) &&
               has(saved_, 0xe6);
    }
    bool has_v4_vbmi() const { return has_v4() && has(extended_c_, bit(1)); }

private:
    static constexpr unsigned bit(int i) { return 1u << i; }
    static constexpr bool has(unsigned set, unsigned wanted) { return (set & wanted) == wanted; }
    // XCR0: registers that the system keeps for each thread (2 XMM, 4 YMM, 0xe0 AVX-512).
    static unsigned saved_registers() {
        unsigned low = 0, high = 0;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        return low;
    }

    unsigned features_ = 0, extended_ = 0, extended_c_ = 0, amd_ = 0, saved_ = 0;
};

}  // namespace dm::common
#endif
