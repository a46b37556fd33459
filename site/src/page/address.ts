/** The runs in the page's address, as in `#seed=3&set=training.groupSize=8`. */
export interface Chosen {
  readonly seed: number;
  /** Overrides of the recipe as on the command line. */
  readonly set: readonly string[];
}

const FIRST_SEED = 1;

export function chosenIn(hash: string): Chosen {
  const parameters = new URLSearchParams(hash.replace(/^#/, ''));
  const seed = Number(parameters.get('seed') ?? FIRST_SEED);
  return { seed: Number.isSafeInteger(seed) && seed >= 0 ? seed : FIRST_SEED, set: parameters.getAll('set') };
}

export function hashOf({ seed, set }: Chosen): string {
  const parameters = new URLSearchParams({ seed: String(seed) });
  for (const each of set) parameters.append('set', each);
  return `#${parameters}`;
}

/** The override with which the browser's GPU computes. */
const ON_GPU = 'backend.device=gpu';

export const onGpu = ({ set }: Chosen): boolean => set.includes(ON_GPU);

export const withGpu = ({ seed, set }: Chosen, wanted: boolean): Chosen => ({
  seed,
  set: [...set.filter((each) => each !== ON_GPU), ...(wanted ? [ON_GPU] : [])],
});
