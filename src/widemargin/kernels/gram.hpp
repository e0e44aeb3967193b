// THE KERNEL MATRIX BY THE BLOCK: rows of it in precision T, and its products with vectors in double precision.
//
// Work is cut into pieces of fixed size, each written by one thread: the bits do not depend on how many there are.
#pragma once

#include "../threads.hpp"
#include "functions.hpp"

namespace widemargin::kernels {

inline constexpr Index kColumnsInPiece = 2048;  // of the kernel matrix; enough work to be worth handing to a thread

// out[r][c] = k(row index[r] of A, row c of B) for `count` rows and all c.
template <class T>
void rows_of_matrix(const Function& f, const Points<T>& A, const Index* index, Index count, const Points<T>& B, T* const* out,
                    int threads) {
    const Index groups = (count + kGroup - 1) / kGroup, stretches = (B.n + kColumnsInPiece - 1) / kColumnsInPiece;
    run_pieces(static_cast<int>(groups * stretches), threads, [&](int piece) {
        const Index first = piece / stretches * kGroup, begin = piece % stretches * kColumnsInPiece;
        T* here[kGroup];
        const Index rows = std::min(kGroup, count - first);
        for (Index r = 0; r < rows; ++r) here[r] = out[first + r] + begin;
        thread_local Scratch<T> scratch;
        values_of_group(f, A, index + first, rows, B, begin, std::min(B.n, begin + kColumnsInPiece), here, scratch);
    });
}

// out[c·columns + v] = Σ over the rows j of B: k(row c of X, b_j) · coef[j·columns + v], all in double precision.
template <class Rows>
void scores(const Function& f, const Rows& x, const double* shift, bool sparse, const Points<double>& B, const double* coef,
            Index columns, double* out, int threads) {
    constexpr Index stretch = 512;  // rows of X that are read and scored at a time
    const Index pieces = (x.n + stretch - 1) / stretch;
    run_pieces(static_cast<int>(pieces), threads, [&](int piece) {
        const Index begin = piece * stretch, end = std::min(x.n, begin + stretch), size = end - begin;
        const Points<double> here = points_of<double>(f, x, nullptr, begin, end, shift, sparse);
        double* const sum = out + begin * columns;
        std::fill_n(sum, size * columns, 0.0);
        thread_local Scratch<double> scratch;
        thread_local Buffer<double> values;
        values.resize(static_cast<std::size_t>(kGroup * stretch));
        std::array<Index, kGroup> index;
        std::array<double*, kGroup> rows;
        for (Index k = 0; k < kGroup; ++k) rows[static_cast<std::size_t>(k)] = values.data() + k * stretch;
        for (Index first = 0; first < B.n; first += kGroup) {
            const Index count = std::min(kGroup, B.n - first);
            for (Index k = 0; k < count; ++k) index[static_cast<std::size_t>(k)] = first + k;
            values_of_group(f, B, index.data(), count, here, 0, size, rows.data(), scratch);
            if (columns == 1) {
                for (Index r = 0; r < count; ++r) {
                    const double a = coef[first + r], *const k = rows[static_cast<std::size_t>(r)];
#pragma omp simd
                    for (Index c = 0; c < size; ++c) sum[c] += a * k[c];
                }
            } else {
                for (Index c = 0; c < size; ++c)
                    for (Index r = 0; r < count; ++r) {
                        const double k = rows[static_cast<std::size_t>(r)][c], *const a = coef + (first + r) * columns;
#pragma omp simd
                        for (Index v = 0; v < columns; ++v) sum[c * columns + v] += k * a[v];
                    }
            }
        }
    });
}

}  // namespace widemargin::kernels
