// Python's door to the structure of trees: check shapes, release the GIL, call.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <tuple>
#include <utility>

#include "common/arrays.hpp"
#include "common/require.hpp"
#include "structure/layout.hpp"
#include "structure/measure.hpp"
#include "structure/templates.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dm::structure {
namespace {

using common::Array;
using common::give;
using common::In;
using common::Out;
using common::require;

using Numbers = Array<int64_t, 1>;

// The layout's arrays; a fault (0: none), and the tree and the node where it is.
std::tuple<Numbers, Numbers, Array<int32_t, 1>, Numbers, int, int64_t, int64_t> py_layout(
    In<int64_t, 1> left, In<int64_t, 1> right, In<int64_t, 1> node_start) {
    require(node_start.shape(0) >= 1, "node_start is empty");
    require(left.shape(0) == right.shape(0), "left and right differ in length");
    const int64_t n_trees = static_cast<int64_t>(node_start.shape(0)) - 1;
    for (int64_t i = 0; i < n_trees; ++i)
        require(node_start(i) <= node_start(i + 1), "node_start decreases");
    require(node_start(0) == 0 && node_start(n_trees) == static_cast<int64_t>(left.shape(0)),
            "node_start does not cover the nodes");
    require(left.shape(0) < (size_t{1} << 31), "more than 2**31 nodes");
    Layout out;
    {
        nb::gil_scoped_release release;
        out = layout(left.data(), right.data(), node_start.data(), n_trees);
    }
    return {give(std::move(out.tests)),
            give(std::move(out.leaves)),
            give(std::move(out.children)),
            give(std::move(out.test_start)),
            static_cast<int>(out.fault),
            out.fault_tree,
            out.fault_node};
}

// Below `check`, callers have proven that `children` and `test_start` make trees
// by it (decision_machines.machine.structure); only lengths are checked again.
int64_t trees_of(const In<int32_t, 2>& children, const In<int64_t, 1>& test_start) {
    require(children.shape(1) == 2 && test_start.shape(0) >= 1, "children must be (J, 2)");
    const int64_t n_trees = static_cast<int64_t>(test_start.shape(0)) - 1;
    require(test_start(n_trees) == static_cast<int64_t>(children.shape(0)),
            "test_start does not cover the tests");
    return n_trees;
}

// The rule that is broken (0: none), and the test and the side where it is.
std::tuple<int, int64_t, int> py_check(In<int32_t, 2> children, In<int64_t, 1> test_start,
                                       Out<int32_t, 1> depth, Out<int32_t, 1> first_leaf,
                                       Out<int32_t, 1> n_leaves, Out<int32_t, 1> leaf_depth) {
    const int64_t n_trees = trees_of(children, test_start);
    const size_t n_tests = children.shape(0);
    require(test_start(0) == 0, "test_start does not begin at 0");
    for (int64_t i = 0; i < n_trees; ++i)
        require(test_start(i) <= test_start(i + 1), "test_start decreases");
    require(depth.shape(0) == n_tests && first_leaf.shape(0) == n_tests &&
                n_leaves.shape(0) == n_tests && leaf_depth.shape(0) == n_tests + n_trees,
            "an output has the wrong length");
    Breach found;
    {
        nb::gil_scoped_release release;
        found = check(children.data(), test_start.data(), n_trees, depth.data(), first_leaf.data(),
                      n_leaves.data(), leaf_depth.data());
    }
    return {static_cast<int>(found.rule), found.test, found.side};
}

void py_templates(In<int32_t, 2> children, In<int64_t, 1> test_start, int64_t first, int64_t last,
                  In<int64_t, 1> indptr, Out<int32_t, 1> indices, Out<int8_t, 1> data) {
    const int64_t n_trees = trees_of(children, test_start);
    require(0 <= first && first <= last && last <= n_trees, "no such trees");
    const int64_t rows = test_start(last) - test_start(first) + last - first;
    require(static_cast<int64_t>(indptr.shape(0)) == rows + 1, "indptr has the wrong length");
    const size_t nnz = static_cast<size_t>(indptr(rows));
    require(indices.shape(0) == nnz && data.shape(0) == nnz, "an output has the wrong length");
    nb::gil_scoped_release release;
    templates(children.data(), test_start.data(), first, last, indptr.data(), indices.data(),
              data.data());
}

void py_template_product(In<int32_t, 2> children, In<int8_t, 2> h, Out<int32_t, 2> p) {
    const size_t n_tests = children.shape(0);
    require(children.shape(1) == 2 && h.shape(1) == n_tests && p.shape(0) == h.shape(0) &&
                p.shape(1) == n_tests + 1,
            "shapes must be (J, 2), (m, J) and (m, J + 1)");
    nb::gil_scoped_release release;
    template_product(children.data(), static_cast<int64_t>(n_tests), h.data(),
                     static_cast<int64_t>(h.shape(0)), p.data());
}

}  // namespace

void bind(nb::module_& m) {
    // Outputs are taken as they are: a converted copy of one would be lost.
    m.def("layout", &py_layout, "left"_a, "right"_a, "node_start"_a,
          "Nodes of tests and of leaves, children, where the tests of trees start; fault, tree, "
          "node.");
    m.def("check", &py_check, "children"_a, "test_start"_a, "depth"_a.noconvert(),
          "first_leaf"_a.noconvert(), "n_leaves"_a.noconvert(), "leaf_depth"_a.noconvert(),
          "Measure trees; the rule that they break (0: none), the test and the side.");
    m.def("templates", &py_templates, "children"_a, "test_start"_a, "first"_a, "last"_a, "indptr"_a,
          "indices"_a.noconvert(), "data"_a.noconvert(), "Templates of some trees, as CSR rows.");
    m.def("template_product", &py_template_product, "children"_a, "h"_a, "p"_a.noconvert(),
          "The product of one tree's templates with h.");
}

}  // namespace dm::structure
