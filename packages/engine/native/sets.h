// The sets of kernels of one addon. An addon that ships has all sets of its architecture; one that is compiled on first
// use has the set that this processor takes.
#pragma once
#include "generated/table.h"

namespace drmas {

/// Null: not in this addon.
struct Sets {
  KernelTable (*avx512)();
  KernelTable (*avx2)();
  KernelTable (*portable)();
  // Kernels on operands in bfloat16, which replace those of a table; false if the compiler could not make them.
  bool (*tiles)(KernelTable&);
  bool (*pairs)(KernelTable&);
  bool (*emulatedTiles)(KernelTable&);
};

extern const Sets kSets;

}  // namespace drmas
