// Oblique trees: all rows of a tile go down a level at a time, several weighted sums at once.
//
// Included by kernels.cpp, once for each target. The terms of a sum are added in the order of the
// columns, a product rounded and then added, as the reference does: only so are its bits the same
// everywhere. The sums of different rows are independent, so a register holds one term of each:
// products are formed along the columns, and a square of them is turned about before it is added.
#pragma once

namespace {

#if defined(DM_SCALAR)
template <typename T>
constexpr int kSums = 4;

// q[i] = sum of z[i][c] w[i][c] over c.
template <typename T>
void dense_sums(const T* const* z, const T* const* w, int64_t n, T* q) {
    T a = 0, b = 0, c = 0, d = 0;
    for (int64_t i = 0; i < n; ++i) {
        a += z[0][i] * w[0][i];
        b += z[1][i] * w[1][i];
        c += z[2][i] * w[2][i];
        d += z[3][i] * w[3][i];
    }
    q[0] = a, q[1] = b, q[2] = c, q[3] = d;
}
#else
#if defined(__AVX512F__)
constexpr int kRegisterBytes = 64;
#elif defined(__AVX2__)
constexpr int kRegisterBytes = 32;
#else
constexpr int kRegisterBytes = 16;
#endif
template <typename T>
constexpr int kSums = kRegisterBytes / static_cast<int>(sizeof(T));

typedef float Floats __attribute__((vector_size(kRegisterBytes)));
typedef double Doubles __attribute__((vector_size(kRegisterBytes)));
template <typename T>
struct RegisterOf;
template <>
struct RegisterOf<float> {
    using type = Floats;
};
template <>
struct RegisterOf<double> {
    using type = Doubles;
};

template <int... I>
struct Numbers {};
template <int N, int... I>
struct UpTo : UpTo<N - 1, N - 1, I...> {};
template <int... I>
struct UpTo<0, I...> {
    using type = Numbers<I...>;
};

// The lower, or upper, halves of two registers, one element from each in turn.
template <typename V, int... I>
inline V low_halves(V a, V b, Numbers<I...>) {
    return __builtin_shufflevector(a, b, (I % 2 * static_cast<int>(sizeof...(I)) + I / 2)...);
}
template <typename V, int... I>
inline V high_halves(V a, V b, Numbers<I...>) {
    constexpr int size = static_cast<int>(sizeof...(I));
    return __builtin_shufflevector(a, b, (I % 2 * size + size / 2 + I / 2)...);
}

template <typename T>
void dense_sums(const T* const* z, const T* const* w, int64_t n, T* q) {
    using V = typename RegisterOf<T>::type;
    constexpr int size = kSums<T>;
    using All = typename UpTo<size>::type;
    V total = {};
    int64_t c = 0;
    for (; c + size <= n; c += size) {
        V square[size], turned[size];
        for (int i = 0; i < size; ++i) {
            V x, y;
            std::memcpy(&x, z[i] + c, sizeof x);
            std::memcpy(&y, w[i] + c, sizeof y);
            square[i] = x * y;
        }
        for (int round = 1; round < size; round *= 2) {
            for (int i = 0; i < size / 2; ++i) {
                turned[2 * i] = low_halves(square[i], square[i + size / 2], All());
                turned[2 * i + 1] = high_halves(square[i], square[i + size / 2], All());
            }
            for (int i = 0; i < size; ++i) square[i] = turned[i];
        }
        for (int i = 0; i < size; ++i) total = total + square[i];
    }
    for (int i = 0; i < size; ++i) {
        T sum = total[i];
        for (int64_t at = c; at < n; ++at) sum += z[i][at] * w[i][at];
        q[i] = sum;
    }
}
#endif

// A row under way, and the test that it has come to.
struct UnderWay {
    uint32_t row, test;
};
static_assert(sizeof(UnderWay) == kUnderWayBytes);

template <typename T>
inline bool goes_right(const ObliqueTests& tests, int64_t test, T q) {
    return q == q ? !(q <= static_cast<T>(tests.t[test])) : tests.missing[test] > 0;
}

// Weighted sums of `n` rows at their tests, as many as a register holds.
template <typename T>
void some_sums(const ObliqueTests& tests, const T* z, int64_t stride, const UnderWay* at, int64_t n,
               T* q) {
    const T* weights = static_cast<const T*>(tests.weight);
    if (!tests.column) {
        const T *x[kSums<T>], *w[kSums<T>];
        for (int i = 0; i < kSums<T>; ++i) {
            const UnderWay& own = at[i < n ? i : 0];
            x[i] = z + own.row * stride;
            w[i] = weights + tests.start[own.test];
        }
        return dense_sums(x, w, tests.n_terms, q);
    }
    for (int64_t i = 0; i < n; ++i) {
        const T* x = z + at[i].row * stride;
        T sum = 0;
        for (int64_t term = tests.start[at[i].test]; term < tests.start[at[i].test + 1]; ++term)
            sum += x[tests.column[term]] * weights[term];
        q[i] = sum;
    }
}

// One row: the tests below its own are done along with it, since a sum waits for its own terms.
template <typename T>
int32_t descend_alone(const ObliqueTests& tests, int32_t test, const T* z) {
    while (test >= 0) {
        UnderWay at[kSums<T>];
        int32_t below[kSums<T>][2];
        T q[kSums<T>];
        int n = 0;
        at[n++] = {0, static_cast<uint32_t>(test)};
        for (int i = 0; i < n; ++i)
            for (int side = 0; side < 2; ++side) {
                const int32_t child = tests.children[2 * at[i].test + side];
                below[i][side] = -1;
                if (child < 0 || n == kSums<T>) continue;
                below[i][side] = n;
                at[n++] = {0, static_cast<uint32_t>(child)};
            }
        some_sums(tests, z, 0, at, n, q);
        for (int32_t i = 0; i >= 0;) {
            const int side = goes_right(tests, at[i].test, q[i]);
            test = tests.children[2 * at[i].test + side];
            i = below[i][side];
        }
    }
    return ~test;
}

// Exit leaves of one tree, counted over all trees. `buffer` holds 3 n rows under way.
template <typename T>
void oblique(const ObliqueTests& tests, int32_t root, const T* z, int64_t stride, int64_t n,
             void* buffer, uint32_t* leaves) {
    if (root < 0) {
        for (int64_t r = 0; r < n; ++r) leaves[r] = static_cast<uint32_t>(~root);
        return;
    }
    if (n == 1) {
        leaves[0] = static_cast<uint32_t>(descend_alone(tests, root, z));
        return;
    }
    UnderWay* now = static_cast<UnderWay*>(buffer);
    UnderWay* next = now + n;
    UnderWay* right = next + n;
    for (int64_t r = 0; r < n; ++r)
        now[r] = {static_cast<uint32_t>(r), static_cast<uint32_t>(root)};
    // Rows at the same test stay together, so that its weights are read once.
    for (int64_t count = n; count;) {
        int64_t n_next = 0, n_right = 0;
        uint32_t test = now[0].test;
        auto flush = [&] {
            for (int64_t i = 0; i < n_right; ++i) next[n_next++] = right[i];
            n_right = 0;
        };
        for (int64_t first = 0; first < count; first += kSums<T>) {
            const int64_t m = count - first < kSums<T> ? count - first : kSums<T>;
            T q[kSums<T>];
            some_sums(tests, z, stride, now + first, m, q);
            for (int64_t i = 0; i < m; ++i) {
                const UnderWay own = now[first + i];
                if (own.test != test) flush(), test = own.test;
                const bool is_right = goes_right(tests, own.test, q[i]);
                const int32_t child = tests.children[2 * own.test + is_right];
                if (child < 0)
                    leaves[own.row] = static_cast<uint32_t>(~child);
                else if (is_right)
                    right[n_right++] = {own.row, static_cast<uint32_t>(child)};
                else
                    next[n_next++] = {own.row, static_cast<uint32_t>(child)};
            }
        }
        flush();
        UnderWay* const swap = now;
        now = next;
        next = swap;
        count = n_next;
    }
}

}  // namespace
