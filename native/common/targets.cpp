#include "common/targets.hpp"

#include <algorithm>

namespace dm::common {

std::vector<std::string> available_targets() {
    std::vector<std::string> found{"scalar"};
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
    if (has_v2) found.push_back("v2");
    if (has_v3) found.push_back("v3");
    if (has_v4) found.push_back("v4");
    if (has_v4 && __builtin_cpu_supports("avx512vbmi")) found.push_back("v4_vbmi");
#elif defined(__ARM_NEON)
    found.push_back("neon");
#endif
    return found;
}

std::string chosen_target(const std::string& name) {
    const std::vector<std::string> all = available_targets();
    if (name.empty() || name == "auto") return all.back();
    return std::find(all.begin(), all.end(), name) == all.end() ? std::string() : name;
}

}  // namespace dm::common
