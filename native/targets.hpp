// Which kernels this processor can run, and which one is chosen.
#pragma once

#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "kernels.hpp"

namespace dm {

// From the plainest to the fastest that this processor runs.
std::vector<const Kernels*> available_targets();

// By name, or the fastest for "" and "auto"; null where there is none of that name.
const Kernels* find_target(const std::string& name);

// The same of other kernels, one for each target that is built.
template <typename K>
const K* find_among(std::initializer_list<const K*> all, const std::string& name) {
    const Kernels* target = find_target(name);
    if (!target) return nullptr;
    for (const K* kernels : all)
        if (std::strcmp(kernels->name, target->name) == 0) return kernels;
    return nullptr;
}

}  // namespace dm
