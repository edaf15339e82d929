// exp and the logistic gate over vectors. Included inside the namespace of one target.

// A vector of T as wide as the target's registers, and the unsigned integers of its bits.
#if defined(DM_SCALAR)
template <typename T>
struct Lanes;
template <>
struct Lanes<float> {
    typedef float vec;
    typedef uint32_t word;
};
template <>
struct Lanes<double> {
    typedef double vec;
    typedef uint64_t word;
};
#else
#if defined(__AVX512F__)
#define DM_VECTOR __attribute__((vector_size(64)))
#elif defined(__AVX2__)
#define DM_VECTOR __attribute__((vector_size(32)))
#else
#define DM_VECTOR __attribute__((vector_size(16)))
#endif
template <typename T>
struct Lanes;
template <>
struct Lanes<float> {
    typedef float vec DM_VECTOR;
    typedef uint32_t word DM_VECTOR;
};
template <>
struct Lanes<double> {
    typedef double vec DM_VECTOR;
    typedef uint64_t word DM_VECTOR;
};
#undef DM_VECTOR
#endif

template <typename T>
using Vec = typename Lanes<T>::vec;
template <typename T>
constexpr int64_t kLanes = static_cast<int64_t>(sizeof(Vec<T>) / sizeof(T));

template <typename To, typename From>
inline To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "bits are neither lost nor made");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

template <typename T>
inline Vec<T> load(const T* at) {
    Vec<T> v;
    __builtin_memcpy(&v, at, sizeof v);
    return v;
}

template <typename T>
inline void store(T* at, Vec<T> v) {
    __builtin_memcpy(at, &v, sizeof v);
}

template <typename T>
inline Vec<T> broadcast(T x) {
    return x - Vec<T>{};
}

// exp(x) = 2^n exp(r), |r| <= log(2) / 2: 1 + r + r^2 p(r), p minimax for the relative error of
// the whole (3e-9 and 4e-18), so that rounding alone is left. `limit`: 2^n stays a normal number.
template <typename T>
struct Exp;
template <>
struct Exp<float> {
    static constexpr float limit = 87.0f;
    static constexpr float log2e = 0x1.715476p+0f;
    static constexpr float ln2_high = 0x1.63p-1f, ln2_low = -0x1.bd0106p-13f;
    static constexpr float round = 0x1.8p+23f;  // adding it rounds to whole numbers
    static constexpr int mantissa = 23;
    static constexpr float p[] = {0x1.fffffcp-2f, 0x1.55549p-3f, 0x1.5558f8p-5f, 0x1.123b02p-7f,
                                  0x1.6a2256p-10f};
};
template <>
struct Exp<double> {
    static constexpr double limit = 708.0;
    static constexpr double log2e = 0x1.71547652b82fep+0;
    static constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
    static constexpr double round = 0x1.8p+52;
    static constexpr int mantissa = 52;
    static constexpr double p[] = {
        0x1.000000000000ap-1,  0x1.55555555554f8p-3,  0x1.5555555550754p-5,  0x1.1111111128170p-7,
        0x1.6c16c1846fc56p-10, 0x1.a01a0128fe07ep-13, 0x1.a0199944626c3p-16, 0x1.71df271f44731p-19,
        0x1.28ae345faa3e9p-22, 0x1.ad7e8a1909b1fp-26};
};

// Within -limit..limit; NaN goes to -limit.
template <typename T>
inline Vec<T> clamp(Vec<T> x) {
    const Vec<T> low = broadcast<T>(-Exp<T>::limit), high = broadcast<T>(Exp<T>::limit);
    x = x > low ? x : low;
    return x < high ? x : high;
}

// For |x| <= limit.
template <typename T>
inline Vec<T> exp(Vec<T> x) {
    typedef typename Lanes<T>::word Word;
    typedef Exp<T> C;
    const Vec<T> rounded = x * C::log2e + C::round;
    const Vec<T> n = rounded - C::round;
    Vec<T> r = x - n * C::ln2_high;
    r = r - n * C::ln2_low;
    constexpr int last = static_cast<int>(sizeof C::p / sizeof(T)) - 1;
    Vec<T> p = broadcast<T>(C::p[last]);
    for (int i = last - 1; i >= 0; --i) p = p * r + C::p[i];
    const Vec<T> e = T(1) + (r + (r * r) * p);
    // The low bits of `rounded` are n: shifted, they are what to add to the exponent.
    return bits<Vec<T>>(bits<Word>(e) + (bits<Word>(rounded) << C::mantissa));
}

// 1 - sigmoid(q) and sigmoid(q), both accurate however small, for |q| <= limit.
template <typename T>
inline void gates(Vec<T> q, Vec<T>& left, Vec<T>& right) {
    const Vec<T> e = exp<T>(-q);
    // Measured: neither AVX-512's estimate nor a guess from the bits, mended by Newton, is faster.
    right = T(1) / (T(1) + e);
    left = e * right;
}

// The sum of the lanes, halves first.
#if defined(DM_SCALAR)
template <typename T>
inline T sum_lanes(T v) {
    return v;
}
#else
template <typename T, int Bytes>
struct Halves {
    typedef T half __attribute__((vector_size(Bytes / 2)));
    half low, high;
};
template <typename T, typename V>
inline T sum_lanes(V v) {
    if constexpr (sizeof(V) == 2 * sizeof(T)) {
        return v[0] + v[1];
    } else {
        const auto halves = bits<Halves<T, sizeof(V)>>(v);
        return sum_lanes<T>(halves.low + halves.high);
    }
}
#endif
