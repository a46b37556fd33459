// One instruction set's table. The build compiles this file once per set, with -DDRMAS_ISA=<name> and matching flags.
#include "generated/kernels.h"

#define DRMAS_STRING_(x) #x
#define DRMAS_STRING(x) DRMAS_STRING_(x)
#define DRMAS_JOIN_(a, b) a##b
#define DRMAS_JOIN(a, b) DRMAS_JOIN_(a, b)

namespace drmas {

extern const KernelTable DRMAS_JOIN(table_, DRMAS_ISA);

const KernelTable DRMAS_JOIN(table_, DRMAS_ISA) = DRMAS_ISA::tableNamed(DRMAS_STRING(DRMAS_ISA));

}  // namespace drmas
