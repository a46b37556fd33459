// Tile registers in memory, with the bits that AMX's have: for tests, and for processors that have none.
#pragma once
#include <cmath>

#include "tiles.h"

namespace drmas {
namespace DRMAS_ISA {

class Tiles {
 public:
  template <int tile>
  void clear(Register<tile>) {
    registers_[tile] = {};
  }
  template <int tile>
  void load(Register<tile>, const void* from, long rowBytes) {
    for (int r = 0; r < kTile; r++)
      std::memcpy(registers_[tile].rows[r], static_cast<const char*>(from) + r * rowBytes, sizeof(Line));
  }
  template <int tile>
  void loadOnce(Register<tile> to, const void* from, long rowBytes) {
    load(to, from, rowBytes);
  }
  template <int tile>
  void store(Register<tile>, float* to, long rowBytes) {
    for (int r = 0; r < kTile; r++)
      std::memcpy(reinterpret_cast<char*>(to) + r * rowBytes, registers_[tile].rows[r], sizeof(Line));
  }
  template <int sums, int rows, int columns>
  void multiply(Register<sums>, Register<rows>, Register<columns>) {
    for (int m = 0; m < kTile; m++) {
      float firsts[kTile] = {0}, seconds[kTile] = {0};
      for (int k = 0; k < kTile; k++) {
        const uint32_t factors = registers_[rows].rows[m][k];
        for (int n = 0; n < kTile; n++) {
          const uint32_t weights = registers_[columns].rows[k][n];
          firsts[n] = rounded(firsts[n] + operand(factors) * operand(weights));
          seconds[n] = rounded(seconds[n] + operand(factors >> 16) * operand(weights >> 16));
        }
      }
      for (int n = 0; n < kTile; n++) {
        uint32_t& bits = registers_[sums].rows[m][n];
        float sum;
        std::memcpy(&sum, &bits, sizeof sum);
        const double before = rounded(sum);
        sum = rounded(before + rounded(static_cast<double>(firsts[n]) + seconds[n]));
        std::memcpy(&bits, &sum, sizeof sum);
      }
    }
  }

 private:
  using Line = uint32_t[kTile];
  struct Tile {
    Line rows[kTile];
  };
  Tile registers_[8] = {};

  static double operand(uint32_t bits) { return rounded(widenedNumber(static_cast<Bfloat16>(bits))); }
  /// An exact sum in float32, subnormal ones as 0. In double precision a product of two bfloat16 numbers is exact, and
  /// so is its sum with a float, or near enough to round alike.
  static float rounded(double sum) {
    constexpr double kTiny = 0x1.ffffffp-127;  // from here on a sum of 24 bits rounds to 2^-126, which is normal
    return std::fabs(sum) < kTiny ? std::copysign(0.f, static_cast<float>(sum)) : static_cast<float>(sum);
  }
};

}  // namespace DRMAS_ISA
}  // namespace drmas
