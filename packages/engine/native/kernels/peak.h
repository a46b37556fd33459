// The peak of the processor: multiply-adds on registers alone, no memory touched. bench/ compares each kernel with it.
#pragma once
#include "products/linear.h"

namespace drmas {
namespace DRMAS_ISA {

/// Runs `tasks` tasks on all threads and returns the floating-point operations of all of them (two a multiply-add).
/// Each task keeps as many independent sums as a tile of the linear layers keeps in registers: enough to hide the
/// latency.
inline double fmaPeak(Pool& pool, long tasks) {
  constexpr int kSums = kTileRows * kVectors;
  constexpr long kSteps = 20000;  // some tens of microseconds, long against handing out a task
  pool.run(tasks, [](long task) {
    F16 sum[kSums];
    for (int i = 0; i < kSums; i++) sum[i] = broadcast(static_cast<float>(task + i));
    const F16 factor = broadcast(0.999f), term = broadcast(0.001f);
    for (long k = 0; k < kSteps; k++)
#pragma GCC unroll 24
      for (int i = 0; i < kSums; i++) sum[i] = fma(sum[i], factor, term);
    for (int i = 1; i < kSums; i++) sum[0] = sum[0] + sum[i];
    static thread_local volatile float sink;  // or the compiler would see that nobody wants the sums
    sink = sumLanes(sum[0]);
  });
  return 2. * kLanes * kSums * kSteps * static_cast<double>(tasks);
}

}  // namespace DRMAS_ISA
}  // namespace drmas
