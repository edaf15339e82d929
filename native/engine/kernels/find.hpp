// The engine's kernels by the name of their target.
#pragma once

#include <string>
#include <vector>

#include "engine/kernels/kernels.hpp"

namespace dm::engine {

// By name, or the fastest for "" and "auto"; null where this processor runs none of that name.
const Kernels* find_kernels(const std::string& target);

// Of all targets that this processor runs, the plainest first.
std::vector<const Kernels*> available_kernels();

}  // namespace dm::engine
