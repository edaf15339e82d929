// Which kernels this processor can run, and which one is chosen.
#pragma once

#include <string>
#include <vector>

#include "kernels.hpp"

namespace dm {

// From the plainest to the fastest that this processor runs.
std::vector<const Kernels*> available_targets();

// By name, or the fastest for "" and "auto"; null where there is none of that name.
const Kernels* find_target(const std::string& name);

}  // namespace dm
