// KERNEL SMO: max Σα − ½ΣΣ αᵢyᵢ k(i, j) yⱼαⱼ over 0 ≤ α ≤ c, Σ αᵢyᵢ = 0, block by block.
//
// A round takes the rows that violate the KKT conditions most, beside some of the last round, solves for them by SMO with
// the others held fixed (block.hpp), and brings e = y − K(αy) up to date for all rows: one product of the rows of K that
// moved, in double precision. Joachims 1999; the way of keeping half of the block follows Wen et al. 2018 (ThunderSVM).
#pragma once

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

#include "../../bias.hpp"
#include "../../kernels/row_source.hpp"
#include "block.hpp"

namespace widemargin {

using kernels::Segment;

inline constexpr std::int64_t kStepsOfCall = 1 << 18;  // steps of SMO, some tenths of a second, until the caller looks at Ctrl-C

struct KernelSmoOptions {
    Index smallest = 2048;     // rows of the working set at first
    Index largest = 8192;      // rows of the working set at most
    double inner_share = 0.2;  // a block is solved until its violation is this share of the violation before it
    int threads = 1;
};

// What a round sees when it begins.
struct KernelSmoStatus {
    double primal = 0, dual = 0, violation = 0, b = 0;
    double highest = 0, lowest = 0;  // e that may rise, and that may fall
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

    std::vector<Index> working_set;  // its rows, each in a place of its own for as long as it stays
    std::vector<Index> came;         // the round in which each came
    Index size = 0;                  // how many rows there is room for
    Curvature worst;                 // in rows of the problem
    std::int64_t steps = 0;          // of SMO
    bool conjugate = true;           // whether they may go along conjugate directions, see block.hpp

    // e = y − K(αy), from rows of the kernel matrix as the solver has them: for an α that was given.
    void compute_gradient() {
        moved.clear(), by.clear();
        for (Index i = 0; i < n; ++i) {
            e[i] = y[i];
            if (alpha[i] != 0) moved.push_back(source_row[static_cast<std::size_t>(i)]), by.push_back(alpha[i] * y[i]);
        }
        source.update(moved.data(), by.data(), static_cast<Index>(moved.size()), segments, e, options.threads);
    }

    // Takes up the working set of a run that was stopped, whose next round is then the same.
    void go_on(std::vector<Index> rows, std::vector<Index> when, Index room, std::vector<std::int32_t> active) {
        block.activate(std::move(active));
        working_set = std::move(rows), came = std::move(when);
        size = std::max(room, static_cast<Index>(working_set.size()));
        next_round = came.empty() ? 0 : *std::max_element(came.begin(), came.end()) + 1;
    }

    // Primal, dual and violation at α, from e alone.
    KernelSmoStatus status() const { return status(alpha, e); }
    KernelSmoStatus status(const double* alpha, const double* e) const {
        KernelSmoStatus seen;
        std::vector<Turn> turns;
        turns.reserve(static_cast<std::size_t>(n));
        double sum = 0, square = 0, highest = -inf, lowest = inf, slope = 0, total = 0;
        for (Index i = 0; i < n; ++i) {
            sum += alpha[i], square += alpha[i] * (1 - y[i] * e[i]);
            if (may_rise(i, alpha)) highest = std::max(highest, e[i]);
            if (may_fall(i, alpha)) lowest = std::min(lowest, e[i]);
        }
        seen.violation = std::max(highest - lowest, 0.0), seen.highest = highest, seen.lowest = lowest;
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

    // Rounds until the relative gap is at most `tol`, or nothing more can be done, or the caller is to look at the clock;
    // returns how many.
    Index run(Index rounds, double tol, KernelSmoStatus& seen) {
        Index round = 0;
        stalled = false;
        for (const std::int64_t last = steps + kStepsOfCall; round < rounds; ++round) {
            seen = status();
            if (seen.gap() <= tol * seen.dual || steps >= last) return round;
            if (!(seen.violation > 0)) {
                stalled = true;
                return round;
            }
            if (everything()) take_everything();
            else select(seen.highest, seen.lowest);
            if (!solve_block(seen, tol)) {
                stalled = true;
                return round;
            }
        }
        seen = status();
        return round;
    }
    bool stalled = false;  // no step could be made
    const std::vector<std::int32_t>& active_rows() const { return block.active_rows(); }  // of the working set

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
    std::vector<Index> rising, falling, next, rows;  // of the problem; `rows` of the kernel matrix
    Block<T> block;
    std::vector<double> own_e;  // of the block's rows

    bool hard() const { return std::any_of(c, c + n, [](double one) { return one == inf; }); }
    bool may_rise(Index i) const { return may_rise(i, alpha); }
    bool may_fall(Index i) const { return may_fall(i, alpha); }
    bool may_rise(Index i, const double* alpha) const { return y[i] > 0 ? alpha[i] < c[i] : alpha[i] > 0; }
    bool may_fall(Index i, const double* alpha) const { return y[i] > 0 ? alpha[i] > 0 : alpha[i] < c[i]; }

    // The working set: rows that violate the KKT conditions, the worst first and from both sides by turns, take the places
    // of those that have been in it longest, the ones at a bound first. At most half of it is new.
    void select(double highest, double lowest) {
        std::fill(chosen.begin(), chosen.end(), 0);
        for (const Index i : working_set) chosen[static_cast<std::size_t>(i)] = 1;
        for (auto* list : {&rising, &falling}) list->clear();
        Index free = 0;
        for (Index i = 0; i < n; ++i) {
            const bool rise = may_rise(i), fall = may_fall(i);
            free += rise && fall;
            if (chosen[static_cast<std::size_t>(i)]) continue;
            if (rise && e[i] > lowest) rising.push_back(i);
            if (fall && e[i] < highest) falling.push_back(i);
        }
        grow(free);
        const Index room = size - static_cast<Index>(working_set.size()), wanted = working_set.empty() ? size : std::max(size / 2, room);
        const auto sort_first = [&](std::vector<Index>& list, auto first) {
            const auto some = std::min<std::size_t>(list.size(), static_cast<std::size_t>(wanted));
            if (some < list.size()) std::nth_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(some), list.end(), first);
            list.resize(some);
            std::sort(list.begin(), list.end(), first);
        };
        sort_first(rising, [&](Index a, Index b) { return e[a] != e[b] ? e[a] > e[b] : a < b; });
        sort_first(falling, [&](Index a, Index b) { return e[a] != e[b] ? e[a] < e[b] : a < b; });
        next.clear();
        for (std::size_t k = 0; k < std::max(rising.size(), falling.size()); ++k)
            for (const auto* list : {&rising, &falling})
                if (k < list->size() && static_cast<Index>(next.size()) < wanted && !chosen[static_cast<std::size_t>((*list)[k])])
                    next.push_back((*list)[k]), chosen[static_cast<std::size_t>((*list)[k])] = 1;
        std::sort(next.begin(), next.end());  // neighbours are copied together
        place_new();
    }

    // The working set grows by half while it has no room for all rows that are free, and a quarter as many others. Where
    // the kernel matrix is there, it is as large as can be: its kernel values need not be computed.
    void grow(Index free) {
        const Index most = std::min(options.largest, n);
        size = source.whole() ? most : std::min(std::max(size, options.smallest), most);
        while (size < most && free + free / 4 > size) size = std::min(size + size / 2, most);
    }

    // Gives the rows `next` places: those not taken yet, then those of rows that are to leave.
    void place_new() {
        fresh.clear();
        const auto taken = static_cast<Index>(working_set.size());
        for (Index at = taken; at < size && static_cast<Index>(fresh.size()) < static_cast<Index>(next.size()); ++at) fresh.push_back(at);
        const auto left = static_cast<Index>(next.size() - fresh.size());
        if (left > 0) {
            order.resize(static_cast<std::size_t>(taken));
            std::iota(order.begin(), order.end(), Index{0});
            const auto stays = [&](Index at) {
                const Index i = working_set[static_cast<std::size_t>(at)];
                return std::make_tuple(may_rise(i) && may_fall(i), came[static_cast<std::size_t>(at)], at);
            };
            std::nth_element(order.begin(), order.begin() + left - 1, order.end(), [&](Index a, Index b) { return stays(a) < stays(b); });
            std::sort(order.begin(), order.begin() + left);
            fresh.insert(fresh.end(), order.begin(), order.begin() + left);
        }
        working_set.resize(static_cast<std::size_t>(std::min(size, taken + static_cast<Index>(next.size()))));
        came.resize(working_set.size());
        for (std::size_t k = 0; k < next.size(); ++k)
            working_set[static_cast<std::size_t>(fresh[k])] = next[k], came[static_cast<std::size_t>(fresh[k])] = next_round;
        ++next_round;
        if (!next.empty()) block.activate({});
    }

    // Whether the problem is that of the whole kernel matrix, which is there: it then is the block, with no copy of it.
    bool everything() const {
        return source.table() && n <= options.largest && segments.size() == 1 && n == source.size();
    }
    void take_everything() {
        if (static_cast<Index>(rows.size()) == n) return;
        rows.resize(static_cast<std::size_t>(n)), came.assign(static_cast<std::size_t>(n), 0);
        std::iota(rows.begin(), rows.end(), Index{0});
        working_set = rows, size = n;
    }

    // Solves for the block, and brings e up to date. Of a block that is the whole problem the gap is seen from its own e: it
    // is solved on and on until that is reached, while others may gain more from other rows.
    bool solve_block(const KernelSmoStatus& before, double tol) {
        const double middle = (before.highest + before.lowest) / 2;
        const auto q = static_cast<Index>(working_set.size());
        if (everything()) block.set(*source.table());
        else fill_block();
        for (Index k = 0; k < q; ++k) {
            const auto at = static_cast<std::size_t>(k);
            const Index i = working_set[at];
            block.alpha[at] = alpha[i], block.e[at] = static_cast<T>(e[i] - middle), block.c[at] = c[i], block.y[at] = y[i];
        }
        block.worst = {}, block.conjugate = conjugate;
        double violation = before.violation;
        for (const std::int64_t last = steps + kStepsOfCall; steps < last;) {
            const Index taken = block.run(static_cast<Index>(last - steps), options.inner_share * violation);
            steps += taken;
            if (!taken || !everything()) break;
            own_e.resize(static_cast<std::size_t>(n));
            for (std::size_t i = 0; i < own_e.size(); ++i) own_e[i] = static_cast<double>(block.e[i]) + middle;
            const auto now = status(block.alpha.data(), own_e.data());
            if (now.gap() <= tol * now.dual || !(now.violation > 0)) break;
            violation = std::min(violation, now.violation);
        }
        if (block.worst.share < worst.share) {
            worst = block.worst;
            worst.i = working_set[static_cast<std::size_t>(worst.i)], worst.j = working_set[static_cast<std::size_t>(worst.j)];
        }
        balance();
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

    // The row of the block with the most room takes up what the rounding of steps has added to Σ αᵢyᵢ.
    void balance() {
        double excess = 0, most = 0;
        std::size_t widest = 0;
        for (std::size_t at = 0; at < working_set.size(); ++at) {
            excess += block.y[at] * (block.alpha[at] - alpha[working_set[at]]);
            const double room = std::min(block.alpha[at], block.c[at] - block.alpha[at]);
            if (room > most) most = room, widest = at;
        }
        if (std::abs(excess) < most) block.alpha[widest] -= block.y[widest] * excess;
    }

    // The kernel matrix of the working set, in which the rows and columns of new rows are computed.
    void fill_block() {
        const auto q = static_cast<Index>(working_set.size()), held = matrix.width;
        if (q > held) {  // a larger matrix, or the first; all of a working set that was given
            kernels::Table<T> larger(q, q);
            for (Index r = 0; r < held; ++r) std::copy_n(matrix.row(r), held, larger.row(r));
            matrix = std::move(larger);
            for (Index at = held; at < q; ++at) fresh.push_back(at);
            std::sort(fresh.begin(), fresh.end());
            fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
        }
        block.set(matrix);
        rows.resize(static_cast<std::size_t>(q));
        for (std::size_t k = 0; k < rows.size(); ++k) rows[k] = source_row[static_cast<std::size_t>(working_set[k])];
        source.block(rows, fresh, matrix.row(0), matrix.stride, options.threads);
        fresh.clear();
    }
    Index next_round = 0;       // its number
    std::vector<Index> fresh;   // places of the rows that are new in the working set
    std::vector<Index> order;   // scratch
    kernels::Table<T> matrix;   // of the working set
    std::vector<Index> moved;
    std::vector<double> by;
};

}  // namespace widemargin
