import type { BackendDeclaration } from '../backends/backend-declaration.js';
import { readConfig } from '../model/formats/model-config.js';
import { readJson, readTokenizer } from '../model/formats/tokenizer-files.js';
import { engineDevice } from '../tensor/engine-device.js';
import { EMBEDDED_CAPABILITIES } from './embedded-backend.js';
import { embeddedSchema } from './embedded-schema.js';
import { prepareExport } from './export-policy.js';
import { memoryPlan } from './memory/footprint.js';
import { startEmbedded } from './start-embedded.js';

/** The engine of this package, in a worker thread of this process. */
export const embedded: BackendDeclaration<typeof embeddedSchema> = {
  schema: embeddedSchema,
  capabilities: EMBEDDED_CAPABILITIES,
  open: ({ device, recompute }, { host }) => {
    const { threads, files, notify } = host;
    return startEmbedded({ threads, files, device: host.device ?? device, recompute, onProgress: notify });
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
