#include "engine/plan/categories.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

namespace dm::engine {
namespace {

constexpr int64_t kMostCodes = 65535;
constexpr int64_t kMostPlanes = 65535;               // a node counts them in 16 bits
constexpr int64_t kMostSetBytes = int64_t{1} << 24;  // tables of a section
constexpr int64_t kMostCategory = int64_t{1} << 31;  // x of this size are not categories
// Categories up to here have their code by themselves; further ones are searched for.
constexpr int64_t kAlwaysNear = 4096, kNearToMember = 4;

int64_t table_bytes(int64_t n_codes) { return std::max((n_codes + 63) / 64 * 8, kTableBytes); }

// Calls use(category, answer) for the members of a set that it tells from all others.
template <typename Use>
void each_member(const Machine::Sets& sets, int64_t set, const Use& use) {
    for (int64_t i = sets.start[set]; i < sets.start[set + 1]; ++i)
        if (sets.members[i] < kMostCategory && sets.answers[i] != sets.outside[set])
            use(sets.members[i], sets.answers[i]);
}

bool goes_right(uint8_t outcomes, int8_t answer) {
    return outcomes >> (answer < 0 ? 0 : answer > 0 ? 1 : 2) & 1;
}

}  // namespace

uint8_t set_outcomes(const Machine& m, int64_t test) {
    const double t = m.tests.t[test];
    return static_cast<uint8_t>((0.0 > t) | (1.0 > t) << 1 | (m.tests.missing[test] > 0) << 2);
}

CategoryClasses::CategoryClasses(const Machine& m, const std::vector<int64_t>& sets) {
    for (const int64_t set : sets)
        each_member(m.sets, set,
                    [&](int64_t category, int8_t) { categories_.push_back(category); });
    std::sort(categories_.begin(), categories_.end());
    categories_.erase(std::unique(categories_.begin(), categories_.end()), categories_.end());
    categories_.shrink_to_fit();
    join();
}

void CategoryClasses::join() {
    class_of_.assign(categories_.size(), 0);
    size_.assign(1, static_cast<int64_t>(categories_.size()) + 1);
    moved_.assign(3, 0);
    when_.assign(3, -1);
    free_.clear();
    n_ = 1;
    n_splits_ = 0;
}

int64_t CategoryClasses::place_of(int64_t category) const {
    return std::lower_bound(categories_.begin(), categories_.end(), category) - categories_.begin();
}

void CategoryClasses::split(const Machine::Sets& sets, int64_t set) {
    each_member(sets, set, [&](int64_t category, int8_t answer) {
        uint32_t& own = class_of_[place_of(category)];
        const size_t at = 3 * size_t{own} + static_cast<size_t>(answer + 1);
        if (when_[at] != n_splits_) {
            uint32_t made = static_cast<uint32_t>(size_.size());
            if (free_.empty()) {
                size_.push_back(0);
                moved_.resize(moved_.size() + 3);
                when_.resize(when_.size() + 3, -1);
            } else {
                made = free_.back();
                free_.pop_back();
            }
            moved_[at] = made;
            when_[at] = n_splits_;
            ++n_;
        }
        if (--size_[own] == 0) {
            free_.push_back(own);
            --n_;
        }
        own = moved_[at];
        ++size_[own];
    });
    ++n_splits_;
}

std::vector<uint16_t> CategoryClasses::numbers() const {
    std::vector<uint16_t> number(size_.size(), 0), out;
    uint16_t next = 1;
    for (const uint32_t own : class_of_) {
        if (own && !number[own]) number[own] = next++;
        out.push_back(number[own]);
    }
    return out;
}

SetBudget::SetBudget(const Machine& m, const std::vector<int64_t>& set_of)
    : m_(m), set_of_(set_of), outcomes_(static_cast<size_t>(m.columns.n), 0) {
    if (!m.sets.n) return;
    std::map<int32_t, std::vector<int64_t>> sets;  // by feature
    for (int64_t c = 0; c < m.columns.n; ++c)
        if (set_of[c] >= 0) sets[m.columns.feature[c]].push_back(set_of[c]);
    for (const auto& [feature, own] : sets) {
        number_of_[feature] = features_.size();
        features_.push_back({CategoryClasses(m, own), 0});
    }
}

bool SetBudget::add(int64_t tree) {
    if (features_.empty()) return true;
    for (int64_t j = m_.trees.test_start[tree]; j < m_.trees.test_start[tree + 1]; ++j) {
        const int32_t c = m_.tests.selection[j];
        if (set_of_[c] < 0) continue;
        const uint8_t kind = static_cast<uint8_t>(1 << set_outcomes(m_, j));
        if (outcomes_[c] & kind) continue;
        OfFeature& own = features_[number_of_.at(m_.columns.feature[c])];
        if (!outcomes_[c]) {
            own.classes.split(m_.sets, set_of_[c]);
            seen_.push_back(c);
        }
        outcomes_[c] |= kind;
        ++own.n_tests;
        ++n_tests_;
    }
    int64_t bytes = 0;
    for (const OfFeature& own : features_) {
        if (own.classes.n() + 1 > kMostCodes) return false;
        bytes += own.n_tests * table_bytes(own.classes.n() + 1);
    }
    return bytes <= kMostSetBytes && n_tests_ <= kMostPlanes / 2;
}

void SetBudget::start_over() {
    for (const int32_t c : seen_) outcomes_[c] = 0;
    seen_.clear();
    n_tests_ = 0;
    for (OfFeature& own : features_) {
        if (own.n_tests) own.classes.join();
        own.n_tests = 0;
    }
}

void add_categories(const Machine& m, const std::vector<int64_t>& set_of,
                    const std::vector<int64_t>& start, const std::vector<int64_t>& order,
                    Section& section, std::vector<Coded>& coded) {
    std::map<int32_t, std::vector<int64_t>> columns;  // by feature
    for (int64_t c = 0; c < m.columns.n; ++c)
        if (set_of[c] >= 0 && start[c] < start[c + 1]) columns[m.columns.feature[c]].push_back(c);
    for (const auto& [feature, own] : columns) {
        std::vector<int64_t> sets;
        for (const int64_t c : own) sets.push_back(set_of[c]);
        CategoryClasses classes(m, sets);
        for (const int64_t set : sets) classes.split(m.sets, set);
        const std::vector<uint16_t> number = classes.numbers();
        CategoryFeature made{};
        made.feature = static_cast<uint32_t>(feature);
        made.n_codes = static_cast<uint32_t>(classes.n() + 1);
        made.width = made.n_codes > 256 ? 2 : 1;
        made.start = static_cast<uint32_t>(section.row_bytes);
        made.first_set = static_cast<uint32_t>(section.n_planes);
        section.row_bytes += made.width;
        // Codes by category.
        const std::vector<int64_t>& categories = classes.categories();
        const int64_t n = static_cast<int64_t>(categories.size());
        const int64_t n_near =
            n ? std::min(categories.back() + 1, std::max(kAlwaysNear, kNearToMember * n)) : 0;
        made.codes.assign(static_cast<size_t>(n_near) + 2, 0);
        made.codes.back() = static_cast<uint16_t>(classes.n());
        for (int64_t i = 0; i < n; ++i) {
            if (categories[i] < n_near) {
                made.codes[categories[i]] = number[i];
            } else {
                made.far.push_back(categories[i]);
                made.far_codes.push_back(number[i]);
            }
        }
        // A table for each distinct answer to all codes.
        const int64_t bytes = table_bytes(made.n_codes);
        std::unordered_map<std::string, uint16_t> plane_of;
        std::string table;
        for (const int64_t c : own) {
            int32_t planes[8];
            std::fill(planes, planes + 8, -1);
            for (int64_t i = start[c]; i < start[c + 1]; ++i) {
                const uint8_t outcomes = set_outcomes(m, order[i]);
                if (planes[outcomes] < 0) {
                    const bool outside = goes_right(outcomes, m.sets.outside[set_of[c]]);
                    table.assign(static_cast<size_t>(bytes), static_cast<char>(outside ? -1 : 0));
                    auto put = [&](int64_t code, bool right) {
                        char& byte = table[code >> 3];
                        const int bit = 1 << (code & 7);
                        byte = static_cast<char>(right ? byte | bit : byte & ~bit);
                    };
                    each_member(m.sets, set_of[c], [&](int64_t category, int8_t answer) {
                        put(number[classes.place_of(category)], goes_right(outcomes, answer));
                    });
                    put(classes.n(), goes_right(outcomes, 0));
                    const auto [at, is_new] =
                        plane_of.emplace(table, static_cast<uint16_t>(section.n_planes));
                    if (is_new) {
                        section.planes.push_back({made.start, made.width, false, true,
                                                  static_cast<uint16_t>(made.n_codes),
                                                  static_cast<int64_t>(section.tables.size())});
                        section.tables.insert(section.tables.end(), table.begin(), table.end());
                        ++section.n_planes;
                        ++made.n_sets;
                    }
                    planes[outcomes] = at->second;
                }
                coded[order[i]] = {static_cast<uint16_t>(planes[outcomes]), 0};
            }
        }
        section.categories.push_back(std::move(made));
    }
}

void turn_sets(Section& section) {
    for (CategoryFeature& own : section.categories) {
        const int64_t bytes = own.code_bytes();
        own.sets_by_code.assign(static_cast<size_t>(own.n_codes * bytes), 0);
        for (int64_t set = 0; set < own.n_sets; ++set) {
            const uint8_t* table =
                section.tables.data() + section.planes[own.first_set + set].table;
            for (int64_t code = 0; code < own.n_codes; ++code)
                if (table[code >> 3] >> (code & 7) & 1)
                    own.sets_by_code[code * bytes + set / 8] |=
                        static_cast<uint8_t>(1 << (set % 8));
        }
    }
}

}  // namespace dm::engine
