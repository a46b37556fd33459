import { operations, toolboxSymbols } from '../../../../recipes/repair/commands.js';

/** The runs in the page's address, as in `#seed=3&set=training.groupSize=8`. */
export interface Chosen {
  readonly seed: number;
  /** Overrides of the recipe as on the command line. */
  readonly set: readonly string[];
  /** The commands' new names, in the order of `operations`; absent for the recipe's own. */
  readonly names?: readonly string[];
}

const FIRST_SEED = 1;

export function chosenIn(hash: string): Chosen {
  const parameters = new URLSearchParams(hash.replace(/^#/, ''));
  const seed = Number(parameters.get('seed') ?? FIRST_SEED);
  const names = parameters.get('names')?.split(',');
  return {
    seed: Number.isSafeInteger(seed) && seed >= 0 ? seed : FIRST_SEED,
    set: parameters.getAll('set'),
    ...(names !== undefined && nameProblem(names) === undefined && { names }),
  };
}

export function hashOf({ seed, set, names }: Chosen): string {
  const parameters = new URLSearchParams({ seed: String(seed) });
  for (const each of set) parameters.append('set', each);
  if (names !== undefined) parameters.set('names', names.join(','));
  return `#${parameters}`;
}

/** The override with which the browser's GPU computes. */
const ON_GPU = 'backend.device=gpu';

export const onGpu = ({ set }: Chosen): boolean => set.includes(ON_GPU);

export const withGpu = ({ set, ...rest }: Chosen, wanted: boolean): Chosen => ({
  ...rest,
  set: [...set.filter((each) => each !== ON_GPU), ...(wanted ? [ON_GPU] : [])],
});

const DOSE = /^tasks\.(?:train|test)\.drift=(.*)$/;
/** The share of the recipe. */
const USUAL_DOSE = 0.25;

/** The share of episodes in which the fixer is needed. */
export function doseOf({ set }: Chosen): number {
  const dose = Number(set.flatMap((each) => DOSE.exec(each)?.[1] ?? []).at(-1) ?? USUAL_DOSE);
  return dose >= 0 && dose <= 1 ? dose : USUAL_DOSE;
}

export const withDose = ({ set, ...rest }: Chosen, dose: number): Chosen => ({
  ...rest,
  set: [
    ...set.filter((each) => !DOSE.test(each)),
    ...(dose === USUAL_DOSE ? [] : ['train', 'test'].map((split) => `tasks.${split}.drift=${dose}`)),
  ],
});

/** The new names of the recipe, and the names that they replace. */
export const usualNames: readonly string[] = operations.map(({ names }) => names[2]);
export const formerNames: readonly string[] = operations.map(({ names }) => names[1]);

/** The reason why these cannot be the new names; undefined if they can. Each name is one symbol of the models. */
export function nameProblem(names: readonly string[]): string | undefined {
  if (names.length !== usualNames.length) return `expected ${usualNames.length} names, got ${names.length}`;
  const taken = new Set(toolboxSymbols.filter((symbol) => !usualNames.includes(symbol)).map((symbol) => symbol.trim()));
  for (const [i, name] of names.entries()) {
    if (!/^[a-z]{2,12}$/.test(name)) return `“${name}”: expected 2 to 12 small letters`;
    if (taken.has(name)) return `“${name}” is a word of the team already`;
    if (names.indexOf(name) !== i) return `“${name}” stands there twice`;
  }
  return undefined;
}

/** The runs of the page, side by side. */
export const variants = [
  {
    name: 'Dr. MAS',
    estimator: 'drmas',
    compares: "Each turn is compared with the same agent's turns on the same task.",
  },
  { name: 'GRPO', estimator: 'grpo', compares: 'Each episode is compared with all episodes on the same task.' },
] as const;
