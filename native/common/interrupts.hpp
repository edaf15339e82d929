// Long work that can be stopped: whoever called it is asked now and then whether to go on.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace dm::common {

// What `poll` throws where the work is not wanted any more.
struct Interrupted {};

// Lets the work of this thread, and of threads that `share` starts for it, be stopped while it
// lives. Only the thread that made it asks; the others look at what it was told.
class Interrupts {
public:
    using Asked = bool (*)();

    explicit Interrupts(Asked asked) : asked_(asked), before_(current()) {
        next_ = Clock::now() + kPatience;
        current() = this;
    }
    ~Interrupts() { current() = before_; }
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

    void look() {
        if (wanted_.load(std::memory_order_relaxed)) throw Interrupted{};
        if (std::this_thread::get_id() != owner_) return;
        const auto now = Clock::now();
        if (now < next_) return;
        if (asked_()) {
            wanted_.store(true, std::memory_order_relaxed);
            throw Interrupted{};
        }
        next_ = Clock::now() + kPatience;
    }

    // Of this thread; null where nothing can stop the work.
    static Interrupts*& current() {
        static thread_local Interrupts* found = nullptr;
        return found;
    }

    // Time between two questions: asking takes Python's lock, which another thread may hold.
    static constexpr std::chrono::milliseconds kPatience{20};

private:
    using Clock = std::chrono::steady_clock;

    const Asked asked_;
    Interrupts* const before_;
    const std::thread::id owner_ = std::this_thread::get_id();
    Clock::time_point next_;
    std::atomic<bool> wanted_{false};
};

// Called by work that is long, every few milliseconds or more often.
inline void poll() {
    if (Interrupts* interrupts = Interrupts::current()) interrupts->look();
}

}  // namespace dm::common
