#include "engine/engine.hpp"

#include <algorithm>
#include <utility>

#include "common/interrupts.hpp"
#include "common/threads.hpp"
#include "engine/leaf_values.hpp"

namespace dm::engine {
namespace {

constexpr int64_t kCodesInTile = int64_t{1} << 20;  // bytes; should stay in the second-level cache
constexpr int64_t kMostTileRows = 4096, kMostRecordRows = 32768;
// Each tile fetches all trees: measured, a tile of large ones should be so many times as large.
constexpr int64_t kTileToTree = 32;
constexpr int64_t kRowsCodedAlone = 4;  // measured: more rows are coded column by column

int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// Bytes of the records and leaves of one tree, on average.
int64_t record_tree_bytes(const Plan& plan) {
    const Machine& machine = plan.machine;
    if (plan.records.records.empty()) return 0;
    const int64_t bytes = static_cast<int64_t>(plan.records.records.size() * sizeof(Record));
    const int64_t of_leaf = plan.few_values.value_of.empty()
                                ? machine.output.width() * (machine.output.single ? 4 : 8)
                                : 1;
    return (bytes + machine.trees.n_leaves() * of_leaf) / machine.trees.n;
}

}  // namespace

Engine::Engine(Plan given) : plan(std::move(given)) {
    int64_t widest = 1;
    for (const Section& section : plan.sections)
        widest =
            std::max(widest, section.has_twig   ? 2 * (section.row_bytes + 2 * section.row_stride())
                             : section.has_deep ? 2 * section.n_planes
                                                : section.row_bytes);
    if (plan.kind == Kind::oblique)
        widest = std::max<int64_t>(8 * static_cast<int64_t>(plan.oblique.columns.size()), 1);
    tile_rows_ =
        std::clamp(kCodesInTile / widest / kBlockRows * kBlockRows, kBlockRows, kMostTileRows);
    const int64_t for_trees =
        kTileToTree * record_tree_bytes(plan) / (2 * widest) / kBlockRows * kBlockRows;
    tile_rows_ = std::max(tile_rows_, std::min(for_trees, kMostRecordRows));
    is_records_ = plan.is_records();
    feature_at_ = FeaturePlaces(plan.used_features);
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
    const int64_t n_tiles =
        round_up(std::max<int64_t>((n + tile_rows_ - 1) / tile_rows_, 1), n_threads);
    const int64_t size = std::max(round_up((n + n_tiles - 1) / n_tiles, kBlockRows), kBlockRows);
    common::share((n + size - 1) / size, n_threads, [&](auto next) {
        auto own = take();
        for (int64_t i = next(); i >= 0; i = next()) {
            const int64_t row = i * size, rows = std::min(size, n - row);
            if (plan.machine.output.single)
                run_tile<float>(source, row, rows, *own, static_cast<float*>(margins), leaves);
            else
                run_tile<double>(source, row, rows, *own, static_cast<double*>(margins), leaves);
        }
        give(std::move(own));
    });
}

bool Engine::is_walked(int64_t n) const {
    if (plan.kind == Kind::by_tree)
        return n < kFewRows && (!plan.walks.start.empty() || plan.machine.trees.n == 0);
    return plan.kind != Kind::oblique;
}

template <typename Sum>
void Engine::run_tile(const Source& source, int64_t row, int64_t n, Workspace& own, Sum* margins,
                      int32_t* leaves) const {
    // Room for whole blocks; kernels that add values go on to the next multiple of 64.
    const bool is_few = is_records_ && n <= kRecordRows;
    const int64_t room = round_up(n, plan.kind == Kind::oblique || is_few ? 64 : kBlockRows);
    Tile<Sum> tile{source,  row,        n,   room,
                   margins, leaves,     own, plan.machine.columns.missing_value,
                   {},      feature_at_};
    if (is_walked(n)) return walk_rows(tile);
    if (source.is_sparse) spread_out(tile);
    if (margins) {
        if (plan.machine.linear) load_linear(tile);
        start_sums(tile);
    }
    if (plan.kind == Kind::oblique) oblique_trees(tile);
    for (const Section& section : plan.sections) {
        if (is_few && n <= kRowsCodedAlone)
            code_record_rows(tile, section);
        else
            code_section(tile, section);
        if (is_few) {
            record_few(tile, section);
            continue;
        }
        for (const Group& group : section.groups) {
            common::poll();
            group.kind == Kind::select   ? select_group(tile, section, group)
            : group.kind == Kind::record ? record_group(tile, section, group)
            : group.kind == Kind::twig   ? twig_group(tile, section, group)
                                         : walk_group(tile, section, group);
        }
    }
    if (margins) finish_sums(tile);
}

template <typename Sum>
void Engine::start_sums(const Tile<Sum>& tile) const {
    const int64_t n_outputs = plan.machine.output.n;
    tile.own.sums.reserve(n_outputs * tile.room * static_cast<int64_t>(sizeof(Sum)));
    for (int64_t output = 0; output < n_outputs; ++output)
        std::fill_n(tile.sums(output), tile.room, first_sum<Sum>(plan.machine, output));
}

template <typename Sum>
void Engine::finish_sums(const Tile<Sum>& tile) const {
    const int64_t n_outputs = plan.machine.output.n;
    for (int64_t output = 0; output < n_outputs; ++output) {
        const Sum* sum = tile.sums(output);
        Sum* out = tile.margins + tile.row * n_outputs + output;
        for (int64_t r = 0; r < tile.n; ++r)
            out[r * n_outputs] = last_sum(plan.machine, output, sum[r]);
    }
}

}  // namespace dm::engine
