// The kernels on operands in bfloat16 as one instruction of some processors computes them, in the place of those that
// widen. The build compiles this file once for each, with -DDRMAS_ISA=<name> and matching flags; a compiler that does
// not know the flags compiles it without, and then there is nothing in it. With -DDRMAS_EMULATED_TILES they are AMX's
// for any processor.
#include "generated/table.h"

// Older versions of Clang write AMX's name without the second underscore.
#if defined(DRMAS_EMULATED_TILES) || defined(__AMX_BF16__) || defined(__AMXBF16__)
#include "kernels/products/narrow-tiles.h"
#define DRMAS_HAVE_NARROW
#elif defined(__AVX512BF16__)
#include "kernels/products/narrow-pairs.h"
#define DRMAS_HAVE_NARROW
#endif

#define DRMAS_JOIN_(a, b) a##b
#define DRMAS_JOIN(a, b) DRMAS_JOIN_(a, b)

namespace drmas {

bool DRMAS_JOIN(narrow_, DRMAS_ISA)(KernelTable& table);

/// Puts these kernels into the table; false where there are none.
bool DRMAS_JOIN(narrow_, DRMAS_ISA)(KernelTable& table) {
#if defined(DRMAS_HAVE_NARROW)
  table.packedNarrowSize = DRMAS_ISA::packedNarrowSize;
  table.packNarrow = DRMAS_ISA::packNarrow<float>;
  table.packNarrowBfloat16 = DRMAS_ISA::packNarrow<Bfloat16>;
  table.linearNarrow = DRMAS_ISA::linearNarrow;
  table.linearNarrowWeightGradient = DRMAS_ISA::linearNarrowWeightGradient;
  return true;
#else
  static_cast<void>(table);
  return false;
#endif
}

}  // namespace drmas
