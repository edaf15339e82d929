#include "engine/engine.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/threads.hpp"
#include "engine/leaf_values.hpp"
#include "engine/workspace.hpp"

namespace dm::engine {
namespace {

constexpr int64_t kCodesInTile = int64_t{1} << 20;  // bytes; should stay in the second-level cache
constexpr int64_t kMostTileRows = 4096;

}  // namespace

Engine::Engine(Plan given) : plan(std::move(given)) {
    int64_t widest = 1;
    for (const Section& section : plan.sections)
        widest = std::max(widest, section.has_deep ? 2 * section.n_planes : section.row_bytes);
    if (plan.oblique.is_made)
        widest = std::max<int64_t>(8 * static_cast<int64_t>(plan.oblique.columns.size()), 1);
    tile_rows_ =
        std::clamp(kCodesInTile / widest / kBlockRows * kBlockRows, kBlockRows, kMostTileRows);
    feature_at_.assign(plan.n_features, -1);
    for (size_t i = 0; i < plan.used_features.size(); ++i)
        feature_at_[plan.used_features[i]] = static_cast<int32_t>(i);
}

Engine::~Engine() {
    for (auto& slot : spare_) delete slot.load();
}

std::unique_ptr<Workspace> Engine::take() const {
    for (auto& slot : spare_)
        if (Workspace* found = slot.exchange(nullptr)) return std::unique_ptr<Workspace>(found);
    return std::make_unique<Workspace>();
}

void Engine::give(std::unique_ptr<Workspace> used) const {
    for (auto& slot : spare_) {
        Workspace* none = nullptr;
        if (slot.compare_exchange_strong(none, used.get())) {
            used.release();
            return;
        }
    }
}

void Engine::margin(const Source& source, int64_t n_threads, void* out) const {
    run(source, n_threads, out, nullptr);
}

void Engine::apply(const Source& source, int64_t n_threads, int32_t* out) const {
    run(source, n_threads, nullptr, out);
}

void Engine::run(const Source& source, int64_t n_threads, void* margins, int32_t* leaves) const {
    const int64_t n = source.n_rows;
    // Tiles that share the rows evenly among the threads.
    int64_t size = std::min(tile_rows_, (n + n_threads - 1) / n_threads);
    size = std::max<int64_t>((size + kBlockRows - 1) / kBlockRows * kBlockRows, kBlockRows);
    common::share((n + size - 1) / size, n_threads, [&](auto next) {
        auto own = take();
        for (int64_t i = next(); i >= 0; i = next()) {
            const int64_t row = i * size, rows = std::min(size, n - row);
            if (plan.sum_single)
                tile<float>(source, row, rows, *own, static_cast<float*>(margins), leaves);
            else
                tile<double>(source, row, rows, *own, static_cast<double*>(margins), leaves);
        }
        give(std::move(own));
    });
}

namespace {

// Room for the slots of a group, the first two of them constants.
void prepare_slots(Workspace& own, int64_t n_slots) {
    own.slots.reserve(n_slots * kBlockBytes);
    std::memset(own.slots.as(), 0, kBlockBytes);
    std::memset(own.slots.as() + kBlockBytes, 255, kBlockBytes);
}

}  // namespace

template <typename Sum>
void Engine::tile(const Source& source, int64_t row, int64_t n, Workspace& own, Sum* margins,
                  int32_t* leaves) const {
    const Kernels& kernels = *plan.kernels;
    if (!plan.oblique.is_made &&
        ((n < kFewRows && plan.has_nodes()) || plan.raw_only || plan.row.is_made))
        return few(source, row, n, own, margins, leaves);
    // Room for whole blocks; kernels that add values go on to the next multiple of 64.
    const int64_t whole = plan.oblique.is_made ? 64 : kBlockRows;
    const int64_t rows = (n + whole - 1) / whole * whole;
    const int64_t n_used = static_cast<int64_t>(plan.used_features.size());
    const bool has_linear = !plan.linear_start.empty() && margins;

    // Sparse rows, and the features of linear functions, are spread out first.
    std::vector<Feature> spread_out;
    bool integers_single = source.integers_single;
    double missing_value = plan.missing_value;
    if (source.is_sparse) {
        own.raw.reserve(n_used * rows * 8);
        spread_out.resize(plan.n_features);
        spread_sparse(source, row, n, rows, own.raw.as<char>());
        const int64_t item = plan.single ? 4 : 8;
        for (int64_t i = 0; i < n_used; ++i)
            spread_out[plan.used_features[i]] = {own.raw.as<char>() + (i * rows - row) * item, item,
                                                 plan.single ? Dtype::f32 : Dtype::f64};
        missing_value = NAN;
    }
    auto feature_of = [&](int64_t f) {
        return source.is_sparse ? spread_out[f] : source.feature(f);
    };
    if (has_linear) {
        own.z.reserve(n_used * rows * 8);
        double* x = own.z.as<double>();
        std::vector<float> one(static_cast<size_t>(plan.single ? rows : 0));
        for (int64_t i = 0; i < n_used; ++i) {
            const Feature feature = feature_of(plan.used_features[i]);
            if (plan.single) {
                kernels.load(feature, row, n, integers_single, true, missing_value, one.data());
                std::copy(one.begin(), one.begin() + n, x + i * rows);
            } else {
                kernels.load(feature, row, n, integers_single, false, missing_value, x + i * rows);
            }
        }
    }
    if (margins) {
        own.sums.reserve(plan.n_outputs * rows * static_cast<int64_t>(sizeof(Sum)));
        for (int64_t output = 0; output < plan.n_outputs; ++output) {
            Sum* sum = own.sums.as<Sum>() + output * rows;
            std::fill(sum, sum + rows, first_sum<Sum>(plan, output));
        }
    }
    own.labels.reserve(kBlockRows * 4);

    if (plan.oblique.is_made)
        oblique_leaves(source, spread_out, row, n, own, [&](int64_t i, uint32_t* found) {
            for (int64_t block = 0; block < n; block += kBlockRows)
                finish_block<Sum>(i, found + block, row, block, std::min(kBlockRows, n - block),
                                  rows, own, margins != nullptr, leaves);
        });
    for (const Section& section : plan.sections) {
        // Selects read planes of the whole tile, walks read the codes of a row together.
        const int64_t plane_rows = section.has_select ? rows : kCodeRows;
        own.codes.reserve(section.row_bytes * plane_rows);
        if (section.has_deep) own.row_codes.reserve(2 * section.n_planes * rows);
        uint8_t* codes = own.codes.as<uint8_t>();
        const Coding coding = coding_of(section);
        alignas(64) double x[kCodeRows];
        for (int64_t start = 0; start < n; start += kCodeRows) {
            const int64_t m = std::min(kCodeRows, n - start);
            const int64_t place = section.has_select ? start : 0;
            int64_t loaded = -1;
            bool single = false;
            for (int64_t c = 0; c < coding.n_columns; ++c) {
                const Column& column = section.columns[c];
                if (loaded != column.feature) {
                    loaded = column.feature;
                    const Feature feature = feature_of(loaded);
                    single = plan.single || feature.dtype == Dtype::f32;
                    kernels.load(feature, row + start, m, integers_single, single, missing_value,
                                 x);
                }
                auto at = [&](int64_t plane) -> void* {
                    return plane < 0 ? nullptr : codes + plane * plane_rows + place * column.width;
                };
                void* low = at(column.low);
                void* high = at(column.high);
                kernels.code(coding, c, x, single, m, low, high);
                if (!section.has_deep) continue;
                uint16_t* out = own.row_codes.as<uint16_t>() + start * section.n_planes;
                auto turn = [&](const void* plane, int32_t number) {
                    if (column.width == 1)
                        for (int64_t i = 0; i < m; ++i)
                            out[i * section.n_planes + number] =
                                static_cast<const uint8_t*>(plane)[i];
                    else
                        for (int64_t i = 0; i < m; ++i)
                            out[i * section.n_planes + number] =
                                static_cast<const uint16_t*>(plane)[i];
                };
                if (low) turn(low, column.low_number);
                if (high) turn(high, column.high_number);
            }
        }
        for (const Group& group : section.groups) {
            const SelectGroup view = group.view(section.planes);
            if (group.kind == Kind::select) {
                prepare_slots(own, group.n_slots);
            }
            if (group.kind != Kind::select) {
                if (plan.wide_nodes.empty())
                    deep_group<Sum>(plan.nodes.data(), kernels.walks, group, section, row, n, rows,
                                    own, margins != nullptr, leaves);
                else
                    deep_group<Sum>(plan.wide_nodes.data(), kernels.wide_walks, group, section, row,
                                    n, rows, own, margins != nullptr, leaves);
                continue;
            }
            for (int64_t block = 0; block < n; block += kBlockRows) {
                const int64_t m = std::min(kBlockRows, n - block);
                kernels.tests(view, codes, rows, block, m, own.slots.as());
                for (int64_t i = group.first; i < group.last; ++i) {
                    if (margins && !leaves && can_add_trees(i, group.last)) {
                        for (int64_t t = 0; t < kAddTrees; ++t)
                            kernels.select(view, group.trees[i + t - group.first], m,
                                           own.slots.as(), own.labels.as() + t * kBlockRows);
                        add_trees<Sum>(i, block, m, rows, own);
                        i += kAddTrees - 1;
                        continue;
                    }
                    const SelectTree& tree = group.trees[i - group.first];
                    kernels.select(view, tree, m, own.slots.as(), own.labels.as());
                    finish_block<Sum>(i, own.labels.as(), row, block, m, rows, own,
                                      margins != nullptr, leaves);
                }
            }
        }
    }
    if (!margins) return;
    for (int64_t output = 0; output < plan.n_outputs; ++output) {
        const Sum* sum = own.sums.as<Sum>() + output * rows;
        Sum* out = margins + row * plan.n_outputs + output;
        for (int64_t r = 0; r < n; ++r) out[r * plan.n_outputs] = last_sum(plan, output, sum[r]);
    }
}

template <typename Sum, typename Node>
void Engine::deep_group(const Node* all, const Walks<Node>& walks, const Group& group,
                        const Section& section, int64_t row, int64_t n, int64_t rows,
                        Workspace& own, bool wants_margins, int32_t* leaves) const {
    const Kernels& kernels = *plan.kernels;
    const bool adds =
        wants_margins && !leaves && plan.aggregate == Aggregate::sum && plan.linear_start.empty();
    own.ends.reserve(2 * rows * 4);
    uint32_t* ends = own.ends.as<uint32_t>();
    uint32_t* under_way = ends + rows;
    if (!adds) own.labels.reserve(rows * 4);
    for (int64_t i = group.first; i < group.last; ++i) {
        const Tree& tree = plan.trees[i];
        const Node* nodes = all + plan.node_start[i];
        // All of the tree at once: rows would fetch its lower nodes one by one, and wait for each.
        const char* first = reinterpret_cast<const char*>(nodes);
        const char* last = reinterpret_cast<const char*>(all + plan.node_start[i + 1]);
        if (n >= kBlockRows)
            for (const char* line = first; line < last; line += 64) __builtin_prefetch(line, 0, 2);
        const Top& top = plan.tops[i];
        if (top.tests.empty()) {
            std::memset(ends, 0, static_cast<size_t>(n * 4));
        } else {
            const SelectGroup view{top.tests.data(), static_cast<int64_t>(top.tests.size()),
                                   section.planes.data(), top.selects.data(), top.bits.data()};
            prepare_slots(own, top.n_slots);
            own.top_labels.reserve(kBlockRows);
            const uint8_t* labels = own.top_labels.as();
            for (int64_t block = 0; block < n; block += kBlockRows) {
                const int64_t m = std::min(kBlockRows, n - block);
                kernels.tests(view, own.codes.as(), rows, block, m, own.slots.as());
                kernels.select(view, top.trees[0], m, own.slots.as(), own.top_labels.as());
                for (int64_t r = 0; r < m; ++r) ends[block + r] = top.nodes[labels[r]];
            }
        }
        walks.deep(nodes, own.row_codes.as<uint16_t>(), section.n_planes, n, under_way, ends);
        if (adds) {
            const int64_t width = plan.narrow ? 1 : plan.n_outputs;
            for (int64_t output = 0; output < width; ++output) {
                Sum* sum = own.sums.as<Sum>() + (plan.narrow ? plan.feeds[i] : output) * rows;
                const int64_t at = tree.values + output * tree.n_labels;
                if constexpr (sizeof(Sum) == 4)
                    walks.add32(ends, n, nodes, plan.values32.data() + at, sum);
                else
                    walks.add64(ends, n, nodes, plan.values64.data() + at, sum);
            }
            continue;
        }
        uint32_t* labels = own.labels.as<uint32_t>();
        for (int64_t r = 0; r < n; ++r) labels[r] = nodes[ends[r]].leaf;
        for (int64_t block = 0; block < n; block += kBlockRows)
            finish_block<Sum>(i, labels + block, row, block, std::min(kBlockRows, n - block), rows,
                              own, wants_margins, leaves);
    }
}

Coding Engine::coding_of(const Section& section) const {
    return {section.columns.data(),
            static_cast<int64_t>(section.columns.size()),
            section.keys32.data(),
            plan.t,
            section.sorted.data(),
            plan.members.data(),
            plan.answers.data(),
            section.tables.data(),
            section.table_of.data(),
            plan.negative_fractions,
            plan.whole};
}

}  // namespace dm::engine
