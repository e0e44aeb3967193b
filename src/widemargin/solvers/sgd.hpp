// STOCHASTIC SUBGRADIENT STEPS for every loss, every schedule and any order of the rows.
//
//   w ← shrinkₜ·w − (ηₜ/k) Σ gᵢ φ′(mᵢ) yᵢxᵢ,   b ← b − (ηₜ/k) Σ gᵢ φ′(mᵢ) yᵢ,   over the k rows drawn at step t,
//
// all margins taken before the step. Which rows, which ηₜ and which shrinking are the caller's: Pegasos, the perceptron
// and every stochastic method of the lecture notes are this loop with other numbers.
#pragma once

#include <vector>

#include "../data/rows.hpp"
#include "../losses.hpp"
#include "lazy_weights.hpp"

namespace widemargin {

// The perceptron's rule: any score that is not on its label's side is a mistake, 0 too; or it would never leave w = 0.
struct Mistake {
    static constexpr const char* name = "mistake";
    static double slope(double m) { return m <= 0 ? -1.0 : 0.0; }
};

struct Steps {
    double (*slope)(double);  // of the loss: a call costs nothing beside a row
    const Index* draws;  // count × batch rows
    const double *eta, *shrink;
    Index count, batch;
    bool bias;
    double radius;        // of the ball that w is cut back into; ∞ for none
    const double* norms;  // ‖xᵢ‖² of every row, for the ball
};

// Returns how many rows moved w. No g is a g of 1 for every row.
template <class Rows>
[[gnu::noinline]] Index sgd_steps(const Rows& rows, const double* y, const double* g, LazyWeights& weights,
                                  const Steps& steps) {
    LazyWeights w = weights;  // on this thread's stack: the compiler keeps its numbers in registers
    const Index total = steps.count * steps.batch;
    const bool projects = steps.radius < inf;
    std::vector<double> pulls(static_cast<std::size_t>(steps.batch)), scores(pulls.size());
    Index moved = 0;
    for (Index t = 0; t < steps.count; ++t) {
        const Index* drawn = steps.draws + t * steps.batch;
        for (Index k = 0; k < steps.batch; ++k) {
            const Index position = t * steps.batch + k;
            look_ahead(rows, steps.draws, position, total, [&](Index next) __attribute__((always_inline)) {
                __builtin_prefetch(y + next);
                if (g) __builtin_prefetch(g + next);
                if (projects) __builtin_prefetch(steps.norms + next);
                if (w.a) __builtin_prefetch(w.a + next, 1);
            });
            const Index i = drawn[k];
            const double score = w.score(rows, i);
            scores[static_cast<std::size_t>(k)] = score - w.b;
            pulls[static_cast<std::size_t>(k)] = -(g ? g[i] : 1.0) * steps.slope(y[i] * score);
        }
        w.shrink(steps.shrink[t]);
        const double eta = steps.eta[t] / static_cast<double>(steps.batch);
        for (Index k = 0; k < steps.batch; ++k) {
            const double change = eta * pulls[static_cast<std::size_t>(k)];
            if (change == 0) continue;
            const Index i = drawn[k];
            ++moved;
            if (projects) {
                // One row alone: w·x was its score, and has shrunk since.
                const double along = steps.batch == 1 ? steps.shrink[t] * scores[0] / w.scale : rows.dot(i, w.v);
                const double step = change * y[i] / w.scale;
                w.square += step * (2 * along + step * steps.norms[i]);
            }
            w.move(rows, i, y[i], change);
            if (steps.bias) w.b += change * y[i];
        }
        if (projects) w.project(steps.radius);
        w.end_of_step();
    }
    weights = w;
    return moved;
}

}  // namespace widemargin
