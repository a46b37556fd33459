/**
 * Adapters in the format of PEFT (https://huggingface.co/docs/peft): adapter_config.json and adapter_model.safetensors with
 * lora_A [rank, inputs] and lora_B [outputs, rank] of every target in every layer.
 */
import { z } from 'zod';
import { type AdapterSettings, type DecoderConfig, PROJECTIONS } from '../../core/backend.js';
import { CheckpointError } from '../../core/errors.js';
import type { Files } from '../../core/files.js';
import {
  type AdapterTensors,
  adaptedMatrices,
  adapterPair,
  adapterParameterCount,
  adapterTensors,
} from '../decoder/adapter.js';
import { moduleName, projectionName } from './names.js';
import { decodeSafetensors, encodeSafetensors, type NamedTensor, requireTensor } from './safetensors.js';
import { parseWith } from './schema.js';
import { formatJson, readJson, readOrRefuse } from './tokenizer-files.js';

export const ADAPTER_CONFIG = 'adapter_config.json';
const ADAPTER_WEIGHTS = 'adapter_model.safetensors';

/** What an adapter_config.json says. */
export interface AdapterDescription {
  readonly settings: AdapterSettings;
  /** The model it adapts: a directory or a hub's id; undefined when the file names none. */
  readonly base: string | undefined;
}

const configFile = z.looseObject({
  peft_type: z.literal('LORA'),
  r: z.int().positive(),
  lora_alpha: z.number().positive(),
  target_modules: z.array(z.string()).min(1),
  base_model_name_or_path: z.string().nullish(),
  use_rslora: z.boolean().nullish(),
});

/**
 * Reads the parsed contents of an adapter_config.json.
 * @throws CheckpointError naming the key and what was expected, or what about the adapter cannot be represented.
 */
export function readAdapterConfig(json: unknown, file = ADAPTER_CONFIG): AdapterDescription {
  const raw = parseWith(configFile, json, file);
  refuseVariants(raw, file);
  const known = new Map(PROJECTIONS.map((projection) => [moduleName(projection), projection]));
  const found = raw.target_modules.map((name) => {
    const projection = known.get(name);
    if (projection !== undefined) return projection;
    throw new CheckpointError(
      `${file}: target_modules: "${name}" is not supported, expected some of ${[...known.keys()].join(', ')}`,
    );
  });
  return {
    settings: {
      rank: raw.r,
      // Rank-stabilised adapters (Kalajdzievski 2023) are scaled by alpha / sqrt(rank).
      alpha: raw.use_rslora ? raw.lora_alpha * Math.sqrt(raw.r) : raw.lora_alpha,
      targets: PROJECTIONS.filter((projection) => found.includes(projection)),
    },
    base: raw.base_model_name_or_path ?? undefined,
  };
}

/** Keys that must be absent, null, false or empty. */
const UNSUPPORTED = [
  'use_dora',
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

/** First weights that leave the base as it was; others (PiSSA, OLoRA ...) change it. */
const PLAIN_STARTS: readonly unknown[] = [undefined, null, true, false, 'gaussian', 'eva', 'orthogonal'];

/** Variants of LoRA that change the arithmetic in ways this product has no description for. */
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

/** The contents of an adapter_config.json. `base` is a directory or a hub's id. */
export function writeAdapterConfig({ settings, base }: AdapterDescription): Record<string, unknown> {
  return {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: base ?? null,
    r: settings.rank,
    lora_alpha: settings.alpha,
    lora_dropout: 0,
    target_modules: settings.targets.map(moduleName),
    bias: 'none',
    fan_in_fan_out: false,
    inference_mode: true,
  };
}

/** Where an adapter's parts lie in its tensors: for every target in every layer the two tensors of PEFT. */
function* places(config: DecoderConfig, settings: AdapterSettings, tensors: AdapterTensors) {
  const { rank } = settings;
  for (let layer = 0; layer < config.layers; layer++) {
    for (const { matrix, inputs, width, parts } of adaptedMatrices(config, settings)) {
      const { A, B } = adapterPair(tensors, layer, matrix);
      let first = 0;
      for (const [n, { projection, outputs }] of parts.entries()) {
        const name = `base_model.model.${projectionName(projection, layer)}`;
        // Both stand here as [inputs, outputs] and there as [outputs, inputs].
        yield { name: `${name}.lora_A.weight`, rows: rank, columns: inputs, data: A, first: n * rank, stride: width };
        yield { name: `${name}.lora_B.weight`, rows: outputs, columns: rank, data: B, first, stride: outputs };
        first += rank * outputs;
      }
    }
  }
}

/** Copies of an adapter's tensors under PEFT's names, as `peft` loads them. */
export function toPeft(tensors: AdapterTensors, config: DecoderConfig, settings: AdapterSettings): NamedTensor[] {
  return Array.from(places(config, settings, tensors), ({ name, rows, columns, data, first, stride }) => {
    const own = new Float32Array(rows * columns);
    for (let r = 0; r < rows; r++)
      for (let c = 0; c < columns; c++) own[r * columns + c] = data[first + c * stride + r] as number;
    return { name, shape: [rows, columns], data: own };
  });
}

/** Fills an adapter's tensors from PEFT's. @throws CheckpointError when one is missing, of another shape, or has no place */
export function fromPeft(
  target: AdapterTensors,
  source: ReadonlyMap<string, { readonly shape: readonly number[]; readonly data: Float32Array }>,
  config: DecoderConfig,
  settings: AdapterSettings,
  file = ADAPTER_WEIGHTS,
): void {
  const left = new Set(source.keys());
  for (const { name, rows, columns, data, first, stride } of places(config, settings, target)) {
    const own = requireTensor(source, { name, shape: [rows, columns] }, file).data;
    for (let r = 0; r < rows; r++)
      for (let c = 0; c < columns; c++) data[first + c * stride + r] = own[r * columns + c] as number;
    left.delete(name);
  }
  for (const name of left) throw new CheckpointError(`${file}: tensor "${name}" has no place in this adapter`);
}

/** Writes an adapter into an existing directory so that `peft` and `readAdapterDirectory` load it. */
export async function writeAdapterDirectory(
  files: Files,
  directory: string,
  content: AdapterDescription & { readonly config: DecoderConfig; readonly tensors: AdapterTensors },
): Promise<void> {
  const tensors = toPeft(content.tensors, content.config, content.settings);
  await files.write(`${directory}/${ADAPTER_CONFIG}`, formatJson(writeAdapterConfig(content)));
  await files.write(`${directory}/${ADAPTER_WEIGHTS}`, encodeSafetensors(tensors, { format: 'pt' }));
}

/** @throws CheckpointError naming the file that is missing or the key that is wrong */
export async function readAdapterDescription(files: Files, directory: string): Promise<AdapterDescription> {
  const file = `${directory}/${ADAPTER_CONFIG}`;
  return readAdapterConfig(await readJson(files, file), file);
}

/** An adapter's weights, flat in the engine's order. @throws CheckpointError naming file, tensor and expectation */
export async function readAdapterWeights(
  files: Files,
  directory: string,
  config: DecoderConfig,
  settings: AdapterSettings,
): Promise<Float32Array> {
  const file = `${directory}/${ADAPTER_WEIGHTS}`;
  const stored = decodeSafetensors(await readOrRefuse(file, () => files.readBytes(file)), file);
  const flat = new Float32Array(adapterParameterCount(config, settings));
  fromPeft(adapterTensors(config, settings, flat), stored, config, settings, file);
  return flat;
}
