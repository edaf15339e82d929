// The ways to evaluate trees, by name, and which machines each of them can do.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/plan/machine.hpp"

namespace dm::engine {

enum class Kind : uint8_t { by_tree, select, record, twig, deep, pack, raw, oblique };

// A machine before it is compiled, and what it is to run on.
struct Candidate {
    const Machine& machine;
    const Kernels& kernels;
    int64_t n_codings;  // how many codings of the columns its trees need; 0 where none will do
};

struct KindEntry {
    Kind kind;
    const char* name;  // in Python
    const char* about;
    bool (*is_compatible)(const Candidate& candidate);
    Kind otherwise;  // where it is not
};

// In the order of Kind.
extern const std::array<KindEntry, 8> kKinds;

inline const KindEntry& entry_of(Kind kind) { return kKinds[static_cast<size_t>(kind)]; }

// The kind that is wanted, or else the first of its substitutes that can do the machine.
Kind compatible_kind(Kind wanted, const Candidate& candidate);

// The kind for few rows where trees are not all of one kind that takes them.
Kind kind_for_few(const Machine& machine, const Kernels& kernels);

// Which ways below its top a tree can go.
struct Possible {
    bool record, twig;
};

// `select`, `record`, `twig` or `deep` for one tree: the one that is wanted if it is possible, or
// the one that costs least. A tree of too many leaves is never done by selects.
// `size` holds the leaves below each test.
Kind kind_of_tree(Kind wanted, const Machine::Trees& trees, int64_t tree, const Kernels& kernels,
                  const std::vector<int32_t>& size, Possible possible);

}  // namespace dm::engine
