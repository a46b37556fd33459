/** Which files of a model's repository are needed: never code, never pickled weights. */
import { HubError } from '../errors.js';

export type NeededFiles = 'all' | 'tokenizer';

const CONFIG = 'config.json';
const WEIGHTS = 'model.safetensors';
export const INDEX = 'model.safetensors.index.json';
const OWN_TOKENIZER = 'drmas_tokenizer.json';
const TOKENIZER = ['tokenizer.json', 'tokenizer_config.json'];
const TEMPLATES = ['chat_template.jinja', 'additional_chat_templates/tool_use.jinja'];
const OPTIONAL = ['generation_config.json', 'special_tokens_map.json', ...TEMPLATES, OWN_TOKENIZER];

/** The small files to download, if the repository has them. The index of weights in several files is one of them. */
export function smallFiles(there: ReadonlySet<string>, needed: NeededFiles): string[] {
  const wanted = [CONFIG, ...TOKENIZER, ...OPTIONAL, ...(needed === 'all' && !there.has(WEIGHTS) ? [INDEX] : [])];
  return wanted.filter((name) => there.has(name));
}

/** A file that a model needs and lacks; undefined if it has all. Files that the index names are not checked. */
export function lacking(there: ReadonlySet<string>, needed: NeededFiles): string | undefined {
  const required = there.has(OWN_TOKENIZER) ? [CONFIG] : [CONFIG, ...TOKENIZER];
  const missing = required.find((name) => !there.has(name));
  if (missing !== undefined) return missing;
  return needed === 'all' && !there.has(WEIGHTS) && !there.has(INDEX) ? WEIGHTS : undefined;
}

/**
 * @param index The text of model.safetensors.index.json; undefined if the model has none
 * @throws HubError when the index does not name them
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
