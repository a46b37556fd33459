// The tile registers that bfloat16-tiles.h computes with: AMX's or, with -DDRMAS_EMULATED_TILES, emulated ones (a
// header each beside this one).
//
// Eight registers of 16 rows, each row 16 floats or 16 pairs of bfloat16 numbers. `multiply` is TDPBF16PS, "Dot Product
// of BF16 Tiles" in Intel's Software Developer's Manual, volume 2. For each row m of one tile and column n of another,
// the products of the pairs' first numbers are summed from 0 over the 16 pairs in order, and the products of the second
// numbers likewise, by fused multiply-adds in float32. Both sums are added, and the result is added to the sum's
// register. It rounds to the nearest, ties to even; subnormal numbers count as 0, whether read or computed.
#pragma once
#include <type_traits>

#include "lanes.h"

namespace drmas {
namespace DRMAS_ISA {

constexpr int kTile = 16;

/// The name of a register: a type, since instructions have registers' numbers built in.
template <int number>
using Register = std::integral_constant<int, number>;

}  // namespace DRMAS_ISA
}  // namespace drmas

#if defined(DRMAS_EMULATED_TILES)
#include "emulated-tiles.h"
#else
#include "amx.h"
#endif
