// Some rows that one thread takes through all trees, and what is wanted of them.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/feature_places.hpp"
#include "engine/source.hpp"
#include "engine/workspace.hpp"

namespace dm::engine {

// Sum is the type of the sums, float or double.
template <typename Sum>
struct Tile {
    const Source& source;
    int64_t row, n;   // rows row..row + n of the source
    int64_t room;     // how many rows each array of the workspace has room for, at least n
    Sum* margins;     // (all rows, n_outputs), or null where they are not wanted
    int32_t* leaves;  // (all rows, n_trees), or null
    Workspace& own;
    double missing_value;             // what stands for NaN in the features, or NaN
    std::vector<Feature> spread_out;  // used features, where the source is sparse
    const FeaturePlaces& places;

    // The feature's values are those of rows from 0 on, whatever the source.
    Feature feature(int64_t f) const {
        return source.is_sparse ? spread_out[static_cast<size_t>(places[f])] : source.feature(f);
    }
    Sum* sums(int64_t output) const { return own.sums.as<Sum>() + output * room; }
};

}  // namespace dm::engine
