// POINTS: rows prepared for kernel values by the block, and the sums over columns that every kernel begins with.
//
// A kernel is a function of s = Σ combine(aⱼ, bⱼ) over the columns and of one number per row:
//   inner product     combine = ab                                       linear, poly, sigmoid, cosine, rbf
//   common part       combine = |a| + |b| − |a − b|                      laplacian: Σ|a − b| = Σ|a| + Σ|b| − s
//   harmonic mean     combine = 4ab/(a + b), a and b at least 0          chi2: Σ (a − b)²/(a + b) = Σa + Σb − s
// combine(0, b) = 0 in all of them, so that sparse rows need their non-zeros only.
//
// Dense rows are packed in panels of two vectors: the elements of one column lie side by side, and a register tile of
// kRowsInTile × panel sums is kept while the columns go by. Sparse rows meet a group of kGroup rows that was written out
// with its lanes side by side: a non-zero costs one multiplication of a vector, whatever the other rows hold.
// Every sum runs over the columns in ascending order, alone in its lane: its bits do not depend on what else is computed.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "../data/rows.hpp"

namespace widemargin::kernels {

inline constexpr std::size_t kVectorBytes = 32;
inline constexpr Index kGroup = 32;  // rows; kernel values of one group of rows are computed together

template <class T>
struct VectorOf {
    typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
inline constexpr Index kLanes = static_cast<Index>(kVectorBytes / sizeof(T));
template <class T>
inline constexpr Index kPanel = 2 * kLanes<T>;  // rows of a panel

template <class T>
struct Aligned {
    using value_type = T;
    Aligned() = default;
    template <class U>
    Aligned(const Aligned<U>&) {}
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64})); }
    void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t{64}); }
    template <class U>
    bool operator==(const Aligned<U>&) const { return true; }
};
template <class T>
using Buffer = std::vector<T, Aligned<T>>;

template <class V>
[[gnu::always_inline]] inline V absolute(V x) {
    return x > -x ? x : -x;
}

struct InnerProduct {
    static constexpr int weight = 2;  // ‖a − b‖² = ‖a‖² + ‖b‖² − 2 a·b
    template <class V>
    [[gnu::always_inline]] static V add(V sum, V a, V b) { return sum + a * b; }
};
struct CommonPart {
    static constexpr int weight = 1;
    template <class V>
    [[gnu::always_inline]] static V add(V sum, V a, V b) { return sum + (absolute(a) + absolute(b) - absolute(a - b)); }
};
struct HarmonicMean {
    static constexpr int weight = 1;
    template <class V>
    [[gnu::always_inline]] static V add(V sum, V a, V b) {
        const V total = a + b, one = V{} + 1;
        return sum + 4 * a * b / (total > 0 ? total : one);
    }
};

// Scratch memory of one thread.
template <class T>
struct Scratch {
    Buffer<T> tiles;      // a group of dense rows, kRowsInTile of them side by side
    Buffer<T> scattered;  // a group of sparse rows written out, its lanes side by side; 0 between two uses
};

template <class T>
class Points;
template <class Combine, class T>
void sums_of_group(const Points<T>& A, const Index* index, Index count, const Points<T>& B, Index begin, Index end,
                   T* const* out, Scratch<T>& scratch);

// Rows of X, less a shift that kernels of differences do not see, in precision T.
template <class T>
class Points {
   public:
    Index n = 0, d = 0;
    bool sparse = false;
    Buffer<T> packed;                   // dense: panels × d × kPanel
    std::vector<Index> starts;          // sparse: of each row
    std::vector<std::int32_t> columns;  // sparse
    Buffer<T> values;                   // sparse
    Buffer<T> self;                     // of each row, the number that its kernel asks for: Σ combine(a, a)/weight

    // Rows `index[begin … end)` of X, or begin … end if there is no index.
    template <class Rows>
    void read(const Rows& rows, const Index* index, Index begin, Index end, const double* shift, bool as_sparse) {
        n = end - begin, d = rows.d, sparse = as_sparse;
        const auto row = [&](Index i) { return index ? index[begin + i] : begin + i; };
        if (sparse) {
            if (d > std::numeric_limits<std::int32_t>::max()) throw std::invalid_argument("more than 2³¹ columns");
            starts.assign(1, 0), columns.clear(), values.clear();
            for (Index i = 0; i < n; ++i) {
                rows.each(row(i), [&](Index j, double x) {
                    if (x == 0) return;
                    columns.push_back(static_cast<std::int32_t>(j)), values.push_back(static_cast<T>(x));
                });
                starts.push_back(static_cast<Index>(columns.size()));
            }
            return;
        }
        packed.assign(static_cast<std::size_t>(panels() * d * kPanel<T>), T(0));
        for (Index i = 0; i < n; ++i) {
            T* const to = packed.data() + i / kPanel<T> * d * kPanel<T> + i % kPanel<T>;
            if (shift)
                for (Index j = 0; j < d; ++j) to[j * kPanel<T>] = static_cast<T>(-shift[j]);
            rows.each(row(i), [&](Index j, double x) { to[j * kPanel<T>] = static_cast<T>(x - (shift ? shift[j] : 0.0)); });
        }
    }

    // Σ combine(a, a)/weight of every row, summed like all others: a row's distance from itself is 0, to the last bit.
    template <class Combine>
    void measure() {
        self.resize(static_cast<std::size_t>(n));
        Buffer<T> sums(static_cast<std::size_t>(kGroup * kGroup));
        Scratch<T> scratch;
        std::array<Index, kGroup> index;
        std::array<T*, kGroup> out;
        for (Index k = 0; k < kGroup; ++k) out[static_cast<std::size_t>(k)] = sums.data() + k * kGroup;
        for (Index begin = 0; begin < n; begin += kGroup) {
            const Index count = std::min(kGroup, n - begin);
            for (Index k = 0; k < count; ++k) index[static_cast<std::size_t>(k)] = begin + k;
            sums_of_group<Combine>(*this, index.data(), count, *this, begin, begin + count, out.data(), scratch);
            for (Index k = 0; k < count; ++k)
                self[static_cast<std::size_t>(begin + k)] = sums[static_cast<std::size_t>(k * kGroup + k)] * T(Combine::weight) / 2;
        }
    }

    // Some of these rows.
    Points subset(const Index* index, Index count) const {
        Points some;
        some.n = count, some.d = d, some.sparse = sparse;
        some.self.resize(static_cast<std::size_t>(count));
        for (Index i = 0; i < count; ++i) some.self[static_cast<std::size_t>(i)] = self[static_cast<std::size_t>(index[i])];
        if (sparse) {
            some.starts.assign(1, 0);
            for (Index i = 0; i < count; ++i) {
                const Index begin = starts[static_cast<std::size_t>(index[i])], end = starts[static_cast<std::size_t>(index[i]) + 1];
                some.columns.insert(some.columns.end(), columns.data() + begin, columns.data() + end);
                some.values.insert(some.values.end(), values.data() + begin, values.data() + end);
                some.starts.push_back(static_cast<Index>(some.columns.size()));
            }
            return some;
        }
        some.packed.assign(static_cast<std::size_t>(some.panels() * d * kPanel<T>), T(0));
        for (Index i = 0; i < count; ++i) {
            const T* const from = packed.data() + index[i] / kPanel<T> * d * kPanel<T> + index[i] % kPanel<T>;
            T* const to = some.packed.data() + i / kPanel<T> * d * kPanel<T> + i % kPanel<T>;
            for (Index j = 0; j < d; ++j) to[j * kPanel<T>] = from[j * kPanel<T>];
        }
        return some;
    }

    // Multiplications that a kernel value takes.
    double effort() const { return sparse ? static_cast<double>(columns.size()) / static_cast<double>(std::max<Index>(n, 1)) : static_cast<double>(d); }

    Index panels() const { return (n + kPanel<T> - 1) / kPanel<T>; }
    std::size_t bytes() const {
        return sizeof(T) * (packed.size() + values.size() + self.size()) + sizeof(Index) * starts.size() + 4 * columns.size();
    }
};

inline constexpr Index kRowsInTile = 4;

// The first `count` lanes.
template <class V, class T>
[[gnu::always_inline]] inline void store(const V& vector, T* to, Index count) {
    if (count >= kLanes<T>) std::memcpy(to, &vector, sizeof vector);
    else
        for (Index l = 0; l < count; ++l) to[l] = vector[l];
}

// Lane c of vector r and lane r of vector c change places: blocks off the diagonal do, of 1, 2, 4 … lanes.
template <class T, Index size = 1>
[[gnu::always_inline]] inline void transpose(Vector<T>* v) {
    if constexpr (constexpr Index lanes = kLanes<T>; size < lanes) {
        using Whole = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
        [&]<Index... l>(std::integer_sequence<Index, l...>) {
            constexpr Vector<Whole> first = {static_cast<Whole>(l & size ? lanes + l - size : l)...};
            constexpr Vector<Whole> second = {static_cast<Whole>(l & size ? lanes + l : l + size)...};
            const auto swap = [&](Index r) {
                const Vector<T> a = v[r], b = v[r + size];
                v[r] = __builtin_shuffle(a, b, first), v[r + size] = __builtin_shuffle(a, b, second);
            };
            ((l & size ? void() : swap(l)), ...);
        }(std::make_integer_sequence<Index, lanes>{});
        transpose<T, 2 * size>(v);
    }
}

// s of kRowsInTile rows, whose elements of one column lie side by side in `a`, with the rows of one panel.
template <class Combine, class T>
[[gnu::always_inline]] inline void tile(const T* a, const T* panel, Index d, Vector<T> (&sum)[kRowsInTile][2]) {
    for (auto& row : sum) row[0] = row[1] = Vector<T>{};
    for (Index j = 0; j < d; ++j) {
        const auto* const b = reinterpret_cast<const Vector<T>*>(panel + j * kPanel<T>);
        for (Index r = 0; r < kRowsInTile; ++r) {
            const Vector<T> x = Vector<T>{} + a[j * kRowsInTile + r];
            sum[r][0] = Combine::add(sum[r][0], x, b[0]);
            sum[r][1] = Combine::add(sum[r][1], x, b[1]);
        }
    }
}

// out[r][c − begin] = Σ combine(a, b) for `count` ≤ kGroup rows `index` of A and the rows begin … end of B.
// Where rows are dense, begin is a multiple of kPanel.
template <class Combine, class T>
void sums_of_group(const Points<T>& A, const Index* index, Index count, const Points<T>& B, Index begin, Index end,
                   T* const* out, Scratch<T>& scratch) {
    const Index d = A.d;
    if (B.sparse) {
        Buffer<T>& room = scratch.scattered;  // room[j·kGroup + r] is element j of row r of the group
        room.resize(static_cast<std::size_t>(d * kGroup), T(0));
        for (Index r = 0; r < count; ++r)
            for (Index k = A.starts[static_cast<std::size_t>(index[r])]; k < A.starts[static_cast<std::size_t>(index[r]) + 1]; ++k)
                room[static_cast<std::size_t>(A.columns[static_cast<std::size_t>(k)] * kGroup + r)] = A.values[static_cast<std::size_t>(k)];
        constexpr Index vectors = kGroup / kLanes<T>, lanes = kLanes<T>;
        const Index* const starts = B.starts.data();
        const std::int32_t* const columns = B.columns.data();
        const T *const values = B.values.data(), *const group = room.data();
        Vector<T> sums[vectors][lanes];  // of the last `lanes` rows of B, each with the whole group
        for (Index c = begin; c < end; c += lanes) {
            const Index width = std::min(lanes, end - c);
            for (Index l = 0; l < width; ++l) {
                Vector<T> sum[vectors] = {};
                const Index last = starts[c + l + 1];
                for (Index k = starts[c + l]; k < last; ++k) {
                    const auto* const a = reinterpret_cast<const Vector<T>*>(group + columns[k] * kGroup);
                    const Vector<T> x = Vector<T>{} + values[k];
                    for (Index v = 0; v < vectors; ++v) sum[v] = Combine::add(sum[v], x, a[v]);
                }
                for (Index v = 0; v < vectors; ++v) sums[v][l] = sum[v];
            }
            for (Index v = 0; v * lanes < count; ++v) {
                transpose<T>(sums[v]);
                for (Index r = 0; r < std::min(lanes, count - v * lanes); ++r) store(sums[v][r], out[v * lanes + r] + c - begin, width);
            }
        }
        for (Index r = 0; r < count; ++r)
            for (Index k = A.starts[static_cast<std::size_t>(index[r])]; k < A.starts[static_cast<std::size_t>(index[r]) + 1]; ++k)
                room[static_cast<std::size_t>(A.columns[static_cast<std::size_t>(k)] * kGroup + r)] = 0;
        return;
    }
    Buffer<T>& room = scratch.tiles;
    room.assign(static_cast<std::size_t>(d * kGroup), T(0));
    for (Index r = 0; r < count; ++r) {
        const T* const from = A.packed.data() + index[r] / kPanel<T> * d * kPanel<T> + index[r] % kPanel<T>;
        T* const to = room.data() + r / kRowsInTile * d * kRowsInTile + r % kRowsInTile;
        for (Index j = 0; j < d; ++j) to[j * kRowsInTile] = from[j * kPanel<T>];
    }
    for (Index c = begin; c < end; c += kPanel<T>) {
        const T* const panel = B.packed.data() + c * d;
        for (Index r = 0; r < count; r += kRowsInTile) {
            Vector<T> sum[kRowsInTile][2];
            tile<Combine>(room.data() + r * d, panel, d, sum);
            for (Index k = 0; k < std::min(kRowsInTile, count - r); ++k)
                for (Index v = 0; v < 2 && c + v * kLanes<T> < end; ++v)
                    store(sum[k][v], out[r + k] + c - begin + v * kLanes<T>, end - c - v * kLanes<T>);
        }
    }
}

}  // namespace widemargin::kernels
