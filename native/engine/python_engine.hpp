// A compiled machine as Python has it: it reads rows where they lie and writes where it is told.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/empty_array.hpp"
#include "engine/engine.hpp"
#include "engine/python_machine.hpp"

namespace dm::engine {

struct Description {
    std::string target;
    std::vector<std::string> kernels;                 // by tree
    std::vector<std::pair<int64_t, int64_t>> groups;  // of trees
    int64_t n_sections, n_distinct_tests, n_selects, n_bytes, n_few_bytes;
};

class PyEngine {
public:
    // `machine` is a Machine: plans read its arrays where they lie.
    PyEngine(nanobind::handle_t<HeldMachine> machine, const std::string& target, Kind kind);

    bool array(nanobind::handle X, nanobind::handle out, bool wants_leaves,
               int64_t n_threads) const;
    bool features(nanobind::sequence columns, int64_t n_rows, nanobind::handle out,
                  bool wants_leaves, int64_t n_threads) const;
    bool sparse(nanobind::handle data, nanobind::handle indices, nanobind::handle indptr,
                nanobind::handle out, bool wants_leaves, int64_t n_threads) const;
    // All in one call: the interpreter's share of a prediction is as large as the engine's.
    nanobind::object row(nanobind::handle X) const;
    // Margins of one row of features, floats or doubles as the columns are, with the GIL held.
    void row_margins(const void* x, void* out) const;
    Description describe() const;
    const Machine& machine() const { return view_; }

private:
    std::shared_ptr<Engine> compiled(const Wanted& wanted) const;
    // The engine for so many rows, which the caller holds during its call.
    std::shared_ptr<const Engine> engine_for(int64_t n_rows) const;
    void run(const Source& source, nanobind::handle out, bool wants_leaves,
             int64_t n_threads) const;

    nanobind::object machine_;
    const Machine& view_;
    nanobind::object array_type_;
    common::EmptyArray one_row_;
    const Kernels* kernels_;
    std::shared_ptr<const Engine> engine_;
    // For few rows, where engine_ cannot walk: compiled when they come. Guarded by the GIL, and a
    // second thread that comes meanwhile compiles its own, which replaces an equal one.
    mutable std::shared_ptr<const Engine> few_;
};

}  // namespace dm::engine
