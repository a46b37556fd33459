// Products whose operands are rounded to bfloat16, by tiles of 16 x 16 sums (AMX). They are written once over the
// registers of simd/tiles.h, so that all but a processor's own instructions is the same code, and tested, where these
// are emulated.
//
// Order of accumulation: over the inputs (or over the rows, for the weight gradient) in blocks of 32 numbers. The last
// block is filled up with zeros. Each block is summed as one instruction sums it (simd/tiles.h) and then added to the
// sum of the blocks before. Every output element has that order, whatever the tile, the task or the thread.
//
// Layout: both operands are in panels of 16 rows of `out`, or of 16 of its columns, and in whole tiles. Each tile is
// one run of memory.
#pragma once
#include <algorithm>

#include "../../simd/tiles.h"
#include "rounded-pairs.h"

namespace drmas {
namespace DRMAS_ISA {

inline long tilesOf(long count) { return (count + kTile - 1) / kTile; }
/// The pairs of this many numbers, in whole tiles.
inline long tilePairsOf(long count) { return kTile * tilesOf(pairsOf(count)); }

inline size_t bfloat16PackedSize(long inputs, long outputs) {
  return static_cast<size_t>(2 * tilePairsOf(inputs)) * kTile * tilesOf(outputs);
}

template <class Element>
inline void bfloat16Pack(Pool& pool, Bfloat16* packed, const Element* weight, long inputs, long outputs,
                       bool transpose) {
  packPairs<kTile, Operand::Right>(pool, reinterpret_cast<Pair*>(packed), weight, inputs, outputs, transpose,
                                   tilePairsOf(inputs));
}

// Four registers hold sums, two the left operand's tiles, one below the other, two the right one's, side by side.
constexpr Register<4> kUpper;
constexpr Register<5> kLower;
constexpr Register<6> kLeft;
constexpr Register<7> kRight;
constexpr long kTileBytes = kTile * sizeof(float);  // of one row

/// Calls body(register, i, j) for the sums of kDown x kAcross tiles.
template <int kDown, int kAcross, class Body>
inline void forSums(const Body& body) {
  body(Register<0>{}, 0, 0);
  if constexpr (kAcross == 2) body(Register<1>{}, 0, 1);
  if constexpr (kDown == 2) body(Register<2>{}, 1, 0);
  if constexpr (kDown == 2 && kAcross == 2) body(Register<3>{}, 1, 1);
}

/// kDown x kAcross tiles of out; `rows` rows and `columns` columns of them are inside the matrix. Multiplies `count`
/// pairs of panels that have `pairs`.
template <int kDown, int kAcross>
inline void multiplyTiles(Tiles& tiles, float* out, long outputs, long rows, long columns, const Pair* a,
                          const Pair* panels, long pairs, long count, Write write) {
  alignas(64) float edge[kTile * kTile];
  const auto placeOf = [&](int i, int j) { return out + i * kTile * outputs + j * kTile; };
  const auto forEdge = [&](int i, int j, const auto& body) {
    const long height = std::min<long>(kTile, rows - i * kTile), width = std::min<long>(kTile, columns - j * kTile);
    for (long r = 0; r < height; r++) body(placeOf(i, j) + r * outputs, edge + r * kTile, static_cast<int>(width));
  };
  const auto isWhole = [&](int i, int j) { return rows >= (i + 1) * kTile && columns >= (j + 1) * kTile; };
  const long outBytes = outputs * static_cast<long>(sizeof(float));

  forSums<kDown, kAcross>([&](auto sums, int i, int j) {
    if (write != Write::Continue) {
      tiles.clear(sums);
    } else if (isWhole(i, j)) {
      tiles.load(sums, placeOf(i, j), outBytes);
    } else {
      std::fill_n(edge, kTile * kTile, 0.f);
      forEdge(i, j, [](const float* outside, float* inside, int n) { store(inside, loadUpTo(outside, n)); });
      tiles.load(sums, edge, kTileBytes);
    }
  });
  for (long k = 0; k < count; k += kTile) {
    tiles.load(kUpper, a + k * kTile, kTileBytes);
    tiles.loadOnce(kLeft, panels + k * kTile, kTileBytes);
    tiles.multiply(Register<0>{}, kUpper, kLeft);
    if constexpr (kAcross == 2) {
      tiles.loadOnce(kRight, panels + (pairs + k) * kTile, kTileBytes);
      tiles.multiply(Register<1>{}, kUpper, kRight);
    }
    if constexpr (kDown == 2) {
      tiles.load(kLower, a + (pairs + k) * kTile, kTileBytes);
      tiles.multiply(Register<2>{}, kLower, kLeft);
    }
    if constexpr (kDown == 2 && kAcross == 2) tiles.multiply(Register<3>{}, kLower, kRight);
  }
  forSums<kDown, kAcross>([&](auto sums, int i, int j) {
    if (isWhole(i, j) && write != Write::AddSum) return tiles.store(sums, placeOf(i, j), outBytes);
    tiles.store(sums, edge, kTileBytes);
    forEdge(i, j, [&](float* outside, const float* inside, int n) {
      const F16 sum = load(inside);
      storeUpTo(outside, write == Write::AddSum ? loadUpTo(outside, n) + sum : sum, n);
    });
  });
}

/// Rows of a matrix that are rounded before they are multiplied: few enough to be still near then, and whole blocks of
/// 32, since a sum over rows takes these in order.
inline long roundedTogether(long rows, long width) {
  constexpr long kNumbers = 1 << 17, kBlock = 2 * kTile, kLeast = 8 * kBlock;
  return std::min(rows, std::max(kLeast, kNumbers / width / kBlock * kBlock));
}

/// out [rows, columns] = a bᵀ over `pairs` pairs; rows of out lie `outColumns` apart. A task is a block of columns
/// times some rows. If there are many pairs, the whole block takes a part of them at a time: that part of two panels of
/// the left operand stays in the first-level cache, and that part of the block's panels in the second-level one.
inline void multiply(Pool& pool, float* out, long outColumns, const Pair* a, const Pair* b, long rows, long columns,
                     long pairs, Write write) {
  if (rows == 0 || columns == 0 || pairs == 0) return;
  constexpr long kStep = 2 * kTile;  // rows, and columns, of four tiles
  constexpr long kMostPairs = 256, kBlockColumns = 512, kBlockRows = 512;
  const long parts = rows <= kStep ? 1 : (pairs + kMostPairs - 1) / kMostPairs;
  const long each = kTile * tilesOf((pairs + parts - 1) / parts);
  const long blocks = (columns + kBlockColumns - 1) / kBlockColumns;
  const long steps = (rows + kStep - 1) / kStep;
  const bool small = rows * columns * pairs < 1 << 15;
  long groups = (rows + kBlockRows - 1) / kBlockRows;
  while (!small && pool.threads() > 1 && groups < steps && blocks * groups < 4 * pool.threads()) groups++;
  const long stepsPerGroup = (steps + groups - 1) / groups;
  groups = (steps + stepsPerGroup - 1) / stepsPerGroup;  // fewer, where rows do not share out evenly
  const auto body = [&](long task) {
    Tiles tiles;
    const long firstColumn = task / groups * kBlockColumns, across = std::min(columns - firstColumn, kBlockColumns);
    const long firstRow = task % groups * stepsPerGroup * kStep;
    const long height = std::min(rows - firstRow, stepsPerGroup * kStep);
    float* to = out + firstRow * outColumns + firstColumn;
    // A sum in parts that is to be added once, when it is finished, is gathered elsewhere.
    static thread_local Scratch scratch;
    const bool apart = write == Write::AddSum && parts > 1;
    float* sums = apart ? scratch.floats(height * across) : to;
    const long stride = apart ? across : outColumns;
    for (long first = 0; first < pairs; first += each) {
      const Write now = first > 0 ? Write::Continue : apart ? Write::Overwrite : write;
      for (long r = 0; r < height; r += kStep)
        for (long c = 0; c < across; c += kStep) {
          const bool two = height - r > kTile;
          const auto block = across - c > kTile ? (two ? multiplyTiles<2, 2> : multiplyTiles<1, 2>)
                                                : (two ? multiplyTiles<2, 1> : multiplyTiles<1, 1>);
          block(tiles, sums + r * stride + c, stride, height - r, across - c,
                a + (firstRow + r) * pairs + first * kTile, b + (firstColumn + c) * pairs + first * kTile, pairs,
                std::min(each, pairs - first), now);
        }
    }
    if (apart) addBlock(to, outColumns, sums, height, across);
  };
  if (small)
    for (long task = 0; task < blocks * groups; task++) body(task);
  else
    pool.run(blocks * groups, body);
}

/// Some columns of out [rows, outputs] from the panels of as many outputs.
inline void multiplyRows(Pool& pool, float* out, const float* x, const Pair* panels, long rows, long inputs,
                         long outputs, long columns, bool accumulate) {
  const long pairs = tilePairsOf(inputs), together = roundedTogether(rows, inputs);
  static thread_local Scratch scratch;
  Pair* factors = scratch.take<Pair>(kTile * tilesOf(together) * pairs);
  for (long first = 0; first < rows; first += together) {
    const long count = std::min(rows - first, together);
    packPairs<kTile, Operand::Left>(pool, factors, x + first * inputs, inputs, count, true, pairs);
    multiply(pool, out + first * outputs, outputs, factors, panels, count, columns, pairs,
             accumulate ? Write::AddSum : Write::Overwrite);
  }
}

inline void bfloat16Linear(Pool& pool, float* out, const float* x, const Bfloat16* packed, long rows, long inputs,
                         long outputs, bool accumulate) {
  if (rows == 0 || inputs == 0) return;
  multiplyRows(pool, out, x, reinterpret_cast<const Pair*>(packed), rows, inputs, outputs, outputs, accumulate);
}

/// Pairs that are unpacked at a time, for as many whole panels as they fill.
constexpr long kUnpackedPairs = 1 << 21;

inline void bfloat16BlockLinearTransposed(Pool& pool, float* out, const float* x, const int32_t* blocks, long format,
                                          long rows, long inputs, long outputs, bool accumulate) {
  if (rows == 0 || inputs == 0) return;
  const long pairs = tilePairsOf(inputs), panels = std::max<long>(2, kUnpackedPairs / (kTile * pairs));
  inBlocks(blocks, format, outputs, inputs, [&](const auto& matrix) {
    static thread_local Scratch scratch;
    Pair* unpacked = scratch.take<Pair>(std::min(panels, tilesOf(outputs)) * kTile * pairs);
    for (long column = 0; column < outputs; column += panels * kTile) {
      const long columns = std::min(panels * kTile, outputs - column);
      pool.run(tilesOf(columns), [&](long panel) {
        unpackPairs<kTile>(unpacked + panel * kTile * pairs, matrix, column + panel * kTile, 0, pairs);
      });
      multiplyRows(pool, out + column, x, unpacked, rows, inputs, outputs, columns, accumulate);
    }
  });
}

inline void bfloat16LinearWeightGradient(Pool& pool, float* dWeight, const float* x, const float* dOut, long rows,
                                       long inputs, long outputs) {
  if (rows == 0) return;
  const long together = roundedTogether(rows, std::max(inputs, outputs));
  static thread_local Scratch ofInputs, ofOutputs;
  Pair* factors = ofInputs.take<Pair>(kTile * tilesOf(inputs) * tilePairsOf(together));
  Pair* gradients = ofOutputs.take<Pair>(kTile * tilesOf(outputs) * tilePairsOf(together));
  for (long first = 0; first < rows; first += together) {
    const long count = std::min(rows - first, together), pairs = tilePairsOf(count);
    packPairs<kTile, Operand::Left>(pool, factors, x + first * inputs, count, inputs, false, pairs);
    packPairs<kTile, Operand::Right>(pool, gradients, dOut + first * outputs, count, outputs, false, pairs);
    multiply(pool, dWeight, outputs, factors, gradients, inputs, outputs, pairs, Write::Continue);
  }
}

}  // namespace DRMAS_ISA
}  // namespace drmas
