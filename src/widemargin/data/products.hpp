// PRODUCTS: Xw, Xᵀv, the rows' squared norms and XᵀDX for any storage of X, without a copy of X.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "../threads.hpp"
#include "rows.hpp"
#include "uneven_rows.hpp"

namespace widemargin {

template <class Rows>
Index total_nonzeros(const Rows& rows) {
    return rows.n * rows.d;
}

template <class T, class I>
Index total_nonzeros(const Csr<T, I>& rows) {
    return rows.starts[rows.n] - rows.starts[0];
}

template <class Rows>
Index nonzeros_of(const Rows& rows, Index) {
    return rows.d;
}

template <class T, class I>
Index nonzeros_of(const Csr<T, I>& rows, Index i) {
    return rows.ends[i] - rows.starts[i];
}

// What is to be known about compressed rows before a kernel trusts them.
struct Order {
    bool rising = true;     // `starts` never falls
    bool inside = true;     // every column is one of the d
    bool ascending = true;  // columns ascend within each row, so none comes twice
};

// Columns fall where a row begins, if they do. So falls are counted, all of them and those at beginnings: that goes
// through the columns without a stop at every row.
template <class T, class I>
[[gnu::noinline]] Order check_order_of_piece(const Csr<T, I>& rows, Index nonzeros, Index first, Index last) {
    using Unsigned = std::make_unsigned_t<I>;
    if (first >= last) return {};
    const Index begin = rows.starts[first], end = rows.starts[last];
    Order order;
    order.rising = 0 <= begin && end <= nonzeros;
    for (Index i = first; i < last; ++i) order.rising &= rows.starts[i] <= rows.starts[i + 1];
    if (!order.rising || begin == end) return order;
    const I* const columns = rows.columns;
    const auto most = static_cast<Unsigned>(std::min<Index>(rows.d - 1, std::numeric_limits<I>::max()));
    auto highest = static_cast<Unsigned>(columns[begin]);
    Index falls = 0;
    constexpr Index stretch = 1 << 16;
    for (Index from = begin + 1; from < end; from += stretch) {
        Unsigned fallen = 0;  // as wide as a column, so that both go through the same vectors
#pragma omp simd reduction(+ : fallen) reduction(max : highest)
        for (Index k = from; k < std::min(end, from + stretch); ++k) {
            highest = std::max(highest, static_cast<Unsigned>(columns[k]));
            fallen += columns[k] <= columns[k - 1];
        }
        falls += static_cast<Index>(fallen);
    }
    for (Index i = first; i < last; ++i) {
        const Index k = rows.starts[i];
        if (k > begin && k < rows.starts[i + 1]) falls -= columns[k] <= columns[k - 1];
    }
    order.inside = rows.d > 0 && highest <= most, order.ascending = falls == 0;
    return order;
}

template <class T, class I>
Order check_order(const Csr<T, I>& rows, Index nonzeros, int threads) {
    constexpr int pieces = 16;
    std::array<Order, pieces> parts;
    run_pieces(pieces, threads, [&](int piece) {
        parts[static_cast<std::size_t>(piece)] =
            check_order_of_piece(rows, nonzeros, rows.n * piece / pieces, rows.n * (piece + 1) / pieces);
    });
    Order all;
    for (const auto& part : parts) {
        all.rising &= part.rising;
        all.inside &= part.inside;
        all.ascending &= part.ascending;
    }
    return all;
}

// A walk brings rows closer that come so much later: as long as there are any, and unless they are so short that the machine's
// own prefetcher keeps up with their two arrays.
inline constexpr Index rows_ahead = 8;

template <class T, class I>
Index fetches_until(const Csr<T, I>& rows) {
    constexpr Index not_short = 32;
    return rows.starts[rows.n] >= not_short * rows.n ? rows.n - rows_ahead : 0;
}

// out[i] = w·xᵢ for begin ≤ i < end.
// Blocks are functions of their own: inlined into the threads' bodies, their loops would run out of registers.
template <class Rows>
[[gnu::noinline]] void scores_of_block(const Rows& rows, Index begin, Index end, const double* w, double* out) {
    for (Index i = begin; i < end; ++i) out[i] = rows.dot(i, w);
}

template <class T, class I>
[[gnu::noinline]] void scores_of_block(const Csr<T, I>& rows, Index begin, Index end, const double* w, double* out) {
    if (rows.uneven) return scores_of_uneven_rows(rows, begin, end, w, out);
    for (Index i = begin, until = fetches_until(rows); i < end; ++i) {
        if (i < until) rows.fetch(i + rows_ahead);
        out[i] = rows.dot(i, w);
    }
}

// Column by column: in F order this reads memory in order.
template <class T>
[[gnu::noinline]] void scores_of_block(const Strided<T>& rows, Index begin, Index end, const double* w, double* out) {
    std::fill(out + begin, out + end, 0.0);
    for (Index j = 0; j < rows.d; ++j) {
        const T* column = rows.x + j * rows.column_stride;
        for (Index i = begin; i < end; ++i) out[i] += w[j] * static_cast<double>(column[i * rows.row_stride]);
    }
}

// out += Σ v[i] xᵢ over begin ≤ i < end.
template <class Rows>
[[gnu::noinline]] void combine_block(const Rows& rows, Index begin, Index end, const double* v, double* out) {
    for (Index i = begin; i < end; ++i)
        if (v[i] != 0) rows.add(i, v[i], out);
}

template <class T, class I>
[[gnu::noinline]] void combine_block(const Csr<T, I>& rows, Index begin, Index end, const double* v, double* out) {
    if (rows.uneven)
        return visit_uneven_rows(rows, begin, end, v, [out](Index j, double x, double factor) { out[j] += factor * x; });
    for (Index i = begin, until = fetches_until(rows); i < end; ++i) {
        if (i < until && v[i + rows_ahead] != 0) rows.fetch(i + rows_ahead);
        if (v[i] != 0) rows.add(i, v[i], out);
    }
}

template <class T>
[[gnu::noinline]] void combine_block(const Strided<T>& rows, Index begin, Index end, const double* v, double* out) {
    for (Index j = 0; j < rows.d; ++j) {
        const T* column = rows.x + j * rows.column_stride;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (Index i = begin; i < end; ++i) sum += v[i] * static_cast<double>(column[i * rows.row_stride]);
        out[j] += sum;
    }
}

inline constexpr Index block_rows = 512;

// Calls work(begin, end) for neighbouring blocks of rows; the results of different rows must not depend on each other.
template <class Rows, class Work>
void each_block(const Rows& rows, int threads, Work work) {
    const Index blocks = (rows.n + block_rows - 1) / block_rows;
    const int pieces = static_cast<int>(std::min<Index>(blocks, 64));
    run_pieces(pieces, threads, [&](int piece) {
        for (Index block = blocks * piece / pieces; block < blocks * (piece + 1) / pieces; ++block)
            work(block * block_rows, std::min(rows.n, (block + 1) * block_rows));
    });
}

template <class Rows>
void scores(const Rows& rows, const double* w, double* out, int threads) {
    each_block(rows, threads, [&](Index begin, Index end) { scores_of_block(rows, begin, end, w, out); });
}

template <class Rows>
void square_norms(const Rows& rows, double* out, int threads) {
    each_block(rows, threads, [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) out[i] = rows.square(i);
    });
}

// out += Σ v[i] xᵢ² over begin ≤ i < end, component by component.
template <class Rows>
[[gnu::noinline]] void combine_squares_of_block(const Rows& rows, Index begin, Index end, const double* v, double* out) {
    const auto add = [out](Index j, double x, double factor) { out[j] += factor * x * x; };
    if constexpr (requires { rows.uneven; })
        if (rows.uneven) return visit_uneven_rows(rows, begin, end, v, add);
    for (Index i = begin; i < end; ++i)
        if (v[i] != 0) rows.each(i, [&](Index j, double x) { add(j, x, v[i]); });
}

// Memory for numbers that is used again: to touch fresh pages takes longer than much of what is computed in them.
class Room {
   public:
    double* of(Index count) {
        if (count > size) {
            numbers.reset(), size = 0;
            numbers = std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(count)), size = count;
        }
        return numbers.get();
    }

   private:
    std::unique_ptr<double[]> numbers;
    Index size = 0;
};

// Of what is kept for the next time, unless so many are better given back at once.
inline double* room_for(Index count, Room& kept, Room& own) {
    constexpr Index kept_at_most = Index{1} << 22;  // 32 MB
    return (count <= kept_at_most ? kept : own).of(count);
}

// out = the sum of what add(piece, sum) adds for each of the pieces; `size` numbers. The threads take pieces as they come:
// how many there are must depend on the data alone.
template <class Add>
void sum_of_pieces(int pieces, double* out, Index size, int threads, Add add) {
    constexpr Index chunk = 4096;
    static thread_local Room kept;
    Room own;
    double* const partial = room_for(size * (pieces - 1), kept, own);
    run_pieces(pieces, threads, [&](int piece) {
        double* sum = piece == 0 ? out : partial + size * (piece - 1);
        std::fill_n(sum, size, 0.0);
        add(piece, sum);
    });
    if (pieces == 1) return;
    run_pieces(static_cast<int>((size + chunk - 1) / chunk), threads, [&](int part) {
        const Index begin = part * chunk, end = std::min(size, begin + chunk);
        for (int piece = 1; piece < pieces; ++piece) {
            const double* more = partial + size * (piece - 1);
            for (Index j = begin; j < end; ++j) out[j] += more[j];
        }
    });
}

// How many pieces are worth a sum of their own, each of `size` numbers, for so many additions: 1, 2, 4 or 8.
inline int pieces_of(double additions, Index size) {
    const double worth = additions / static_cast<double>(8 * size + 1);
    return worth >= 8 ? 8 : worth >= 4 ? 4 : worth >= 0.5 ? 2 : 1;
}

// A few stretches of rows for sums of `size` numbers: each has about as many numbers as the others, not as many rows. Those with
// v = 0 count for nothing, if there is a v.
class Stretches {
   public:
    template <class Rows>
    Stretches(const Rows& rows, const double* v, Index size) : n(rows.n) {
        for (std::size_t group = 0; group < groups; ++group) {
            used[group + 1] = used[group];
            for (Index i = edge(group); i < edge(group + 1); ++i)
                used[group + 1] += !v || v[i] != 0 ? nonzeros_of(rows, i) : 0;
        }
        pieces = pieces_of(static_cast<double>(used.back()), size);
    }
    int count() const { return pieces; }

    // Where the k-th begins; the last one ends where another would begin.
    Index begin(int k) const {
        if (k == pieces) return n;
        return edge(static_cast<std::size_t>(std::lower_bound(used.begin(), used.end(), used.back() * k / pieces) - used.begin()));
    }

   private:
    static constexpr std::size_t groups = 128;
    const Index n;
    std::array<Index, groups + 1> used{};  // numbers before each edge
    int pieces;

    Index edge(std::size_t group) const { return n * static_cast<Index>(group) / static_cast<Index>(groups); }
};

// out = the sum of what add(begin, end, sum) adds for each block of rows, of which those with v ≠ 0 count; `size` numbers.
template <class Rows, class Add>
void sum_of_blocks(const Rows& rows, const double* v, double* out, Index size, int threads, Add add) {
    const Stretches stretches(rows, v, size);
    sum_of_pieces(stretches.count(), out, size, threads, [&](int k, double* sum) {
        const Index end = stretches.begin(k + 1);
        for (Index begin = stretches.begin(k); begin < end; begin += block_rows)
            add(begin, std::min(end, begin + block_rows), sum);
    });
}

// out = Xᵀv.
template <class Rows>
void combine(const Rows& rows, const double* v, double* out, int threads) {
    sum_of_blocks(rows, v, out, rows.d, threads,
                  [&](Index begin, Index end, double* sum) { combine_block(rows, begin, end, v, sum); });
}

// out += Σ max(v[i], 0) xᵢ over begin ≤ i < end and, behind it, Σ max(−v[i], 0) xᵢ.
template <class Rows>
[[gnu::noinline]] void combine_block_by_sign(const Rows& rows, Index begin, Index end, const double* v, double* out) {
    for (Index i = begin; i < end; ++i)
        if (v[i] != 0) rows.add(i, std::abs(v[i]), v[i] > 0 ? out : out + rows.d);
}

// out = Xᵀmax(v, 0) and, behind it, Xᵀmax(−v, 0).
template <class Rows>
void combine_by_sign(const Rows& rows, const double* v, double* out, int threads) {
    sum_of_blocks(rows, v, out, 2 * rows.d, threads,
                  [&](Index begin, Index end, double* sum) { combine_block_by_sign(rows, begin, end, v, sum); });
}

// out[j] = Σ v[i] xᵢⱼ².
template <class Rows>
void combine_squares(const Rows& rows, const double* v, double* out, int threads) {
    sum_of_blocks(rows, v, out, rows.d, threads,
                  [&](Index begin, Index end, double* sum) { combine_squares_of_block(rows, begin, end, v, sum); });
}

// Eight columns of a block of rows lie together in a panel; a tile of the Gram matrix is the product of two panels.
inline constexpr Index panel_width = 8, panel_rows = 128, packed_numbers = 1 << 18;

// tile += pᵀq over `count` rows of two panels; half a tile at a time, so that its sums stay in registers.
inline void multiply_panels(const double* p, const double* q, Index count, double* tile, Index stride) {
    for (Index half = 0; half < panel_width; half += 4) {
        Four left[4] = {}, right[4] = {};
        for (Index k = 0; k < count; ++k) {
            const Four q0 = *reinterpret_cast<const Four*>(q + k * panel_width);
            const Four q1 = *reinterpret_cast<const Four*>(q + k * panel_width + 4);
            for (Index r = 0; r < 4; ++r) {
                left[r] += p[k * panel_width + half + r] * q0;
                right[r] += p[k * panel_width + half + r] * q1;
            }
        }
        for (Index r = 0; r < 4; ++r)
            for (Index c = 0; c < 4; ++c) {
                tile[(half + r) * stride + c] += left[r][c];
                tile[(half + r) * stride + 4 + c] += right[r][c];
            }
    }
}

// zᵢ = √weight[i] (xᵢ − shift) and, if `border`, a last component √weight[i], in panels of blocks of `panel_rows`.
template <class Rows>
struct Panels {
    const Rows& rows;
    const double* weight;
    const double* shift;
    const bool border;
    const Index size = rows.d + border, count = (size + panel_width - 1) / panel_width, stride = count * panel_width;

    // Packs zᵢ as the k-th row of a block; `z` is room for it, 0 behind `size`.
    void pack(Index i, Index k, double* z, double* block) const {
        for (Index j = 0; j < rows.d; ++j) z[j] = shift ? -shift[j] : 0.0;
        rows.add(i, 1.0, z);
        if (border) z[rows.d] = 1.0;
        const double root = std::sqrt(weight[i]);
        for (Index p = 0; p < count; ++p) {
            double* to = block + (p * panel_rows + k) * panel_width;
            for (Index j = 0; j < panel_width; ++j) to[j] = root * z[p * panel_width + j];
        }
    }

    // sums += Σ zᵢzᵢᵀ of the first rows of a block, on and above the diagonal: every `step`-th tile, from `first` on.
    void multiply(const double* block, Index rows_of_it, double* sums, int first = 0, int step = 1) const {
        Index tile = 0;
        for (Index p = 0; p < count; ++p)
            for (Index q = p; q < count; ++q, ++tile)
                if (tile % step == first)
                    multiply_panels(block + p * panel_rows * panel_width, block + q * panel_rows * panel_width, rows_of_it,
                                    sums + (p * stride + q) * panel_width, stride);
    }
};

// sums = Σ zᵢzᵢᵀ of the rows in `used`, the threads each with some of the rows and sums of their own.
template <class Rows>
void gram_by_rows(const Panels<Rows>& panels, const std::vector<Index>& used, double* sums, int threads) {
    const Index numbers = panels.stride * panels.stride, total = static_cast<Index>(used.size());
    const int pieces = pieces_of(0.5 * static_cast<double>(total * numbers), numbers);
    std::vector<double> room(static_cast<std::size_t>(pieces * (1 + panel_rows) * panels.stride));  // a row and a block for each
    sum_of_pieces(pieces, sums, numbers, threads, [&](int piece, double* sum) {
        double *const z = room.data() + piece * (1 + panel_rows) * panels.stride, *const block = z + panels.stride;
        const Index end = total * (piece + 1) / pieces;
        for (Index begin = total * piece / pieces; begin < end; begin += panel_rows) {
            const Index some = std::min(panel_rows, end - begin);
            for (Index k = 0; k < some; ++k) panels.pack(used[static_cast<std::size_t>(begin + k)], k, z, block);
            panels.multiply(block, some, sum);
        }
    });
}

// The same added to one sum, too large for several: the threads pack some of the rows each, and multiply some of the tiles.
template <class Rows>
void gram_by_tiles(const Panels<Rows>& panels, const std::vector<Index>& used, double* sums, int threads) {
    const Index total = static_cast<Index>(used.size()), of_block = panels.stride * panel_rows;
    const Index blocks = std::max<Index>(1, std::min(packed_numbers / of_block, (total + panel_rows - 1) / panel_rows));
    Team team(threads);
    const int members = team.size();
    std::vector<double> packed(static_cast<std::size_t>(blocks * of_block));
    std::vector<double> loose(static_cast<std::size_t>(panels.stride * members));  // a row per thread, before it is packed
    Meeting meeting(members);
    team.run([&](int thread) {
        double* z = loose.data() + thread * panels.stride;
        for (Index begin = 0; begin < total; begin += blocks * panel_rows) {
            const Index some = std::min(blocks * panel_rows, total - begin);
            for (Index k = some * thread / members; k < some * (thread + 1) / members; ++k)
                panels.pack(used[static_cast<std::size_t>(begin + k)], k % panel_rows, z,
                            packed.data() + k / panel_rows * of_block);
            meeting.wait();
            for (Index k = 0; k < some; k += panel_rows)
                panels.multiply(packed.data() + k * panels.stride, std::min(panel_rows, some - k), sums, thread, members);
            meeting.wait();
        }
    });
}

// out = Σ weight[i] zᵢzᵢᵀ with zᵢ = xᵢ − shift and, if `border`, a last component 1; weights ≥ 0.
// Rows of weight 0 cost nothing. `size` is d, or d + 1 with a border; out is size × size.
template <class Rows>
void gram_dense(const Rows& rows, const double* weight, const double* shift, bool border, double* out, int threads) {
    constexpr Index few_sums = 512;  // columns whose products, eight times, are no burden
    const Panels<Rows> panels{rows, weight, shift, border};
    const Index size = panels.size, stride = panels.stride;
    std::vector<Index> used;
    for (Index i = 0; i < rows.n; ++i)
        if (weight[i] > 0) used.push_back(i);
    std::vector<double> sums(static_cast<std::size_t>(stride * stride));
    if (stride <= few_sums)
        gram_by_rows(panels, used, sums.data(), threads);
    else
        gram_by_tiles(panels, used, sums.data(), threads);
    for (Index j = 0; j < size; ++j)
        for (Index k = 0; k < size; ++k)
            out[j * size + k] = sums[static_cast<std::size_t>(std::min(j, k) * stride + std::max(j, k))];
}

// The same for rows with few non-zeros, pair by pair and without a shift. Each pair is added once, to one of its two
// places, according to the order of the non-zeros in the row; in the end both places get the sum.
template <class Rows>
[[gnu::noinline]] void gram_of_pairs(const Rows& rows, const Index* used, Index count, const double* weight, bool border,
                                     double* sum) {
    const Index size = rows.d + border;
    for (Index k = 0; k < count; ++k) {
        const Index i = used[k];
        const double total = weight[i];
        Index position = 0;
        rows.each(i, [&](Index j, double x) {
            double* to = sum + j * size;
            const double scaled = total * x;
            rows.each(i, [&](Index other, double z) { to[other] += scaled * z; }, position++);
            if (border) to[rows.d] += scaled;
        });
        if (border) sum[size * size - 1] += total;
    }
}

template <class Rows>
void gram_sparse(const Rows& rows, const double* weight, bool border, double* out, int threads) {
    const Index size = rows.d + border;
    std::vector<Index> used;
    for (Index i = 0; i < rows.n; ++i)
        if (weight[i] > 0) used.push_back(i);
    const auto count = static_cast<Index>(used.size());
    const double per_row = static_cast<double>(total_nonzeros(rows)) / static_cast<double>(rows.n + 1);
    const int pieces = pieces_of(static_cast<double>(count) * per_row * per_row, size * size);
    sum_of_pieces(pieces, out, size * size, threads, [&](int piece, double* sum) {
        const Index begin = count * piece / pieces, end = count * (piece + 1) / pieces;
        gram_of_pairs(rows, used.data() + begin, end - begin, weight, border, sum);
    });
    for (Index j = 0; j < size; ++j)
        for (Index k = 0; k < j; ++k) out[j * size + k] = out[k * size + j] += out[j * size + k];
}

// A pair of non-zeros costs about 14 times as much as a pair of elements in a panel. (normal_equations.py knows from which share
// of non-zeros on rows are taken as dense.)
template <class Rows>
void gram(const Rows& rows, const double* weight, const double* shift, bool border, double* out, int threads) {
    const double filled = static_cast<double>(total_nonzeros(rows)) / static_cast<double>(rows.n * rows.d + 1);
    if (shift || filled * filled * 14 > 1)
        gram_dense(rows, weight, shift, border, out, threads);
    else
        gram_sparse(rows, weight, border, out, threads);
}

// matrix[i][j] *= scale[i] scale[j]; and a copy of what that makes of it.
inline void scale_both_ways(double* matrix, const double* scale, Index size, double* copy) {
    for (Index i = 0; i < size; ++i)
#pragma omp simd
        for (Index j = 0; j < size; ++j) copy[i * size + j] = matrix[i * size + j] = matrix[i * size + j] * scale[i] * scale[j];
}

}  // namespace widemargin
