// Gauss-Legendre rules on the interval from 0 to 1.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace dm::shapley {

struct Rule {
    std::vector<double> y, weight;
};

// n points, exact for polynomials of degree 2 n - 1.
inline Rule gauss_legendre(int64_t n) {
    Rule rule{std::vector<double>(static_cast<size_t>(n)),
              std::vector<double>(static_cast<size_t>(n))};
    const long double pi = 3.14159265358979323846264338327950288L;
    for (int64_t i = 0; i < (n + 1) / 2; ++i) {
        long double x = std::cos(pi * (i + 0.75L) / (n + 0.5L)), slope = 1;
        for (int step = 0; step < 100; ++step) {
            long double value = 1, before = 0;  // Legendre polynomials of degree k and k - 1
            for (int64_t k = 1; k <= n; ++k) {
                const long double next = ((2 * k - 1) * x * value - (k - 1) * before) / k;
                before = value;
                value = next;
            }
            slope = n * (x * value - before) / (x * x - 1);
            const long double move = value / slope;
            x -= move;
            if (std::fabs(move) < 1e-18L) break;
        }
        const long double weight = 1 / ((1 - x * x) * slope * slope);
        const size_t low = static_cast<size_t>(i), high = static_cast<size_t>(n - 1 - i);
        rule.y[low] = static_cast<double>((1 - x) / 2);
        rule.y[high] = static_cast<double>((1 + x) / 2);
        rule.weight[low] = rule.weight[high] = static_cast<double>(weight);
    }
    return rule;
}

}  // namespace dm::shapley
