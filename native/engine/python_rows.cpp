#include "engine/python_rows.hpp"

#include <algorithm>
#include <optional>

#include "common/require.hpp"

namespace nb = nanobind;

namespace dm::engine {
namespace {

using common::require;

// The dtype of a buffer in native byte order, where it is one that the kernels read.
std::optional<Dtype> dtype_of(const View& view) {
    const char* format = view->format;
    if (!format) return std::nullopt;
    if (*format == '@' || *format == '=') ++format;
    if (format[0] == '\0' || format[1] != '\0') return std::nullopt;
    auto whole = [&](bool is_signed) -> std::optional<Dtype> {
        switch (view->itemsize) {
            case 1: return is_signed ? Dtype::i8 : Dtype::u8;
            case 2: return is_signed ? Dtype::i16 : Dtype::u16;
            case 4: return is_signed ? Dtype::i32 : Dtype::u32;
            case 8: return is_signed ? Dtype::i64 : Dtype::u64;
            default: return std::nullopt;
        }
    };
    switch (*format) {
        case 'f': return Dtype::f32;
        case 'd': return Dtype::f64;
        case '?': return Dtype::boolean;
        case 'b':
        case 'h':
        case 'i':
        case 'l':
        case 'q': return whole(true);
        case 'B':
        case 'H':
        case 'I':
        case 'L':
        case 'Q': return whole(false);
        default: return std::nullopt;
    }
}

bool is_whole(Dtype dtype) { return dtype != Dtype::f32 && dtype != Dtype::f64; }

// Calls use(indices) with the view's numbers; false where they are not numbers of 32 or 64 bits,
// one after the other.
template <typename Use>
bool with_indices(const View& view, const Use& use) {
    const auto dtype = dtype_of(view);
    if (!dtype || view->ndim != 1 || view->strides[0] != view->itemsize) return false;
    if (*dtype == Dtype::i32)
        use(static_cast<const int32_t*>(view->buf));
    else if (*dtype == Dtype::i64)
        use(static_cast<const int64_t*>(view->buf));
    else
        return false;
    return true;
}

void set(const int32_t* found, const int32_t*& narrow, const int64_t*&) { narrow = found; }
void set(const int64_t* found, const int32_t*&, const int64_t*& wide) { wide = found; }

}  // namespace

GivenFeature::GivenFeature(nb::handle given)
    : values(nb::isinstance<nb::tuple>(given) ? given[0] : given) {
    if (!nb::isinstance<nb::tuple>(given)) return;
    require(nb::len(given) == 5, "a feature is an array or a tuple of five");
    auto view = [&](int i) {
        const nb::object part = given[i];
        if (part.is_none()) return View();
        View found(part, PyBUF_C_CONTIGUOUS);
        require(found.held(), "a part of a feature is not contiguous");
        return found;
    };
    labels = view(1);
    mask = view(2);
    valid = view(3);
    first_bit = nb::cast<int64_t>(given[4]);
}

bool read_array(const View& X, const Machine::Columns& columns, Source& source) {
    if (!X.held() || X->ndim != 2) return false;
    const auto dtype = dtype_of(X);
    if (!dtype) return false;
    require(X->shape[1] == columns.n_features, "X has the wrong width");
    source.n_rows = X->shape[0];
    source.integers_single = columns.integers_single;
    source.is_array = true;
    source.first = {static_cast<const char*>(X->buf), X->strides[0], *dtype};
    source.next = X->strides[1];
    return true;
}

bool read_features(const std::vector<GivenFeature>& features, int64_t n_rows,
                   const Machine::Columns& columns, Source& source) {
    require(static_cast<int64_t>(features.size()) == columns.n_features, "X has the wrong width");
    source.n_rows = n_rows;
    source.integers_single = columns.single;
    for (const GivenFeature& given : features) {
        const View& view = given.values;
        if (!view.held() || view->ndim != 1) return false;
        const auto dtype = dtype_of(view);
        if (!dtype) return false;
        require(view->shape[0] == n_rows, "columns differ in length");
        Feature feature{static_cast<const char*>(view->buf), view->strides[0], *dtype};
        if (given.labels.held()) {
            require(is_whole(*dtype), "labels are counted by whole numbers");
            require(given.labels->itemsize == 8, "positions of labels are float64");
            feature.labels = static_cast<const double*>(given.labels->buf);
            feature.n_labels = given.labels->len / 8;
        }
        if (given.mask.held()) {
            require(given.mask->len == n_rows, "a mask has a byte for each row");
            feature.mask = static_cast<const uint8_t*>(given.mask->buf);
        }
        if (given.valid.held()) {
            require(given.first_bit >= 0 && given.valid->len >= (given.first_bit + n_rows + 7) / 8,
                    "valid has a bit for each row");
            feature.valid = static_cast<const uint8_t*>(given.valid->buf);
            feature.first_bit = given.first_bit;
        }
        source.features.push_back(feature);
    }
    return true;
}

bool read_sparse(const View& data, const View& indices, const View& indptr,
                 const Machine::Columns& columns, Source& source) {
    if (!data.held() || !indices.held() || !indptr.held()) return false;
    const auto dtype = dtype_of(data);
    if (!dtype || data->ndim != 1) return false;
    int64_t last = 0;
    const bool has_starts = with_indices(indptr, [&](const auto* at) {
        set(at, source.indptr32, source.indptr64);
        source.n_rows = indptr->shape[0] - 1;
        require(source.n_rows >= 0, "indptr is empty");
        require(at[0] >= 0, "indptr starts below 0");
        for (int64_t i = 0; i < source.n_rows; ++i) require(at[i] <= at[i + 1], "indptr decreases");
        last = at[source.n_rows];
    });
    if (!has_starts) return false;
    const bool has_columns = with_indices(indices, [&](const auto* at) {
        set(at, source.indices32, source.indices64);
        require(last <= indices->shape[0] && last <= data->shape[0], "indptr reaches too far");
        int64_t most = 0, least = 0;
        for (int64_t i = 0; i < last; ++i) {
            most = std::max<int64_t>(most, at[i]);
            least = std::min<int64_t>(least, at[i]);
        }
        require(least >= 0 && (last == 0 || most < columns.n_features), "no such column");
    });
    source.is_sparse = true;
    source.entries = {static_cast<const char*>(data->buf), data->strides[0], *dtype};
    return has_columns;
}

}  // namespace dm::engine
