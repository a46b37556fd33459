// The parts that the vectors and tiles of all instruction sets share.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "../types.h"

namespace drmas {
namespace DRMAS_ISA {

constexpr int kLanes = 16;

inline float widenedNumber(Bfloat16 value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

/// Two neighbours in bfloat16, the first in the lower half.
struct Pair {
  uint32_t bits;
};
inline Pair pairOf(Bfloat16 first, Bfloat16 second) { return {first | static_cast<uint32_t>(second) << 16}; }

}  // namespace DRMAS_ISA
}  // namespace drmas
