// Kernels that find, for a test at the root, the best second test on both of its sides.
//
// A feature's order of rows is cut into as many runs as a vector has lanes, and every lane walks
// its own run; entry s * lanes + l belongs to step s of lane l. Behind the last row come rows of
// weight 0. `root` holds the ranks of the root's feature, compared with its cut.
//
// Plain structs and raw pointers only, as in engine/kernels/kernels.hpp.
#pragma once

#include <cstdint>

#include "common/every_target.hpp"

namespace dm::optimal {

// Where numbers are not whole, of every target: lanes decide the order of sums, and trees must not
// depend on the processor. Sums of whole numbers are exact, so each target has its own width there.
constexpr int64_t kVectorBytes = 32;
constexpr int64_t kWidest = 64;

// Stands for no limit where a cut is allowed; far from overflow when it is negated.
template <typename T>
constexpr T kUnlimited = T(sizeof(T) == 2 ? 32767 : 1000000000);
template <>
inline constexpr double kUnlimited<double> = 1e300;

// Two classes. The weight of the second minus that of the first decides: a side whose difference is
// D, cut where it is d, has errors (weight - max(|D|, |2 d - D|)) / 2.
template <typename T>
struct TwoClasses {
    int64_t steps;
    const T* root;
    const T* difference;  // of each row
    const T* before;      // sum of differences in the run so far
    const T* limit;       // kUnlimited where a cut may follow, else its negative; null: everywhere
};

template <typename T>
struct Extremes {
    T most[2], least[2];  // of d, left and right
    T total[2];           // D
};

// Several classes; what counts is the weight of the largest class on either side of the cut.
template <typename T>
struct ManyClasses {
    int64_t steps;
    int64_t n_classes;
    const T* root;
    const T* label;
    const T* w;
    const T* start;  // (n_classes, lanes) weight before each run
    const T* total;  // (n_classes,) of all rows
    const T* limit;  // kUnlimited where a cut may follow, else 0
    T* scratch;      // 4 * n_classes vectors
};

// Squared error: a cut explains z^2 W / (w (W - w)) of a side of weight W, where w is the weight
// before the cut and z the sum of w y before it, y being centred on the side.
constexpr int64_t kNumberLanes = kVectorBytes / 4;

struct Numbers {
    int64_t steps;
    int64_t n_targets;
    const int32_t* root;
    const int32_t* is_cut;  // -1 where a cut may follow, else 0
    const double* w;
    const double* wy;     // (n_targets, steps * lanes)
    const double* start;  // (1 + n_targets, lanes) sums before each run
    const double* total;  // (1 + n_targets,)
    double lightest;      // half of the least weight: less is none
    double* scratch;      // 4 * (1 + n_targets) * lanes
};

// The same with whole weights and one target, which is rounded to whole numbers: sums are exact,
// and z is known up to `error`.
struct WholeNumbers {
    int64_t steps;
    const int32_t* root;
    const int32_t* is_cut;
    const int32_t* w;
    const int32_t* wy;
    const int32_t* w_before;  // sums in the run up to each row
    const int32_t* wy_before;
    const int32_t* start;  // (2, lanes) sums before each run
    int32_t total[2];      // of w and wy
    float error;
};

template <typename T>
struct TypedKernels {
    int64_t lanes;
    void (*two_classes)(const TwoClasses<T>& rows, T cut, Extremes<T>& out);
    // Largest weight that two leaves classify rightly, left and right of the root's cut.
    void (*many_classes)(const ManyClasses<T>& rows, T cut, T* out);
};

struct Kernels {
    const char* name;
    TypedKernels<int16_t> shorts;
    TypedKernels<int32_t> ints;
    TypedKernels<double> doubles;
    // Most that two leaves explain beyond one, left and right of the root's cut.
    void (*numbers)(const Numbers& rows, int32_t cut, double* out);
    // Not less than that.
    void (*whole_numbers)(const WholeNumbers& rows, int32_t cut, double* out);
};

DM_ON_EVERY_TARGET(Kernels, kernels)

}  // namespace dm::optimal
