// HILDRETH: max −½αᵀQα − αᵀb over 0 ≤ α ≤ upper, one coordinate at a time.
//
// The gradient Qα + b is kept, so that a look at a coordinate costs O(1) and a change O(n).
#pragma once

#include <algorithm>
#include <cmath>

#include "../data/rows.hpp"
#include "../losses.hpp"

namespace widemargin {

struct BoxQp {
    const double* q;  // n × n, row by row
    const double* upper;
    double *alpha, *gradient;
    Index n;

    double curvature(Index i) const { return q[i * n + i]; }

    // The best value of αᵢ while the others stay; with no curvature it is an end of the box.
    double best(Index i) const {
        const double g = gradient[i], bend = curvature(i);
        if (bend <= 0) return g > 0 ? 0.0 : g < 0 ? upper[i] : alpha[i];
        return std::clamp(alpha[i] - g / bend, 0.0, upper[i]);
    }

    double ascent(Index i, double change) const { return -change * (gradient[i] + curvature(i) * change / 2); }

    // Moves αᵢ to its best value and returns what that gains; 0 where only rounding would move.
    double climb(Index i) {
        const double next = best(i), change = next - alpha[i];
        if (next < inf && std::abs(change) <= 1e-15 * std::abs(next)) return 0;
        const double gain = ascent(i, change);
        alpha[i] = next;
        if (curvature(i) > 0) {
            const double* row = q + i * n;
#pragma omp simd
            for (Index j = 0; j < n; ++j) gradient[j] += change * row[j];
        }
        return std::max(gain, 0.0);
    }

    // The coordinate that gains most, the first of several; −1 if none gains.
    Index steepest() const {
        Index chosen = -1;
        double most = 0;
        for (Index i = 0; i < n; ++i) {
            const double change = best(i) - alpha[i];
            const double gain = change == 0 ? 0 : ascent(i, change);
            if (gain > most) most = gain, chosen = i;
        }
        return chosen;
    }
};

// What all visits together gained; `moved` counts those that changed something.
inline double hildreth_visits(BoxQp& problem, const Index* visits, Index count, Index& moved) {
    double gain = 0;
    for (Index k = 0; k < count; ++k) {
        const double before = problem.alpha[visits[k]];
        gain += problem.climb(visits[k]);
        moved += problem.alpha[visits[k]] != before;
    }
    return gain;
}

inline double hildreth_greedy(BoxQp& problem, Index count, Index& moved) {
    double gain = 0;
    for (Index k = 0; k < count; ++k) {
        const Index i = problem.steepest();
        if (i < 0) break;
        const double before = problem.alpha[i];
        gain += problem.climb(i);
        if (problem.alpha[i] == before) break;
        ++moved;
    }
    return gain;
}

}  // namespace widemargin
