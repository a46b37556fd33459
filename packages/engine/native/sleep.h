// How threads of a pool wait, on a system with threads of its own and in WebAssembly.
#pragma once
#include <atomic>
#include <cstdint>

#if !defined(__wasm__)
#include <condition_variable>
#include <mutex>
#include <thread>
#endif

namespace drmas {

#if defined(__wasm__)

/// WebAssembly has no instruction that rests: one look at the memory takes a nanosecond.
constexpr int kSpins = 50000;

inline void relax() {}

// Functions of their own with nothing to do afterwards: in V8's baseline code (Node 20) waking loses the values of
// registers.
[[gnu::noinline]] inline void wakeAll(uint64_t* address) {
  __builtin_wasm_memory_atomic_notify(reinterpret_cast<int32_t*>(address), ~0u);
}
[[gnu::noinline]] inline void waitWhile(uint64_t* address, uint64_t value, int64_t timeoutNs) {
  __builtin_wasm_memory_atomic_wait64(reinterpret_cast<int64_t*>(address), static_cast<int64_t>(value), timeoutNs);
}

/// Leaves the core to other threads for a moment: waits for a change that does not come.
inline void yieldCore() {
  static uint64_t never = 0;
  waitWhile(&never, 0, 50'000);
}

/// A number on which threads sleep until it changes.
class Round {
 public:
  uint64_t load() const { return value_.load(); }
  /// Without waking anybody.
  void advance() { value_.fetch_add(1); }
  void advanceAndWake(uint64_t by) {
    value_.fetch_add(by);
    // Whoever is about to sleep is counted already, or finds the value changed: waiting compares it.
    if (sleeping_.load() > 0) wakeAll(value_.address());
  }
  void sleepWhile(uint64_t value) {
    sleeping_.fetch_add(1);
    waitWhile(value_.address(), value, -1);
    sleeping_.fetch_sub(1);
  }

 private:
  std::atomic<uint64_t> value_{0};
  std::atomic<int> sleeping_{0};
};

#else

// Long enough to bridge the gap between two kernels of one pass, short enough to leave the core to others when idle.
constexpr int kSpins = 4000;

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

inline void yieldCore() { std::this_thread::yield(); }

/// A number on which threads sleep until it changes.
class Round {
 public:
  uint64_t load() const { return value_.load(); }
  /// Without waking anybody.
  void advance() { value_.fetch_add(1); }
  void advanceAndWake(uint64_t by) {
    {
      // The lock pairs with a thread that is about to sleep: it sees the change or is woken.
      std::lock_guard<std::mutex> lock(mutex_);
      value_.fetch_add(by);
    }
    if (sleeping_.load() > 0) changed_.notify_all();
  }
  void sleepWhile(uint64_t value) {
    std::unique_lock<std::mutex> lock(mutex_);
    sleeping_.fetch_add(1);
    changed_.wait(lock, [&] { return value_.load() != value; });
    sleeping_.fetch_sub(1);
  }

 private:
  std::atomic<uint64_t> value_{0};
  std::atomic<int> sleeping_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

#endif

}  // namespace drmas
