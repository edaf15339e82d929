#include "targets.hpp"

namespace dm {

std::vector<const Kernels*> available_targets() {
    std::vector<const Kernels*> found{&scalar::kernels};
#if defined(__x86_64__)
    __builtin_cpu_init();
    // The levels of the x86-64 ABI, by the features that each adds.
    const bool has_v2 = __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
                        __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    const bool has_v3 = has_v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                        __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
    const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (has_v2) found.push_back(&v2::kernels);
    if (has_v3) found.push_back(&v3::kernels);
    if (has_v4) found.push_back(&v4::kernels);
    if (has_v4 && __builtin_cpu_supports("avx512vbmi")) found.push_back(&v4_vbmi::kernels);
#elif defined(__ARM_NEON)
    found.push_back(&neon::kernels);
#endif
    return found;
}

const Kernels* find_target(const std::string& name) {
    const std::vector<const Kernels*> all = available_targets();
    if (name.empty() || name == "auto") return all.back();
    for (const Kernels* kernels : all)
        if (name == kernels->name) return kernels;
    return nullptr;
}

}  // namespace dm
