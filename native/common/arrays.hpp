// Arrays from Python, and vectors handed to it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <utility>
#include <vector>

namespace dm::common {

template <typename T, int N>
using In = nanobind::ndarray<const T, nanobind::ndim<N>, nanobind::c_contig, nanobind::device::cpu>;
template <typename T, int N>
using Out = nanobind::ndarray<T, nanobind::ndim<N>, nanobind::c_contig, nanobind::device::cpu>;
template <typename T, int N>
using Array = nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<N>>;

// Hand a vector to NumPy without copying it.
template <typename T>
Array<T, 1> give(std::vector<T>&& values) {
    auto owner = std::make_unique<std::vector<T>>(std::move(values));
    T* data = owner->data();
    const size_t size = owner->size();
    nanobind::capsule free(owner.release(),
                           [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Array<T, 1>(data, {size}, free);
}

}  // namespace dm::common
