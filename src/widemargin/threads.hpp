// THREADS: a fixed number of pieces of work, shared out over any number of threads.
//
// What is computed depends on the pieces alone, so every sum comes out the same bits however many threads there are; the
// clock decides no more than how many these are.
// Starting a thread takes as long as reading half a million numbers, so threads are kept: the process has one set of
// helpers, which sleep between kernels.
#pragma once

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
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

// The time for which this thread has been run.
inline Clock::duration time_run() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Whether to call for helpers. Where other programs have the cores, whoever waits for a thread that is not run loses more
// than it brings. A call is in vain if one of its threads was not run for a third of its time, unless it had only to be
// woken. After two in a row there is none for 8 × the time lost, after the next ones in vain for 16 ×, 32 × and 64 ×, but
// for a second at most. A call that lost less than a tenth halves that factor, and counting begins anew; others change
// nothing. (Waits for a disk, or for a thread that has more to do than the others, count as well.)
class Prudence {
   public:
    bool says_no(Clock::time_point now) const { return now < until; }

    void judge(Clock::duration lost, Clock::duration took, Clock::time_point now) {
        constexpr auto waking = std::chrono::microseconds(300);
        if (10 * lost < took) {
            vain = 0, times = std::max(times / 2, fewest);
        } else if (lost > waking && 3 * lost > took && ++vain >= 2) {
            until = now + std::min<Clock::duration>(times * lost, std::chrono::seconds(1));
            times = std::min(2 * times, most);
        }
    }

   private:
    static constexpr int fewest = 8, most = 64;
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
        while (static_cast<int>(all.size()) < wanted) {
            all.push_back(std::make_unique<Helper>());
            try {
                std::thread([this, me = static_cast<int>(all.size()), mine = all.back().get()] { serve(me, *mine); }).detach();
            } catch (const std::exception&) {
                all.pop_back();
                break;
            }
        }
        return static_cast<int>(all.size());
    }

    // Runs work(0) here and work(1) … work(size − 1) on the helpers.
    template <class Work>
    void run(int size, Work& work) {
        call = [](void* it, int thread) { (*static_cast<Work*>(it))(thread); };
        argument = &work;
        called = Clock::now();
        left.store(size - 1, std::memory_order_relaxed);
        for (int k = 0; k < size - 1; ++k) {
            auto& round = all[static_cast<std::size_t>(k)]->round;
            round.fetch_add(1, std::memory_order_release);
            round.notify_one();
        }
        auto lost = time_lost([&] { work(0); });
        const auto done = [&] { return left.load(std::memory_order_acquire) == 0; };
        while (!soon(done))
            if (const int still = left.load(std::memory_order_acquire)) left.wait(still);
        for (int k = 0; k < size - 1; ++k) lost = std::max(lost, all[static_cast<std::size_t>(k)]->lost);
        const auto now = Clock::now();
        prudence.judge(lost, now - called, now);
    }

   private:
    struct alignas(128) Helper {
        std::atomic<unsigned> round{0};
        Clock::duration lost{};  // in the last one
    };
    std::vector<std::unique_ptr<Helper>> all;
    std::atomic<int> left{0};
    void (*call)(void*, int) = nullptr;
    void* argument = nullptr;
    Clock::time_point called;

    // For how long this thread was not run from the call to the end of its work.
    template <class Work>
    Clock::duration time_lost(Work work) const {
        const auto before = time_run();
        work();
        return (Clock::now() - called) - (time_run() - before);
    }

    [[noreturn]] void serve(int me, Helper& mine) {
        for (unsigned seen = 0;; ++seen) {
            while (!soon([&] { return mine.round.load(std::memory_order_acquire) != seen; })) mine.round.wait(seen);
            mine.lost = time_lost([&] { call(argument, me); });
            if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) left.notify_one();
        }
    }
};

// The caller and as many helpers as are wanted and free. Another thread may have them, or another program the cores: then
// the caller is alone.
class Team {
   public:
    explicit Team(int wanted) {
        if (wanted < 2 || !(lock = std::unique_lock(helpers.busy, std::try_to_lock))) return;
        if (!helpers.prudence.says_no(Clock::now())) members = std::min(wanted, helpers.grow(wanted - 1) + 1);
        if (members == 1) lock.unlock();
    }
    int size() const { return members; }

    // Runs work(thread) for thread = 0 … size−1 at once. It must not throw.
    template <class Work>
    void run(Work work) {
        // One body for all: inlined here and there, its loops may become different vectors, whose sums have other bits.
        auto body = [&](int thread) __attribute__((noinline, noipa)) { work(thread); };
        if (members == 1) return body(0);
        helpers.run(members, body);
    }

   private:
    Helpers& helpers = Helpers::here();
    std::unique_lock<std::mutex> lock;
    int members = 1;
};

// Where the threads of a team wait for each other. std::barrier sleeps at once, which takes longer than many a wait.
class Meeting {
   public:
    explicit Meeting(int members) : members(members) {}

    // Returns when all are here; the last to come does `last` first.
    template <class Last>
    void wait(Last last) {
        const unsigned seen = round.load(std::memory_order_acquire);
        if (arrived.fetch_add(1, std::memory_order_acq_rel) == members - 1) {
            last();
            arrived.store(0, std::memory_order_relaxed);
            round.fetch_add(1, std::memory_order_release);
            round.notify_all();
        } else {
            while (!soon([&] { return round.load(std::memory_order_acquire) != seen; })) round.wait(seen);
        }
    }
    void wait() {
        wait([] {});
    }

   private:
    const int members;
    alignas(128) std::atomic<int> arrived{0};
    alignas(128) std::atomic<unsigned> round{0};
};

// Runs work(piece) once for every piece. What one throws, such as std::bad_alloc, is thrown once no thread works any more.
template <class Work>
void run_pieces(int pieces, int threads, Work work) {
    Team team(threads < pieces ? threads : pieces);
    std::atomic<int> next{0};
    std::atomic_flag has_failed;
    std::exception_ptr failure;
    team.run([&](int) {
        try {
            for (int piece; (piece = next.fetch_add(1, std::memory_order_relaxed)) < pieces;) work(piece);
        } catch (...) {
            if (!has_failed.test_and_set()) failure = std::current_exception();
            next.store(pieces, std::memory_order_relaxed);
        }
    });
    if (failure) std::rethrow_exception(failure);
}

}  // namespace widemargin
