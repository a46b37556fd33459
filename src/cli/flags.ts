/** The kinds of flags that a command may have, each with the type of its value. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { ENGINE_DEVICES, type EngineDevice } from '@drmas/engine/contract';
import { allowedHost } from '@drmas/engine/platform';
import { InvalidArgumentError } from 'commander';
import { overridesOf } from '../method/recipe-files.js';

/** The rank of the adapters of `--model`. */
const RANK = 16;

export interface Flag<Value = unknown> {
  readonly description: string;
  /** The name of the value that follows the flag. Undefined for a flag without a value. */
  readonly value?: string;
  readonly required?: true;
  readonly choices?: readonly string[];
  readonly byDefault?: Value;
  /** Reads the value; `previous` is the value so far if the flag may be repeated. @throws InvalidArgumentError */
  readonly parse?: (text: string, previous: unknown) => unknown;
}

type ValueOf<F> = F extends Flag<infer Value> ? Value : never;
type Optional<Flags> = { [K in keyof Flags]: undefined extends ValueOf<Flags[K]> ? K : never }[keyof Flags];

/** The values of the flags that a command gets. A flag that was not typed and has no default is absent. */
export type ValuesOfFlags<Flags> = {
  readonly [K in Exclude<keyof Flags, Optional<Flags>>]: ValueOf<Flags[K]>;
} & { readonly [K in Optional<Flags>]?: Exclude<ValueOf<Flags[K]>, undefined> };

export const toggle = (description: string): Flag<boolean | undefined> => ({ description });

export const text = (value: string, description: string): Flag<string | undefined> => ({ value, description });

export const requiredText = (value: string, description: string): Flag<string> => ({
  value,
  description,
  required: true,
});

/** A number for which `fits` holds. @param hint Advice about a number that does not fit */
const number = (
  value: string,
  description: string,
  expected: string,
  fits: (given: number) => boolean,
  hint: (given: number) => string = () => '',
): Flag<number | undefined> => ({
  value,
  description,
  parse: (word) => {
    const given = Number(word);
    if (word.trim() !== '' && fits(given)) return given;
    throw new InvalidArgumentError(`expected ${expected}, got '${word}'${hint(given)}`);
  },
});

export const integer = (low: number, description: string) =>
  number('n', description, `an integer >= ${low}`, (given) => Number.isSafeInteger(given) && given >= low);

export const port = (description: string) =>
  number(
    'n',
    description,
    'an integer from 0 to 65535',
    (given) => Number.isInteger(given) && given >= 0 && given < 2 ** 16,
  );

export const decimal = (description: string) => number('x', description, 'a number', Number.isFinite);

/** A number from 0 to 1. */
export const share = (description: string) =>
  number(
    'share',
    description,
    'a number from 0 to 1',
    (given) => given >= 0 && given <= 1,
    (given) => (given > 1 && given <= 100 ? `; for ${given} % write ${given / 100}` : ''),
  );

/** A share of a card, above 0 and at most 1, or a whole number of cards, as Ray takes it. */
export const cards = (description: string) => {
  const expected = 'a share of a card such as 0.5, or a whole number of cards';
  return number('x', description, expected, (given) => given > 0 && (given <= 1 || Number.isInteger(given)));
};

export const list = (value: string, description: string): Flag<readonly string[] | undefined> => ({
  value,
  description,
  parse: (words) => words.split(',').map((word) => word.trim()),
});

export const repeated = (value: string, description: string): Flag<readonly string[]> => ({
  value,
  description,
  byDefault: [],
  parse: (word, previous) => [...(previous as readonly string[]), word],
});

export const choice = <const Choice extends string>(
  value: string,
  choices: readonly Choice[],
  byDefault: NoInfer<Choice>,
  description: string,
): Flag<Choice> => ({ value, description, choices, byDefault });

export const json = toggle('print events as JSON lines on stdout, and nothing else');
export const threads = integer(1, 'threads of the kernels (default: all cores)');
export const allowHost: Flag<readonly string[]> = {
  ...repeated('name', 'also accept requests for this name of the server, such as the name of a proxy; may be repeated'),
  parse: (word, previous) => {
    const host = allowedHost(word);
    if (host === undefined) throw new InvalidArgumentError(`expected a name such as train.example, got '${word}'`);
    return [...(previous as readonly string[]), host];
  },
};
/** A checkpoint by its step, by the name of its directory, or the one with the best evaluation. */
export const checkpoint = text(
  'step',
  'checkpoint of this step, such as 40, or `best`: of the best evaluation (default: the last)',
);
export const device: Flag<EngineDevice | undefined> = {
  value: 'device',
  description:
    'compute on cpu, on a card of NVIDIA through PyTorch (cuda, cuda:1), on mps, or on gpu: WebGPU, experimental ' +
    '(default: the recipe, else cpu)',
  choices: ENGINE_DEVICES,
};
/** The device of a command that loads trained weights and no recipe. */
export const ownDevice: Flag<EngineDevice | undefined> = {
  ...device,
  description: 'compute on cpu, cuda, cuda:1, mps, or gpu: WebGPU, experimental (default: cpu)',
};
/** A flag of the commands that open stored data. The command line applies it before the command runs. */
export const allowEndpoint = repeated(
  'url',
  'use this address, or this folder, although only the stored run names it; may be repeated',
);
export const track = repeated(
  'tracker',
  'also send metrics to tensorboard, mlflow=URL, trackio=URL or otel; may be repeated',
);
export const set: Flag<readonly string[]> = {
  ...repeated(
    'key=value',
    'override a setting of the recipe, or the settings in a JSON file: @settings.json; may be repeated',
  ),
  parse: (word, previous) => [...(previous as readonly string[]), ...overridesAt(word)],
};

/** A pretrained model for all policies. */
export const model = text(
  'model',
  `train LoRA adapters of rank ${RANK} on this model: a GGUF file, a directory, a name in Ollama or LM Studio, org/name on a hub`,
);

/** Moves the device to the overrides of the recipe, so that `recipe.json` of the run records it. */
export function withDevice<Flags extends { readonly set: readonly string[]; readonly device?: EngineDevice }>({
  device: wanted,
  ...flags
}: Flags): Omit<Flags, 'device'> {
  return wanted === undefined ? flags : { ...flags, set: [...flags.set, `backend.device=${wanted}`] };
}

/**
 * Moves the model to the overrides of the recipe, before those that `--set` gives: these may refine it. A model's path
 * is relative to the working directory, as all paths on a command line are.
 */
export function withModel<Flags extends { readonly set: readonly string[]; readonly model?: string }>({
  model: path,
  ...flags
}: Flags): Omit<Flags, 'model'> {
  if (path === undefined) return flags;
  const base = { type: 'checkpoint', path: existsSync(path) ? resolve(path) : path };
  return { ...flags, set: [`model=${JSON.stringify({ type: 'lora', base, rank: RANK })}`, ...flags.set] };
}

function overridesAt(word: string): readonly string[] {
  return word.startsWith('@') ? overridesOf(word.slice(1)) : [word];
}
