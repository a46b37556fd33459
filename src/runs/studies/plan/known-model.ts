/** Facts about models without a download. */

import { HubError } from '../../../base/errors.js';
import { nodeFiles } from '../../../base/platform.js';
import type { BackendDeclaration, SizedModel } from '../../../engine/backends.js';
import type { AdapterSettings } from '../../../engine/contract.js';
import { modelDirectory, readAdapterDescription } from '../../../engine/formats.js';
import type { ModelSpec, OtherModelSpec, WholeModelSpec } from '../../../engine/model.js';
import { isOtherModel, modelKindOf, wholeWeights } from '../../../engine/model.js';
import { bytesTokenizer } from '../../../engine/tokens.js';

/** The facts that are known about a model without a download. */
export interface KnownModel extends SizedModel {
  /** The number of parameters, if there is no config to compute it from. */
  readonly parameters?: number;
  /** False for a stand-in whose tokenizer is not the model's. */
  readonly isHere: boolean;
  /** A sentence about the missing facts, with the reason. */
  readonly unknown?: string | undefined;
  /** The adapter on the model, if it has one. */
  readonly adapter?: AdapterSettings | undefined;
}

/** The settings of an adapter; undefined for other models. */
export async function adapterOf(model: ModelSpec): Promise<AdapterSettings | undefined> {
  if (model.type !== 'lora') return undefined;
  return 'from' in model ? (await readAdapterDescription(nodeFiles, model.from)).settings : model;
}

/** @throws CheckpointError, TokenizerError if a local model cannot be used */
export async function knownModel(
  model: WholeModelSpec | OtherModelSpec,
  { plan }: Pick<BackendDeclaration, 'plan'>,
): Promise<KnownModel> {
  if (isOtherModel(model)) return { ...modelKindOf(model).facts(model), config: undefined, isHere: true };
  const known = wholeWeights(model, 0);
  if (known.type === 'random') {
    const { tokenizer, config } = known;
    return { tokenizer, config, context: config.context, isHere: true };
  }
  try {
    const environment = { ...process.env, HF_HUB_OFFLINE: '1' };
    const directory = await modelDirectory(known.directory, { files: 'tokenizer', environment });
    const model = await plan.readModel(nodeFiles, directory, known.chatTemplate);
    if (model.config !== undefined) return { ...model, isHere: true };
    const unknown = `${known.directory} is of a family whose layers are not known here, and so its sizes`;
    return { ...model, unknown, isHere: true };
  } catch (error) {
    if (!(error instanceof HubError)) throw error;
    return notHere(
      `${known.directory} is not on this machine: its sizes are not known, and its prompts are counted in bytes`,
    );
  }
}

/** A stand-in tokenizer for a model that is not on this machine: one token a byte, the most that a text can have. */
export function notHere(unknown?: string): KnownModel {
  return { tokenizer: bytesTokenizer(), config: undefined, context: Number.POSITIVE_INFINITY, unknown, isHere: false };
}
