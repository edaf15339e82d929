// The kernels of one target. Compiled once for each, with its flags and its name in DM_TARGET.
#include "engine/kernels/kernels.hpp"

#include <cmath>
#include <cstring>
#include <type_traits>

// WebAssembly's compiler has Intel's names of what 128 bits can do.
#if (defined(__x86_64__) || defined(__wasm_simd128__)) && !defined(DM_SCALAR)
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
#include "engine/kernels/buckets.hpp"
#include "engine/kernels/categories.hpp"
#include "engine/kernels/coding.hpp"
#include "engine/kernels/deep.hpp"
#include "engine/kernels/ends.hpp"
#include "engine/kernels/load.hpp"
#include "engine/kernels/oblique.hpp"
#include "engine/kernels/pack.hpp"
#include "engine/kernels/record.hpp"
#include "engine/kernels/select.hpp"
#include "engine/kernels/turn.hpp"
#include "engine/kernels/twig.hpp"

namespace {

// Measured on trees of 16 to 4 096 leaves.
#if defined(DM_SCALAR)
constexpr double kSelectCost = 10.6;
#elif defined(__AVX2__)
constexpr double kSelectCost = 1.0;
#else
constexpr double kSelectCost = 2.2;
#endif

// Measured on trees of 64 to 2 048 leaves: with AVX2 selects do those of up to about 280 faster,
// with AVX-512 VBMI those of up to about 200. A record of AVX-512 without VBMI takes a fifth
// longer. NEON was not measured.
#if defined(__AVX512VBMI__)
constexpr double kRecordCost = 2400;
#elif defined(__AVX512F__)
constexpr double kRecordCost = 3000;
#elif defined(__AVX2__)
constexpr double kRecordCost = 3700;
#else
constexpr double kRecordCost = 8000;
#endif

constexpr double kTwigCost = 2600;

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

// Records need a permute that looks codes up.
#if defined(DM_HAS_RECORDS)
constexpr auto kRecords = records;
constexpr auto kUnderWay = under_way;
constexpr auto kTurnCodes = turn_codes;
#else
constexpr auto kRecords = nullptr;
constexpr auto kUnderWay = nullptr;
constexpr auto kTurnCodes = nullptr;
#endif

#if defined(DM_HAS_TWIGS)
constexpr auto kTwigs = twigs;
#else
constexpr auto kTwigs = nullptr;
#endif

template <typename T>
constexpr TypedKernels<T> kTyped = {add_places<T>, add_few_values<T>, add<T>,
                                    add_trees<T>,  kPackSum<T>,       oblique<T>};

template <typename Node>
constexpr Walks<Node> kWalks = {deep<Node>, add_ends<Node, float>, add_ends<Node, double>,
                                few<Node>};

}  // namespace

extern const Kernels kernels = {
    DM_NAME(DM_TARGET),
    kSelectCost,
    kRecordCost,
    kTwigCost,
    kSplits,
    load,
    load_rows,
    code,
    code_categories,
    spread_bits,
    tests,
    select,
    top_exits,
    kWalks<WalkNode>,
    kWalks<WideNode>,
    kCodeLayout,
    kRecords,
    kUnderWay,
    kTwigs,
    kTurnCodes,
    code_row,
    kCodeBytes,
    kPacks,
    kTyped<float>,
    kTyped<double>,
};

}  // namespace dm::engine::DM_TARGET
