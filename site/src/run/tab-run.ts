/**
 * A run in a browser tab: the training loop, the recipe and the engine of the command line, on kernels in this thread.
 * There are no files: drmas keeps nothing, and no run can resume it.
 */

import { EVENT_VERSION, type RunEvent } from '../../../src/base/events.js';
import type { Host } from '../../../src/base/host.js';
import { type PlayProgress, progressListener, systemClock } from '../../../src/base/host.js';
import type { Backend, PolicyHandle, WeightsSpec } from '../../../src/engine/contract.js';
import type { OpenRun, RunLog } from '../../../src/method/index.js';
import {
  firstProgress,
  firstWeights,
  rolloutSettings,
  runSettings,
  trainedModels,
  trainingRun,
  trainTeam,
  trainWarmStart,
} from '../../../src/method/index.js';
import type { Recipe } from '../../../src/method/recipe.js';
import { assignmentOf } from '../../../src/method/recipe.js';
import { inProcessExecutor } from '../../../src/teams/rollout.js';
import { functionsOnly } from './functions-only.js';
import { noFiles } from './no-files.js';
import { type ShownEpisode, shownEpisode } from './shown-episode.js';

/** Receives the events of a run. */
export interface TabReceiver {
  readonly onEvent: (event: RunEvent) => void;
  /** An episode of a step that was just trained on. */
  readonly onEpisode: (step: number, episode: ShownEpisode) => void;
  readonly onProgress: (progress: PlayProgress) => void;
}

/**
 * Trains to the recipe's last step. The recipe trains all of its agents, and holds none near a reference.
 * @throws the signal's reason when interrupted; TrainingError
 */
export async function trainInTab(
  recipe: Recipe,
  backend: Backend,
  { onEvent, onEpisode, onProgress }: TabReceiver,
  signal: AbortSignal,
): Promise<void> {
  const log: RunLog = {
    emit(body) {
      const event = { ...body, time: systemClock.now().toISOString(), version: EVENT_VERSION };
      onEvent(event);
      return event;
    },
    async writeStepEpisodes(step, episodes, advantages) {
      const chosen = episodes.findIndex(({ turns }) => turns.length > 1);
      const episode = episodes[chosen];
      if (episode !== undefined) onEpisode(step, shownEpisode(episode, advantages?.[chosen]));
    },
    writeEvaluationEpisodes: async () => {},
    writeCheckpoint: async () => {},
  };
  const host: Host = {
    ...{ threads: 1, files: noFiles, clock: systemClock, signal },
    protect: (work) => work(),
    notify: () => {},
    warn: (code, message) => void log.emit({ type: 'warning', code, message }),
    listener: progressListener(onProgress),
  };
  const run = await openInTab(recipe, backend, host);
  if (recipe.warmStart !== undefined) await trainWarmStart(run, recipe.warmStart, log.emit);
  for (const model of Object.values(run.models)) await model.publish();
  await trainTeam(trainingRun(run), firstProgress(run), log);
}

async function openInTab(recipe: Recipe, backend: Backend, host: Host): Promise<OpenRun> {
  const assignment = assignmentOf(recipe);
  const weights = firstWeights(recipe, assignment, assignment);
  const policies: Record<string, PolicyHandle> = {};
  for (const { name } of assignment.trained)
    policies[name] = await backend.open(weights[name] as WeightsSpec, 'policy', name);
  const { team, tasks } = recipe;
  const settings = rolloutSettings(recipe, assignment);
  const executor = inProcessExecutor({ ...settings, policies, adaptAgents: functionsOnly, listener: host.listener });
  const backends = Object.fromEntries(Object.keys(policies).map((name) => [name, backend]));
  const [train, test] = [await tasks.train.load('train', team.task), await tasks.test.load('test', team.task)];
  const trained = trainedModels(recipe, { assignment, backends, weights, policies }, () => 'this tab');
  return {
    ...runSettings(recipe),
    ...{ assignment, tasks: { train, test }, backends, weights, models: policies, trained, executor, host },
    ...{ commits: {}, warnings: [], dispose: () => backend.dispose() },
  };
}
