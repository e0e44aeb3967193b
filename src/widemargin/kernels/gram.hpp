// THE KERNEL MATRIX BY THE BLOCK: rows of it in precision T, and its products with vectors in double precision.
//
// Work is cut into pieces of fixed size, each written by one thread: the bits do not depend on how many there are.
#pragma once

#include "../threads.hpp"
#include "functions.hpp"

namespace widemargin::kernels {

// out[r][c] = k(row index[r] of A, row c of B) for `count` rows and all c.
template <class T>
void rows_of_matrix(const Function& f, const Points<T>& A, const Index* index, Index count, const Points<T>& B, T* const* out,
                    int threads) {
    if (!count) return;
    const Groups<T> groups(A, index, count);
    const Index length = Stretch<T>::length(B);
    run_pieces(static_cast<int>((B.n + length - 1) / length), threads, [&](int piece) {
        const Index begin = piece * length, end = std::min(B.n, begin + length);
        thread_local Scratch<T> scratch;
        const Stretch<T> stretch(B, begin, end, scratch);
        for (Index group = 0; group < groups.size(); ++group)
            values_of_group(f, groups, group, stretch, begin, end, scratch, [&](Index from, Index to, const T* values) {
                for (Index r = 0; r < groups.rows(group); ++r) std::copy_n(values + r * kChunk, to - from, out[group * kGroup + r] + from);
            });
    });
}

// to[k] += Σ by[r] rows[r·kChunk + k] in double precision, over `count` rows and k < width.
template <class T>
void add_rows(const T* rows, const double* by, Index count, double* to, Index width) {
    Index r = 0;
    for (; r + 4 <= count; r += 4) {
        const T *const k0 = rows + r * kChunk, *const k1 = k0 + kChunk, *const k2 = k1 + kChunk, *const k3 = k2 + kChunk;
        const double d0 = by[r], d1 = by[r + 1], d2 = by[r + 2], d3 = by[r + 3];
#pragma omp simd
        for (Index k = 0; k < width; ++k)
            to[k] += (d0 * static_cast<double>(k0[k]) + d1 * static_cast<double>(k1[k])) +
                     (d2 * static_cast<double>(k2[k]) + d3 * static_cast<double>(k3[k]));
    }
    for (; r < count; ++r) {
        const T* const row = rows + r * kChunk;
        const double some = by[r];
#pragma omp simd
        for (Index k = 0; k < width; ++k) to[k] += some * static_cast<double>(row[k]);
    }
}

// to[k·columns + v] += Σ rows[r·kChunk + k] by[r·columns + v] over `count` rows, k < width and all v; `columns` are whole vectors.
inline void add_products(const double* rows, const double* by, Index count, Index columns, double* to, Index width) {
    constexpr Index most = 8;  // sums at a time: as many are under way before the first is done
    for (Index v = 0; v < columns; v += kLanes<double>)
        for (Index first = 0; first < width; first += most) {
            const Index some = std::min(most, width - first);
            Vector<double> sum[most] = {}, one;
            for (Index k = 0; k < some; ++k) std::memcpy(&sum[k], to + (first + k) * columns + v, sizeof one);
            for (Index r = 0; r < count; ++r) {
                std::memcpy(&one, by + r * columns + v, sizeof one);
                for (Index k = 0; k < most; ++k) sum[k] += rows[r * kChunk + first + k] * one;  // a chunk has whole eights
            }
            for (Index k = 0; k < some; ++k) std::memcpy(to + (first + k) * columns + v, &sum[k], sizeof one);
        }
}

// out[c·columns + v] = Σ over the rows j of B: k(row c of X, b_j) · coef[j·columns + v], all in double precision.
template <class Rows>
void scores(const Function& f, const Rows& x, const double* shift, bool sparse, const Points<double>& B, const double* coef,
            Index columns, double* out, int threads) {
    const Index length = Stretch<double>::length(B);
    std::fill_n(out, x.n * columns, 0.0);
    if (!B.n) return;
    std::vector<Index> all(static_cast<std::size_t>(B.n));
    std::iota(all.begin(), all.end(), Index{0});
    const Groups<double> groups(B, all.data(), B.n);
    const Index wide = columns == 1 ? 1 : (columns + kLanes<double> - 1) / kLanes<double> * kLanes<double>;
    Buffer<double> by(static_cast<std::size_t>(B.n * wide), 0.0);
    for (Index j = 0; j < B.n; ++j) std::copy_n(coef + j * columns, columns, by.data() + j * wide);
    run_pieces(static_cast<int>((x.n + length - 1) / length), threads, [&](int piece) {
        const Index begin = piece * length, end = std::min(x.n, begin + length);
        const Points<double> here = points_of<double>(f, x, nullptr, begin, end, shift, sparse);
        thread_local Scratch<double> scratch;
        const Stretch<double> stretch(here, 0, here.n, scratch);
        Buffer<double> sums(static_cast<std::size_t>(here.n * wide), 0.0);
        for (Index group = 0; group < groups.size(); ++group) {
            const double* const mine = by.data() + group * kGroup * wide;
            values_of_group(f, groups, group, stretch, 0, here.n, scratch, [&](Index from, Index to, const double* values) {
                if (wide == 1) add_rows(values, mine, groups.rows(group), sums.data() + from, to - from);
                else add_products(values, mine, groups.rows(group), wide, sums.data() + from * wide, to - from);
            });
        }
        for (Index c = 0; c < here.n; ++c) std::copy_n(sums.data() + c * wide, columns, out + (begin + c) * columns);
    });
}

}  // namespace widemargin::kernels
