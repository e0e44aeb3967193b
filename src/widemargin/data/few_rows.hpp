// FEW ROWS: some of the rows, of equal ones only one, side by side in memory of their own.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "rows.hpp"

namespace widemargin {

// A number that equal rows have in common, and hardly any others.
template <class Rows>
std::uint64_t fingerprint(const Rows& rows, Index i) {
    std::uint64_t sum = 0;
    rows.each(i, [&](Index j, double value) {
        const std::uint64_t place = static_cast<std::uint64_t>(j) * 0x9e3779b97f4a7c15u;
        const std::uint64_t bits = std::bit_cast<std::uint64_t>(value + 0.0);  // −0 is 0
        const std::uint64_t mixed = (bits ^ place) * 0xbf58476d1ce4e5b9u;
        sum += mixed ^ (mixed >> 29);
    });
    return (sum ^ (sum >> 31)) * 0x94d049bb133111ebu;
}

template <class T>
bool are_equal(const Contiguous<T>& rows, Index i, Index k) {
    return std::equal(rows.x + i * rows.stride, rows.x + i * rows.stride + rows.d, rows.x + k * rows.stride);
}

template <class T>
bool are_equal(const Strided<T>& rows, Index i, Index k) {
    const T *one = rows.x + i * rows.row_stride, *other = rows.x + k * rows.row_stride;
    for (Index j = 0; j < rows.d; ++j)
        if (one[j * rows.column_stride] != other[j * rows.column_stride]) return false;
    return true;
}

template <class T, class I>
bool are_equal(const Csr<T, I>& rows, Index i, Index k) {
    const Index one = rows.starts[i], end = rows.ends[i], other = rows.starts[k];
    return end - one == rows.ends[k] - other && std::equal(rows.columns + one, rows.columns + end, rows.columns + other) &&
           std::equal(rows.x + one, rows.x + end, rows.x + other);
}

// Which rows of a list differ, in x or in y: the first of each kind, and of which kind each of the list is.
struct Kinds {
    std::vector<Index> first, of;

    template <class Rows>
    Kinds(const Rows& rows, const double* y, const Index* list, Index count) {
        constexpr std::size_t none = ~std::size_t{0};
        const std::size_t places = std::bit_ceil(2 * static_cast<std::size_t>(count) + 1);
        std::vector<std::size_t> table(places, none);
        std::vector<std::uint64_t> prints;
        of.reserve(static_cast<std::size_t>(count));
        for (Index k = 0; k < count; ++k) {
            const Index i = list[k];
            const std::uint64_t print = fingerprint(rows, i) + (y[i] > 0);
            std::size_t place = print >> 16 & (places - 1), kind;
            for (; (kind = table[place]) != none; place = (place + 1) & (places - 1))
                if (prints[kind] == print && y[first[kind]] == y[i] && are_equal(rows, first[kind], i)) break;
            if (kind == none) {
                kind = table[place] = first.size();
                first.push_back(i), prints.push_back(print);
            }
            of.push_back(static_cast<Index>(kind));
        }
    }
    Index count() const { return static_cast<Index>(first.size()); }
};

// Copies of the rows on a list; rows() are a storage like the one they come from, or dense.
template <class Rows>
class Packed {
   public:
    Packed(const Rows& from, const std::vector<Index>& list) : n(static_cast<Index>(list.size())), d(from.d) {
        x.reserve(static_cast<std::size_t>(n * d));
        for (const Index i : list) from.each(i, [&](Index, double value) { x.push_back(static_cast<T>(value)); });
    }
    auto rows() const { return Contiguous<T>{x.data(), n, d, d}; }

   private:
    using T = std::remove_cvref_t<decltype(*Rows::x)>;
    Index n, d;
    std::vector<T> x;
};

template <class T, class I>
class Packed<Csr<T, I>> {
   public:
    Packed(const Csr<T, I>& from, const std::vector<Index>& list) : d(from.d) {
        for (const Index i : list) {
            const Index begin = from.starts[i], end = from.ends[i];
            x.insert(x.end(), from.x + begin, from.x + end);
            columns.insert(columns.end(), from.columns + begin, from.columns + end);
            starts.push_back(static_cast<I>(x.size()));
        }
    }
    auto rows() const { return Csr<T, I>{x.data(), columns.data(), starts.data(), static_cast<Index>(starts.size()) - 1, d}; }

   private:
    Index d;
    std::vector<T> x;
    std::vector<I> columns, starts{0};
};

}  // namespace widemargin
