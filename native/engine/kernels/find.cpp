#include "engine/kernels/find.hpp"

#include "common/targets.hpp"

namespace dm::engine {

const Kernels* find_kernels(const std::string& target) {
    return common::find_kernels<Kernels>(DM_OF_EVERY_TARGET(kernels), target);
}

std::vector<const Kernels*> available_kernels() {
    std::vector<const Kernels*> found;
    for (const std::string& target : common::available_targets())
        found.push_back(find_kernels(target));
    return found;
}

}  // namespace dm::engine
