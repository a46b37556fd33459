import { declarationOf } from '../advantage/estimators/index.js';
import { openEndpoint } from '../backends/endpoint/endpoint-client.js';
import { type Commits, withLocalModels } from '../backends/hub/local-models.js';
import { backendOf } from '../backends/registry.js';
import type { BaseSpec, PolicySpec } from '../contract/weights.js';
import type { Clock } from '../core/clock.js';
import { RecipeError } from '../core/errors.js';
import type { Files } from '../core/files.js';
import { type ModelSpec, type WholeModelSpec, wholeModel } from '../model/model-spec.js';
import { createTokenizer } from '../model/tokenizers/create-tokenizer.js';
import { allModels, frozenEndpoints, frozenModels, speakers } from '../recipe/assignment.js';
import type { Recipe } from '../recipe/recipe.js';
import { inProcessExecutor } from '../rollout/executor.js';
import type { RolloutContext } from '../rollout/rollout-context.js';
import { checkDivisions } from '../training/evaluation/slices.js';
import type { OpenedPolicies, Stage, Tasks } from '../training/session.js';
import { ignoredSettings, type Purpose, requireCapabilities } from './backend-checks.js';
import { checkModels, checkReferences, checkWarmStart } from './model-checks.js';

/**
 * Reads the tasks and checks what the recipe's schema alone cannot see, so that a mistake is reported before any work.
 * @throws TaskError naming file and line; RecipeError
 */
export async function prepareTasks(recipe: Recipe, purpose?: Purpose): Promise<Tasks> {
  const schema = recipe.team.task;
  const [train, test] = await Promise.all([
    recipe.tasks.train.load('train', schema),
    recipe.tasks.test.load('test', schema),
  ]);
  for (const [split, set] of Object.entries({ train, test }))
    if (set.size < 1) throw new RecipeError(`there are no tasks`, `tasks.${split}`);
  requireCapabilities(recipe, backendOf(recipe.backend).capabilities, purpose);
  checkModels(recipe);
  checkEstimator(recipe);
  checkReferences(recipe);
  checkWarmStart(recipe);
  checkDivisions(recipe, test);
  return { train, test };
}

function checkEstimator({ advantage, training }: Recipe): void {
  const { groupSize } = declarationOf(advantage).traits;
  if (groupSize !== undefined && training.groupSize < groupSize.least)
    throw new RecipeError(
      `'${advantage.type}' ${groupSize.why}: expected at least ${groupSize.least}`,
      'training.groupSize',
    );
  if (training.filter !== undefined && training.groupSize < 2)
    throw new RecipeError(
      'compares the episodes of a group: expected training.groupSize to be at least 2',
      'training.filter',
    );
}

export interface StageOptions {
  readonly threads: number;
  readonly files: Files;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Told what takes long and what a person should know; not part of the event log. */
  readonly onNotice: (message: string) => void;
  /** Told what went wrong in the backend and was put right, for the event log. */
  readonly onWarning: (code: string, message: string) => void;
  /** Of models on hubs: those that the run began with, where it goes on. */
  readonly commits?: Commits | undefined;
  /** Training, where nothing is said. */
  readonly purpose?: Purpose;
}

/** Starts the backend and creates the recipe's policies with their first weights. The caller disposes of the backend. */
export async function openStage(asked: Recipe, tasks: Tasks, options: StageOptions): Promise<Stage & OpenedPolicies> {
  const { threads, files, clock, signal, onNotice, onWarning, purpose } = options;
  const { recipe, commits } = await withModels(asked, options);
  const specs = policySpecs(recipe, asked);
  const backend = await backendOf(recipe.backend).open(recipe.backend, {
    threads,
    files,
    policies: Object.values(specs),
    onProgress: onNotice,
    onWarning,
  });
  try {
    requireCapabilities(recipe, backend.capabilities, purpose);
    const { hardware } = backend;
    if (hardware.notice !== undefined) onNotice(hardware.notice);
    const created = await Promise.all(
      Object.entries(specs).map(async ([name, spec]) => [name, await backend.createPolicy(name, spec)] as const),
    );
    const policies = Object.fromEntries(created);
    const endpoints = frozenEndpoints(recipe).map(
      ({ name, spec }) => [name, { endpoint: openEndpoint(spec) }] as const,
    );
    const executor = inProcessExecutor({
      sampler: backend,
      agents: agentSettings(recipe),
      policies: {
        ...Object.fromEntries(created.map(([name, { tokenizer, context }]) => [name, { tokenizer, context }])),
        ...Object.fromEntries(endpoints),
      },
      seed: recipe.seed,
      maxTurns: recipe.training.maxTurns,
      timeoutMs: recipe.training.episodeTimeoutMs,
    });
    const warnings = [
      ...created.flatMap(([, { warnings = [] }]) => warnings.map((message) => ({ code: 'policy', message }))),
      ...ignoredSettings(recipe, backend.capabilities).map((message) => ({ code: 'backend.ignores', message })),
    ];
    return { recipe, tasks, backend, executor, files, clock, signal, commits, specs, policies, hardware, warnings };
  } catch (error) {
    await backend.dispose();
    throw error;
  }
}

/** How every agent of a recipe plays. */
export function agentSettings(recipe: Recipe): RolloutContext['agents'] {
  const names = speakers(recipe);
  return Object.fromEntries(
    Object.entries(recipe.agents).map(([agent, { sampling, invalidPenalty }]) => [
      agent,
      { policy: names[agent] as string, sampling, invalidPenalty, frozen: typeof recipe.assign[agent] !== 'string' },
    ]),
  );
}

/** The recipe with directories in place of hubs' names; what is missing is downloaded, as far as the backend reads it here. */
async function withModels(
  recipe: Recipe,
  { signal, onNotice, commits: wanted }: StageOptions,
): Promise<{ readonly recipe: Recipe; readonly commits: Commits }> {
  const { policies, assign, backend } = recipe;
  const files = backendOf(backend).capabilities.localWeights ? 'all' : 'tokenizer';
  const options = { files, signal, onProgress: onNotice, commits: wanted } as const;
  const { settings, commits } = await withLocalModels({ policies, assign }, options);
  return { recipe: { ...recipe, ...settings }, commits };
}

/** What every model of a recipe begins as. `asked` says what the user calls it. */
function policySpecs(recipe: Recipe, asked: Recipe): Readonly<Record<string, PolicySpec>> {
  const frozen = new Set(frozenModels(recipe).map(({ name }) => name));
  const written = new Map(allModels(asked).map(({ name, model }) => [name, wholeModel(model)]));
  return Object.fromEntries(
    allModels(recipe).map(({ name, model }, index) => {
      const whole = written.get(name);
      const called = whole?.type === 'checkpoint' ? whole.path : undefined;
      const first = firstWeights(recipe, model, index, called);
      return [name, frozen.has(name) && first.type === 'directory' ? { type: 'frozen', base: first } : first];
    }),
  );
}

/** Policies that are to share a warm start begin alike; those with one each begin differently. */
function firstWeights(recipe: Recipe, model: ModelSpec, index: number, called: string | undefined): PolicySpec {
  const { warmStart, seed } = recipe;
  const first = warmStart?.seed ?? seed;
  const own = warmStart?.share === 'policy' ? first + index * 1000 : first;
  if (model.type !== 'lora') return wholeWeights(model, own, called);
  if ('from' in model)
    return { type: 'saved-adapter', base: wholeWeights(model.base, first, called), directory: model.from };
  const { base, rank, alpha, targets } = model;
  return { type: 'adapter', base: wholeWeights(base, first, called), adapter: { rank, alpha, targets }, seed: own };
}

/** Where the first weights of a whole model come from; with its sizes and tokenizer, where the recipe says them. */
export function wholeWeights(model: WholeModelSpec, seed: number, called?: string): BaseSpec {
  if (model.type === 'checkpoint') return { type: 'directory', directory: model.path, name: called ?? model.path };
  const { width, layers, heads, kvHeads, feedForward, context, ropeBase, embeddingDeviation } = model;
  const tokenizer = createTokenizer(model.tokenizer);
  return {
    type: 'random',
    tokenizer,
    seed,
    embeddingDeviation,
    config: {
      vocabSize: tokenizer.vocabSize,
      width,
      layers,
      heads,
      kvHeads,
      headDim: width / heads,
      feedForward,
      context,
      ropeBase,
      normEpsilon: 1e-6,
    },
  };
}
