// Work shared among threads: whoever is free takes the next piece.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace dm::common {

// Calls work(next) on up to n_threads threads, this one among them; next() gives each of 0..n - 1
// once and then -1. What a thread throws is thrown here when all are done.
template <typename Work>
void share(int64_t n, int64_t n_threads, const Work& work) {
    if (std::min(n_threads, n) <= 1) {
        // One row is predicted in less time than it takes to set up what threads need.
        int64_t i = 0;
        work([&] { return i < n ? i++ : int64_t{-1}; });
        return;
    }
    std::atomic<int64_t> counter{0};
    std::mutex guard;
    std::exception_ptr failure;
    auto run = [&] {
        try {
            work([&] {
                const int64_t i = counter++;
                return i < n ? i : int64_t{-1};
            });
        } catch (...) {
            const std::lock_guard<std::mutex> lock(guard);
            failure = std::current_exception();
        }
    };
    std::vector<std::thread> threads;
    // Where the system refuses a thread, the ones that run do the work.
    try {
        for (int64_t i = 1; i < std::min(n_threads, n); ++i) threads.emplace_back(run);
    } catch (const std::exception&) {
    }
    run();
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace dm::common
