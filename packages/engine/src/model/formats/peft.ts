/**
 * Adapters in the format of PEFT (https://huggingface.co/docs/peft): adapter_config.json and adapter_model.safetensors
 * with lora_A [rank, inputs] and lora_B [outputs, rank] of every target in every layer.
 */
import { z } from 'zod';
import { type AdapterSettings, type DecoderConfig, PROJECTIONS } from '../../contract/architecture.js';
import { CheckpointError, messageOf } from '../../errors.js';
import type { Files } from '../../host.js';
import { type AdapterTensors, adapts } from '../decoder/weights/adapter-tensors.js';
import type { LayerProjection } from '../decoder/weights/decoder-tensors.js';
import { Pattern } from '../tokenizers/pattern/pattern.js';
import { Work } from '../tokenizers/work.js';
import { adapterPlaces, expectedAdapterTensors } from './adapter-layout.js';
import { finiteWeights } from './finite-weights.js';
import { encodeSafetensors, openSafetensors, requireTensor, type StoredTensor } from './safetensors.js';
import { blockNames, namedProjections, projectionsOf } from './tensor-names.js';
import { formatJson, readJson } from './tokenizer-files.js';
import { parseWith } from './validated-json.js';

export const ADAPTER_CONFIG = 'adapter_config.json';
export const ADAPTER_WEIGHTS = 'adapter_model.safetensors';

export interface AdapterDescription {
  readonly settings: AdapterSettings;
  /** The adapted model: a directory or a hub's id; undefined when the file names none. */
  readonly base: string | undefined;
}

const configFile = z.looseObject({
  peft_type: z.literal('LORA'),
  r: z.int().positive(),
  lora_alpha: z.number().positive(),
  target_modules: z.union([z.string().min(1), z.array(z.string()).min(1)]),
  base_model_name_or_path: z.string().nullish(),
  use_rslora: z.boolean().nullish(),
});

/**
 * Reads the parsed contents of an adapter_config.json.
 * @throws CheckpointError naming the key and the expected value, or the feature of the adapter that is not supported
 */
export function readAdapterConfig(json: unknown, file = ADAPTER_CONFIG): AdapterDescription {
  const raw = parseWith(configFile, json, file);
  refuseVariants(raw, file);
  const targets = readTargets(raw.target_modules, file);
  const known = PROJECTIONS.filter((projection) => targets.includes(projection));
  if (targets.includes('in') && !adapts(known, 'in'))
    throw new CheckpointError(`${file}: target_modules: in_proj is adapted only with q_proj, k_proj or v_proj`);
  return {
    settings: {
      rank: raw.r,
      // Rank-stabilised adapters (Kalajdzievski 2023) are scaled by alpha / sqrt(rank).
      alpha: raw.use_rslora ? raw.lora_alpha * Math.sqrt(raw.r) : raw.lora_alpha,
      targets: known,
    },
    base: raw.base_model_name_or_path ?? undefined,
  };
}

/** Layers of the names that patterns are compared with. The tensors show which layers an adapter has. */
const COMPARED_LAYERS = 256;

/** The projections that `target_modules` names: all, by a regular expression, or by the ends of their names. */
function readTargets(value: string | readonly string[], file: string): LayerProjection[] {
  const refuse = (name: string, why = `expected some of ${[...namedProjections.keys()].join(', ')}`) =>
    new CheckpointError(`${file}: target_modules: "${name}" is not supported, ${why}`);
  if (typeof value !== 'string')
    return value.flatMap((name) => {
      const found = projectionsThat((full) => `.${full}`.endsWith(`.${name}`));
      if (found.length === 0) throw refuse(name);
      return found;
    });
  if (value.toLowerCase() === 'all-linear') return [...PROJECTIONS];
  try {
    const pattern = new Pattern(`\\A(?:${value})\\z`);
    const fits = (name: string) => !pattern.matches(name, new Work(name.length)).next().done;
    const found = projectionsThat(fits);
    if (found.length > 0 && !OTHER_LAYERS.some(fits)) return found;
  } catch (error) {
    throw refuse(value, messageOf(error));
  }
  throw refuse(value, 'expected a pattern that fits projections of layers alone');
}

/** Linear layers and embeddings that no adapter of drmas has. */
const OTHER_LAYERS = ['lm_head', 'model.embed_tokens'];

const projectionsThat = (fits: (fullName: string) => boolean): LayerProjection[] =>
  blockNames.flatMap(([name, projection]) =>
    Array.from({ length: COMPARED_LAYERS }, (_, layer) => `model.layers.${layer}.${name}`).some(fits) ? projection : [],
  );

/** Keys that must be absent, null, false or empty. */
const UNSUPPORTED = [
  'use_dora',
  'exclude_modules',
  'lora_bias',
  'fan_in_fan_out',
  'modules_to_save',
  'rank_pattern',
  'alpha_pattern',
  'layers_to_transform',
  'layer_replication',
  'trainable_token_indices',
  'target_parameters',
  'alora_invocation_tokens',
  'use_qalora',
  'use_bdlora',
  'arrow_config',
  'kasa_config',
  'monteclora_config',
];

/** The initialisations that do not change the base; others (PiSSA, OLoRA ...) do. */
const PLAIN_STARTS: readonly unknown[] = [undefined, null, true, false, 'gaussian', 'eva', 'orthogonal'];

/** Refuses variants of LoRA whose arithmetic the engine lacks. @throws CheckpointError */
function refuseVariants(raw: Readonly<Record<string, unknown>>, file: string): void {
  const isAbsent = (value: unknown) =>
    value === false || (typeof value === 'object' && Object.keys(value ?? {}).length === 0);
  for (const key of UNSUPPORTED) {
    const value = raw[key];
    if (value === undefined || value === null || isAbsent(value)) continue;
    throw new CheckpointError(`${file}: ${key} = ${JSON.stringify(value)} is not supported`);
  }
  for (const [key, plain] of [
    ['bias', [undefined, 'none']],
    ['init_lora_weights', PLAIN_STARTS],
  ] as const)
    if (!(plain as readonly unknown[]).includes(raw[key]))
      throw new CheckpointError(`${file}: ${key} = ${JSON.stringify(raw[key])} is not supported`);
}

/**
 * The contents of an adapter_config.json.
 * @param description `base` is a directory or a hub's id
 * @param modules The adapted modules by their names inside their blocks, such as `q_proj`
 */
export function writeAdapterConfig(
  { settings, base }: { readonly settings: Omit<AdapterSettings, 'targets'>; readonly base: string | undefined },
  modules: readonly string[],
): Record<string, unknown> {
  return {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: base ?? null,
    r: settings.rank,
    lora_alpha: settings.alpha,
    lora_dropout: 0,
    target_modules: modules,
    bias: 'none',
    fan_in_fan_out: false,
    inference_mode: true,
  };
}

export const adaptedModules = (config: DecoderConfig, targets: AdapterSettings['targets']): string[] =>
  projectionsOf(config).flatMap(([name, each]) => (adapts(targets, each) ? name : []));

/** The modules that the tensors of an adapter_model.safetensors adapt, whatever their base. */
export async function storedModules(files: Files, path: string): Promise<string[]> {
  const { tensors } = await openSafetensors(files, path);
  const modules = [...tensors.keys()].map((name) => /([^.]+)\.lora_A\.weight$/.exec(name)?.[1]);
  return [...new Set(modules.filter((name) => name !== undefined))];
}

/** Writes an adapter into an existing directory so that `peft` and `openAdapterWeights` load it. */
export async function writeAdapterDirectory(
  files: Files,
  directory: string,
  content: AdapterDescription & {
    readonly config: DecoderConfig;
    readonly tensors: AdapterTensors<Float32Array>;
    readonly metadata?: Readonly<Record<string, string>>;
  },
): Promise<void> {
  const tensors = adapterPlaces(content.tensors, content.config, content.settings);
  const modules = adaptedModules(content.config, content.settings.targets);
  await files.write(`${directory}/${ADAPTER_CONFIG}`, formatJson(writeAdapterConfig(content, modules)));
  await files.write(
    `${directory}/${ADAPTER_WEIGHTS}`,
    encodeSafetensors(tensors, { format: 'pt', ...content.metadata }),
  );
}

/** Writes another base into an adapter's description; the rest stays. */
export async function nameBase(files: Files, directory: string, base: string): Promise<void> {
  const file = `${directory}/${ADAPTER_CONFIG}`;
  const config = parseWith(configFile, await readJson(files, file), file);
  await files.write(file, formatJson({ ...config, base_model_name_or_path: base }));
}

/** Reads an adapter's description. @throws CheckpointError naming the file that is missing or the key that is wrong */
export async function readAdapterDescription(files: Files, directory: string): Promise<AdapterDescription> {
  const file = `${directory}/${ADAPTER_CONFIG}`;
  return readAdapterConfig(await readJson(files, file), file);
}

/**
 * Opens an adapter's weights and checks the shapes of their tensors.
 * @throws CheckpointError when a tensor is missing, of another shape, or unknown
 */
export async function openAdapterWeights(
  files: Files,
  directory: string,
  config: DecoderConfig,
  settings: AdapterSettings,
): Promise<ReadonlyMap<string, StoredTensor>> {
  const file = `${directory}/${ADAPTER_WEIGHTS}`;
  const { tensors } = await openSafetensors(files, file);
  const left = new Set(tensors.keys());
  for (const expected of expectedAdapterTensors(config, settings)) {
    requireTensor(tensors, expected, file);
    left.delete(expected.name);
  }
  for (const name of left) throw new CheckpointError(`${file}: tensor "${name}" has no place in this adapter`);
  return new Map([...tensors].map(([name, tensor]) => [name, finiteWeights(tensor, file)]));
}
