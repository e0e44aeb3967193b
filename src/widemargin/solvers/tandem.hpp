// TANDEM: two threads that go through the same visits in step, each with half of every row.
//
// At each visit they tell each other what their half makes of w·x, and both know the step to take: it costs a line that
// travels from one core to the other and back, some 70 ns. Whoever waits for the other at every visit must be sure that he
// is there: he may have been put to sleep in favour of another program. So visits come in stretches; for each the leader
// asks the other, and goes alone, with both halves, if there is no answer. The bits are the same.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <thread>

#include "../data/rows.hpp"
#include "../threads.hpp"

namespace widemargin {

class Tandem {
   public:
    static constexpr int stretch_bits = 6;  // visits in a stretch, as a power of 2

    // The sum of what both have; `side` is 0 for the leader and 1 for the other, `turn` counts the visits they share.
    double sum(int side, std::uint64_t turn, double mine) {
        Slot &own = slots[side][turn & 1], &other = slots[1 - side][turn & 1];  // two, as one may be a turn ahead
        own.part.store(mine, std::memory_order_relaxed);
        own.turn.store(turn, std::memory_order_release);
        until([&] { return other.turn.load(std::memory_order_acquire) == turn; });
        return mine + other.part.load(std::memory_order_relaxed);
    }

    // The leader comes to a stretch, with this s: whether the other goes along.
    bool begin(Index stretch, double s) {
        const auto answered = [&] { return offer.load(std::memory_order_acquire) == 2 * stretch + 1; };
        if (along) {  // he is hardly a visit behind, and must be through before his half can be touched
            until([&] { return finished.load(std::memory_order_acquire) >= stretch - 1; });
            soon(answered);
        }
        Index open = 2 * stretch;
        along = answered() || !offer.compare_exchange_strong(open, 2 * (stretch + 1), std::memory_order_acq_rel);
        if (along) {
            shared_s = s;
            offer.store(2 * (stretch + 1), std::memory_order_release);
            begun.store(stretch, std::memory_order_release);
            last = stretch;
        }
        return along;
    }

    // The leader is through with all stretches.
    void end() {
        if (along) until([&] { return finished.load(std::memory_order_acquire) >= last; });
        offer.store(never, std::memory_order_release);
        begun.store(never, std::memory_order_release);
    }

    // The other is through with stretch `before`, −1 at first: the next one that he goes along with, with its s; `never` if
    // there is none.
    Index next(Index before, double& s) {
        finished.store(before, std::memory_order_release);
        Index stretch = never;
        until([&] {
            Index open = offer.load(std::memory_order_acquire);
            if (open == never) return true;
            stretch = open / 2;
            return open % 2 == 0 && stretch > before && offer.compare_exchange_strong(open, open + 1, std::memory_order_acq_rel);
        });
        until([&] { return begun.load(std::memory_order_acquire) >= stretch; });
        s = shared_s;
        return begun.load(std::memory_order_acquire) == never ? never : stretch;
    }

    static constexpr Index never = std::numeric_limits<Index>::max();

   private:
    struct alignas(128) Slot {
        std::atomic<double> part{0};
        std::atomic<std::uint64_t> turn{0};
    };
    Slot slots[2][2];
    alignas(128) std::atomic<Index> offer{0};  // twice the stretch that the other may go along with, and 1 if he will
    alignas(128) std::atomic<Index> begun{-1};
    double shared_s = 0;
    alignas(128) std::atomic<Index> finished{-1};
    bool along = false;  // in the last stretch
    Index last = -1;

    template <class Came>
    static void until(Came came) {
        while (!soon(came)) std::this_thread::yield();
    }
};

}  // namespace widemargin
