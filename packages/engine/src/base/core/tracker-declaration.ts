import type { RunEvent } from './events.js';
import type { RunListener } from './play/run-listener.js';
import { requireKnown } from './validation/known-options.js';

/** A run as a tracker gets it before the first event. */
export interface TrackedRun {
  /** The run's directory. */
  readonly path: string;
  /** The name of the directory. */
  readonly name: string;
  readonly recipe: string;
  /** The resolved recipe as recipe.json has it, without secrets. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** The events of the log so far; empty for a new run. */
  readonly events: readonly RunEvent[];
  /** How often the run was resumed with an accepted change of its recipe. Steps after a change get other values. */
  readonly acceptedChanges: number;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** A kind of tracker: all that the command line and the documents know about it. */
export interface TrackerDeclaration {
  /** As it is typed after `--track`. */
  readonly name: string;
  /** Whether an address follows, as in `mlflow=URL`. */
  readonly address: 'none' | 'url';
  /** A sentence for the documents. */
  readonly description: string;
  /** @throws RunError when it cannot be reached or written, before anything is played */
  open(run: TrackedRun, address: string): Promise<RunListener>;
}

/** A tracker as `defineTracker` returns it. */
export interface TrackerPlugin extends TrackerDeclaration {
  /** Tells plug-ins of a recipe apart. */
  readonly kind: 'tracker';
}

/** A tracker as its author writes it. A tracker of a recipe has no address and needs no description. */
export type TrackerDefinition = Omit<TrackerDeclaration, 'address' | 'description'> &
  Partial<Pick<TrackerDeclaration, 'address' | 'description'>>;

/**
 * Defines a tracker, which receives the events of a run. A recipe takes your own tracker with `use: [tracker]`; drmas
 * then opens it for each run of the recipe, before anything is played. It gets the events through a queue: if it throws
 * or is slow, the run goes on.
 * @throws ArgumentError for a field that no tracker has
 *
 * @example
 * ```ts
 * import { defineTracker } from 'drmas';
 *
 * export const printed = defineTracker({
 *   name: 'printed',
 *   open: async (run) => ({
 *     name: 'printed',
 *     event(event) {
 *       if (event.type === 'step') process.stderr.write(`${run.name} ${event.step}: ${event.reward?.mean}\n`);
 *     },
 *   }),
 * });
 * ```
 */
export function defineTracker<const Definition extends TrackerDefinition>(
  definition: Definition,
): Definition & TrackerPlugin {
  requireKnown<TrackerPlugin>(
    definition,
    { name: true, address: true, description: true, open: true, kind: true },
    `defineTracker: '${definition.name}' has the unknown field`,
  );
  return { address: 'none', description: '', ...definition, kind: 'tracker' };
}
