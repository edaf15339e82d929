// When to end early: a time limit, and other threads that were stopped.
#pragma once

#include <atomic>
#include <chrono>

#include "common/interrupts.hpp"

namespace dm::optimal {

// Thrown where the time is up; what was found so far holds.
struct TimeIsUp {};

class Stop {
public:
    using Clock = std::chrono::steady_clock;

    explicit Stop(Clock::time_point end) : end_(end) {}

    // Called every few milliseconds or more often.
    void look() {
        common::poll();
        if (is_up_.load(std::memory_order_relaxed)) throw TimeIsUp{};
        if (Clock::now() < end_) return;
        is_up_.store(true, std::memory_order_relaxed);
        throw TimeIsUp{};
    }

private:
    const Clock::time_point end_;
    std::atomic<bool> is_up_{false};
};

}  // namespace dm::optimal
