// The dual point of a proximal step for the hinge: αᵢ = centreᵢ + cᵢτ(1 − mᵢ), clipped to its bounds 0 and cᵢ.
//
// One walk over the rows yields all that a Newton step and its line search ask for. Sums are taken over a fixed number
// of pieces, so their bits do not depend on the threads.
#pragma once

#include <array>

#include "../data/rows.hpp"
#include "../threads.hpp"

namespace widemargin {

// Arrays of n: margins, their change along the step (t of it is taken), the centre, strengths, labels.
struct Ramp {
    const double *m, *dm, *centre, *c, *y;
    double t, tau;
    double* alpha;  // comes back
    Index n;
};

struct RampSums {
    double slope = 0, bend = 0;               // −Σ α·dm, and its rise per t: Σ cτ·dm² over the rows between the bounds
    double loss = 0, held = 0;                // Σ c·max(0, 1 − m) and Σ α(1 − m)
    double total = 0, balance = 0, free = 0;  // Σ α, Σ αy and the number of rows between the bounds

    void operator+=(const RampSums& other) {
        slope += other.slope, bend += other.bend, loss += other.loss, held += other.held;
        total += other.total, balance += other.balance, free += other.free;
    }
};

[[gnu::noinline]] inline RampSums ramp_piece(const Ramp ramp, Index begin, Index end) {
    const double *m = ramp.m, *dms = ramp.dm, *centre = ramp.centre, *cs = ramp.c, *y = ramp.y, t = ramp.t, tau = ramp.tau;
    double* alphas = ramp.alpha;
    double slope = 0, bend = 0, loss = 0, held = 0, total = 0, balance = 0, free = 0;
#pragma omp simd reduction(+ : slope, bend, loss, held, total, balance, free)
    for (Index i = begin; i < end; ++i) {
        const double dm = dms[i], c = cs[i], room = 1 - (m[i] + t * dm), pull = c * tau, wanted = centre[i] + pull * room;
        const double raised = wanted > 0 ? wanted : 0, alpha = raised < c ? raised : c;
        const double inside = (alpha > 0 ? 1.0 : 0.0) * (alpha < c ? 1.0 : 0.0);
        alphas[i] = alpha;
        slope -= alpha * dm;
        bend += inside * pull * dm * dm;
        loss += c * (room > 0 ? room : 0);
        held += alpha * room;
        total += alpha;
        balance += alpha * y[i];
        free += inside;
    }
    return {slope, bend, loss, held, total, balance, free};
}

inline RampSums follow_ramp(const Ramp& ramp, int threads) {
    constexpr int pieces = 16;
    std::array<RampSums, pieces> parts;
    run_pieces(pieces, threads, [&](int piece) {
        parts[static_cast<std::size_t>(piece)] = ramp_piece(ramp, ramp.n * piece / pieces, ramp.n * (piece + 1) / pieces);
    });
    RampSums sums;
    for (const auto& part : parts) sums += part;
    return sums;
}

}  // namespace widemargin
