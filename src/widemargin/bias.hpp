// The b that minimises Σ cᵢ max(0, yᵢ(turnᵢ − b)), whose slope rises by cᵢ where b passes turnᵢ.
//
// Where the slope passes 0 is found by parting the turns again and again, as quicksort does, and going on with one part.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "data/rows.hpp"

namespace widemargin {

struct Turn {
    double at, c;
};

// The first turn after which `enough` says that the slope has risen enough; the last one if it never does. The slope
// before all of them comes in.
template <class Enough>
double turn_where(Turn* begin, Turn* end, double slope, Enough enough) {
    for (int left = 2 * std::bit_width(static_cast<std::size_t>(end - begin)); end - begin > 1; --left) {
        if (left < 0) {  // an order made to deceive the choice of pivots
            std::sort(begin, end, [](const Turn& one, const Turn& other) { return one.at < other.at; });
            while (end - begin > 1 && !enough(slope += begin->c)) ++begin;
            break;
        }
        const double a = begin->at, b = begin[(end - begin) / 2].at, c = end[-1].at;
        const double pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
        Turn* const middle = std::partition(begin, end, [=](const Turn& turn) { return turn.at < pivot; });
        Turn* const upper = std::partition(middle, end, [=](const Turn& turn) { return turn.at == pivot; });
        double below = slope;
        for (const Turn* turn = begin; turn < middle; ++turn) below += turn->c;
        if (middle > begin && enough(below)) {
            end = middle;
            continue;
        }
        for (const Turn* turn = middle; turn < upper; ++turn) below += turn->c;
        if (enough(below) || upper == end || upper == middle) return pivot;  // the last: what is no number equals nothing
        begin = upper, slope = below;
    }
    return begin->at;
}

// The middle of the stretch on which the slope is 0, give or take `flat`.
inline double best_bias_of_lines(const double* scores, const double* y, const double* c, double kink, double flat, Index n) {
    std::vector<Turn> turns;
    turns.reserve(static_cast<std::size_t>(n));
    double slope = 0;
    for (Index i = 0; i < n; ++i) {
        if (!(c[i] > 0)) continue;
        turns.push_back({y[i] * kink - scores[i], c[i]});
        if (y[i] > 0) slope -= c[i];
    }
    Turn *begin = turns.data(), *end = begin + turns.size();
    const double first = turn_where(begin, end, slope, [=](double reached) { return reached >= -flat; });
    const double last = turn_where(begin, end, slope, [=](double reached) { return reached > flat; });
    return (first + last) / 2;
}

}  // namespace widemargin
