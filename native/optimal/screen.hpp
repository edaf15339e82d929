// The least loss of two leaves on either side of a root's cut, as the relaxed problem has it.
#pragma once

#include <memory>

#include "optimal/kernels.hpp"
#include "optimal/node.hpp"

namespace dm::optimal {

// What is known of a cut's two sides before it is looked at.
struct Known {
    const double* left;                // (n,) of fewer rows on the left: the left side has no less
    const double* right;               // (n,) of fewer rows on the right
    double left_enough, right_enough;  // a loss from which on the cut is of no interest
};

// Enter a node, then a feature of its root, then ask for cuts of it.
class Screen {
public:
    explicit Screen(const Problem& problem) : problem_(problem) {}
    virtual ~Screen() = default;
    virtual void enter(const Node& node) = 0;
    virtual void enter_feature(int32_t f) = 0;

    // Losses left and right of the cut behind rank `cut`, by feature of the second test, into two
    // arrays (n,), and the least of them into `out`. They may be too small, but where both of `out`
    // are below what is enough they are what `exact_losses` would give, or a little less.
    void losses(int32_t cut, const Known& known, double* left, double* right, double* out);
    // The least losses again, without the "little less"; false where there is none.
    virtual bool exact_losses(int32_t, double*) { return false; }

protected:
    // Left and right, with a second test of feature g, or a little less.
    virtual void losses_of(int32_t g, int32_t cut, double* out) = 0;

    const Problem& problem_;
    const Node* node_ = nullptr;
};

// The screens of a problem, each made when a node first needs it.
class Screens {
public:
    Screens(const Problem& problem, const Kernels& kernels);
    ~Screens();
    // The one for this node, which it has entered.
    Screen& enter(const Node& node);

private:
    const Problem& problem_;
    const Kernels& kernels_;
    std::unique_ptr<Screen> made_[7];
};

}  // namespace dm::optimal
