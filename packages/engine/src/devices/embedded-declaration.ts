import type { BackendDeclaration } from '../backends/backend-declaration.js';
import { isTorchDevice } from '../contract/architecture.js';
import { precisionsOf } from '../contract/weights-spec.js';
import { EMBEDDED_CAPABILITIES } from '../embedded/embedded-backend.js';
import { prepareExport } from '../embedded/export-policy.js';
import { memoryPlan } from '../embedded/memory/footprint.js';
import { describeModel } from '../model/formats/stored-model.js';
import { readTokenizer } from '../model/formats/tokenizer-files.js';
import { engineDevice } from '../tensor/engine-device.js';
import { embeddedSchema } from './embedded-schema.js';
import { startEngine } from './start-engine.js';

/** The engine of this package, in a worker thread of this process, or in a worker in Python. */
export const embedded: BackendDeclaration<typeof embeddedSchema> = {
  schema: embeddedSchema,
  capabilities: EMBEDDED_CAPABILITIES,
  open: ({ device, recompute }, { host, models }) => {
    const { threads, files, signal, notify: onProgress } = host;
    const precisions = precisionsOf(models);
    const settings = { threads, device: host.device ?? device, recompute, precisions };
    return startEngine({ ...settings, files, signal, onProgress });
  },
  plan: {
    async readModel(files, directory, chatTemplate) {
      const { config, dtype, blocks } = await describeModel(files, directory);
      const kept = blocks ?? (dtype === 'bfloat16' ? dtype : 'float32');
      const tokenizer = await readTokenizer(files, directory, chatTemplate);
      return { tokenizer, context: config.context, config, kept };
    },
    async memory({ device, recompute }, planned, longest, written) {
      if (isTorchDevice(device)) {
        const { torchMemoryPlan } = await import('../torch/torch-footprint.js');
        return torchMemoryPlan({ device, recompute, longest }, planned);
      }
      if (engineDevice(device, process.env) === 'cpu') return memoryPlan({ recompute }, planned, longest);
      const { deviceMemoryPlan } = await import('../embedded/memory/device-footprint.js');
      return deviceMemoryPlan({ recompute, longest, written }, planned);
    },
    memoryElsewhere: () => undefined,
  },
  prepareExport,
};
