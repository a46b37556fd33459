import { checkpointContract } from '../../../../test/contracts/checkpoints.js';
import { createReferenceKernels } from '../../tensor/reference/reference.js';
import { selectKernels } from '../../tensor/select.js';

checkpointContract('reference', createReferenceKernels);

const { kernels } = await selectKernels({ threads: 2 });
if (kernels.name !== 'reference') checkpointContract(kernels.name, () => kernels);
