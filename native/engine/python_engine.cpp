#include "engine/python_engine.hpp"

#include "common/interruptible.hpp"
#include "common/require.hpp"
#include "engine/few.hpp"
#include "engine/kernels/find.hpp"
#include "engine/python_rows.hpp"

namespace nb = nanobind;

namespace dm::engine {
namespace {

using common::require;

constexpr int64_t kRowsWithGil = 16;  // letting go of it would cost more than it gives

}  // namespace

PyEngine::PyEngine(nb::handle_t<HeldMachine> machine, const std::string& target, Kind kind)
    : machine_(nb::borrow(machine)),
      view_(nb::cast<const HeldMachine&>(machine).view()),
      array_type_(nb::module_::import_("numpy").attr("ndarray")),
      one_row_(nb::make_tuple(1, view_.output.n), view_.output.single),
      kernels_(find_kernels(target)) {
    require(kernels_ != nullptr, "no such target on this processor");
    engine_ = compiled({kind, true});
}

bool PyEngine::array(nb::handle X, nb::handle out, bool wants_leaves, int64_t n_threads) const {
    const View x(X);
    Source source;
    if (!read_array(x, view_.columns, source)) return false;
    run(source, out, wants_leaves, n_threads);
    return true;
}

bool PyEngine::features(nb::sequence columns, int64_t n_rows, nb::handle out, bool wants_leaves,
                        int64_t n_threads) const {
    std::vector<GivenFeature> views;
    views.reserve(nb::len(columns));
    for (nb::handle column : columns) views.emplace_back(column);
    Source source;
    if (!read_features(views, n_rows, view_.columns, source)) return false;
    run(source, out, wants_leaves, n_threads);
    return true;
}

bool PyEngine::sparse(nb::handle data, nb::handle indices, nb::handle indptr, nb::handle out,
                      bool wants_leaves, int64_t n_threads) const {
    const View values(data), columns(indices), starts(indptr);
    Source source;
    if (!read_sparse(values, columns, starts, view_.columns, source)) return false;
    run(source, out, wants_leaves, n_threads);
    return true;
}

nb::object PyEngine::row(nb::handle X) const {
    if (reinterpret_cast<PyObject*>(Py_TYPE(X.ptr())) != array_type_.ptr()) return nb::none();
    const View x(X);
    if (!x.held() || x->ndim != 2 || x->shape[0] != 1 || x->shape[1] != view_.columns.n_features)
        return nb::none();
    Source source;
    if (!read_array(x, view_.columns, source)) return nb::none();
    nb::object out = one_row_.make();
    engine_for(1)->margin(source, 1, common::values_of(out)->buf);
    return out;
}

void PyEngine::row_margins(const void* x, void* out) const {
    Source source;
    const bool single = view_.columns.single;
    source.n_rows = 1;
    source.is_array = true;
    source.first = {static_cast<const char*>(x), 0, single ? Dtype::f32 : Dtype::f64};
    source.next = single ? 4 : 8;
    engine_for(1)->margin(source, 1, out);
}

Description PyEngine::describe() const {
    const Plan& plan = engine_->plan;
    Description found{kernels_->name,
                      {},
                      {},
                      static_cast<int64_t>(plan.sections.size()),
                      0,
                      0,
                      plan.n_bytes(),
                      few_ ? few_->plan.n_bytes() : 0};
    for (const Tree& tree : plan.trees) found.kernels.push_back(entry_of(tree.kind).name);
    for (const Section& section : plan.sections)
        for (const Group& group : section.groups) {
            found.groups.emplace_back(group.first, group.last);
            found.n_distinct_tests += static_cast<int64_t>(group.tests.size());
            found.n_selects += static_cast<int64_t>(group.selects.size());
        }
    return found;
}

std::shared_ptr<Engine> PyEngine::compiled(const Wanted& wanted) const {
    nb::gil_scoped_release release;
    Plan plan = compile(view_, kernels_, wanted);
    if (engine_) plan.share_thresholds(engine_->plan);
    return std::make_shared<Engine>(std::move(plan));
}

std::shared_ptr<const Engine> PyEngine::engine_for(int64_t n_rows) const {
    if (n_rows >= enough_rows(*kernels_) || engine_->plan.can_walk()) return engine_;
    if (!few_) {
        std::shared_ptr<Engine> made = compiled({kind_for_few(view_, *kernels_), false});
        if (!few_) few_ = std::move(made);
    }
    return takes_few(few_->plan, *kernels_, n_rows) ? few_ : engine_;
}

void PyEngine::run(const Source& source, nb::handle out, bool wants_leaves,
                   int64_t n_threads) const {
    const View to(out, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE);
    const int64_t width = wants_leaves ? view_.trees.n : view_.output.n;
    const int64_t item = wants_leaves || view_.output.single ? 4 : 8;
    require(to.held() && to->len == source.n_rows * width * item && to->itemsize == item,
            "out has the wrong shape or dtype");
    require(n_threads >= 1, "n_threads must be at least 1");
    const std::shared_ptr<const Engine> engine = engine_for(source.n_rows);
    auto call = [&] {
        if (wants_leaves)
            engine->apply(source, n_threads, static_cast<int32_t*>(to->buf));
        else
            engine->margin(source, n_threads, to->buf);
    };
    if (source.n_rows < kRowsWithGil) return call();
    common::interruptible(call);
}

}  // namespace dm::engine
