// Python's door to the training step of trees that classify: check, release the GIL, call.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <mutex>

#include "common/arrays.hpp"
#include "common/buffer.hpp"
#include "common/require.hpp"
#include "common/targets.hpp"
#include "soft/class_step.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dm::soft {

const ClassKernels* find_class_kernels(const std::string& name) {
    return common::find_kernels<ClassKernels>(DM_OF_EVERY_TARGET(class_kernels), name);
}

namespace {

using common::In;
using common::Out;
using common::require;

template <typename A>
int64_t size(const A& array, int axis) {
    return static_cast<int64_t>(array.shape(axis));
}

// Trees of one shape, and the memory of their steps.
class ClassTrees {
public:
    ClassTrees(const std::string& target, int64_t n_trees, int64_t depth, int64_t n_features,
               int64_t n_classes)
        : kernels_(find_class_kernels(target)), sizes_{n_trees, depth, n_features, n_classes, 0} {
        require(kernels_ != nullptr, "this processor has no such target");
        require(n_trees >= 1 && n_features >= 1 && n_classes >= 1, "a size is below 1");
        require(depth >= 1 && depth <= 20, "depth must be from 1 to 20");
    }

    double gradient(In<float, 2> X, In<float, 2> target, In<int64_t, 1> rows, In<float, 1> beta,
                    float least, In<float, 1> parameters, Out<float, 1> gradient) {
        ClassSizes a = sizes_;
        a.n_rows = size(rows, 0);
        require(a.n_rows >= 1, "a step needs a row");
        require(size(X, 1) == a.n_features, "X must be (M, n)");
        require(size(target, 0) == size(X, 0) && size(target, 1) == a.n_classes,
                "target must be (M, K)");
        require(size(beta, 0) == a.n_trees, "beta must be (R,)");
        require(least > 0, "least must be above 0");
        require(size(parameters, 0) == n_parameters() && size(gradient, 0) == n_parameters(),
                "parameters and gradient must be (R J (n + 1) + R L K,)");
        const int64_t* row = rows.data();
        for (int64_t i = 0; i < a.n_rows; ++i)
            require(row[i] >= 0 && row[i] < size(X, 0), "rows must be from 0 to below M");
        nb::gil_scoped_release release;
        const std::lock_guard<std::mutex> alone(in_use_);
        scratch_.reserve(kernels_->scratch(a) * 4);
        const ClassStep step{
            a,
            X.data(),
            target.data(),
            row,
            parameters.data(),
            parameters.data() + in_tests(),
            beta.data(),
            least,
            gradient.data(),
            gradient.data() + in_tests(),
            scratch_.as<float>(),
        };
        return kernels_->gradient(step) / static_cast<double>(a.n_rows * a.n_trees);
    }

    void update(In<float, 1> gradient, Out<float, 1> parameters, Out<float, 1> first,
                Out<float, 1> second, In<float, 1> rate, In<float, 1> decay, In<float, 1> threshold,
                In<uint8_t, 1> is_unit, float keep_first, float keep_second) {
        const int64_t n = n_parameters(), R = sizes_.n_trees;
        require(size(gradient, 0) == n && size(parameters, 0) == n && size(first, 0) == n &&
                    size(second, 0) == n,
                "gradient, parameters and memory must be (R J (n + 1) + R L K,)");
        require(size(rate, 0) == R && size(decay, 0) == R && size(threshold, 0) == R &&
                    size(is_unit, 0) == R,
                "rate, decay, threshold and is_unit must be (R,)");
        const ClassUpdate update{sizes_,       parameters.data(), gradient.data(),
                                 first.data(), second.data(),     rate.data(),
                                 decay.data(), threshold.data(),  is_unit.data(),
                                 keep_first,   keep_second};
        nb::gil_scoped_release release;
        kernels_->update(update);
    }

private:
    int64_t in_tests() const { return sizes_.n_trees * sizes_.n_tests() * (sizes_.n_features + 1); }
    int64_t n_parameters() const {
        return in_tests() + sizes_.n_trees * sizes_.n_leaves() * sizes_.n_classes;
    }

    const ClassKernels* kernels_;
    ClassSizes sizes_;
    common::Buffer scratch_;
    std::mutex in_use_;  // of the scratch
};

}  // namespace

void bind_class_step(nb::module_& m) {
    nb::class_<ClassTrees>(m, "ClassTrees", "The training step of soft trees that classify.")
        .def(nb::init<const std::string&, int64_t, int64_t, int64_t, int64_t>(), "target"_a,
             "n_trees"_a, "depth"_a, "n_features"_a, "n_classes"_a)
        // Arrays are taken as they are: a converted copy of an output would be lost.
        .def("gradient", &ClassTrees::gradient, "X"_a.noconvert(), "target"_a.noconvert(),
             "rows"_a.noconvert(), "beta"_a.noconvert(), "least"_a, "parameters"_a.noconvert(),
             "gradient"_a.noconvert(), "Write the gradient; the mean loss.")
        .def("update", &ClassTrees::update, "gradient"_a.noconvert(), "parameters"_a.noconvert(),
             "first"_a.noconvert(), "second"_a.noconvert(), "rate"_a.noconvert(),
             "decay"_a.noconvert(), "threshold"_a.noconvert(), "is_unit"_a.noconvert(),
             "keep_first"_a, "keep_second"_a,
             "One step of Adam, then decay, soft thresholds and lengths of the tests' weights.");
}

}  // namespace dm::soft
