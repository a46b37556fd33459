import { z } from 'zod';
import { DEVICES } from '../../contract/architecture.js';
import { readConfig } from '../../model/formats/model-config.js';
import { readJson, readTokenizer } from '../../model/formats/tokenizer-files.js';
import { engineDevice } from '../../tensor/engine-device.js';
import type { BackendDeclaration } from '../backend-declaration.js';
import { EMBEDDED_CAPABILITIES, EmbeddedBackend } from './embedded-backend.js';
import { prepareExport } from './export-policy.js';
import { memoryPlan } from './memory/footprint.js';

const schema = z.strictObject({
  type: z.literal('embedded'),
  device: z
    .enum(DEVICES)
    .optional()
    .describe(
      'What computes. `gpu`: the GPU of this machine through WebGPU, which needs `npm install webgpu`; it is ' +
        'experimental, and numbers differ from those of the processor in their last bits. Default: `cpu`, unless ' +
        '`DRMAS_KERNELS` is `webgpu`.',
    ),
  recompute: z
    .boolean()
    .default(false)
    .describe(
      "Whether training keeps only each layer's input and computes the rest again for the backward pass: less memory, " +
        'more time, the same gradients.',
    ),
});

/** The engine of this package, in a worker thread of this process. */
export const embedded: BackendDeclaration<typeof schema> = {
  schema,
  capabilities: EMBEDDED_CAPABILITIES,
  open: ({ device, recompute }, { host }) => {
    const { threads, files, notify } = host;
    return EmbeddedBackend.start({ threads, files, device: host.device ?? device, recompute, onProgress: notify });
  },
  plan: {
    async readModel(files, directory, chatTemplate) {
      const file = `${directory}/config.json`;
      const { config, dtype } = readConfig(await readJson(files, file), file);
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
