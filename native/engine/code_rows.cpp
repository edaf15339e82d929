// The features of a tile, read where they lie, and their columns' codes.
#include <algorithm>
#include <cmath>

#include "common/prefetch.hpp"
#include "engine/engine.hpp"
#include "engine/plan/records.hpp"
#include "engine/plan/twigs.hpp"

namespace dm::engine {
namespace {

constexpr int64_t kTablesInCache = int64_t{1} << 17;  // bytes, beside the rows
constexpr int64_t kRowsOfColumn = 8192;  // coded before the next column, where tables are larger

// Codes of m rows from a plane of one column to where walks read them: a row's codes together.
template <typename Code>
void turn(const void* plane, int64_t m, int64_t stride, uint16_t* out) {
    const Code* codes = static_cast<const Code*>(plane);
    for (int64_t i = 0; i < m; ++i) out[i * stride] = codes[i];
}

// The answers of a feature's sets to m rows, from the plane of its codes to where walks read them.
template <typename Code>
void turn_sets(const Kernels& kernels, const CategoryFeature& own, const void* plane, int64_t m,
               int64_t stride, uint16_t* out) {
    const Code* codes = static_cast<const Code*>(plane);
    for (int64_t i = 0; i < m; ++i)
        kernels.spread_bits(own.sets_by_code.data() + codes[i] * own.code_bytes(), own.n_sets,
                            out + i * stride + own.first_set);
}

}  // namespace

// Whether the features of a row lie side by side and most of them are used, as they are.
template <typename Sum>
bool Engine::reads_beside(const Tile<Sum>& tile) const {
    const Source& source = tile.source;
    const int64_t n_features = plan.machine.columns.n_features;
    const int64_t item = source.first.dtype == Dtype::f32 ? 4 : 8;
    return source.is_array && source.first.dtype <= Dtype::f64 && source.next == item &&
           std::isnan(tile.missing_value) && n_features >= kBeside &&
           2 * static_cast<int64_t>(plan.used_features.size()) >= n_features;
}

// Sparse rows are spread out first.
template <typename Sum>
void Engine::spread_out(Tile<Sum>& tile) const {
    const bool single = plan.machine.columns.single;
    const int64_t n_used = static_cast<int64_t>(plan.used_features.size());
    const int64_t item = single ? 4 : 8;
    tile.own.raw.reserve(n_used * tile.room * 8);
    char* raw = tile.own.raw.template as<char>();
    spread_sparse(tile.source, tile.row, tile.n, tile.room, raw);
    for (int64_t i = 0; i < n_used; ++i)
        tile.spread_out.push_back(
            {raw + (i * tile.room - tile.row) * item, item, single ? Dtype::f32 : Dtype::f64});
    tile.missing_value = NAN;  // missing values are NaN by now
}

// Used features as doubles, for leaves that are linear functions.
template <typename Sum>
void Engine::load_linear(const Tile<Sum>& tile) const {
    const bool single = plan.machine.columns.single;
    const int64_t n_used = static_cast<int64_t>(plan.used_features.size());
    tile.own.z.reserve(n_used * tile.room * 8);
    std::vector<float> floats(static_cast<size_t>(single ? tile.n : 0));
    for (int64_t i = 0; i < n_used; ++i) {
        double* x = tile.own.z.template as<double>() + i * tile.room;
        plan.kernels->load(tile.feature(plan.used_features[i]), tile.row, tile.n,
                           tile.source.integers_single, single, tile.missing_value,
                           single ? static_cast<void*>(floats.data()) : x);
        std::copy(floats.begin(), floats.end(), x);
    }
}

// Selects read planes of the whole tile, walks read the codes of a row together.
template <typename Sum>
void Engine::code_section(const Tile<Sum>& tile, const Section& section) const {
    const Kernels& kernels = *plan.kernels;
    const int64_t plane_rows = section.has_planes ? tile.room : kCodeRows;
    tile.own.codes.reserve(section.row_bytes * plane_rows);
    const bool has_rows = section.has_deep || section.has_twig;
    const int64_t stride = section.row_stride();
    if (has_rows) tile.own.row_codes.reserve(2 * stride * tile.room);
    const int64_t record_bytes =
        record_stride(kernels.code_layout, static_cast<int64_t>(section.columns.size()));
    tile.own.has_nan = false;
    if (section.has_record) tile.own.record_codes.reserve(record_bytes * tile.room);
    uint8_t* codes = tile.own.codes.as();
    const Coding coding = coding_of(section);
    // Columns of thousands of thresholds have tables that would not stay in the cache side by side:
    // one after the other, many rows of each.
    const int64_t table_bytes = static_cast<int64_t>(4 * section.thresholds->keys32.size() +
                                                     2 * section.thresholds->bucket_first.size());
    const int64_t at_once =
        section.has_planes && table_bytes > kTablesInCache ? kRowsOfColumn : kCodeRows;
    const bool is_beside = at_once == kCodeRows && reads_beside(tile);
    const int64_t n_beside = is_beside ? kBeside : 1;
    const int64_t last_beside = plan.machine.columns.n_features - n_beside;
    alignas(64) double buffer[kBeside * kCodeRows];
    const void* x = buffer;
    for (int64_t first = 0; first < tile.n; first += at_once) {
        const int64_t last = std::min(first + at_once, tile.n);
        int64_t loaded = -1, loaded_from = -1;
        bool single = false;
        auto load = [&](int64_t number, int64_t start, int64_t m) {
            const int64_t own = std::min(number - number % n_beside, last_beside);
            if (loaded != own || loaded_from != start) {
                loaded = own;
                loaded_from = start;
                const Feature feature = tile.feature(own);
                single = plan.machine.columns.single || feature.dtype == Dtype::f32;
                if (is_beside)
                    kernels.load_rows(feature, tile.row + start, m, single, buffer);
                else
                    kernels.load(feature, tile.row + start, m, tile.source.integers_single, single,
                                 tile.missing_value, buffer);
            }
            x = reinterpret_cast<const char*>(buffer) +
                (number - own) * kCodeRows * (single ? 4 : 8);
        };
        // For each run of rows that are coded together, where they start, how many they are, where
        // they stand in their planes, and their codes by row.
        auto each_run = [&](auto code) {
            for (int64_t start = first; start < last; start += kCodeRows)
                code(start, std::min(kCodeRows, last - start), section.has_planes ? start : 0,
                     tile.own.row_codes.template as<uint16_t>() + start * stride);
        };
        for (int64_t c = 0; c < coding.n_columns; ++c) {
            const Column& column = section.columns[c];
            if (at_once > kCodeRows && column.buckets.n) {
                const float* keys = coding.keys32 + column.keys;
                const uint16_t* bucket = coding.bucket_first + column.buckets.first;
                common::prefetch(keys, keys + column.n);
                common::prefetch(bucket, bucket + column.buckets.n);
            }
            each_run([&](int64_t start, int64_t m, int64_t place, uint16_t* row_codes) {
                load(column.feature, start, m);
                auto at = [&](int64_t plane) -> void* {
                    return plane < 0 ? nullptr : codes + plane * plane_rows + place * column.width;
                };
                void* low = at(column.low);
                void* high = at(column.high);
                kernels.code(coding, c, x, single, m, low, high);
                if (!has_rows) return;
                const auto turn_codes = column.width == 1 ? turn<uint8_t> : turn<uint16_t>;
                if (low) turn_codes(low, m, stride, row_codes + column.low_number);
                if (high) turn_codes(high, m, stride, row_codes + column.high_number);
            });
        }
        for (const CategoryFeature& own : section.categories)
            each_run([&](int64_t start, int64_t m, int64_t place, uint16_t* row_codes) {
                load(own.feature, start, m);
                uint8_t* plane = codes + own.start * plane_rows + place * own.width;
                kernels.code_categories(own.view(plan.machine.sets), x, single, m, own.width,
                                        plane);
                // Sets are looked up for whole words of rows: those that are not there need codes.
                std::fill_n(plane + m * own.width, (-m & 63) * own.width, uint8_t{0});
                if (!has_rows) return;
                own.width == 1 ? turn_sets<uint8_t>(kernels, own, plane, m, stride, row_codes)
                               : turn_sets<uint16_t>(kernels, own, plane, m, stride, row_codes);
            });
        each_run([&](int64_t start, int64_t m, int64_t place, uint16_t* row_codes) {
            if (section.has_twig)
                for (int64_t i = 0; i < m; ++i) row_codes[i * stride + section.n_planes] = 0;
            if (section.has_record)
                tile.own.has_nan |= kernels.turn_codes(
                    {codes, section.planes.data(), plane_rows}, section.record_columns.data(),
                    coding.n_columns, place, m, record_bytes,
                    tile.own.record_codes.as() + start * record_bytes);
        });
    }
}

Coding Engine::coding_of(const Section& section) const {
    return {section.columns.data(),
            static_cast<int64_t>(section.columns.size()),
            section.thresholds->keys32.data(),
            section.thresholds->bucket_first.data(),
            plan.machine.tests.t,
            section.thresholds->sorted.data()};
}

template void Engine::spread_out(Tile<float>&) const;
template void Engine::spread_out(Tile<double>&) const;
template void Engine::load_linear(const Tile<float>&) const;
template void Engine::load_linear(const Tile<double>&) const;
template void Engine::code_section(const Tile<float>&, const Section&) const;
template void Engine::code_section(const Tile<double>&, const Section&) const;

}  // namespace dm::engine
