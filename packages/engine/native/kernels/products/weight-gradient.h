// Gradients of linear layers' weights. dWeight[i][n] += sum over rows r of x[r][i] dOut[r][n], rows in order.
//
// Both operands are read across their rows, where no processor looks ahead and rows a power of two apart share a few
// places of the cache. So a task first copies a block of each to where tiles read it in order. AMD's cores with AVX-512
// lose more by a copy of x than by x as it lies; the ones before them gain by it as others do.
#pragma once
#include <algorithm>
#include <cstring>

#include "linear.h"

namespace drmas {
namespace DRMAS_ISA {

/// The columns of a matrix whose rows lie `stride` apart, kWidth by kWidth: [block of columns][row][kWidth]. Columns
/// beyond the matrix are 0.
template <int kWidth, class Value>
inline void packColumnBlocks(Value* to, const Value* from, long stride, long rows, long columns) {
  constexpr long kTogether = 4;
  for (long first = 0; first < rows; first += kTogether) {
    const long last = std::min(rows, first + kTogether);
    for (long c = 0; c < columns; c += kWidth)
      for (long r = first; r < last; r++) {
        Value* at = to + (c * rows + r * kWidth);
        const Value* source = from + r * stride + c;
        if (columns - c >= kWidth) {
          std::memcpy(at, source, kWidth * sizeof(Value));
        } else {
          std::copy_n(source, columns - c, at);
          std::fill(at + (columns - c), at + kWidth, Value{});
        }
      }
  }
}

/// A block of the gradient, and the rows of both operands that are added to it together.
template <class Element>
struct GradientBlock {
  float* dWeight;
  const Factor<Element>* x;
  const Element* dOut;
  long inputs, outputs;      // the distances of their rows
  long rows, height, width;  // rows of the operands, inputs and outputs of the block

  int tileHeight(long input) const { return static_cast<int>(std::min<long>(kTileRows, height - input)); }
  int panelWidth(long output) const { return static_cast<int>(std::min<long>(kPanel, width - output)); }
  float* at(long input, long output) const { return dWeight + input * outputs + output; }

  void addCopied(Scratch& ofInputs, Scratch& ofOutputs) const {
    auto* left = ofInputs.take<Factor<Element>>(rows * (height + kTileRows));
    auto* right = ofOutputs.take<Element>(rows * (width + kPanel));
    packColumnBlocks<kTileRows>(left, x, inputs, rows, height);
    packColumnBlocks<kPanel>(right, dOut, outputs, rows, width);
    for (long n = 0; n < width; n += kPanel)
      for (long i = 0; i < height; i += kTileRows) {
        if (i + kTileRows < height) callForTile(at(i + kTileRows, n), outputs);
        tileOf<Steps::RowsAlong, Element>(tileHeight(i))(at(i, n), outputs, panelWidth(n), left + i * rows, kTileRows,
                                                         right + n * rows, rows, Write::Continue);
      }
  }

  void addInPlace(Scratch& ofOutputs) const {
    // For few rows, loading the gradients takes longer than the multiplications.
    constexpr long kFewRows = 64;
    auto* right = ofOutputs.take<Element>(rows * kPanel);
    const long tiles = (height + kTileRows - 1) / kTileRows, calledEach = (rows + tiles - 1) / tiles;
    for (long n = 0; n < width; n += kPanel) {
      packColumnBlocks<kPanel>(right, dOut + n, outputs, rows, panelWidth(n));
      long called = n + kPanel < width ? 0 : rows;  // rows of the next panel
      for (long i = 0; i < height; i += kTileRows) {
        for (const long last = std::min(rows, called + calledEach); called < last; called++)
          for (int v = 0; v < kVectors; v++) __builtin_prefetch(dOut + called * outputs + n + kPanel + v * kLanes);
        if (rows < kFewRows && i + kTileRows < height) callForTile(at(i + kTileRows, n), outputs);
        tileOf<Steps::RowsAlong, Element>(tileHeight(i))(at(i, n), outputs, panelWidth(n), x + i, inputs, right, rows,
                                                         Write::Continue);
      }
    }
  }
};

template <class Element>
inline void weightGradient(Pool& pool, float* dWeight, const Factor<Element>* x, const Element* dOut, long rows,
                           long inputs, long outputs) {
  // Both blocks, and the gradients that the task adds to, stay in the second-level cache.
  constexpr long kBlockRows = 256, kBlockInputs = 512, kBlockPanels = 512 / kPanel;
  const long panels = panelsOf(outputs);
  const long tiles = (inputs + kTileRows - 1) / kTileRows;
  // A task is a range of inputs times a range of panels: as long ones as let all threads finish at the same time,
  // nearly.
  long tilesPerRange = 1, panelsPerGroup = 1, soonest = 2 * tiles * panels + 2;
  const auto parts = [](long whole, long each) { return (whole + each - 1) / each; };
  for (long ranges = std::max(1L, parts(inputs, kBlockInputs)), tried = 0; ranges <= tiles && tried < 8;
       ranges++, tried++)
    for (long each = std::min(panels, kBlockPanels); each >= 1; each--) {
      const long rounds = parts(parts(tiles, parts(tiles, ranges)) * parts(panels, each), pool.threads());
      const long end = rounds * parts(tiles, ranges) * each;
      if (end * 33 < soonest * 32) tilesPerRange = parts(tiles, ranges), panelsPerGroup = each, soonest = end;
    }
  const long ranges = parts(tiles, tilesPerRange), groups = parts(panels, panelsPerGroup);
  pool.run(ranges * groups, [&](long task) {
    static thread_local Scratch ofInputs, ofOutputs;
    const long firstInput = task % ranges * tilesPerRange * kTileRows;
    const long firstOutput = task / ranges * panelsPerGroup * kPanel;
    for (long first = 0; first < rows; first += kBlockRows) {
      const GradientBlock<Element> block{dWeight + firstInput * outputs + firstOutput,
                                         x + first * inputs + firstInput,
                                         dOut + first * outputs + firstOutput,
                                         inputs,
                                         outputs,
                                         std::min(kBlockRows, rows - first),
                                         std::min(inputs - firstInput, tilesPerRange * kTileRows),
                                         std::min(outputs - firstOutput, panelsPerGroup * kPanel)};
      pool.cores() == Cores::Amd ? block.addInPlace(ofOutputs) : block.addCopied(ofInputs, ofOutputs);
    }
  });
}

inline void linearWeightGradient(Pool& pool, float* dWeight, const float* x, const float* dOut, long rows, long inputs,
                                 long outputs) {
  weightGradient(pool, dWeight, x, dOut, rows, inputs, outputs);
}

}  // namespace DRMAS_ISA
}  // namespace drmas
