#include "library/json.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>

#include "common/require.hpp"

namespace dm::library {
namespace {

using common::require;

constexpr int kDeepest = 64;

class Reader {
public:
    explicit Reader(const std::string& from) : at_(from.c_str()), end_(at_ + from.size()) {}

    Json whole() {
        Json found = value(0);
        blanks();
        require(at_ == end_, "the header has more than one JSON value");
        return found;
    }

private:
    void blanks() {
        while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
    }

    char next() {
        blanks();
        require(at_ < end_, "the header's JSON ends too early");
        return *at_;
    }

    bool skip(char c) {
        if (next() != c) return false;
        ++at_;
        return true;
    }

    void word(const char* letters) {
        for (; *letters; ++letters, ++at_)
            require(at_ < end_ && *at_ == *letters, "the header is not JSON");
    }

    Json value(int depth) {
        require(depth < kDeepest, "the header's JSON is nested too deep");
        Json found;
        switch (next()) {
            case '{': return object(depth);
            case '[': return list(depth);
            case '"':
                found.kind = Json::Kind::text;
                found.text = text();
                return found;
            case 't':
            case 'f':
                found.kind = Json::Kind::boolean;
                found.boolean = *at_ == 't';
                word(found.boolean ? "true" : "false");
                return found;
            case 'n': word("null"); return found;
        }
        char* stop = nullptr;
        found.kind = Json::Kind::number;
        require(*at_ == '-' || (*at_ >= '0' && *at_ <= '9'), "the header is not JSON");
        found.number = std::strtod(at_, &stop);  // the text ends in a null byte
        require(stop > at_ && stop <= end_, "the header is not JSON");
        at_ = stop;
        return found;
    }

    Json object(int depth) {
        Json found;
        found.kind = Json::Kind::object;
        ++at_;
        if (skip('}')) return found;
        do {
            require(next() == '"', "the header is not JSON");
            std::string name = text();
            require(skip(':'), "the header is not JSON");
            require(found.object.emplace(std::move(name), value(depth + 1)).second,
                    "the header gives a name twice");
        } while (skip(','));
        require(skip('}'), "the header is not JSON");
        return found;
    }

    Json list(int depth) {
        Json found;
        found.kind = Json::Kind::list;
        ++at_;
        if (skip(']')) return found;
        do found.list.push_back(value(depth + 1));
        while (skip(','));
        require(skip(']'), "the header is not JSON");
        return found;
    }

    uint32_t four_digits() {
        uint32_t code = 0;
        for (int i = 0; i < 4; ++i, ++at_) {
            require(at_ < end_, "the header's JSON ends too early");
            const char c = *at_;
            const int digit = c >= '0' && c <= '9'   ? c - '0'
                              : c >= 'a' && c <= 'f' ? c - 'a' + 10
                              : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                     : -1;
            require(digit >= 0, "the header is not JSON");
            code = code * 16 + static_cast<uint32_t>(digit);
        }
        return code;
    }

    static void put(std::string& to, uint32_t code) {
        auto byte = [&](uint32_t bits) { to.push_back(static_cast<char>(bits)); };
        if (code < 0x80) return byte(code);
        if (code < 0x800) {
            byte(0xC0 | code >> 6);
        } else if (code < 0x10000) {
            byte(0xE0 | code >> 12);
            byte(0x80 | (code >> 6 & 0x3F));
        } else {
            byte(0xF0 | code >> 18);
            byte(0x80 | (code >> 12 & 0x3F));
            byte(0x80 | (code >> 6 & 0x3F));
        }
        byte(0x80 | (code & 0x3F));
    }

    std::string text() {
        std::string found;
        for (++at_;;) {
            require(at_ < end_, "the header's JSON ends too early");
            const char c = *at_++;
            if (c == '"') return found;
            if (c != '\\') {
                found.push_back(c);
                continue;
            }
            require(at_ < end_, "the header's JSON ends too early");
            const char e = *at_++;
            if (e != 'u') {
                const std::string from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
                const size_t place = from.find(e);
                require(place != std::string::npos, "the header is not JSON");
                found.push_back(to[place]);
                continue;
            }
            uint32_t code = four_digits();
            if (code >= 0xD800 && code < 0xDC00 && end_ - at_ >= 6 && at_[0] == '\\' &&
                at_[1] == 'u') {
                at_ += 2;
                code = 0x10000 + ((code - 0xD800) << 10) + ((four_digits() - 0xDC00) & 0x3FF);
            }
            put(found, code);
        }
    }

    const char* at_;
    const char* end_;
};

}  // namespace

Json Json::read(const std::string& from) { return Reader(from).whole(); }

const Json* Json::find(const std::string& name) const {
    const auto found = object.find(name);
    return found == object.end() ? nullptr : &found->second;
}

const Json& Json::at(const std::string& name) const {
    const Json* found = find(name);
    if (found == nullptr) throw std::invalid_argument("the header has no " + name);
    return *found;
}

double Json::real() const {
    if (kind == Kind::text) {
        if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
        if (text == "inf") return std::numeric_limits<double>::infinity();
        if (text == "-inf") return -std::numeric_limits<double>::infinity();
    }
    require(kind == Kind::number, "the header has something else where a number should be");
    return number;
}

int64_t Json::whole() const {
    const double found = real();
    require(found >= 0 && found <= 9007199254740992.0 && found == std::floor(found),
            "the header has a size that is not a whole number");
    return static_cast<int64_t>(found);
}

bool Json::truth() const {
    require(kind == Kind::boolean, "the header has something else where true or false should be");
    return boolean;
}

const std::string& Json::words() const {
    require(kind == Kind::text, "the header has something else where a text should be");
    return text;
}

}  // namespace dm::library
