// The products with matrices in blocks of one instruction set: see kernels.cpp.
#include "generated/blocks.h"
#include "set.h"

namespace drmas {

void DRMAS_OF_SET(blocks)(KernelTable&);

void DRMAS_OF_SET(blocks)(KernelTable& table) { DRMAS_ISA::blocksOf(table); }

}  // namespace drmas
