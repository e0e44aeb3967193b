// ONE WALK over the rows for Xw and Xᵀv, both of which a proof needs.
#pragma once

#include "products.hpp"

namespace widemargin {

// out[i] = w·xᵢ and sum += v[i]·xᵢ for begin ≤ i < end. A weight and its sum lie side by side, w[j] in pairs[2j] and sum[j] in
// pairs[2j + 1]: one cache line, where there would be two.
template <class T, class I>
[[gnu::noinline]] void walk_with_pairs(const Csr<T, I>& rows, Index begin, Index end, const double* v, double* out, double* pairs) {
    for (Index i = begin, until = fetches_until(rows); i < end; ++i) {
        if (i < until) rows.fetch(i + rows_ahead);
        if (const double scale = v[i]; scale == 0)
            out[i] = rows.template sum<double>(i, [pairs](Index j, double x) { return pairs[2 * j] * x; });
        else
            out[i] = rows.template sum<double>(i, [pairs, scale](Index j, double x) {
                pairs[2 * j + 1] += scale * x;
                return pairs[2 * j] * x;
            });
    }
}

template <class T, class I>
void scores_and_combine_in_pairs(const Csr<T, I>& rows, const double* w, const double* v, double* out, double* sum, int threads) {
    constexpr Index chunk = 4096;
    static thread_local Room kept;
    Room own;
    const Stretches stretches(rows, nullptr, rows.d);
    double* const pairs = room_for(2 * rows.d * stretches.count(), kept, own);
    run_pieces(stretches.count(), threads, [&](int k) {
        double* const mine = pairs + 2 * rows.d * k;
        for (Index j = 0; j < rows.d; ++j) mine[2 * j] = w[j], mine[2 * j + 1] = 0;
        walk_with_pairs(rows, stretches.begin(k), stretches.begin(k + 1), v, out, mine);
    });
    run_pieces(static_cast<int>((rows.d + chunk - 1) / chunk), threads, [&](int part) {
        for (Index j = part * chunk, end = std::min(rows.d, (part + 1) * chunk); j < end; ++j) {
            sum[j] = 0;
            for (int k = 0; k < stretches.count(); ++k) sum[j] += pairs[2 * (rows.d * k + j) + 1];
        }
    });
}

// out = Xw and sum = Xᵀv.
template <class Rows>
void scores_and_combine(const Rows& rows, const double* w, const double* v, double* out, double* sum, int threads) {
    if constexpr (requires { rows.uneven; }) {
        constexpr Index often = 8;  // does a column come, so that a thread's own numbers for it are worth setting up
        if (total_nonzeros(rows) < often * rows.d) return scores(rows, w, out, threads), combine(rows, v, sum, threads);
        if (!rows.uneven) return scores_and_combine_in_pairs(rows, w, v, out, sum, threads);
    }
    sum_of_blocks(rows, nullptr, sum, rows.d, threads, [&](Index begin, Index end, double* own) {
        scores_of_block(rows, begin, end, w, out);
        combine_block(rows, begin, end, v, own);  // the rows are still close
    });
}

}  // namespace widemargin
