import { z } from 'zod';
import { ENGINE_DEVICES } from '../contract/architecture.js';

/** The recipe's section `backend` for the engine of this package. */
export const embeddedSchema = z.strictObject({
  type: z.literal('embedded'),
  device: z
    .enum(ENGINE_DEVICES)
    .optional()
    .describe(
      'The device that computes. `cuda` and `cuda:N`: a card of NVIDIA, through PyTorch, which needs Python with ' +
        '`torch`. `mps`: the GPU of a Mac, likewise. `torch-cpu`: PyTorch on the processor, for tests, and ' +
        '`torch-cpu:1`: a second such worker. `gpu`: any GPU ' +
        "through WebGPU, which needs `npm install webgpu`; it is experimental. Results differ from the processor's in " +
        'the last bits. Default: `cpu`, unless `DRMAS_KERNELS` is `webgpu`.',
    ),
  recompute: z
    .boolean()
    .default(false)
    .describe(
      "True keeps only each layer's input in training, and computes the rest again for the backward pass. It needs " +
        'less memory and more time. The gradients are the same.',
    ),
});
