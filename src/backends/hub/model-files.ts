/** Which files of a model's repository are needed: never code, never pickled weights. */
import { HubError } from '../../core/errors.js';

/** All that loading a model takes, or what a model that is computed elsewhere leaves to this side. */
export type NeededFiles = 'all' | 'tokenizer';

const CONFIG = 'config.json';
const WEIGHTS = 'model.safetensors';
export const INDEX = 'model.safetensors.index.json';
const OWN_TOKENIZER = 'drmas_tokenizer.json';
const TOKENIZER = ['tokenizer.json', 'tokenizer_config.json'];
const OPTIONAL = ['generation_config.json', 'chat_template.jinja', OWN_TOKENIZER];

/** The small files to have, of those that are there; the index of weights in several files is one of them. */
export function smallFiles(there: ReadonlySet<string>, needed: NeededFiles): string[] {
  const wanted = [CONFIG, ...TOKENIZER, ...OPTIONAL, ...(needed === 'all' && !there.has(WEIGHTS) ? [INDEX] : [])];
  return wanted.filter((name) => there.has(name));
}

/** What a loadable model lacks; undefined where it has all but the weights that its index names. */
export function lacking(there: ReadonlySet<string>, needed: NeededFiles): string | undefined {
  const required = there.has(OWN_TOKENIZER) ? [CONFIG] : [CONFIG, ...TOKENIZER];
  const missing = required.find((name) => !there.has(name));
  if (missing !== undefined) return missing;
  return needed === 'all' && !there.has(WEIGHTS) && !there.has(INDEX) ? WEIGHTS : undefined;
}

/**
 * The weight files; `index` is the text of model.safetensors.index.json where there is one.
 * @throws HubError when the index does not say which
 */
export function weightFiles(index: string | undefined): string[] {
  if (index === undefined) return [WEIGHTS];
  const map = weightMap(index);
  const names = [...new Set(Object.values(map))];
  const wrong = names.find((name) => typeof name !== 'string' || !/^\w[\w.-]*\.safetensors$/.test(name));
  if (names.length === 0 || wrong !== undefined)
    throw new HubError('damaged', `${INDEX}: expected a weight_map from tensors to safetensors files, found ${wrong}`);
  return names as string[];
}

function weightMap(index: string): object {
  try {
    const { weight_map } = JSON.parse(index);
    return typeof weight_map === 'object' && weight_map !== null ? weight_map : {};
  } catch {
    return {};
  }
}
