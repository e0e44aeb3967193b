// MIRA: the least change of (w, b) that gives the rows drawn a margin of 1, if their margin is at most p.
//
//   min ‖w′ − w‖² + (b′ − b)²  subject to  yᵢ(w′·xᵢ + b′) ≥ 1  for the rows drawn with mᵢ ≤ p,
//
// through its dual, max −½αᵀQα − αᵀ(m − 1) over 0 ≤ α ≤ limit, by Hildreth's sweeps. One row: αᵢ = (1 − mᵢ)/‖xᵢ‖².
// Crammer and Singer 2003; Crammer et al. 2006.
#pragma once

#include <vector>

#include "hildreth.hpp"
#include "lazy_weights.hpp"

namespace widemargin {

struct MiraSteps {
    const Index* draws;  // count × batch rows
    Index count, batch;
    bool bias;
    double p, limit;
};

// Returns how many rows had a margin of at most p.
template <class Rows>
[[gnu::noinline]] Index mira_steps(const Rows& rows, const double* y, LazyWeights& weights, const MiraSteps& steps) {
    constexpr int sweeps = 20'000;  // enough for all but contradictions and the narrowest margins
    LazyWeights w = weights;
    const auto most = static_cast<std::size_t>(steps.batch);
    std::vector<Index> late(most), order(most);
    std::vector<double> alpha(most), gradient(most), norms(most), upper(most, steps.limit), q, spread;
    if (steps.batch > 1) spread.assign(static_cast<std::size_t>(rows.d), 0.0);
    for (std::size_t k = 0; k < most; ++k) order[k] = static_cast<Index>(k);
    const Index total = steps.count * steps.batch;
    Index violated = 0;
    for (Index t = 0; t < steps.count; ++t) {
        Index k = 0;
        for (Index j = 0; j < steps.batch; ++j) {
            const Index position = t * steps.batch + j, i = steps.draws[position];
            look_ahead(rows, steps.draws, position, total, [&](Index next) __attribute__((always_inline)) { __builtin_prefetch(y + next); });
            const double m = y[i] * w.score(rows, i);
            if (m > steps.p) continue;
            double norm = steps.bias;
            rows.each(i, [&](Index, double x) { norm += x * x; });
            if (norm == 0) {  // late for ever: no w gives it a margin
                ++violated;
                continue;
            }
            late[static_cast<std::size_t>(k)] = i;
            norms[static_cast<std::size_t>(k)] = norm;
            gradient[static_cast<std::size_t>(k++)] = m - 1;
        }
        violated += k;
        if (k == 1) {
            const Index i = late[0];
            const double change = std::min(steps.limit, -gradient[0] / norms[0]);
            w.move(rows, i, y[i], change);
            if (steps.bias) w.b += change * y[i];
        } else if (k > 1) {
            q.resize(std::max(q.size(), static_cast<std::size_t>(k * k)));
            for (Index r = 0; r < k; ++r) {
                const Index i = late[static_cast<std::size_t>(r)];
                rows.each(i, [&](Index j, double x) { spread[static_cast<std::size_t>(j)] = x; });
                for (Index s = 0; s < k; ++s) {
                    const Index other = late[static_cast<std::size_t>(s)];
                    q[static_cast<std::size_t>(r * k + s)] = y[i] * y[other] * (rows.dot(other, spread.data()) + steps.bias);
                }
                rows.each(i, [&](Index j, double) { spread[static_cast<std::size_t>(j)] = 0; });
            }
            std::fill(alpha.begin(), alpha.end(), 0.0);
            BoxQp problem{q.data(), upper.data(), alpha.data(), gradient.data(), k};
            for (int sweep = 0; sweep < sweeps; ++sweep) {
                Index moved = 0;
                hildreth_visits(problem, order.data(), k, moved);
                if (moved == 0) break;
            }
            for (Index r = 0; r < k; ++r) {
                const Index i = late[static_cast<std::size_t>(r)];
                const double change = alpha[static_cast<std::size_t>(r)];
                if (change == 0) continue;
                w.move(rows, i, y[i], change);
                if (steps.bias) w.b += change * y[i];
            }
        }
        w.end_of_step();
    }
    weights = w;
    return violated;
}

}  // namespace widemargin
