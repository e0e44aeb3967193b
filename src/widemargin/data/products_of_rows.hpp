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

}  // namespace widemargin
