// Orders drawn at random, without a division per draw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "../data/rows.hpp"

namespace widemargin {

// Numbers of a linear congruential generator (Knuth's MMIX), of which the upper half is used. Seeds that are neighbours
// begin far from each other, and so do the turns of one seed.
class Draws {
   public:
    explicit Draws(std::uint64_t seed = 0, std::uint64_t turn = 0)
        : state((seed + 1) * 0x9e3779b97f4a7c15u + turn * 0xd1342543de82ef95u) {
        state = (state ^ (state >> 31)) * 0xbf58476d1ce4e5b9u;
        state ^= state >> 29;
    }

    // One of 0 … count − 1, for counts up to 2³².
    std::size_t below(std::size_t count) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::size_t>(((state >> 32) * count) >> 32);
    }

   private:
    std::uint64_t state;
};

// How many blocks of 2^shift hold so many rows.
inline Index blocks_of(Index count, int shift) { return (count + (Index{1} << shift) - 1) >> shift; }

inline void shuffle(std::vector<Index>& order, Draws& draws) {
    for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[draws.below(k)]);
}

}  // namespace widemargin
