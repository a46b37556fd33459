import type { Step } from '../../../base/events.js';
import { spentTogether } from '../../../base/host.js';
import { mean, standardDeviation } from '../../../base/math.js';
import { type Episode, type EpisodeGroup, successOf, type Turn } from '../../../base/nouns.js';
import { groupKinds } from '../stability/agent-health.js';
import { namedMeans } from './named-means.js';
import type { RecordedStep, StepRecorder } from './recorder.js';

/** The recorders of a step's event. A new part of the event is a row here. The event's fields have this order. */
export const stepRecorders: Readonly<Record<string, StepRecorder>> = {
  times,
  tokens,
  episodes: ({ played }) => ({ episodes: episodeCounts(played.all) }),
  rewards,
  agents: ({ agents }) => ({ agents }),
  policies,
  groups: ({ played }) => ({ groups: groupKinds(played.scored) }),
  levels: ({ played: { levels } }) => (levels === undefined ? {} : { levels }),
  filter: ({ played: { filter } }) => (filter === undefined ? {} : { filter }),
  staleness: ({ played: { staleness } }) => (staleness === undefined ? {} : { staleness }),
  extra: ({ played: { extra } }) => (extra.episodes.length === 0 ? {} : { baseline: baselineOf(extra.episodes) }),
};

function times({ played, learnt }: RecordedStep): Partial<Step> {
  const phaseSeconds = { rollout: played.seconds, ...learnt.seconds };
  const seconds = phaseSeconds.rollout + phaseSeconds.advantage + phaseSeconds.update;
  return { type: 'step', step: played.step, seconds, phaseSeconds };
}

function tokens({ played, learnt, episodes, spending }: RecordedStep): Partial<Step> {
  const count = (counted: readonly Turn[]) => counted.reduce((sum, { response }) => sum + response.length, 0);
  const trained = Object.values(learnt.updates)
    .flatMap((update) => Object.values(update.agents))
    .reduce((sum, update) => sum + update.tokens, 0);
  const sampled = count([...episodes, ...played.extra.episodes].flatMap((episode) => episode.turns));
  const { cost } = spentTogether(Object.values(spending));
  return { tokens: { sampled, trained }, ...(cost === undefined ? {} : { cost }) };
}

function episodeCounts(groups: readonly EpisodeGroup[]): NonNullable<Step['episodes']> {
  const episodes = groups.flatMap((group) => group.episodes);
  const refused = callsByAgent(episodes.map((episode) => episode.refused));
  const unanswered = callsByAgent(episodes.map((episode) => episode.unanswered));
  return {
    played: episodes.length,
    failed: failuresOf(episodes),
    ...(refused && { refused }),
    ...(unanswered && { unanswered }),
  };
}

/** The sums of counts by agent. Undefined if there are none. */
function callsByAgent(
  counts: readonly (Readonly<Record<string, number>> | undefined)[],
): Readonly<Record<string, number>> | undefined {
  const sums = new Map<string, number>();
  for (const [agent, calls] of counts.flatMap((count) => Object.entries(count ?? {})))
    sums.set(agent, (sums.get(agent) ?? 0) + calls);
  return sums.size === 0 ? undefined : Object.fromEntries([...sums].sort());
}

function rewards({ episodes }: RecordedStep): Partial<Step> {
  const earned = episodes.map(({ score }) => score.team);
  return {
    reward: { mean: mean(earned), std: standardDeviation(earned) },
    success: mean(episodes.map(successOf)),
    ...namedMeans(episodes),
  };
}

function policies({ learnt }: RecordedStep): Partial<Step> {
  const updates = Object.entries(learnt.updates).map(
    ([policy, { gradientNorm = Number.NaN, outcome: _, agents: __, tokens: ___, ...update }]) =>
      [policy, { gradientNorm, ...update }] as const,
  );
  return { policies: Object.fromEntries(updates) };
}

function baselineOf(episodes: readonly Episode[]): NonNullable<Step['baseline']> {
  const reward = mean(episodes.map(({ score }) => score.team));
  return { episodes: episodes.length, reward, failed: failuresOf(episodes) };
}

const failuresOf = (episodes: readonly Episode[]) => episodes.filter(({ failure }) => failure !== undefined).length;
