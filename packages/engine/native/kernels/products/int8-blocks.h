// Products of rows with matrices in blocks (blocks.h) in whole numbers of 8 bits: rows are rounded, with a scale for
// each block of inputs.
//
// Rounding: scale = max |x| / 127, number = x · (127 / max |x|) to the nearest, ties to even. A block whose max |x| is
// below kSmallest has 0 for both. A row with a number that is not finite gives what is not a number.
//
// Order of accumulation: products add up within a block as whole numbers, so exactly. Blocks follow in order: the sum
// grows by (dot · weightScale + total · weightOffset) · scale, with the total of the row's numbers and only if the
// format has offsets. Each of these operations rounds to float32; no two are fused. So all sets of instructions give
// the same bits.
//
// Blocking: rows are rounded first, and lie in tiles of kDotRows. A task unpacks a panel of weights for all inputs and
// multiplies it by a block of rows, tile by tile.
#pragma once
#include <algorithm>

#include "blocks.h"
#include "rounding.h"

namespace drmas {
namespace DRMAS_ISA {

#if defined(__AVX512F__)
constexpr int kDotRows = 6;  // 24 of the 32 registers hold sums
#elif defined(__AVX2__) || defined(__aarch64__)
constexpr int kDotRows = 4;
#else
constexpr int kDotRows = 2;
#endif

/// Blocks with smaller magnitudes count as 0: 127 / max |x| would overflow for still smaller ones.
constexpr float kSmallest = 1e-30f;

/// Multiply-adds of pairs of numbers of 16 bits, which all sets have.
struct Pairs {
  static constexpr int kDepth = 2;
  using Number = int16_t;

  static Whole16 add(Whole16 sum, Whole16 weights, const int32_t* factors) { return addPairs(sum, weights, factors); }

  /// Weights lie so much above their values.
  static constexpr int32_t zeroPoint(BlockFormat format) { return format == BlockFormat::Q4_0 ? 8 : 0; }

  /// Writes the words of a tile, `stride` apart.
  template <class Tile>
  static void unpack(int32_t* to, long stride, const Tile& tile) {
    for (int group = 0; group < 2; group++)
      for (int i = 0; i < kLanes; i += 2, to += stride) store(to, paired(tile.raw(group, i), tile.raw(group, i + 1)));
  }
};

#if defined(DRMAS_FOURS)
/// Multiply-adds of four numbers of 8 bits, which some processors have.
struct Fours {
  static constexpr int kDepth = 4;
  using Number = int8_t;

  static Whole16 add(Whole16 sum, Whole16 weights, const int32_t* factors) { return addFours(sum, weights, factors); }

  static constexpr int32_t zeroPoint(BlockFormat format) {
    return format == BlockFormat::Q8_0 ? kFoursAbove : Pairs::zeroPoint(format);
  }

  template <class Tile>
  static void unpack(int32_t* to, long stride, const Tile& tile) {
    for (int i = 0; i < Tile::kBytes / (4 * kLanes); i++) {
      const Whole16 fours = turnedFours(tile.bytes() + i * 4 * kLanes);
      if constexpr (Tile::kWide) {
        store(to + i * stride, signedFours(fours));
      } else {
        store(to + i * stride, halves(fours, false));
        store(to + (i + 4) * stride, halves(fours, true));
      }
    }
  }
};
#endif

/// Words of 32 bits of a block of one row or one output.
template <class Dot>
constexpr long kWordsOfBlock = kBlock / Dot::kDepth;

inline long blocksAcross(long inputs) { return (inputs + kBlock - 1) / kBlock; }

/// Rounded rows in tiles of kDotRows. A tile has for block after block the scales of its rows, the totals of their
/// numbers, and the numbers: a word of each row, then the next.
template <class Dot>
class RoundedRows {
  static constexpr long kWords = 2 + kWordsOfBlock<Dot>;

 public:
  RoundedRows(Scratch& scratch, long rows, long inputs)
      : words_(scratch.take<int32_t>(static_cast<size_t>(rows) * blocksAcross(inputs) * kWords)),
        rows_(rows),
        across_(blocksAcross(inputs)) {}

  static long bytesOfRow(long inputs) { return 4 * blocksAcross(inputs) * kWords; }

  /// The tile that begins with a row.
  const int32_t* tile(long row) const { return words_ + row * across_ * kWords; }

  void round(long row, const float* x, long inputs) const {
    const long first = row / kDotRows * kDotRows, height = std::min<long>(kDotRows, rows_ - first);
    int32_t* to = words_ + first * across_ * kWords + (row - first);
    F16 nothing = zero();  // not a number if one of the row's is none, or infinite
    forVectors(
        inputs, [&](long i) { nothing = nothing + load(x + i) * zero(); },
        [&](long i, int rest) { nothing = nothing + loadPartial(x + i, rest) * zero(); });
    const float offset = sumLanes(nothing);
    for (long k = 0; k < inputs; k += kBlock) {
      const F16 low = loadOrZero(x + k, inputs - k), high = loadOrZero(x + k + kLanes, inputs - k - kLanes);
      const float largest = maxLane(max(max(low, zero() - low), max(high, zero() - high)));
      const bool none = !(largest >= kSmallest) || offset != 0.f;
      const float scale = (none ? 0.f : largest / 127.f) + offset;
      const F16 inverse = broadcast(none ? 0.f : 127.f / largest);
      const F16 lows = none ? zero() : roundToEven(low * inverse), highs = none ? zero() : roundToEven(high * inverse);
      std::memcpy(to, &scale, sizeof scale);
      to[height] = static_cast<int32_t>(sumLanes(lows + highs));
      typename Dot::Number numbers[kBlock];
      storeNumbers(numbers, lows);
      storeNumbers(numbers + kLanes, highs);
      int32_t words[kWordsOfBlock<Dot>];
      std::memcpy(words, numbers, sizeof words);
      for (long i = 0; i < kWordsOfBlock<Dot>; i++) to[(2 + i) * height] = words[i];
      to += height * kWords;
    }
  }

 private:
#if defined(__AVX512F__)
  static void storeNumbers(int8_t* to, F16 numbers) { storeBytes(to, numbers); }
#endif
  template <class Number>
  static void storeNumbers(Number* to, F16 numbers) {
    float each[kLanes];
    store(each, numbers);
    for (int i = 0; i < kLanes; i++) to[i] = static_cast<Number>(each[i]);
  }

  int32_t* words_;
  long rows_, across_;
};

/// Calls for bytes that will be read, into the second-level cache.
inline void callFor(const char* from, long bytes) {
  for (long line = 0; line < bytes; line += 64) __builtin_prefetch(from + line, 0, 2);
}

/// A panel unpacked for an instruction: for block after block the scales of its outputs, their offsets if the format
/// has them, and the numbers, a word of each output after the other.
template <class Dot, BlockFormat kFormat>
class DotPanel {
 public:
  static constexpr long kNumbersAt = BlockTile<kFormat>::kOffsets ? 2 * kPanel : kPanel;
  static constexpr long kWords = kNumbersAt + kWordsOfBlock<Dot> * kPanel;

  /// The panel of the outputs from `column` on, all inputs. Calls for `share` bytes from `ahead` on with each block.
  static void unpack(int32_t* to, const BlockMatrix<kFormat>& matrix, long column, long blocks, const char* ahead,
                     long share) {
    for (long block = 0; block < blocks; block++, to += kWords, ahead += share) {
      callFor(ahead, share);
      for (int v = 0; v < kVectors; v++) {
        const long down = column / kLanes + v;
        float* scales = reinterpret_cast<float*>(to + v * kLanes);
        int32_t* numbers = to + kNumbersAt + v * kLanes;
        if (down >= matrix.down()) {  // outputs beyond the last are not stored
          store(scales, zero());
          if (BlockTile<kFormat>::kOffsets) store(scales + kPanel, zero());
          for (long i = 0; i < kWordsOfBlock<Dot>; i++) std::fill_n(numbers + i * kPanel, kLanes, 0);
          continue;
        }
        const BlockTile<kFormat> tile = matrix.tile(down, block);
        store(scales, tile.scales());
        if (BlockTile<kFormat>::kOffsets) store(scales + kPanel, tile.offsets());
        Dot::unpack(numbers, kPanel, tile);
      }
    }
  }
};

/// kRows rows of a tile by a panel. Calls for `share` bytes from `ahead` on with each block.
template <int kRows, class Dot, BlockFormat kFormat>
inline void dotTile(float* out, long outStride, int width, const int32_t* rows, const int32_t* panel, long blocks,
                    bool accumulate, const char* ahead, long share) {
  using Panel = DotPanel<Dot, kFormat>;
  constexpr int32_t kZeroPoint = Dot::zeroPoint(kFormat);
  F16 sum[kRows][kVectors];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; v++) sum[r][v] = zero();
  for (long block = 0; block < blocks; block++, ahead += share) {
    callFor(ahead, share);
    const int32_t* totals = rows + kRows;
    const int32_t* factors = rows + 2 * kRows;
    const int32_t* weights = panel + Panel::kNumbersAt;
    Whole16 dots[kRows][kVectors];
#pragma GCC unroll 6
    for (int r = 0; r < kRows; r++) {
      const Whole16 start = wholes(-kZeroPoint * totals[r]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; v++) dots[r][v] = start;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kWordsOfBlock<Dot>; i++) {
      Whole16 lines[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; v++) lines[v] = load(weights + i * kPanel + v * kLanes);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; v++) dots[r][v] = Dot::add(dots[r][v], lines[v], factors + i * kRows + r);
    }
    const float* scales = reinterpret_cast<const float*>(panel);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; r++) {
      const F16 scale = broadcast(reinterpret_cast<const float*>(rows)[r]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; v++) {
        F16 product = floats(dots[r][v]) * load(scales + v * kLanes);
        if constexpr (BlockTile<kFormat>::kOffsets)
          product = product + broadcast(static_cast<float>(totals[r])) * load(scales + kPanel + v * kLanes);
        sum[r][v] = sum[r][v] + product * scale;
      }
    }
    rows += kRows * (2 + kWordsOfBlock<Dot>);
    panel += Panel::kWords;
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; v++) {
      const int rest = width - v * kLanes;
      float* to = out + r * outStride + v * kLanes;
      if (rest > 0) storeUpTo(to, accumulate ? loadUpTo(to, rest) + sum[r][v] : sum[r][v], rest);
    }
}

template <class Dot, BlockFormat kFormat, int... kRows>
constexpr auto dotTileOf(long rows, std::integer_sequence<int, kRows...>) {
  using Tile = void (*)(float*, long, int, const int32_t*, const int32_t*, long, bool, const char*, long);
  constexpr Tile tiles[] = {dotTile<kRows + 1, Dot, kFormat>...};
  return tiles[rows - 1];
}

/// Bytes of rounded rows that a task multiplies by one panel after the other.
constexpr long kBytesOfRows = 1 << 17;

template <class Dot, BlockFormat kFormat>
inline void dotLinear(Pool& pool, float* out, const float* x, const BlockMatrix<kFormat>& matrix, long rows,
                      long inputs, long outputs, bool accumulate) {
  static thread_local Scratch ofRows;
  const RoundedRows<Dot> rounded(ofRows, rows, inputs);
  forRowBlocks(pool, rows, inputs, [&](long first, long end) {
    for (long r = first; r < end; r++) rounded.round(r, x + r * inputs, inputs);
  });
  const long blocks = blocksAcross(inputs), panels = panelsOf(outputs);
  const long mostTiles = std::max<long>(1, kBytesOfRows / (kDotRows * rounded.bytesOfRow(inputs)));
  const long blockRows = mostTiles * kDotRows, parts = (rows + blockRows - 1) / blockRows;
  const auto body = [&](long task) {
    const long firstRow = task / panels * blockRows, end = std::min(rows, firstRow + blockRows);
    const long column = task % panels * kPanel;
    const int width = static_cast<int>(std::min<long>(kPanel, outputs - column));
    static thread_local Scratch scratch;
    int32_t* panel = scratch.take<int32_t>(blocks * DotPanel<Dot, kFormat>::kWords);
    // The weights of the next panel are called for meanwhile, block by block: they come from memory if rows are few.
    const auto weightsAt = [&](long down) {
      return reinterpret_cast<const char*>(matrix.words(std::min(down, matrix.down())));
    };
    const char* ahead = weightsAt(column / kLanes + kVectors);
    const long bytes = weightsAt(column / kLanes + 2 * kVectors) - ahead;
    const long tiles = (end - firstRow + kDotRows - 1) / kDotRows, share = bytes / ((tiles + 1) * blocks) + 1;
    DotPanel<Dot, kFormat>::unpack(panel, matrix, column, blocks, ahead, share);
    for (long r = firstRow; r < end; r += kDotRows) {
      ahead += share * blocks;
      const auto tile = dotTileOf<Dot, kFormat>(std::min<long>(kDotRows, rows - r),
                                                std::make_integer_sequence<int, kDotRows>{});
      tile(out + r * outputs + column, outputs, width, rounded.tile(r), panel, blocks, accumulate, ahead, share);
    }
  };
  if (rows * inputs * outputs < 32768)
    for (long task = 0; task < parts * panels; task++) body(task);
  else
    pool.run(parts * panels, body);
}

inline void int8BlockLinear(Pool& pool, float* out, const float* x, const int32_t* blocks, long format, long rows,
                            long inputs, long outputs, bool accumulate) {
  if (rows == 0 || inputs == 0) return;
  inBlocks(blocks, format, inputs, outputs, [&](const auto& matrix) {
#if defined(DRMAS_FOURS)
    if (pool.addsFours()) return dotLinear<Fours>(pool, out, x, matrix, rows, inputs, outputs, accumulate);
#endif
    dotLinear<Pairs>(pool, out, x, matrix, rows, inputs, outputs, accumulate);
  });
}

}  // namespace DRMAS_ISA
}  // namespace drmas
