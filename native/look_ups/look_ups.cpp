#include "look_ups/look_ups.hpp"

#include <algorithm>
#include <cmath>

#include "common/threads.hpp"

namespace dm::look_ups {
namespace {

constexpr int64_t kBlock = 512;                      // rows whose keys stay in the first cache
constexpr uint64_t kSpread = 0x9e3779b97f4a7c15ull;  // odd, near 2^64 / the golden ratio

struct Keys {
    uint64_t key[kBlock];
    bool known[kBlock];
};

void add_labels(const Term& term, const float* x, int64_t size, Keys& keys) {
    const float n = static_cast<float>(term.labels.size());
    for (int64_t i = 0; i < size; ++i) {
        const bool inside = x[i] >= 0.0f && x[i] < n;  // false for NaN
        const int64_t category = inside ? static_cast<int64_t>(x[i]) : 0;
        if (inside && static_cast<float>(category) == x[i])
            keys.key[i] += term.labels[static_cast<size_t>(category)];
        else
            keys.known[i] = false;
    }
}

void add_answers(const Term& term, const float* x, int64_t size, Keys& keys) {
    for (int64_t i = 0; i < size; ++i) {
        const bool yes = term.ask == Ask::equals
                             ? x[i] == term.number
                             : x[i] > term.number || (term.missing && std::isnan(x[i]));
        keys.key[i] += yes ? term.adds : 0;
    }
}

}  // namespace

void Table::hold(const uint64_t* keys, int64_t n) {
    n_keys = static_cast<uint32_t>(n);
    int bits = 1;
    while ((int64_t{1} << bits) < 2 * n) ++bits;
    shift = 64 - bits;
    const size_t mask = (size_t{1} << bits) - 1;
    slots.assign(mask + 1, {0, n_keys});
    for (uint32_t i = 0; i < n_keys; ++i) {
        size_t at = static_cast<size_t>((keys[i] * kSpread) >> shift);
        while (slots[at].row != n_keys) at = (at + 1) & mask;
        slots[at] = {keys[i], i};
    }
}

uint32_t Table::row(uint64_t key) const {
    const size_t mask = slots.size() - 1;
    size_t at = static_cast<size_t>((key * kSpread) >> shift);
    while (slots[at].row != n_keys && slots[at].key != key) at = (at + 1) & mask;
    return slots[at].row;
}

void Tables::read_block(const float* x, int64_t n_rows, int64_t first, int64_t size,
                        float* z) const {
    Keys keys;
    uint32_t rows[kBlock];
    for (const Table& table : tables) {
        if (table.columns.empty()) continue;
        std::fill_n(keys.key, size, 0);
        std::fill_n(keys.known, size, true);
        for (const Term& term : table.terms) {
            const float* column = x + term.input * n_rows + first;
            if (term.ask == Ask::label)
                add_labels(term, column, size, keys);
            else
                add_answers(term, column, size, keys);
        }
        for (int64_t i = 0; i < size; ++i)
            rows[i] = keys.known[i] ? table.row(keys.key[i]) : table.n_keys;
        for (const Column& column : table.columns) {
            float* out = z + column.output * n_rows + first;
            const float* values = table.values.data() + column.statistic;
            for (int64_t i = 0; i < size; ++i) out[i] = values[rows[i] * table.n_statistics];
        }
    }
}

void Tables::read(const float* x, int64_t n_rows, int64_t n_threads, float* z) const {
    const int64_t n_blocks = (n_rows + kBlock - 1) / kBlock;
    common::share(n_blocks, n_threads, [&](auto next) {
        for (int64_t block = next(); block >= 0; block = next()) {
            const int64_t first = block * kBlock;
            read_block(x, n_rows, first, std::min(kBlock, n_rows - first), z);
        }
    });
}

}  // namespace dm::look_ups
