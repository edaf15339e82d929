// Work shared among threads: whoever is free takes the next piece.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "common/interrupts.hpp"

namespace dm::common {

// Calls work(next) on up to n_threads threads, this one among them; next() gives each of 0..n - 1
// once and then -1. What a thread throws is thrown here when all are done. Work that can be stopped
// is, between its pieces and where it polls.
template <typename Work>
void share(int64_t n, int64_t n_threads, const Work& work) {
    if (std::min(n_threads, n) <= 1) {
        // One row is predicted in less time than it takes to set up what threads need.
        int64_t i = 0;
        work([&] {
            poll();
            return i < n ? i++ : int64_t{-1};
        });
        return;
    }
    std::atomic<int64_t> counter{0};
    std::mutex guard;
    std::condition_variable ended;
    int64_t n_running = 0;
    std::exception_ptr failure;
    Interrupts* const interrupts = Interrupts::current();
    auto attempt = [&](const auto& piece) {
        try {
            piece();
        } catch (...) {
            const std::lock_guard<std::mutex> lock(guard);
            failure = std::current_exception();
        }
    };
    auto run = [&] {
        attempt([&] {
            work([&] {
                poll();
                const int64_t i = counter++;
                return i < n ? i : int64_t{-1};
            });
        });
    };
    auto run_beside = [&] {
        Interrupts::current() = interrupts;
        run();
        const std::lock_guard<std::mutex> lock(guard);
        --n_running;
        ended.notify_one();
    };
    std::vector<std::thread> threads;
    // Where the system refuses a thread, the ones that run do the work.
    try {
        for (int64_t i = 1; i < std::min(n_threads, n); ++i) {
            {
                const std::lock_guard<std::mutex> lock(guard);
                ++n_running;
            }
            threads.emplace_back(run_beside);
        }
    } catch (const std::exception&) {
        const std::lock_guard<std::mutex> lock(guard);
        --n_running;
    }
    run();
    if (interrupts) {
        // Others may be at it for long, and only this thread hears of a wish to stop.
        std::unique_lock<std::mutex> lock(guard);
        while (!ended.wait_for(lock, Interrupts::kPatience, [&] { return n_running == 0; })) {
            lock.unlock();
            attempt([] { poll(); });
            lock.lock();
        }
    }
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace dm::common
