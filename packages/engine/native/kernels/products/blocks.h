// Products with matrices in blocks: small whole numbers with a scale, and perhaps an offset, for each 32 inputs of an
// output, as GGUF files have them. src/engine/tensor/blocks.ts has the layout and packs it.
//
// A panel is unpacked to floats in the caches, for as many inputs as fit there, and multiplied by the tiles of floats.
// Few rows, as in decoding, unpack it in registers: storing the floats and loading them would cost more than the sums.
// A product of a scale (a float16) and a number of 8 bits is exact, so multiply-adds round once, fused or not, and
// every number has the bits that reading the file to float32 gives. Sums have linear.h's order.
#pragma once
#include <algorithm>

#include "linear.h"
#include "../norm.h"

namespace drmas {
namespace DRMAS_ISA {

enum class BlockFormat : long { Q8_0, Q4_0, Q4_1 };

/// Inputs of a block, which is two groups of kLanes inputs.
constexpr long kBlock = 2 * kLanes;

/// 16 outputs of one block of inputs: the scales of the outputs, their offsets, and their numbers input by input. Two
/// inputs that are 16 apart share bytes if a number has 4 bits.
template <BlockFormat kFormat>
class BlockTile {
 public:
  static constexpr bool kOffsets = kFormat == BlockFormat::Q4_1, kWide = kFormat == BlockFormat::Q8_0;
  static constexpr long kNumbersAt = kOffsets ? 2 * kLanes : kLanes, kBytes = (kWide ? kBlock : kLanes) * kLanes;
  static constexpr long kWords = kNumbersAt + kBytes / 4;

  explicit BlockTile(const int32_t* words)
      : scales_(reinterpret_cast<const float*>(words)), bytes_(reinterpret_cast<const uint8_t*>(words + kNumbersAt)) {}

  F16 scales() const { return load(scales_); }
  F16 offsets() const { return kOffsets ? load(scales_ + kLanes) : zero(); }
  const uint8_t* bytes() const { return bytes_; }

  /// Input i of a group, of all 16 outputs.
  F16 line(int group, int i, F16 scales, F16 offsets) const {
    const F16 numbers = floats(raw(group, i));
    if constexpr (kWide) return numbers * scales;
    if constexpr (kOffsets) return fma(numbers, scales, offsets);
    return (numbers - broadcast(8.f)) * scales;
  }

  /// Input i of a group in whole numbers, of all 16 outputs; in Q4_0 they are 8 above their values.
  Whole16 raw(int group, int i) const {
    if constexpr (kWide) return load(reinterpret_cast<const int8_t*>(bytes_) + (group * kLanes + i) * kLanes);
    return loadHalves(bytes_ + i * kLanes, group == 1);
  }

  /// One number: input k of an output.
  float number(int k, int output) const {
    const float scale = scales_[output];
    if constexpr (kWide) return static_cast<float>(static_cast<int8_t>(bytes_[k * kLanes + output])) * scale;
    const uint8_t pair = bytes_[k % kLanes * kLanes + output];
    const float number = static_cast<float>(k < kLanes ? pair & 15 : pair >> 4);
    if constexpr (kOffsets) return number * scale + scales_[kLanes + output];
    return (number - 8.f) * scale;
  }

 private:
  const float* scales_;
  const uint8_t* bytes_;
};

/// A matrix [inputs, outputs]: tiles of 16 outputs, for each of them block by block of the inputs.
template <BlockFormat kFormat>
class BlockMatrix {
  using Tile = BlockTile<kFormat>;

 public:
  BlockMatrix(const int32_t* words, long inputs, long outputs)
      : words_(words), across_((inputs + kBlock - 1) / kBlock), down_((outputs + kLanes - 1) / kLanes) {}

  size_t words() const { return static_cast<size_t>(across_) * down_ * Tile::kWords; }

  /// Blocks of inputs.
  long across() const { return across_; }
  /// Tiles of 16 outputs, and where one of them begins.
  long down() const { return down_; }
  const int32_t* words(long down) const { return words_ + down * across_ * Tile::kWords; }

  Tile tile(long down, long across) const { return Tile(words_ + (down * across_ + across) * Tile::kWords); }

  /// The tile (tile.h) of all inputs and of the outputs from `column` on, whose panel is unpacked in registers.
  template <int kRows>
  void multiply(float* out, long outStride, int width, const float* x, long inputs, long column, Write write) const {
    const int32_t* words[kVectors];
    for (int v = 0; v < kVectors; v++)  // outputs beyond the last are not stored
      words[v] = words_ + std::min(column / kLanes + v, down_ - 1) * across_ * Tile::kWords;
    const auto steps = [&](const auto& next) __attribute__((always_inline)) {
      for (long k = 0; k < inputs; k += kBlock) {
        F16 scales[kVectors], offsets[kVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; v++) {
          for (long line = 0; line < 4 * Tile::kWords; line += 64)
            __builtin_prefetch(reinterpret_cast<const char*>(words[v]) + kAheadBytes + line);
          scales[v] = Tile(words[v]).scales();
          offsets[v] = Tile(words[v]).offsets();
        }
#pragma GCC unroll 2
        for (int group = 0; group < 2; group++) {
          const int count = static_cast<int>(std::min<long>(kLanes, inputs - k - group * kLanes));
          for (int i = 0; i < count; i++) {
            F16 weights[kVectors];
#pragma GCC unroll 2
            for (int v = 0; v < kVectors; v++) weights[v] = Tile(words[v]).line(group, i, scales[v], offsets[v]);
            next(weights);
          }
        }
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; v++) words[v] += Tile::kWords;
      }
    };
    sumTile<kRows, Steps::AlongRows>(out, outStride, width, x, inputs, write, steps);
  }

  /// Writes the panel of the outputs from `column` on: `count` inputs from `first` on, a multiple of kBlock.
  void unpack(float* to, long column, long first, long count) const {
    for (int v = 0; v < kVectors; v++) {
      const long down = column / kLanes + v;
      for (long k = 0; k < count; k += kBlock) {
        float* lines = to + k * kPanel + v * kLanes;
        if (down >= down_) {
          for (int i = 0; i < kBlock; i++) store(lines + i * kPanel, zero());
          continue;
        }
        const Tile from = tile(down, (first + k) / kBlock);
        const F16 scales = from.scales(), offsets = from.offsets();
        for (int group = 0; group < 2; group++)
          for (int i = 0; i < kLanes; i++)
            store(lines + (group * kLanes + i) * kPanel, from.line(group, i, scales, offsets));
      }
    }
  }

  /// Writes the panel of the inputs from `column` on: `count` outputs from `first` on, a multiple of kLanes.
  void unpackTransposed(float* to, long column, long first, long count) const {
    for (int v = 0; v < kVectors; v++) {
      const long group = column / kLanes + v, across = group / 2;
      for (long n = 0; n < count; n += kLanes) {
        F16 lines[kLanes];
        if (across < across_) {
          const Tile from = tile((first + n) / kLanes, across);
          const F16 scales = from.scales(), offsets = from.offsets();
          for (int i = 0; i < kLanes; i++) lines[i] = from.line(group % 2, i, scales, offsets);
          transpose(lines);
        } else {
          std::fill_n(lines, kLanes, zero());
        }
        for (int i = 0; i < kLanes; i++) store(to + (n + i) * kPanel + v * kLanes, lines[i]);
      }
    }
  }

 private:
  const int32_t* words_;
  long across_, down_;
};

/// Calls body with the matrix in its format.
template <class Body>
inline auto inBlocks(const int32_t* blocks, long format, long inputs, long outputs, const Body& body) {
  switch (static_cast<BlockFormat>(format)) {
    case BlockFormat::Q4_0:
      return body(BlockMatrix<BlockFormat::Q4_0>(blocks, inputs, outputs));
    case BlockFormat::Q4_1:
      return body(BlockMatrix<BlockFormat::Q4_1>(blocks, inputs, outputs));
    default:
      return body(BlockMatrix<BlockFormat::Q8_0>(blocks, inputs, outputs));
  }
}

inline size_t blockWords(long inputs, long outputs, long format) {
  return inBlocks(nullptr, format, inputs, outputs, [](const auto& matrix) { return matrix.words(); });
}

/// The steps that are unpacked at a time: few rows read them from the first-level cache.
constexpr long kFewSteps = 4096 / kPanel, kManySteps = 512;

/// `linearOver` of panels that unpack(panel, column, first, count) writes. A panel has room for whole multiples of
/// kUnit steps.
template <class Element = float, long kUnit = kBlock, class Unpack>
inline void linearUnpacked(Pool& pool, float* out, const Factor<Element>* x, long rows, long inputs, long outputs,
                           bool accumulate, const Unpack& unpack) {
  if (rows == 0 || inputs == 0) return;
  linearOver(pool, out, x, rows, inputs, outputs, accumulate, rows <= kTileRows ? kFewSteps : kManySteps, kUnit,
             [&](long column, long first, long count, long, const auto& multiply) {
               static thread_local Scratch scratch;
               const long whole = (count + kUnit - 1) / kUnit * kUnit;
               Element* panel = scratch.take<Element>(whole * kPanel);
               unpack(panel, column, first, count);
               multiply(static_cast<const Element*>(panel));
             });
}

template <class Matrix, int... kRows>
constexpr auto fewRowsTile(long rows, std::integer_sequence<int, kRows...>) {
  using Multiply = void (Matrix::*)(float*, long, int, const float*, long, long, Write) const;
  constexpr Multiply tiles[] = {&Matrix::template multiply<kRows + 1>...};
  return tiles[rows - 1];
}

/// At most kTileRows rows.
template <class Matrix>
inline void linearFewRows(Pool& pool, float* out, const float* x, const Matrix& matrix, long rows, long inputs,
                          long outputs, bool accumulate) {
  if (rows == 0 || inputs == 0) return;
  const auto multiply = fewRowsTile<Matrix>(rows, std::make_integer_sequence<int, kTileRows>{});
  pool.run(panelsOf(outputs), [&](long panel) {
    const long column = panel * kPanel;
    const int width = static_cast<int>(std::min<long>(kPanel, outputs - column));
    (matrix.*multiply)(out + column, outputs, width, x, inputs, column,
                       accumulate ? Write::AddSum : Write::Overwrite);
  });
}

inline void blockLinear(Pool& pool, float* out, const float* x, const int32_t* blocks, long format, long rows,
                        long inputs, long outputs, bool accumulate) {
  inBlocks(blocks, format, inputs, outputs, [&](const auto& matrix) {
    if (rows <= kTileRows) return linearFewRows(pool, out, x, matrix, rows, inputs, outputs, accumulate);
    linearUnpacked(pool, out, x, rows, inputs, outputs, accumulate,
                   [&](float* to, long column, long first, long count) { matrix.unpack(to, column, first, count); });
  });
}

inline void blockLinearTransposed(Pool& pool, float* out, const float* x, const int32_t* blocks, long format, long rows,
                                  long inputs, long outputs, bool accumulate) {
  inBlocks(blocks, format, outputs, inputs, [&](const auto& matrix) {
    linearUnpacked(pool, out, x, rows, inputs, outputs, accumulate,
                   [&](float* to, long column, long first, long count) {
                     matrix.unpackTransposed(to, column, first, count);
                   });
  });
}

/// out = column of each token.
inline void blockEmbed(Pool& pool, float* out, const int32_t* blocks, long format, const int32_t* tokens, long rows,
                       long width, long vocabSize) {
  inBlocks(blocks, format, width, vocabSize, [&](const auto& matrix) {
    forRows(pool, rows, [&](long r) {
      const long down = tokens[r] / kLanes, output = tokens[r] % kLanes;
      for (long k = 0; k < width; k += kBlock) {
        const auto tile = matrix.tile(down, k / kBlock);
        for (long i = k; i < std::min(width, k + kBlock); i++)
          out[r * width + i] = tile.number(static_cast<int>(i - k), static_cast<int>(output));
      }
    });
  });
}

}  // namespace DRMAS_ISA
}  // namespace drmas
