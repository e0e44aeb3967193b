// ONE WALK over the rows for Xw and Xᵀv, both of which a proof needs.
#pragma once

#include "products.hpp"

namespace widemargin {

// A weight and a sum side by side: one cache line, where a walk that needs both would touch two.
struct WeightAndSum {
    double w, sum;
};

// out[i] = w·xᵢ and sums += v[i]·xᵢ for begin ≤ i < end.
template <class T, class I>
[[gnu::noinline]] void scores_and_sums(const Csr<T, I>& rows, Index begin, Index end, const double* v, double* out,
                                       WeightAndSum* pairs) {
    for (Index i = begin, until = fetches_until(rows); i < end; ++i) {
        if (i < until) rows.fetch(i + rows_ahead);
        out[i] = rows.template sum<double>(i, [pairs, scale = v[i]](Index j, double x) {
            pairs[j].sum += scale * x;
            return pairs[j].w * x;
        });
    }
}

// out = Xw and sum = Xᵀv.
template <class Rows>
void scores_and_combine(const Rows& rows, const double* w, const double* v, double* out, double* sum, int threads) {
    constexpr Index often = 4;  // enough for a column to be worth a pair
    if constexpr (requires { rows.uneven; })
        if (!rows.uneven && total_nonzeros(rows) >= often * rows.d)
            return sum_of_rows(rows, v, sum, rows.d, threads, [&](Index begin, Index end, double* own) {
                static thread_local Room kept;
                Room fresh;
                auto* const pairs = reinterpret_cast<WeightAndSum*>(room_for(2 * rows.d, kept, fresh));
                for (Index j = 0; j < rows.d; ++j) pairs[j] = {w[j], 0.0};
                scores_and_sums(rows, begin, end, v, out, pairs);
                for (Index j = 0; j < rows.d; ++j) own[j] = pairs[j].sum;
            });
    sum_of_blocks(rows, v, sum, rows.d, threads, [&](Index begin, Index end, double* own) {
        scores_of_block(rows, begin, end, w, out);
        combine_block(rows, begin, end, v, own);  // the rows are still close
    });
}

}  // namespace widemargin
