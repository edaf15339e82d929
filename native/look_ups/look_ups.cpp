#include "look_ups/look_ups.hpp"

#include <algorithm>
#include <cmath>

#include "common/threads.hpp"

namespace dm::look_ups {
namespace {

constexpr int64_t kBlock = 512;                      // rows whose keys stay in the first cache
constexpr int64_t kMostCombinations = 1 << 16;       // of a table that lists them all
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

// The category that each x is, or one that no term has.
void to_categories(const float* x, int64_t size, int32_t* category) {
    constexpr float kMost = 1 << 24;
    for (int64_t i = 0; i < size; ++i) {
        const float held = x[i] >= 0.0f && x[i] < kMost ? x[i] : kMost;
        const int32_t whole = static_cast<int32_t>(held);
        category[i] = static_cast<float>(whole) == held ? whole : static_cast<int32_t>(kMost);
    }
}

int64_t n_answers(const Term& term) {
    return term.ask == Ask::label ? static_cast<int64_t>(term.labels.size()) + 1 : 2;
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

void Table::list_combinations() {
    int64_t n = 1;
    for (const Term& term : terms) {
        n *= n_answers(term);
        if (n > kMostCombinations) return;
    }
    n_combinations = n;
    std::vector<uint64_t> key(n, 0);
    std::vector<bool> known(n, true);
    int64_t step = 1;
    for (const Term& term : terms) {
        steps.push_back(static_cast<int32_t>(step));
        const int64_t n_own = n_answers(term);
        for (int64_t i = 0; i < n; ++i) {
            const int64_t answer = i / step % n_own;
            if (term.ask != Ask::label)
                key[i] += answer ? term.adds : 0;
            else if (answer + 1 < n_own)
                key[i] += term.labels[static_cast<size_t>(answer)];
            else
                known[i] = false;
        }
        step *= n_own;
    }
    dense.resize(columns.size() * n);
    for (int64_t i = 0; i < n; ++i) {
        const int64_t found = known[i] ? row(key[i]) : n_keys;
        for (size_t c = 0; c < columns.size(); ++c)
            dense[c * n + i] = values[found * n_statistics + columns[c].statistic];
    }
}

void Tables::read_block(const float* x, int64_t n_rows, int64_t first, int64_t size,
                        std::vector<int32_t>& categories, float* z) const {
    Keys keys;
    uint32_t rows[kBlock];
    int32_t at[kBlock];
    for (int64_t input = 0; input < n_inputs; ++input)
        if (has_labels[input])
            to_categories(x + input * n_rows + first, size, categories.data() + input * kBlock);
    for (const Table& table : tables) {
        if (table.columns.empty()) continue;
        if (table.n_combinations) {
            std::fill_n(at, size, 0);
            for (size_t t = 0; t < table.terms.size(); ++t) {
                const Term& term = table.terms[t];
                const int32_t step = table.steps[t];
                const float* column = x + term.input * n_rows + first;
                if (term.ask == Ask::label) {
                    const int32_t* category = categories.data() + term.input * kBlock;
                    const int32_t n = static_cast<int32_t>(term.labels.size());
                    for (int64_t i = 0; i < size; ++i) at[i] += std::min(category[i], n) * step;
                } else if (term.ask == Ask::equals) {
                    for (int64_t i = 0; i < size; ++i) at[i] += column[i] == term.number ? step : 0;
                } else if (term.missing) {
                    for (int64_t i = 0; i < size; ++i)
                        at[i] += column[i] > term.number || std::isnan(column[i]) ? step : 0;
                } else {
                    for (int64_t i = 0; i < size; ++i) at[i] += column[i] > term.number ? step : 0;
                }
            }
            for (size_t c = 0; c < table.columns.size(); ++c) {
                float* out = z + table.columns[c].output * n_rows + first;
                const float* held = table.dense.data() + c * table.n_combinations;
                for (int64_t i = 0; i < size; ++i) out[i] = held[at[i]];
            }
            continue;
        }
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
        std::vector<int32_t> categories(n_inputs * kBlock);
        for (int64_t block = next(); block >= 0; block = next()) {
            const int64_t first = block * kBlock;
            read_block(x, n_rows, first, std::min(kBlock, n_rows - first), categories, z);
        }
    });
}

}  // namespace dm::look_ups
