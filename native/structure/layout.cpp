#include "structure/layout.hpp"

namespace dm::structure {

Layout layout(const int64_t* left, const int64_t* right, const int64_t* node_start,
              int64_t n_trees) {
    Layout out;
    out.test_start.push_back(0);
    struct Visit {
        int64_t node;
        int64_t slot;  // where in `children` to note the number this node gets; -1 for a root
    };
    std::vector<Visit> stack;
    std::vector<char> seen;
    for (int64_t tree = 0; tree < n_trees; ++tree) {
        const int64_t begin = node_start[tree], size = node_start[tree + 1] - begin;
        auto fail = [&](Fault fault, int64_t node) {
            out.fault = fault;
            out.fault_tree = tree;
            out.fault_node = node;
            return out;
        };
        if (size <= 0) return fail(Fault::out_of_range, 0);
        seen.assign(static_cast<std::size_t>(size), 0);
        stack.push_back({0, -1});
        while (!stack.empty()) {
            const Visit visit = stack.back();
            stack.pop_back();
            if (visit.node < 0 || visit.node >= size) return fail(Fault::out_of_range, visit.node);
            if (seen[visit.node]) return fail(Fault::visited_twice, visit.node);
            seen[visit.node] = 1;
            const int64_t l = left[begin + visit.node], r = right[begin + visit.node];
            int32_t number;
            if (l < 0 && r < 0) {
                number = ~static_cast<int32_t>(out.leaves.size());
                out.leaves.push_back(begin + visit.node);
            } else if (l < 0 || r < 0) {
                return fail(Fault::half_leaf, visit.node);
            } else {
                number = static_cast<int32_t>(out.tests.size());
                out.tests.push_back(begin + visit.node);
                const int64_t slot = static_cast<int64_t>(out.children.size());
                out.children.push_back(0);
                out.children.push_back(0);
                stack.push_back({r, slot + 1});
                stack.push_back({l, slot});
            }
            if (visit.slot >= 0) out.children[visit.slot] = number;
        }
        out.test_start.push_back(static_cast<int64_t>(out.tests.size()));
    }
    return out;
}

}  // namespace dm::structure
