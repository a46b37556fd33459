// The kernels on operands in bfloat16 as one instruction of some processors computes them, in the place of those that
// widen. The build compiles this file once for each, with -DDRMAS_ISA=<name> and matching flags; a compiler that does
// not know the flags compiles it without, and then there is nothing in it. With -DDRMAS_EMULATED_TILES they are AMX's
// for any processor.
#include "generated/table.h"
#include "set.h"

// Older versions of Clang write AMX's name without the second underscore.
#if defined(DRMAS_EMULATED_TILES) || defined(__AMX_BF16__) || defined(__AMXBF16__)
#include "kernels/products/bfloat16-tiles.h"
#define DRMAS_HAVE_NARROW
#elif defined(__AVX512BF16__)
#include "kernels/products/bfloat16-pairs.h"
#define DRMAS_HAVE_NARROW
#endif

namespace drmas {

bool DRMAS_OF_SET(bfloat16)(KernelTable& table);

/// Puts these kernels into the table; false if there are none.
bool DRMAS_OF_SET(bfloat16)(KernelTable& table) {
#if defined(DRMAS_HAVE_NARROW)
  table.bfloat16PackedSize = DRMAS_ISA::bfloat16PackedSize;
  table.bfloat16Pack = DRMAS_ISA::bfloat16Pack<float>;
  table.bfloat16PackBfloat16 = DRMAS_ISA::bfloat16Pack<Bfloat16>;
  table.bfloat16Linear = DRMAS_ISA::bfloat16Linear;
  table.bfloat16LinearWeightGradient = DRMAS_ISA::bfloat16LinearWeightGradient;
  table.bfloat16BlockLinearTransposed = DRMAS_ISA::bfloat16BlockLinearTransposed;
  return true;
#else
  static_cast<void>(table);
  return false;
#endif
}

}  // namespace drmas
