/**
 * A run in a browser tab: the training loop, the recipe and the engine of the command line, on kernels in this thread.
 * There are no files: nothing is kept, and nobody can go on with it.
 */

import type { Backend } from '../../../src/contract/backend.js';
import type { PolicyHandle } from '../../../src/contract/handles.js';
import type { WeightsSpec } from '../../../src/contract/weights-spec.js';
import { systemClock } from '../../../src/core/clock.js';
import { EVENT_VERSION, type RunEvent } from '../../../src/core/events.js';
import type { Host } from '../../../src/core/host.js';
import { type PlayProgress, progressObserver } from '../../../src/core/play/play-observer.js';
import { assignmentOf } from '../../../src/recipe/assignment.js';
import type { Recipe } from '../../../src/recipe/recipe.js';
import { inProcessExecutor } from '../../../src/rollout/executor.js';
import { agentSettings } from '../../../src/run/agent-settings.js';
import { firstWeights } from '../../../src/run/first-weights.js';
import { firstProgress } from '../../../src/training/checkpoint.js';
import type { OpenRun, RunLog } from '../../../src/training/run-state.js';
import { trainTeam } from '../../../src/training/train.js';
import { trainWarmStart } from '../../../src/training/warm-start/supervised.js';
import { noFiles } from './no-files.js';
import { type ShownEpisode, shownEpisode } from './shown-episode.js';
import { waysWithin } from './ways-within.js';

/** Receives what happens in a run. */
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
    observer: progressObserver(onProgress),
  };
  const run = await openInTab(recipe, backend, host);
  if (recipe.warmStart !== undefined) await trainWarmStart(run, recipe.warmStart, log.emit);
  for (const model of Object.values(run.models)) await model.publish();
  await trainTeam({ ...run, references: new Map(), critics: new Map() }, firstProgress(recipe), log);
}

async function openInTab(recipe: Recipe, backend: Backend, host: Host): Promise<OpenRun> {
  const assignment = assignmentOf(recipe);
  const weights = firstWeights(recipe, assignment, assignment);
  const policies: Record<string, PolicyHandle> = {};
  for (const { name } of assignment.trained)
    policies[name] = await backend.open(weights[name] as WeightsSpec, 'policy', name);
  const { team, tasks, training, seed } = recipe;
  const executor = inProcessExecutor({
    ...{ agents: agentSettings(recipe, assignment), policies, seed, waysIn: waysWithin, observer: host.observer },
    ...{ maxTurns: training.maxTurns, timeoutMs: training.episodeTimeoutMs, concurrency: training.concurrency },
  });
  const backends = Object.fromEntries(Object.keys(policies).map((name) => [name, backend]));
  const [train, test] = [await tasks.train.load('train', team.task), await tasks.test.load('test', team.task)];
  return {
    ...{ recipe, assignment, tasks: { train, test }, backends, weights, models: policies, policies, executor, host },
    ...{ commits: {}, warnings: [], dispose: () => backend.dispose() },
  };
}
