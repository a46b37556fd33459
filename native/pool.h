// A small thread pool. Tasks of one call are handed out by an atomic counter; no kernel's result depends on which thread
// runs which task, so scheduling is free to be dynamic. The caller works too and waits only for workers that have joined:
// one that the system keeps from running, because the machine has other things to do, holds nobody up.
#pragma once
#include <cstdint>
#include <vector>

#if !defined(__wasm__)
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#endif

namespace drmas {

#if defined(__wasm__)

/// WebAssembly: the caller works alone.
class Pool {
 public:
  int threads() const { return 1; }

  template <class Body>
  void run(long tasks, const Body& body) {
    for (long i = 0; i < tasks; i++) body(i);
  }
};

#else

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class Pool {
 public:
  using Task = void (*)(void* context, long index);

  explicit Pool(int threads) : threads_(threads < 1 ? 1 : threads) {
    for (int i = 1; i < threads_; i++) workers_.emplace_back([this] { work(); });
  }
  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (auto& worker : workers_) worker.join();
  }
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
    {
      // The lock pairs with a worker that is about to sleep: it sees the open round or is woken.
      std::lock_guard<std::mutex> lock(mutex_);
      round_.fetch_add(1);
    }
    if (sleeping_.load() > 0) wake_.notify_all();
    drain();
    // Closing before counting: a worker joins by counting itself in and then finding the round still open.
    round_.fetch_add(1);
    for (int spins = 0; joined_.load() > 0; spins++) spins < kSpins ? relax() : std::this_thread::yield();
  }

 private:
  // Long enough to bridge the gap between two kernels of one pass, short enough to leave the core to others when idle.
  static constexpr int kSpins = 4000;

  void drain() {
    for (;;) {
      const long index = next_.fetch_add(1, std::memory_order_relaxed);
      if (index >= tasks_) return;
      task_(context_, index);
    }
  }

  bool open(uint64_t round, uint64_t seen) const { return round % 2 == 1 && round != seen; }

  void work() {
    uint64_t seen = 0;
    for (;;) {
      uint64_t round;
      for (int spins = 0; !open(round = round_.load(), seen); spins++) {
        if (spins < kSpins) {
          relax();
          continue;
        }
        std::unique_lock<std::mutex> lock(mutex_);
        sleeping_.fetch_add(1);
        wake_.wait(lock, [&] { return stopping_ || open(round_.load(), seen); });
        sleeping_.fetch_sub(1);
        if (stopping_) return;
      }
      seen = round;
      joined_.fetch_add(1);
      if (round_.load() == round) drain();
      joined_.fetch_sub(1);
    }
  }

  const int threads_;
  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> round_{0};  // odd while tasks are handed out
  std::atomic<int> sleeping_{0};
  std::atomic<int> joined_{0};
  std::atomic<long> next_{0};
  bool stopping_ = false;
  Task task_ = nullptr;
  void* context_ = nullptr;
  long tasks_ = 0;
};

#endif

/// Grows to the largest size asked for and stays; one per thread and use.
class Scratch {
 public:
  float* floats(size_t count) {
    if (buffer_.size() < count + 16) buffer_.resize(count + 16);
    const auto address = reinterpret_cast<uintptr_t>(buffer_.data());
    return reinterpret_cast<float*>((address + 63) & ~uintptr_t{63});
  }

 private:
  std::vector<float> buffer_;
};

}  // namespace drmas
