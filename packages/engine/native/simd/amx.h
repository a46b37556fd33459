// The tile registers of a processor's core, by AMX's instructions: the only code of the products in tiles that does not
// run on emulated tiles. It does not use the compilers' intrinsics: in GCC's, a tile's load does not say that it reads
// memory.
#pragma once
#include "tiles.h"

namespace drmas {
namespace DRMAS_ISA {

/// From its making to its end the thread's tiles are in use.
class Tiles {
 public:
  Tiles() {
    struct alignas(64) {
      uint8_t palette = 1, firstRow = 0, reserved[14] = {0};
      uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {kTile, kTile, kTile, kTile, kTile, kTile, kTile, kTile};
    } shape;
    asm volatile("ldtilecfg %0" ::"m"(shape) : "memory");
  }
  /// Without tiles in use the system has less to save when it changes between threads.
  ~Tiles() { asm volatile("tilerelease" ::: "memory"); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  template <int tile>
  void clear(Register<tile>) {
    asm volatile("tilezero %%tmm%c0" ::"i"(tile));
  }
  template <int tile>
  void load(Register<tile>, const void* from, long rowBytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(int64_t{rowBytes}), "i"(tile) : "memory");
  }
  /// Leaves the first-level cache to others.
  template <int tile>
  void loadOnce(Register<tile>, const void* from, long rowBytes) {
    asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(int64_t{rowBytes}), "i"(tile) : "memory");
  }
  template <int tile>
  void store(Register<tile>, float* to, long rowBytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(int64_t{rowBytes}), "i"(tile) : "memory");
  }
  template <int sums, int rows, int columns>
  void multiply(Register<sums>, Register<rows>, Register<columns>) {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(rows), "i"(columns));
  }
};

}  // namespace DRMAS_ISA
}  // namespace drmas
