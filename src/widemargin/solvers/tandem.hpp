// TANDEM: two threads that go through the same visits in step, each with half of every row.
//
// At each visit they tell each other what their half makes of w·x, and both know the step to take: it costs a line that
// travels from one core to the other and back, some 70 ns. Whoever waits for the other at every visit must be sure that he
// is there: he may have been put to sleep in favour of another program, or have no core of his own. So visits come in
// stretches; for each the leader asks the other, and goes alone, with both halves, if there is no answer. After a stretch
// in which he had to wait for long he asks no more for a while, each time for longer, and for half as long after 64 that they
// went through together. The bits are the same.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>

#include "../data/rows.hpp"
#include "../threads.hpp"

namespace widemargin {

class Tandem {
   public:
    static constexpr Index never = std::numeric_limits<Index>::max();
    static constexpr Index shortest_pause = 8, longest_pause = 4096;
    static constexpr int a_while = 2000, shortly = 50;  // looks: some 50 µs, beyond an interrupt, and little

    // Of 64 visits each: how many there are, and the first visit of one.
    static Index stretches(const Blocks& blocks) { return (blocks.last() + 63) >> 6; }
    static Index first(Index stretch) { return stretch << 6; }

    // How many stretches pass without a question after the next long wait, and how many they went through together.
    Index pause, shared;

    Tandem(Index pause, Index shared) : pause(pause), shared(shared) {}

    // The sum of what both have; `side` is 0 for the leader and 1 for the other, `turn` counts the visits they share.
    double sum(int side, std::uint64_t turn, double mine) {
        Slot &own = slots[side][turn & 1], &other = slots[1 - side][turn & 1];  // two, as one may be a turn ahead
        own.part.store(mine, std::memory_order_relaxed);
        own.turn.store(turn, std::memory_order_release);
        while (!soon([&] { return other.turn.load(std::memory_order_acquire) == turn; }, strains[side].is ? shortly : a_while)) {
            strains[side].is = true;
            std::this_thread::yield();
        }
        return mine + other.part.load(std::memory_order_relaxed);
    }

    // The leader comes to a stretch, with this s: whether the other goes along.
    bool begin(Index stretch, double s) {
        wait_for_other();
        if (stretch < offered) return false;
        const bool tired = std::exchange(strains[0].is, false);
        if (last == stretch - 1 && !tired) soon([&] { return offer.load(std::memory_order_relaxed) != 2 * stretch; });
        offered = stretch + 1;
        if (tired) offered += pause, pause = std::min(4 * pause, longest_pause);
        Index open = 2 * stretch;
        if (offer.compare_exchange_strong(open, 2 * offered, std::memory_order_acq_rel)) return false;  // no answer
        offer.store(2 * offered, std::memory_order_release);
        along = !tired;
        if (along) {
            shared_s = s, last = stretch;
            if (++shared % 64 == 0) pause = std::max(pause / 2, shortest_pause);
        }
        announce(2 * stretch + tired);
        return along;
    }

    // The leader is through with all stretches.
    void end() {
        wait_for_other();
        offer.store(never, std::memory_order_release);
        announce(never);
    }

    // The other is through with stretch `before`, −1 at first: the next one that he goes along with, with its s; `never` if
    // there is none.
    Index next(Index before, double& s) {
        finished.store(before, std::memory_order_release);
        for (;;) {
            Index open = offer.load(std::memory_order_acquire);  // there always is one, be it for later
            if (open == never) return never;
            if (!offer.compare_exchange_strong(open, open + 1, std::memory_order_acq_rel)) continue;
            Index now;
            const auto came = [&] { return (now = begun.load(std::memory_order_acquire)) >= open; };
            while (!soon(came)) begun.wait(now);
            if (now == never) return never;
            if (now == open) {
                s = shared_s, strains[1].is = false;
                return open / 2;
            }
        }
    }

   private:
    struct alignas(128) Slot {
        std::atomic<double> part{0};
        std::atomic<std::uint64_t> turn{0};
    };
    Slot slots[2][2];
    struct alignas(128) Strain {
        bool is = false;
    };
    Strain strains[2];  // of each: whether a wait was long in this stretch
    alignas(128) std::atomic<Index> offer{0};   // twice the stretch that the other may go along with, and 1 if he will
    alignas(128) std::atomic<Index> begun{-1};  // twice the last stretch that he wanted to go along with, and 1 if he may not
    double shared_s = 0;
    alignas(128) std::atomic<Index> finished{-1};
    // The leader's own:
    alignas(128) Index offered = 0, last = -2;  // the next stretch on offer, and the last that the other went along with
    bool along = false;  // whether he does in this one

    // The other must be through with his half before the leader touches it.
    void wait_for_other() {
        if (!along) return;
        while (!soon([&] { return finished.load(std::memory_order_acquire) >= last; })) std::this_thread::yield();
        along = false;
    }

    void announce(Index stretch) {
        begun.store(stretch, std::memory_order_release);
        begun.notify_one();
    }
};

}  // namespace widemargin
