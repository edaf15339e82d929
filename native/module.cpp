// The module that Python imports; each room binds its own functions and classes.
#include <nanobind/nanobind.h>

namespace dm::common {
void bind_libm(nanobind::module_& m);  // common/libm.cpp
}
namespace dm::structure {
void bind(nanobind::module_& m);  // structure/bindings.cpp
}
namespace dm::inputs {
void bind_label_positions(nanobind::module_& m);  // inputs/label_positions.cpp
void bind_row_orders(nanobind::module_& m);       // inputs/row_orders.cpp
void bind_row_reader(nanobind::module_& m);       // inputs/row_reader.cpp
}  // namespace dm::inputs
namespace dm::engine {
void bind(nanobind::module_& m);  // engine/bindings.cpp
}
namespace dm::look_ups {
void bind(nanobind::module_& m);  // look_ups/bindings.cpp
}
namespace dm::soft {
void bind(nanobind::module_& m);             // soft/bindings.cpp
void bind_class_step(nanobind::module_& m);  // soft/class_step_bindings.cpp
}  // namespace dm::soft
namespace dm::routed {
void bind(nanobind::module_& m);  // routed/bindings.cpp
}
namespace dm::search {
void bind(nanobind::module_& m);  // search/bindings.cpp
}
namespace dm::optimal {
void bind(nanobind::module_& m);  // optimal/bindings.cpp
}
namespace dm::shapley {
void bind(nanobind::module_& m);  // shapley/bindings.cpp
}

NB_MODULE(_native, m) {
    m.doc() = "C++ kernels of decision_machines.";
    dm::common::bind_libm(m);
    dm::structure::bind(m);
    dm::inputs::bind_label_positions(m);
    dm::inputs::bind_row_orders(m);
    dm::inputs::bind_row_reader(m);
    dm::engine::bind(m);
    dm::look_ups::bind(m);
    dm::soft::bind(m);
    dm::soft::bind_class_step(m);
    dm::routed::bind(m);
    dm::search::bind(m);
    dm::optimal::bind(m);
    dm::shapley::bind(m);
}
