/** A policy's model in a recipe: plain data, so that it can be written to recipe.json and overridden leaf by leaf. */

import { type AdapterSettings, PROJECTIONS } from '../contract/architecture.js';
import type { CheckpointSpec, ChoiceTableInput, LoraInput, TinyDecoderInput } from './model-input.js';

export type { CheckpointSpec, ChoiceTableInput, LoraInput, TinyDecoderInput };

/** A decoder trained from scratch: its first weights are random, so its recipe needs a warm start. */
export interface TinyDecoderSpec extends TinyDecoderInput {
  readonly kvHeads: number;
  readonly ropeBase: number;
}

/** A whole model. */
export type WholeModelSpec = TinyDecoderSpec | CheckpointSpec;

/**
 * A low-rank adapter, new or saved, on a base that is not trained. Policies with equal bases share one base in memory.
 */
export type LoraSpec = { readonly type: 'lora'; readonly base: WholeModelSpec } & (
  | AdapterSettings
  | { readonly from: string }
);

/** A table of logits over named choices, which a policy has in place of a language model. */
export interface ChoiceTableSpec extends ChoiceTableInput {
  readonly features: readonly string[];
  readonly length: number;
}

/** A model that is no decoder. The declaration of its kind (`ModelKind`) has all facts about it. */
export type OtherModelSpec = ChoiceTableSpec;
export type OtherModelInput = ChoiceTableInput;

export type ModelSpec = WholeModelSpec | LoraSpec | ChoiceTableSpec;

/** A whole model as it is written. */
export type WholeModelInput = TinyDecoderInput | CheckpointSpec;

/** The settings of a fresh adapter. */
export interface LoraOptions extends Pick<LoraInput, 'alpha' | 'targets'> {
  /** The columns of A and rows of B. An adapter has this, or `from`. */
  readonly rank: number;
}

/** A saved adapter. */
export interface SavedAdapter {
  /**
   * The directory of a saved adapter in PEFT's layout: from a run's checkpoint, an export or `peft`. The saved adapter
   * has its own rank, alpha and targets.
   */
  readonly from: string;
}

/** A model as it is written: a whole one, an adapter or a table of choices. */
export type ModelInput = WholeModelInput | LoraInput | ChoiceTableInput;

/**
 * A small decoder in the Llama layout with random first weights.
 *
 * @example
 * ```ts
 * import { tinyDecoder } from 'drmas';
 *
 * const model = tinyDecoder({ width: 48, layers: 2, heads: 3, feedForward: 128, context: 96, tokenizer: { type: 'bytes' } });
 * ```
 */
export function tinyDecoder(input: Omit<TinyDecoderInput, 'type'>): TinyDecoderInput {
  return { type: 'tiny-decoder', ...input };
}

/**
 * The model in a local directory in the Hugging Face layout (config.json, safetensors, tokenizer) or in a GGUF file, a
 * model that Ollama or LM Studio has on disk, by its name there, or `org/name[@revision]` on a hub, which is downloaded
 * into the cache when a run begins. A path that begins with `/`, `~`, `.` or `..` is always a directory or a file; in a
 * recipe's file `./` and `../` start at that file. `chatTemplate` is for base models, which have no template;
 * `variables` sets variables of the template.
 *
 * @example
 * ```ts
 * import { checkpoint } from 'drmas';
 *
 * const model = checkpoint('Qwen/Qwen2.5-0.5B-Instruct');
 * const base = checkpoint('Qwen/Qwen2.5-0.5B', { chatTemplate: 'chatml' });
 * const brief = checkpoint('Qwen/Qwen3-4B', { variables: { enable_thinking: false } });
 * const file = checkpoint('./model.gguf');
 * ```
 */
export function checkpoint(
  path: string,
  options: Pick<CheckpointSpec, 'chatTemplate' | 'variables'> = {},
): CheckpointSpec {
  return { type: 'checkpoint', path, ...options };
}

/**
 * A low-rank adapter (LoRA, Hu et al. 2021) on a base that is not trained: y = x W + (alpha / rank) (x A) B. Only A and
 * B are trained, separately for each policy; the base is in memory once. With `from` the adapter starts from the saved
 * one, with its rank, alpha and targets, on the base that it was trained on.
 *
 * @example
 * ```ts
 * import { checkpoint, lora } from 'drmas';
 *
 * const model = lora(checkpoint('Qwen/Qwen2.5-0.5B-Instruct'), { rank: 16 });
 * ```
 */
export function lora(base: WholeModelInput, options: LoraOptions | SavedAdapter): LoraInput {
  return { type: 'lora', base, ...options };
}

/**
 * A policy without a language model: a table of logits over named choices, such as routes, edges of a communication
 * graph or numbers of calls, which the same advantages train. The agent asks with the name of a feature, whose row
 * decides, and reads the name of a choice. All choices are equally likely at first. Its agent has `sampling: {
 * maxTokens: 1 }`.
 *
 * @example
 * ```ts
 * import { agent, choiceTable, oneOf } from 'drmas';
 *
 * const router = agent({ parse: oneOf('ask', 'skip'), sampling: { maxTokens: 1 } });
 * const policies = { router: { model: choiceTable({ choices: ['ask', 'skip'], features: ['easy', 'hard'] }) } };
 * ```
 */
export function choiceTable(input: Omit<ChoiceTableInput, 'type'>): ChoiceTableInput {
  return { type: 'choice-table', ...input };
}

export function completeDecoder(input: WholeModelInput | LoraInput): WholeModelSpec | LoraSpec {
  return input.type === 'lora' ? completeAdapter(input) : completeWhole(input);
}

export function completeAdapter(input: LoraInput): LoraSpec {
  const { base: whole, from, rank = 0, alpha = rank, targets = PROJECTIONS } = input;
  const base = completeWhole(whole);
  if (from !== undefined) return { type: 'lora', base, from };
  // The targets have one order, so that equal adapters have equal descriptions.
  const ordered = PROJECTIONS.filter((projection) => targets.includes(projection));
  return { type: 'lora', base, rank, alpha, targets: ordered };
}

/** Fills in the defaults of a whole model. */
export function completeWhole(input: WholeModelInput): WholeModelSpec {
  if (input.type === 'checkpoint') return input;
  return { ...input, kvHeads: input.kvHeads ?? input.heads, ropeBase: input.ropeBase ?? 10_000 };
}

/** The model that determines a policy's sizes, context and tokenizer: itself, or an adapter's base. */
export function wholeModel(model: ModelSpec): WholeModelSpec | OtherModelSpec {
  return model.type === 'lora' ? model.base : model;
}
