#include "search/random.hpp"

namespace dm::search {

Random::Random(uint64_t seed) {
    for (uint64_t& s : s_) {
        uint64_t z = (seed += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        s = z ^ (z >> 31);
    }
}

uint64_t Random::next() {
    const auto rotated = [](uint64_t x, int k) { return (x << k) | (x >> (64 - k)); };
    const uint64_t result = rotated(s_[1] * 5, 7) * 9, t = s_[1] << 17;
    s_[2] ^= s_[0], s_[3] ^= s_[1], s_[1] ^= s_[2], s_[0] ^= s_[3];
    s_[2] ^= t, s_[3] = rotated(s_[3], 45);
    return result;
}

double Random::unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

int64_t Random::below(int64_t n) { return static_cast<int64_t>(unit() * static_cast<double>(n)); }

}  // namespace dm::search
