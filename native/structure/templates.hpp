// The templates B of trees, and their product with h, along the paths.
#pragma once

#include <cstdint>

namespace dm::structure {

// Fill the ternary templates of trees [first, last) as CSR rows, columns ascending.
// Rows and columns count from the first leaf and the first test of tree `first`.
void templates(const int32_t* children, const int64_t* test_start, int64_t first, int64_t last,
               const int64_t* indptr,  // (rows + 1,)
               int32_t* indices,       // (nnz,)  out
               int8_t* data);          // (nnz,)  out

// B h of one tree, factored along its paths: each leaf's sum of +-h over its tests.
void template_product(const int32_t* children,  // (J, 2), test and leaf numbers of this tree alone
                      int64_t n_tests,
                      const int8_t* h,  // (m, J)
                      int64_t n_rows,
                      int32_t* p);  // (m, J + 1)  out

}  // namespace dm::structure
