// A small thread pool. Tasks of one call are handed out by an atomic counter; no kernel's result depends on which
// thread runs which task, so scheduling is free to be dynamic. The caller works too and waits only for workers that
// have joined: one that the system keeps from running, because the machine has other things to do, holds nobody up.
#pragma once
#include <cstdint>
#include <vector>

#include "sleep.h"

#if !defined(__wasm__)
#include <thread>
#endif

namespace drmas {

class Pool {
 public:
  using Task = void (*)(void* context, long index);

#if defined(__wasm__)
  /// Threads are JavaScript's, which calls work() on them.
  constexpr Pool() = default;
  void setThreads(int threads) { threads_ = threads; }
#else
  explicit Pool(int threads) : threads_(threads < 1 ? 1 : threads) {
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

  /// Calls body(index) for every index in [0, tasks), on all threads; returns when all are done.
  template <class Body>
  void run(long tasks, const Body& body) {
    if (threads_ == 1 || tasks <= 1) {
      for (long i = 0; i < tasks; i++) body(i);
      return;
    }
    task_ = [](void* context, long index) { (*static_cast<const Body*>(context))(index); };
    context_ = const_cast<Body*>(&body);
    tasks_ = tasks;
    next_.store(0, std::memory_order_relaxed);
    round_.advanceAndWake(1);
    drain();
    close();
  }

  /// A worker: takes tasks of every round until the pool stops.
  void work() {
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
      if (round_.load() == round) drain();
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
    next_.store(tasks_);
    close();
  }
#endif

 private:
  static bool open(uint64_t round) { return round % 2 == 1; }

  void drain() {
    for (;;) {
      const long index = next_.fetch_add(1, std::memory_order_relaxed);
      if (index >= tasks_) return;
      task_(context_, index);
    }
  }

  void close() {
    // Closing before counting: a worker joins by counting itself in and then finding the round still open.
    round_.advance();
    for (int spins = 0; joined_.load() > 0; spins++) spins < kSpins ? relax() : yieldCore();
  }

#if defined(__wasm__)
  int threads_ = 1;
#else
  const int threads_;
  std::vector<std::thread> workers_;
#endif
  Round round_;  // odd while tasks are handed out
  std::atomic<int> joined_{0};
  std::atomic<long> next_{0};
  std::atomic<bool> stopping_{false};
  Task task_ = nullptr;
  void* context_ = nullptr;
  long tasks_ = 0;
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
  Element* room(size_t count) {
    static_assert(sizeof(Element) <= sizeof(float));
    return reinterpret_cast<Element*>(floats(count));
  }

 private:
  std::vector<float> buffer_;
};

}  // namespace drmas
