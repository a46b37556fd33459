import { z } from 'zod';
import type { BackendDeclaration } from '../backends/backend-declaration.js';
import { DEVICES } from '../contract/architecture.js';
import { precisionsOf } from '../contract/weights-spec.js';
import { describeModel } from '../model/formats/stored-model.js';
import { readTokenizer } from '../model/formats/tokenizer-files.js';
import { engineDevice } from '../tensor/engine-device.js';
import { EMBEDDED_CAPABILITIES, EmbeddedBackend } from './embedded-backend.js';
import { prepareExport } from './export-policy.js';
import { memoryPlan } from './memory/footprint.js';

const schema = z.strictObject({
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

/** The engine of this package, in a worker thread of this process. */
export const embedded: BackendDeclaration<typeof schema> = {
  schema,
  capabilities: EMBEDDED_CAPABILITIES,
  open: ({ device, recompute }, { host, models }) => {
    const { threads, files, notify: onProgress } = host;
    const precisions = precisionsOf(models);
    const settings = { threads, device: host.device ?? device, recompute, precisions };
    return EmbeddedBackend.start({ ...settings, files, onProgress });
  },
  plan: {
    async readModel(files, directory, chatTemplate) {
      const { config, dtype } = await describeModel(files, directory);
      const kept = dtype === 'bfloat16' ? dtype : 'float32';
      const tokenizer = await readTokenizer(files, directory, chatTemplate);
      return { tokenizer, context: config.context, config, kept };
    },
    async memory({ device, recompute }, planned, longest, written) {
      if (engineDevice(device, process.env) === 'cpu') return memoryPlan({ recompute }, planned, longest);
      const { deviceMemoryPlan } = await import('./memory/device-footprint.js');
      return deviceMemoryPlan({ recompute, longest, written }, planned);
    },
    memoryElsewhere: () => undefined,
  },
  prepareExport,
};
