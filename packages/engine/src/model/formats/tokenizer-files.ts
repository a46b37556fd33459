/** A tokenizer in a model's directory: Hugging Face's files, or the description of one of drmas's tokenizers. */

import { CheckpointError, isObject, TokenizerError } from '../../errors.js';
import type { Files } from '../../host.js';
import type { Tokenizer } from '../../nouns.js';
import { createTokenizer } from '../tokenizers/create-tokenizer.js';
import { DATE_VARIABLE, settingsOf, templateOf } from '../tokenizers/named-templates.js';
import { huggingFaceForm } from '../tokenizers/tokenizer-json.js';
import { type HuggingFaceSpec, parseTextTokenizerSpec, type TextTokenizerSpec } from '../tokenizers/tokenizer-spec.js';
import { isGguf, openGgufTokenizer } from './gguf/gguf-checkpoint.js';
import { readStopTokens } from './model-config.js';
import { isThere, parseJson, readOrRefuse } from './validated-json.js';

/** The file with a description for `createTokenizer`, for tokenizers that Hugging Face's files cannot express. */
export const DRMAS_TOKENIZER = 'drmas_tokenizer.json';
export const TEMPLATE = 'chat_template.jinja';
/** The template for conversations with tools, where transformers writes it. */
const TOOL_TEMPLATE = 'additional_chat_templates/tool_use.jinja';

/**
 * Reads the tokenizer of a model's directory or GGUF file. In a directory, the ids that end a text come from
 * generation_config.json, else from config.json; the tokenizer's own also ends one.
 * @param ownTemplate A chat template in place of the directory's: its text, or the name of one that ships
 * @throws CheckpointError when files are missing or unreadable; TokenizerError when their contents cannot be used, or
 *   the template ends messages with a token that the vocabulary lacks.
 */
export async function readTokenizer(files: Files, directory: string, ownTemplate?: string): Promise<Tokenizer> {
  if (await isGguf(files, directory)) {
    const spec = await openGgufTokenizer(files, directory);
    return ownTemplate === undefined ? createTokenizer(spec) : withTemplate(spec, ownTemplate, directory);
  }
  const descriptionFile = `${directory}/${DRMAS_TOKENIZER}`;
  const description = await readOptional(files, descriptionFile);
  if (description !== undefined) {
    if (ownTemplate === undefined) return createTokenizer(parseJson(description, descriptionFile));
    throw new TokenizerError(
      `${descriptionFile} has a chat format of its own, so that it takes no chatTemplate and no variables`,
    );
  }
  const chatTemplate = await readTemplate(files, directory);
  const stopTokens = await findStopTokens(files, directory);
  const toolTemplate = await readOptional(files, `${directory}/${TOOL_TEMPLATE}`);
  const tokenizer = await readJson(files, `${directory}/tokenizer.json`);
  const config = await readConfig(files, directory);
  const spec = {
    type: 'huggingface',
    tokenizer,
    config: toolTemplate === undefined ? config : withToolTemplate(config, chatTemplate, toolTemplate),
    ...(stopTokens.length > 0 && { stopTokens }),
  };
  const whole = chatTemplate === undefined || toolTemplate !== undefined ? spec : { ...spec, chatTemplate };
  return ownTemplate === undefined ? createTokenizer(whole) : withTemplate(whole, ownTemplate, directory);
}

/**
 * The tokenizer of a model with so many rows. Real files have special tokens that the model has no row for; a text with
 * one of them is refused when it is encoded.
 * @throws CheckpointError with the complaint if ordinary text could give an id without a row
 */
export function tokenizerForRows(tokenizer: Tokenizer, rows: number, complaint: string): Tokenizer {
  if (tokenizer.vocabSize <= rows) return tokenizer;
  const spec = parseTextTokenizerSpec(tokenizer.toJSON());
  const added = spec.type === 'huggingface' ? spec.tokenizer.added_tokens : undefined;
  const special = (Array.isArray(added) ? added : []).filter((each) => each?.special === true);
  const beyond = new Set(special.map(({ id }) => id).filter((id) => id >= rows));
  if (beyond.size < tokenizer.vocabSize - rows) throw new CheckpointError(complaint);
  return createTokenizer({ ...spec, rows });
}

/** The tokens of an added_tokens.json, which gives ids, as tokenizer_config.json lists them. */
function listedById(tokens: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(tokens).map(([content, id]) => [String(id), { content }]));
}

/**
 * tokenizer_config.json, with the special tokens that only special_tokens_map.json names, and the tokens of
 * added_tokens.json if it lists none.
 */
async function readConfig(files: Files, directory: string): Promise<unknown> {
  const config = await readJson(files, `${directory}/tokenizer_config.json`);
  if (!isObject(config)) return config;
  const optional = async (name: string) => {
    const path = `${directory}/${name}`;
    const text = await readOptional(files, path);
    const value = text === undefined ? undefined : parseJson(text, path);
    return isObject(value) ? value : {};
  };
  const tokens = await optional('special_tokens_map.json');
  const missing = Object.entries(tokens).filter(([name]) => name.endsWith('_token') && (config[name] ?? null) === null);
  const added = await optional('added_tokens.json');
  const listed = config.added_tokens_decoder ?? listedById(added);
  return { ...config, ...Object.fromEntries(missing), ...(isEmpty(listed) ? {} : { added_tokens_decoder: listed }) };
}

const isEmpty = (value: unknown) => isObject(value) && Object.keys(value).length === 0;

/** The configuration with a chat template for conversations without tools, and one for those with tools. */
function withToolTemplate(config: unknown, file: string | undefined, toolTemplate: string): unknown {
  if (!isObject(config)) return config;
  const value = file ?? config.chat_template;
  const others = Array.isArray(value) ? value.filter((each) => !isObject(each) || each.name !== 'tool_use') : [];
  const named = typeof value === 'string' ? [{ name: 'default', template: value }] : others;
  return { ...config, chat_template: [...named, { name: 'tool_use', template: toolTemplate }] };
}

/**
 * A tokenizer with a chat template in place of the model's own, whose end of messages then ends responses.
 * @param ownTemplate As `readTokenizer` takes it
 * @throws TokenizerError when the template ends messages with a token that the vocabulary lacks
 */
export function withTemplate(spec: object, ownTemplate: string, place: string): Tokenizer {
  const { statements, rest } = settingsOf(ownTemplate);
  if (rest === '') return withVariables(parseTextTokenizerSpec(spec), statements, place);
  const { source, end } = templateOf(ownTemplate);
  const tokenizer = createTokenizer({ ...spec, chatTemplate: source });
  if (end === undefined) return tokenizer;
  const [endToken, ...more] = tokenizer.encode(end);
  if (endToken === undefined || more.length > 0)
    throw new TokenizerError(
      `the chat template ends messages with ${end}, which is no token of ${place}; 'plain' suits every model`,
    );
  const others = tokenizer.stopTokens.filter((token) => token !== endToken);
  return createTokenizer({ ...spec, chatTemplate: source, stopTokens: [endToken, ...others] });
}

function withVariables(spec: TextTokenizerSpec, statements: string, place: string): Tokenizer {
  const { chatTemplate, config } = spec.type === 'huggingface' ? spec : { config: { chat_template: undefined } };
  const template = chatTemplate ?? config.chat_template;
  if (typeof template === 'string') return createTokenizer({ ...spec, chatTemplate: statements + template });
  if (!Array.isArray(template)) throw new TokenizerError(`${place} has no chat template whose variables could be set`);
  const named = template.map((each) =>
    isObject(each) && typeof each.template === 'string' ? { ...each, template: statements + each.template } : each,
  );
  return createTokenizer({ ...spec, config: { ...config, chat_template: named } });
}

/** The chat template in a model's directory, or in an adapter's directory if its recipe gave the base a template. */
export function readTemplate(files: Files, directory: string): Promise<string | undefined> {
  return readOptional(files, `${directory}/${TEMPLATE}`);
}

/**
 * Whether the chat template of a model's directory or GGUF file, or the one given in its place, writes the date of the
 * day. A template that a run wrote writes that run's date.
 */
export async function writesDate(files: Files, directory: string, given = ''): Promise<boolean> {
  const writes = (templates: unknown) => {
    const text = JSON.stringify(templates) ?? '';
    return text.includes('strftime_now') && !text.includes(`{% set ${DATE_VARIABLE} = `);
  };
  if (given !== '') return writes(given);
  if (await isGguf(files, directory)) return writes((await openGgufTokenizer(files, directory)).config.chat_template);
  const names = [TEMPLATE, TOOL_TEMPLATE, 'tokenizer_config.json'];
  return writes(await Promise.all(names.map((name) => readOptional(files, `${directory}/${name}`))));
}

/** Writes the chat template of an adapter's base, which the base's own directory may lack, into the adapter's. */
export async function writeTemplate(files: Files, directory: string, tokenizer: Tokenizer): Promise<void> {
  const spec = parseTextTokenizerSpec(tokenizer.toJSON());
  if (spec.type === 'huggingface' && spec.chatTemplate !== undefined)
    await files.write(`${directory}/${TEMPLATE}`, spec.chatTemplate);
}

/**
 * Writes the files that `readTokenizer` reads into an existing directory. Two things are not written: the ids that end
 * a text, which belong to config.json, and further variables of a chat template, which belong to the recipe.
 */
export async function writeTokenizer(files: Files, directory: string, tokenizer: Tokenizer): Promise<void> {
  const spec = parseTextTokenizerSpec(tokenizer.toJSON());
  if (spec.type !== 'huggingface') {
    await files.write(`${directory}/${DRMAS_TOKENIZER}`, formatJson(spec));
    return;
  }
  await writeHuggingFace(files, directory, spec);
  await writeTemplate(files, directory, tokenizer);
}

/**
 * Adds the files of a Hugging Face tokenizer to a directory with a tokenizer of drmas, for other programs. drmas still
 * reads its own description, which is exact even if a user writes out a special token.
 * @throws CheckpointError when the description cannot be read; TokenizerError when those files cannot express it
 */
export async function addHuggingFaceTokenizer(files: Files, directory: string): Promise<void> {
  const file = `${directory}/${DRMAS_TOKENIZER}`;
  if (!(await isThere(files, file))) return;
  const spec = parseTextTokenizerSpec(await readJson(files, file));
  if (spec.type !== 'huggingface') await writeHuggingFace(files, directory, huggingFaceForm(spec));
}

async function writeHuggingFace(files: Files, directory: string, spec: HuggingFaceSpec): Promise<void> {
  await files.write(`${directory}/tokenizer.json`, formatJson(spec.tokenizer));
  await files.write(`${directory}/tokenizer_config.json`, formatJson(spec.config));
}

/** Reads a JSON file. @throws CheckpointError when the file cannot be read or is not JSON */
export async function readJson(files: Files, path: string): Promise<unknown> {
  return parseJson(await readOrRefuse(path, () => files.readText(path)), path);
}

export function formatJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

async function readOptional(files: Files, path: string): Promise<string | undefined> {
  return (await isThere(files, path)) ? readOrRefuse(path, () => files.readText(path)) : undefined;
}

async function findStopTokens(files: Files, directory: string): Promise<readonly number[]> {
  for (const name of ['generation_config.json', 'config.json']) {
    const path = `${directory}/${name}`;
    const text = await readOptional(files, path);
    const ids = text === undefined ? [] : readStopTokens(parseJson(text, path), path);
    if (ids.length > 0) return ids;
  }
  return [];
}
