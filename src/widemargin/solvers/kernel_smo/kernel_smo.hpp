// KERNEL SMO: max Σα − ½ΣΣ αᵢyᵢ k(i, j) yⱼαⱼ over 0 ≤ α ≤ c, Σ αᵢyᵢ = 0, block by block.
//
// A round takes the rows that violate the KKT conditions most, beside some of the last round, solves for them by SMO with
// the others held fixed (block.hpp), and brings e = y − K(αy) up to date for all rows: one product of the rows of K that
// moved, in double precision. Joachims 1999; the way of keeping half of the block follows Wen et al. 2018 (ThunderSVM).
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "../../bias.hpp"
#include "../../kernels/row_source.hpp"
#include "block.hpp"

namespace widemargin {

using kernels::Segment;

struct KernelSmoOptions {
    Index block = 2048;        // rows of the working set
    double inner_share = 0.2;  // a block is solved until its violation is this share of the violation before it
    int threads = 1;
};

// What a round sees when it begins.
struct KernelSmoStatus {
    double primal = 0, dual = 0, violation = 0, b = 0;
    double gap() const { return primal - dual; }
};

template <class T>
class KernelSmo {
   public:
    // y, c, alpha and e have n elements; alpha is feasible and e = y − K(αy).
    KernelSmo(kernels::RowSource<T>& source, std::vector<Segment> segments, const double* y, const double* c, double* alpha,
              double* e, Index n, const KernelSmoOptions& options)
        : source(source), segments(std::move(segments)), y(y), c(c), alpha(alpha), e(e), n(n), options(options),
          source_row(static_cast<std::size_t>(n)), chosen(static_cast<std::size_t>(n), 0) {
        for (const Segment& one : this->segments)
            for (Index k = 0; k < one.count; ++k) source_row[static_cast<std::size_t>(one.local + k)] = one.source + k;
    }

    std::vector<Index> working_set;  // of the last round, the latest last
    Curvature worst;                 // in rows of the problem
    std::int64_t steps = 0;          // of SMO

    // Primal, dual and violation at α, from e alone.
    KernelSmoStatus status() const {
        KernelSmoStatus seen;
        std::vector<Turn> turns;
        turns.reserve(static_cast<std::size_t>(n));
        double sum = 0, square = 0, highest = -inf, lowest = inf, slope = 0, total = 0;
        for (Index i = 0; i < n; ++i) {
            sum += alpha[i], square += alpha[i] * (1 - y[i] * e[i]);
            if (may_rise(i)) highest = std::max(highest, e[i]);
            if (may_fall(i)) lowest = std::min(lowest, e[i]);
        }
        seen.violation = std::max(highest - lowest, 0.0);
        seen.dual = sum - square / 2;
        seen.b = (highest + lowest) / 2;
        if (hard()) {  // any multiple of α is feasible for the dual: the best one; the primal scales w to margin 1
            seen.dual = square > 0 ? sum * sum / square / 2 : 0.0;
            double nearest[2] = {inf, inf};
            for (Index i = 0; i < n; ++i)
                if (c[i] > 0) nearest[y[i] > 0] = std::min(nearest[y[i] > 0], y[i] * (y[i] - e[i]));
            const double half = (nearest[0] + nearest[1]) / 2;
            seen.primal = half > 0 ? square / (half * half) / 2 : inf;
            return seen;
        }
        for (Index i = 0; i < n; ++i)
            if (c[i] > 0) turns.push_back({e[i], c[i]}), total += c[i], slope -= y[i] > 0 ? c[i] : 0.0;
        if (!turns.empty())
            seen.b = turn_where(turns.data(), turns.data() + turns.size(), slope, [=](double reached) { return reached >= -1e-12 * total; });
        double slack = 0;
        for (Index i = 0; i < n; ++i)
            if (c[i] > 0) slack += c[i] * std::max(0.0, y[i] * (e[i] - seen.b));
        seen.primal = square / 2 + slack;
        return seen;
    }

    // Rounds until the relative gap is at most `tol`, or nothing more can be done; returns how many.
    Index run(Index rounds, double tol, KernelSmoStatus& seen) {
        Index round = 0;
        stalled = false;
        for (; round < rounds; ++round) {
            seen = status();
            if (seen.gap() <= tol * seen.dual) break;
            if (!(seen.violation > 0)) {
                stalled = true;
                break;
            }
            select();
            if (!solve_block(seen.violation)) {
                stalled = true;
                break;
            }
        }
        if (round == rounds) seen = status();
        return round;
    }
    bool stalled = false;  // no step could be made

   private:
    static constexpr double inf = std::numeric_limits<double>::infinity();
    kernels::RowSource<T>& source;
    std::vector<Segment> segments;
    const double *y, *c;
    double *alpha, *e;
    Index n;
    KernelSmoOptions options;
    std::vector<Index> source_row;
    std::vector<unsigned char> chosen;
    std::vector<Index> rising, falling, next, rows;
    Block<T> block;

    bool hard() const { return std::any_of(c, c + n, [](double one) { return one == inf; }); }
    bool may_rise(Index i) const { return y[i] > 0 ? alpha[i] < c[i] : alpha[i] > 0; }
    bool may_fall(Index i) const { return y[i] > 0 ? alpha[i] > 0 : alpha[i] < c[i]; }

    // The working set: a part of the last one, then the rows that violate most, from both sides by turns.
    void select() {
        const Index size = std::min(options.block, n);
        std::fill(chosen.begin(), chosen.end(), 0);
        next.clear(), kept.clear();
        if (size == n) {  // all rows, in their order
            if (working_set.empty()) {
                working_set.resize(static_cast<std::size_t>(n));
                std::iota(working_set.begin(), working_set.end(), Index{0});
            } else {
                kept.resize(static_cast<std::size_t>(n));
                std::iota(kept.begin(), kept.end(), Index{0});
            }
            return;
        }
        // Of the last one, the half that came latest.
        const auto before = static_cast<Index>(working_set.size());
        for (Index at = std::max<Index>(0, before - size / 2); at < before; ++at) keep(at);
        for (auto* list : {&rising, &falling}) list->clear();
        for (Index i = 0; i < n; ++i) {
            if (chosen[static_cast<std::size_t>(i)]) continue;
            if (may_rise(i)) rising.push_back(i);
            if (may_fall(i)) falling.push_back(i);
        }
        const auto sort_first = [&](std::vector<Index>& list, auto first) {
            const auto some = std::min<std::size_t>(list.size(), static_cast<std::size_t>(size));
            if (some < list.size()) std::nth_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(some), list.end(), first);
            list.resize(some);
            std::sort(list.begin(), list.end(), first);
        };
        sort_first(rising, [&](Index a, Index b) { return e[a] != e[b] ? e[a] > e[b] : a < b; });
        sort_first(falling, [&](Index a, Index b) { return e[a] != e[b] ? e[a] < e[b] : a < b; });
        for (std::size_t k = 0; k < std::max(rising.size(), falling.size()); ++k)
            for (const auto* list : {&rising, &falling})
                if (k < list->size() && static_cast<Index>(next.size()) < size) take((*list)[k]);
        working_set.swap(next);
    }

    void take(Index i) {
        if (chosen[static_cast<std::size_t>(i)]) return;
        next.push_back(i), chosen[static_cast<std::size_t>(i)] = 1;
    }
    void keep(Index at) { kept.push_back(at), take(working_set[static_cast<std::size_t>(at)]); }

    bool solve_block(double violation) {
        const auto q = static_cast<Index>(working_set.size());
        fill_block();
        for (Index k = 0; k < q; ++k) {
            const auto at = static_cast<std::size_t>(k);
            const Index i = working_set[at];
            block.alpha[at] = alpha[i], block.e[at] = e[i], block.c[at] = c[i], block.y[at] = y[i];
        }
        block.worst = {};
        const Index taken = block.run(100 * q, options.inner_share * violation);
        steps += taken;
        if (block.worst.share < worst.share) {
            worst = block.worst;
            worst.i = working_set[static_cast<std::size_t>(worst.i)], worst.j = working_set[static_cast<std::size_t>(worst.j)];
        }
        moved.clear(), by.clear();
        for (Index k = 0; k < q; ++k) {
            const auto at = static_cast<std::size_t>(k);
            const Index i = working_set[at];
            const double change = (block.alpha[at] - alpha[i]) * y[i];
            alpha[i] = block.alpha[at];
            if (change != 0) moved.push_back(rows[at]), by.push_back(change);
        }
        source.update(moved.data(), by.data(), static_cast<Index>(moved.size()), segments, e, options.threads);
        return !moved.empty();
    }

    // The kernel matrix of the working set; what it shares with the last one is copied.
    void fill_block() {
        const auto q = static_cast<Index>(working_set.size()), old = static_cast<Index>(kept.size());
        if (old == q && q == n) return;
        matrix.swap(block.k);
        const Index before = block.width;
        block.resize(q);
        for (Index r = 0; r < old; ++r)
            for (Index k = 0; k < old; ++k)
                block.row(r)[k] = matrix[static_cast<std::size_t>(kept[static_cast<std::size_t>(r)] * before + kept[static_cast<std::size_t>(k)])];
        rows.resize(static_cast<std::size_t>(q));
        for (Index k = 0; k < q; ++k) rows[static_cast<std::size_t>(k)] = source_row[static_cast<std::size_t>(working_set[static_cast<std::size_t>(k)])];
        source.block(rows.data() + old, q - old, rows.data(), q, block.row(old), block.width, options.threads);
        for (Index r = 0; r < old; ++r)
            for (Index k = old; k < q; ++k) block.row(r)[k] = block.row(k)[r];
        for (Index r = 0; r < q; ++r) std::fill(block.row(r) + q, block.row(r) + block.width, T(0));
    }
    std::vector<Index> kept;       // places in the last working set of rows that stay, which come first in the new one
    kernels::Buffer<T> matrix;     // of the last working set
    std::vector<Index> moved;
    std::vector<double> by;
};

}  // namespace widemargin
