// Operands of products in bfloat16 as the instructions of AVX512-BF16 and AMX take them: pairs of neighbouring numbers,
// rounded as rounding.h says, in panels. Pairs are moved as floats, whose bits stay as they are.
#pragma once
#include "blocks.h"
#include "rounding.h"
#if defined(__AVX512BF16__)
#include "../../simd/pairs.h"
#endif

namespace drmas {
namespace DRMAS_ISA {

#if !defined(__AVX512BF16__)
/// 16 pairs: pair i holds number i of each of the two vectors.
inline F16 roundedPairs(F16 firsts, F16 seconds) {
  alignas(64) float first[kLanes], second[kLanes];
  alignas(64) Pair pairs[kLanes];
  store(first, firsts);
  store(second, seconds);
  for (int i = 0; i < kLanes; i++) pairs[i] = pairOf(rounded(first[i]), rounded(second[i]));
  return load(reinterpret_cast<const float*>(pairs));
}

/// 32 neighbours as 16 pairs.
inline F16 roundedNeighbours(F16 low, F16 high) {
  alignas(64) float numbers[2 * kLanes];
  alignas(64) Pair pairs[kLanes];
  store(numbers, low);
  store(numbers + kLanes, high);
  for (int i = 0; i < kLanes; i++) pairs[i] = pairOf(rounded(numbers[2 * i]), rounded(numbers[2 * i + 1]));
  return load(reinterpret_cast<const float*>(pairs));
}
#endif

/// Line i holds the pairs of rows 2 i and 2 i + 1 of a matrix; the matrix still has `rows` x `columns` numbers.
template <class Element>
inline void roundRowPairs(F16* lines, const Element* from, long width, long rows, long columns) {
  if (rows >= 2 * kLanes && columns >= kLanes) {
    for (int i = 0; i < kLanes; i++)
      lines[i] = roundedPairs(load(from + 2 * i * width), load(from + (2 * i + 1) * width));
    return;
  }
  const auto row = [&](long r) { return r < rows ? loadOrZero(from + r * width, columns) : zero(); };
  for (int i = 0; i < kLanes; i++) lines[i] = roundedPairs(row(2 * i), row(2 * i + 1));
}

/// Line r holds the first 32 numbers of row r of a matrix; the matrix still has `rows` x `columns` numbers.
template <class Element>
inline void roundRows(F16* lines, const Element* from, long width, long rows, long columns) {
  for (int r = 0; r < kLanes; r++) {
    const Element* row = from + r * width;
    lines[r] = r < rows ? roundedNeighbours(loadOrZero(row, columns), loadOrZero(row + kLanes, columns - kLanes))
                        : zero();
  }
}

enum class Operand { Left, Right };

/// Packs a matrix [inputs, outputs], or [outputs, inputs] if `turned`, into panels of kColumns outputs and `pairs`
/// pairs of inputs; numbers beyond the matrix are 0. In panels of the right operand a line holds one pair of each
/// output. In panels of the left one, which have 16 outputs and whole blocks of 16 pairs, a line holds 16 pairs of one
/// output.
template <int kColumns, Operand operand, class Element>
inline void packPairs(Pool& pool, Pair* to, const Element* from, long inputs, long outputs, bool turned, long pairs) {
  static_assert(kColumns == kLanes || operand == Operand::Right, "a panel of the left operand is a column of blocks");
  constexpr long kBlocksPerTask = 32;
  const long ofInputs = (pairs + kLanes - 1) / kLanes;
  const long ofOutputs = (outputs + kColumns - 1) / kColumns * (kColumns / kLanes);
  const long down = turned ? ofOutputs : ofInputs, across = turned ? ofInputs : ofOutputs;
  const long groups = (across + kBlocksPerTask - 1) / kBlocksPerTask;
  const auto block = [&](long k, long n) {
    const long input = k * 2 * kLanes, output = n * kLanes;
    F16 lines[kLanes];
    if (turned)
      roundRows(lines, from + output * inputs + input, inputs, outputs - output, inputs - input);
    else
      roundRowPairs(lines, from + input * outputs + output, outputs, inputs - input, outputs - output);
    if (turned == (operand == Operand::Right)) transpose(lines);
    Pair* place = to + (output / kColumns * pairs + k * kLanes) * kColumns + output % kColumns;
    const int count = static_cast<int>(std::min<long>(kLanes, pairs - k * kLanes));
    for (int i = 0; i < count; i++) store(reinterpret_cast<float*>(place + i * kColumns), lines[i]);
  };
  const auto body = [&](long task) {
    const long row = task / groups, first = task % groups * kBlocksPerTask;
    for (long i = first; i < std::min(across, first + kBlocksPerTask); i++) turned ? block(i, row) : block(row, i);
  };
  if (inputs * outputs < 32768)
    for (long task = 0; task < down * groups; task++) body(task);
  else
    pool.run(down * groups, body);
}

/// A panel of the right operand from the transpose of a matrix in blocks: kColumns of its inputs from `column` on, and
/// `count` pairs of its outputs, rounded up to a multiple of 16, from the pair `first` on, such a multiple. Numbers
/// beyond the matrix are finite.
template <int kColumns, class Matrix>
inline void unpackPairs(Pair* to, const Matrix& matrix, long column, long first, long count) {
  for (int v = 0; v < kColumns / kLanes; v++) {
    const long group = column / kLanes + v, across = group / 2;
    for (long n = 0; n < count; n += kLanes) {
      F16 lines[kLanes];
      if (across < matrix.across()) {
        const long down = 2 * (first + n) / kLanes;
        const auto lower = matrix.tile(down, across);
        const auto upper = matrix.tile(std::min(down + 1, matrix.down() - 1), across);
        const F16 scales[] = {lower.scales(), upper.scales()}, offsets[] = {lower.offsets(), upper.offsets()};
        for (int i = 0; i < kLanes; i++)
          lines[i] = roundedNeighbours(lower.line(group % 2, i, scales[0], offsets[0]),
                                       upper.line(group % 2, i, scales[1], offsets[1]));
        transpose(lines);
      } else {
        std::fill_n(lines, kLanes, zero());
      }
      float* line = reinterpret_cast<float*>(to + n * kColumns + v * kLanes);
      for (int i = 0; i < kLanes; i++) store(line + i * kColumns, lines[i]);
    }
  }
}

}  // namespace DRMAS_ISA
}  // namespace drmas
