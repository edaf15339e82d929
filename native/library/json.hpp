// JSON, as much of it as the header of a .dm file needs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dm::library {

struct Json {
    enum class Kind { null, boolean, number, text, list, object };

    Kind kind = Kind::null;
    bool boolean = false;
    double number = 0;
    std::string text;
    std::vector<Json> list;
    std::map<std::string, Json> object;

    // std::invalid_argument where it is not JSON, or nested deeper than 64.
    static Json read(const std::string& from);

    bool is_null() const { return kind == Kind::null; }
    // A member of an object, or the error that it is not there.
    const Json& at(const std::string& name) const;
    const Json* find(const std::string& name) const;
    // A number; "nan", "inf" and "-inf" are texts.
    double real() const;
    int64_t whole() const;
    bool truth() const;
    const std::string& words() const;
};

}  // namespace dm::library
