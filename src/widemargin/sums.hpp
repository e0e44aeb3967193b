// SUMS over all rows: of products, of their losses, and of the conjugates of their dual variables.
//
// Long sums are sums of short ones, so that their rounding does not grow with the number of rows, and they run over a
// fixed number of pieces, so that their bits do not depend on the threads.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "data/rows.hpp"
#include "losses.hpp"
#include "threads.hpp"

namespace widemargin {

inline constexpr Index rows_in_sum = 512;  // at most, if it is a short one

// The sum of what of_stretch(begin, end) returns for short stretches of n rows.
template <class OfStretch>
auto sum_of_stretches(Index n, int threads, OfStretch of_stretch) {
    constexpr int pieces = 16;
    std::array<decltype(of_stretch(0, 0)), pieces> parts{};
    run_pieces(pieces, threads, [&](int piece) {
        auto& part = parts[static_cast<std::size_t>(piece)];
        const Index end = n * (piece + 1) / pieces;
        for (Index begin = n * piece / pieces; begin < end; begin += rows_in_sum)
            part += of_stretch(begin, std::min(end, begin + rows_in_sum));
    });
    for (int piece = 1; piece < pieces; ++piece) parts[0] += parts[static_cast<std::size_t>(piece)];
    return parts[0];
}

// Σ ab.
inline double inner(const double* a, const double* b, Index n) {
    return sum_of_stretches(n, 1, [&](Index begin, Index end) { return sum_of_products(a + begin, b + begin, end - begin); });
}

// ‖a − b‖.
inline double distance(const double* a, const double* b, Index n) {
    return std::sqrt(sum_of_stretches(n, 1, [&](Index begin, Index end) {
        return sum_of_four<double>(begin, end, [&](Index i) { return (a[i] - b[i]) * (a[i] - b[i]); });
    }));
}

// Stretches are functions of their own: in a lambda their loops would not become vectors.
template <class Loss>
[[gnu::noinline]] double losses_of_stretch(const double* m, const double* c, Index begin, Index end) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index i = begin; i < end; ++i) sum += c[i] > 0 ? c[i] * quick_shape<Loss>(m[i]).value : 0.0;
    return sum;
}

template <class Loss>
[[gnu::noinline]] double conjugates_of_stretch(const double* alpha, const double* c, Index begin, Index end) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index i = begin; i < end; ++i) {
        const double value = Loss::conjugate_of_row(alpha[i], c[i]);
        // Not &&, which would be a branch.
        const double inside = (alpha[i] >= Loss::lower() ? 1.0 : 0.0) * (alpha[i] <= Loss::upper(c[i]) ? 1.0 : 0.0);
        sum += c[i] > 0 ? (inside > 0 ? value : inf) : 0.0;
    }
    return sum;
}

// Σ cφ(m); a row of strength 0 is none, whatever its margin.
template <class Loss>
double losses(const double* m, const double* c, Index n, int threads) {
    return sum_of_stretches(n, threads, [&](Index begin, Index end) { return losses_of_stretch<Loss>(m, c, begin, end); });
}

// Σ cφ*(−α/c), infinite where an α is out of its bounds.
template <class Loss>
double conjugates(const double* alpha, const double* c, Index n, int threads) {
    return sum_of_stretches(n, threads,
                            [&](Index begin, Index end) { return conjugates_of_stretch<Loss>(alpha, c, begin, end); });
}

}  // namespace widemargin
