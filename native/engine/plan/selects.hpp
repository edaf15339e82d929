// Trees as selects between bitmaps: every bit of a leaf's label from the answers of its tests.
#pragma once

#include "engine/plan/plan.hpp"

namespace dm::engine {

// How many bits tell n labels apart.
int bits_for(int64_t n);

// The label of a leaf: its number, or that number's Gray code.
inline uint32_t label_of(uint32_t leaf, bool gray) { return gray ? leaf ^ (leaf >> 1) : leaf; }

// A test as a number: equal tests have equal keys.
inline uint32_t key_of(const Coded& test) {
    return static_cast<uint32_t>(test.plane) << 16 | test.code;
}

// The distinct tests of some trees, each with a slot of its own for its bitmap.
struct DistinctTests {
    std::vector<uint32_t> keys;  // ascending

    // The keys given, which may repeat.
    static DistinctTests of(std::vector<uint32_t> keys);
    std::vector<Test> tests() const;
    uint16_t slot(const Coded& test) const;
    int64_t end() const { return kFirstTest + static_cast<int64_t>(keys.size()); }  // of the slots
};

// One tree's selects: for every bit of the label, the slot that holds it.
struct Selects {
    std::vector<Select> selects;
    std::vector<uint16_t> bits;
    int64_t n_slots = 0;
};

// `size` holds the leaves below each test, `slot_of` the slots of this tree's tests; results take
// slots from `first_slot` on.
Selects make_selects(const Machine::Trees& trees, int64_t tree, bool gray,
                     const std::vector<int32_t>& size, const std::vector<uint16_t>& slot_of,
                     int64_t first_slot);

// A tree whose selects and bits come next in a group, or in tops.
template <typename To>
SelectTree select_tree(const Selects& found, const To& to) {
    SelectTree own{};
    own.first = static_cast<uint32_t>(to.selects.size());
    own.bits = static_cast<uint32_t>(to.bits.size()) & ((1u << 27) - 1);
    own.n_bits = static_cast<uint8_t>(found.bits.size()) & 31;
    return own;
}

// The trees from `first` on that are done by selects, before `end`, and as many as one group
// should hold; into `labelled` how their leaves are labelled.
Group make_select_group(const Machine::Trees& trees, int64_t first, int64_t end,
                        const std::vector<int32_t>& size, const std::vector<Coded>& coded,
                        std::vector<Tree>& labelled);

}  // namespace dm::engine
