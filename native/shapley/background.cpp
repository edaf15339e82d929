#include "shapley/background.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "common/threads.hpp"
#include "shapley/rule.hpp"

namespace dm::shapley {
namespace {

constexpr int64_t kCellBits = 8;    // of a cell of several leaves
constexpr int64_t kDenseBits = 20;  // patterns counted in an array
constexpr int64_t kChunkBytes = int64_t{1} << 25, kKeptBytes = int64_t{1} << 28;

std::mutex keeping;

}  // namespace

bool Background::goes_left(int64_t test, const double* row) const {
    const double z = row[forest_.column[test]], t = forest_.t[test];
    return forest_.missing[test] < 0 ? !(z > t) : z <= t;
}

Background::Background(const Forest& forest, const double* z, int64_t n_rows) : forest_(forest) {
    for (int64_t tree = 0; tree < forest_.n_trees; ++tree) {
        count(tree, z, n_rows);
        divide(tree);
        first_part_.push_back(static_cast<int64_t>(parts_.size()));
    }
    beta_.assign(static_cast<size_t>((most_ + 1) * (most_ + 1)), 0.0);
    for (int64_t a = 0; a <= most_; ++a) {
        // a! b! / (a + b + 1)!, from b = 0 on
        double found = 1.0 / static_cast<double>(a + 1);
        for (int64_t b = 0; b <= most_; ++b) {
            beta_[static_cast<size_t>(a * (most_ + 1) + b)] = found;
            found *= static_cast<double>(b + 1) / static_cast<double>(a + b + 2);
        }
    }
    for (int64_t d = 0; d <= kMostLeafBits; ++d) rules_.push_back(gauss_legendre((d + 1) / 2));
    // Chunks of trees whose tables fit together.
    int64_t first = 0, bytes = 0;
    for (int64_t tree = 0; tree < forest_.n_trees; ++tree) {
        const int64_t tests = forest_.test_start[tree + 1] - forest_.test_start[tree];
        bytes += (tests + 1) * (int64_t{1} << 10) * 8 * forest_.width;
        if (bytes < kChunkBytes && tree + 1 < forest_.n_trees) continue;
        chunks_.emplace_back(first, tree + 1);
        first = tree + 1;
        bytes = 0;
    }
}

void Background::count(int64_t tree, const double* z, int64_t n_rows) {
    const int64_t root = forest_.test_start[tree], n = forest_.test_start[tree + 1] - root;
    std::vector<uint8_t> left(static_cast<size_t>(n * n_rows));
    for (int64_t j = 0; j < n; ++j)
        for (int64_t r = 0; r < n_rows; ++r)
            left[static_cast<size_t>(j * n_rows + r)] =
                goes_left(root + j, z + r * forest_.n_columns);
    std::vector<std::vector<Term>> paths(static_cast<size_t>(n + 1));
    std::vector<std::pair<int64_t, std::vector<Term>>> stack;
    if (n) stack.push_back({root, {}});
    while (!stack.empty()) {
        auto [test, path] = std::move(stack.back());
        stack.pop_back();
        for (int side = 1; side >= 0; --side) {
            auto below = path;
            below.push_back({static_cast<int32_t>(test - root), -side});
            const int64_t child = forest_.children[2 * test + side];
            if (child < 0)
                paths[static_cast<size_t>(~child - root - tree)] = std::move(below);
            else
                stack.emplace_back(child, std::move(below));
        }
    }
    std::vector<uint8_t> match(static_cast<size_t>(n_rows));
    std::vector<uint64_t> words;
    for (int64_t number = 0; number <= n; ++number) {
        Leaf leaf;
        leaf.number = root + tree + number;
        leaf.tree = static_cast<int32_t>(tree);
        auto& path = paths[static_cast<size_t>(number)];
        for (const Term& term : path) {
            const int32_t slot = forest_.slot[root + term.test];
            if (std::find(leaf.slots.begin(), leaf.slots.end(), slot) == leaf.slots.end())
                leaf.slots.push_back(slot);
        }
        const int64_t d = static_cast<int64_t>(leaf.slots.size()), n_words = leaf.n_words();
        most_ = std::max(most_, d);
        words.assign(static_cast<size_t>(n_rows * n_words), 0);
        leaf.term_start.push_back(0);
        for (int64_t i = 0; i < d; ++i) {
            std::fill(match.begin(), match.end(), 1);
            for (const Term& term : path) {
                if (forest_.slot[root + term.test] != leaf.slots[static_cast<size_t>(i)]) continue;
                leaf.terms.push_back(term);
                const uint8_t* answers = left.data() + term.test * n_rows;
                const uint8_t flip = term.side ? 1 : 0;
                for (int64_t r = 0; r < n_rows; ++r)
                    match[static_cast<size_t>(r)] &= answers[r] ^ flip;
            }
            leaf.term_start.push_back(static_cast<int32_t>(leaf.terms.size()));
            for (int64_t r = 0; r < n_rows; ++r)
                words[static_cast<size_t>(r * n_words + i / 64)] |=
                    static_cast<uint64_t>(match[static_cast<size_t>(r)]) << (i % 64);
        }
        if (d == 0) {
            leaves_.push_back(std::move(leaf));
            continue;
        }
        const double share = 1.0 / static_cast<double>(n_rows);
        if (n_words == 1 && d <= kDenseBits) {
            std::vector<uint32_t> counts(size_t{1} << d);
            for (uint64_t word : words) ++counts[word];
            for (size_t word = 0; word < counts.size(); ++word)
                if (counts[word]) {
                    leaf.has.push_back(word);
                    leaf.shares.push_back(counts[word] * share);
                }
        } else {
            std::map<std::vector<uint64_t>, int64_t> counts;
            for (int64_t r = 0; r < n_rows; ++r)
                ++counts[{words.begin() + r * n_words, words.begin() + (r + 1) * n_words}];
            for (const auto& [has, times] : counts) {
                leaf.has.insert(leaf.has.end(), has.begin(), has.end());
                leaf.shares.push_back(static_cast<double>(times) * share);
            }
        }
        leaves_.push_back(std::move(leaf));
    }
}

// Subtrees of few bits become cells, and leaves of few features beside them.
void Background::divide(int64_t tree) {
    const int64_t root = forest_.test_start[tree], n = forest_.test_start[tree + 1] - root;
    if (!n) return;
    std::vector<int64_t> below(static_cast<size_t>(n), 1);  // tests of each subtree
    for (int64_t j = n - 1; j >= 0; --j)
        for (int side = 0; side < 2; ++side) {
            const int64_t child = forest_.children[2 * (root + j) + side];
            if (child >= 0)
                below[static_cast<size_t>(j)] += below[static_cast<size_t>(child - root)];
        }
    std::vector<Part> stack{{static_cast<int32_t>(tree), {}, root}};
    while (!stack.empty()) {
        Part part = std::move(stack.back());
        stack.pop_back();
        std::vector<int32_t> slots;
        for (const Term& term : part.path) slots.push_back(forest_.slot[root + term.test]);
        std::sort(slots.begin(), slots.end());
        const int64_t d = std::unique(slots.begin(), slots.end()) - slots.begin();
        if (part.root < 0 ? d <= kMostLeafBits
                          : d + below[static_cast<size_t>(part.root - root)] <= kCellBits) {
            parts_.push_back(std::move(part));
        } else if (part.root < 0) {
            deep_.push_back(~part.root);
        } else {
            for (int side = 1; side >= 0; --side) {
                Part next{part.tree, part.path, forest_.children[2 * part.root + side]};
                next.path.push_back({static_cast<int32_t>(part.root - root), -side});
                stack.push_back(std::move(next));
            }
        }
    }
}

void Background::build(const Kernels& kernels, int64_t first, int64_t last,
                       Tables<double>& to) const {
    to.n_columns = forest_.n_columns;
    to.n_slots = forest_.n_slots;
    to.n_outputs = forest_.n_outputs;
    std::vector<double> scratch;
    for (int64_t tree = first; tree < last; ++tree) {
        for (int64_t j = forest_.test_start[tree]; j < forest_.test_start[tree + 1]; ++j)
            to.tests.push_back(
                {forest_.t[j], to.reads.of(forest_.column[j], forest_.missing[j] < 0)});
        const int64_t first_bit = static_cast<int64_t>(to.term_start.size()) - 1;
        for (int64_t i = first_part_[static_cast<size_t>(tree)];
             i < first_part_[static_cast<size_t>(tree) + 1]; ++i)
            if (parts_[static_cast<size_t>(i)].root < 0)
                build_leaf(kernels, ~parts_[static_cast<size_t>(i)].root, first_bit, scratch, to);
            else
                build_cell(kernels, parts_[static_cast<size_t>(i)], first_bit, scratch, to);
        to.end_tree();
    }
    to.table.resize(to.table.size() + Tables<double>::kSlack);
}

// The shares of the background rows, by the features that they miss.
void Background::missed(const Leaf& leaf, double* shares) const {
    const uint64_t all = (uint64_t{1} << leaf.slots.size()) - 1;
    for (size_t i = 0; i < leaf.has.size(); ++i) shares[all ^ leaf.has[i]] = leaf.shares[i];
}

void Background::build_leaf(const Kernels& kernels, int64_t number, int64_t first_bit,
                            std::vector<double>& scratch, Tables<double>& to) const {
    const Leaf& leaf = leaves_[static_cast<size_t>(number)];
    const int64_t width = forest_.width, d = static_cast<int64_t>(leaf.slots.size());
    const size_t size = size_t{1} << d;
    to.leaves.push_back(
        {static_cast<int32_t>(static_cast<int64_t>(to.term_start.size()) - 1 - first_bit),
         static_cast<int32_t>(d), static_cast<int32_t>(width), to.places.size(), to.values.size(),
         to.table.size()});
    for (size_t f = 0; f < leaf.slots.size(); ++f) {
        to.terms.insert(to.terms.end(), leaf.terms.begin() + leaf.term_start[f],
                        leaf.terms.begin() + leaf.term_start[f + 1]);
        to.term_start.push_back(static_cast<int32_t>(to.terms.size()));
        for (int64_t o = 0; o < width; ++o)
            to.places.push_back(
                static_cast<int32_t>(output_of(leaf.tree, o) * forest_.n_slots + leaf.slots[f]));
    }
    for (int64_t o = 0; o < width; ++o)
        to.values.push_back(forest_.values[leaf.number * width + o]);
    to.table.resize(to.table.size() + 3 * size);
    scratch.assign(2 * size, 0.0);
    missed(leaf, scratch.data());
    const Rule& rule = rule_of(d);
    kernels.leaf_sums(
        {d, scratch.data(), static_cast<int64_t>(rule.y.size()), rule.y.data(), rule.weight.data()},
        scratch.data() + size, to.table.data() + to.table.size() - 3 * size);
}

void Background::build_cell(const Kernels& kernels, const Part& part, int64_t first_bit,
                            std::vector<double>& scratch, Tables<double>& to) const {
    const int64_t root = forest_.test_start[part.tree], width = forest_.width;
    // Bits: the features of the path above, then the tests of the subtree.
    std::vector<int32_t> path_slots;
    for (const Term& term : part.path) {
        const int32_t slot = forest_.slot[root + term.test];
        if (std::find(path_slots.begin(), path_slots.end(), slot) == path_slots.end())
            path_slots.push_back(slot);
    }
    const int32_t here =
        static_cast<int32_t>(static_cast<int64_t>(to.term_start.size()) - 1 - first_bit);
    for (int32_t slot : path_slots) {
        for (const Term& term : part.path)
            if (forest_.slot[root + term.test] == slot) to.terms.push_back(term);
        to.term_start.push_back(static_cast<int32_t>(to.terms.size()));
    }
    std::map<int32_t, int32_t> bit_of;  // of the subtree's tests
    std::vector<int64_t> members;       // leaves
    std::vector<int64_t> stack{part.root};
    while (!stack.empty()) {
        const int64_t node = stack.back();
        stack.pop_back();
        if (node < 0) {
            members.push_back(~node);
            continue;
        }
        const int32_t test = static_cast<int32_t>(node - root);
        bit_of[test] = static_cast<int32_t>(path_slots.size() + bit_of.size());
        to.terms.push_back({test, 0});
        to.term_start.push_back(static_cast<int32_t>(to.terms.size()));
        stack.push_back(forest_.children[2 * node + 1]);
        stack.push_back(forest_.children[2 * node]);
    }
    const int32_t n_bits = static_cast<int32_t>(path_slots.size() + bit_of.size());
    std::vector<int32_t> slots;
    for (int64_t number : members)
        for (int32_t slot : leaves_[static_cast<size_t>(number)].slots)
            if (std::find(slots.begin(), slots.end(), slot) == slots.end()) slots.push_back(slot);
    const int32_t n_values = static_cast<int32_t>(static_cast<int64_t>(slots.size()) * width);
    const size_t at = to.table.size();
    to.cells.push_back({here, n_bits, n_values, to.places.size(), at});
    for (int32_t slot : slots)
        for (int64_t o = 0; o < width; ++o)
            to.places.push_back(
                static_cast<int32_t>(output_of(part.tree, o) * forest_.n_slots + slot));
    to.table.resize(at + (size_t{1} << n_bits) * static_cast<size_t>(n_values), 0.0);
    for (int64_t number : members) {
        const Leaf& leaf = leaves_[static_cast<size_t>(number)];
        const int64_t d = static_cast<int64_t>(leaf.slots.size()), size = int64_t{1} << d;
        scratch.assign(static_cast<size_t>(size * (d + 3)), 0.0);
        double *work = scratch.data() + size, *own = work + 2 * size;
        missed(leaf, scratch.data());
        const Rule& rule = rule_of(d);
        kernels.leaf_table({d, scratch.data(), static_cast<int64_t>(rule.y.size()), rule.y.data(),
                            rule.weight.data()},
                           work, own);
        // The bits that a row must have for each feature of the leaf, and those that it must not.
        std::vector<uint32_t> need(static_cast<size_t>(d)), want(static_cast<size_t>(d));
        std::vector<int32_t> place(static_cast<size_t>(d));
        for (int64_t i = 0; i < d; ++i) {
            const size_t f = static_cast<size_t>(i);
            for (int32_t k = leaf.term_start[f]; k < leaf.term_start[f + 1]; ++k) {
                const Term& term = leaf.terms[static_cast<size_t>(k)];
                const auto found = bit_of.find(term.test);
                uint32_t bit, value = 1;
                if (found != bit_of.end()) {
                    bit = static_cast<uint32_t>(found->second);
                    value = term.side == 0;
                } else {
                    bit = static_cast<uint32_t>(
                        std::find(path_slots.begin(), path_slots.end(), leaf.slots[f]) -
                        path_slots.begin());
                }
                need[f] |= 1u << bit;
                want[f] |= value << bit;
            }
            place[f] = static_cast<int32_t>(
                (std::find(slots.begin(), slots.end(), leaf.slots[f]) - slots.begin()) * width);
        }
        const double* value = forest_.values + leaf.number * width;
        for (uint32_t p = 0; p < (1u << n_bits); ++p) {
            int64_t o = 0;
            for (int64_t i = 0; i < d; ++i) {
                const size_t f = static_cast<size_t>(i);
                o |= static_cast<int64_t>((p & need[f]) == want[f]) << i;
            }
            double* row =
                to.table.data() + at + static_cast<size_t>(p) * static_cast<size_t>(n_values);
            for (int64_t i = 0; i < d; ++i)
                for (int64_t k = 0; k < width; ++k)
                    row[place[static_cast<size_t>(i)] + k] += own[i * size + o] * value[k];
        }
    }
}

void Background::add_values(const Kernels& kernels, const double* z, int64_t n_rows,
                            int64_t n_threads, const Values<double>& values) const {
    std::shared_ptr<std::vector<Tables<double>>> kept;
    {
        const std::lock_guard<std::mutex> lock(keeping);
        kept = kept_;
    }
    if (kept) {
        for (const Tables<double>& tables : *kept)
            add_tables(tables, kernels.doubles, z, n_rows, n_threads, values);
    } else {
        auto made = std::make_shared<std::vector<Tables<double>>>();
        int64_t bytes = 0;
        for (size_t i = 0; i < chunks_.size();) {
            // As many chunks side by side as there are threads.
            const size_t many = std::min<size_t>(
                chunks_.size() - i, static_cast<size_t>(std::max<int64_t>(n_threads, 1)));
            std::vector<Tables<double>> found(many);
            common::share(static_cast<int64_t>(many), n_threads, [&](auto next) {
                for (int64_t k = next(); k >= 0; k = next())
                    build(kernels, chunks_[i + static_cast<size_t>(k)].first,
                          chunks_[i + static_cast<size_t>(k)].second,
                          found[static_cast<size_t>(k)]);
            });
            for (Tables<double>& tables : found) {
                add_tables(tables, kernels.doubles, z, n_rows, n_threads, values);
                bytes += static_cast<int64_t>(tables.table.size() * sizeof(double));
                if (bytes > kKeptBytes) made = nullptr;
                if (made) made->push_back(std::move(tables));
            }
            i += many;
        }
        if (made) {
            const std::lock_guard<std::mutex> lock(keeping);
            kept_ = made;
        }
    }
    if (!deep_.empty()) by_patterns<false>(deep_, z, n_rows, n_threads, values);
}

void Background::add_pairs(const double* z, int64_t n_rows, int64_t n_threads,
                           const Values<double>& values) const {
    std::vector<int64_t> all(leaves_.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
    by_patterns<true>(all, z, n_rows, n_threads, values);
}

// The interactions of one leaf and one pattern of background rows; `gives` is 1 for features that
// only the row has, 2 for those that only the background has.
void Background::add_pairs_of(const Leaf& leaf, const std::vector<uint8_t>& gives, int64_t gains,
                              int64_t losses, double share, int64_t row, int64_t output,
                              const Values<double>& values) const {
    const double v = share * forest_.values[leaf.number * forest_.width + output];
    const int64_t nf = values.n_features, to = output_of(leaf.tree, output);
    for (size_t f = 0; f < gives.size(); ++f)
        for (size_t h = 0; h < gives.size(); ++h) {
            if (f == h || !gives[f] || !gives[h]) continue;
            const int64_t a = gains - (gives[f] == 1) - (gives[h] == 1);
            const int64_t b = losses - (gives[f] == 2) - (gives[h] == 2);
            const int64_t at = (row * nf + values.features[leaf.slots[f]]) * nf;
            values.pairs[(at + values.features[leaf.slots[h]]) * forest_.n_outputs + to] +=
                (gives[f] == gives[h] ? 0.5 : -0.5) * beta(a, b) * v;
        }
}

template <bool Pairs>
void Background::by_patterns(const std::vector<int64_t>& leaves, const double* z, int64_t n_rows,
                             int64_t n_threads, const Values<double>& values) const {
    const int64_t k = forest_.n_outputs, width = forest_.width, nf = values.n_features;
    common::share(n_rows, n_threads, [&](auto next) {
        std::vector<uint64_t> own;
        std::vector<uint8_t> has, gives;
        std::vector<double> gained;
        for (int64_t r = next(); r >= 0; r = next()) {
            const double* row = z + r * forest_.n_columns;
            for (int64_t number : leaves) {
                const Leaf& leaf = leaves_[static_cast<size_t>(number)];
                const int64_t d = static_cast<int64_t>(leaf.slots.size()), words = leaf.n_words();
                const int64_t root = forest_.test_start[leaf.tree];
                own.assign(static_cast<size_t>(words), 0);
                has.assign(static_cast<size_t>(d), 0);
                for (int64_t i = 0; i < d; ++i) {
                    const size_t f = static_cast<size_t>(i);
                    bool all = true;
                    for (int32_t t = leaf.term_start[f]; all && t < leaf.term_start[f + 1]; ++t) {
                        const Term& term = leaf.terms[static_cast<size_t>(t)];
                        all = goes_left(root + term.test, row) == (term.side == 0);
                    }
                    has[f] = all;
                    own[f / 64] |= static_cast<uint64_t>(all) << (f % 64);
                }
                const uint64_t last = d % 64 ? (uint64_t{1} << (d % 64)) - 1 : ~uint64_t{0};
                // Most background rows lack what this row lacks, too, and count for nothing.
                auto meets = [&](const uint64_t* other) {
                    for (int64_t w = 0; w + 1 < words; ++w)
                        if (~(own[static_cast<size_t>(w)] | other[w])) return false;
                    return (own[static_cast<size_t>(words - 1)] | other[words - 1]) == last;
                };
                // All that meet have what the row lacks; they differ in what the row gains.
                const int64_t losses = d - std::count(has.begin(), has.end(), 1);
                double lost = 0;
                gained.assign(static_cast<size_t>(d), 0.0);
                for (size_t p = 0; p < leaf.shares.size(); ++p) {
                    const uint64_t* other = leaf.has.data() + p * static_cast<size_t>(words);
                    if (!meets(other)) continue;
                    int64_t gains = 0;
                    for (int64_t w = 0; w < words; ++w)
                        gains += __builtin_popcountll(own[static_cast<size_t>(w)] & ~other[w]);
                    const double share = leaf.shares[p] * values.factor;
                    if (losses) lost += share * beta(gains, losses - 1);
                    const double gain = gains ? share * beta(gains - 1, losses) : 0;
                    for (int64_t w = 0; w < words; ++w)
                        for (uint64_t rest = own[static_cast<size_t>(w)] & ~other[w]; rest;
                             rest &= rest - 1)
                            gained[static_cast<size_t>(64 * w + __builtin_ctzll(rest))] += gain;
                    if constexpr (Pairs) {
                        gives.assign(static_cast<size_t>(d), 0);
                        for (size_t f = 0; f < gives.size(); ++f)
                            gives[f] = !has[f] ? 2 : !(other[f / 64] >> (f % 64) & 1);
                        for (int64_t o = 0; o < width; ++o)
                            add_pairs_of(leaf, gives, gains, losses, share, r, o, values);
                    }
                }
                for (size_t f = 0; f < gained.size(); ++f)
                    for (int64_t o = 0; o < width; ++o)
                        values.out[(r * nf + values.features[leaf.slots[f]]) * k +
                                   output_of(leaf.tree, o)] +=
                            (has[f] ? gained[f] : -lost) * forest_.values[leaf.number * width + o];
            }
        }
    });
}

int64_t Background::n_bytes() const {
    int64_t bytes = 0;
    for (const Leaf& leaf : leaves_)
        bytes += static_cast<int64_t>(leaf.has.size() * 8 + leaf.shares.size() * 8 +
                                      leaf.terms.size() * 8 + leaf.slots.size() * 8);
    return bytes;
}

}  // namespace dm::shapley
