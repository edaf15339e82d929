// The kernels of one target. Compiled once for each, with its flags and its name in DM_TARGET.
#include "engine/kernels/kernels.hpp"

#include <cmath>
#include <cstring>

#if defined(__x86_64__) && !defined(DM_SCALAR)
#include <immintrin.h>
#endif
#if defined(__ARM_NEON) && !defined(DM_SCALAR)
#include <arm_neon.h>
#endif

#ifndef DM_TARGET
#define DM_TARGET scalar
#endif

namespace dm::engine::DM_TARGET {

#include "engine/kernels/accumulate.hpp"
#include "engine/kernels/coding.hpp"
#include "engine/kernels/deep.hpp"
#include "engine/kernels/oblique.hpp"
#include "engine/kernels/pack.hpp"
#include "engine/kernels/select.hpp"

namespace {

// Measured on trees of 16 to 4 096 leaves.
#if defined(DM_SCALAR)
constexpr double kSelectCost = 10.6;
#elif defined(__AVX2__)
constexpr double kSelectCost = 1.0;
#else
constexpr double kSelectCost = 2.2;
#endif

}  // namespace

extern const Kernels kernels = {
    DM_NAME(DM_TARGET),
    kSelectCost,
    kSplits,
    load,
    code,
    tests,
    select,
    {deep<WalkNode>, add_ends<WalkNode, float>, add_ends<WalkNode, double>, few<WalkNode>},
    {deep<WideNode>, add_ends<WideNode, float>, add_ends<WideNode, double>, few<WideNode>},
    code_row,
#if defined(DM_HAS_PACKS)
    code_bytes,
    packs,
    pack_sum<float>,
    pack_sum<double>,
#else
    nullptr,
    nullptr,
    nullptr,
    nullptr,
#endif
    add<float>,
    add<double>,
    add_trees<float>,
    add_trees<double>,
    oblique<float>,
    oblique<double>,
};

}  // namespace dm::engine::DM_TARGET
