// STEP BACK: how much of a pass of coordinate descent to keep, where most αᵢ stay between their bounds.
//
// A row that is visited early does not know what those after it will do; all of them go towards the same end, and together
// they may go too far. On the way from where the pass began to where it ended the gap is convex and the dual concave. Some
// rows, drawn at random, tell where the gap is least and how much of it is left, and from where on the dual is no worse than
// in the end. With a bias they only tell how much is left: the multiplier b has its own way of going too far and coming back.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "../data/products.hpp"
#include "../losses.hpp"
#include "../threads.hpp"
#include "shuffle.hpp"

namespace widemargin {

class StepBack {
   public:
    // Remembers where the pass begins, unless there is a bias; the room is used until it has ended.
    template <class Pass>
    StepBack(const Pass& pass, Index n, Index d, Room& room) : n(n), d(d), alpha(pass.alpha), w(pass.w) {
        if (pass.inverse_rho > 0) return;
        double *const alphas = room.of(n + d), *const weights = alphas + n;
        each_half(pass.threads, [&](auto part) {
            part(n, [&](Index from, Index to) { std::copy(alpha + from, alpha + to, alphas + from); });
            part(d, [&](Index from, Index to) { std::copy(w + from, w + to, weights + from); });
        });
        alpha = alphas, w = weights;
    }

    // Goes back as far as some rows suggest, so many of each class, and returns the gap that they suggest is left. They are
    // drawn from those that are live, and may miss a few that are far stronger than the others.
    template <class Loss, class Rows, class Pass>
    double take(const Rows& rows, Pass& pass, const Index* live, Index count, Index some, const Draws& draws) const {
        std::array<Along, 2> sides;
        run_pieces(2, pass.threads, [&](int side) {
            sides[static_cast<std::size_t>(side)] = look<Loss>(rows, pass, side ? 1.0 : -1.0, live, count, some, draws);
        });
        for (std::size_t k = 0; k < shares.size(); ++k) sides[0][k].gap += sides[1][k].gap, sides[0][k].fall += sides[1][k].fall;
        constexpr double little = 0.03;
        const double too_far = how_far_too_far(sides[0]);
        if (too_far <= little) return sides[0].back().gap;
        go_to(pass, 1 - too_far);
        return gap_at(sides[0], too_far);
    }

   private:
    static constexpr std::array shares{0.8, 0.9, 1.0};

    // The gap at one of these shares of the pass, and how fast the dual falls there.
    struct Place {
        double gap = 0, fall = 0;
    };
    using Along = std::array<Place, shares.size()>;

    const Index n, d;
    const double *alpha, *w;

    // Calls work(part), on as many threads, where part(size, visit) visits a half of 0 … size − 1.
    template <class Work>
    static void each_half(int threads, Work work) {
        run_pieces(2, threads, [&](int half) {
            work([half](Index size, auto visit) { visit(size * half / 2, size * (half + 1) / 2); });
        });
    }

    // What rows of one class contribute, as `some` of them suggest it or, if they are rare, fewer.
    template <class Loss, class Rows, class Pass>
    Along look(const Rows& rows, const Pass& pass, double side, const Index* live, Index count, Index some, Draws draws) const {
        constexpr Index patience = 64;
        Along along{};
        Index drawn = 0, taken = 0;
        for (; drawn < patience * some && taken < some; ++drawn) {
            const Index i = live[draws.below(static_cast<std::size_t>(count))];
            if (pass.y[i] != side) continue;
            ++taken;
            const double then = rows.dot(i, w), now = rows.dot(i, pass.w);
            for (std::size_t k = 0; k < shares.size(); ++k) {
                const double c = pass.c[i], a = between(alpha[i], pass.alpha[i], shares[k]);
                const double m = side * (between(then, now, shares[k]) + pass.b);
                along[k].gap += c * quick_shape<Loss>(m).value + Loss::conjugate_of_row(a, c) + a * m;
                along[k].fall += (pass.alpha[i] - alpha[i]) * Loss::gradient(a, m, c);
            }
        }
        const double weight = static_cast<double>(count) / static_cast<double>(drawn);
        for (auto& place : along) place.gap *= weight, place.fall *= weight;
        return along;
    }

    static double between(double then, double now, double share) { return then + share * (now - then); }

    // The parabola through the three gaps, in tenths from the last one back.
    static double slope_of(const Along& along) { return (3 * along[2].gap - 4 * along[1].gap + along[0].gap) / 2; }
    static double bend_of(const Along& along) { return along[2].gap - 2 * along[1].gap + along[0].gap; }

    // To where the gap is least, and a quarter more: the next pass gains by it. But not so far that the dual would lose.
    static double how_far_too_far(const Along& along) {
        const double bend = bend_of(along), least = bend > 0 ? std::clamp(slope_of(along) / bend, 0.0, 3.0) : 0.0;
        const double rises = along[2].fall - along[0].fall;  // by which the dual's fall does, in two tenths
        const double even = rises > 0 ? std::max(4 * along[2].fall / rises, 0.0) : 0.0;
        return std::min(1.25 * least, even) / 10;
    }

    // Between or beyond the three; not much less than any of them.
    static double gap_at(const Along& along, double too_far) {
        const double back = 10 * too_far, gap = along[2].gap - back * (slope_of(along) - back * bend_of(along) / 2);
        return std::max(gap, std::min({along[0].gap, along[1].gap, along[2].gap}) / 2);
    }

    template <class Pass>
    void go_to(Pass& pass, double share) const {
        const auto back = [share](double* now, const double* then) {
            return [=](Index from, Index to) {
#pragma omp simd
                for (Index j = from; j < to; ++j) now[j] = between(then[j], now[j], share);
            };
        };
        each_half(pass.threads, [&](auto part) { part(n, back(pass.alpha, alpha)), part(d, back(pass.w, w)); });
    }
};

}  // namespace widemargin
