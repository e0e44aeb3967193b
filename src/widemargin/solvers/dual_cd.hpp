// Dual coordinate descent:  min ½‖w‖² + Σ cᵢ φ*(−αᵢ/cᵢ),  w = Σ αᵢyᵢxᵢ, one αᵢ at a time.
// Hsieh et al. 2008 (Algorithm 3, with shrinking); Yu, Huang and Lin 2011 for the logistic loss.
//
// An unpenalised bias adds the constraint s = Σ αᵢyᵢ = 0, whose multiplier is b. It is kept by an augmented Lagrangian:
// rows are scored with b + s/ρ and step against ‖xᵢ‖² + 1/ρ; between passes the caller moves b by s/ρ.
//
// Rows are visited in shuffled blocks of neighbours: in memory order within a block, since a random order of rows costs
// three times as much per non-zero and converges no faster. A pass may be cut into shards, which run side by side, each
// on a copy of w and s, and are merged several times per pass. Shards are part of the algorithm; threads are not: the
// result depends on the number of shards alone.
#pragma once

#include <algorithm>
#include <barrier>
#include <vector>

#include "../data/rows.hpp"
#include "../threads.hpp"

namespace widemargin {

inline constexpr Index visit_block = 16;

// Everything a pass reads and writes; arrays of n unless said otherwise.
struct DualCd {
    const double *y, *c, *norms;  // labels ±1, strengths, ‖xᵢ‖²
    double *alpha, *w;            // the dual point and its weights (d)
    double b, s, inverse_rho;     // the bias, Σ αᵢyᵢ, and 1/ρ (0 for no bias)
    Index* active;                // the rows still in play, ascending; a shrunk row i comes back as −1 − i
    Index actives;
    const Index* order;  // the blocks of 16 active rows, in the order of their visit
    Index blocks;
    double shrink_above, shrink_below;  // a bounded αᵢ with a gradient beyond these is shrunk
    int shards, rounds, threads;        // shards merge `rounds` times per pass
    double damping;                     // shards divide each step by this, since others step at the same time
};

// What a pass saw on its way.
struct Sight {
    double gap = 0;                                 // Σ of each row's Fenchel–Young gap when it was visited
    double largest = -inf, smallest = inf;          // of the projected gradients
};

template <class Loss, class Rows>
void visit(const Rows& rows, const DualCd& pass, Index position, double* w, double& s, Sight& sight) {
    const Index i = pass.active[position];
    const double y = pass.y[i], c = pass.c[i], alpha = pass.alpha[i];
    const double m = y * (rows.dot(i, w) + pass.b + s * pass.inverse_rho);
    if constexpr (Loss::shrinks) {
        const double g = Loss::gradient(alpha, m, c);
        const bool low = alpha <= Loss::lower(), high = alpha >= Loss::upper(c);
        if ((low && g > pass.shrink_above) || (high && g < pass.shrink_below)) {
            pass.active[position] = -1 - i;
            return;
        }
        const double projected = low ? std::min(g, 0.0) : high ? std::max(g, 0.0) : g;
        sight.largest = std::max(sight.largest, projected);
        sight.smallest = std::min(sight.smallest, projected);
    }
    sight.gap += (c < inf ? c * (Loss::value(m) + Loss::conjugate(alpha / c)) : -alpha) + alpha * m;
    const double q = (pass.norms[i] + pass.inverse_rho) * pass.damping;
    const double next = Loss::step(alpha, m, q, c), change = next - alpha;
    if (change == 0) return;
    pass.alpha[i] = next;
    s += change * y;
    rows.add(i, change * y, w);
}

template <class Loss, class Rows>
Sight dual_cd_pass(const Rows& rows, DualCd& pass) {
    const auto walk = [&](Index begin, Index end, double* w, double& s, Sight& sight) {
        for (Index k = begin; k < end; ++k) {
            const Index first = pass.order[k] * visit_block, last = std::min(pass.actives, first + visit_block);
            for (Index position = first; position < last; ++position)
                visit<Loss>(rows, pass, position, w, s, sight);
        }
    };
    Sight total;
    if (pass.shards == 1) {
        walk(0, pass.blocks, pass.w, pass.s, total);
        return total;
    }
    const auto shards = static_cast<std::size_t>(pass.shards);
    const auto d = static_cast<std::size_t>(rows.d);
    std::vector<std::vector<double>> copies(shards, std::vector<double>(pass.w, pass.w + d));
    std::vector<double> sums(shards);
    std::vector<Sight> sights(shards);
    const int threads = std::min(pass.threads, pass.shards);
    double s = pass.s;
    const auto merge_bias = [&]() noexcept {
        double merged = s;
        for (double sum : sums) merged += sum - s;
        s = merged;
    };
    std::barrier walked(threads, merge_bias), merged(threads);
    run_threads(threads, [&](int thread) {
        for (Index round = 0; round < pass.rounds; ++round) {
            for (auto shard = static_cast<std::size_t>(thread); shard < shards; shard += static_cast<std::size_t>(threads)) {
                const auto piece = round * pass.shards + static_cast<Index>(shard), pieces = Index{pass.rounds} * pass.shards;
                sums[shard] = s;
                walk(pass.blocks * piece / pieces, pass.blocks * (piece + 1) / pieces, copies[shard].data(), sums[shard],
                     sights[shard]);
            }
            walked.arrive_and_wait();
            const auto end = d * static_cast<std::size_t>(thread + 1) / static_cast<std::size_t>(threads);
            for (auto j = d * static_cast<std::size_t>(thread) / static_cast<std::size_t>(threads); j < end; ++j) {
                double sum = pass.w[j];
                for (const auto& copy : copies) sum += copy[j] - pass.w[j];
                pass.w[j] = sum;
                for (auto& copy : copies) copy[j] = sum;
            }
            merged.arrive_and_wait();
        }
    });
    pass.s = s;
    for (const auto& sight : sights) {
        total.gap += sight.gap;
        total.largest = std::max(total.largest, sight.largest);
        total.smallest = std::min(total.smallest, sight.smallest);
    }
    return total;
}

}  // namespace widemargin
