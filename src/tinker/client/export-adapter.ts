/** An adapter whose weights are on a server, as the files that PEFT reads. */
import { join } from 'node:path';
import { z } from 'zod';
import { RunError } from '../../base/errors.js';
import { nodeFiles } from '../../base/platform.js';
import type { ExportRequest, PreparedExport } from '../../engine/backends.js';
import { PROJECTIONS } from '../../engine/contract.js';
import { readAdapterDescription, writeAdapterConfig } from '../../engine/formats.js';
import { templateOf } from '../../engine/tokens.js';
import { downloadAdapter } from './adapter-download.js';
import { readSaved, SAVED_POLICY } from './saved-policy.js';

const policySettings = z.looseObject({
  model: z.object({
    type: z.literal('lora'),
    base: z.object({ path: z.string(), chatTemplate: z.string().optional() }),
    targets: z.array(z.enum(PROJECTIONS)),
  }),
});
const configFile = z.looseObject({ r: z.int().positive(), lora_alpha: z.number().positive() });

/** @throws RunError when there is no adapter, or a whole model was requested */
export async function prepareExport(request: ExportRequest): Promise<PreparedExport> {
  const { policy, from, format } = request;
  if (!(await nodeFiles.exists(join(from, SAVED_POLICY)))) throw new RunError(`${from} has no model`);
  if (format !== 'peft')
    throw new RunError(
      `policy '${policy}' is an adapter on a server, and its base is not here: export it with --format peft`,
    );
  return {
    write: (directory) => writeAdapter(request, directory),
    baseOf: async (directory) => (await readAdapterDescription(nodeFiles, directory)).base ?? '',
  };
}

/**
 * Servers do not report which modules an adapter adapts.
 * @throws BackendError with the address of the weights when they cannot be downloaded
 */
async function writeAdapter({ policy, from, settings, environment }: ExportRequest, directory: string): Promise<void> {
  if (settings === undefined) throw new RunError(`the run's recipe has no adapter '${policy}'`);
  const { model } = policySettings.parse(settings);
  const files = await downloadAdapter(await readSaved(nodeFiles, from), { environment, adapter: model });
  const weights = files.get('adapter_model.safetensors');
  const config = configFile.parse(JSON.parse(Buffer.from(files.get('adapter_config.json') ?? []).toString()));
  if (weights === undefined) throw new RunError(`the server sent no weights for policy '${policy}'`);
  const adapter = { rank: config.r, alpha: config.lora_alpha, targets: model.targets };
  const written = writeAdapterConfig({ settings: adapter, base: model.base.path });
  await nodeFiles.write(join(directory, 'adapter_config.json'), `${JSON.stringify(written, null, 2)}\n`);
  await nodeFiles.write(join(directory, 'adapter_model.safetensors'), weights);
  const { chatTemplate } = model.base;
  if (chatTemplate !== undefined)
    await nodeFiles.write(join(directory, 'chat_template.jinja'), templateOf(chatTemplate).source);
}
