import { backendIdentity, type ModelHandle } from '@drmas/engine/contract';
import { messageOf, RunError } from '@drmas/engine/errors';
import type { Commits } from '@drmas/engine/formats';
import { type Host, unlessAborted } from '@drmas/engine/host';
import {
  backendNamed,
  backendsOf,
  firstWeights,
  type OpenRun,
  rolloutSettings,
  runSettings,
  type Tasks,
  trainedModels,
} from '../../../method/index.js';
import { assignmentOf, backendOfModel, type Recipe } from '../../../method/recipe.js';
import type { Checkpoint } from '../../../method/store.js';
import { checkBackends, type Purpose } from '../checks/backend-checks.js';
import { checkToolFormats } from '../checks/recipe-checks.js';
import { withModels } from './local-models.js';
import { modelPlaces, type OpenBackend, openBackends } from './open-backends.js';
import { openExecutor, openSpeakers } from './open-executor.js';
import { openModels, savedWeights } from './open-models.js';
import { commitsOfTasks, fittedTasks } from './prepare-tasks.js';
import { reachedServers } from './reached-servers.js';
import { runWarnings } from './run-warnings.js';

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
 * Opens a run in stages: the models' files, the backends, the models with their first weights, the speakers and the
 * executor of episodes. The caller disposes of the run.
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
    checkpoint === undefined ? first : { ...first, ...savedWeights(recipe.policies, checkpoint, assignment, first) };
  for (const server of reachedServers(recipe, assignment)) host.notify(server);
  /** Closes each open stage, the last one first. */
  const closing: (() => Promise<unknown> | undefined)[] = [];
  const dispose = async () => {
    for (const close of closing.toReversed()) await close();
  };
  try {
    const backends = await openBackends(modelPlaces(recipe, Object.keys(weights)), weights, host, openBackend);
    const all = backendsOf({ backends });
    closing.push(() => Promise.all(all.map((backend) => backend.dispose())));
    checkBackends(recipe, assignment, (model) => backendNamed({ backends }, model).capabilities, purpose);
    for (const notice of new Set(all.map(({ hardware }) => hardware.notice)))
      if (notice !== undefined) host.notify(notice);

    const opened = checkpoint === undefined ? assignment : { ...assignment, warmStarted: [] };
    // Reading a large model takes seconds. If the signal fires, the backends are disposed of while they open models.
    const { models, policies } = await unlessAborted(openModels(backends, opened, weights), host.signal);
    checkToolFormats(recipe.team, assignment, models);
    const [firstModel] = Object.values<ModelHandle>(models);
    const tasks = firstModel === undefined ? loaded : fittedTasks(loaded, firstModel);
    const placeOf = (model: string) => backendIdentity(backendOfModel(recipe, model));
    const trained = trainedModels(recipe, { assignment, backends, weights, policies }, placeOf);

    const gateway = recipe.rollout?.type === 'queue' ? undefined : recipe.gateway; // each worker of a queue has its own
    const settings = rolloutSettings(recipe, assignment);
    const rollouts = await openSpeakers(settings, gateway, { endpoints: assignment.endpoints, models }, host);
    closing.push(() => rollouts.close());
    const executor = await openExecutor(recipe, host, rollouts.context);
    closing.push(() => executor.close?.());

    return {
      ...runSettings(recipe),
      assignment,
      backends,
      weights,
      models,
      trained,
      executor,
      tasks,
      commits: { ...commits, ...commitsOfTasks([tasks.train, tasks.test]) },
      warnings: runWarnings(recipe, { tasks, models, trained }, purpose),
      host,
      dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

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

export async function publishAll({ models }: Pick<OpenRun, 'models'>): Promise<void> {
  await Promise.all(Object.values(models).map((model) => model.publish()));
}
