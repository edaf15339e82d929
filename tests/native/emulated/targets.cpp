// Every target of x86-64 can be run where AVX-512 is emulated.
#include "common/targets.hpp"

namespace dm::common {

std::vector<std::string> available_targets() { return {"scalar", "v2", "v3", "v4", "v4_vbmi"}; }

std::string chosen_target(const std::string& name) { return name; }

}  // namespace dm::common
