// Numbers at random, the same everywhere.
#pragma once

#include <cstdint>

namespace dm::search {

// xoshiro256**, seeded by splitmix64.
class Random {
public:
    explicit Random(uint64_t seed);
    uint64_t next();
    double unit();             // [0, 1)
    int64_t below(int64_t n);  // 0 .. n − 1
private:
    uint64_t s_[4];
};

}  // namespace dm::search
