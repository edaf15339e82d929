// Values of a feature read where they lie, cast as the machine casts them.
//
// Included by kernels.cpp, once for each target.
#pragma once

namespace {

template <typename Raw, typename Through, typename T>
void load_as(const Feature& feature, int64_t row, int64_t n, T* x) {
    const char* p = feature.data + row * feature.stride;
    if (feature.stride == static_cast<int64_t>(sizeof(Raw))) {
        for (int64_t i = 0; i < n; ++i) {
            Raw value;
            std::memcpy(&value, p + i * static_cast<int64_t>(sizeof(Raw)), sizeof value);
            x[i] = static_cast<T>(static_cast<Through>(value));
        }
        return;
    }
    for (int64_t i = 0; i < n; ++i, p += feature.stride) {
        Raw value;
        std::memcpy(&value, p, sizeof value);
        x[i] = static_cast<T>(static_cast<Through>(value));
    }
}

template <typename Through, typename T>
void load_integers(const Feature& feature, int64_t row, int64_t n, T* x) {
    switch (feature.dtype) {
        case Dtype::i8: return load_as<int8_t, Through>(feature, row, n, x);
        case Dtype::i16: return load_as<int16_t, Through>(feature, row, n, x);
        case Dtype::i32: return load_as<int32_t, Through>(feature, row, n, x);
        case Dtype::i64: return load_as<int64_t, Through>(feature, row, n, x);
        case Dtype::u16: return load_as<uint16_t, Through>(feature, row, n, x);
        case Dtype::u32: return load_as<uint32_t, Through>(feature, row, n, x);
        case Dtype::u64: return load_as<uint64_t, Through>(feature, row, n, x);
        default: return load_as<uint8_t, Through>(feature, row, n, x);
    }
}

// Values that count labels; the labels' own x.
template <typename Raw, typename T>
void look_up_labels(const Feature& feature, int64_t row, int64_t n, T* x) {
    const char* p = feature.data + row * feature.stride;
    for (int64_t i = 0; i < n; ++i, p += feature.stride) {
        Raw value;
        std::memcpy(&value, p, sizeof value);
        const uint64_t at = static_cast<uint64_t>(static_cast<int64_t>(value));
        x[i] = at < static_cast<uint64_t>(feature.n_labels) ? static_cast<T>(feature.labels[at])
                                                            : static_cast<T>(NAN);
    }
}

template <typename T>
void load_labels(const Feature& feature, int64_t row, int64_t n, T* x) {
    switch (feature.dtype) {
        case Dtype::i8: return look_up_labels<int8_t>(feature, row, n, x);
        case Dtype::i16: return look_up_labels<int16_t>(feature, row, n, x);
        case Dtype::i32: return look_up_labels<int32_t>(feature, row, n, x);
        case Dtype::i64: return look_up_labels<int64_t>(feature, row, n, x);
        case Dtype::u16: return look_up_labels<uint16_t>(feature, row, n, x);
        case Dtype::u32: return look_up_labels<uint32_t>(feature, row, n, x);
        case Dtype::u64: return look_up_labels<uint64_t>(feature, row, n, x);
        default: return look_up_labels<uint8_t>(feature, row, n, x);
    }
}

template <typename T>
void load_values(const Feature& feature, int64_t row, int64_t n, bool integers_single,
                 double missing_value, T* x) {
    if (feature.labels)
        load_labels(feature, row, n, x);
    else if (feature.dtype == Dtype::f32)
        load_as<float, float>(feature, row, n, x);
    else if (feature.dtype == Dtype::f64)
        load_as<double, double>(feature, row, n, x);
    else if (integers_single)
        load_integers<float>(feature, row, n, x);
    else
        load_integers<double>(feature, row, n, x);
    if (feature.mask)
        for (int64_t i = 0; i < n; ++i) x[i] = feature.mask[row + i] ? static_cast<T>(NAN) : x[i];
    if (feature.valid)
        for (int64_t i = 0; i < n; ++i) {
            const int64_t bit = feature.first_bit + row + i;
            x[i] = feature.valid[bit >> 3] >> (bit & 7) & 1 ? x[i] : static_cast<T>(NAN);
        }
    if (missing_value == missing_value)
        for (int64_t i = 0; i < n; ++i)
            x[i] = static_cast<double>(x[i]) == missing_value ? static_cast<T>(NAN) : x[i];
}

void load(const Feature& feature, int64_t row, int64_t n, bool integers_single, bool single,
          double missing_value, void* x) {
    if (single)
        load_values(feature, row, n, integers_single, missing_value, static_cast<float*>(x));
    else
        load_values(feature, row, n, integers_single, missing_value, static_cast<double*>(x));
}

// Rows that lie together are read once for kBeside features, not once for each: x has a run of
// kCodeRows values for each of them.
template <typename Raw, typename T>
void load_rows_as(const Feature& first, int64_t row, int64_t n, T* x) {
    const char* p = first.data + row * first.stride;
    for (int64_t i = 0; i < n; ++i, p += first.stride) {
        Raw values[kBeside];
        std::memcpy(values, p, sizeof values);
        for (int64_t j = 0; j < kBeside; ++j) x[j * kCodeRows + i] = static_cast<T>(values[j]);
    }
}

void load_rows(const Feature& first, int64_t row, int64_t n, bool single, void* x) {
    if (first.dtype == Dtype::f32)
        load_rows_as<float>(first, row, n, static_cast<float*>(x));
    else if (single)
        load_rows_as<double>(first, row, n, static_cast<float*>(x));
    else
        load_rows_as<double>(first, row, n, static_cast<double*>(x));
}

}  // namespace
