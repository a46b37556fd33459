/** The events of a step, from its results. */

import type { AgentStep, EpisodeFailed, Step } from '@drmas/engine/events';
import { meanResponseTokens, playedTokens, priced, type Spending, spentTogether } from '@drmas/engine/host';
import { mean, standardDeviation } from '@drmas/engine/math';
import {
  type Episode,
  type EpisodeGroup,
  type History,
  inCanonicalOrder,
  isLesson,
  messageText,
  successOf,
  type Turn,
  withoutUnscored,
} from '@drmas/engine/nouns';
import { costOfCalls } from '../../../teams/rollout.js';
import { advantageSizes } from '../../advantage/analysis/advantage-sizes.js';
import { type AgentRewards, agentRewards } from '../../advantage/analysis/agent-rewards.js';
import { explainInflation } from '../../advantage/analysis/diagnosis.js';
import { TurnBatch } from '../../advantage/turn-batch.js';
import { rewardRecord } from '../advantages/advantages.js';
import type { Played } from '../play/played.js';
import type { TrainingRun } from '../run/run-state.js';
import { countChains } from '../samples/chains.js';
import { agentHealth, groupKinds, type PlayedTurn } from '../stability/agent-health.js';
import type { Learnt } from '../update/update-policies.js';
import { type AgentUpdate, LOSS_TERMS } from '../update/update-result.js';
import {
  type AgentRecorder,
  agentPartMeans,
  namedMeans,
  type RecordedAgent,
  type RecordedStep,
  recordAll,
  type StepRecorder,
} from './recorder.js';

export function stepEvent(
  run: Pick<TrainingRun, 'agents' | 'learners' | 'prices' | 'training'>,
  played: Played,
  learnt: Learnt,
): Step {
  const { advantages, updates } = learnt;
  const episodes = played.scored.flatMap((group) => group.episodes);
  const turns = episodes.flatMap((episode) =>
    inCanonicalOrder(episode.turns).map(
      (turn): PlayedTurn => ({ episode, turn, advantage: advantages.byTurn.get(turn)?.advantage ?? 0 }),
    ),
  );
  const batch = new TurnBatch(turns.map(({ episode, turn }) => rewardRecord(episode, turn)));
  const rewards = agentRewards(batch);
  const sizes = advantageSizes(
    batch,
    turns.map(({ advantage }) => advantage),
  );
  const spending = stepSpending(run, played, learnt);
  const costOf = costOfCalls(run.agents, run.training.partWeights);
  const shared = { played, learnt, episodes, spending, costOf, chains: countChains(episodes) };
  const written = played.all.flatMap((group) => group.episodes).flatMap((each) => inCanonicalOrder(each.turns));
  const called = [...new Set(written.map(({ agent }) => agent))].sort();
  const agents = called.map((agent) => {
    const subject = {
      ...shared,
      agent,
      turns: turns.filter(({ turn }) => turn.agent === agent),
      written: written.filter((turn) => turn.agent === agent),
      rewards: rewards[agent],
      sizes: sizes[agent],
      update: Object.values(updates).find((update) => agent in update.agents)?.agents[agent],
      context: run.learners.find(({ agents }) => agent in agents)?.handle.context,
    };
    return [agent, recordAll(agentRecorders, subject) as AgentStep] as const; // the recorders write all of its fields
  });
  return recordAll(stepRecorders, { ...shared, agents: Object.fromEntries(agents) }) as Step; // as above
}

export function failureEvents(
  groups: readonly EpisodeGroup[],
  step: number,
  action: EpisodeFailed['action'],
): EpisodeFailed[] {
  return groups
    .flatMap(({ episodes }) => episodes)
    .flatMap((episode) => {
      const { task, sample, failure } = episode;
      if (failure === undefined) return [];
      const { scoring: _, ...record } = failure;
      const taken = isLesson(episode) ? 'zero' : action;
      return [{ type: 'episode.failed', step, task: task.id, episode: sample, ...record, action: taken } as const];
    });
}

/** The recorders of an agent's measurements. A new recorder is a row here. The event's fields have this order. */
const agentRecorders: Readonly<Record<string, AgentRecorder>> = {
  calls,
  history: ({ written }) => sumOfHistories(written),
  ignored: ({ written }) => countOfIgnored(written),
  health,
  update,
  texts: ({ written, context }) => textMeasures(written, context),
  lossTerms,
  lossMetrics,
  parts: ({ episodes, agent }) => agentPartMeans([episodes], agent),
  chains,
  inflation,
  spending: ({ spending, agent }) => ({ ...spending[agent] }),
};

function calls({ written, rewards }: RecordedAgent): Partial<AgentStep> {
  return {
    ...(written.some(({ frozen }) => frozen === true) ? { frozen: true } : {}),
    turns: written.length,
    ...(rewards && { rewardMean: rewards.rewardMean, rewardStd: rewards.rewardStd }),
    ...(rewards && rewards.turns < written.length && { rewardedTurns: rewards.turns }),
    invalid: mean(written.map(({ valid }) => (valid ? 0 : 1))),
  };
}

function sumOfHistories(turns: readonly Turn[]): Pick<AgentStep, 'history'> {
  const histories = turns.flatMap(({ history }) => history ?? []);
  if (histories.length === 0) return {};
  const sum = (kind: keyof History) => histories.reduce((total, history) => total + history[kind], 0);
  return { history: { exact: sum('exact'), byText: sum('byText'), byCalls: sum('byCalls'), foreign: sum('foreign') } };
}

/**
 * The lengths of texts, the certainty with which they were sampled, and the share that was cut off at the limit of
 * tokens. An answer that fills the context is none of these: a table of choices writes answers of a fixed length.
 */
function textMeasures(turns: readonly Turn[], context = Number.POSITIVE_INFINITY): Partial<AgentStep> {
  const entropy = sampledEntropy(turns);
  const cut = mean(turns.map((turn) => Number(turn.finishReason === 'length' && length(turn) < context)));
  const results = turns.flatMap(newResults);
  const errors = results.filter((result) => ERROR.test(messageText(result))).length;
  return {
    ...meanResponseTokens(turns),
    ...(entropy === undefined ? {} : { sampledEntropy: entropy }),
    ...(cut > 0 ? { cut } : {}),
    ...(errors > 0 ? { toolErrors: errors / results.length } : {}),
  };
}

/**
 * The entropy in nats a token, from the log-probs of all tokens. They are not copied into one list, since a step may
 * have more tokens than a list holds. Undefined without tokens, and if a log-prob is not known.
 */
export function sampledEntropy(turns: readonly Pick<Turn, 'logprobs'>[]): number | undefined {
  let [sum, tokens] = [0, 0];
  for (const { logprobs } of turns)
    for (const logprob of logprobs) {
      if (!Number.isFinite(logprob)) return undefined;
      sum += logprob;
      tokens++;
    }
  return tokens === 0 ? undefined : Math.max(0, 0 - sum / tokens);
}

/** How results of tools begin that tell of an error: drmas and the usual frameworks write `error: ...` and its like. */
const ERROR = /^[\s"'{[]*(?:an )?(?:\w*error|exception|traceback)\b/i;

/** The tool results that no earlier prompt had. */
const newResults = ({ messages }: Turn) =>
  messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1).filter(({ role }) => role === 'tool');

function countOfIgnored(turns: readonly Turn[]): Pick<AgentStep, 'ignored'> {
  const counts = new Map<string, number>();
  for (const { ignored = [] } of turns)
    for (const setting of ignored) counts.set(setting, (counts.get(setting) ?? 0) + 1);
  return counts.size === 0 ? {} : { ignored: Object.fromEntries([...counts].sort()) };
}

function health({ turns, costOf, rewards, sizes }: RecordedAgent): Partial<AgentStep> {
  return {
    ...(rewards && { health: { ...spreadOf(rewards), ...agentHealth(turns, costOf) } }),
    maxAbsAdvantage: sizes?.maxAbs ?? 0,
  };
}

const spreadOf = ({ groupSpread }: AgentRewards) => (groupSpread === undefined ? {} : { groupSpread });

/** The fields of learning. Norm and loss are 0 for an agent that does not learn. */
function update({ update: learnt }: RecordedAgent): Partial<AgentStep> {
  return {
    gradientNorm: learnt === undefined ? 0 : (learnt.gradientNorm ?? Number.NaN),
    ...(learnt?.agreement === undefined ? {} : { agreement: learnt.agreement }),
    loss: learnt?.loss ?? 0,
    ...known(learnt, ['entropy', 'clipFraction', 'kl', 'maxRatioDeviation', 'logprobGap']),
  };
}

function lossTerms({ update: learnt }: RecordedAgent): Partial<AgentStep> {
  return known(learnt, LOSS_TERMS);
}

/** These metrics of an update, as far as it has them. */
function known<Name extends keyof AgentUpdate & keyof AgentStep>(
  learnt: AgentUpdate | undefined,
  names: readonly Name[],
): Partial<Pick<AgentUpdate, Name>> {
  const pairs = names.flatMap((name) => (learnt?.[name] === undefined ? [] : [[name, learnt[name]]]));
  return Object.fromEntries(pairs);
}

/** The metrics that the loss declares. They cannot replace a field of the event. */
function lossMetrics({ update: learnt }: RecordedAgent, before: Partial<AgentStep>): Partial<AgentStep> {
  return Object.fromEntries(Object.entries(learnt?.lossMetrics ?? {}).filter(([name]) => !(name in before)));
}

function chains({ agent, chains: ofAgents }: RecordedAgent): Partial<AgentStep> {
  const counted = ofAgents[agent];
  return counted === undefined ? {} : { chains: counted };
}

function inflation({ agent, learnt: { advantages, measured } }: RecordedAgent): Partial<AgentStep> {
  const [known, ownShare, called] = [advantages.inflation[agent], advantages.ownShare[agent], advantages.calls[agent]];
  const predicted = known ?? 1; // 1 if no group has scores that differ
  const ofAgent = measured[agent];
  return {
    inflation: {
      predicted,
      ...(ofAgent === undefined ? {} : { measured: ofAgent, covariance: ofAgent - predicted }),
      ...(ownShare === undefined ? {} : { ownShare }),
      ...(called === undefined
        ? {}
        : { explanation: explainInflation(agent, { inflation: known, ownShare, calls: called }) }),
    },
    ...(called === undefined ? {} : { calls: called }),
  };
}

/** The recorders of a step's event. A new part of the event is a row here. The event's fields have this order. */
const stepRecorders: Readonly<Record<string, StepRecorder>> = {
  times,
  tokens,
  episodes: ({ played }) => ({ episodes: episodeCounts(played.all) }),
  rewards,
  agents: ({ agents }) => ({ agents }),
  policies,
  groups: ({ played, costOf }) => ({ groups: groupKinds(played.scored, costOf) }),
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

function tokens({ played, learnt, spending }: RecordedStep): Partial<Step> {
  const count = (counted: readonly Turn[]) => counted.reduce((sum, { response }) => sum + response.length, 0);
  const trained = Object.values(learnt.updates)
    .flatMap((update) => Object.values(update.agents))
    .reduce((sum, update) => sum + update.tokens, 0);
  const all = played.all.flatMap((group) => group.episodes);
  const sampled = count([...all, ...played.extra.episodes].flatMap((episode) => episode.turns));
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

function callsByAgent(
  counts: readonly (Readonly<Record<string, number>> | undefined)[],
): Readonly<Record<string, number>> | undefined {
  const sums = new Map<string, number>();
  for (const [agent, calls] of counts.flatMap((count) => Object.entries(count ?? {})))
    sums.set(agent, (sums.get(agent) ?? 0) + calls);
  return sums.size === 0 ? undefined : Object.fromEntries([...sums].sort());
}

/** Over all played episodes that have a score, as evaluations count them. A failed episode earns its score. */
function rewards({ played }: RecordedStep): Partial<Step> {
  const judged = withoutUnscored(played.all).flatMap((group) => group.episodes);
  const earned = judged.map(({ score }) => score.team);
  if (judged.length === 0) return {};
  return {
    reward: { mean: mean(earned), std: standardDeviation(earned) },
    success: mean(judged.map(successOf)),
    ...namedMeans([judged]),
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
  const measured = episodes.filter(isLesson).map(({ score }) => score.team);
  return {
    episodes: episodes.length,
    ...(measured.length === 0 ? {} : { reward: mean(measured) }),
    failed: failuresOf(episodes),
  };
}

const failuresOf = (episodes: readonly Episode[]) => episodes.filter(({ failure }) => failure !== undefined).length;

/** The spending of each agent that was called, including failed episodes and episodes that only a signal needs. */
function stepSpending(
  { learners, prices }: Pick<TrainingRun, 'learners' | 'prices'>,
  { all, extra }: Pick<Played, 'all' | 'extra'>,
  { turns: learnt, updates }: Pick<Learnt, 'turns' | 'updates'>,
): Record<string, Spending> {
  const played: readonly Episode[] = [...all.flatMap(({ episodes }) => episodes), ...extra.episodes];
  const agents = [...new Set(played.flatMap((episode) => episode.turns.map(({ agent }) => agent)))].sort();
  return Object.fromEntries(
    agents.map((agent) => {
      const turns = played.flatMap((episode) => episode.turns.filter((turn) => turn.agent === agent));
      const learner = learners.find((each) => agent in each.agents);
      const learns = learner !== undefined && agent in (updates[learner.name]?.agents ?? {});
      const chains = learns ? learnt.flatMap((of) => (of.learner === learner ? of.chains : [])) : [];
      const tokens = chains.reduce(
        (sum, chain) => (chain[0]?.agent === agent ? sum + length(chain.at(-1) as Turn) : sum),
        0,
      );
      const trained = (learner?.settings.epochs ?? 0) * tokens;
      return [agent, priced({ ...playedTokens(turns), trained }, prices[agent])];
    }),
  );
}

/** A chain is one sequence: the prompt and the response of its last turn. */
const length = ({ prompt, response }: Turn) => prompt.length + response.length;
