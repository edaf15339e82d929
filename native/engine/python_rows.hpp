// Rows that Python holds, as the engine reads them: where they lie.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "common/view.hpp"
#include "engine/plan/machine.hpp"
#include "engine/source.hpp"

namespace dm::engine {

using common::View;

// A feature as Python gives it: an array; or a tuple of an array, positions of labels that its
// values count (float64), a byte for each row that is true where it is missing, bits that are set
// where it is not, and which of these bits is the first row's. Each but the array may be None.
struct GivenFeature {
    View values, labels, mask, valid;
    int64_t first_bit = 0;
    explicit GivenFeature(nanobind::handle given);
};

// Each fills `source` and returns true, or returns false where the engine does not read such
// arrays. What cannot be rows of the machine at all is an error (ValueError).

// A two-dimensional array.
bool read_array(const View& X, const Machine::Columns& columns, Source& source);

// One of them for each feature.
bool read_features(const std::vector<GivenFeature>& features, int64_t n_rows,
                   const Machine::Columns& columns, Source& source);

// Compressed sparse rows, without duplicates.
bool read_sparse(const View& data, const View& indices, const View& indptr,
                 const Machine::Columns& columns, Source& source);

}  // namespace dm::engine
