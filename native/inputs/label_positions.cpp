#include "inputs/label_positions.hpp"

#include <cstring>
#include <limits>

#include "common/require.hpp"
#include "common/view.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dm::inputs {
namespace {

using common::require;
using common::View;

constexpr int64_t kMostRemembered = 1 << 16;  // labels that the model does not know
constexpr size_t kRecent = 4096;              // objects whose positions are at hand in one call

double as_double(nb::handle number) {
    const double found = PyFloat_AsDouble(number.ptr());
    if (found == -1.0 && PyErr_Occurred()) throw nb::python_error();
    return found;
}

// The output, float64 for each row.
double* doubles_of(const View& out, int64_t n) {
    require(out.held() && out->itemsize == 8 && out->len == 8 * n, "out must be float64 by row");
    return static_cast<double*>(out->buf);
}

}  // namespace

uint64_t TextTable::hash_of(std::string_view text) {
    uint64_t hash = 0x9E3779B97F4A7C15ull ^ text.size();
    size_t i = 0;
    auto mix = [&](uint64_t word) {
        hash = (hash ^ word) * 0xD6E8FEB86659FD93ull;
        hash ^= hash >> 32;
    };
    for (; i + 8 <= text.size(); i += 8) {
        uint64_t word;
        std::memcpy(&word, text.data() + i, 8);
        mix(word);
    }
    uint64_t rest = 0;
    std::memcpy(&rest, text.data() + i, text.size() - i);
    mix(rest);
    return hash ^ hash >> 29;
}

// The slot of a text, or the empty one where it would be.
size_t TextTable::place_of(std::string_view text, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        const Slot& slot = slots_[i];
        if (!slot.is_used) return i;
        if (slot.hash == hash && slot.size == text.size() &&
            std::memcmp(texts_.data() + slot.at, text.data(), text.size()) == 0)
            return i;
    }
}

const double* TextTable::find(std::string_view text) const {
    const Slot& slot = slots_[place_of(text, hash_of(text))];
    return slot.is_used ? &slot.position : nullptr;
}

void TextTable::insert(std::string_view text, double position) {
    if (2 * (n_ + 1) > slots_.size()) {
        std::vector<Slot> old(2 * slots_.size());
        old.swap(slots_);
        const size_t mask = slots_.size() - 1;
        for (const Slot& slot : old) {
            if (!slot.is_used) continue;
            size_t i = slot.hash & mask;
            while (slots_[i].is_used) i = (i + 1) & mask;
            slots_[i] = slot;
        }
    }
    put(text, hash_of(text), position);
}

void TextTable::put(std::string_view text, uint64_t hash, double position) {
    Slot& slot = slots_[place_of(text, hash)];
    if (!slot.is_used) {
        slot = {hash, texts_.size(), static_cast<uint32_t>(text.size()), true, position};
        texts_.append(text);
        ++n_;
    }
    slot.position = position;
}

LabelPositions::LabelPositions(nb::dict known, nb::callable ask, bool only_text)
    : known_(std::move(known)), ask_(std::move(ask)), only_text_(only_text) {
    for (auto [label, position] : known_) {
        if (!PyUnicode_Check(label.ptr())) continue;
        Py_ssize_t size;
        const char* text = PyUnicode_AsUTF8AndSize(label.ptr(), &size);
        if (!text) {  // a lone surrogate, which no Arrow text has
            PyErr_Clear();
            continue;
        }
        texts_.insert({text, static_cast<size_t>(size)}, as_double(position));
    }
}

double LabelPositions::asked(nb::handle label) {
    const nb::object found = ask_(label);
    const double position = as_double(found);
    // NaN equals nothing, itself included: it would never be found again.
    if (!PyFloat_Check(label.ptr()) && static_cast<int64_t>(nb::len(known_)) < kMostRemembered &&
        PyDict_SetItem(known_.ptr(), label.ptr(), found.ptr()) != 0)
        throw nb::python_error();
    return position;
}

double LabelPositions::of(nb::handle label) {
    if (!only_text_ || PyUnicode_Check(label.ptr()) || PyLong_CheckExact(label.ptr())) {
        PyObject* found = PyDict_GetItemWithError(known_.ptr(), label.ptr());
        if (found) return as_double(found);
        if (PyErr_Occurred()) throw nb::python_error();
    }
    return asked(label);
}

void LabelPositions::objects(nb::handle values, nb::handle out) {
    const View from(values), to(out, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE);
    require(from.held() && from->ndim == 1 && from->format && std::strcmp(from->format, "O") == 0,
            "values must be an array of objects");
    const int64_t n = from->shape[0];
    double* position = doubles_of(to, n);
    struct Recent {
        PyObject* object = nullptr;
        double position = 0;
    };
    std::vector<Recent> recent(n > 64 ? kRecent : 1);
    const char* at = static_cast<const char*>(from->buf);
    for (int64_t i = 0; i < n; ++i, at += from->strides[0]) {
        PyObject* object;
        std::memcpy(&object, at, sizeof object);
        Recent& own = recent[reinterpret_cast<uintptr_t>(object) / 16 % recent.size()];
        if (own.object != object) {
            nb::object held = nb::borrow(object ? object : Py_None);
            own = {object, of(held)};
        }
        position[i] = own.position;
    }
}

double LabelPositions::of_text(std::string_view text) {
    if (const double* found = texts_.find(text)) return *found;
    const nb::object label = nb::steal(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
    if (!label) throw nb::python_error();
    const double position = of(label);
    if (texts_.size() < kMostRemembered) texts_.insert(text, position);
    return position;
}

void LabelPositions::text(nb::handle data, nb::handle offsets, bool wide, nb::handle valid,
                          int64_t first, nb::handle out) {
    const View to(out, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE), starts(offsets, PyBUF_SIMPLE);
    require(to.held() && to->itemsize == 8, "out must be float64 by row");
    const int64_t n = to->len / 8, item = wide ? 8 : 4;
    double* position = doubles_of(to, n);
    if (n == 0) return;
    require(first >= 0 && starts.held() && starts->len >= (first + n + 1) * item,
            "offsets do not cover the rows");
    const View bits(valid, PyBUF_SIMPLE), bytes(data, PyBUF_SIMPLE);
    require(valid.is_none() || (bits.held() && bits->len >= (first + n + 7) / 8),
            "valid does not cover the rows");
    const int64_t size = bytes.held() ? bytes->len : 0;
    const char* texts = bytes.held() ? static_cast<const char*>(bytes->buf) : "";
    auto offset = [&](int64_t row) {
        const char* at = static_cast<const char*>(starts->buf) + (first + row) * item;
        if (wide) {
            int64_t found;
            std::memcpy(&found, at, 8);
            return found;
        }
        int32_t found;
        std::memcpy(&found, at, 4);
        return int64_t{found};
    };
    bool has_none = false;
    double none = 0;
    for (int64_t i = 0; i < n; ++i) {
        if (!valid.is_none() &&
            !(static_cast<const uint8_t*>(bits->buf)[(first + i) / 8] >> ((first + i) % 8) & 1)) {
            if (!has_none) none = of(nb::none());
            has_none = true;
            position[i] = none;
            continue;
        }
        const int64_t from = offset(i), end = offset(i + 1);
        require(from >= 0 && from <= end && end <= size, "offsets reach beyond the text");
        position[i] = of_text({texts + from, static_cast<size_t>(end - from)});
    }
}

void bind_label_positions(nb::module_& m) {
    nb::class_<LabelPositions>(
        m, "LabelPositions", "Labels of a feature as positions, each distinct one looked up once.")
        .def(nb::init<nb::dict, nb::callable, bool>(), "known"_a, "ask"_a, "only_text"_a)
        .def("of", &LabelPositions::of, "label"_a.none(),
             nb::sig("def of(self, label: object) -> float"))
        .def("objects", &LabelPositions::objects, "values"_a, "out"_a,
             "Positions of an array of objects into `out`, float64.")
        .def("text", &LabelPositions::text, "data"_a.none(), "offsets"_a, "wide"_a,
             "valid"_a.none(), "first"_a, "out"_a,
             "The same of Arrow text, from row `first` of its buffers on.");
}

}  // namespace dm::inputs
