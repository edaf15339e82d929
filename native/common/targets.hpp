// Which targets this processor can run, and the kernels of the one that is chosen.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace dm::common {

// Names of targets, from the plainest to the fastest that this processor runs.
std::vector<std::string> available_targets();

// The name itself, or the fastest for "" and "auto"; "" where this processor runs none of that
// name.
std::string chosen_target(const std::string& name);

// Kernels of the chosen target, out of one for each target that is built; null where there are
// none.
template <typename Kernels>
const Kernels* find_kernels(std::initializer_list<const Kernels*> all, const std::string& name) {
    const std::string target = chosen_target(name);
    for (const Kernels* kernels : all)
        if (target == kernels->name) return kernels;
    return nullptr;
}

}  // namespace dm::common
