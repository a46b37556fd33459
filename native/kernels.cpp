// One instruction set's table. The build compiles this file once per set, with -DDRMAS_ISA=<name> and matching flags.
#include <utility>

#include "cache.h"
#include "elementwise.h"
#include "head.h"
#include "linear.h"
#include "norm.h"
#include "optimizer.h"
#include "peak.h"
#include "table.h"

#define DRMAS_STRING_(x) #x
#define DRMAS_STRING(x) DRMAS_STRING_(x)
#define DRMAS_JOIN_(a, b) a##b
#define DRMAS_JOIN(a, b) DRMAS_JOIN_(a, b)

namespace drmas {

extern const KernelTable DRMAS_JOIN(table_, DRMAS_ISA);

const KernelTable DRMAS_JOIN(table_, DRMAS_ISA) = {
    DRMAS_STRING(DRMAS_ISA),
    DRMAS_ISA::packedSize,
    DRMAS_ISA::pack<float>,
    DRMAS_ISA::pack<Bfloat16>,
    DRMAS_ISA::linear<float>,
    DRMAS_ISA::linear<Bfloat16>,
    DRMAS_ISA::linearWeightGradient,
    DRMAS_ISA::rmsNorm,
    DRMAS_ISA::rmsNormBackward,
    DRMAS_ISA::headNorm,
    DRMAS_ISA::headNormBackward,
    DRMAS_ISA::rope,
    DRMAS_ISA::attention,
    DRMAS_ISA::attentionBackward,
    DRMAS_ISA::cacheSlotSize,
    DRMAS_ISA::attentionCached,
    DRMAS_ISA::cacheCopy,
    DRMAS_ISA::swiglu,
    DRMAS_ISA::swigluBackward,
    DRMAS_ISA::embed<float>,
    DRMAS_ISA::embed<Bfloat16>,
    DRMAS_ISA::embedBackward,
    DRMAS_ISA::tokenLogprobs,
    DRMAS_ISA::tokenLogprobsBackward,
    DRMAS_ISA::tokenEntropyBackward,
    DRMAS_ISA::sampleTokens,
    DRMAS_ISA::sumOfSquares,
    DRMAS_ISA::add,
    DRMAS_ISA::adamw,
    DRMAS_ISA::fmaPeak,
};

}  // namespace drmas
