/** An adapter whose weights are on a server, as the files that PEFT reads. */
import { join } from 'node:path';
import type { ExportRequest, PreparedExport } from '@drmas/engine/backends';
import { PROJECTIONS } from '@drmas/engine/contract';
import { messageOf, RunError } from '@drmas/engine/errors';
import { readAdapterDescription, storedModules, writeAdapterConfig } from '@drmas/engine/formats';
import { Secret } from '@drmas/engine/host';
import { nodeFiles } from '@drmas/engine/platform';
import { chatTemplateWith, settingsOf, templateOf } from '@drmas/engine/tokens';
import { z } from 'zod';
import { downloadAdapter } from './adapter-download.js';
import { readSaved, SAVED_POLICY } from './saved-policy.js';

const policySettings = z.looseObject({
  model: z.object({
    type: z.literal('lora'),
    base: z.object({
      path: z.string(),
      chatTemplate: z.string().optional(),
      variables: z.record(z.string(), z.union([z.boolean(), z.number(), z.string()])).optional(),
    }),
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
 * Servers do not report which modules an adapter adapts; the names of its tensors do.
 * @throws BackendError with the address of the weights when they cannot be downloaded
 */
async function writeAdapter(request: ExportRequest, directory: string): Promise<void> {
  const { policy, from, settings: inRecipe } = request;
  if (inRecipe === undefined) throw new RunError(`the run's recipe has no adapter '${policy}'`);
  const { model } = policySettings.parse(inRecipe);
  const saved = await readSaved(nodeFiles, from);
  await request.requireServer(saved.url);
  const { apiKey, unread } = await keyOf(request);
  request.tell(`${saved.url} is asked for the weights, with ${apiKey === undefined ? 'no key' : 'a key'}`);
  const files = await downloadAdapter(saved, { apiKey, adapter: model }).catch((error: unknown) => {
    if (unread !== undefined) request.tell(`cannot read apiKey in the recipe: ${unread}`);
    throw error;
  });
  const weights = files.get('adapter_model.safetensors');
  const config = configFile.parse(JSON.parse(Buffer.from(files.get('adapter_config.json') ?? []).toString()));
  if (weights === undefined) throw new RunError(`the server sent no weights for policy '${policy}'`);
  const file = join(directory, 'adapter_model.safetensors');
  await nodeFiles.write(file, weights);
  const modules = await storedModules(nodeFiles, file);
  if (modules.length === 0) throw new RunError(`the server sent no tensors of an adapter for policy '${policy}'`);
  const settings = { rank: config.r, alpha: config.lora_alpha };
  const written = writeAdapterConfig({ settings, base: model.base.path }, modules);
  await nodeFiles.write(join(directory, 'adapter_config.json'), `${JSON.stringify(written, null, 2)}\n`);
  const chatTemplate = chatTemplateWith(model.base);
  // Variables alone belong to the base's own template, which is not here.
  if (chatTemplate !== undefined && settingsOf(chatTemplate).rest !== '')
    await nodeFiles.write(join(directory, 'chat_template.jinja'), templateOf(chatTemplate).source);
}

/** The key as in training: the recipe's, else the environment's. `unread`: the reason if the recipe cannot load. */
async function keyOf({ environment, apiKey }: ExportRequest): Promise<{ apiKey?: Secret; unread?: string }> {
  const { TINKER_API_KEY: key } = environment;
  const ofEnvironment = key ? { apiKey: new Secret(key) } : {};
  try {
    const inRecipe = await apiKey?.();
    return inRecipe === undefined ? ofEnvironment : { apiKey: inRecipe };
  } catch (error) {
    return { ...ofEnvironment, unread: messageOf(error) };
  }
}
