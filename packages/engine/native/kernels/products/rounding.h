// Operands of products in bfloat16: floats rounded to it, and the layout of pairs of them.
//
// Order of accumulation in such products, except in tiles (bfloat16-tiles.h): over the inputs (or over the rows, for
// the weight gradient) in pairs, in each pair the second before the first, one multiply-add after the other in float32.
// If the count is odd, the last pair is filled up with 0. It is the order of AVX512-BF16's instruction. The product of
// two bfloat16 numbers has 16 bits, so it is exact.
#pragma once
#include <algorithm>
#include <cstring>

#include "linear.h"

namespace drmas {
namespace DRMAS_ISA {

/// The bits of a float, rounded to the nearest number in bfloat16, ties to even: the lower half is 0. Subnormal numbers
/// become 0, as AVX512-BF16 reads them; what is no number stays so. Compilers make vectors of loops over it.
inline uint32_t roundedBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t upper = bits + 0x7fffu + (bits >> 16 & 1u);
  upper = magnitude > 0x7f800000u ? bits | 0x400000u : upper;
  return (magnitude < 0x00800000u ? bits & 0x80000000u : upper) & 0xffff0000u;
}

inline Bfloat16 rounded(float value) { return static_cast<Bfloat16>(roundedBits(value) >> 16); }

inline float roundedFloat(float value) {
  const uint32_t bits = roundedBits(value);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// 16 numbers, rounded. Loops over as many as a vector has become vectors in compilers that take no others.
inline F16 roundedLine(F16 values) {
  alignas(64) float line[kLanes];
  store(line, values);
  for (float& value : line) value = roundedFloat(value);
  return load(line);
}

/// Writes 16 numbers, rounded.
inline void storeRounded(Bfloat16* to, F16 values) {
  alignas(64) float line[kLanes];
  alignas(32) Bfloat16 halves[kLanes];
  store(line, values);
  for (int i = 0; i < kLanes; i++) halves[i] = rounded(line[i]);
  std::memcpy(to, halves, sizeof halves);
}

/// Numbers that are in bfloat16 already.
inline Bfloat16 rounded(Bfloat16 value) {
  return (value & 0x7f80u) == 0 ? value & 0x8000u : value;
}

inline long pairsOf(long count) { return (count + 1) / 2; }

/// Rows that one task rounds.
constexpr long kRoundedRows = 32;

/// Calls body(first, end) for blocks of rows, on all threads if there is enough work.
template <class Body>
inline void forRowBlocks(Pool& pool, long rows, long width, const Body& body) {
  const long blocks = (rows + kRoundedRows - 1) / kRoundedRows;
  const auto block = [&](long i) { body(i * kRoundedRows, std::min(rows, (i + 1) * kRoundedRows)); };
  if (rows * width < 32768)
    for (long i = 0; i < blocks; i++) block(i);
  else
    pool.run(blocks, block);
}

}  // namespace DRMAS_ISA
}  // namespace drmas
