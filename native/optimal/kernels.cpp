// The best second tests, compiled once for each target.
#include "optimal/kernels.hpp"

#include <cstring>
#include <type_traits>

namespace dm::optimal {
namespace DM_TARGET {
namespace {

#if defined(__AVX512BW__)
constexpr int64_t kWholeBytes = kWidest;
#else
constexpr int64_t kWholeBytes = kVectorBytes;
#endif

template <typename T>
struct VectorOf {
    using Int = std::conditional_t<sizeof(T) == 2, int16_t,
                                   std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
    static constexpr int64_t bytes = sizeof(T) == 8 ? kVectorBytes : kWholeBytes;
    typedef T Type __attribute__((vector_size(bytes)));
    typedef Int MaskType __attribute__((vector_size(bytes)));
};
template <typename T>
constexpr int64_t kLanes = VectorOf<T>::bytes / static_cast<int64_t>(sizeof(T));
template <typename T>
using Vector = typename VectorOf<T>::Type;
template <typename T>
using Mask = typename VectorOf<T>::MaskType;

template <typename T>
inline Vector<T> load(const T* from) {
    Vector<T> out;
    std::memcpy(&out, from, sizeof(out));
    return out;
}

template <typename T>
inline void store(T* to, const Vector<T>& value) {
    std::memcpy(to, &value, sizeof(value));
}

template <typename T>
inline Vector<T> all(T value) {
    return value - Vector<T>{};
}

template <typename V>
inline V larger(const V& a, const V& b) {
    return a > b ? a : b;
}

template <typename V>
inline V smaller(const V& a, const V& b) {
    return a < b ? a : b;
}

// `value` where the mask is set, else 0.
template <typename T>
inline Vector<T> where(const Mask<T>& mask, const Vector<T>& value) {
    return (Vector<T>)((Mask<T>)value & mask);
}

template <typename T, bool has_ties>
void two_classes_of(const TwoClasses<T>& rows, T cut, Extremes<T>& out) {
    constexpr int64_t lanes = kLanes<T>;
    const Vector<T> cuts = all<T>(cut);
    Vector<T> left{}, right{};
    Vector<T> most_left = all<T>(-kUnlimited<T>), most_right = most_left;
    Vector<T> least_left = all<T>(kUnlimited<T>), least_right = least_left;
    for (int64_t s = 0; s < rows.steps; ++s) {
        const Mask<T> goes_left = load(rows.root + s * lanes) <= cuts;
        left += where<T>(goes_left, load(rows.difference + s * lanes));
        right = load(rows.before + s * lanes) - left;
        if constexpr (has_ties) {
            const Vector<T> high = load(rows.limit + s * lanes), low = -high;
            most_left = larger(most_left, smaller(left, high));
            least_left = smaller(least_left, larger(left, low));
            most_right = larger(most_right, smaller(right, high));
            least_right = smaller(least_right, larger(right, low));
        } else {
            most_left = larger(most_left, left);
            least_left = smaller(least_left, left);
            most_right = larger(most_right, right);
            least_right = smaller(least_right, right);
        }
    }
    // Runs stand one behind the other. No cut at all is d = 0.
    T before[2] = {0, 0};
    for (int side = 0; side < 2; ++side) out.most[side] = out.least[side] = 0;
    for (int64_t l = 0; l < lanes; ++l) {
        const T most[2] = {most_left[l], most_right[l]};
        const T least[2] = {least_left[l], least_right[l]};
        const T ends[2] = {left[l], right[l]};
        for (int side = 0; side < 2; ++side) {
            if (most[side] != -kUnlimited<T>) {
                const T high = static_cast<T>(before[side] + most[side]);
                const T low = static_cast<T>(before[side] + least[side]);
                if (high > out.most[side]) out.most[side] = high;
                if (low < out.least[side]) out.least[side] = low;
            }
            before[side] = static_cast<T>(before[side] + ends[side]);
        }
    }
    for (int side = 0; side < 2; ++side) out.total[side] = before[side];
}

template <typename T>
void two_classes(const TwoClasses<T>& rows, T cut, Extremes<T>& out) {
    if (rows.limit)
        two_classes_of<T, true>(rows, cut, out);
    else
        two_classes_of<T, false>(rows, cut, out);
}

// `fixed` is the number of classes, or 0 for any.
template <typename T, int fixed>
void many_classes_of(const ManyClasses<T>& rows, T cut, T* out) {
    constexpr int64_t lanes = kLanes<T>;
    const int64_t K = fixed ? fixed : rows.n_classes;
    Vector<T> own[fixed ? 4 * fixed : 1];
    Vector<T>* const left = fixed ? own : reinterpret_cast<Vector<T>*>(rows.scratch);
    Vector<T>* const both = left + K;
    Vector<T>* const total_left = both + K;
    Vector<T>* const total_right = total_left + K;
    const Vector<T> cuts = all<T>(cut);
    for (int64_t c = 0; c < K; ++c) left[c] = Vector<T>{};
    for (int64_t s = 0; s < rows.steps; ++s) {
        const Vector<T> w = where<T>(load(rows.root + s * lanes) <= cuts, load(rows.w + s * lanes));
        const Vector<T> label = load(rows.label + s * lanes);
        for (int64_t c = 0; c < K; ++c) left[c] += where<T>(label == all<T>(static_cast<T>(c)), w);
    }
    for (int64_t c = 0; c < K; ++c) {
        T sum = 0;
        for (int64_t l = 0; l < lanes; ++l) {
            const T run = left[c][l];
            left[c][l] = sum;
            sum = static_cast<T>(sum + run);
        }
        total_left[c] = all<T>(sum);
        total_right[c] = all<T>(static_cast<T>(rows.total[c] - sum));
        both[c] = load(rows.start + c * lanes);
    }
    Vector<T> best_left{}, best_right{};
    for (int64_t s = 0; s < rows.steps; ++s) {
        const Mask<T> goes_left = load(rows.root + s * lanes) <= cuts;
        const Vector<T> w = load(rows.w + s * lanes), label = load(rows.label + s * lanes);
        Vector<T> ll{}, lr{}, rl{}, rr{};
        for (int64_t c = 0; c < K; ++c) {
            const Vector<T> added = where<T>(label == all<T>(static_cast<T>(c)), w);
            both[c] += added;
            left[c] += where<T>(goes_left, added);
            const Vector<T> right = both[c] - left[c];
            ll = larger(ll, left[c]);
            lr = larger(lr, total_left[c] - left[c]);
            rl = larger(rl, right);
            rr = larger(rr, total_right[c] - right);
        }
        const Vector<T> limit = load(rows.limit + s * lanes);
        best_left = larger(best_left, smaller(ll + lr, limit));
        best_right = larger(best_right, smaller(rl + rr, limit));
    }
    out[0] = out[1] = 0;
    for (int64_t l = 0; l < lanes; ++l) {
        if (best_left[l] > out[0]) out[0] = best_left[l];
        if (best_right[l] > out[1]) out[1] = best_right[l];
    }
}

template <typename T>
void many_classes(const ManyClasses<T>& rows, T cut, T* out) {
    switch (rows.n_classes) {
        case 3: return many_classes_of<T, 3>(rows, cut, out);
        case 4: return many_classes_of<T, 4>(rows, cut, out);
        case 5: return many_classes_of<T, 5>(rows, cut, out);
        case 6: return many_classes_of<T, 6>(rows, cut, out);
        case 7: return many_classes_of<T, 7>(rows, cut, out);
        case 8: return many_classes_of<T, 8>(rows, cut, out);
        case 9: return many_classes_of<T, 9>(rows, cut, out);
        case 10: return many_classes_of<T, 10>(rows, cut, out);
        case 11: return many_classes_of<T, 11>(rows, cut, out);
        case 12: return many_classes_of<T, 12>(rows, cut, out);
        default: return many_classes_of<T, 0>(rows, cut, out);
    }
}

typedef int32_t FourInts __attribute__((vector_size(16)));
using Four = Vector<double>;

inline Mask<double> widened(const FourInts& mask) {
    return __builtin_convertvector(mask, Mask<double>);
}

inline FourInts load_four(const int32_t* from) {
    FourInts out;
    std::memcpy(&out, from, sizeof(out));
    return out;
}

// A run's lanes are two vectors; array entry 2 c + h is half h of sum c.
template <int fixed>
void numbers_of(const Numbers& rows, int32_t cut, double* out) {
    constexpr int64_t lanes = kNumberLanes, half = lanes / 2;
    const int64_t K = 1 + (fixed ? fixed : rows.n_targets), size = rows.steps * lanes;
    Four own[fixed ? 4 * 2 * (1 + fixed) : 1];
    Four* const left = fixed ? own : reinterpret_cast<Four*>(rows.scratch);
    Four* const both = left + 2 * K;
    Four* const mean_left = both + 2 * K;  // entry 0: the weight
    Four* const mean_right = mean_left + 2 * K;
    const FourInts cuts = cut - FourInts{};
    for (int64_t c = 0; c < 2 * K; ++c) left[c] = Four{};
    for (int64_t s = 0; s < rows.steps; ++s)
        for (int64_t h = 0; h < 2; ++h) {
            const int64_t at = s * lanes + h * half;
            const Mask<double> goes_left = widened(load_four(rows.root + at) <= cuts);
            left[h] += where<double>(goes_left, load(rows.w + at));
            for (int64_t c = 1; c < K; ++c)
                left[2 * c + h] += where<double>(goes_left, load(rows.wy + (c - 1) * size + at));
        }
    double weight[2] = {0.0, 0.0};
    for (int64_t c = 0; c < K; ++c) {
        double sum = 0.0;
        for (int64_t l = 0; l < lanes; ++l) {
            double run = left[2 * c + l / half][l % half];
            left[2 * c + l / half][l % half] = sum;
            sum += run;
        }
        const double rest = rows.total[c] - sum;
        if (c == 0) weight[0] = sum, weight[1] = rest;
        for (int64_t h = 0; h < 2; ++h) {
            mean_left[2 * c + h] = all(c == 0 ? sum : sum / weight[0]);
            mean_right[2 * c + h] = all(c == 0 ? rest : rest / weight[1]);
            both[2 * c + h] = load(rows.start + c * lanes + h * half);
        }
    }
    const Four least = all(rows.lightest);
    Four best_left{}, best_right{};
    for (int64_t s = 0; s < rows.steps; ++s)
        for (int64_t h = 0; h < 2; ++h) {
            const int64_t at = s * lanes + h * half;
            const Mask<double> goes_left = widened(load_four(rows.root + at) <= cuts);
            const Four w = load(rows.w + at);
            both[h] += w;
            left[h] += where<double>(goes_left, w);
            const Four w_left = left[h], w_right = both[h] - left[h];
            Four z_left{}, z_right{};
            for (int64_t c = 1; c < K; ++c) {
                const int64_t i = 2 * c + h;
                const Four wy = load(rows.wy + (c - 1) * size + at);
                both[i] += wy;
                left[i] += where<double>(goes_left, wy);
                const Four a = left[i] - mean_left[i] * w_left;
                const Four b = both[i] - left[i] - mean_right[i] * w_right;
                z_left += a * a;
                z_right += b * b;
            }
            const Four l = larger(w_left, least) * larger(mean_left[h] - w_left, least);
            const Four r = larger(w_right, least) * larger(mean_right[h] - w_right, least);
            const Mask<double> is_cut = widened(load_four(rows.is_cut + at));
            best_left = larger(best_left, where<double>(is_cut, z_left / l));
            best_right = larger(best_right, where<double>(is_cut, z_right / r));
        }
    out[0] = out[1] = 0.0;
    for (int64_t l = 0; l < half; ++l) {
        if (best_left[l] > out[0]) out[0] = best_left[l];
        if (best_right[l] > out[1]) out[1] = best_right[l];
    }
    for (int side = 0; side < 2; ++side) out[side] *= weight[side];
}

void numbers(const Numbers& rows, int32_t cut, double* out) {
    if (rows.n_targets == 1)
        numbers_of<1>(rows, cut, out);
    else
        numbers_of<0>(rows, cut, out);
}

typedef float Floats __attribute__((vector_size(kVectorBytes)));
typedef int32_t Ints __attribute__((vector_size(kVectorBytes)));

inline Ints load_ints(const int32_t* from) {
    Ints out;
    std::memcpy(&out, from, sizeof(out));
    return out;
}
inline Floats floats(const Ints& x) { return __builtin_convertvector(x, Floats); }
inline Floats floats(float x) { return x - Floats{}; }

// One side of the root's cut.
struct WholeSide {
    Ints weight;
    Floats mean, least, best{};

    WholeSide(int32_t w, int32_t wy)
        : weight(w - Ints{}),
          mean(floats(w ? static_cast<float>(wy) / static_cast<float>(w) : 0.0f)),
          least(floats(w > 2 ? static_cast<float>(w - 1) : 1.0f)) {}

    void look(const Ints& w, const Ints& wy, const Ints& is_cut, const Floats& error) {
        const Floats weight_before = floats(w);
        const Floats z = floats(wy) - mean * weight_before;
        // Without its sign, and as large as it can be.
        const Floats most = (Floats)((Ints)z & 0x7fffffff) + error;
        const Floats between = weight_before * floats(weight - w);
        const Floats explained = most * most / (between > least ? between : least);
        const Floats allowed = (Floats)((Ints)explained & is_cut);
        best = allowed > best ? allowed : best;
    }

    // Rounding of all the steps above is below a millionth.
    double most() const {
        float found = 0.0f;
        for (int64_t l = 0; l < kNumberLanes; ++l)
            if (best[l] > found) found = best[l];
        return static_cast<double>(found) * weight[0] * (1.0 + 2e-6);
    }
};

void whole_numbers(const WholeNumbers& rows, int32_t cut, double* out) {
    constexpr int64_t lanes = kNumberLanes;
    const Ints cuts = cut - Ints{};
    Ints w_run{}, wy_run{};
    for (int64_t s = 0; s < rows.steps; ++s) {
        const Ints goes_left = load_ints(rows.root + s * lanes) <= cuts;
        w_run += load_ints(rows.w + s * lanes) & goes_left;
        wy_run += load_ints(rows.wy + s * lanes) & goes_left;
    }
    int32_t w_sum = 0, wy_sum = 0;
    Ints w_left, wy_left;
    for (int64_t l = 0; l < lanes; ++l) {
        w_left[l] = w_sum;
        wy_left[l] = wy_sum;
        w_sum += w_run[l];
        wy_sum += wy_run[l];
    }
    WholeSide left(w_sum, wy_sum);
    WholeSide right(rows.total[0] - w_sum, rows.total[1] - wy_sum);
    const Ints w_start = load_ints(rows.start), wy_start = load_ints(rows.start + lanes);
    const Floats error = floats(rows.error);
    for (int64_t s = 0; s < rows.steps; ++s) {
        const Ints goes_left = load_ints(rows.root + s * lanes) <= cuts;
        w_left += load_ints(rows.w + s * lanes) & goes_left;
        wy_left += load_ints(rows.wy + s * lanes) & goes_left;
        const Ints is_cut = load_ints(rows.is_cut + s * lanes);
        left.look(w_left, wy_left, is_cut, error);
        right.look(load_ints(rows.w_before + s * lanes) + w_start - w_left,
                   load_ints(rows.wy_before + s * lanes) + wy_start - wy_left, is_cut, error);
    }
    out[0] = left.most();
    out[1] = right.most();
}

template <typename T>
constexpr TypedKernels<T> typed() {
    return {kLanes<T>, two_classes<T>, many_classes<T>};
}

}  // namespace

const Kernels kernels = {DM_NAME(DM_TARGET), typed<int16_t>(), typed<int32_t>(),
                         typed<double>(),    numbers,          whole_numbers};

}  // namespace DM_TARGET
}  // namespace dm::optimal
