// THREADS: a fixed number of pieces of work, shared out over any number of threads.
//
// What is computed depends on the pieces alone, so every sum comes out the same bits however many threads there are.
// Starting a thread takes as long as reading half a million numbers, so threads are kept: the process has one set of
// helpers, which sleep between kernels.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace widemargin {

// Waits a moment for `changed`, in the hope to be spared a sleep; true if it came.
template <class Changed>
bool soon(Changed changed, int looks = 8000) {
    for (int k = 0; k < looks; ++k) {
        if (changed()) return true;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    return changed();
}

using Clock = std::chrono::steady_clock;

// Waits until the value is `wanted`, awake for a moment and then asleep; how long it slept.
template <class T, class Wanted>
Clock::duration wait_until(const std::atomic<T>& value, Wanted wanted) {
    if (soon([&] { return wanted(value.load(std::memory_order_acquire)); })) return {};
    const auto begin = Clock::now();
    for (T now; !wanted(now = value.load(std::memory_order_acquire));) value.wait(now);
    return Clock::now() - begin;
}

// Whether to call for helpers. Where other programs have the cores, whoever waits for helpers that are not run loses more
// than they bring. Calls during which one was missed for a third of the time or more are in vain: after two in a row there
// is none for eight times as long as he was missed, after each further one for twice as many times.
class Prudence {
   public:
    bool says_no() const { return Clock::now() < until; }

    void judge(Clock::duration missed, Clock::time_point begin) {
        const auto now = Clock::now();
        if (3 * missed < now - begin) {
            vain = 0, times = std::max(times / 2, fewest);
        } else if (++vain >= 2) {
            until = now + times * missed;
            times = std::min(2 * times, most);
        }
    }

   private:
    static constexpr int fewest = 8, most = 1024;
    int vain = 0, times = fewest;
    Clock::time_point until{};
};

// The helpers of this process. A round is one call of the same work on some of them.
class Helpers {
   public:
    std::mutex busy;  // held by the team at work
    Prudence prudence;

    // The helpers alive in this process: threads do not survive a fork, so a child gets new ones.
    static Helpers& here() {
        static std::atomic<Helpers*> current = [] {
            pthread_atfork(nullptr, nullptr, [] { current.store(new Helpers); });
            return new Helpers;
        }();
        return *current.load();
    }

    // Starts helpers until there are `wanted`; returns how many there are, fewer if the system refuses.
    int grow(int wanted) {
        try {
            while (static_cast<int>(rounds.size()) < wanted) {
                rounds.push_back(std::make_unique<std::atomic<unsigned>>(0));
                std::thread([this, me = static_cast<int>(rounds.size()), mine = rounds.back().get()] {
                    serve(me, *mine);
                }).detach();
            }
        } catch (const std::system_error&) {
            rounds.pop_back();
        }
        return static_cast<int>(rounds.size());
    }

    // Runs work(0) here and work(1) … work(size − 1) on the helpers; how long the caller slept for them.
    template <class Work>
    Clock::duration run(int size, Work& work) {
        call = [](void* it, int thread) { (*static_cast<Work*>(it))(thread); };
        argument = &work;
        left.store(size - 1, std::memory_order_relaxed);
        for (int k = 0; k < size - 1; ++k) {
            auto& round = *rounds[static_cast<std::size_t>(k)];
            round.fetch_add(1, std::memory_order_release);
            round.notify_one();
        }
        work(0);
        return wait_until(left, [](int still) { return still == 0; });
    }

   private:
    std::vector<std::unique_ptr<std::atomic<unsigned>>> rounds;  // each helper counts its own
    std::atomic<int> left{0};
    void (*call)(void*, int) = nullptr;
    void* argument = nullptr;

    [[noreturn]] void serve(int me, std::atomic<unsigned>& round) {
        for (unsigned seen = 0;; ++seen) {
            wait_until(round, [seen](unsigned now) { return now != seen; });
            call(argument, me);
            if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) left.notify_one();
        }
    }
};

// The caller and as many helpers as are wanted and free. Another thread may have them, or another program the cores: then
// the caller is alone.
class Team {
   public:
    explicit Team(int wanted) {
        if (wanted > 1 && (lock = std::unique_lock(helpers.busy, std::try_to_lock)) && !helpers.prudence.says_no())
            members = std::min(wanted, helpers.grow(wanted - 1) + 1);
    }
    int size() const { return members; }

    // Runs work(thread) for thread = 0 … size−1 at once. It must not throw.
    template <class Work>
    void run(Work work) {
        // One body for all: inlined here and there, its loops may become different vectors, whose sums have other bits.
        auto body = [&](int thread) __attribute__((noinline, noipa)) { work(thread); };
        if (members == 1) return body(0);
        const auto begin = Clock::now();
        missed = 0;
        miss(helpers.run(members, body));
        helpers.prudence.judge(Clock::duration(missed), begin);
    }

    // For so long a member had to wait for another, or to do without him.
    void miss(Clock::duration time) { missed.fetch_add(time.count(), std::memory_order_relaxed); }

   private:
    Helpers& helpers = Helpers::here();
    std::unique_lock<std::mutex> lock;
    int members = 1;
    std::atomic<Clock::rep> missed{0};
};

// Where the threads of a team wait for each other. std::barrier sleeps at once, which takes longer than many a wait.
class Meeting {
   public:
    explicit Meeting(Team& team) : team(team) {}

    // Returns when all are here; the last to come does `last` first.
    template <class Last>
    void wait(Last last) {
        const unsigned seen = round.load(std::memory_order_acquire);
        if (arrived.fetch_add(1, std::memory_order_acq_rel) == team.size() - 1) {
            last();
            arrived.store(0, std::memory_order_relaxed);
            round.fetch_add(1, std::memory_order_release);
            round.notify_all();
        } else {
            team.miss(wait_until(round, [seen](unsigned now) { return now != seen; }));
        }
    }
    void wait() {
        wait([] {});
    }

   private:
    Team& team;
    alignas(128) std::atomic<int> arrived{0};
    alignas(128) std::atomic<unsigned> round{0};
};

// Runs work(piece) once for every piece.
template <class Work>
void run_pieces(int pieces, int threads, Work work) {
    Team team(threads < pieces ? threads : pieces);
    std::atomic<int> next{0};
    team.run([&](int) {
        for (int piece; (piece = next.fetch_add(1, std::memory_order_relaxed)) < pieces;) work(piece);
    });
}

}  // namespace widemargin
