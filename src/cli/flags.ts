/** The kinds of flags that a command may have, each with the type of its value. */
import { InvalidArgumentError } from 'commander';
import { DEVICES, type Device } from '../contract/architecture.js';
import { overridesOf } from '../recipe/overrides.js';

export interface Flag<Value = unknown> {
  readonly description: string;
  /** The name of the value that follows the flag; a flag without a value is typed or not. */
  readonly value?: string;
  readonly required?: true;
  readonly choices?: readonly string[];
  readonly byDefault?: Value;
  /** Reads the value, given those of the same flag before it. @throws InvalidArgumentError */
  readonly parse?: (text: string, previous: unknown) => unknown;
}

type ValueOf<F> = F extends Flag<infer Value> ? Value : never;
type Optional<Flags> = { [K in keyof Flags]: undefined extends ValueOf<Flags[K]> ? K : never }[keyof Flags];

/** The values of flags as a command gets them: a flag that was not typed and has no default is left out. */
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

export const integer = (low: number, description: string): Flag<number | undefined> => ({
  value: 'n',
  description,
  parse: atLeast(low),
});

/** Words with commas between them. */
export const list = (value: string, description: string): Flag<readonly string[] | undefined> => ({
  value,
  description,
  parse: (words) => words.split(',').map((word) => word.trim()),
});

/** A flag that may be typed several times. */
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

function atLeast(low: number) {
  return (word: string): number => {
    const value = Number(word);
    if (word.trim() !== '' && Number.isSafeInteger(value) && value >= low) return value;
    throw new InvalidArgumentError(`expected an integer >= ${low}, got '${word}'`);
  };
}

// Flags of several commands.
export const json = toggle('print machine-readable events on stdout, and nothing else there');
export const threads = integer(1, 'threads of the kernels (default: all cores)');
export const device: Flag<Device | undefined> = {
  value: 'device',
  description: 'what computes; the GPU is experimental (default: as the recipe says, else cpu)',
  choices: DEVICES,
};
export const track = repeated(
  'tracker',
  'also tell a tracker: tensorboard, mlflow=URL, trackio=URL, otel; may be repeated',
);
export const set: Flag<readonly string[]> = {
  ...repeated('key=value', 'override a leaf of the recipe, or those of a JSON file: @settings.json; may be repeated'),
  parse: (word, previous) => [...(previous as readonly string[]), ...overridesAt(word)],
};

/** Flags with the device among the overrides of the recipe, so that a run which is made of it keeps it. */
export function withDevice<Flags extends { readonly set: readonly string[]; readonly device?: Device }>({
  device: wanted,
  ...flags
}: Flags): Omit<Flags, 'device'> {
  return wanted === undefined ? flags : { ...flags, set: [...flags.set, `backend.device=${wanted}`] };
}

function overridesAt(word: string): readonly string[] {
  return word.startsWith('@') ? overridesOf(word.slice(1)) : [word];
}
