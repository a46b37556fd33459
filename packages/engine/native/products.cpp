// The products of one instruction set: see kernels.cpp.
#include "generated/products.h"
#include "set.h"

namespace drmas {

void DRMAS_OF_SET(products)(KernelTable&);

void DRMAS_OF_SET(products)(KernelTable& table) { DRMAS_ISA::productsOf(table); }

}  // namespace drmas
