// SVMLIGHT: lines of text, "label [qid:n] index:value … # comment", to compressed sparse rows and back.
//
// Text comes in chunks of whole lines. A chunk is cut into pieces at line ends, and every piece is counted: it holds no
// more rows than line ends and no more non-zeros than colons. So room is made once, each piece knows where to write, and
// all are parsed at once, straight into place. Where the count was too high (a comment, a qid, a blank line), the pieces
// behind move up. The room grows with realloc, which moves pages and copies nothing where the system can: the peak is the
// result and one chunk, without a first pass over the file, which a pipe does not allow.
//
// A number is read as Python's float() reads it, correctly rounded: digits below 2⁵³ and a power of ten up to 22 are
// exact in a double, so that one division rounds once (Clinger 1990); all others go to std::from_chars.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

#include "../threads.hpp"
#include "rows.hpp"

namespace widemargin::svmlight {

// Bytes that must be readable behind a chunk: digits are taken eight at a time.
constexpr Index padding = 16;

// What can be wrong with a line, by the names that svmlight.py gives messages to. `narrow` is not wrong: an index needs
// 64 bits.
enum class Fault {
    none, label, labels, pair, truncated, value, infinite, negative, large, order, zero, wide, qid, mixed, narrow
};
constexpr const char* fault_names[] = {"none",     "label",    "labels", "pair",  "truncated",
                                       "value",    "infinite", "negative", "large", "order",
                                       "zero",     "wide",     "qid",    "mixed", "narrow"};

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
inline bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
inline bool ends_token(char c) { return is_space(c) || c == '\n' || c == '#'; }

inline const char* skip_spaces(const char* p) {
    while (is_space(*p)) ++p;
    return p;
}
inline const char* token_end(const char* p) {
    while (!ends_token(*p)) ++p;
    return p;
}
inline const char* line_end(const char* p) {
    while (*p != '\n') ++p;
    return p;
}

constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr std::uint32_t small_powers[] = {1, 10, 100, 1'000, 10'000, 100'000, 1'000'000, 10'000'000};

// Up to seven digits at once, without a branch on how many there are: returns that number, 8 if there may be more.
inline int short_digits(const char* p, std::uint32_t& number) {
    if constexpr (std::endian::native != std::endian::little) return 8;
    std::uint64_t x;
    std::memcpy(&x, p, 8);
    x ^= 0x3030303030303030;  // a digit becomes 0 to 9
    const std::uint64_t others = ((x + 0x7676767676767676) | x) & 0x8080808080808080;
    if (others == 0) return 8;
    const int digits = std::countr_zero(others) / 8;
    if (digits == 0) return 0;
    x <<= 64 - 8 * digits;  // the digits to the end, zeros before them
    x = x * 10 + (x >> 8);
    x = ((x & 0x000000FF000000FF) * 0x000F424000000064 + ((x >> 16) & 0x000000FF000000FF) * 0x0000271000000001) >> 32;
    number = static_cast<std::uint32_t>(x);
    return digits;
}

// A number too large or too small for a double: which? The sign of the power of ten of its first digit tells.
inline bool is_tiny(const char* p, Index exponent) {
    while (*p == '-' || *p == '+') ++p;
    while (*p == '0') ++p;
    if (is_digit(*p))
        for (; is_digit(p[1]); ++p) ++exponent;
    else if (*p == '.')
        for (--exponent; *++p == '0';) --exponent;
    return exponent < 0;
}

// Reads the number at p and moves p behind it. It must be followed by the end of its token.
inline Fault parse_number(const char*& p, double& number) {
    const char* const begin = p;
    const bool minus = *p == '-';
    if (*p == '-' || *p == '+') ++p;
    const char* const first = p;
    std::uint64_t mantissa = 0;
    Index digits, power = 0;
    for (; is_digit(*p); ++p) mantissa = mantissa * 10 + static_cast<std::uint64_t>(*p - '0');
    digits = p - first;
    if (*p == '.') {
        const char* const point = ++p;
        for (; is_digit(*p); ++p) mantissa = mantissa * 10 + static_cast<std::uint64_t>(*p - '0');
        digits += p - point;
        power = point - p;
    }
    if (digits == 0) {
        const auto is = [first](const char* word) {
            return (first[0] | 32) == word[0] && (first[1] | 32) == word[1] && (first[2] | 32) == word[2];
        };
        return is("nan") || is("inf") ? Fault::infinite : Fault::value;
    }
    Index exponent = 0;
    if ((*p | 32) == 'e') {
        ++p;
        const bool down = *p == '-';
        if (*p == '-' || *p == '+') ++p;
        if (!is_digit(*p)) return Fault::value;
        for (; is_digit(*p); ++p) exponent = std::min<Index>(exponent * 10 + (*p - '0'), 1'000'000'000'000);
        if (down) exponent = -exponent;
        power += exponent;
    }
    if (!ends_token(*p)) return Fault::value;
    if (digits <= 19 && mantissa <= std::uint64_t{1} << 53 && power >= -22 && power <= 22) {
        const auto m = static_cast<double>(mantissa);
        number = power < 0 ? m / powers[-power] : m * powers[power];
        if (minus) number = -number;
        return Fault::none;
    }
    const auto [end, error] = std::from_chars(*begin == '+' ? first : begin, p, number);
    if (error == std::errc::result_out_of_range) {
        if (!is_tiny(begin, exponent)) return Fault::infinite;
        number = minus ? -0.0 : 0.0;
        return Fault::none;
    }
    return error == std::errc{} && end == p ? Fault::none : Fault::value;
}

// The same, with a way through for the usual "0.0532" and "1".
inline Fault parse_value(const char*& p, double& number) {
    const bool minus = *p == '-';
    const char* const q = p + minus;
    if (is_digit(*q)) {
        const auto whole = static_cast<std::uint32_t>(*q - '0');
        std::uint32_t part;
        if (q[1] == '.') {
            const int digits = short_digits(q + 2, part);
            if (digits > 0 && digits < 8 && ends_token(q[2 + digits])) {
                number = static_cast<double>(whole * small_powers[digits] + part) / powers[digits];
                if (minus) number = -number;
                p = q + 2 + digits;
                return Fault::none;
            }
        } else if (ends_token(q[1])) {
            number = minus ? -static_cast<double>(whole) : whole;
            p = q + 1;
            return Fault::none;
        }
    }
    return parse_number(p, number);
}

// Reads a whole number below 2⁶³ − 1, so that one may be added to it.
inline Fault parse_whole(const char*& p, Index& number) {
    std::uint32_t few;
    const int digits = short_digits(p, few);
    if (digits == 0) return Fault::pair;
    if (digits < 8) {
        number = few;
        p += digits;
        return Fault::none;
    }
    constexpr Index most = std::numeric_limits<Index>::max() - 1;
    if (!is_digit(*p)) return Fault::pair;
    for (number = 0; is_digit(*p); ++p) {
        const Index digit = *p - '0';
        if (number > (most - digit) / 10) return Fault::large;
        number = number * 10 + digit;
    }
    return Fault::none;
}

// Reads a query id: any whole number of 64 bits.
inline Fault parse_qid(const char*& p, Index& number) {
    const bool minus = *p == '-';
    p += minus;
    if (!is_digit(*p)) return Fault::qid;
    const std::uint64_t most = (std::uint64_t{1} << 63) - !minus;
    std::uint64_t size = 0;
    for (; is_digit(*p); ++p) {
        const auto digit = static_cast<std::uint64_t>(*p - '0');
        if (size > (most - digit) / 10) return Fault::qid;
        size = size * 10 + digit;
    }
    number = static_cast<Index>(minus ? 0 - size : size);
    return ends_token(*p) ? Fault::none : Fault::qid;
}

// Memory that grows without being touched.
template <class T>
class Room {
   public:
    T* data() const { return memory.get(); }

    // At least so many, and as many as there will be in the end if that is known: what is not touched costs nothing.
    void reserve(Index wanted, double likely = 0) {
        if (wanted <= capacity) return;
        const auto most = static_cast<double>(std::numeric_limits<Index>::max() / 64);
        const auto roomy = std::max(capacity + capacity / 2, static_cast<Index>(std::min(likely, most)));
        if (roomy <= wanted || !try_resize(roomy)) resize(wanted);
    }
    // Hands the memory over, cut to size; free() ends it.
    T* release(Index size) {
        resize(std::max<Index>(size, 1));
        capacity = 0;
        return memory.release();
    }

   private:
    struct Free {
        void operator()(T* p) const { std::free(p); }
    };
    std::unique_ptr<T, Free> memory;
    Index capacity = 0;

    void resize(Index wanted) {
        if (!try_resize(wanted)) throw std::bad_alloc();
    }
    bool try_resize(Index wanted) {
        if (wanted > std::numeric_limits<Index>::max() / static_cast<Index>(sizeof(T))) return false;
        void* moved = std::realloc(memory.get(), static_cast<std::size_t>(wanted) * sizeof(T));
        if (!moved) return false;
        (void)memory.release();
        memory.reset(static_cast<T*>(moved));
        capacity = wanted;
        return true;
    }
};

// Asks for all pages of a range at once, which takes a third of the time of asking for each when it is first touched. Only
// a hint: no page that is in use changes, and where the system cannot do it nothing happens.
template <class T>
void populate([[maybe_unused]] T* begin, [[maybe_unused]] Index count) {
#ifdef MADV_POPULATE_WRITE
    constexpr std::uintptr_t page = 4096;
    const auto first = (reinterpret_cast<std::uintptr_t>(begin) + page - 1) / page * page;
    const auto last = reinterpret_cast<std::uintptr_t>(begin + count) / page * page;
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_POPULATE_WRITE);
#endif
}

// Where a line went wrong: its number in the file from 1, the token, and a number that the message needs.
struct Problem {
    Fault fault = Fault::none;
    Index line = 0;
    const char *begin = nullptr, *end = nullptr;
    Index number = 0;
};

struct Piece {
    Piece(const char* begin, const char* end) : begin(begin), end(end) {}

    const char *begin, *end;
    Index lines = 0, pairs = 0;          // counted: bounds of the rows and the non-zeros
    Index row = 0, pair = 0;             // where they are written
    Index rows = 0, nonzeros = 0;        // how many were written
    Index largest = -1;                  // index, as in the text
    Index first_line = 0, edge_line = 0;  // of the first row; of the first index that only a one-based file may have
    bool zero = false, qids = false;     // an index 0; qids in every row
    Problem problem;
};

inline void count(Piece& piece) {
    constexpr Index stride = 128;
    const char* p = piece.begin;
    for (; piece.end - p >= stride; p += stride) {  // sums that fit in a byte, which the compiler adds 16 or 32 at a time
        unsigned char lines = 0, pairs = 0;
        for (Index k = 0; k < stride; ++k) {
            lines = static_cast<unsigned char>(lines + (p[k] == '\n'));
            pairs = static_cast<unsigned char>(pairs + (p[k] == ':'));
        }
        piece.lines += lines;
        piece.pairs += pairs;
    }
    for (; p < piece.end; ++p) {
        piece.lines += *p == '\n';
        piece.pairs += *p == ':';
    }
}

enum class Base { automatic, zero, one };

// Rows from text. `feed` takes chunks of whole lines, `take` hands over the rows so far. What the indices count from is
// settled by the first `take` if it was left open: 0 if an index 0 was seen, else 1.
template <class T>
class Parser {
   public:
    Parser(Base base, Index n_features) : base(base), n_features(n_features) {}

    Index rows = 0, nonzeros = 0, lines = 0;

    // Settled once rows were taken.
    bool counts_from_zero() const { return base == Base::zero; }

    // The first problem of the text from `begin` to `end`, which ends in a line end and has `padding` bytes behind it.
    // All of the text is about `times` as much as what was fed up to its end, if that is known, else 1.
    Problem feed(const char* begin, const char* end, double times, Index piece_size, int threads) {
        std::vector<Piece> pieces;
        while (begin < end) {
            const char* cut = end - begin <= piece_size ? end : line_end(begin + piece_size - 1) + 1;
            pieces.emplace_back(begin, cut);
            begin = cut;
        }
        const int number = static_cast<int>(pieces.size());
        run_pieces(number, threads, [&](int k) { count(pieces[static_cast<std::size_t>(k)]); });
        Index row_bound = rows, pair_bound = nonzeros;
        for (Piece& piece : pieces) {
            piece.row = row_bound;
            piece.pair = pair_bound;
            row_bound += piece.lines;
            pair_bound += piece.pairs;
        }
        const double likely_pairs = times * static_cast<double>(pair_bound);
        const double likely_rows = times * static_cast<double>(row_bound);
        values.reserve(pair_bound, likely_pairs);
        ends.reserve(row_bound, likely_rows);
        labels.reserve(row_bound, likely_rows);
        qids.reserve(row_bound, likely_rows);
        if (!is_wide && pair_bound > std::numeric_limits<std::int32_t>::max()) widen();
        parse_all(pieces, pair_bound, likely_pairs, threads);
        if (!is_wide && std::any_of(pieces.begin(), pieces.end(),
                                    [](const Piece& piece) { return piece.problem.fault == Fault::narrow; })) {
            widen();
            parse_all(pieces, pair_bound, likely_pairs, threads);
        }
        for (Piece& piece : pieces)
            if (const Problem problem = join(piece); problem.fault != Fault::none) return problem;
        return {};
    }

    struct Taken {
        Index rows, nonzeros, columns;
        bool is_wide, has_qids;
        T* values;
        void *indices, *starts;  // of 64 bits if is_wide, else of 32
        double* labels;
        Index* qids;
    };

    // The rows so far; the parser is then as before them. The caller frees the arrays.
    Taken take(Problem& problem) {
        if (base == Base::automatic) {
            base = seen_zero ? Base::zero : Base::one;
            if (seen_zero && edge_line) {
                problem = {Fault::wide, edge_line, nullptr, nullptr, n_features};
                return {};
            }
            if (seen_zero) shift_up();
        }
        const Index seen = base == Base::zero ? largest + 1 : largest;
        Taken taken{rows, nonzeros, n_features >= 0 ? n_features : std::max<Index>(seen, 1), is_wide, has_qids,
                    nullptr, nullptr, nullptr, nullptr, nullptr};
        if (is_wide) {
            taken.starts = starts_of<Index>();
            taken.indices = wide.release(nonzeros);
        } else {
            taken.starts = starts_of<std::int32_t>();
            taken.indices = narrow.release(nonzeros);
        }
        taken.values = values.release(nonzeros);
        taken.labels = labels.release(rows);
        if (has_qids) taken.qids = qids.release(rows);
        any_rows = any_rows || rows > 0;
        rows = nonzeros = 0;
        return taken;
    }

   private:
    Base base;
    Index n_features, largest = 0, edge_line = 0;
    bool is_wide = false, seen_zero = false, has_qids = false, any_rows = false;
    Room<T> values;
    Room<std::int32_t> narrow;
    Room<Index> wide, ends, qids;
    Room<double> labels;

    Index offset() const { return base == Base::zero ? 0 : 1; }

    void parse_all(std::vector<Piece>& pieces, Index pair_bound, double likely_pairs, int threads) {
        const auto run = [&](auto* columns) {
            run_pieces(static_cast<int>(pieces.size()), threads,
                       [&](int k) { parse(pieces[static_cast<std::size_t>(k)], columns); });
        };
        if (is_wide) {
            wide.reserve(pair_bound, likely_pairs);
            run(wide.data());
        } else {
            narrow.reserve(pair_bound, likely_pairs);
            run(narrow.data());
        }
    }

    template <class I>
    void parse(Piece& piece, I* columns) {
        // Only an index above the last one allowed is refused at once: whether that one is allowed may be open.
        const Index last_allowed = n_features < 0 ? std::numeric_limits<Index>::max() : n_features - (base == Base::zero);
        T* const x = values.data() + piece.pair;
        columns += piece.pair;
        const Index likely = std::min(piece.pairs, (piece.end - piece.begin) / 4);  // "1:1 " is the shortest pair
        populate(x, likely);
        populate(columns, likely);
        Index line = lines_before(piece), row = 0, k = 0;
        piece.rows = piece.nonzeros = 0;
        piece.largest = -1;
        piece.first_line = piece.edge_line = 0;
        piece.zero = piece.qids = false;
        piece.problem = {};
        const auto fail = [&](Fault fault, const char* begin, Index number = 0) {
            piece.problem = {fault, line, begin, begin ? token_end(begin) : begin, number};
        };
        for (const char* p = piece.begin; p < piece.end; ++p, ++line) {
            p = skip_spaces(p);
            if (*p == '#') p = line_end(p);
            if (*p == '\n') continue;
            const char* token = p;
            double label;
            if (const Fault fault = parse_number(p, label); fault != Fault::none) {
                const char* const end = token_end(token);
                const bool several = std::find(token, end, ',') != end && (is_digit(*token) || *token == '-' || *token == '+');
                return fail(several ? Fault::labels : fault == Fault::infinite ? fault : Fault::label, token);
            }
            p = skip_spaces(p);
            const bool qid = p[0] == 'q' && p[1] == 'i' && p[2] == 'd' && p[3] == ':';
            if (qid) {
                token = p;
                p += 4;
                if (parse_qid(p, qids.data()[piece.row + row]) != Fault::none) return fail(Fault::qid, token);
                p = skip_spaces(p);
            }
            Index previous = -1;
            const Index begin = k;
            bool zero = false;
            for (; *p != '\n' && *p != '#'; p = skip_spaces(p), ++k) {
                token = p;
                Index index;
                if (const Fault fault = parse_whole(p, index); fault != Fault::none)
                    return fail(fault == Fault::pair && *token == '-' && is_digit(token[1]) ? Fault::negative : fault, token);
                if (*p != ':') return fail(Fault::pair, token);
                if (ends_token(*++p)) return fail(Fault::truncated, token);
                if (index <= previous) return fail(Fault::order, token, previous);
                double value;
                if (const Fault fault = parse_value(p, value); fault != Fault::none) return fail(fault, token);
                x[k] = static_cast<T>(value);
                if constexpr (sizeof(T) < sizeof(double))
                    if (std::isinf(x[k])) return fail(Fault::infinite, token);
                columns[k] = static_cast<I>(index - offset());
                zero |= index == 0;
                previous = index;
            }
            if (*p == '#') p = line_end(p);
            if (k > begin) {
                if (zero) {
                    if (base == Base::one) return fail(Fault::zero, nullptr);
                    piece.zero = true;
                }
                if (previous > last_allowed) return fail(Fault::wide, nullptr, previous);
                if (sizeof(I) < sizeof(Index) && previous > std::numeric_limits<std::int32_t>::max())
                    return fail(Fault::narrow, nullptr);
                if (previous == n_features && !piece.edge_line) piece.edge_line = line;
                piece.largest = std::max(piece.largest, previous);
            }
            if (row == 0) {
                piece.qids = qid;
                piece.first_line = line;
            } else if (qid != piece.qids) {
                return fail(Fault::mixed, nullptr, qid);
            }
            labels.data()[piece.row + row] = label;
            ends.data()[piece.row + row] = k;
            piece.rows = ++row;
            piece.nonzeros = k;
        }
    }

    // The number in the file of the piece's first line: as many rows were counted before it as there are line ends.
    Index lines_before(const Piece& piece) const { return lines + (piece.row - rows) + 1; }

    // Moves what a piece wrote up to what is there already.
    Problem join(Piece& piece) {
        if (piece.rows > 0 && (any_rows || rows > 0) && piece.qids != has_qids)
            return {Fault::mixed, piece.first_line, nullptr, nullptr, piece.qids};
        if (piece.problem.fault != Fault::none) return piece.problem;
        const auto move = [](auto* data, Index to, Index from, Index number) {
            if (to != from) std::memmove(data + to, data + from, static_cast<std::size_t>(number) * sizeof(*data));
        };
        move(values.data(), nonzeros, piece.pair, piece.nonzeros);
        is_wide ? move(wide.data(), nonzeros, piece.pair, piece.nonzeros)
                : move(narrow.data(), nonzeros, piece.pair, piece.nonzeros);
        move(labels.data(), rows, piece.row, piece.rows);
        if (piece.qids) move(qids.data(), rows, piece.row, piece.rows);
        move(ends.data(), rows, piece.row, piece.rows);
        for (Index i = rows; i < rows + piece.rows; ++i) ends.data()[i] += nonzeros;
        if (piece.rows > 0) has_qids = piece.qids;
        rows += piece.rows;
        nonzeros += piece.nonzeros;
        lines += piece.lines;
        largest = std::max(largest, piece.largest);
        seen_zero = seen_zero || piece.zero;
        if (!edge_line) edge_line = piece.edge_line;
        return {};
    }

    void widen() {
        wide.reserve(nonzeros);
        std::copy_n(narrow.data(), nonzeros, wide.data());
        narrow = {};
        is_wide = true;
    }

    void shift_up() {
        const auto add_one = [this](auto* columns) {
            for (Index k = 0; k < nonzeros; ++k) ++columns[k];
        };
        is_wide ? add_one(wide.data()) : add_one(narrow.data());
    }

    template <class I>
    I* starts_of() {
        Room<I> starts;
        starts.reserve(rows + 1);
        starts.data()[0] = 0;
        for (Index i = 0; i < rows; ++i) starts.data()[i + 1] = static_cast<I>(ends.data()[i]);
        return starts.release(rows + 1);
    }
};

// Writes a number so that it reads back to the same bits, in as few characters as that takes; whole ones without exponent.
template <class T>
char* format_number(char* out, T x) {
    constexpr T whole_below = static_cast<T>(sizeof(T) == 8 ? 1e15 : 1e7);
    if (x == std::trunc(x) && std::abs(x) < whole_below && !(x == 0 && std::signbit(x)))
        return std::to_chars(out, out + 32, static_cast<Index>(x)).ptr;
    return std::to_chars(out, out + 32, x).ptr;
}

// Characters that rows need at most.
inline Index longest(Index rows, Index nonzeros) { return 64 * rows + 56 * nonzeros; }

// Writes rows `begin` to `end` and returns where the text ends. `qids` may be null.
template <class T, class I>
char* format(char* out, const T* x, const I* columns, const I* starts, Index begin, Index end, const double* labels,
             const Index* qids, Index offset) {
    for (Index i = begin; i < end; ++i) {
        out = format_number(out, labels[i]);
        if (qids) {
            std::memcpy(out, " qid:", 5);
            out = std::to_chars(out + 5, out + 32, qids[i]).ptr;
        }
        for (Index k = starts[i]; k < starts[i + 1]; ++k) {
            *out++ = ' ';
            out = std::to_chars(out, out + 32, static_cast<Index>(columns[k]) + offset).ptr;
            *out++ = ':';
            out = format_number(out, x[k]);
        }
        *out++ = '\n';
    }
    return out;
}

}  // namespace widemargin::svmlight
