#include "common/targets.hpp"

#include <algorithm>

#include "common/processor.hpp"

namespace dm::common {

namespace {

std::vector<std::string> find_targets() {
    std::vector<std::string> found{"scalar"};
#if defined(__x86_64__)
    const Processor processor;
    if (processor.has_v2()) found.push_back("v2");
    if (processor.has_v3()) found.push_back("v3");
    if (processor.has_v4()) found.push_back("v4");
    if (processor.has_v4_vbmi()) found.push_back("v4_vbmi");
#elif defined(__ARM_NEON)
    found.push_back("neon");
#elif defined(__wasm_simd128__)
    found.push_back("simd128");
#endif
    return found;
}

}  // namespace

// Asked once: in a virtual machine the question takes longer than many an answer.
std::vector<std::string> available_targets() {
    static const std::vector<std::string> found = find_targets();
    return found;
}

std::string chosen_target(const std::string& name) {
    const std::vector<std::string> all = available_targets();
    if (name.empty() || name == "auto") return all.back();
    return std::find(all.begin(), all.end(), name) == all.end() ? std::string() : name;
}

}  // namespace dm::common
