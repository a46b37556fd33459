// One instruction set's table. The build compiles this file, products.cpp and blocks.cpp once per set, side by side,
// with -DDRMAS_ISA=<name> and matching flags: in one unit they would take twice as long on two cores.
#include "generated/kernels.h"
#include "set.h"

namespace drmas {

void DRMAS_OF_SET(products)(KernelTable&);
void DRMAS_OF_SET(blocks)(KernelTable&);
KernelTable DRMAS_OF_SET(table)();

KernelTable DRMAS_OF_SET(table)() {
  KernelTable table{};
  table.isa = DRMAS_STRING(DRMAS_ISA);
  table.bfloat16Products = "widened";
  DRMAS_ISA::kernelsOf(table);
  DRMAS_OF_SET(products)(table);
  DRMAS_OF_SET(blocks)(table);
  return table;
}

}  // namespace drmas
