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
#include "engine/kernels/at_least.hpp"
#include "engine/kernels/categories.hpp"
#include "engine/kernels/coding.hpp"
#include "engine/kernels/deep.hpp"
#include "engine/kernels/load.hpp"
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

// Packs need a permute of bytes.
#if defined(DM_HAS_PACKS)
constexpr auto kCodeBytes = code_bytes;
constexpr auto kPacks = packs;
template <typename T>
constexpr auto kPackSum = pack_sum<T>;
#else
constexpr auto kCodeBytes = nullptr;
constexpr auto kPacks = nullptr;
template <typename T>
constexpr auto kPackSum = nullptr;
#endif

template <typename T>
constexpr TypedKernels<T> kTyped = {add<T>, add_trees<T>, kPackSum<T>, oblique<T>};

template <typename Node>
constexpr Walks<Node> kWalks = {deep<Node>, add_ends<Node, float>, add_ends<Node, double>,
                                few<Node>};

}  // namespace

extern const Kernels kernels = {
    DM_NAME(DM_TARGET), kSelectCost, kSplits,    load,   code,
    code_categories,    spread_bits, tests,      select, kWalks<WalkNode>,
    kWalks<WideNode>,   code_row,    kCodeBytes, kPacks, kTyped<float>,
    kTyped<double>,
};

}  // namespace dm::engine::DM_TARGET
