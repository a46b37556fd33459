import { join } from 'node:path';
import { type OpenGateway, openGateway } from '../agents/gateway/open-gateway.js';
import { waysIn } from '../agents/ways.js';
import { openEndpoint } from '../backends/endpoint/endpoint-client.js';
import { type Commits, withLocalModels } from '../backends/hub/local-models.js';
import { type BackendSpec, backendOf } from '../backends/registry.js';
import { sampledCapabilities } from '../backends/samplers/sampled-backend.js';
import type { ModelHandle, PolicyHandle } from '../contract/handles.js';
import type { OwnWeights, WeightsSpec } from '../contract/weights-spec.js';
import type { Host } from '../core/host.js';
import { runInScope } from '../platform/async-scopes.js';
import { type Assignment, assignmentOf } from '../recipe/assignment.js';
import { backendOfModel, inPrecisionOf, type Recipe, recipeJson, samplerOfModel } from '../recipe/recipe.js';
import { inProcessExecutor, type RolloutExecutor } from '../rollout/executor.js';
import type { RolloutContext } from '../rollout/rollout-context.js';
import { watchTeams } from '../rollout/watchdog/watchdog.js';
import type { Checkpoint } from '../store/checkpoint-files.js';
import { contentHash } from '../store/files/content-hash.js';
import { backendNamed, backendsOf, type OpenRun, type RunWarning, type Tasks } from '../training/run-state.js';
import { loadTasks } from '../training/task-source.js';
import { agentSettings } from './agent-settings.js';
import { checkBackends, type Purpose } from './checks/backend-checks.js';
import { checkRecipe, checkToolFormats } from './checks/recipe-checks.js';
import { firstWeights } from './first-weights.js';
import { isolatedExecutor, THREADS } from './isolation/isolated-executor.js';
import { type OpenBackend, openBackends } from './open-backends.js';
import { queueExecutor } from './queue/queue-executor.js';

/**
 * Reads the tasks and checks what the recipe's schema alone cannot see, so that a mistake is reported before any work.
 * @throws TaskError naming file and line; RecipeError
 */
export async function prepareTasks(recipe: Recipe, purpose?: Purpose): Promise<Tasks> {
  const schema = recipe.team.task;
  const [train, test] = await Promise.all([
    loadTasks(recipe.tasks.train, 'train', schema),
    loadTasks(recipe.tasks.test, 'test', schema),
  ]);
  const tasks = { train, test };
  const can = (model: string) => {
    const { capabilities } = backendOf(backendOfModel(recipe, model));
    const sampler = samplerOfModel(recipe, model);
    return sampler === undefined ? capabilities : sampledCapabilities(capabilities, sampler);
  };
  checkRecipe(recipe, assignmentOf(recipe), can, tasks, purpose);
  return tasks;
}

/** The warnings about how the tasks were read; one that both splits have comes once. */
export function taskWarnings({ train, test }: Tasks): string[] {
  return [...new Set([train, test].flatMap(({ warnings = [] }) => warnings))];
}

export interface OpenOptions {
  /** Commits of models on hubs that the run began with, where it goes on. */
  readonly commits?: Commits | undefined;
  /** Training, unless it says otherwise. */
  readonly purpose?: Purpose;
  /** Opens the trained models as they are in this checkpoint, of which the backend has the weights, to play alone. */
  readonly checkpoint?: Checkpoint | undefined;
  /** Starts a backend that the recipe names. */
  readonly openBackend?: OpenBackend | undefined;
}

/** Starts the backends and opens the recipe's models with their first weights. The caller disposes of the run. */
export async function openRun(
  requested: Recipe,
  tasks: Tasks,
  host: Host,
  { commits: wanted, purpose, checkpoint, openBackend }: OpenOptions = {},
): Promise<OpenRun> {
  const { recipe, commits } = await withModels(requested, host, wanted);
  const assignment = assignmentOf(recipe);
  const first = firstWeights(recipe, assignment, assignmentOf(requested));
  const weights = checkpoint === undefined ? first : { ...first, ...weightsOf(recipe, checkpoint, assignment, first) };
  const backends = await openBackends(recipe, weights, host, openBackend);
  let gateway: OpenGateway | undefined;
  let executor: RolloutExecutor | undefined;
  const dispose = async () => {
    await executor?.close?.();
    await gateway?.close();
    await Promise.all(backendsOf({ backends }).map((backend) => backend.dispose()));
  };
  try {
    checkBackends(recipe, assignment, (model) => backendNamed({ backends }, model).capabilities, purpose);
    for (const notice of new Set(backendsOf({ backends }).map(({ hardware }) => hardware.notice)))
      if (notice !== undefined) host.notify(notice);
    const { models, policies } = await openModels(
      backends,
      checkpoint === undefined ? assignment : { ...assignment, warmStarted: [] },
      weights,
    );
    checkToolFormats(recipe, assignment, models);
    const context = {
      agents: agentSettings(recipe, assignment),
      policies: {
        ...models,
        ...Object.fromEntries(
          assignment.endpoints.map(({ name, endpoint }) => [name, { endpoint: openEndpoint(endpoint) }]),
        ),
      },
      seed: recipe.seed,
      maxTurns: recipe.training.maxTurns,
      partWeights: recipe.training.partWeights,
    };
    const { maxTurns } = context;
    const warn = (message: string) => host.warn('gateway.ignored', message);
    if (recipe.gateway !== undefined && recipe.rollout?.type !== 'queue')
      // else each worker has one
      gateway = await openGateway(recipe.gateway, { maxTurns, warn });
    executor = await executorOf(recipe, host, {
      ...context,
      timeoutMs: recipe.training.episodeTimeoutMs,
      concurrency: recipe.training.concurrency,
      maxOutcomeBytes: recipe.training.maxOutcomeBytes,
      inScope: runInScope,
      waysIn: (episode, asks, measure) => waysIn(episode, asks, measure, gateway),
      watch: () => watchTeams(recipe.training.episodeTimeoutMs),
      warn: once((message) => host.warn('team.stray', message)),
      observer: host.observer,
    });
    const warnings = [
      ...taskWarnings(tasks).map((message) => ({ code: 'tasks', message })),
      ...Object.values(models).flatMap(({ warnings }) => warnings.map((message) => ({ code: 'policy', message }))),
      ...ignoredSettings(recipe, backends),
    ];
    const opened = { backends, weights, models, policies, executor };
    return { recipe, assignment, tasks, ...opened, commits, warnings, host, dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** Plays episodes where the recipe says. @throws RecipeError when there is no Redis where the recipe says */
async function executorOf(recipe: Recipe, host: Host, context: RolloutContext): Promise<RolloutExecutor> {
  const { rollout, code, gateway } = recipe;
  if (rollout === undefined || code === undefined) return inProcessExecutor(context);
  const { type, isolate } = rollout;
  const digest = contentHash(recipeJson(recipe));
  if (type === 'queue') return queueExecutor(context, { code, rollout, recipe: digest, gateway, host });
  if (isolate === false) return inProcessExecutor(context);
  return isolatedExecutor(context, code, isolate === true ? THREADS : isolate);
}

/**
 * Opens every model for what it is to do: a frozen one that the warm start reaches is trained until reinforcement
 * begins.
 */
async function openModels(
  backends: OpenRun['backends'],
  { models, warmStarted }: Assignment,
  weights: OpenRun['weights'],
): Promise<Pick<OpenRun, 'models' | 'policies'>> {
  const policies: Record<string, PolicyHandle> = {};
  const opened = await Promise.all(
    models.map(async (speaker): Promise<[string, ModelHandle]> => {
      const { name } = speaker;
      const spec = weights[name] as WeightsSpec;
      const backend = backendNamed({ backends }, name);
      if (!warmStarted.includes(speaker)) return [name, await backend.open(spec, 'frozen', name)];
      const policy = await backend.open(spec, 'policy', name);
      policies[name] = policy;
      return [name, policy];
    }),
  );
  return { models: Object.fromEntries(opened), policies };
}

/** The weights of the models that a checkpoint holds: as they were saved, on the bases that they had at first. */
function weightsOf(
  recipe: Recipe,
  { directory }: Checkpoint,
  { warmStarted }: Assignment,
  first: OpenRun['weights'],
): OpenRun['weights'] {
  return Object.fromEntries(
    warmStarted.map(({ name }): [string, WeightsSpec] => {
      const [place, spec] = [join(directory, name), first[name]];
      const saved: OwnWeights =
        spec?.type !== 'adapter' && spec?.type !== 'saved-adapter'
          ? { type: 'directory', directory: place }
          : { type: 'saved-adapter', base: spec.base, directory: place };
      return [name, inPrecisionOf(recipe, name, saved)];
    }),
  );
}

/**
 * The recipe with directories in place of hubs' names; what is missing is downloaded, as far as a model's backend reads
 * it here.
 */
async function withModels(
  recipe: Recipe,
  { signal, notify }: Host,
  wanted: Commits | undefined,
): Promise<{ readonly recipe: Recipe; readonly commits: Commits }> {
  const whole = (spec: BackendSpec) => backendOf(spec).capabilities.weights === 'here';
  const isWhole = ([name]: [string, unknown]) => whole(backendOfModel(recipe, name));
  const settings = Object.entries(recipe.policies);
  const [here, there] = [settings.filter(isWhole), settings.filter((policy) => !isWhole(policy))];
  // What is read here comes first: where a server names the same model, its files are there already.
  const parts = { all: Object.fromEntries(here), tokenizer: Object.fromEntries(there) };
  const options = { signal, onProgress: notify };
  const frozen = whole(recipe.backend) ? 'all' : 'tokenizer';
  let commits = wanted;
  const place = async <Part>(part: Part, files: 'all' | 'tokenizer') => {
    const placed = await withLocalModels(part, { ...options, files, commits });
    commits = { ...commits, ...placed.commits };
    return placed.settings;
  };
  const all = await place(parts.all, 'all');
  const assign = await place(recipe.assign, frozen);
  const policies = { ...recipe.policies, ...all, ...(await place(parts.tokenizer, 'tokenizer')) };
  return { recipe: { ...recipe, policies, assign }, commits: commits ?? {} };
}

/** Warnings about settings that a backend ignores, which is no reason to refuse the recipe. */
function ignoredSettings({ policies }: Recipe, backends: OpenRun['backends']): RunWarning[] {
  return Object.entries(policies)
    .filter(([name, { clipNorm }]) => clipNorm > 0 && !backendNamed({ backends }, name).capabilities.clipsGradients)
    .map(([policy, { clipNorm }]) => ({
      code: 'backend.ignores',
      message: `policies.${policy}.clipNorm is ${clipNorm}, and the server is not known to clip gradients`,
    }));
}

/** Makes the current weights of every model those that play. */
export async function publishAll({ models }: OpenRun): Promise<void> {
  await Promise.all(Object.values(models).map((model) => model.publish()));
}

/** The function as far as its first call. */
function once(act: (message: string) => void): (message: string) => void {
  let done = false;
  return (message) => {
    if (done) return;
    done = true;
    act(message);
  };
}
