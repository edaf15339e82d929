// A .dm file as the machine that the engine reads (decision_machines.machine.schema has the
// format).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "engine/plan/machine.hpp"
#include "library/json.hpp"

namespace dm::library {

// Holds the bytes, and the arrays that had to be cast, that its view points into.
class ModelFile {
public:
    // std::invalid_argument where the bytes are not a whole file, or hold what is not run here.
    explicit ModelFile(std::vector<char> bytes);
    ModelFile(const ModelFile&) = delete;

    const engine::Machine& view() const { return view_; }
    const std::string& about() const { return about_; }

private:
    struct Array {
        std::string dtype;
        std::vector<int64_t> shape;
        const char* data = nullptr;
        int64_t n = 1;
    };

    void read_arrays(const Json& header, const char* start, int64_t size);
    void read_columns(const Json& columns);
    void read_sets(const Json& sets);
    void read_trees();
    void read_tests();
    void read_output(const Json& output);
    void read_linear();

    const Array* find(const std::string& name) const;
    const Array& at(const std::string& name) const;
    // An array of one dtype, where it lies, and of so many entries (-1: any number).
    template <typename T>
    const T* plain(const std::string& name, int64_t n);
    // Numbers of either float as T.
    template <typename T>
    const T* cast(const std::string& name, int64_t n, bool through_float = false);
    void check_starts(const int64_t* start, int64_t n, int64_t end, const char* what) const;
    void check_range(const int32_t* array, int64_t n, int64_t least, int64_t end,
                     const char* what) const;

    std::vector<char> bytes_;
    std::map<std::string, Array> arrays_;
    std::deque<std::vector<double>> doubles_;
    std::deque<std::vector<float>> floats_;
    std::deque<std::vector<int64_t>> longs_;
    std::deque<std::vector<int32_t>> ints_;
    std::string about_;
    engine::Machine view_;
};

}  // namespace dm::library
