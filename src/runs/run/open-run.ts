import { join } from 'node:path';
import {
  backendIdentity,
  type ModelHandle,
  type OwnWeights,
  type PolicyHandle,
  type TextBackend,
  type WeightsSpec,
} from '@drmas/engine/contract';
import { contentHash } from '@drmas/engine/disk';
import { isObject, messageOf, RunError } from '@drmas/engine/errors';
import { type Commits, withLocalModels } from '@drmas/engine/formats';
import { type Host, unlessAborted } from '@drmas/engine/host';
import { openEndpoint, openTextModel, sampledCapabilities } from '@drmas/engine/node';
import { fittedSet, type LoadOptions, type Task, type TaskSet, user } from '@drmas/engine/nouns';
import { queueExecutor } from '../../cluster/queue.js';
import { type OpenRollouts, openRollouts } from '../../gateway/rollouts.js';
import {
  backendNamed,
  backendsOf,
  evaluationTasks,
  firstWeights,
  loadTasks,
  type OpenRun,
  type RunWarning,
  rolloutSettings,
  runSettings,
  type Tasks,
  trainedModels,
} from '../../method/index.js';
import {
  type Assignment,
  assignmentOf,
  type BackendSpec,
  backendOf,
  backendOfModel,
  inPrecisionOf,
  type Recipe,
  recipeJson,
  samplerOfModel,
  withAgentAdapters,
} from '../../method/recipe.js';
import type { Checkpoint } from '../../method/store.js';
import type { RolloutContext } from '../../teams/rollout.js';
import { inProcessExecutor, type RolloutExecutor } from '../../teams/rollout.js';
import { judgesOf } from '../../teams/tasks.js';
import { watchTeams } from '../../teams/watchdog.js';
import { checkBackends, type Purpose } from './checks/backend-checks.js';
import { checkRecipe, checkToolFormats } from './checks/recipe-checks.js';
import { weakSettings } from './checks/weak-settings.js';
import { isolatedExecutor, THREADS } from './isolation/isolated-executor.js';
import { modelPlaces, type OpenBackend, openBackends } from './open-backends.js';
import { reachedServers } from './reached-servers.js';

/**
 * Reads the tasks and makes the checks that the recipe's schema cannot make, so that a mistake is reported before any
 * work.
 * @throws TaskError with file and line; RecipeError
 */
export async function prepareTasks(recipe: Recipe, purpose?: Purpose, options: LoadOptions = {}): Promise<Tasks> {
  const schema = recipe.team.task;
  const train = await loadTasks(recipe.tasks.train, 'train', schema, options);
  // A branch of a data set may move between the two downloads.
  const commits = { ...commitsOfTasks([train]), ...options.commits };
  const test = await loadTasks(recipe.tasks.test, 'test', schema, { ...options, commits });
  const tasks = { train, test };
  const can = (model: string) => {
    const { capabilities } = backendOf(recipe, backendOfModel(recipe, model));
    const sampler = samplerOfModel(recipe, model);
    return sampler === undefined ? capabilities : sampledCapabilities(capabilities, sampler);
  };
  checkRecipe(recipe, assignmentOf(recipe), can, tasks, purpose);
  return tasks;
}

const commitsOfTasks = (sets: readonly TaskSet[]): Commits =>
  Object.fromEntries(
    sets.flatMap(({ origins = [] }) =>
      origins.flatMap(({ name, commit }) => (commit === undefined ? [] : [[name, commit]])),
    ),
  );

/**
 * Lets the team check the services that its episodes need. Workers of a queue may reach services that this machine
 * cannot reach.
 * @throws RunError with the team's reason
 */
async function prepareTeam({ team, rollout }: Recipe, { train }: Tasks, { signal }: Host): Promise<void> {
  if (team.prepare === undefined || rollout?.type === 'queue' || train.size === 0) return;
  try {
    await team.prepare({ task: train.at(0).data, signal });
  } catch (error) {
    signal.throwIfAborted();
    throw new RunError(`team '${team.name}' cannot play: ${messageOf(error)}`);
  }
}

/** The tasks within their sources' limits of tokens, counted by the recipe's first model. @throws TaskError */
export function fittedTasks({ train, test }: Tasks, { tokenizer }: Pick<ModelHandle, 'tokenizer'>): Tasks {
  const tokensOf = (question: string) => tokenizer.chat([user(question)]).length;
  return { train: fittedSet(train, tokensOf), test: fittedSet(test, tokensOf) };
}

/** The warnings about the tasks. A warning of both splits comes once. */
export function taskWarnings({ train, test }: Tasks): string[] {
  return [...new Set([train, test].flatMap(({ warnings = [] }) => warnings))];
}

/** A warning if one file without a split gives the tasks of training and those of evaluations. */
export function undividedFile({ train, test }: Recipe['tasks']): string[] {
  const settings = train.settings ?? {};
  if (typeof settings.file !== 'string' || settings.split != null || settings.test != null) return [];
  if (JSON.stringify(settings) !== JSON.stringify(test.settings)) return [];
  return [
    `the tasks of ${settings.file} are the training tasks and the test tasks, so scores say nothing about new tasks; ` +
      "give a share to tests (test: 0.2), name the field that says 'train' or 'test' (split), or use two files " +
      '({ train, test })',
  ];
}

/** A warning if tasks of files are training tasks and evaluated tasks too. */
export function leakedTasks(sources: Recipe['tasks'], tasks: Tasks, count: number): string[] {
  const undivided = undividedFile(sources);
  const areFiles = [sources.train, sources.test].every(({ settings }) => typeof settings?.file === 'string');
  if (undivided.length > 0 || !areFiles) return undivided;
  if (!(tasks.train.size <= MOST_COMPARED)) return [];
  const known = new Set(Array.from({ length: tasks.train.size }, (_, i) => contentOf(tasks.train.at(i))));
  const evaluated = evaluationTasks(tasks.test, count);
  const leaked = evaluated.filter((task) => known.has(contentOf(task)));
  const [first] = leaked;
  return first === undefined
    ? []
    : [
        `${leaked.length} of ${evaluated.length} evaluated tasks are training tasks too, such as ${first.id}, so scores say less about new tasks`,
      ];
}

/** In larger sets of training tasks nobody looks for the evaluated ones. */
const MOST_COMPARED = 200_000;

/** What a task asks, whatever its name. */
function contentOf({ data }: Task): string {
  if (!isObject(data)) return JSON.stringify(data) ?? '';
  const { id: _, split: __, ...rest } = data;
  return JSON.stringify(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)));
}

export interface OpenRunOptions {
  /** For a resumed run: the commits of models on hubs at its start. */
  readonly commits?: Commits | undefined;
  readonly purpose?: Purpose;
  /**
   * Opens the trained models with this checkpoint's weights, only to play. The backend must read the weights itself.
   */
  readonly checkpoint?: Checkpoint | undefined;
  readonly openBackend?: OpenBackend | undefined;
}

/**
 * Starts the backends and opens the recipe's models with their first weights. The caller disposes of the run.
 * @throws RunError if the team's own check fails
 */
export async function openRun(
  requested: Recipe,
  loaded: Tasks,
  host: Host,
  { commits: wanted, purpose = 'training', checkpoint, openBackend }: OpenRunOptions = {},
): Promise<OpenRun> {
  await prepareTeam(requested, loaded, host);
  const { recipe, commits } = await withModels(requested, host, wanted);
  const assignment = assignmentOf(recipe);
  const first = firstWeights(recipe, assignment, assignmentOf(requested));
  const weights =
    checkpoint === undefined ? first : { ...first, ...weightsOf(recipe.policies, checkpoint, assignment, first) };
  for (const server of reachedServers(recipe, assignment)) host.notify(server);
  const backends = await openBackends(modelPlaces(recipe, Object.keys(weights)), weights, host, openBackend);
  let rollouts: OpenRollouts | undefined;
  let executor: RolloutExecutor | undefined;
  const dispose = async () => {
    await executor?.close?.();
    await rollouts?.close();
    await Promise.all(backendsOf({ backends }).map((backend) => backend.dispose()));
  };
  try {
    checkBackends(recipe, assignment, (model) => backendNamed({ backends }, model).capabilities, purpose);
    for (const notice of new Set(backendsOf({ backends }).map(({ hardware }) => hardware.notice)))
      if (notice !== undefined) host.notify(notice);
    // Reading a large model takes seconds. If the signal fires, the backends are disposed of while they open models.
    const opening = openModels(
      backends,
      checkpoint === undefined ? assignment : { ...assignment, warmStarted: [] },
      weights,
    );
    const { models, policies } = await unlessAborted(opening, host.signal);
    checkToolFormats(recipe.team, assignment, models);
    const [firstModel] = Object.values(models);
    const tasks = firstModel === undefined ? loaded : fittedTasks(loaded, firstModel);
    const speakers = {
      ...models,
      ...Object.fromEntries(
        assignment.endpoints.map(({ name, endpoint }) => [name, { endpoint: openText(name, endpoint) }]),
      ),
    };
    const { timeoutMs, ...settings } = rolloutSettings(recipe, assignment);
    rollouts = await openRollouts({ ...settings, timeoutMs }, speakers, {
      gateway: recipe.rollout?.type === 'queue' ? undefined : recipe.gateway, // each worker of a queue has its own
      onIgnored: (message) => host.warn('gateway.ignored', message),
      watch: () => watchTeams(timeoutMs),
      warn: once((message) => host.warn('team.stray', message)),
      listener: host.listener,
    });
    executor = await executorOf(recipe, host, rollouts.context);
    const placeOf = (model: string) => backendIdentity(backendOfModel(recipe, model));
    const trained = trainedModels(recipe, { assignment, backends, weights, policies }, placeOf);
    const warnings = [
      ...[
        ...taskWarnings(tasks),
        ...(purpose === 'training' ? leakedTasks(recipe.tasks, tasks, recipe.evaluation.tasks) : []),
      ].map((message) => ({
        code: 'tasks',
        message,
      })),
      ...Object.values(models).flatMap(({ warnings }) => warnings.map((message) => ({ code: 'policy', message }))),
      ...ignoredSettings(trained),
      ...(purpose === 'training' ? weakSettings(recipe) : []),
      ...judgesOf(recipe.team).map(({ name }) => ({
        code: 'reward.judge',
        message: `the reward's scorer '${name}' calls a hosted model: the run does not repeat bit for bit`,
      })),
    ];
    const opened = { backends, weights, models, trained, executor };
    const taken = { ...commits, ...commitsOfTasks([tasks.train, tasks.test]) };
    return { ...runSettings(recipe), assignment, tasks, ...opened, commits: taken, warnings, host, dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** The executor of the recipe's episodes. @throws RecipeError when Redis does not answer at the recipe's address */
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
 * Opens every model in its role. A frozen model that takes part in the warm start is a policy until reinforcement
 * begins.
 */
async function openModels(
  backends: OpenRun['backends'],
  { models, warmStarted }: Assignment,
  weights: OpenRun['weights'],
): Promise<Pick<OpenRun, 'models'> & { readonly policies: Readonly<Record<string, PolicyHandle>> }> {
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

/** The weights of the models in a checkpoint: as they were saved, on their original bases. */
function weightsOf(
  policies: Recipe['policies'],
  { directory }: Checkpoint,
  { warmStarted }: Assignment,
  first: OpenRun['weights'],
): OpenRun['weights'] {
  return Object.fromEntries(
    warmStarted.map((assigned): [string, WeightsSpec] => {
      const { name } = assigned;
      const [place, spec] = [join(directory, name), first[name]];
      const saved: OwnWeights =
        spec?.type !== 'adapter' && spec?.type !== 'saved-adapter'
          ? { type: 'directory', directory: place }
          : { type: 'saved-adapter', base: spec.base, directory: place };
      return [name, withAgentAdapters(policies, assigned, inPrecisionOf(policies, name, saved))];
    }),
  );
}

/**
 * The recipe with directories instead of names on hubs. Missing files are downloaded, as far as a model's backend reads
 * them on this machine.
 */
async function withModels(
  recipe: Recipe,
  { signal, notify }: Host,
  wanted: Commits | undefined,
): Promise<{ readonly recipe: Recipe; readonly commits: Commits }> {
  const whole = (spec: BackendSpec) => backendOf(recipe, spec).capabilities.weights === 'here';
  const isWhole = ([name]: [string, unknown]) => whole(backendOfModel(recipe, name));
  const settings = Object.entries(recipe.policies);
  const [here, there] = [settings.filter(isWhole), settings.filter((policy) => !isWhole(policy))];
  // Whole models first: if a server names the same model, its files are already here.
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

/** Warnings about settings that a backend ignores. The recipe is valid nevertheless. */
function ignoredSettings(trained: OpenRun['trained']): RunWarning[] {
  return trained
    .map(({ name, settings, backend }) => ({ name, clipNorm: settings?.clipNorm ?? 0, can: backend.capabilities }))
    .filter(({ clipNorm, can }) => clipNorm > 0 && !can.clipsGradients)
    .map(({ name, clipNorm }) => ({
      code: 'backend.ignores',
      message: `policies.${name}.clipNorm is ${clipNorm}, but the server may not clip gradients`,
    }));
}

export async function publishAll({ models }: Pick<OpenRun, 'models'>): Promise<void> {
  await Promise.all(Object.values(models).map((model) => model.publish()));
}

function once(act: (message: string) => void): (message: string) => void {
  let done = false;
  return (message) => {
    if (done) return;
    done = true;
    act(message);
  };
}

const openText = (name: string, model: Assignment['endpoints'][number]['endpoint']): TextBackend =>
  model.type === 'endpoint' ? openEndpoint(model) : openTextModel(name, model, model.complete);
