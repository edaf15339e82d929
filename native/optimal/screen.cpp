#include "optimal/screen.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>

#include "optimal/prefix_losses.hpp"

namespace dm::optimal {
namespace {

// Vectors of T, aligned as the kernels' own.
template <typename T>
class Vectors {
public:
    T* resize(int64_t size) {
        if (size > size_) {
            held_.reset(new (std::align_val_t{kWidest}) T[static_cast<size_t>(size)]);
            size_ = size;
        }
        return held_.get();
    }
    T* data() const { return held_.get(); }

private:
    struct Free {
        void operator()(T* p) const { ::operator delete[](p, std::align_val_t{kWidest}); }
    };
    std::unique_ptr<T[], Free> held_;
    int64_t size_ = 0;
};

// Every feature's order cut into runs, and the ranks of the root's feature in these orders.
template <typename T>
class Lanes : public Screen {
protected:
    Lanes(const Problem& problem, int64_t n_lanes) : Screen(problem), lanes(n_lanes) {}

    const int64_t lanes;

    void lay_out(const Node& node) {
        node_ = &node;
        steps_ = (node.m + lanes - 1) / lanes;
        size_ = steps_ * lanes;
        row_.resize(problem_.n * size_);
        root_.resize(problem_.n * size_);
        limit_.resize(problem_.n * size_);
        has_ties_.assign(problem_.n, 0);
        ranks_.resize(node.m + 1);
    }

    // Calls give(i, at) with the place of the i-th row in the order.
    template <typename Give>
    void each_place(const Give& give) const {
        int64_t i = 0;
        for (int64_t l = 0; l < lanes; ++l)
            for (int64_t s = 0; s < steps_; ++s) give(i++, s * lanes + l);
    }

    // Rows and limits of feature g; `forbidden` stands where no cut may follow.
    void lay_out_feature(int32_t g, T forbidden) {
        const int32_t* order = node_->order_of(g);
        const int32_t* rank = node_->rank_of(g);
        int32_t* row = row_.data() + g * size_;
        T* limit = limit_.data() + g * size_;
        const int64_t m = node_->m;
        has_ties_[g] = node_->n_ranks[g] < m;
        each_place([&](int64_t i, int64_t at) {
            row[at] = i < m ? order[i] : static_cast<int32_t>(m);
            const bool is_tied = i + 1 < m && rank[order[i]] == rank[order[i + 1]];
            limit[at] = is_tied ? forbidden : kUnlimited<T>;
        });
    }

    void take_ranks(int32_t f) {
        const int32_t* rank = node_->rank_of(f);
        T* ranks = ranks_.data();
        for (int32_t i = 0; i < node_->m; ++i) ranks[i] = static_cast<T>(rank[i]);
        ranks[node_->m] = 0;
        has_ranks_.assign(problem_.n, 0);
    }

    // The ranks of the root's feature in the order of g, gathered when they are first needed.
    const T* root_of(int32_t g) {
        T* root = root_.data() + g * size_;
        if (!has_ranks_[g]) {
            const int32_t* row = row_.data() + g * size_;
            const T* ranks = ranks_.data();
            for (int64_t i = 0; i < size_; ++i) root[i] = ranks[row[i]];
            has_ranks_[g] = 1;
        }
        return root;
    }

    int64_t steps_ = 0, size_ = 0;
    Vectors<int32_t> row_;
    Vectors<T> root_, limit_, ranks_;
    std::vector<char> has_ties_, has_ranks_;
};

// Sums over the rows of the ranks up to each of feature f.
void sums_by_rank(const Node& node, int32_t f, const std::vector<double>& values,
                  std::vector<double>& out) {
    const int32_t* order = node.order_of(f);
    const int32_t* rank = node.rank_of(f);
    out.resize(node.n_ranks[f]);
    double sum = 0.0;
    for (int32_t i = 0; i < node.m; ++i) out[rank[order[i]]] = sum += values[order[i]];
}

template <typename T>
class TwoClassScreen : public Lanes<T> {
    using Base = Lanes<T>;
    using Base::limit_, Base::node_, Base::problem_, Base::row_, Base::size_, Base::steps_;

public:
    TwoClassScreen(const Problem& problem, const TypedKernels<T>& kernels)
        : Base(problem, kernels.lanes), kernels_(kernels) {}

    void enter(const Node& node) override {
        this->lay_out(node);
        difference_.resize(problem_.n * size_);
        before_.resize(problem_.n * size_);
        signed_.resize(node.m + 1);
        for (int32_t i = 0; i < node.m; ++i)
            signed_[i] = static_cast<T>(node.label[i] ? node.w[i] : -node.w[i]);
        signed_[node.m] = 0;
        for (int32_t g = 0; g < problem_.n; ++g) {
            if (node.n_ranks[g] < 2) continue;
            this->lay_out_feature(g, -kUnlimited<T>);
            const int32_t* row = row_.data() + g * size_;
            T* difference = difference_.data() + g * size_;
            T* before = before_.data() + g * size_;
            for (int64_t at = 0; at < size_; ++at) {
                difference[at] = signed_[row[at]];
                const T so_far = at < this->lanes ? T(0) : before[at - this->lanes];
                before[at] = static_cast<T>(so_far + difference[at]);
            }
        }
    }

    void enter_feature(int32_t f) override {
        this->take_ranks(f);
        sums_by_rank(*node_, f, node_->w, weight_);
    }

protected:
    void losses_of(int32_t g, int32_t cut, double* out) override {
        Extremes<T> found;
        const int64_t at = g * size_;
        kernels_.two_classes(
            {steps_, this->root_of(g), difference_.data() + at, before_.data() + at,
             this->has_ties_[g] ? limit_.data() + at : nullptr},
            static_cast<T>(cut), found);
        const double weight[2] = {weight_[cut], node_->weight - weight_[cut]};
        for (int side = 0; side < 2; ++side) {
            const double D = found.total[side];
            const double most = std::max({std::abs(D), std::abs(2.0 * found.most[side] - D),
                                          std::abs(2.0 * found.least[side] - D)});
            out[side] = std::max(0.0, (weight[side] - most) / 2);
        }
    }

private:
    const TypedKernels<T>& kernels_;
    Vectors<T> difference_, before_;
    std::vector<T> signed_;
    std::vector<double> weight_;
};

template <typename T>
class ManyClassScreen : public Lanes<T> {
    using Base = Lanes<T>;
    using Base::lanes, Base::limit_, Base::node_, Base::problem_, Base::row_, Base::size_,
        Base::steps_;

public:
    ManyClassScreen(const Problem& problem, const TypedKernels<T>& kernels)
        : Base(problem, kernels.lanes), kernels_(kernels) {}

    void enter(const Node& node) override {
        this->lay_out(node);
        const int64_t K = node.n_classes;
        label_.resize(problem_.n * size_);
        w_.resize(problem_.n * size_);
        start_.resize(problem_.n * K * lanes);
        scratch_.resize(4 * K * lanes);
        total_.assign(K, 0);
        for (int32_t i = 0; i < node.m; ++i)
            total_[node.label[i]] = static_cast<T>(total_[node.label[i]] + node.w[i]);
        for (int32_t g = 0; g < problem_.n; ++g) {
            if (node.n_ranks[g] < 2) continue;
            this->lay_out_feature(g, T(0));
            const int32_t* row = row_.data() + g * size_;
            T* label = label_.data() + g * size_;
            T* w = w_.data() + g * size_;
            T* start = start_.data() + g * K * lanes;
            std::fill(start, start + K * lanes, T(0));
            for (int64_t at = 0; at < size_; ++at) {
                const bool is_row = row[at] < node.m;
                label[at] = is_row ? static_cast<T>(node.label[row[at]]) : T(0);
                w[at] = is_row ? static_cast<T>(node.w[row[at]]) : T(0);
                T& run = start[static_cast<int64_t>(label[at]) * lanes + at % lanes];
                run = static_cast<T>(run + w[at]);
            }
            for (int64_t c = 0; c < K; ++c) {
                T sum = 0;
                for (int64_t l = 0; l < lanes; ++l) {
                    const T run = start[c * lanes + l];
                    start[c * lanes + l] = sum;
                    sum = static_cast<T>(sum + run);
                }
            }
        }
    }

    void enter_feature(int32_t f) override {
        this->take_ranks(f);
        sums_by_rank(*node_, f, node_->w, weight_);
    }

protected:
    void losses_of(int32_t g, int32_t cut, double* out) override {
        const int64_t at = g * size_, K = node_->n_classes;
        T found[2];
        kernels_.many_classes(
            {steps_, K, this->root_of(g), label_.data() + at, w_.data() + at,
             start_.data() + g * K * lanes, total_.data(), limit_.data() + at, scratch_.data()},
            static_cast<T>(cut), found);
        out[0] = std::max(0.0, weight_[cut] - static_cast<double>(found[0]));
        out[1] = std::max(0.0, node_->weight - weight_[cut] - static_cast<double>(found[1]));
    }

private:
    const TypedKernels<T>& kernels_;
    Vectors<T> label_, w_, start_, scratch_;
    std::vector<T> total_;
    std::vector<double> weight_;
};

class NumberScreen : public Lanes<int32_t> {
public:
    NumberScreen(const Problem& problem, const Kernels& kernels)
        : Lanes<int32_t>(problem, kNumberLanes), kernels_(kernels) {}

    void enter(const Node& node) override {
        lay_out(node);
        is_laid_out_ = false;
        squares_.assign(node.m, 0.0);
        total_.assign(1 + problem_.k, 0.0);
        for (int32_t i = 0; i < node.m; ++i) {
            total_[0] += node.w[i];
            for (int32_t t = 0; t < problem_.k; ++t) {
                const double wy = node.w[i] * node.target(t)[i];
                total_[1 + t] += wy;
                squares_[i] += wy * node.target(t)[i];
            }
        }
        for (int32_t g = 0; g < problem_.n; ++g) {
            if (node.n_ranks[g] < 2) continue;
            lay_out_feature(g, 0);
            int32_t* is_cut = limit_.data() + g * size_;
            for (int64_t at = 0; at < size_; ++at) is_cut[at] = is_cut[at] ? -1 : 0;
        }
        // Sums of whole numbers must fit, and converted to float be exact enough.
        is_whole_ = problem_.is_whole && problem_.k == 1 && node.weight < kMostWhole;
        if (is_whole_)
            round_targets();
        else
            lay_out_numbers();
    }

    void enter_feature(int32_t f) override {
        take_ranks(f);
        const int32_t* order = node_->order_of(f);
        const int32_t* rank = node_->rank_of(f);
        const int32_t k = problem_.k;
        left_.resize(node_->n_ranks[f] * (2 + k));
        sums_.assign(2 + k, 0.0);
        for (int32_t i = 0; i < node_->m; ++i) {
            const int32_t row = order[i];
            sums_[0] += squares_[row];
            sums_[1] += node_->w[row];
            for (int32_t t = 0; t < k; ++t) sums_[2 + t] += node_->w[row] * node_->target(t)[row];
            std::copy(sums_.begin(), sums_.end(), left_.begin() + rank[row] * (2 + k));
        }
    }

    bool exact_losses(int32_t cut, double* out) override {
        if (!is_whole_) return false;
        if (!is_laid_out_) lay_out_numbers();
        out[0] = out[1] = kInfinite;
        for (int32_t g = 0; g < problem_.n; ++g) {
            if (node_->n_ranks[g] < 2) continue;
            double found[2];
            precise(g, cut, found);
            for (int side = 0; side < 2; ++side) out[side] = std::min(out[side], found[side]);
        }
        return true;
    }

protected:
    void losses_of(int32_t g, int32_t cut, double* out) override {
        if (!is_whole_) return precise(g, cut, out);
        const int64_t at = g * size_;
        double found[2];
        kernels_.whole_numbers({steps_,
                                root_of(g),
                                limit_.data() + at,
                                whole_w_.data() + at,
                                whole_wy_.data() + at,
                                w_before_.data() + at,
                                wy_before_.data() + at,
                                whole_start_.data() + g * 2 * lanes,
                                {whole_total_[0], whole_total_[1]},
                                error_},
                               cut, found);
        for (double& explained : found) explained *= unit_ * unit_;
        from_explained(cut, found, out);
    }

private:
    static constexpr double kMostWhole = 1 << 24;

    // Loss of one leaf on each side, less what a second one explains.
    void from_explained(int32_t cut, const double* explained, double* out) const {
        const int32_t k = problem_.k;
        const double* sums = left_.data() + int64_t{cut} * (2 + k);
        double leaf[2] = {sums[0], node_->squares - sums[0]};
        for (int32_t t = 0; t < k; ++t) {
            const double left = sums[2 + t], right = total_[1 + t] - left;
            leaf[0] -= left * left / sums[1];
            // At the last cut nothing is on the right.
            if (total_[0] - sums[1] > lightest_) leaf[1] -= right * right / (total_[0] - sums[1]);
        }
        for (int side = 0; side < 2; ++side)
            out[side] = std::max(0.0, leaf[side] - explained[side]);
    }

    void precise(int32_t g, int32_t cut, double* out) {
        const int64_t k = problem_.k;
        double found[2];
        kernels_.numbers({steps_, k, root_of(g), limit_.data() + g * size_, w_.data() + g * size_,
                          wy_.data() + g * k * size_, start_.data() + g * (1 + k) * lanes,
                          total_.data(), lightest_, scratch_.data()},
                         cut, found);
        from_explained(cut, found, out);
    }

    void round_targets() {
        const double mean = total_[1] / total_[0];
        const double* y = node_->target(0);
        lightest_ = 0.5;
        double size = 0.0;
        for (int32_t i = 0; i < node_->m; ++i) size += node_->w[i] * std::abs(y[i] - mean);
        unit_ = size > 0.0 ? size / (1 << 30) : 1.0;
        rounded_.resize(node_->m + 1);
        whole_total_[0] = whole_total_[1] = 0;
        for (int32_t i = 0; i < node_->m; ++i) {
            rounded_[i] = static_cast<int32_t>(std::lrint(node_->w[i] * (y[i] - mean) / unit_));
            whole_total_[0] += static_cast<int32_t>(node_->w[i]);
            whole_total_[1] += rounded_[i];
        }
        rounded_[node_->m] = 0;
        // Half a unit for each row before the cut, as much in the mean, and the rounding of sums of
        // up to 2^30 to floats.
        error_ = static_cast<float>(node_->m) + 512.0f;
        whole_w_.resize(problem_.n * size_);
        whole_wy_.resize(problem_.n * size_);
        w_before_.resize(problem_.n * size_);
        wy_before_.resize(problem_.n * size_);
        whole_start_.resize(problem_.n * 2 * lanes);
        for (int32_t g = 0; g < problem_.n; ++g) {
            if (node_->n_ranks[g] < 2) continue;
            const int32_t* row = row_.data() + g * size_;
            int32_t run[2][kNumberLanes] = {};
            for (int64_t at = 0; at < size_; ++at) {
                const int64_t to = g * size_ + at;
                const bool is_row = row[at] < node_->m;
                whole_w_.data()[to] = is_row ? static_cast<int32_t>(node_->w[row[at]]) : 0;
                whole_wy_.data()[to] = rounded_[row[at]];
                w_before_.data()[to] = run[0][at % lanes] += whole_w_.data()[to];
                wy_before_.data()[to] = run[1][at % lanes] += whole_wy_.data()[to];
            }
            for (int64_t c = 0; c < 2; ++c) {
                int32_t sum = 0;
                for (int64_t l = 0; l < lanes; ++l) {
                    whole_start_.data()[(g * 2 + c) * lanes + l] = sum;
                    sum += run[c][l];
                }
            }
        }
    }

    void lay_out_numbers() {
        const Node& node = *node_;
        const int64_t k = problem_.k;
        is_laid_out_ = true;
        w_.resize(problem_.n * size_);
        wy_.resize(problem_.n * k * size_);
        start_.resize(problem_.n * (1 + k) * lanes);
        scratch_.resize(4 * (1 + k) * lanes);
        lightest_ = *std::min_element(node.w.begin(), node.w.end()) / 2;
        for (int32_t g = 0; g < problem_.n; ++g) {
            if (node.n_ranks[g] < 2) continue;
            const int32_t* row = row_.data() + g * size_;
            for (int64_t c = 0; c <= k; ++c) {
                double* out = c == 0 ? w_.data() + g * size_ : wy_.data() + (g * k + c - 1) * size_;
                const double* y = c == 0 ? nullptr : node.target(static_cast<int32_t>(c - 1));
                double* start = start_.data() + (g * (1 + k) + c) * lanes;
                std::fill(start, start + lanes, 0.0);
                for (int64_t at = 0; at < size_; ++at) {
                    const int32_t i = row[at];
                    out[at] = i < node.m ? node.w[i] * (y ? y[i] : 1.0) : 0.0;
                    start[at % lanes] += out[at];
                }
                double sum = 0.0;
                for (int64_t l = 0; l < lanes; ++l) {
                    const double run = start[l];
                    start[l] = sum;
                    sum += run;
                }
            }
        }
    }

    const Kernels& kernels_;
    bool is_whole_ = false, is_laid_out_ = false;
    Vectors<double> w_, wy_, start_, scratch_;
    std::vector<double> total_, squares_;
    std::vector<double> left_, sums_;  // by rank: squares, weight and targets of the left side
    double lightest_ = 0.0;
    Vectors<int32_t> whole_w_, whole_wy_, w_before_, wy_before_, whole_start_;
    std::vector<int32_t> rounded_;
    int32_t whole_total_[2] = {0, 0};
    double unit_ = 1.0;
    float error_ = 0.0f;
};

// Without vectors, for any loss.
class PlainScreen : public Screen {
public:
    explicit PlainScreen(const Problem& problem) : Screen(problem), stumps_(problem) {}
    void enter(const Node& node) override { node_ = &node; }
    void enter_feature(int32_t f) override {
        f_ = f;
        stumps_.leaves(*node_, f, left_, right_);
    }

protected:
    void losses_of(int32_t g, int32_t cut, double* out) override {
        for (int side = 0; side < 2; ++side) {
            const double leaf = (side ? right_ : left_)[cut];
            out[side] = std::min(leaf, stumps_.best(*node_, f_, cut, side, g).relaxed);
        }
    }

private:
    Stumps stumps_;
    std::vector<double> left_, right_;
    int32_t f_ = 0;
};

constexpr double kMostShort = 32000, kMostInt = 1e9;
constexpr int32_t kMostClasses = 64;  // beyond, vectors compare rows with more classes than it pays

}  // namespace

void Screen::losses(int32_t cut, const Known& known, double* left, double* right, double* out) {
    out[0] = out[1] = kInfinite;
    const auto look = [&](int32_t g) {
        double found[2];
        losses_of(g, cut, found);
        left[g] = std::max(found[0], known.left[g]);
        right[g] = std::max(found[1], known.right[g]);
        out[0] = std::min(out[0], left[g]);
        out[1] = std::min(out[1], right[g]);
    };
    // The features that are best at the ends first: they leave most of the others out.
    int32_t first[2] = {-1, -1};
    for (int32_t g = 0; g < problem_.n; ++g) {
        left[g] = right[g] = kInfinite;
        if (node_->n_ranks[g] < 2) continue;
        if (first[0] < 0 || known.left[g] < known.left[first[0]]) first[0] = g;
        if (first[1] < 0 || known.right[g] < known.right[first[1]]) first[1] = g;
    }
    look(first[0]);
    if (first[1] != first[0]) look(first[1]);
    for (int32_t g = 0; g < problem_.n; ++g) {
        if (node_->n_ranks[g] < 2 || g == first[0] || g == first[1]) continue;
        if (known.left[g] >= std::min(out[0], known.left_enough) &&
            known.right[g] >= std::min(out[1], known.right_enough)) {
            left[g] = known.left[g];
            right[g] = known.right[g];
            out[0] = std::min(out[0], left[g]);
            out[1] = std::min(out[1], right[g]);
        } else {
            look(g);
        }
    }
}

Screens::Screens(const Problem& problem, const Kernels& kernels)
    : problem_(problem), kernels_(kernels) {}
Screens::~Screens() = default;

Screen& Screens::enter(const Node& node) {
    int32_t which = 6;
    if (problem_.loss == Loss::error && node.n_classes <= kMostClasses) {
        const double most = std::max<double>(node.weight, node.m);
        const bool is_whole = problem_.is_whole;
        const int32_t type = is_whole && most <= kMostShort ? 0
                             : is_whole && most <= kMostInt ? 1
                                                            : 2;
        which = (node.n_classes <= 2 ? 0 : 3) + type;
    }
    if (problem_.loss == Loss::squared) which = 6;
    std::unique_ptr<Screen>& made = made_[which];
    if (!made) {
        switch (which) {
            case 0:
                made = std::make_unique<TwoClassScreen<int16_t>>(problem_, kernels_.shorts);
                break;
            case 1:
                made = std::make_unique<TwoClassScreen<int32_t>>(problem_, kernels_.ints);
                break;
            case 2:
                made = std::make_unique<TwoClassScreen<double>>(problem_, kernels_.doubles);
                break;
            case 3:
                made = std::make_unique<ManyClassScreen<int16_t>>(problem_, kernels_.shorts);
                break;
            case 4:
                made = std::make_unique<ManyClassScreen<int32_t>>(problem_, kernels_.ints);
                break;
            case 5:
                made = std::make_unique<ManyClassScreen<double>>(problem_, kernels_.doubles);
                break;
            default:
                if (problem_.loss == Loss::squared)
                    made = std::make_unique<NumberScreen>(problem_, kernels_);
                else
                    made = std::make_unique<PlainScreen>(problem_);
        }
    }
    made->enter(node);
    return *made;
}

}  // namespace dm::optimal
