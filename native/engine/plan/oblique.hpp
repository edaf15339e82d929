// Tests that weigh several columns: which columns they are.
#pragma once

#include "engine/plan/plan.hpp"

namespace dm::engine {

ObliquePlan make_oblique(const Machine& machine);

}  // namespace dm::engine
