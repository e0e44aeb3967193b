// Dual coordinate descent:  min ½‖w‖² + Σ cᵢ φ*(−αᵢ/cᵢ),  w = Σ αᵢyᵢxᵢ, one αᵢ at a time.
// Hsieh et al. 2008 (Algorithm 3, with shrinking); Yu, Huang and Lin 2011 for the logistic loss.
//
// An unpenalised bias adds the constraint s = Σ αᵢyᵢ = 0, whose multiplier is b. It is kept by an augmented Lagrangian:
// rows are scored with b + s/ρ and step against ‖xᵢ‖² + 1/ρ; between passes the caller moves b by s/ρ.
//
// Rows are visited in shuffled blocks of neighbours: in memory order within a block, since a random order of rows costs
// three times as much per non-zero and converges no faster. A pass over much data is cut into two shards, which run side
// by side, each on a copy of w and s, and are merged several times per pass: all their steps together, scaled by the γ
// between ½ and 1 that is best for the dual. ½ is the mean of the shards' points, which cannot be worse than where they
// began. Shards are part of the algorithm; threads are not: the result depends on the shards alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "../data/rows.hpp"
#include "../threads.hpp"

namespace widemargin {

// Everything a pass reads and writes; arrays of n unless said otherwise.
struct DualCd {
    const double *y, *c, *norms;  // labels ±1, strengths, ‖xᵢ‖²
    double *alpha, *w;            // the dual point and its weights (d)
    double b, s, inverse_rho;     // the bias, Σ αᵢyᵢ, and 1/ρ (0 for no bias)
    Index* active;                // the rows still in play, ascending; a shrunk row i becomes −1 − i
    Index actives;
    const Index* order;  // the blocks of `block` active rows, in the order of their visit
    Index blocks, block;
    double shrink_above, shrink_below;  // a bounded αᵢ with a gradient beyond these is shrunk
    double focus;                       // and, if > 0, all that have a smaller gradient or are where they want to be
    unsigned char* slow;                // whether the gradient was at least `slow_from`
    double slow_from;
    bool split;  // into two shards
    int threads;
    Index apart;  // rows that a shard visits between merges, unless that would be too many merges in a pass
};

// Memory that one pass leaves to the next: fresh memory costs more than much of what is computed in it.
class Room {
   public:
    template <class T>
    T* of(Index count) {
        const std::size_t wanted = sizeof(T) * static_cast<std::size_t>(count);
        if (wanted > size) {
            bytes.reset();
            size = 0;
            bytes = std::make_unique_for_overwrite<std::byte[]>(wanted + wanted / 4);
            size = wanted + wanted / 4;
        }
        return reinterpret_cast<T*>(bytes.get());
    }

   private:
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
};

// Room for the shards' weights, and for copies of the rows in play and of the slow ones among them.
struct Workspace {
    struct Copy {
        Room x, columns, starts, numbers, slow, active;
    };
    Room shards;
    Copy in_play, slow;
};

// What a pass saw on its way.
struct Sight {
    double gap = 0;                         // Σ of each row's Fenchel–Young gap when it was visited
    double largest = -inf, smallest = inf;  // of the gradients of rows that may still move
};

// What a shard did since the last merge.
struct Changes {
    struct Change {
        Index row;
        double before;
    };
    std::vector<Change> rows;
    double slope = 0, conjugate = 0;  // of Σ cφ*(−α/c): the first-order and the whole change
};

template <class Loss, class Rows>
void visit(const Rows& rows, const DualCd& pass, Index position, double* w, double& s, Sight& sight,
           Changes* changes) {
    const Index i = pass.active[position];
    const double y = pass.y[i], c = pass.c[i], alpha = pass.alpha[i];
    const double m = y * (rows.dot(i, w) + pass.b + s * pass.inverse_rho);
    const double next = Loss::step(alpha, m, pass.norms[i] + pass.inverse_rho, c), change = next - alpha;
    sight.gap += (c < inf ? c * Loss::value(m) : 0.0) + Loss::conjugate_of_row(alpha, c) + alpha * m;
    if constexpr (Loss::shrinks) {
        const double g = Loss::gradient(alpha, m, c);
        const bool settled = change == 0 && g != 0, slow = !settled && std::abs(g) >= pass.slow_from;
        if (pass.slow[i] != slow) pass.slow[i] = slow;  // seldom: other threads' rows are on the same line
        if (settled) {  // at the bound where it wants to be
            if (g > pass.shrink_above || g < pass.shrink_below || pass.focus > 0) pass.active[position] = -1 - i;
            return;
        }
        if (std::abs(g) < pass.focus) pass.active[position] = -1 - i;
        sight.largest = std::max(sight.largest, g);
        sight.smallest = std::min(sight.smallest, g);
    }
    if (change == 0) return;
    if (changes) {
        changes->rows.push_back({i, alpha});
        changes->slope += change * Loss::gradient(alpha, 0.0, c);
        changes->conjugate += Loss::conjugate_change(alpha, next, c);
    }
    pass.alpha[i] = next;
    s += change * y;
    rows.add(i, change * y, w);
}

// Brings a block of rows closer before its turn comes: first what belongs to the rows beside X, then the rows.
template <class Rows>
[[gnu::always_inline]] inline void fetch_numbers(const Rows& rows, const DualCd& pass, Index row) {
    const Index i = row < 0 ? -1 - row : row;
    for (const double* numbers : {pass.y, pass.c, pass.norms, static_cast<const double*>(pass.alpha)}) {
        __builtin_prefetch(numbers + i);
        __builtin_prefetch(numbers + std::min(i + 8, rows.n - 1));
    }
    rows.fetch_start(i);
}

template <class Rows>
[[gnu::always_inline]] inline void fetch_row(const Rows& rows, const DualCd& pass, Index position) {
    const Index row = pass.active[position];
    rows.fetch(row < 0 ? -1 - row : row);
}

inline constexpr Index near = 4;  // rows that are fetched ahead

template <class Rows>
[[gnu::always_inline]] inline void fetch_block(const Rows& rows, const DualCd& pass, Index first) {
    for (Index position = first; position < std::min(pass.actives, first + std::min(near, pass.block)); ++position)
        fetch_row(rows, pass, position);
}

// A function of its own: inlined into the threads' bodies, its loops would run out of registers.
template <class Loss, class Rows>
[[gnu::noinline]] void visit_blocks(const Rows rows, const DualCd& pass, Index begin, Index end, double* w,
                                    double& shared_s, Sight& shared_sight, Changes* changes) {
    const bool scattered = 2 * pass.actives < rows.n;  // neighbours in play are none in memory
    double s = shared_s;
    Sight sight = shared_sight;  // on this thread's own cache line until the end
    for (Index k = begin; k < end; ++k) {
        if (k + 2 < end) fetch_numbers(rows, pass, pass.active[pass.order[k + 2] * pass.block]);
        if (k + 1 < end) fetch_block(rows, pass, pass.order[k + 1] * pass.block);
        const Index first = pass.order[k] * pass.block, last = std::min(pass.actives, first + pass.block);
        for (Index position = first; position < last; ++position) {
            if (scattered && position + near < last) fetch_row(rows, pass, position + near);
            visit<Loss>(rows, pass, position, w, s, sight, changes);
        }
    }
    shared_s = s;
    shared_sight = sight;
}

// One of two shards: its copies of w and s, what it saw and what it changed; on cache lines of its own but for w, which
// the other reads while the merged weights are written to `next`.
struct alignas(128) Shard {
    double *w, *next;
    double s;
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
    double* const room = work.shards.of<double>((4 + threads) * d);
    for (int k = 0; k < 2; ++k) {
        Shard& shard = shards[static_cast<std::size_t>(k)];
        shard.w = room + k * d, shard.next = room + (2 + k) * d;
        std::copy_n(pass.w, d, shard.w);
        shard.changes.rows.reserve(static_cast<std::size_t>((pass.blocks / pieces + 1) * pass.block));
    }
    std::vector<double> along(static_cast<std::size_t>(chunks)), square(static_cast<std::size_t>(chunks));
    double gamma = 1;

    // The dual along the merged step is −(γ·first + γ²·second), exactly so if φ* is quadratic.
    const auto choose_gamma = [&] {
        double first = 0, second = 0, ds = 0;
        for (const auto& shard : shards) {
            first += shard.changes.slope;
            second += shard.changes.conjugate - shard.changes.slope;
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
        double* const merged = room + (4 + thread) * d;
        std::copy_n(pass.w, d, merged);
        for (Index round = 0; round < rounds; ++round) {
            for (int k = thread; k < 2; k += threads) {
                Shard& shard = shards[static_cast<std::size_t>(k)];
                const Index piece = 2 * round + k;
                shard.s = pass.s;
                shard.changes.rows.clear();
                shard.changes.slope = shard.changes.conjugate = 0;
                visit_blocks<Loss>(rows, pass, pass.blocks * piece / pieces, pass.blocks * (piece + 1) / pieces,
                                   shard.w, shard.s, shard.sight, &shard.changes);
            }
            meeting.wait();
            const double *const one = shards[0].w, *const other = shards[1].w;
            for (Index part = thread; part < chunks; part += threads) {
                double dot = 0, norm = 0;
                const Index end = std::min(d, (part + 1) * chunk);
#pragma omp simd reduction(+ : dot, norm)
                for (Index j = part * chunk; j < end; ++j) {
                    const double change = (one[j] - merged[j]) + (other[j] - merged[j]);
                    dot += change * merged[j];
                    norm += change * change;
                }
                along[static_cast<std::size_t>(part)] = dot;
                square[static_cast<std::size_t>(part)] = norm;
            }
            meeting.wait(choose_gamma);
            const double share = gamma;
#pragma omp simd
            for (Index j = 0; j < d; ++j)
                merged[j] += share * ((one[j] - merged[j]) + (other[j] - merged[j]));
            for (int k = thread; k < 2; k += threads) {
                Shard& shard = shards[static_cast<std::size_t>(k)];
                std::copy_n(merged, d, shard.next);
                if (share < 1)
                    for (const auto& [row, before] : shard.changes.rows)
                        pass.alpha[row] = before + share * (pass.alpha[row] - before);
            }
            meeting.wait();
            for (int k = thread; k < 2; k += threads) {
                Shard& shard = shards[static_cast<std::size_t>(k)];
                std::swap(shard.w, shard.next);
            }
        }
        if (thread == 0) std::copy_n(merged, d, pass.w);
    });
    Sight total;
    for (const auto& shard : shards) {
        total.gap += shard.sight.gap;
        total.largest = std::max(total.largest, shard.sight.largest);
        total.smallest = std::min(total.smallest, shard.sight.smallest);
    }
    return total;
}

template <class Loss, class Rows>
Sight visit_all(const Rows& rows, DualCd& pass, Workspace& work) {
    if (pass.split) return visit_in_shards<Loss>(rows, pass, work);
    Sight sight;
    visit_blocks<Loss>(rows, pass, 0, pass.blocks, pass.w, pass.s, sight, nullptr);
    return sight;
}

// Visits all rows in play and leaves those that stay in play at the beginning of pass.active.
template <class Loss, class Rows>
Sight sweep(const Rows& rows, DualCd& pass, Workspace& work) {
    const Sight sight = visit_all<Loss>(rows, pass, work);
    Index* const end = std::remove_if(pass.active, pass.active + pass.actives, [](Index i) { return i < 0; });
    pass.actives = end - pass.active;
    return sight;
}

// The blocks of the rows still in play, in a new order.
inline void reorder(DualCd& pass, std::vector<Index>& order, std::minstd_rand& random) {
    pass.blocks = (pass.actives + pass.block - 1) / pass.block;
    std::erase_if(order, [&](Index block) { return block >= pass.blocks; });
    for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[random() % k]);
    pass.order = order.data();
}

inline constexpr Index few = 6;  // rows in play are few if they are at most one in so many

// Calls go(rows, pass), or the same for a copy of the rows in play if they are few: visits of rows that are scattered
// over memory cost two to three times as much.
template <class Rows, class Go>
auto on_a_copy(const Rows& rows, DualCd& pass, Workspace::Copy&, Go go) {
    return go(rows, pass);
}

template <class T, class I, class Go>
auto on_a_copy(const Csr<T, I>& rows, DualCd& pass, Workspace::Copy& room, Go go) {
    const Index count = pass.actives;
    if (few * count > rows.n) return go(rows, pass);
    I* starts = room.starts.template of<I>(count + 1);
    starts[0] = 0;
    for (Index k = 0; k < count; ++k)
        starts[k + 1] = starts[k] + rows.starts[pass.active[k] + 1] - rows.starts[pass.active[k]];
    T* x = room.x.template of<T>(starts[count]);
    I* columns = room.columns.template of<I>(starts[count]);
    double *y = room.numbers.template of<double>(4 * count), *c = y + count, *norms = c + count, *alpha = norms + count;
    auto* slow = room.slow.template of<unsigned char>(count);
    auto* active = room.active.template of<Index>(count);
    constexpr int pieces = 16;
    run_pieces(pieces, pass.threads, [&](int piece) {
        for (Index k = count * piece / pieces; k < count * (piece + 1) / pieces; ++k) {
            const Index i = pass.active[k];
            std::copy(rows.x + rows.starts[i], rows.x + rows.starts[i + 1], x + starts[k]);
            std::copy(rows.columns + rows.starts[i], rows.columns + rows.starts[i + 1], columns + starts[k]);
            y[k] = pass.y[i], c[k] = pass.c[i], norms[k] = pass.norms[i], alpha[k] = pass.alpha[i];
            slow[k] = pass.slow[i], active[k] = k;
        }
    });
    DualCd its = pass;
    its.y = y, its.c = c, its.norms = norms, its.alpha = alpha, its.slow = slow, its.active = active;
    const auto result = go(Csr<T, I>{x, columns, starts, count, rows.d}, its);
    for (Index k = 0; k < count; ++k) pass.alpha[pass.active[k]] = alpha[k];
    for (Index k = 0; k < its.actives; ++k) pass.active[k] = pass.active[active[k]];  // active[k] ≥ k
    pass.actives = its.actives, pass.b = its.b, pass.s = its.s;
    return result;
}

// Visits of rows that are slow to settle, as the pass before has marked them: until their gradients are less than
// `share` of the largest, at most `times`, and at no more than twice the work of that pass; in shards as long as they are
// `many`. If they are more than half of the rows in play, the next pass will do.
struct Again {
    double share;
    Index times, many;
};

template <class Loss, class Rows>
Index sweep_again(const Rows& rows, DualCd pass, const Again& again, double largest, Workspace& work, double& s) {
    std::vector<Index> slow, order(pass.order, pass.order + pass.blocks);
    std::minstd_rand random;
    for (Index k = 0; k < pass.actives; ++k)
        if (pass.slow[pass.active[k]]) slow.push_back(pass.active[k]);
    const Index most = pass.actives;
    pass.active = slow.data(), pass.actives = static_cast<Index>(slow.size());
    if (slow.empty() || 2 * pass.actives > most) return 0;
    pass.focus = again.share * largest;
    pass.shrink_above = inf, pass.shrink_below = -inf;
    const Index visits = on_a_copy(rows, pass, work.slow, [&](const auto& some, DualCd& its) {
        Index made = 0;
        for (Index k = 0; k < again.times && its.actives > 0 && made + its.actives <= 2 * most; ++k) {
            reorder(its, order, random);
            if (its.actives < again.many) its.split = false;
            made += its.actives;
            sweep<Loss>(some, its, work);
        }
        return made;
    });
    s = pass.s;
    return visits;
}

// When passes over ever fewer rows end: at a gap of those in play, or after so many visits.
struct Enough {
    double gap;
    Index visits;
};

// A pass over the rows in play and, unless the gap is at most `proof`, more visits of those that are slow to settle.
// Between the two b takes over what s/ρ says. As many such passes as are cheap. Returns what the last one saw, and in
// `before` the gap that the one before saw, 0 if there was none; `visits` counts all.
template <class Loss, class Rows>
Sight dual_cd_passes(const Rows& rows, DualCd& pass, const Again& again, double proof, const Enough& enough, Workspace& work,
                     Index& visits, double& before) {
    std::vector<Index> order(pass.order, pass.order + pass.blocks);
    std::minstd_rand random;
    Sight sight;
    for (visits = 0, before = 0;; reorder(pass, order, random)) {
        visits += pass.actives;
        sight = sweep<Loss>(rows, pass, work);
        pass.b += pass.s * pass.inverse_rho;
        if (!Loss::shrinks) break;
        const double worst = std::max(sight.largest, -sight.smallest);
        if (again.times > 0 && std::abs(sight.gap) > proof)
            visits += sweep_again<Loss>(rows, pass, again, worst, work, pass.s);
        if (pass.actives == 0 || visits + pass.actives > enough.visits || std::abs(sight.gap) <= enough.gap) break;
        before = std::abs(sight.gap);
        pass.shrink_above = sight.largest > 0 ? sight.largest : inf;
        pass.shrink_below = sight.smallest < 0 ? sight.smallest : -inf;
        pass.slow_from = again.share * worst;
        if (pass.actives < again.many) pass.split = false;
    }
    return sight;
}

template <class Loss, class Rows>
Sight dual_cd_pass(const Rows& rows, DualCd& pass, const Again& again, double proof, const Enough& enough, Workspace& work,
                   Index& visits, double& before) {
    const auto go = [&](const auto& some, DualCd& its) {
        return dual_cd_passes<Loss>(some, its, again, proof, enough, work, visits, before);
    };
    return enough.visits > 0 ? on_a_copy(rows, pass, work.in_play, go) : go(rows, pass);
}

}  // namespace widemargin
