import { z } from 'zod';
import { DEVICES } from '../contract/architecture.js';

/** The recipe's section `backend` for the engine of this package. */
export const embeddedSchema = z.strictObject({
  type: z.literal('embedded'),
  device: z
    .enum(DEVICES)
    .optional()
    .describe(
      'The device that computes. `gpu`: the GPU of this machine through WebGPU, which needs `npm install webgpu`. It ' +
        "is experimental, and its results differ from the processor's in the last bits. Default: `cpu`, unless " +
        '`DRMAS_KERNELS` is `webgpu`.',
    ),
  recompute: z
    .boolean()
    .default(false)
    .describe(
      "True keeps only each layer's input in training, and computes the rest again for the backward pass. It needs " +
        'less memory and more time. The gradients are the same.',
    ),
});
