// Trees as nodes to walk: over codes, with the top of a large tree done by selects, or over z.
#pragma once

#include "engine/plan/plan.hpp"

namespace dm::engine {

// Whether the top of a tree is done by selects.
bool has_top(const Plan& plan, int64_t tree);

// Nodes over codes for all trees, and tops where they help, into the plan's `walks`. `size` holds
// the leaves below each test.
void add_nodes(const std::vector<int32_t>& size, const std::vector<Coded>& coded, Plan& plan);

// Nodes over z itself.
std::vector<RawNode> make_raw_nodes(const Machine& machine);

}  // namespace dm::engine
