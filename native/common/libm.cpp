// The C library's own functions, one value at a time: what other libraries call for their links.
// NumPy and SciPy bring exponentials of their own, which differ in the last bit on some processors.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <string>

namespace nb = nanobind;
using namespace nb::literals;

namespace dm::common {
namespace {

template <typename T>
using Values = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T>
void replace(const std::string& function, Values<T> x) {  // x: (n,)  in and out
    T (*f)(T) = nullptr;
    if (function == "exp") f = [](T v) { return std::exp(v); };
    if (function == "exp2") f = [](T v) { return std::exp2(v); };
    if (function == "log") f = [](T v) { return std::log(v); };
    if (function == "expm1") f = [](T v) { return std::expm1(v); };
    if (function == "log1p") f = [](T v) { return std::log1p(v); };
    if (f == nullptr) throw std::invalid_argument("no such function: " + function);
    T* values = x.data();
    const size_t n = x.shape(0);
    nb::gil_scoped_release release;
    for (size_t i = 0; i < n; ++i) values[i] = f(values[i]);
}

}  // namespace

void bind_libm(nb::module_& m) {
    m.def("libm", &replace<float>, "function"_a, "x"_a.noconvert());
    m.def("libm", &replace<double>, "function"_a, "x"_a.noconvert());
}

}  // namespace dm::common
