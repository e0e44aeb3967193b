// Dual coordinate descent for several classes at once, each against the rest: one class per lane of a vector.
//
// The classes share rows, strengths and norms. A row that is visited is read once for all of them, and the weights of a
// feature lie side by side, on one cache line: eight classes cost little more than one. Otherwise this is the descent of
// dual_cd.hpp, b and s/ρ included: neighbours in shuffled blocks, rows that are settled in all lanes left out until the
// others are solved, rows that are slow in one of them visited again. The lanes do not know of each other.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../data/rows.hpp"
#include "../losses.hpp"
#include "dual_cd.hpp"
#include "shuffle.hpp"

namespace widemargin {

inline constexpr int lanes = 8;
using Lanes = std::array<double, lanes>;
using Eight = double __attribute__((vector_size(sizeof(Lanes)), aligned(8)));
using Truths = std::int64_t __attribute__((vector_size(sizeof(Lanes)), aligned(8)));  // 0 or −1

inline bool any(Truths truths) {
    std::int64_t either = 0;
    for (int k = 0; k < lanes; ++k) either |= truths[k];
    return either != 0;
}

inline Lanes all_lanes(double value) {
    Lanes filled;
    filled.fill(value);
    return filled;
}

// Numbers of the rows, which stay, and numbers of eight classes, of which `used` are there.
class LaneDescent {
   public:
    LaneDescent(const unsigned char* label, int used, const double* c, const double* norms, Index n, Index d,
                double inverse_rho, const double* b, std::vector<Index> live, int shift, unsigned seed)
        : label(label), c(c), norms(norms), used(used), inverse_rho(inverse_rho), live(std::move(live)),
          active(this->live), shift(shift), draws(seed), alpha(static_cast<std::size_t>(n)), w(static_cast<std::size_t>(d)) {
        for (auto& sign : signs) sign = all_lanes(-1.0);
        for (std::size_t k = 0; k < lanes; ++k) signs[k][k] = 1.0;
        std::copy_n(b, used, bias.begin());
        for (int k = 0; k < used; ++k) open[k] = -1;
    }

    // Passes until all classes but `leave` seem to have a relative gap of at most `tol`, or to so many visits of rows.
    template <class Loss, class Rows>
    void run(const Rows& rows, double tol, const Habits& habits, Index leave, Index budget) {
        for (const Index enough = visits + budget; visits < enough && !done;) {
            ++passes;
            const bool whole = active.size() == live.size();
            seen = {};
            slow_from = times(worst, habits.slow);
            sweep<Loss>(rows, active, true);
            for (std::size_t k = 0; k < lanes; ++k) {
                if (open[k]) bias[k] += s[k] * inverse_rho;
                worst[k] = std::max(seen.largest[k], -seen.smallest[k]);
            }
            judge<Loss>(tol, whole, habits, leave);
            if (done) return;
            visit_slow_again<Loss>(rows, habits);
            if (comes_back || active.empty()) active = live;
        }
    }

    bool done = false;
    Index passes = 0, visits = 0;
    Lanes bias{}, claim = all_lanes(inf);
    Truths open{};  // whether a class seems not to be solved yet

    // Copies of one lane.
    void alpha_of(int lane, double* to) const {
        for (const auto& row : alpha) *to++ = row[static_cast<std::size_t>(lane)];
    }
    void weights_of(int lane, double* to) const {
        for (const auto& feature : w) *to++ = feature.of[static_cast<std::size_t>(lane)];
    }

   private:
    struct alignas(64) Line {
        Lanes of{};
    };
    struct Sight {
        Lanes gap{}, largest = all_lanes(-inf), smallest = all_lanes(inf);
    };

    const unsigned char* label;  // the class of each row, `lanes` for none of these
    const double *c, *norms;
    int used;
    double inverse_rho;
    std::vector<Index> live, active, order, slow;
    int shift;
    Draws draws;
    std::vector<Lanes> alpha;
    std::vector<Line> w;
    std::array<Lanes, lanes + 1> signs;
    Lanes s{}, above = all_lanes(inf), below = all_lanes(-inf), worst = all_lanes(inf), slow_from{};
    Lanes before = all_lanes(inf), whole_claim = all_lanes(inf), dual{};
    Index looked = 0;  // the visits when the dual was
    Sight seen;
    bool comes_back = false;

    static Lanes times(const Lanes& one, double factor) {
        Lanes product;
        for (std::size_t k = 0; k < lanes; ++k) product[k] = factor * one[k];
        return product;
    }
    static Eight& vector(Lanes& of) { return *reinterpret_cast<Eight*>(of.data()); }

    // Visits these rows in a new order and drops those that leave. In the first of several sweeps a row stays as long as
    // it may move in some lane, and slow ones are noted; from then on as long as it is slow.
    template <class Loss, class Rows>
    void sweep(const Rows& rows, std::vector<Index>& some, bool is_first) {
        const auto count = static_cast<Index>(some.size());
        order.resize(static_cast<std::size_t>(blocks_of(count, shift)));
        for (std::size_t k = 0; k < order.size(); ++k) order[k] = static_cast<Index>(k);
        shuffle(order, draws);
        if (is_first) slow.clear();
        for (const Index at : order)
            for (Index position = at << shift; position < std::min(count, (at + 1) << shift); ++position) {
                Index& row = some[static_cast<std::size_t>(position)];
                const auto [stays, is_slow] = visit<Loss>(rows, row);
                if (is_first && is_slow) slow.push_back(row);
                if (!(is_first ? stays : is_slow)) row = -1;
            }
        visits += count;
        std::erase(some, -1);
    }

    struct Verdict {
        bool stays, is_slow;
    };

    template <class Loss, class Rows>
    Verdict visit(const Rows& rows, Index i) {
        const Eight& y = vector(signs[label[i]]);
        const double strength = c[i], q = norms[i] + inverse_rho;
        const Eight score = rows.template sum<Eight>(
            i, [&](Index j, double x) { return x * vector(w[static_cast<std::size_t>(j)].of); });
        Eight &alphas = vector(alpha[static_cast<std::size_t>(i)]), &total = vector(s);
        const Eight a = alphas, m = y * (score + vector(bias) + total * inverse_rho);
        const Eight g = Loss::gradient(a, m, strength), change = Loss::step(a, m, q, strength) - a;
        const Truths settled = (change == 0) & (g != 0);
        vector(seen.gap) += strength * Loss::value(m) + Loss::conjugate_of_row(a, strength) + a * m;
        Eight &largest = vector(seen.largest), &smallest = vector(seen.smallest);
        largest = ~settled & (g > largest) ? g : largest;
        smallest = ~settled & (g < smallest) ? g : smallest;
        const Truths stays = ~settled | ((g <= vector(above)) & (g >= vector(below)));
        const Truths is_slow = ~settled & ((g >= vector(slow_from)) | (-g >= vector(slow_from)));
        if (any((change != 0) & open)) {
            const Eight moved = (open != 0) ? change : Eight{}, step = moved * y;
            alphas = a + moved;
            total += step;
            rows.each(i, [&](Index j, double x) { vector(w[static_cast<std::size_t>(j)].of) += x * step; });
        }
        return {any(stays & open), any(is_slow & open)};
    }

    // Costs as much as many visits: no more often than there are as many of them as rows.
    template <class Loss>
    void look_at_dual() {
        looked = visits, dual = {};
        for (const auto& feature : w)
            for (std::size_t k = 0; k < lanes; ++k) dual[k] -= feature.of[k] * feature.of[k] / 2;
        for (const Index i : live)
            for (std::size_t k = 0; k < lanes; ++k)
                dual[k] -= Loss::conjugate_of_row(alpha[static_cast<std::size_t>(i)][k], c[i]);
    }

    // What the last pass says of each class: its gap, as it was seen before the visits that shrank it, beside its dual.
    template <class Loss>
    void judge(double tol, bool whole, const Habits& habits, Index leave) {
        if (visits - looked >= static_cast<Index>(live.size())) look_at_dual<Loss>();
        int left = 0;
        comes_back = true;
        for (std::size_t k = 0; k < static_cast<std::size_t>(used); ++k) {
            if (!open[k]) continue;
            claim[k] = dual[k] > 0 ? std::abs(seen.gap[k]) / dual[k] : inf;
            const double fall = before[k] < inf && before[k] > 0 ? std::clamp(claim[k] / before[k], 0.1, 1.0) : 1.0;
            if (whole && claim[k] * fall <= tol) open[k] = 0;
            left -= static_cast<int>(open[k]);
            before[k] = claim[k];
            if (whole) whole_claim[k] = claim[k];
            if (open[k]) comes_back &= claim[k] <= std::max(tol, habits.least_return * whole_claim[k]);
            const double share = claim[k] > habits.rough ? habits.bold : habits.shy;
            above[k] = seen.largest[k] > 0 ? share * seen.largest[k] : inf;
            below[k] = seen.smallest[k] < 0 ? share * seen.smallest[k] : -inf;
        }
        done = left <= leave;
    }

    template <class Loss, class Rows>
    void visit_slow_again(const Rows& rows, const Habits& habits) {
        if (2 * slow.size() > active.size()) return;
        slow_from = times(worst, habits.slow);
        const Sight kept = seen;
        const auto most = visits + 2 * static_cast<Index>(active.size());
        for (Index k = 0; k < habits.again && !slow.empty() && visits + static_cast<Index>(slow.size()) <= most; ++k)
            sweep<Loss>(rows, slow, false);
        seen = kept;
    }
};

}  // namespace widemargin
