// Dual coordinate descent:  min ½‖w‖² + Σ cᵢ φ*(−αᵢ/cᵢ),  w = Σ αᵢyᵢxᵢ, one αᵢ at a time.
// Hsieh et al. 2008 (Algorithm 3, with shrinking); Yu, Huang and Lin 2011 for the logistic loss.
//
// An unpenalised bias adds the constraint s = Σ αᵢyᵢ = 0, whose multiplier is b. It is kept by an augmented Lagrangian:
// rows are scored with b + s/ρ and step against ‖xᵢ‖² + 1/ρ; after each pass b moves by s/ρ.
//
// Rows are visited in shuffled blocks of neighbours: in memory order within a block, since a random order of rows costs
// three times as much per non-zero and converges no faster. Two threads share a pass over much data in one of two ways.
// Long rows are cut in two halves, and both threads go through all of them in step (tandem.hpp). Of short ones there are
// two shards, which run side by side, each on weights and s of its own, and are merged several times per pass: all their
// steps together, scaled by the γ between ½ and 1 that is best for the dual. ½ is the mean of the shards' points, which
// cannot be worse than where they began. Halves and shards are part of the algorithm; threads are not: the result depends
// on the data alone.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "../data/halves.hpp"
#include "../data/rows.hpp"
#include "../losses.hpp"
#include "../threads.hpp"
#include "course.hpp"
#include "free_rows.hpp"
#include "shuffle.hpp"
#include "tandem.hpp"

namespace widemargin {

// Everything a pass reads and writes; arrays of n unless said otherwise.
struct DualCd {
    const double *y, *c, *norms;  // labels ±1, strengths, ‖xᵢ‖²
    double *alpha, *w;            // the dual point and its weights (d)
    double b, s, inverse_rho;     // the bias, Σ αᵢyᵢ, and 1/ρ (0 for no bias)
    Index* active;                // the rows still in play, ascending if they are split; −1 for one that leaves
    Index actives;
    const Index* order;  // the blocks of 2^shift active rows, in the order of their visit
    Index blocks;
    int shift;
    double shrink_above, shrink_below;  // a bounded αᵢ with a gradient beyond these is shrunk
    double focus;                       // and, if > 0, all that have a smaller gradient or are where they want to be
    unsigned char* slow;                // whether the gradient was at least `slow_from`
    double slow_from;
    bool watched;  // whether the gap is wanted
    bool split;    // into two shards or, if rows are cut in two, halves
    int threads;
    Index apart;  // rows that a shard visits between merges, unless that would be too many merges in a pass
};

// What one pass leaves to the next: where rows are cut in two, if they are, and room for the shards' weights.
struct Workspace {
    std::optional<Cut> cut;
    Index shared = 0;  // stretches of visits that two threads went through in step
    Index pause = Tandem::shortest_pause;
    Room room, before;
};

// What a shard did since the last merge.
struct Changes {
    struct Change {
        Index row;
        double before;
    };
    std::vector<Change> rows;
    double slope = 0, lift = 0;  // of Σ cφ*(−α/c): the first-order change, and what is left of it
};

template <class Loss>
[[gnu::always_inline]] inline Ahead<Loss> ahead_of(const DualCd& pass, Index i, double alpha) {
    return Ahead<Loss>{alpha, pass.norms[i] + pass.inverse_rho, pass.c[i]};
}

// What a row's score makes of it: its margin, and the step from there.
struct Met {
    double m;
    Stride stride;
};

template <class Loss>
[[gnu::always_inline]] inline Met meet(const DualCd& pass, const Ahead<Loss>& ahead, Index i, double score, double s) {
    const double m = pass.y[i] * (score + (pass.b + s * pass.inverse_rho));
    return {m, ahead.step(m)};
}

// Not inlined: two threads that go in step must come to the same bits.
template <class Loss>
[[gnu::noinline, gnu::noipa]] Ahead<Loss> ahead_in_step(const DualCd& pass, Index i, double alpha) {
    return ahead_of<Loss>(pass, i, alpha);
}
template <class Loss>
[[gnu::noinline, gnu::noipa]] Met meet_in_step(const DualCd& pass, const Ahead<Loss>& ahead, Index i, double score, double s) {
    return meet(pass, ahead, i, score, s);
}

// The halves of rows: this thread has one of them, and the other too unless another thread goes along in step.
template <class Rows>
struct Halves {
    Half<Rows> one, other;
    Tandem& tandem;
    std::uint64_t turn = 0;
    bool along = false;

    double dot(Index i, const double* w) {
        const double mine = one.dot(i, w);
        return along ? tandem.sum(0, ++turn, mine) : mine + other.dot(i, w);
    }
    void add(Index i, double scale, double* w) {
        one.add(i, scale, w);
        if (!along) other.add(i, scale, w);
    }
    [[gnu::always_inline]] void fetch_start(Index i) const { one.rows.fetch_start(i), other.rows.fetch_start(i); }
    [[gnu::always_inline]] void fetch(Index i) const {
        one.rows.fetch(i);
        if (!along) other.rows.fetch(i);
    }
};

template <class Loss, class Rows>
[[gnu::always_inline]] inline void visit(Rows& rows, const DualCd& pass, Index position, double* w, double& s, Sight& sight,
                                         Changes* changes) {
    const Index i = pass.active[position];
    const double y = pass.y[i], c = pass.c[i], alpha = pass.alpha[i];
    constexpr bool in_step = requires { rows.tandem; };
    const Ahead<Loss> ahead = in_step ? ahead_in_step<Loss>(pass, i, alpha) : ahead_of<Loss>(pass, i, alpha);
    const double score = rows.dot(i, w);
    const auto [m, stride] = in_step ? meet_in_step(pass, ahead, i, score, s) : meet(pass, ahead, i, score, s);
    const double change = stride.next - alpha;
    if (Loss::shrinks || pass.watched)
        sight.gap += (c < inf ? c * quick_shape<Loss>(m).value : 0.0) + Loss::conjugate_of_row(alpha, c) + alpha * m;
    if constexpr (Loss::shrinks) {
        const double g = Loss::gradient(alpha, m, c);
        const bool settled = change == 0 && g != 0, slow = !settled && std::abs(g) >= pass.slow_from;
        if (pass.slow[i] != slow) pass.slow[i] = slow;  // seldom: other threads' rows are on the same line
        sight.slow += slow;
        if (settled) {  // at the bound where it wants to be
            if (g > pass.shrink_above || g < pass.shrink_below || pass.focus > 0) pass.active[position] = -1;
            return;
        }
        if (std::abs(g) < pass.focus) pass.active[position] = -1;
        sight.largest = std::max(sight.largest, g);
        sight.smallest = std::min(sight.smallest, g);
    }
    if (change == 0) return;
    if (changes) {
        changes->rows.push_back({i, alpha});
        changes->slope += change * stride.slope;
        changes->lift += stride.lift;
    }
    pass.alpha[i] = stride.next;
    s += change * y;
    rows.add(i, change * y, w);
}

template <class Rows, class Visit>
[[gnu::always_inline]] inline void walk_rows(const Rows& rows, const DualCd& pass, const Blocks& blocks, Index from, Index to,
                                             Visit visit) {
    walk_ahead(
        blocks, from, to,
        [&](Index position) __attribute__((always_inline)) {
            const Index i = pass.active[position];
            for (const double* numbers : {pass.y, pass.c, pass.norms, static_cast<const double*>(pass.alpha)})
                __builtin_prefetch(numbers + i);
            rows.fetch_start(i);
        },
        [&](Index position) __attribute__((always_inline)) { rows.fetch(pass.active[position]); }, visit);
}

// A function of its own: inlined into the threads' bodies, its loops would run out of registers.
template <class Loss, class Rows>
[[gnu::noinline]] void visit_blocks(const Rows rows, const DualCd pass, Index begin, Index end, double* w,
                                    double& shared_s, Sight& shared_sight, Changes* changes) {
    double s = shared_s;
    Sight sight = shared_sight;  // on this thread's own cache line until the end
    const Blocks blocks{pass.active, pass.order, begin, end, pass.actives, pass.shift};
    walk_rows(rows, pass, blocks, blocks.first(), blocks.last(),
              [&](Index position) __attribute__((always_inline)) { visit<Loss>(rows, pass, position, w, s, sight, changes); });
    shared_s = s;
    shared_sight = sight;
}

// All rows in play, in two halves: the thread that leads, and keeps what is to be kept …
template <class Loss, class Rows>
[[gnu::noinline]] Sight lead(const Rows& rows, DualCd& pass, const Cut& cut, const Blocks& blocks, Tandem& tandem) {
    Halves<Rows> halves{half_of(rows, cut, 0), half_of(rows, cut, 1), tandem};
    double s = pass.s;
    Sight sight;
    for (Index stretch = 0; stretch < Tandem::stretches(blocks); ++stretch) {
        halves.along = tandem.begin(stretch, s);
        walk_rows(halves, pass, blocks, Tandem::first(stretch), std::min(Tandem::first(stretch + 1), blocks.last()),
                  [&](Index position) __attribute__((always_inline)) {
                      visit<Loss>(halves, pass, position, pass.w, s, sight, nullptr);
                  });
    }
    tandem.end();
    pass.s = s;
    return sight;
}

// … and the one that goes along where it can, and does nothing but its half of the work.
template <class Loss, class Rows>
[[gnu::noinline]] void go_along(const Rows& rows, const DualCd& pass, const Cut& cut, const Blocks& blocks, Tandem& tandem) {
    const Half<Rows> half = half_of(rows, cut, 1);
    std::uint64_t turn = 0;
    double s = 0;
    for (Index stretch = -1; (stretch = tandem.next(stretch, s)) != Tandem::never;)
        walk_rows(half.rows, pass, blocks, Tandem::first(stretch), std::min(Tandem::first(stretch + 1), blocks.last()),
                  [&](Index position) {
                      const Index i = pass.active[position];
                      const double alpha = pass.alpha[i];  // as it was: the leader will change it once he knows the sum
                      const Ahead<Loss> ahead = ahead_in_step<Loss>(pass, i, alpha);
                      const double score = tandem.sum(1, ++turn, half.dot(i, pass.w));
                      const double change = meet_in_step(pass, ahead, i, score, s).stride.next - alpha;
                      if (change == 0) return;
                      s += change * pass.y[i];
                      half.add(i, change * pass.y[i], pass.w);
                  });
}

template <class Loss, class Rows>
Sight visit_in_halves(const Rows& rows, DualCd& pass, Workspace& work) {
    const Blocks blocks{pass.active, pass.order, 0, pass.blocks, pass.actives, pass.shift};
    Team team(std::min(pass.threads, 2));
    Tandem tandem(work.pause, work.shared);
    Sight sight;
    team.run([&](int thread) {
        if (thread == 0) sight = lead<Loss>(rows, pass, *work.cut, blocks, tandem);
        else go_along<Loss>(rows, pass, *work.cut, blocks, tandem);
    });
    work.shared = tandem.shared, work.pause = tandem.pause;
    return sight;
}

// One of two shards: its own w and s, room for its next w, what it saw and what it changed; on cache lines of its own.
struct alignas(128) Shard {
    double *w, *next, s;
    Sight sight;
    Changes changes;
};

inline constexpr Index most_rounds = 64;  // of merging, in a pass

template <class Loss, class Rows>
Sight visit_in_shards(const Rows& rows, DualCd& pass, Workspace& work) {
    constexpr Index chunk = 2048;  // features in one sum
    const Index d = rows.d, chunks = (d + chunk - 1) / chunk;
    const Index rounds = std::clamp<Index>(pass.actives / (2 * pass.apart), 1, most_rounds), pieces = 2 * rounds;
    Team team(std::min(pass.threads, 2));
    const int threads = team.size();
    std::array<Shard, 2> shards;
    double* const room = work.room.of((3 + threads) * d);
    shards[0].w = pass.w, shards[1].w = room, shards[0].next = room + d, shards[1].next = room + 2 * d;
    for (auto& shard : shards)
        shard.changes.rows.reserve(static_cast<std::size_t>((pass.blocks / pieces + 1) << pass.shift));
    std::vector<double> along(static_cast<std::size_t>(chunks)), square(static_cast<std::size_t>(chunks));
    double gamma = 1;

    // The dual along the merged step is −(γ·first + γ²·second), exactly so if φ* is quadratic.
    const auto choose_gamma = [&] {
        double first = 0, second = 0, ds = 0;
        for (const auto& shard : shards) {
            first += shard.changes.slope;
            second += shard.changes.lift;
            ds += shard.s - pass.s;
        }
        for (double part : along) first += part;
        for (double part : square) second += part / 2;
        first += (pass.b + pass.s * pass.inverse_rho) * ds;
        second += ds * ds * pass.inverse_rho / 2;
        gamma = std::clamp(second > 0 ? -first / (2 * second) : 1.0, 0.5, 1.0);
        pass.s += gamma * ds;
    };
    Meeting meeting(threads);
    team.run([&](int thread) {
        // What both began with, a copy for each thread: a line that another thread writes to comes back slowly.
        double* const merged = room + (3 + thread) * d;
        std::copy_n(pass.w, d, merged);
        const auto each_shard = [&](auto work_on) {
            for (int k = thread; k < 2; k += threads) work_on(shards[static_cast<std::size_t>(k)], k);
        };
        const auto each_chunk = [&](auto work_on) {
            for (Index part = thread; part < chunks; part += threads)
                work_on(part, part * chunk, std::min(d, (part + 1) * chunk));
        };
        each_shard([&](Shard& shard, int k) {
            if (k == 1) std::copy_n(pass.w, d, shard.w);
        });
        meeting.wait();  // no shard moves before all have their copy
        for (Index round = 0; round < rounds; ++round) {
            each_shard([&](Shard& shard, int k) {
                const Index piece = 2 * round + k;
                shard.s = pass.s;
                shard.changes.rows.clear();
                shard.changes.slope = shard.changes.lift = 0;
                visit_blocks<Loss>(rows, pass, pass.blocks * piece / pieces, pass.blocks * (piece + 1) / pieces,
                                   shard.w, shard.s, shard.sight, &shard.changes);
            });
            meeting.wait();
            const double *const one = shards[0].w, *const other = shards[1].w;
            each_chunk([&](Index part, Index begin, Index end) {
                double dot = 0, norm = 0;
#pragma omp simd reduction(+ : dot, norm)
                for (Index j = begin; j < end; ++j) {
                    const double change = (one[j] - merged[j]) + (other[j] - merged[j]);
                    dot += change * merged[j];
                    norm += change * change;
                }
                along[static_cast<std::size_t>(part)] = dot;
                square[static_cast<std::size_t>(part)] = norm;
            });
            meeting.wait(choose_gamma);
            const double share = gamma;
            const auto merge = [&](double* to, Index begin, Index end) {
#pragma omp simd
                for (Index j = begin; j < end; ++j) to[j] = merged[j] + share * ((one[j] - merged[j]) + (other[j] - merged[j]));
            };
            if (round == rounds - 1) each_chunk([&](Index, Index begin, Index end) { merge(pass.w, begin, end); });
            else
                for (Index begin = 0; begin < d; begin += chunk) {
                    const Index end = std::min(d, begin + chunk);
                    merge(merged, begin, end);  // and not into w: the other thread may still look at it
                    each_shard([&](Shard& shard, int) { std::copy(merged + begin, merged + end, shard.next + begin); });
                }
            each_shard([&](Shard& shard, int) {
                std::swap(shard.w, shard.next);
                if (share < 1)
                    for (const auto& [row, before] : shard.changes.rows)
                        pass.alpha[row] = before + share * (pass.alpha[row] - before);
            });
        }
    });
    Sight total;
    for (const auto& shard : shards) {
        total.gap += shard.sight.gap;
        total.largest = std::max(total.largest, shard.sight.largest);
        total.smallest = std::min(total.smallest, shard.sight.smallest);
        total.slow += shard.sight.slow;
    }
    return total;
}

template <class Loss, class Rows>
Sight visit_all(const Rows& rows, DualCd& pass, Workspace& work) {
    if constexpr (can_be_cut<Rows>)
        if (pass.split && work.cut && work.cut->is_for(rows)) return visit_in_halves<Loss>(rows, pass, work);
    if (pass.split) return visit_in_shards<Loss>(rows, pass, work);
    Sight sight;
    visit_blocks<Loss>(rows, pass, 0, pass.blocks, pass.w, pass.s, sight, nullptr);
    return sight;
}

// Writes those of the list that are wanted one after the other, and returns how many they are. `to` may be the list itself,
// else it has room for all. Without a branch: which rows are wanted cannot be foreseen.
template <class Wanted>
Index pick(const Index* list, Index count, Index* to, Wanted wanted) {
    Index picked = 0;
    for (Index k = 0; k < count; ++k) {
        const Index i = list[k];
        to[picked] = i;
        picked += wanted(i);
    }
    return picked;
}

// Visits all rows in play and leaves those that stay in play at the beginning of pass.active.
template <class Loss, class Rows>
Sight sweep(const Rows& rows, DualCd& pass, Workspace& work) {
    const Sight sight = visit_all<Loss>(rows, pass, work);
    pass.actives = pick(pass.active, pass.actives, pass.active, [](Index i) { return i >= 0; });
    return sight;
}

// The blocks of the rows still in play, in a new order.
inline void reorder(DualCd& pass, std::vector<Index>& order, Draws& draws) {
    pass.blocks = blocks_of(pass.actives, pass.shift);
    std::erase_if(order, [&](Index block) { return block >= pass.blocks; });
    shuffle(order, draws);
    pass.order = order.data();
}

// Visits of rows that are slow to settle, as the pass before has marked them: until their gradients are less than
// `share` of the largest, at most `times`, and at no more than twice the work of that pass; in shards as long as they are
// `many`. If they are more than half of the rows in play, the next pass will do. Where that takes more visits than `patience`
// passes, all rows between their bounds move at once.
struct Again {
    double share;
    Index times, many;
    double patience = inf;
};

template <class Loss, class Rows>
Index sweep_again(const Rows& rows, DualCd pass, const Again& again, const Sight& seen, Workspace& work, Draws& draws,
                  double& s) {
    const Index most = pass.actives;
    if (seen.slow == 0 || 2 * seen.slow > most) return 0;  // rows that are slow do not leave: all of them are still in play
    const auto slow = std::make_unique_for_overwrite<Index[]>(static_cast<std::size_t>(most));  // few of which are touched
    std::vector<Index> order(pass.order, pass.order + pass.blocks);
    pass.actives = pick(pass.active, most, slow.get(), [&](Index i) { return pass.slow[i] != 0; });
    pass.active = slow.get();
    pass.focus = again.share * seen.worst();
    pass.shrink_above = inf, pass.shrink_below = -inf;
    Index visits = 0;
    for (Index k = 0; k < again.times && pass.actives > 0 && visits + pass.actives <= 2 * most; ++k) {
        reorder(pass, order, draws);
        if (pass.actives < again.many) pass.split = false;
        visits += pass.actives;
        sweep<Loss>(rows, pass, work);
    }
    s = pass.s;
    return visits;
}

// When passes over ever fewer rows end: at a gap of those in play, or after so many visits.
struct Enough {
    double gap;
    Index visits;
};

// A pass over the rows in play and, unless the gap is at most `proof`, more visits of those that are slow to settle.
// Between the two b takes over what s/ρ says. As many such passes as are enough. Returns what the last one saw, and in
// `before` the gap that the one before saw, 0 if there was none; `visits` counts all.
template <class Loss, class Rows>
Sight dual_cd_pass(const Rows& rows, DualCd& pass, const Again& again, double proof, const Enough& enough, Workspace& work,
                   Draws draws, Index& visits, double& before) {
    std::vector<Index> order(pass.order, pass.order + pass.blocks);
    Sight sight;
    Index at_once = 0;  // visits when all between their bounds last moved at once
    for (visits = 0, before = 0;; reorder(pass, order, draws)) {
        visits += pass.actives;
        sight = sweep<Loss>(rows, pass, work);
        pass.b += pass.s * pass.inverse_rho;
        if constexpr (!Loss::shrinks) break;
        else if (std::abs(sight.gap) > proof) {
            if (again.times > 0) visits += sweep_again<Loss>(rows, pass, again, sight, work, draws, pass.s);
            if (pass.actives > 0 && static_cast<double>(visits - at_once) > again.patience * static_cast<double>(pass.actives))
                at_once = visits += FreeRows<Loss, Rows>(rows, pass).settle(pass);
        }
        if (pass.actives == 0 || visits + pass.actives > enough.visits || std::abs(sight.gap) <= enough.gap) break;
        before = std::abs(sight.gap);
        pass.shrink_above = sight.largest > 0 ? sight.largest : inf;
        pass.shrink_below = sight.smallest < 0 ? sight.smallest : -inf;
        pass.slow_from = again.share * sight.worst();
        if (pass.actives < again.many) pass.split = false;
    }
    return sight;
}

}  // namespace widemargin
