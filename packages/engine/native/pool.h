// A small thread pool. Every thread begins with its own share of a call's tasks, in order, and then takes tasks that
// others have left. So the same thread meets the same rows of a batch in one kernel after the other, and they stay in
// its core's caches; two threads do not write heads of one sequence, which are in the same cache lines, at a time. No
// kernel's result depends on which thread runs which task. The caller works too and waits only for workers that have
// joined: if the system keeps a worker from running, because the machine is busy, the others do not wait for it.
#pragma once
#include <cstdint>
#include <vector>

#include "sleep.h"

#if !defined(__wasm__)
#include <thread>
#endif

namespace drmas {

/// Whose cores blocks are made for: what they read ahead and what their caches hold differs. AMD's older ones have no
/// AVX-512. No kernel's result depends on it.
enum class Cores { Any, Amd, OlderAmd };

class Pool {
 public:
  using Task = void (*)(void* context, long index);

#if defined(__wasm__)
  /// Threads are JavaScript's, which calls work() on them.
  constexpr Pool() = default;
  void setThreads(int threads) { threads_ = threads; }
#else
  Pool(int threads, Cores cores, bool addsFours)
      : threads_(threads < 1 ? 1 : threads), cores_(cores), addsFours_(addsFours) {
    for (int i = 1; i < threads_; i++) workers_.emplace_back([this] { work(); });
  }
  ~Pool() {
    stop();
    for (auto& worker : workers_) worker.join();
  }
#endif
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return threads_; }
  Cores cores() const { return cores_; }
  /// Whether the processor multiplies and adds four numbers of 8 bits at a time. No kernel's result depends on it.
  bool addsFours() const { return addsFours_; }

  /// Calls body(index) for every index in [0, tasks), on all threads; returns when all are done.
  template <class Body>
  void run(long tasks, const Body& body) {
    if (threads_ == 1 || tasks <= 1) {
      for (long i = 0; i < tasks; i++) body(i);
      return;
    }
    task_ = [](void* context, long index) { (*static_cast<const Body*>(context))(index); };
    context_ = const_cast<Body*>(&body);
    const int count = shares();
    for (int i = 0; i < count; i++) {
      shares_[i].next.store(tasks * i / count, std::memory_order_relaxed);
      shares_[i].end = tasks * (i + 1) / count;
    }
    round_.advanceAndWake(1);
    drain(0);
    close();
  }

  /// A worker: takes tasks of every round until the pool stops.
  void work() {
    const int own = 1 + workersBegun_.fetch_add(1);
    uint64_t seen = 0;
    for (;;) {
      uint64_t round;
      for (int spins = 0; !open(round = round_.load()) || round == seen; spins++) {
        if (stopping_.load()) return;
        if (spins < kSpins)
          relax();
        else
          round_.sleepWhile(round);
      }
      seen = round;
      joined_.fetch_add(1);
      if (round_.load() == round) drain(own);
      joined_.fetch_sub(1);
    }
  }

  /// Workers return, those that come up later too.
  void stop() {
    stopping_.store(true);
    round_.advanceAndWake(2);
  }

#if defined(__wasm__)
  /// After an exception has left a task of a worker.
  void leave() { joined_.fetch_sub(1); }
  /// After an exception has left `run`: no task is begun any more, and those that were are waited for.
  void abandon() {
    if (!open(round_.load())) return;
    for (int i = 0; i < shares(); i++) shares_[i].next.store(shares_[i].end);
    close();
  }
#endif

 private:
  static bool open(uint64_t round) { return round % 2 == 1; }

  /// The tasks of one thread that are still to be begun: [next, end).
  struct alignas(64) Share {
    std::atomic<long> next{0};
    long end = 0;
  };
  static constexpr int kMostShares = 16;

  int shares() const { return threads_ < kMostShares ? threads_ : kMostShares; }

  void drain(int thread) {
    for (int i = 0, count = shares(); i < count; i++) {
      Share& share = shares_[(thread + i) % count];
      for (;;) {
        const long index = share.next.fetch_add(1, std::memory_order_relaxed);
        if (index >= share.end) break;
        task_(context_, index);
      }
    }
  }

  void close() {
    // Closing before counting: a worker joins by counting itself in and then finding the round still open.
    round_.advance();
    for (int spins = 0; joined_.load() > 0; spins++) spins < kSpins ? relax() : yieldCore();
  }

#if defined(__wasm__)
  int threads_ = 1;
  static constexpr Cores cores_ = Cores::Any;
  static constexpr bool addsFours_ = false;
#else
  const int threads_;
  const Cores cores_;
  const bool addsFours_;
  std::vector<std::thread> workers_;
#endif
  Round round_;  // odd while tasks are handed out
  std::atomic<int> joined_{0};
  std::atomic<int> workersBegun_{0};
  Share shares_[kMostShares];
  std::atomic<bool> stopping_{false};
  Task task_ = nullptr;
  void* context_ = nullptr;
};

/// Grows to the largest size asked for and stays; one per thread and use.
class Scratch {
 public:
  float* floats(size_t count) {
    if (buffer_.size() < count + 16) buffer_.resize(count + 16);
    const auto address = reinterpret_cast<uintptr_t>(buffer_.data());
    return reinterpret_cast<float*>((address + 63) & ~uintptr_t{63});
  }

  /// The same memory for elements of another type, none larger than a float.
  template <class Element>
  Element* take(size_t count) {
    static_assert(sizeof(Element) <= sizeof(float));
    return reinterpret_cast<Element*>(floats(count));
  }

 private:
  std::vector<float> buffer_;
};

}  // namespace drmas
