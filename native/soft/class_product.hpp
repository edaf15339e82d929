// C = A B, or C += A B, for the products of a training step. Included inside the namespace of one
// target, after sigmoid.hpp.
//
// Measured: both products with X of 255 tests and 256 rows take 0.05, 0.18 and 1.28 ms with 16, 126
// and 717 features, by torch.mm 0.05, 0.23 and 1.48: there is no size from which BLAS is asked.

// Rows and vectors of C that are summed in registers at once, as many as the target has room for.
#if defined(__AVX512F__) && !defined(DM_SCALAR)
constexpr int kRows = 6, kVectors = 4;
#elif (defined(__AVX2__) || defined(__ARM_NEON)) && !defined(DM_SCALAR)
constexpr int kRows = 6, kVectors = 2;
#else
constexpr int kRows = 4, kVectors = 2;
#endif
// Terms that are added before C is written: their part of B stays in the first-level cache.
constexpr int64_t kTerms = 128;

struct Factor {
    const float* at;
    int64_t row, column;  // strides
};
struct Wide {
    const float* at;
    int64_t row;
};
struct Result {
    float* at;
    int64_t row;
};

template <int Rows, int Vectors>
inline void block(bool add, const Factor& A, const Wide& B, const Result& C, int64_t terms) {
    Vec<float> sums[Rows][Vectors];
    for (int i = 0; i < Rows; ++i)
        for (int v = 0; v < Vectors; ++v)
            sums[i][v] = add ? load<float>(C.at + i * C.row + v * kLanes<float>) : Vec<float>{};
    const float *a = A.at, *b = B.at;
    for (int64_t k = 0; k < terms; ++k, a += A.column, b += B.row) {
        Vec<float> wide[Vectors];
        for (int v = 0; v < Vectors; ++v) wide[v] = load<float>(b + v * kLanes<float>);
        for (int i = 0; i < Rows; ++i) {
            const float factor = a[i * A.row];
            for (int v = 0; v < Vectors; ++v) sums[i][v] = sums[i][v] + factor * wide[v];
        }
    }
    for (int i = 0; i < Rows; ++i)
        for (int v = 0; v < Vectors; ++v)
            store<float>(C.at + i * C.row + v * kLanes<float>, sums[i][v]);
}

template <int Rows, int Vectors>
void rows_left(bool add, Factor A, const Wide& B, Result C, int64_t rows, int64_t terms) {
    for (; rows >= Rows; rows -= Rows, A.at += Rows * A.row, C.at += Rows * C.row)
        block<Rows, Vectors>(add, A, B, C, terms);
    if constexpr (Rows > 1)
        if (rows) rows_left<Rows - 1, Vectors>(add, A, B, C, rows, terms);
}

// C (rows, columns), A (rows, terms), B (terms, columns). Whole vectors of B are read and of C are
// written: both are padded to them.
template <bool Add>
void product(const Factor& A, const Wide& B, const Result& C, int64_t rows, int64_t terms,
             int64_t columns) {
    for (int64_t k = 0; k < terms; k += kTerms) {
        const int64_t now = terms - k < kTerms ? terms - k : kTerms;
        const Factor a{A.at + k * A.column, A.row, A.column};
        const bool add = Add || k > 0;
        int64_t c = 0;
        auto go = [&](auto vectors) {
            constexpr int count = decltype(vectors)::value;
            for (; columns - c > (count - 1) * kLanes<float>; c += count * kLanes<float>)
                rows_left<kRows, count>(add, a, {B.at + k * B.row + c, B.row}, {C.at + c, C.row},
                                        rows, now);
        };
        go(std::integral_constant<int, kVectors>{});
        if constexpr (kVectors > 2) go(std::integral_constant<int, 2>{});
        go(std::integral_constant<int, 1>{});
    }
}
