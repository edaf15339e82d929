// Predictions of a compiled plan: rows by tiles, tiles by threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/plan/plan.hpp"

namespace dm::engine {

// Rows as the caller holds them: one array, an array for each feature, or compressed sparse rows.
struct Source {
    int64_t n_rows = 0;
    bool is_array = false;
    Feature first{};  // feature 0 of the array, and the bytes from one to the next
    int64_t next = 0;
    std::vector<Feature> features;  // (n_features,), unless an array or sparse
    bool integers_single = false;   // integers pass through float32
    bool is_sparse = false;
    Feature entries{};  // the stored values
    const int32_t* indices32 = nullptr;
    const int64_t* indices64 = nullptr;
    const int32_t* indptr32 = nullptr;
    const int64_t* indptr64 = nullptr;
    Feature feature(int64_t i) const {
        return is_array ? Feature{first.data + i * next, first.stride, first.dtype}
                        : features[static_cast<size_t>(i)];
    }
};

class Workspace;

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
    void tile(const Source& source, int64_t row, int64_t n, Workspace& own, Sum* margins,
              int32_t* leaves) const;
    template <typename Sum>
    void few(const Source& source, int64_t row, int64_t n, Workspace& own, Sum* margins,
             int32_t* leaves) const;
    template <typename Sum>
    void finish_block(int64_t tree, const void* labels, int64_t row, int64_t block, int64_t m,
                      int64_t rows, Workspace& own, bool wants_margins, int32_t* leaves) const;
    bool can_add_trees(int64_t i, int64_t last) const;
    template <typename Sum>
    void add_trees(int64_t i, int64_t block, int64_t m, int64_t rows, Workspace& own) const;
    template <typename Sum, typename Node>
    void deep_group(const Node* all, const Walks<Node>& walks, const Group& group,
                    const Section& section, int64_t row, int64_t n, int64_t rows, Workspace& own,
                    bool wants_margins, int32_t* leaves) const;
    // Exit leaves of every tree of an oblique machine, given to `use`, for rows row..row + n.
    void oblique_leaves(const Source& source, const std::vector<Feature>& spread_out, int64_t row,
                        int64_t n, Workspace& own,
                        const std::function<void(int64_t, uint32_t*)>& use) const;
    template <typename T>
    T* oblique_rows(const Source& source, const std::vector<Feature>& spread_out, int64_t row,
                    int64_t n, Workspace& own) const;
    // Rows as the caller holds them, where they are as the kernel reads them, or null.
    template <typename T>
    const T* rows_in_place(const Source& source, int64_t row) const;
    Coding coding_of(const Section& section) const;
    // The used features of one row; whether they are floats.
    bool few_features(const Source& source, int64_t row, void* x) const;
    RowPacks few_packs(const void* x, bool single, uint8_t* codes) const;
    // Exit leaves of all trees for one row; z is a buffer of values by column.
    void few_coded(const void* x, bool single, void* z, Workspace& own, uint32_t* found) const;
    void few_raw(const double* x, double* z, uint32_t* found) const;
    template <typename Sum>
    void few_values(const double* x, bool is_plain, const uint32_t* found, Sum* out) const;
    void spread_sparse(const Source& source, int64_t row, int64_t n, int64_t stride,
                       void* out) const;
    std::unique_ptr<Workspace> take() const;
    void give(std::unique_ptr<Workspace> used) const;

    // Buffers kept between calls. Slots are exchanged, never locked: a fork cannot catch them held.
    static constexpr int kSpare = 8;
    mutable std::atomic<Workspace*> spare_[kSpare] = {};
    int64_t tile_rows_ = 0;
    std::vector<int32_t> feature_at_;  // place of a feature among the used ones, or -1
};

}  // namespace dm::engine
