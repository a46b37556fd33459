/**
 * The acts that a run's data may cause on this machine. People exchange runs, so an address, a folder or a program that
 * only the data names is used if this user has named it too: on a command line, in a recipe file, or as allowed.
 */
import { appendFile, mkdir, readFile, realpath } from 'node:fs/promises';
import { dirname, isAbsolute, join, normalize, sep } from 'node:path';
import { isObject, RunError } from '@drmas/engine/errors';
import { shellWord, visible } from '@drmas/engine/host';
import { configDirectory } from '@drmas/engine/platform';
import { parseOverride, type RecipeDefinition } from '../../../method/recipe.js';
import { isRecipeFile, shippedRecipes } from '../../../method/recipe-files.js';
import type { AblationRecord } from '../../../method/store.js';

/** Allows addresses and folders that stored data may name, separated by commas. `--allow-endpoint` adds to it. */
export const ALLOW_VARIABLE = 'DRMAS_ALLOW_ENDPOINT';

export interface StoredField {
  /** A setting as `--set` names it, with `*` for any name; or a file of the data, with the field in it. */
  readonly field: string;
  /** The effect that its value can have. */
  readonly effect: 'request' | 'open port' | 'write' | 'program' | 'read' | 'text';
  /** `asked`: used if this user named or allowed the value. `refused`: not used. `harmless`: used, for the reason. */
  readonly rule: 'asked' | 'refused' | 'harmless';
  readonly why: string;
  /** The address of the service that a key of the environment belongs to, which needs no permission. */
  readonly service?: string;
}

const OPENAI = 'https://api.openai.com';
const TINKER = 'https://tinker.thinkingmachines.dev';
const hub = 'a local model, or a name on the hub of HF_ENDPOINT';

/** The settings in `overrides` of recipe.json and ablation.json whose values are texts. */
export const storedSettings: readonly StoredField[] = [
  {
    field: 'assign.*.url',
    effect: 'request',
    rule: 'asked',
    why: 'gets prompts and OPENAI_API_KEY',
    service: OPENAI,
  },
  { field: 'backend.url', effect: 'request', rule: 'asked', why: 'gets prompts and TINKER_API_KEY', service: TINKER },
  {
    field: 'policies.*.backend.url',
    effect: 'request',
    rule: 'asked',
    why: 'gets prompts and TINKER_API_KEY',
    service: TINKER,
  },
  { field: 'sampler.url', effect: 'request', rule: 'asked', why: 'gets prompts and SAMPLER_API_KEY' },
  { field: 'policies.*.sampler.url', effect: 'request', rule: 'asked', why: 'gets prompts and SAMPLER_API_KEY' },
  { field: 'rollout.url', effect: 'request', rule: 'asked', why: 'gets tasks and REDIS_PASSWORD' },
  { field: 'rollout.publicUrl', effect: 'request', rule: 'asked', why: 'workers ask it for answers' },
  { field: 'rollout.host', effect: 'open port', rule: 'asked', why: 'others reach the run there' },
  { field: 'gateway.host', effect: 'open port', rule: 'asked', why: 'others reach the agents there' },
  { field: 'gateway.publicUrl', effect: 'request', rule: 'asked', why: "the team's programs call it" },
  { field: 'sampler.folder', effect: 'write', rule: 'asked', why: 'adapters are written there' },
  { field: 'policies.*.sampler.folder', effect: 'write', rule: 'asked', why: 'adapters are written there' },
  { field: '*.apiKey', effect: 'text', rule: 'refused', why: 'drmas stores no keys' },
  { field: 'assign.*.model.**', effect: 'read', rule: 'harmless', why: hub },
  { field: 'policies.*.model.**', effect: 'read', rule: 'harmless', why: hub },
  { field: 'model.**', effect: 'read', rule: 'harmless', why: hub },
  { field: 'policies.*.kl.reference.**', effect: 'read', rule: 'harmless', why: hub },
  { field: 'tasks.**', effect: 'read', rule: 'harmless', why: 'a local file; an address is asked for' },
  { field: 'assign.*.body.**', effect: 'text', rule: 'harmless', why: 'goes to the address of its endpoint' },
  { field: '**', effect: 'text', rule: 'harmless', why: 'a name or a text; an address is asked for' },
];

/** Other places in which data can name an address, a file or a program. */
export const storedPlaces: readonly StoredField[] = [
  {
    field: 'recipe.json: recipe.source',
    effect: 'program',
    rule: 'refused',
    why: 'a recipe file in the directory of its own run, or with a relative path, came with the data',
  },
  { field: 'ablation.json: recipe.source', effect: 'program', rule: 'refused', why: 'as in recipe.json' },
  { field: 'ablation.json: recipe.overrides', effect: 'request', rule: 'asked', why: 'settings, as above' },
  { field: 'ablation.json: vary, bundles', effect: 'request', rule: 'asked', why: 'settings, as above' },
  {
    field: 'checkpoints: tinker.json: url',
    effect: 'request',
    rule: 'asked',
    why: '`export` sends TINKER_API_KEY there',
    service: TINKER,
  },
  {
    field: 'recipe.json: resolved, agents',
    effect: 'text',
    rule: 'harmless',
    why: '`serve`, `export` and reports show it; models are local, or names on the hub of HF_ENDPOINT',
  },
  { field: 'adapter_config.json: base_model_name_or_path', effect: 'read', rule: 'harmless', why: hub },
  {
    field: 'symbolic links',
    effect: 'write',
    rule: 'refused',
    why: 'a link out of the directory leads reads and writes elsewhere',
  },
];

/** Values that `--allow-endpoint` of this process allows, and those of the command line itself. */
const allowedHere = new Set<string>();

export function allowStored(values: readonly string[]): void {
  for (const value of values) allowedHere.add(value);
}

const addressFile = () => join(configDirectory(), 'endpoints');

interface AskedValue {
  readonly path: string;
  readonly value: string;
  readonly row: StoredField;
}

function askedValues(overrides: readonly string[]): AskedValue[] {
  return overrides.flatMap((text) => {
    const { path, value } = parseOverride(text);
    return leavesOf(value, path).flatMap(([place, leaf]) => {
      const row = storedSettings.find(({ field }) => matches(field.split('.'), place)) as StoredField;
      return row.rule === 'asked' || (row.rule === 'harmless' && isAddress(leaf) && !place.includes('body'))
        ? [{ path: place.join('.'), value: leaf, row }]
        : [];
    });
  });
}

/** `URL` reads texts as `fetch` does: it drops control characters before the scheme, and tabs and line ends in it. */
const isAddress = (text: string) =>
  (URL.canParse(text) && /^(?:https?|wss?|rediss?|s3|ftp):$/.test(new URL(text).protocol)) || isShare(text);

/**
 * A share of another machine, `\\machine\share`: Windows logs in there with the user's password hash. Elsewhere such a
 * text is a name or a formula.
 */
const isShare = (path: string) => process.platform === 'win32' && /^[\\/]{2}/.test(path);

function leavesOf(value: unknown, path: readonly string[], most = 12): [readonly string[], string][] {
  if (typeof value === 'string') return [[path, value]];
  if (typeof value !== 'object' || value === null || most === 0) return [];
  return Object.entries(value).flatMap(([key, inner]) => leavesOf(inner, [...path, key], most - 1));
}

/** `*` is any key, `**` any number of keys; `*.apiKey` is that key in any place. */
function matches([first, ...rest]: readonly string[], path: readonly string[]): boolean {
  if (first === undefined) return path.length === 0;
  if (first === '**') return true;
  if (first === '*' && rest.join() === 'apiKey') return path.at(-1) === 'apiKey';
  return (first === '*' || first === path[0]) && path.length > 0 && matches(rest, path.slice(1));
}

/**
 * Remembers the addresses and folders that this user typed, so that their own runs resume without a question. If the
 * file cannot be written, the next command that opens the run asks.
 */
export async function rememberTyped(overrides: readonly string[]): Promise<void> {
  const typed = askedValues(overrides).map(({ value }) => value);
  const known = await rememberedAddresses();
  const fresh = [...new Set(typed)].filter((value) => !known.includes(value) && !value.includes('\n'));
  if (fresh.length === 0) return;
  allowStored(fresh);
  const file = addressFile();
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    .then(() => appendFile(file, `${fresh.join('\n')}\n`, { mode: 0o600 }))
    .catch(() => {});
}

const rememberedAddresses = async (): Promise<string[]> =>
  (await readFile(addressFile(), 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');

/** The recipe and the words of the command line that this user has written. */
export interface OwnWords {
  readonly definition?: RecipeDefinition | undefined;
  readonly typed?: readonly string[] | undefined;
}

/**
 * @param place The directory of the data
 * @throws RunError with the setting, its value and the flag that allows it
 */
export async function requireOwnSettings(
  place: string,
  overrides: readonly string[],
  own: OwnWords = {},
): Promise<void> {
  for (const { path, value, row } of askedValues(overrides)) await requireOwn(place, { path, value, row }, own);
}

/** As `requireOwnSettings`, for an address in another place of the data. @param field A row of `storedPlaces` */
export async function requireOwnAddress(
  place: string,
  field: string,
  value: string,
  own: OwnWords = {},
): Promise<void> {
  const row = storedPlaces.find((each) => each.field === field) as StoredField;
  await requireOwn(place, { path: field, value, row }, own);
}

async function requireOwn(place: string, { path, value, row }: AskedValue, own: OwnWords): Promise<void> {
  if (row.service !== undefined && originOf(value) === row.service) return;
  if (row.effect === 'open port' && ['127.0.0.1', '::1', 'localhost'].includes(value)) return;
  const environment = (process.env[ALLOW_VARIABLE] ?? '').split(',').map((each) => each.trim());
  const mine = [...allowedHere, ...environment, ...(await rememberedAddresses()), ...wordsOf(own)];
  if (mine.some((each) => each === value || (isAddress(value) && originOf(each) === originOf(value)))) return;
  throw new RunError(
    `${place} names ${visible(value)} (${visible(path)}: ${row.why}), and neither your recipe nor this command does; ` +
      // People copy this into a shell, and a stranger wrote the value.
      `if you trust it, add --allow-endpoint ${visible(shellWord(value))} (in programs: ${ALLOW_VARIABLE})`,
  );
}

/** Scheme, host and port; the text itself if it is no address. */
function originOf(text: string): string {
  if (!URL.canParse(text)) return text;
  const { protocol, host } = new URL(text);
  return `${protocol}//${host}`;
}

/** The texts of a recipe's settings and of its tasks' settings, and those that were typed. */
function wordsOf({ definition, typed = [] }: OwnWords): string[] {
  const { team: _, use: __, sinks: ___, tasks, ...settings } = definition?.input ?? {};
  const sources = isObject(tasks) ? [tasks, ...Object.values(tasks)] : [];
  const ofTasks = sources.flatMap((source: unknown) => (isObject(source) ? [source.settings] : []));
  const ofTyped = typed.map((text) => parseOverride(text).value);
  return leavesOf([settings, ofTasks, ofTyped], []).map(([, text]) => text);
}

/** Requires that a stored ablation names no program and no address of others. @throws RunError */
export async function requireOwnAblation(
  place: string,
  { recipe, vary, bundles = [] }: Pick<AblationRecord, 'recipe' | 'vary' | 'bundles'>,
): Promise<void> {
  await requireOwnRecipe(place, recipe.source);
  const varied = vary.flatMap(({ key, values }) => values.map((value) => `${key}=${value}`));
  await requireOwnSettings(place, [...recipe.overrides, ...bundles.flatMap(({ overrides }) => overrides), ...varied]);
}

/**
 * Requires that the recipe that data names is one that ships, or a file of this machine outside the data.
 * @throws RunError with the flag that names a recipe
 */
export async function requireOwnRecipe(place: string, source: string): Promise<void> {
  if (shippedRecipes().includes(source)) return;
  // `/proc/self/cwd/recipe.ts` means a file of the working directory, as a relative path does.
  const isFixed = isAbsolute(source) && !isShare(source) && !/^\/(?:proc|dev\/fd)\//.test(normalize(source));
  if (isFixed ? !(await isBelow(place, source)) : !isRecipeFile(source)) return;
  throw new RunError(
    `${place} names ${source} as its recipe, which would run a program that came with the data; if you have read ` +
      'it and trust it, copy it elsewhere and give it with --recipe FILE',
  );
}

async function isBelow(directory: string, file: string): Promise<boolean> {
  const real = (path: string) => realpath(path).catch(() => path);
  return (await real(file)).startsWith((await real(directory)) + sep);
}
