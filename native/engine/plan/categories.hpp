// Categories as codes: those that no set tells apart share one, and a set is a table of bits by
// code.
#pragma once

#include <unordered_map>
#include <vector>

#include "engine/plan/plan.hpp"

namespace dm::engine {

// What a test of a set answers: bits for z = 0, z = 1 and z = NaN, set where it goes right.
uint8_t set_outcomes(const Machine& machine, int64_t test);

// The categories of one feature, split into classes by one set after the other.
class CategoryClasses {
public:
    // Of the categories that some set of these columns holds.
    CategoryClasses(const Machine& machine, const std::vector<int64_t>& sets);
    // All in one class, as at first.
    void join();
    void split(const Machine::Sets& sets, int64_t set);
    // How many classes there are, that of everything in no set among them.
    int64_t n() const { return n_; }
    const std::vector<int64_t>& categories() const { return categories_; }
    int64_t place_of(int64_t category) const;
    // Numbers of the classes by category, from 0 on, which is that of everything in no set.
    std::vector<uint16_t> numbers() const;

private:
    std::vector<int64_t> categories_;  // ascending
    std::vector<uint32_t> class_of_;
    std::vector<int64_t> size_;    // by class
    std::vector<uint32_t> moved_;  // by class and answer: the class of those that moved from it,
    std::vector<int64_t> when_;    // in which split
    std::vector<uint32_t> free_;   // classes without members
    int64_t n_ = 1, n_splits_ = 0;
};

// Counts what the sets of a run of trees need, tree after tree.
class SetBudget {
public:
    SetBudget(const Machine& machine, const std::vector<int64_t>& set_of);
    // For the tests of one tree; whether the codes and the tables of all so far are within bounds.
    bool add(int64_t tree);
    void start_over();

private:
    const Machine& m_;
    const std::vector<int64_t>& set_of_;
    struct OfFeature {
        CategoryClasses classes;
        int64_t n_tests = 0;
    };
    std::unordered_map<int32_t, size_t> number_of_;  // by feature
    std::vector<OfFeature> features_;
    std::vector<uint8_t> outcomes_;  // by column, those seen, a bit each
    std::vector<int32_t> seen_;      // columns
    int64_t n_tests_ = 0;
};

// The category features of a section, whose columns have the tests order[start[c]..start[c + 1]];
// into `coded` the tests.
void add_categories(const Machine& machine, const std::vector<int64_t>& set_of,
                    const std::vector<int64_t>& start, const std::vector<int64_t>& order,
                    Section& section, std::vector<Coded>& coded);

// What walks need: the answers of all sets, by code.
void turn_sets(Section& section);

}  // namespace dm::engine
