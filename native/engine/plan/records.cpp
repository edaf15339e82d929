#include "engine/plan/records.hpp"

#include <algorithm>
#include <queue>
#include <utility>

#include "engine/plan/tops.hpp"

namespace dm::engine {
namespace {

constexpr int64_t kRecordTopTests = 63;  // of a tree, done by selects
constexpr int64_t kTestsForTop = 127;    // fewer than that are no more than two records
constexpr int32_t kMostDepth = 12;       // tests on a path through one record
// A piece of n tests has n + 1 exits, and exits are counted in the other half of 64 numbers.
constexpr int64_t kPieceTests = kRecordTests - 1;
constexpr size_t kOpenRecords = 8;  // that still take pieces; more fill them hardly better

// The greatest number of tests on a path from each test down.
std::vector<int32_t> heights(const Machine::Trees& trees) {
    std::vector<int32_t> height(trees.n_tests, 0);
    for (int64_t j = trees.n_tests - 1; j >= 0; --j)
        for (int side = 0; side < 2; ++side) {
            const int32_t child = trees.children[2 * j + side];
            height[j] = std::max(height[j], 1 + (child >= 0 ? height[child] : 0));
        }
    return height;
}

// The columns of a section as records number them.
void number_columns(Section& section) {
    section.record_planes.resize(section.n_planes);
    for (const Column& column : section.columns) {
        const uint8_t number = static_cast<uint8_t>(section.record_columns.size());
        const bool has_both = column.low >= 0 && column.high >= 0;
        if (column.low >= 0) section.record_planes[column.low_number] = {number, has_both};
        if (column.high >= 0) section.record_planes[column.high_number] = {number, false};
        section.record_columns.push_back({column.high >= 0 ? column.high_number : column.low_number,
                                          has_both ? column.low_number : -1});
    }
}

// Cuts the trees into pieces that fit a record, and puts several pieces into one.
class RecordWriter {
public:
    RecordWriter(const Machine::Trees& trees, const std::vector<int32_t>& size,
                 const std::vector<Coded>& coded, CodeLayout layout, RecordPlan& out)
        : trees_(trees),
          size_(size),
          coded_(coded),
          height_(heights(trees)),
          layout_(layout),
          out_(out) {}

    // `top` holds tests that are done by selects where there are rows enough: pieces end with them.
    void add(const Section& section, int64_t tree, const std::vector<int32_t>& top) {
        section_ = &section;
        begin_ = trees_.test_start[tree];
        first_leaf_ = trees_.first_leaf(tree);
        const int64_t n = trees_.tests_of(tree);
        if (n == 0) {
            out_.roots.push_back(kAtLeaf);
            return;
        }
        place_of_.assign(n, 0);
        is_top_.assign(n, 0);
        in_piece_.assign(n, 0);
        for (const int32_t j : top) is_top_[j - begin_] = 1;
        exits_of_.clear();
        open_.clear();
        first_record_ = out_.records.size();
        std::vector<int32_t> waiting{static_cast<int32_t>(begin_)};
        while (!waiting.empty()) {
            const int32_t root = waiting.back();
            waiting.pop_back();
            const std::vector<int32_t> exits = put(piece_of(root));
            for (auto exit = exits.rbegin(); exit != exits.rend(); ++exit)
                if (*exit >= 0) waiting.push_back(*exit);
        }
        for (size_t i = 0; i < exits_of_.size(); ++i) {
            uint32_t* exit = out_.records[first_record_ + i].exits;
            for (const int32_t node : exits_of_[i]) *exit++ = place(node);
        }
        out_.roots.push_back(place(static_cast<int32_t>(begin_)));
    }

    // Where a test from which rows go on, or a leaf, of the tree that was added last stands.
    uint32_t place(int32_t node) const {
        return node >= 0 ? place_of_[node - begin_]
                         : kAtLeaf | static_cast<uint32_t>(~node - first_leaf_);
    }

private:
    bool is_whole(int32_t node) const {
        return size_[node] - 1 <= kPieceTests && height_[node] <= kMostDepth;
    }
    bool belongs(int32_t node, bool is_top) const {
        return node >= 0 && (is_top_[node - begin_] != 0) == is_top;
    }

    // The tests of the subtree of `root` that go into one record, in preorder. A row that leaves
    // the piece for a subtree takes one record more, however large that is, as long as it is whole.
    // So the piece has the tests of subtrees that are not whole, the largest first, and then as
    // many whole ones as there is room for.
    std::vector<int32_t> piece_of(int32_t root) {
        const bool is_top = is_top_[root - begin_] != 0;
        struct Next {
            int32_t size, depth, node;
            bool operator<(const Next& other) const {
                return std::pair(size, node) < std::pair(other.size, other.node);
            }
        };
        std::priority_queue<Next> largest;
        std::vector<Next> whole;
        int64_t n = 0;
        auto offer = [&](int32_t node, int32_t depth) {
            if (!belongs(node, is_top) || depth > kMostDepth) return;
            if (!is_top && is_whole(node) && node != root)
                whole.push_back({size_[node], depth, node});
            else
                largest.push({size_[node], depth, node});
        };
        offer(root, 1);
        while (n < kPieceTests && !largest.empty()) {
            const Next next = largest.top();
            largest.pop();
            in_piece_[next.node - begin_] = 1;
            ++n;
            for (int side = 0; side < 2; ++side)
                offer(trees_.children[2 * next.node + side], next.depth + 1);
        }
        std::sort(whole.begin(), whole.end());
        for (const Next& next : whole) {
            if (n + next.size - 1 > kPieceTests) break;
            if (next.depth + height_[next.node] - 1 > kMostDepth) continue;
            in_piece_[next.node - begin_] = 2;
            n += next.size - 1;
        }
        std::vector<int32_t> piece;
        std::vector<std::pair<int32_t, bool>> stack{
            {root, false}};  // a test, and whether all below
        while (!stack.empty()) {
            const auto [node, all] = stack.back();
            stack.pop_back();
            if (node < 0 || !(all || in_piece_[node - begin_])) continue;
            const bool is_all = all || in_piece_[node - begin_] == 2;
            in_piece_[node - begin_] = 1;
            piece.push_back(node);
            stack.push_back({trees_.children[2 * node + 1], is_all});
            stack.push_back({trees_.children[2 * node], is_all});
        }
        return piece;
    }

    // Puts a piece into a record that has room for it; what its exits lead to.
    std::vector<int32_t> put(const std::vector<int32_t>& piece) {
        const size_t n = piece.size();
        size_t at = 0;
        while (at < open_.size() && open_[at].used + n + 1 > kRecordTests) ++at;
        if (at == open_.size()) {
            if (open_.size() == kOpenRecords) {
                // The fullest is closed.
                at =
                    std::max_element(open_.begin(), open_.end(),
                                     [](const Open& a, const Open& b) { return a.used < b.used; }) -
                    open_.begin();
                open_.erase(open_.begin() + static_cast<int64_t>(at));
                at = open_.size();
            }
            open_.push_back({out_.records.size(), 0, 0});
            out_.records.push_back(empty());
            exits_of_.emplace_back();
        }
        Open& open = open_[at];
        Record& record = out_.records[open.record];
        std::vector<int32_t>& exits = exits_of_[open.record - first_record_];
        const size_t first = open.slots, first_exit = exits.size();
        for (size_t i = 0; i < n; ++i)
            place_of_[piece[i] - begin_] =
                static_cast<uint32_t>(open.record << kRecordBits | (first + i));
        for (size_t i = 0; i < n; ++i) {
            const int32_t j = piece[i];
            auto next = [&](int side) {
                const int32_t child = trees_.children[2 * j + side];
                if (child >= 0 && in_piece_[child - begin_])
                    return static_cast<uint8_t>(place_of_[child - begin_] & (kRecordTests - 1));
                exits.push_back(child);
                return static_cast<uint8_t>(kRecordTests + exits.size() - 1);
            };
            const RecordPlane& plane = section_->record_planes[coded_[j].plane];
            record.column[first + i] = plane.column;
            record.missing_left |= static_cast<uint32_t>(plane.is_other) << (first + i);
            set_code(record, first + i, coded_[j].code);
            record.left[first + i] = next(0);
            record.right[first + i] = next(1);
        }
        for (const int32_t j : piece) in_piece_[j - begin_] = 0;
        open.slots += n;
        open.used += n + 1;
        out_.depth = std::max(out_.depth, depth_of(record, first));
        return {exits.begin() + static_cast<int64_t>(first_exit), exits.end()};
    }

    // The greatest number of tests on a path from a slot; children come after their parents.
    int64_t depth_of(const Record& record, size_t root) const {
        int64_t below[kRecordTests];
        for (int64_t i = kRecordTests - 1; i >= static_cast<int64_t>(root); --i) {
            below[i] = 1;
            for (const uint8_t next : {record.left[i], record.right[i]})
                if (next < kRecordTests) below[i] = std::max(below[i], 1 + below[next]);
        }
        return below[root];
    }

    void set_code(Record& record, size_t slot, uint16_t code) const {
        put_code(layout_, code, static_cast<int64_t>(slot), kRecordTests, record.code);
    }

    // A record whose tests all lead to its first exit.
    Record empty() const {
        Record record{};
        for (int64_t i = 0; i < kRecordTests; ++i) {
            set_code(record, static_cast<size_t>(i), 65535);
            record.left[i] = record.right[i] = kRecordTests;
        }
        return record;
    }

    struct Open {
        size_t record, slots, used;
    };

    const Machine::Trees& trees_;
    const std::vector<int32_t>& size_;
    const std::vector<Coded>& coded_;
    const std::vector<int32_t> height_;
    const CodeLayout layout_;
    RecordPlan& out_;
    // Of the tree that is being added:
    const Section* section_ = nullptr;
    int64_t begin_ = 0, first_leaf_ = 0;
    size_t first_record_ = 0;
    std::vector<uint32_t> place_of_;              // by test
    std::vector<char> is_top_, in_piece_;         // by test
    std::vector<std::vector<int32_t>> exits_of_;  // by record: tests or ~leaves of the machine
    std::vector<Open> open_;
};

}  // namespace

int64_t record_stride(CodeLayout layout, int64_t n_columns) {
    if (layout == CodeLayout::none || n_columns > kMostRecordColumns) return 0;
    // Registers of 32 words; or tables of 16 bytes, for each half of the codes.
    const int64_t each = layout == CodeLayout::words ? 32 : 16;
    int64_t room = each;
    while (room < n_columns) room *= 2;
    return 2 * room;
}

bool can_have_records(CodeLayout layout, const Section& section) {
    return section.categories.empty() &&
           record_stride(layout, static_cast<int64_t>(section.columns.size())) > 0;
}

bool has_record_top(const Plan& plan, int64_t tree) {
    return plan.trees[tree].kind == Kind::record && plan.wanted.values &&
           plan.machine.trees.tests_of(tree) >= kTestsForTop;
}

void add_records(const std::vector<int32_t>& size, const std::vector<Coded>& coded, Plan& plan) {
    const Machine::Trees& trees = plan.machine.trees;
    RecordWriter writer(trees, size, coded, plan.kernels->code_layout, plan.records);
    TopsWriter tops(coded, plan);
    for (Section& section : plan.sections) {
        if (section.has_record) number_columns(section);
        for (int64_t tree = section.first; tree < section.last; ++tree) {
            if (plan.trees[tree].kind != Kind::record) {
                plan.records.roots.push_back(kAtLeaf);
            } else if (has_record_top(plan, tree)) {
                const TopTree top = find_top(trees, tree, size, kRecordTopTests);
                writer.add(section, tree, top.tests);
                tops.add(tree, top, [&](int32_t node) { return writer.place(node); });
            } else {
                writer.add(section, tree, {});
            }
            plan.records.first.push_back(static_cast<int64_t>(plan.records.records.size()));
        }
        tops.end();
    }
    plan.records.records.shrink_to_fit();
}

}  // namespace dm::engine
