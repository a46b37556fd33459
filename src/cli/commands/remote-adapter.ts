/** `drmas export` for policies whose weights a server keeps. */
import { join } from 'node:path';
import { z } from 'zod';
import { downloadAdapter } from '../../backends/tinker/adapter-download.js';
import { readSaved, SAVED_POLICY } from '../../backends/tinker/saved-policy.js';
import { PROJECTIONS } from '../../contract/architecture.js';
import { RunError } from '../../core/errors.js';
import { writeAdapterConfig } from '../../model/formats/peft.js';
import { nodeFiles } from '../../platform/node-files.js';

/** Whether a policy's directory only says where a server keeps its weights. */
export const isRemote = (directory: string) => nodeFiles.exists(join(directory, SAVED_POLICY));

const adapterModel = z.object({
  type: z.literal('lora'),
  base: z.object({ path: z.string() }),
  targets: z.array(z.enum(PROJECTIONS)),
});
const policies = z.record(z.string(), z.looseObject({ model: adapterModel }));
const configFile = z.looseObject({ r: z.int().positive(), lora_alpha: z.number().positive() });

/**
 * Writes the adapter as PEFT reads it into an existing directory; servers leave out which modules it adapts.
 * @throws BackendError saying where the weights are when they cannot be had
 */
export async function writeRemoteAdapter(
  from: string,
  to: string,
  { policy, resolved }: { readonly policy: string; readonly resolved: Readonly<Record<string, unknown>> },
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  const model = policies.parse(resolved.policies)[policy]?.model;
  if (model === undefined) throw new RunError(`the run's recipe has no adapter '${policy}'`);
  const files = await downloadAdapter(await readSaved(nodeFiles, from), { environment, adapter: model });
  const weights = files.get('adapter_model.safetensors');
  const config = configFile.parse(JSON.parse(Buffer.from(files.get('adapter_config.json') ?? []).toString()));
  if (weights === undefined) throw new RunError(`the server sent no weights of policy '${policy}'`);
  const settings = { rank: config.r, alpha: config.lora_alpha, targets: model.targets };
  const written = writeAdapterConfig({ settings, base: model.base.path });
  await nodeFiles.write(join(to, 'adapter_config.json'), `${JSON.stringify(written, null, 2)}\n`);
  await nodeFiles.write(join(to, 'adapter_model.safetensors'), weights);
}
