import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RunEvent, Step } from '@drmas/engine/events';
import { kindOfType, lora, type ModelInput, tinyDecoder, type WholeModelInput } from '@drmas/engine/model';
import { nodeFiles } from '@drmas/engine/platform';
import type { RecipeDefinition, RecipeInput } from '../../method/recipe.js';
import { RunDirectory, readEpisodes, type StoredEpisode } from '../../method/store.js';
import { train } from '../run/api.js';

/** One layer of width 8: about 1,000 parameters with a vocabulary of symbols, 3,000 with bytes. */
export const tinySizes = { width: 8, layers: 1, heads: 2, kvHeads: 2, feedForward: 12 } as const;

const MAX_TOKENS = 16;

/** The options of `trainTiny`. */
export interface TinyOptions {
  /** Steps of reinforcement; default 2. */
  readonly steps?: number;
  /** The seed; by default the recipe's. */
  readonly seed?: number;
  /** Overrides as on the command line, applied last: `training.groupSize=8`. */
  readonly set?: readonly string[];
  /** Threads of the engine's kernels; default 1. */
  readonly threads?: number;
}

/** The result of `trainTiny`. */
export interface TinyRun {
  /** The events of the run, from `run.started` to `run.finished`. */
  readonly events: readonly RunEvent[];
  /** The episodes of each step, with the advantages of their turns. */
  readonly episodes: readonly (readonly StoredEpisode[])[];
}

/**
 * Trains a recipe as `train` does, but with an untrained tiny model and for a few steps, in a second or two. It tests
 * whether the team, tasks and settings work together, not whether the team learns. The run is in a temporary directory,
 * which is removed afterwards.
 *
 * Every model becomes a tiny decoder with random weights. A tiny decoder keeps its tokenizer and context; any other
 * model gets a byte tokenizer and a context of 1024; an adapter becomes an adapter of rank 2 on such a model. A step
 * has two tasks in groups of four, an evaluation two tasks twice, a warm start four steps of four demonstrations, a
 * response at most 16 tokens. The backend is the embedded one. Endpoints do not change.
 *
 * @throws The errors of `train`
 *
 * @example
 * ```ts
 * import { arithmetic, checkpoint, defineRecipe, solverVerifier } from 'drmas';
 * import { trainTiny } from 'drmas/testing';
 *
 * const recipe = defineRecipe({ team: solverVerifier(), tasks: arithmetic(), model: checkpoint('any/model') });
 * const { events } = await trainTiny(recipe);
 * ```
 */
export async function trainTiny(recipe: RecipeDefinition, options: TinyOptions = {}): Promise<TinyRun> {
  const { steps = 2, threads = 1, seed, set = [] } = options;
  const directory = await mkdtemp(join(tmpdir(), 'drmas-tiny-'));
  try {
    const path = join(directory, 'run');
    const chosen = { run: path, threads, set, ...(seed === undefined ? {} : { seed }) };
    const { events } = await train(tinyVersion(recipe, steps), chosen);
    const run = await RunDirectory.open(path);
    const numbers = events.filter((event): event is RunEvent & Step => event.type === 'step').map(({ step }) => step);
    const episodes = await Promise.all(numbers.map((step) => readEpisodes(nodeFiles, run.stepEpisodesPath(step))));
    return { events, episodes };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** The recipe with small values for the settings that cost time. */
function tinyVersion({ input }: RecipeDefinition, steps: number): RecipeDefinition {
  const { backend: _, assign, policies = {}, warmStart, ...kept } = input;
  const limited = Object.entries(input.team.agents).map(([name, { sampling }]) => {
    const written = input.agents?.[name];
    const maxTokens = Math.min(written?.sampling?.maxTokens ?? sampling?.maxTokens ?? MAX_TOKENS, MAX_TOKENS);
    return [name, { ...written, sampling: { ...written?.sampling, maxTokens } }];
  });
  const tiny: RecipeInput = {
    ...kept,
    model: tinyModel(input.model),
    ...(assign === undefined ? {} : { assign: tinyAssignment(assign) }),
    policies: mapped(policies, (policy) => ({
      ...policy,
      backend: undefined,
      ...(policy?.model ? { model: tinyModel(policy.model) } : {}),
    })),
    agents: Object.fromEntries(limited),
    ...(warmStart === undefined ? {} : { warmStart: { ...warmStart, steps: 4, batch: 4 } }),
    training: { ...input.training, steps, tasksPerStep: 2, groupSize: 4 },
    evaluation: { ...input.evaluation, every: steps, tasks: 2, samples: 2 },
  };
  return { type: 'recipe', input: tiny };
}

function tinyAssignment(assign: NonNullable<RecipeInput['assign']>): NonNullable<RecipeInput['assign']> {
  if (typeof assign === 'string') return assign;
  return mapped(assign, (entry) =>
    typeof entry === 'object' && entry.type === 'frozen' ? { ...entry, model: tinyModel(entry.model) } : entry,
  );
}

function tinyModel(model: ModelInput | undefined): ModelInput {
  if (kindOfType(model?.type) !== undefined) return model as ModelInput;
  if (model?.type !== 'lora') return tinyWhole(model as WholeModelInput | undefined);
  return lora(tinyWhole(model.base), { rank: 2, targets: model.targets });
}

function tinyWhole(model: WholeModelInput | undefined): WholeModelInput {
  return model?.type === 'tiny-decoder'
    ? { ...model, ...tinySizes }
    : tinyDecoder({ ...tinySizes, context: 1024, tokenizer: { type: 'bytes' } });
}

function mapped<Value>(
  record: Readonly<Record<string, Value>>,
  change: (value: Value) => Value,
): Record<string, Value> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}
