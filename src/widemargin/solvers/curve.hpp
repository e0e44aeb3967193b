// A smooth loss along a step: m + t·dm for every row.
//
// One walk over the rows yields all that Newton's method and its line search ask for. Sums are taken over a fixed number
// of pieces, so their bits do not depend on the threads.
#pragma once

#include <array>

#include "../data/rows.hpp"
#include "../threads.hpp"

namespace widemargin {

// Arrays of n: margins, their change along the step, strengths.
struct Curve {
    const double *m, *dm, *c;
    double t;
    double *alpha, *weights;  // come back: −cφ′ and cφ″
    Index n;
};

struct CurveSums {
    double slope = 0, bend = 0;  // Σ cφ′·dm and Σ cφ″·dm²
    double loss = 0, held = 0;   // Σ cφ and Σ αm

    void operator+=(const CurveSums& other) {
        slope += other.slope, bend += other.bend, loss += other.loss, held += other.held;
    }
};

template <class Loss>
[[gnu::noinline]] CurveSums curve_piece(const Curve curve, Index begin, Index end) {
    double slope = 0, bend = 0, loss = 0, held = 0;
#pragma omp simd reduction(+ : slope, bend, loss, held)
    for (Index i = begin; i < end; ++i) {
        const double dm = curve.dm[i], c = curve.c[i], m = curve.m[i] + curve.t * dm;
        const Shape at = Loss::shape(m);
        curve.alpha[i] = -c * at.slope;
        curve.weights[i] = c * at.curvature;
        slope += c * at.slope * dm;
        bend += c * at.curvature * dm * dm;
        loss += c * at.value;
        held -= c * at.slope * m;
    }
    return {slope, bend, loss, held};
}

template <class Loss>
CurveSums follow_curve(const Curve& curve, int threads) {
    constexpr int pieces = 16;
    std::array<CurveSums, pieces> parts;
    run_pieces(pieces, threads, [&](int piece) {
        parts[static_cast<std::size_t>(piece)] =
            curve_piece<Loss>(curve, curve.n * piece / pieces, curve.n * (piece + 1) / pieces);
    });
    CurveSums sums;
    for (const auto& part : parts) sums += part;
    return sums;
}

}  // namespace widemargin
