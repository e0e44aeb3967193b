// PRODUCTS OF ROWS: the Gram matrix of a few of them, as a storage of rows of its own.
//
// Steps along the rows of X change the scores Xw by steps along the rows of XXᵀ. A kernel that knows rows by `dot` and `add`
// alone can go through few of them in these terms: the scores take the place of the weights, and a product is one of them.
#pragma once

#include <cstddef>
#include <vector>

#include "rows.hpp"

namespace widemargin {

class ProductsOfRows {
   public:
    Index n, d;  // how many rows, twice

    template <class Rows>
    ProductsOfRows(const Rows& rows, const Index* list, Index count)
        : n(count), d(count), products(static_cast<std::size_t>(count * count)) {
        std::vector<double> row(static_cast<std::size_t>(rows.d));
        for (Index i = 0; i < n; ++i) {
            rows.add(list[i], 1.0, row.data());
            for (Index j = 0; j <= i; ++j) at(i, j) = at(j, i) = rows.dot(list[j], row.data());
            rows.each(list[i], [&](Index feature, double) { row[static_cast<std::size_t>(feature)] = 0; });
        }
    }

    [[gnu::always_inline]] double dot(Index i, const double* scores) const { return scores[i]; }
    void add(Index i, double scale, double* scores) const {
        const double* const with_others = row(i);
#pragma omp simd
        for (Index j = 0; j < n; ++j) scores[j] += scale * with_others[j];
    }
    const double* row(Index i) const { return products.data() + i * n; }
    [[gnu::always_inline]] void fetch_start(Index) const {}
    [[gnu::always_inline]] void fetch(Index) const {}

   private:
    std::vector<double> products;

    double& at(Index i, Index j) { return products[static_cast<std::size_t>(i * n + j)]; }
};

// sum += Σ v[k]·row(list[k]), four at a time: there are fewer sums to wait for.
inline void add_rows(const ProductsOfRows& rows, const std::vector<Index>& list, const std::vector<double>& v, double* sum) {
    std::size_t k = 0;
    for (; k + 4 <= list.size(); k += 4) {
        const double v0 = v[k], v1 = v[k + 1], v2 = v[k + 2], v3 = v[k + 3];
        const double *const r0 = rows.row(list[k]), *const r1 = rows.row(list[k + 1]), *const r2 = rows.row(list[k + 2]),
                     *const r3 = rows.row(list[k + 3]);
#pragma omp simd
        for (Index j = 0; j < rows.n; ++j) sum[j] += (v0 * r0[j] + v1 * r1[j]) + (v2 * r2[j] + v3 * r3[j]);
    }
    for (; k < list.size(); ++k) rows.add(list[k], v[k], sum);
}

}  // namespace widemargin
