// Predictions of a compiled plan: rows by tiles, tiles by threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/feature_places.hpp"
#include "engine/plan/plan.hpp"
#include "engine/source.hpp"
#include "engine/tile.hpp"

namespace dm::engine {

// Sums of deep trees on their way, see deep_trees.cpp.
template <typename Sum>
struct DeepSums {
    Sum* rows = nullptr;          // by row, a copy of the tile's; null where a leaf has one value
    uint8_t* labels = nullptr;    // of trees that wait to be added; null where values are not few
    int64_t first = 0, last = 0;  // these trees
};

class Engine {
public:
    explicit Engine(Plan plan);
    ~Engine();
    Engine(const Engine&) = delete;

    const Plan plan;

    // (n_rows, n_outputs) margins, float or double as the plan sums.
    void margin(const Source& source, int64_t n_threads, void* out) const;
    // (n_rows, n_trees) exit leaves, counted within each tree.
    void apply(const Source& source, int64_t n_threads, int32_t* out) const;

private:
    void run(const Source& source, int64_t n_threads, void* margins, int32_t* leaves) const;
    template <typename Sum>
    void run_tile(const Source& source, int64_t row, int64_t n, Workspace& own, Sum* margins,
                  int32_t* leaves) const;
    // Whether rows go one at a time.
    bool is_walked(int64_t n) const;
    template <typename Sum>
    void start_sums(const Tile<Sum>& tile) const;
    template <typename Sum>
    void finish_sums(const Tile<Sum>& tile) const;

    // code_rows.cpp: features and their codes.
    template <typename Sum>
    bool reads_beside(const Tile<Sum>& tile) const;
    template <typename Sum>
    void spread_out(Tile<Sum>& tile) const;
    template <typename Sum>
    void load_linear(const Tile<Sum>& tile) const;
    template <typename Sum>
    void code_section(const Tile<Sum>& tile, const Section& section) const;
    Coding coding_of(const Section& section) const;
    // sparse_rows.cpp: rows row..row + n, one column of `stride` values for each used feature.
    void spread_sparse(const Source& source, int64_t row, int64_t n, int64_t stride,
                       void* out) const;

    // select_trees.cpp, record_trees.cpp, twig_trees.cpp, walk_trees.cpp, oblique_trees.cpp: trees
    // of one kind over a tile.
    template <typename Sum>
    void select_group(const Tile<Sum>& tile, const Section& section, const Group& group) const;
    template <typename Sum>
    void walk_group(const Tile<Sum>& tile, const Section& section, const Group& group) const;
    template <typename Sum, typename Node>
    void walk_trees(const Tile<Sum>& tile, const Section& section, const Group& group,
                    const Node* all, const Walks<Node>& walks) const;
    // deep_trees.cpp: what records, twigs and walks share.
    template <typename Sum>
    void run_tops(const Tile<Sum>& tile, const Section& section, int64_t tree) const;
    bool put_top_exits(const Workspace& own, int64_t tree, int64_t room, int64_t row, int64_t n,
                       uint32_t* ends) const;
    template <typename Sum>
    DeepSums<Sum> start_deep(const Tile<Sum>& tile) const;
    template <typename Sum>
    void prefetch_leaves(const Tile<Sum>& tile, int64_t tree) const;
    template <typename Sum>
    void prefetch_values(const Tile<Sum>& tile, int64_t tree, const uint32_t* places) const;
    template <typename Sum>
    void add_leaves(const Tile<Sum>& tile, int64_t tree, const uint32_t* places, int64_t row,
                    int64_t n, DeepSums<Sum>& sums) const;
    template <typename Sum>
    void end_tree(const Tile<Sum>& tile, int64_t tree, DeepSums<Sum>& sums) const;
    template <typename Sum>
    void add_waiting(const Tile<Sum>& tile, DeepSums<Sum>& sums) const;
    template <typename Sum>
    void finish_deep(const Tile<Sum>& tile, DeepSums<Sum>& sums) const;
    template <typename Sum>
    void record_group(const Tile<Sum>& tile, const Section& section, const Group& group) const;
    template <typename Sum>
    void twig_group(const Tile<Sum>& tile, const Section& section, const Group& group) const;
    template <typename Sum>
    void record_few(const Tile<Sum>& tile, const Section& section) const;
    template <typename Sum>
    void code_record_rows(const Tile<Sum>& tile, const Section& section) const;
    RecordTrees record_trees(const Section& section, const Workspace& own, int64_t row,
                             bool are_far) const;
    template <typename Sum>
    void oblique_trees(const Tile<Sum>& tile) const;
    template <typename T, typename Sum>
    void oblique_trees_of(const Tile<Sum>& tile) const;
    template <typename T, typename Sum>
    T* oblique_rows(const Tile<Sum>& tile) const;
    template <typename T>
    const T* rows_in_place(const Source& source, int64_t row) const;

    // add_leaves.cpp: from the labels of m rows of a block to their exit leaves and sums.
    template <typename Sum>
    void add_labels(const Tile<Sum>& tile, int64_t tree, const void* labels, int64_t block,
                    int64_t m) const;
    bool can_add_trees(int64_t tree, int64_t last) const;
    template <typename Sum>
    void add_trees(const Tile<Sum>& tile, int64_t tree, int64_t block, int64_t m) const;

    // few_rows.cpp: one row at a time.
    template <typename Sum>
    void walk_rows(const Tile<Sum>& tile) const;
    bool few_features(const Source& source, int64_t row, void* x) const;
    uint16_t few_category(const CategoryFeature& own, const void* x, bool single) const;
    RowPacks few_packs(const void* x, bool single, uint8_t* codes, Workspace& own) const;
    const uint16_t* few_codes(const Section& section, const void* x, bool single, void* z,
                              Workspace& own) const;
    void few_coded(const void* x, bool single, void* z, Workspace& own, uint32_t* found) const;
    void few_raw(const double* x, double* z, uint32_t* found) const;
    template <typename Sum>
    void few_values(const double* x, bool is_plain, const uint32_t* found, Sum* out) const;

    std::unique_ptr<Workspace> take() const;
    void give(std::unique_ptr<Workspace> used) const;

    // Buffers kept between calls. Slots are exchanged, never locked: a fork cannot catch them held.
    static constexpr int kSpare = 8;
    mutable std::atomic<Workspace*> spare_[kSpare] = {};
    int64_t tile_rows_ = 0;
    bool is_records_ = false;
    FeaturePlaces feature_at_;
};

}  // namespace dm::engine
