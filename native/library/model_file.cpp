#include "library/model_file.hpp"

#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "common/require.hpp"
#include "structure/measure.hpp"

namespace dm::library {
namespace {

using common::require;

constexpr int64_t kMost = int64_t{1} << 31;

int64_t bytes_of(const std::string& dtype) {
    static const std::map<std::string, int64_t> kSizes = {
        {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"U16", 2}, {"I16", 2}, {"F16", 2},
        {"U32", 4},  {"I32", 4}, {"F32", 4}, {"U64", 8}, {"I64", 8}, {"F64", 8}};
    const auto found = kSizes.find(dtype);
    return found == kSizes.end() ? 0 : found->second;
}

template <typename T>
const char* name_of();
template <>
const char* name_of<int8_t>() {
    return "I8";
}
template <>
const char* name_of<uint8_t>() {
    return "U8";
}
template <>
const char* name_of<int32_t>() {
    return "I32";
}
template <>
const char* name_of<int64_t>() {
    return "I64";
}

}  // namespace

ModelFile::ModelFile(std::vector<char> bytes) : bytes_(std::move(bytes)) {
    uint64_t length = 0;
    require(bytes_.size() >= 8, "the file is shorter than 8 bytes");
    for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<uint8_t>(bytes_[i]);
    require(length <= bytes_.size() - 8, "the file is not a .dm file, or it is cut off");
    const Json header = Json::read(std::string(bytes_.data() + 8, static_cast<size_t>(length)));
    const Json& metadata = header.at("__metadata__");
    require(metadata.at("format").words() == "decision-machines",
            "the file is of another format than decision-machines");
    const std::string version = metadata.at("version").words();
    // Version 4 added assemblies of soft trees; a machine is written alike in both.
    if (version != "3" && version != "4")
        throw std::invalid_argument("the file has version " + version +
                                    " of the format, and 3 and 4 are read: save it again in "
                                    "Python");
    about_ = metadata.at("machine").words();
    const Json machine = Json::read(about_);
    require(machine.find("assembly") == nullptr,
            "the file holds an assembly of several machines: save one of them");
    read_arrays(header, bytes_.data() + 8 + length,
                static_cast<int64_t>(bytes_.size() - 8 - length));
    read_columns(machine.at("columns"));
    read_trees();
    read_tests();
    read_output(machine.at("output"));
    read_linear();
}

void ModelFile::read_arrays(const Json& header, const char* start, int64_t size) {
    for (const auto& [name, told] : header.object) {
        if (name == "__metadata__") continue;
        Array array;
        array.dtype = told.at("dtype").words();
        const int64_t item = bytes_of(array.dtype);
        require(item > 0, "an array has a dtype that is not known");
        for (const Json& length : told.at("shape").list) {
            array.shape.push_back(length.whole());
            require(array.shape.back() < kMost && array.n < kMost, "an array is too large");
            array.n *= array.shape.back();
        }
        const auto& offsets = told.at("data_offsets").list;
        require(offsets.size() == 2, "an array has no place in the file");
        const int64_t first = offsets[0].whole(), last = offsets[1].whole();
        require(first <= last && last <= size && array.n <= size && last - first == array.n * item,
                "an array does not lie in the file, which may be cut off");
        array.data = start + first;
        arrays_.emplace(name, std::move(array));
    }
}

const ModelFile::Array* ModelFile::find(const std::string& name) const {
    const auto found = arrays_.find(name);
    return found == arrays_.end() ? nullptr : &found->second;
}

const ModelFile::Array& ModelFile::at(const std::string& name) const {
    const Array* found = find(name);
    if (found == nullptr) throw std::invalid_argument("the file has no array " + name);
    return *found;
}

// Arrays may begin anywhere in the file; those that are read as they are get a place of their own.
template <typename T>
const T* ModelFile::plain(const std::string& name, int64_t n) {
    const Array& array = at(name);
    if (array.dtype != name_of<T>() || (n >= 0 && array.n != n))
        throw std::invalid_argument("the array " + name + " has another dtype or size");
    if constexpr (sizeof(T) == 1) {
        return reinterpret_cast<const T*>(array.data);
    } else {
        auto copied = [&](auto& held) {
            held.emplace_back(static_cast<size_t>(array.n) + 1);  // never an empty one
            if (array.n) std::memcpy(held.back().data(), array.data, array.n * sizeof(T));
            return held.back().data();
        };
        if constexpr (std::is_same_v<T, int32_t>)
            return copied(ints_);
        else
            return copied(longs_);
    }
}

template <typename T>
const T* ModelFile::cast(const std::string& name, int64_t n, bool through_float) {
    const Array& array = at(name);
    const bool single = array.dtype == "F32";
    if ((!single && array.dtype != "F64") || array.n != n)
        throw std::invalid_argument("the array " + name + " has another dtype or size");
    std::vector<T> found(static_cast<size_t>(n) + 1);
    for (int64_t i = 0; i < n; ++i) {
        double value;
        if (single) {
            float held;
            std::memcpy(&held, array.data + i * 4, 4);
            value = held;
        } else {
            std::memcpy(&value, array.data + i * 8, 8);
        }
        found[static_cast<size_t>(i)] =
            static_cast<T>(through_float ? static_cast<float>(value) : value);
    }
    if constexpr (std::is_same_v<T, float>)
        return floats_.emplace_back(std::move(found)).data();
    else
        return doubles_.emplace_back(std::move(found)).data();
}

void ModelFile::check_starts(const int64_t* start, int64_t n, int64_t end, const char* what) const {
    require(start[0] == 0 && start[n] == end, what);
    for (int64_t i = 0; i < n; ++i) require(start[i] <= start[i + 1], what);
}

void ModelFile::check_range(const int32_t* array, int64_t n, int64_t least, int64_t end,
                            const char* what) const {
    for (int64_t i = 0; i < n; ++i) require(array[i] >= least && array[i] < end, what);
}

void ModelFile::read_columns(const Json& columns) {
    auto& to = view_.columns;
    require(columns.at("edges").list.empty(),
            "columns.edges, features that are read as ranges, are not run here");
    require(columns.at("accepted").is_null(),
            "columns.accepted, values that the model refuses, are not checked here");
    require(find("columns.look_ups.keys") == nullptr,
            "columns.look_ups, statistics of combinations, are not run here");
    to.n_features = columns.at("n_features").whole();
    require(to.n_features < kMost, "n_features is too large");
    to.n = at("columns.feature").n;
    to.feature = plain<int32_t>("columns.feature", -1);
    to.rule = plain<uint8_t>("columns.rule", to.n);
    to.single = columns.at("dtype").words() == "float32";
    require(to.single || columns.at("dtype").words() == "float64", "columns.dtype is not known");
    const Json& integers = columns.at("integers_as");
    to.integers_single = !integers.is_null() && integers.words() == "float32";
    to.missing_value = columns.at("missing_value").real();
    if (to.single) to.missing_value = static_cast<float>(to.missing_value);
    to.absent = columns.at("absent").real();
    check_range(to.feature, to.n, 0, to.n_features, "a column of no feature");
    int64_t n_members = 0;
    for (int64_t c = 0; c < to.n; ++c) {
        require(to.rule[c] <= static_cast<uint8_t>(engine::Rule::member), "a column of no rule");
        n_members += to.rule_of(c) == engine::Rule::member;
    }
    if (!columns.at("sets").is_null()) read_sets(columns.at("sets"));
    require(n_members == view_.sets.n, "one set of categories for each column that has them");
}

void ModelFile::read_sets(const Json& sets) {
    auto& to = view_.sets;
    to.n = at("columns.sets.outside").n;
    const int64_t n_members = at("columns.sets.members").n;
    to.start = plain<int64_t>("columns.sets.start", to.n + 1);
    to.members = plain<int64_t>("columns.sets.members", n_members);
    to.answers = plain<int8_t>("columns.sets.answer", n_members);
    to.outside = plain<int8_t>("columns.sets.outside", to.n);
    to.negative_fractions = sets.at("negative_fractions").truth();
    to.whole = sets.at("whole").truth();
    check_starts(to.start, to.n, n_members, "the sets do not cover their members");
    for (int64_t s = 0; s < to.n; ++s)
        for (int64_t i = to.start[s]; i < to.start[s + 1]; ++i)
            require(to.members[i] >= 0 && to.members[i] < kMost &&
                        (i == to.start[s] || to.members[i - 1] < to.members[i]),
                    "the members of a set do not ascend");
}

void ModelFile::read_trees() {
    auto& to = view_.trees;
    to.n = at("trees.feeds").n;
    to.n_tests = at("t").n;
    require(to.n_leaves() < kMost, "more than 2**31 leaves");
    to.children = plain<int32_t>("children", 2 * to.n_tests);
    to.test_start = plain<int64_t>("trees.test_start", to.n + 1);
    to.feeds = plain<int32_t>("trees.feeds", to.n);
    check_starts(to.test_start, to.n, to.n_tests, "the trees do not cover the tests");
    std::vector<int32_t> depth(to.n_tests + 1), first(to.n_tests + 1), leaves(to.n_tests + 1),
        leaf_depth(to.n_leaves() + 1);
    const auto breach = structure::check(to.children, to.test_start, to.n, depth.data(),
                                         first.data(), leaves.data(), leaf_depth.data());
    require(breach.rule == structure::Rule::ok,
            "children is not that of binary trees, parents before children, leaves left to right");
}

void ModelFile::read_tests() {
    auto& to = view_.tests;
    const int64_t n = view_.trees.n_tests;
    to.t = cast<double>("t", n);
    to.missing = plain<int8_t>("missing", n);
    for (int64_t j = 0; j < n; ++j)
        require(to.missing[j] == -1 || to.missing[j] == 1, "missing is neither -1 nor 1");
    if (find("selection") != nullptr) {
        to.selection = plain<int32_t>("selection", n);
        check_range(to.selection, n, 0, view_.columns.n, "a test of no column");
        return;
    }
    const int64_t terms = at("selection.data").n;
    auto longs = [&](const char* name, int64_t size) {
        if (at(name).dtype == "I64") return plain<int64_t>(name, size);
        const int32_t* narrow = plain<int32_t>(name, size);
        return static_cast<const int64_t*>(longs_.emplace_back(narrow, narrow + size).data());
    };
    to.weight_start = longs("selection.indptr", n + 1);
    check_starts(to.weight_start, n, terms, "the weights do not cover their terms");
    const int64_t* column = longs("selection.indices", terms);
    std::vector<int32_t> columns(static_cast<size_t>(terms) + 1);
    for (int64_t i = 0; i < terms; ++i) {
        require(column[i] >= 0 && column[i] < view_.columns.n, "a weight of no column");
        columns[static_cast<size_t>(i)] = static_cast<int32_t>(column[i]);
    }
    to.weight_column = ints_.emplace_back(std::move(columns)).data();
    to.weight = view_.columns.single
                    ? static_cast<const void*>(cast<float>("selection.data", terms))
                    : cast<double>("selection.data", terms);
}

void ModelFile::read_output(const Json& output) {
    auto& to = view_.output;
    const Array& V = at("V");
    to.n = at("output.base").n;
    require(V.shape.size() == 2 && V.shape[0] == view_.trees.n_leaves(), "V is not (leaves, ...)");
    const int32_t* feeds = view_.trees.feeds;
    to.narrow = V.shape[1] == 1;
    for (int64_t i = 0; i < view_.trees.n; ++i) to.narrow = to.narrow && feeds[i] >= 0;
    require(V.shape[1] == to.width() && to.n >= 1, "V has another width than the outputs");
    check_range(feeds, view_.trees.n, to.narrow ? 0 : -1, to.narrow ? to.n : 0,
                "a tree that feeds no output");
    to.single = output.at("dtype").words() == "float32";
    require(to.single || output.at("dtype").words() == "float64", "output.dtype is not known");
    to.V = to.single ? static_cast<const void*>(cast<float>("V", V.n)) : cast<double>("V", V.n);
    to.base = cast<double>("output.base", to.n);
    to.base_first = output.at("base_first").truth();
    to.divisor = output.at("divisor").real();
    to.scale = output.at("scale").real();
    const std::string& aggregate = output.at("aggregate").words();
    if (aggregate != "sum" && aggregate != "min" && aggregate != "max")
        throw std::invalid_argument("output.aggregate is " + aggregate + ", which is not run here");
    to.aggregate = aggregate == "sum"   ? engine::Aggregate::sum
                   : aggregate == "min" ? engine::Aggregate::min
                                        : engine::Aggregate::max;
}

void ModelFile::read_linear() {
    if (find("linear.start") == nullptr) return;
    auto& to = view_.linear;
    const int64_t n_leaves = view_.trees.n_leaves(), width = view_.output.width();
    const int64_t terms = at("linear.feature").n;
    const std::string& dtype = at("linear.intercept").dtype;
    require(dtype == at("linear.coefficient").dtype,
            "linear leaves whose intercepts and coefficients differ in dtype are not run here");
    to.single = dtype == "F32";
    to.start = plain<int64_t>("linear.start", n_leaves + 1);
    check_starts(to.start, n_leaves, terms, "linear: start does not cover the terms");
    to.feature = plain<int32_t>("linear.feature", terms);
    check_range(to.feature, terms, 0, view_.columns.n_features, "linear: a term of no feature");
    to.intercept = cast<double>("linear.intercept", n_leaves * width);
    to.coefficient = cast<double>("linear.coefficient", terms * width);
    to.constant = cast<double>("V", n_leaves * width, to.single);
}

}  // namespace dm::library
