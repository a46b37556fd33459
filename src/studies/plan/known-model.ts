/** Models as far as they can be known without a download. */
import type { SizedModel } from '../../backends/backend-declaration.js';
import { modelDirectory } from '../../backends/hub/model-directory.js';
import { type BackendSpec, backendOf } from '../../backends/registry.js';
import type { AdapterSettings } from '../../contract/architecture.js';
import { HubError } from '../../core/errors.js';
import { readAdapterDescription } from '../../model/formats/peft.js';
import type { ChoiceTableSpec, ModelSpec, WholeModelSpec } from '../../model/model-spec.js';
import { contextOf, tableSize } from '../../model/table/choice-table.js';
import { bytesTokenizer } from '../../model/tokenizers/bytes.js';
import { choicesTokenizer } from '../../model/tokenizers/choice-names.js';
import { nodeFiles } from '../../platform/node-files.js';
import { wholeWeights } from '../../run/first-weights.js';

/** A model as far as it can be known without a download. */
export interface KnownModel extends SizedModel {
  /** The number of parameters, where no config tells it. */
  readonly parameters?: number;
  /** False for a stand-in whose tokenizer is not the model's. */
  readonly isHere: boolean;
  /** A sentence about what is not known of the model, and why. */
  readonly unknown?: string | undefined;
  /** Where it is an adapter on that. */
  readonly adapter?: AdapterSettings | undefined;
}

/** The settings of an adapter; undefined for a model that is none. */
export async function adapterOf(model: ModelSpec): Promise<AdapterSettings | undefined> {
  if (model.type !== 'lora') return undefined;
  return 'from' in model ? (await readAdapterDescription(nodeFiles, model.from)).settings : model;
}

/** @throws CheckpointError, TokenizerError when a model that is here cannot be used */
export async function knownModel(model: WholeModelSpec | ChoiceTableSpec, backend: BackendSpec): Promise<KnownModel> {
  if (model.type === 'choice-table') {
    const tokenizer = choicesTokenizer(model);
    return { tokenizer, config: undefined, context: contextOf(model), parameters: tableSize(model), isHere: true };
  }
  const known = wholeWeights(model, 0);
  if (known.type === 'random') {
    const { tokenizer, config } = known;
    return { tokenizer, config, context: config.context, isHere: true };
  }
  try {
    const environment = { ...process.env, HF_HUB_OFFLINE: '1' };
    const directory = await modelDirectory(known.directory, { files: 'tokenizer', environment });
    const model = await backendOf(backend).plan.readModel(nodeFiles, directory, known.chatTemplate);
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

/** A model that is not here: no more tokens than bytes. */
export function notHere(unknown?: string): KnownModel {
  return { tokenizer: bytesTokenizer(), config: undefined, context: Number.POSITIVE_INFINITY, unknown, isHere: false };
}
