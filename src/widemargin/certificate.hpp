// What a certificate counts and bounds row by row: one walk over margins and dual variables.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "losses.hpp"
#include "sums.hpp"

namespace widemargin {

// Arrays of n, and numbers of the whole problem.
struct Proof {
    const double *m, *alpha, *y, *c, *norms;
    Index n;
    double w_size, implied_size, b;  // ‖w‖, ‖w(α)‖ and the bias
    double at_bound;                 // α this close to an end of its range, relative to the range, lies on it
    double tiny;                     // α of at most this size are 0
    unsigned char* support;          // comes back: whether α ≠ 0
};

// Also to what is no number.
inline void raise(double& most, double value) {
    if (!std::isnan(most) && !(value <= most)) most = value;
}

// Rows of strength 0 are none.
struct RowFacts {
    std::array<Index, 3> counts{};  // rows at α = 0, in between, and at the upper bound
    std::array<double, 3> worst{};  // the worst miss of what optimality demands there
    Index violations = 0, misclassified = 0, right = 0;
    double slack = 0;
    double rounding = 0;  // of Σ cφ(m) and of Σ αm, to first order

    void operator+=(const RowFacts& other) {
        for (std::size_t k = 0; k < 3; ++k) {
            counts[k] += other.counts[k];
            raise(worst[k], other.worst[k]);
        }
        violations += other.violations, misclassified += other.misclassified, right += other.right;
        slack += other.slack, rounding += other.rounding;
    }
};

// How far (m, a) is from optimality, 0 where −a is a slope of φ at m: of a loss with a kink, how far m is from where it
// should be, at most the kink where a > 0 and at least the kink where a < 1.
template <class Loss>
double kkt_miss(double m, double slope, double a) {
    if constexpr (requires { Loss::shape(m); }) {
        return std::abs(a + slope);
    } else {
        const double beyond = Loss::gradient(0.0, m, 1.0);
        return beyond < 0 ? (a < 1 ? -beyond : 0.0) : a > 0 || std::isnan(beyond) ? beyond : 0.0;
    }
}

template <class Loss>
RowFacts facts_of_stretch(const Proof& proof, Index begin, Index end) {
    constexpr double unit = 4 * std::numeric_limits<double>::epsilon();
    RowFacts facts;
    // What takes roots and exponentials first, in vectors: how long rows are, by how much their margins may be off, and the
    // slopes of φ at the margins and there; a margin just above the kink may be just below it.
    std::array<double, rows_in_sum> sizes, offs, slopes, steeper;
#pragma omp simd
    for (Index i = begin; i < end; ++i) {
        const auto k = static_cast<std::size_t>(i - begin);
        sizes[k] = std::sqrt(proof.norms[i]);
        offs[k] = unit * (sizes[k] * proof.w_size + std::abs(proof.b));
        slopes[k] = quick_shape<Loss>(proof.m[i]).slope;
        steeper[k] = quick_shape<Loss>(proof.m[i] - offs[k]).slope;
    }
    for (Index i = begin; i < end; ++i) {
        const auto k = static_cast<std::size_t>(i - begin);
        const double m = proof.m[i], alpha = proof.alpha[i], c = proof.c[i];
        const bool at_zero = !(c > 0) || std::abs(alpha) <= std::min(proof.at_bound * c, proof.tiny);
        proof.support[i] = !at_zero;
        if (!(c > 0)) continue;
        const bool hard = c == inf;
        const double slack = m >= 1 ? 0.0 : 1 - m, upper = Loss::upper(1.0);
        facts.slack += slack;
        facts.violations += slack > proof.at_bound;
        facts.misclassified += slack > 1;
        facts.right += proof.y[i] > 0 ? m > 0 : m >= 0;
        double a = hard ? 0.0 : alpha / c;
        const bool at_upper = !hard && !at_zero && a >= upper - proof.at_bound;
        if (at_zero && Loss::lower() == 0) a = 0;
        if (at_upper) a = upper;
        const double miss = !hard ? kkt_miss<Loss>(m, slopes[k], a) : at_zero ? slack : std::abs(m - 1);
        const std::size_t place = at_zero ? 0 : at_upper ? 2 : 1;
        ++facts.counts[place];
        raise(facts.worst[place], miss);
        const double pull = hard ? std::abs(alpha) : std::abs(c * steeper[k]);
        facts.rounding += pull * offs[k] + std::abs(alpha) * unit * (sizes[k] * proof.implied_size + std::abs(proof.b));
    }
    return facts;
}

template <class Loss>
RowFacts facts_of_rows(const Proof& proof, int threads) {
    return sum_of_stretches(
        proof.n, threads, [&](Index begin, Index end) { return facts_of_stretch<Loss>(proof, begin, end); });
}

}  // namespace widemargin
