import { declarationOf } from '../advantage/estimators/index.js';
import { openEndpoint } from '../backends/endpoint/endpoint-client.js';
import { type Commits, withLocalModels } from '../backends/hub/local-models.js';
import { backendOf } from '../backends/registry.js';
import type { BaseSpec, PolicySpec } from '../contract/weights.js';
import { RecipeError } from '../core/errors.js';
import type { Host } from '../core/host.js';
import { type ModelSpec, type WholeModelSpec, wholeModel } from '../model/model-spec.js';
import { createTokenizer } from '../model/tokenizers/create-tokenizer.js';
import { type Assignment, assignmentOf } from '../recipe/assignment.js';
import type { Recipe } from '../recipe/recipe.js';
import { inProcessExecutor } from '../rollout/executor.js';
import type { RolloutContext } from '../rollout/rollout-context.js';
import { checkDivisions } from '../training/evaluation/slices.js';
import type { OpenRun, Tasks } from '../training/run-state.js';
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
  const assignment = assignmentOf(recipe);
  requireCapabilities(recipe, assignment, backendOf(recipe.backend).capabilities, purpose);
  checkModels(recipe, assignment);
  checkEstimator(recipe);
  checkReferences(recipe);
  checkWarmStart(recipe, assignment);
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

export interface OpenOptions {
  /** Commits of models on hubs that the run began with, where it goes on. */
  readonly commits?: Commits | undefined;
  /** Training, unless it says otherwise. */
  readonly purpose?: Purpose;
}

/** Starts the backend and creates the recipe's models with their first weights. The caller disposes of the backend. */
export async function openRun(
  requested: Recipe,
  tasks: Tasks,
  host: Host,
  { commits: wanted, purpose }: OpenOptions = {},
): Promise<OpenRun> {
  const { recipe, commits } = await withModels(requested, host, wanted);
  const assignment = assignmentOf(recipe);
  const specs = policySpecs(recipe, assignment, assignmentOf(requested));
  const backend = await backendOf(recipe.backend).open(recipe.backend, { host, policies: Object.values(specs) });
  try {
    requireCapabilities(recipe, assignment, backend.capabilities, purpose);
    const { hardware } = backend;
    if (hardware.notice !== undefined) host.notify(hardware.notice);
    const created = await Promise.all(
      Object.entries(specs).map(
        async ([name, spec]) => [name, { spec, info: await backend.createPolicy(name, spec) }] as const,
      ),
    );
    const executor = inProcessExecutor({
      sampler: backend,
      agents: agentSettings(recipe, assignment),
      policies: {
        ...Object.fromEntries(
          created.map(([name, { info }]) => [name, { tokenizer: info.tokenizer, context: info.context }]),
        ),
        ...Object.fromEntries(
          assignment.endpoints.map(({ name, endpoint }) => [name, { endpoint: openEndpoint(endpoint) }]),
        ),
      },
      seed: recipe.seed,
      maxTurns: recipe.training.maxTurns,
      timeoutMs: recipe.training.episodeTimeoutMs,
    });
    const warnings = [
      ...created.flatMap(([, { info }]) => (info.warnings ?? []).map((message) => ({ code: 'policy', message }))),
      ...ignoredSettings(recipe, backend.capabilities).map((message) => ({ code: 'backend.ignores', message })),
    ];
    const models = Object.fromEntries(created);
    return { recipe, assignment, tasks, backend, hardware, models, executor, commits, warnings, host };
  } catch (error) {
    await backend.dispose();
    throw error;
  }
}

/** How every agent of a recipe plays. */
export function agentSettings({ agents, assign }: Recipe, { speakerOf }: Assignment): RolloutContext['agents'] {
  return Object.fromEntries(
    Object.entries(agents).map(([agent, { sampling, invalidPenalty }]) => [
      agent,
      { policy: speakerOf[agent] as string, sampling, invalidPenalty, frozen: typeof assign[agent] !== 'string' },
    ]),
  );
}

/** The recipe with directories in place of hubs' names; what is missing is downloaded, as far as the backend reads it here. */
async function withModels(
  recipe: Recipe,
  { signal, notify }: Host,
  wanted: Commits | undefined,
): Promise<{ readonly recipe: Recipe; readonly commits: Commits }> {
  const { policies, assign, backend } = recipe;
  const files = backendOf(backend).capabilities.localWeights ? 'all' : 'tokenizer';
  const options = { files, signal, onProgress: notify, commits: wanted } as const;
  const { settings, commits } = await withLocalModels({ policies, assign }, options);
  return { recipe: { ...recipe, ...settings }, commits };
}

/** What every model begins as. `requested` holds the names that the user gave them. */
function policySpecs(
  recipe: Recipe,
  { models, frozen }: Assignment,
  requested: Assignment,
): Readonly<Record<string, PolicySpec>> {
  const written = new Map(requested.models.map(({ name, model }) => [name, wholeModel(model)]));
  return Object.fromEntries(
    models.map((speaker, index) => {
      const { name, model } = speaker;
      const whole = written.get(name);
      const called = whole?.type === 'checkpoint' ? whole.path : undefined;
      const first = firstWeights(recipe, model, index, called);
      const plays = frozen.includes(speaker) && first.type === 'directory';
      return [name, plays ? { type: 'frozen', base: first } : first];
    }),
  );
}

/** Policies that are to share a warm start begin alike; those with one each begin differently. */
export function firstWeights(recipe: Recipe, model: ModelSpec, index: number, called: string | undefined): PolicySpec {
  const { warmStart, seed } = recipe;
  const first = warmStart?.seed ?? seed;
  const seedOfModel = warmStart?.share === 'policy' ? first + index * 1000 : first;
  if (model.type !== 'lora') return wholeWeights(model, seedOfModel, called);
  if ('from' in model)
    return { type: 'saved-adapter', base: wholeWeights(model.base, first, called), directory: model.from };
  const { base, rank, alpha, targets } = model;
  const adapter = { rank, alpha, targets };
  return { type: 'adapter', base: wholeWeights(base, first, called), adapter, seed: seedOfModel };
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
