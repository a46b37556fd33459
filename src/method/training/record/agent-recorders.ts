import type { AgentStep } from '../../../base/events.js';
import { mean } from '../../../base/math.js';
import { type History, responseTokens } from '../../../base/nouns.js';
import { explainInflation } from '../../advantage/analysis/diagnosis.js';
import { agentHealth, type PlayedTurn } from '../stability/agent-health.js';
import { LOSS_TERMS } from '../update/update-result.js';
import { agentPartMeans } from './named-means.js';
import type { AgentRecorder, RecordedAgent } from './recorder.js';

/** The recorders of an agent's measurements. A new recorder is a row here. The event's fields have this order. */
export const agentRecorders: Readonly<Record<string, AgentRecorder>> = {
  calls,
  history: ({ turns }) => sumOfHistories(turns),
  ignored: ({ turns }) => countOfIgnored(turns),
  health,
  update,
  lengths: ({ turns }) => ({ responseTokens: mean(turns.map(({ turn }) => responseTokens(turn))) }),
  lossTerms,
  lossMetrics,
  parts: ({ episodes, agent }) => agentPartMeans(episodes, agent),
  chains,
  inflation,
  spending: ({ spending, agent }) => ({ ...spending[agent] }),
};

function calls({ turns, rewards: { rewardMean, rewardStd } }: RecordedAgent): Partial<AgentStep> {
  return {
    ...(turns.some(({ turn }) => turn.frozen === true) ? { frozen: true } : {}),
    turns: turns.length,
    rewardMean,
    rewardStd,
    invalid: mean(turns.map(({ turn }) => (turn.valid ? 0 : 1))),
  };
}

function sumOfHistories(turns: readonly PlayedTurn[]): Pick<AgentStep, 'history'> {
  const histories = turns.flatMap(({ turn }) => turn.history ?? []);
  if (histories.length === 0) return {};
  const sum = (kind: keyof History) => histories.reduce((total, history) => total + history[kind], 0);
  return { history: { exact: sum('exact'), byText: sum('byText'), byCalls: sum('byCalls'), foreign: sum('foreign') } };
}

function countOfIgnored(turns: readonly PlayedTurn[]): Pick<AgentStep, 'ignored'> {
  const counts = new Map<string, number>();
  for (const { turn } of turns)
    for (const setting of turn.ignored ?? []) counts.set(setting, (counts.get(setting) ?? 0) + 1);
  return counts.size === 0 ? {} : { ignored: Object.fromEntries([...counts].sort()) };
}

function health({ turns, rewards: { groupSpread }, sizes: { maxAbs } }: RecordedAgent): Partial<AgentStep> {
  return { health: { groupSpread, ...agentHealth(turns) }, maxAbsAdvantage: maxAbs };
}

/** The fields of learning. They are 0 for an agent that does not learn. */
function update({ update: learnt }: RecordedAgent): Partial<AgentStep> {
  return {
    gradientNorm: learnt === undefined ? 0 : (learnt.gradientNorm ?? Number.NaN),
    ...(learnt?.agreement === undefined ? {} : { agreement: learnt.agreement }),
    loss: learnt?.loss ?? 0,
    entropy: learnt?.entropy ?? 0,
    clipFraction: learnt?.clipFraction ?? 0,
    kl: learnt?.kl ?? 0,
    maxRatioDeviation: learnt?.maxRatioDeviation ?? 0,
    logprobGap: learnt?.logprobGap ?? 0,
  };
}

function lossTerms({ update: learnt }: RecordedAgent): Partial<AgentStep> {
  return Object.fromEntries(LOSS_TERMS.flatMap((name) => (learnt?.[name] === undefined ? [] : [[name, learnt[name]]])));
}

/** The metrics that the loss declares. They cannot replace a field of the event. */
function lossMetrics({ update: learnt }: RecordedAgent, before: Partial<AgentStep>): Partial<AgentStep> {
  return Object.fromEntries(Object.entries(learnt?.lossMetrics ?? {}).filter(([name]) => !(name in before)));
}

function chains({ agent, chains: ofAgents }: RecordedAgent): Partial<AgentStep> {
  const counted = ofAgents[agent];
  return counted === undefined ? {} : { chains: counted };
}

/** An agent's inflation, its explanation, and when the agent is called. */
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
