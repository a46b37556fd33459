import { byteText } from '../../base/host.js';
import type { BackendDeclaration } from '../../engine/backends.js';
import { prepareExport } from './export-adapter.js';
import { readBase } from './remote-base.js';
import { TINKER_CAPABILITIES, TinkerBackend } from './tinker-backend.js';
import { tinkerSchema } from './tinker-spec.js';

/** LoRA models on a server that speaks the Tinker protocol. */
export const server: BackendDeclaration<typeof tinkerSchema> = {
  schema: tinkerSchema,
  capabilities: TINKER_CAPABILITIES,
  keyVariable: 'TINKER_API_KEY',
  open: (spec, options) => TinkerBackend.connect(spec, options),
  plan: {
    readModel: readBase,
    memory: async () => undefined,
    memoryElsewhere(policies) {
      if (policies.length === 0) return "the server's memory";
      const trained = policies.reduce((sum, policy) => sum + policy.trained, 0);
      const largest = Math.max(...policies.map(({ whole }) => whole));
      return `on the server: a base of ${byteText(2 * largest)} in 16 bits, ${byteText(16 * trained)} for adapters, gradients and AdamW in 32 bits, and working memory`;
    },
  },
  prepareExport,
};
