// Work without Python's lock that a signal such as Ctrl-C stops.
#pragma once

#include <nanobind/nanobind.h>

#include "common/interrupts.hpp"

namespace dm::common {

// What `work` gives. It runs without the GIL; where a signal's handler raises meanwhile (Ctrl-C
// raises KeyboardInterrupt), what it raised is thrown as soon as `work` polls. Handlers run on
// Python's main thread alone: called from another thread, the work goes on to its end.
template <typename Work>
auto interruptible(const Work& work) {
    try {
        nanobind::gil_scoped_release release;
        const Interrupts interrupts([] {
            nanobind::gil_scoped_acquire acquire;
            return PyErr_CheckSignals() != 0;
        });
        return work();
    } catch (const Interrupted&) {
        throw nanobind::python_error();  // as the handler left it
    }
}

}  // namespace dm::common
