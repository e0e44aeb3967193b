// HALVES: the columns of X cut in two, so that two threads can share the work of every row.
//
// A product with a row is the sum of the products with its halves. The functions are not inlined: whoever calls them, one
// thread for both halves or one for each, the bits are the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include "products.hpp"
#include "rows.hpp"

namespace widemargin {

// The part of each row that lies on one side of the cut, a storage of its own whose weights begin `offset` later.
template <class Rows>
struct Half {
    Rows rows;
    Index offset;

    [[gnu::noinline, gnu::noipa]] double dot(Index i, const double* w) const { return rows.dot(i, w + offset); }
    [[gnu::noinline, gnu::noipa]] void add(Index i, double scale, double* w) const { rows.add(i, scale, w + offset); }
};

// Where rows are cut: before a column and, where they are compressed, before a non-zero of each.
struct Cut {
    const void* x;  // whose rows they are, and how many
    Index n, column = 0;
    std::variant<std::vector<std::int32_t>, std::vector<std::int64_t>> places;

    template <class T>
    bool is_for(const Contiguous<T>& rows) const {
        return x == rows.x && n == rows.n && column <= rows.d;
    }
    template <class T, class I>
    bool is_for(const Csr<T, I>& rows) const {
        return x == rows.x && n == rows.n && std::holds_alternative<std::vector<I>>(places);
    }
};

// The cut of rows whose columns ascend, at the median of what are the middle columns of some of them.
template <class T>
Cut cut_in_two(const Contiguous<T>& rows, int) {
    return {rows.x, rows.n, rows.d / 2, {}};
}

template <class T, class I>
Cut cut_in_two(const Csr<T, I>& rows, int threads) {
    constexpr Index sample = 512;
    std::vector<Index> middles;
    for (Index k = 0; k < std::min(rows.n, sample); ++k) {
        const Index i = rows.n * k / std::min(rows.n, sample), begin = rows.starts[i], end = rows.ends[i];
        if (begin < end) middles.push_back(rows.columns[begin + (end - begin) / 2]);
    }
    Cut cut{rows.x, rows.n, 0, {}};
    auto& places = cut.places.template emplace<std::vector<I>>(static_cast<std::size_t>(rows.n));
    if (!middles.empty()) {
        const auto median = middles.begin() + static_cast<Index>(middles.size() / 2);
        std::nth_element(middles.begin(), median, middles.end());
        cut.column = *median;
    }
    each_block(rows, threads, [&](Index first, Index last) {
        for (Index i = first; i < last; ++i) {
            const Index begin = rows.starts[i], end = rows.ends[i];
            Index at = begin + (end - begin) / 2;  // it is seldom far from there
            while (at > begin && rows.columns[at - 1] >= cut.column) --at;
            while (at < end && rows.columns[at] < cut.column) ++at;
            places[static_cast<std::size_t>(i)] = static_cast<I>(at);
        }
    });
    return cut;
}

// One side of the cut, 0 or 1.
template <class T>
Half<Contiguous<T>> half_of(const Contiguous<T>& rows, const Cut& cut, int side) {
    const Index first = side ? cut.column : 0, width = side ? rows.d - cut.column : cut.column;
    return {{rows.x + first, rows.n, width, rows.stride}, first};
}

template <class T, class I>
Half<Csr<T, I>> half_of(const Csr<T, I>& rows, const Cut& cut, int side) {
    Half<Csr<T, I>> half{rows, 0};
    const I* const places = std::get<std::vector<I>>(cut.places).data();
    (side ? half.rows.starts : half.rows.ends) = places;
    half.rows.lines = rows.lines / 2 + 1, half.rows.column_lines = rows.column_lines / 2 + 1;
    half.rows.uneven = false;  // there are gaps between them
    return half;
}

// Rows of other storages are not cut.
template <class Rows>
inline constexpr bool can_be_cut = false;
template <class T>
inline constexpr bool can_be_cut<Contiguous<T>> = true;
template <class T, class I>
inline constexpr bool can_be_cut<Csr<T, I>> = true;

}  // namespace widemargin
