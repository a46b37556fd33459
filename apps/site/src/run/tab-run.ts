/**
 * A run in a browser tab: the training loop, the recipe and the engine of the command line, on kernels in this thread.
 * There are no files: drmas keeps nothing, and no run can resume it.
 */

import type { Backend, PolicyHandle, WeightsSpec } from '@drmas/engine/contract';
import { ArgumentError } from '@drmas/engine/errors';
import { EVENT_VERSION, type RunEvent } from '@drmas/engine/events';
import { type Host, type PlayProgress, progressListener, systemClock } from '@drmas/engine/host';
import {
  firstProgress,
  firstWeights,
  type OpenRun,
  type RunLog,
  rolloutSettings,
  runSettings,
  trainedModels,
  trainingRun,
  trainTeam,
  trainWarmStart,
} from '../../../../src/method/index.js';
import { assignmentOf, type Recipe } from '../../../../src/method/recipe.js';
import { type AdaptedAgents, inProcessExecutor, type RolloutContext } from '../../../../src/teams/rollout.js';
import { tabFiles } from './engine-here.js';
import { type NameTry, type ShownEpisode, shownEpisode, triesIn } from './protocol.js';

/** Receives the events of a run. */
interface TabReceiver {
  readonly onEvent: (event: RunEvent) => void;
  /** An episode of a step that was just trained on. */
  readonly onEpisode: (step: number, episode: ShownEpisode) => void;
  readonly onTries: (tries: readonly NameTry[]) => void;
  readonly onProgress: (progress: PlayProgress) => void;
}

/**
 * Trains to the recipe's last step. The recipe trains all of its agents, and holds none near a reference.
 * @param warm The directory of weights after the warm start, for all policies; without it the warm start is trained
 * @throws the signal's reason when interrupted; TrainingError
 */
export async function trainInTab(
  recipe: Recipe,
  backend: Backend,
  { onEvent, onEpisode, onTries, onProgress }: TabReceiver,
  signal: AbortSignal,
  warm?: string,
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
      onTries(triesIn(episodes));
      if (episode !== undefined) onEpisode(step, shownEpisode(episode, advantages?.[chosen]));
    },
    writeEvaluationEpisodes: async () => {},
    writeCheckpoint: async () => {},
  };
  const host: Host = {
    threads: 1,
    files: tabFiles(new Map()),
    clock: systemClock,
    signal,
    protect: (work) => work(),
    notify: () => {},
    warn: (code, message) => void log.emit({ type: 'warning', code, message }),
    listener: progressListener(onProgress),
  };
  const run = await openInTab(recipe, backend, host, warm);
  if (warm === undefined && recipe.warmStart !== undefined) await trainWarmStart(run, recipe.warmStart, log.emit);
  for (const model of Object.values(run.models)) await model.publish();
  await trainTeam(trainingRun(run), firstProgress(run), log);
}

async function openInTab(recipe: Recipe, backend: Backend, host: Host, warm: string | undefined): Promise<OpenRun> {
  const assignment = assignmentOf(recipe);
  const weights = firstWeights(recipe, assignment, assignment);
  const policies: Record<string, PolicyHandle> = {};
  for (const { name } of assignment.trained) {
    const policy = await backend.open(weights[name] as WeightsSpec, 'policy', name);
    if (warm !== undefined) await policy.load(warm, { optimizer: false });
    policies[name] = policy;
  }
  const { team, tasks } = recipe;
  const settings = rolloutSettings(recipe, assignment);
  const executor = inProcessExecutor({ ...settings, policies, adaptAgents: functionsOnly, listener: host.listener });
  const backends = Object.fromEntries(Object.keys(policies).map((name) => [name, backend]));
  const [train, test] = [await tasks.train.load('train', team.task), await tasks.test.load('test', team.task)];
  const trained = trainedModels(recipe, { assignment, backends, weights, policies }, () => 'this tab');
  return {
    ...runSettings(recipe),
    assignment,
    tasks: { train, test },
    backends,
    weights,
    models: policies,
    trained,
    executor,
    host,
    commits: {},
    warnings: [],
    dispose: () => backend.dispose(),
  };
}

const absent = (what: string) => (): never => {
  throw new ArgumentError(`${what}: a team in a browser tab can call its agents only as functions`);
};

/** The agents as functions alone: a tab has neither clients of other frameworks nor a gateway. */
const functionsOnly: RolloutContext['adaptAgents'] = (_episode, asks): AdaptedAgents => {
  const [model, openai, gateway] = [absent('model'), absent('openai'), absent('gateway')];
  const agents = Object.entries(asks).map(
    ([name, ask]) => [name, Object.defineProperties(ask, { model: { get: model }, openai: { get: openai } })] as const,
  );
  const adapted = { agents: Object.fromEntries(agents) };
  return Object.defineProperties(adapted, { openai: { get: openai }, gateway: { get: gateway } }) as AdaptedAgents;
};
