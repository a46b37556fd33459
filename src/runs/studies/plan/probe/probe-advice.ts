/** Advice from a probe's findings: whether reinforcement can help, and otherwise the change that would help. */

import { percent, remedyOfFailure } from '@drmas/engine/host';
import { aloneAdvice, inflationAdvice, sharesMean } from '../../../../method/advantage.js';
import { remedies, remedyForSameness, remedyOfEqualSamples } from '../../../../method/index.js';
import type { Recipe } from '../../../../method/recipe.js';
import type { ProbeFindings } from './probe-findings.js';

export interface Advice {
  readonly code:
    | 'failures'
    | 'all-wrong'
    | 'all-right'
    | 'no-spread'
    | 'not-called'
    | 'invalid-outputs'
    | 'few-groups'
    | 'penalties-only'
    | 'inflation'
    | 'alone'
    | 'large-advantages';
  /** `stops`: reinforcement will not help without a change. `hinders`: it will be slow or unstable. */
  readonly weight: 'stops' | 'hinders';
  readonly says: string;
  readonly remedy: string;
}

/** Limits for the shares of groups, turns and episodes. A finding beyond its limit becomes advice. */
const NEARLY_ALL = 0.95;
const MOST = 0.5;
const FEW = 0.3;
const HARDLY_ANY = 0.05;
/**
 * The largest advantage of a turn among G siblings that its own group normalises: (G - 1) / sqrt(G), 2.5 for 8, 7.7 for
 * 61.
 */
const LARGE = 10;

/** The advice about a recipe, most important first. Empty if nothing prevents learning. */
export function advise(recipe: Recipe, findings: ProbeFindings): Advice[] {
  const advice = [
    ...failures(findings),
    ...notCalled(recipe, findings),
    ...invalidOutputs(recipe, findings),
    ...outcomes(recipe, findings),
    ...spread(recipe, findings),
    ...estimators(recipe, findings),
  ];
  return advice.sort((a, b) => Number(b.weight === 'stops') - Number(a.weight === 'stops'));
}

function failures({ failures, episodes }: ProbeFindings): Advice[] {
  const failed = Object.values(failures).reduce((sum, count) => sum + count, 0);
  const share = failed / Math.max(1, episodes);
  if (share <= HARDLY_ANY) return [];
  const kinds = Object.entries(failures).sort(([, a], [, b]) => b - a);
  const reasons = kinds.map(([reason, count]) => `${reason} ${count}`);
  return [
    {
      code: 'failures',
      weight: share > MOST ? 'stops' : 'hinders',
      says: `${percent(share, 0)} of the episodes fail (${reasons.join(', ')}).`,
      remedy: remedyOfFailure(kinds[0]?.[0]),
    },
  ];
}

/** Agents that learn, and that no episode has called. */
function notCalled({ assign }: Recipe, { agents, episodes }: ProbeFindings): Advice[] {
  const learners = Object.keys(assign).filter((agent) => typeof assign[agent] === 'string');
  const silent = learners.filter((agent) => (agents[agent]?.turns ?? 0) === 0);
  if (silent.length === 0) return [];
  const names = silent.map((agent) => `'${agent}'`).join(', ');
  return [
    {
      code: 'not-called',
      weight: silent.length === learners.length ? 'stops' : 'hinders',
      says: `${names} ${silent.length === 1 ? 'is' : 'are'} called in none of ${episodes} episodes, and would learn nothing.`,
      remedy:
        'See when `play` calls it, or whether it awaits the call; an agent that is not needed can leave the team.',
    },
  ];
}

function invalidOutputs(recipe: Recipe, { agents }: ProbeFindings): Advice[] {
  return Object.entries(agents)
    .filter(([, { invalid }]) => invalid > FEW)
    .map(([agent, { invalid, cut }]) => {
      const { maxTokens } = recipe.agents[agent]?.sampling ?? {};
      const warmStart = recipe.warmStart !== undefined;
      return {
        code: 'invalid-outputs',
        weight: invalid > MOST ? 'stops' : 'hinders',
        says: `${percent(invalid, 0)} of the outputs of ${agent} are invalid: reinforcement would mostly teach the format.`,
        remedy:
          cut > MOST
            ? `${percent(cut, 0)} of its outputs are cut off at ${maxTokens} tokens: raise agents.${agent}.sampling.maxTokens${warmStart ? ', or teach shorter answers in the warm start' : ''}.`
            : `Look at its outputs below: a parser that accepts them, a clearer prompt, or a ${warmStart ? 'longer ' : ''}warm start${warmStart ? '' : ' that shows valid ones'}. A reward for invalid outputs makes more of them.`,
      } as const;
    });
}

function outcomes(recipe: Recipe, { groups, success }: ProbeFindings): Advice[] {
  const { count, allRight, allWrong, signal } = groups;
  const [wrong, right] = [allWrong / count, allRight / count];
  const other = signal / count > FEW; // agents may learn from their own rewards instead of outcomes
  const sampling = remedyOfEqualSamples(recipe.agents);
  if (wrong >= NEARLY_ALL && !other && sampling !== '') {
    // Whether other answers would succeed is not known yet.
    return [
      {
        code: 'no-spread',
        weight: 'stops',
        says: 'Hardly a task is ever solved, and each agent writes the same text whenever it is asked: nothing is tried.',
        remedy: sampling,
      },
    ];
  }
  if (wrong >= NEARLY_ALL) {
    return [
      {
        code: 'all-wrong',
        weight: other ? 'hinders' : 'stops',
        says: 'Hardly a task is ever solved: there is no success to reinforce.',
        remedy: remedies.allWrong({ warmStart: recipe.warmStart !== undefined }),
      },
    ];
  }
  if (right >= NEARLY_ALL) {
    return [
      {
        code: 'all-right',
        weight: other ? 'hinders' : 'stops',
        says: `Nearly every task is solved every time (${percent(success.mean, 0)}): there is nothing left to learn.`,
        remedy: remedies.allRight,
      },
    ];
  }
  return [];
}

function spread(recipe: Recipe, { groups, repeated, groupSize }: ProbeFindings): Advice[] {
  const { count, mixed, allRight, allWrong, signal, penaltiesOnly, dropped } = groups;
  const { filter } = recipe.training;
  // The filter by variance drops a share of the groups, whatever they are.
  const share = signal / Math.max(1, filter?.type === 'variance' ? count - dropped : count);
  const advice: Advice[] = [];
  const uniform = allWrong / count >= NEARLY_ALL || allRight / count >= NEARLY_ALL;
  if (share < FEW && !uniform) {
    const none = share < HARDLY_ANY;
    const kind = { code: none ? 'no-spread' : 'few-groups', weight: none ? 'stops' : 'hinders' } as const;
    const says = `${percent(share, 0)} of the groups have a learning signal`;
    if (filter?.type === 'equal-outcomes' && dropped > (count - signal) / 2)
      return [
        {
          ...kind,
          says: `${says}: training.filter drops ${percent(dropped / count, 0)}, whose episodes earn different rewards, but are equal in the number that it compares.`,
          remedy: 'Another training.filter.score, or no filter.',
        },
      ];
    advice.push({
      ...kind,
      says: `${says}: in the others the ${groupSize} episodes of a task earn the same (${percent(allRight / count, 0)} all right, ${percent(allWrong / count, 0)} all wrong).`,
      remedy: remedyForSameness(
        { agents: recipe.agents, warmStart: recipe.warmStart !== undefined },
        groupSize,
        repeated,
      ),
    });
  }
  if (signal > 0 && penaltiesOnly / signal > MOST) {
    advice.push({
      code: 'penalties-only',
      weight: mixed === 0 ? 'stops' : 'hinders',
      says: `In ${percent(penaltiesOnly / signal, 0)} of the groups with a signal only penalties differ: they teach the format, not the task.`,
      remedy:
        'Tasks with some successful and some failed attempts. Dropping groups of equal outcomes, or advantages by agent (drmas), keeps the division by a small spread from scaling penalties up.',
    });
  }
  return advice;
}

function estimators(recipe: Recipe, { estimators, agents, groupSize }: ProbeFindings): Advice[] {
  const { type } = recipe.advantage;
  const ofAgents = Object.entries(estimators[type] ?? {});
  const opened = recipe.estimator;
  const advice = ofAgents.flatMap(([agent, { inflation, ownShare }]): Advice[] => {
    const calls = agents[agent]?.calls;
    if (calls === undefined || recipe.agents[agent]?.rewardWeight === 0) return [];
    const alone = aloneAdvice(agent, calls, opened);
    if (alone !== undefined) return [{ code: 'alone', weight: 'hinders', ...alone }];
    if (inflation === null || !sharesMean(opened)) return [];
    const inflated = inflationAdvice(agent, { inflation, ownShare: ownShare ?? undefined, calls }, { type, groupSize });
    return inflated === undefined ? [] : [{ code: 'inflation', weight: 'hinders', ...inflated }];
  });
  const largest = Math.max(0, ...ofAgents.map(([, { maxAbsAdvantage }]) => maxAbsAdvantage));
  if (largest > LARGE) {
    advice.push({
      code: 'large-advantages',
      weight: 'hinders',
      says: `${type} gives advantages up to ${largest.toPrecision(3)}: single turns would decide the update.`,
      remedy: 'An estimator that takes mean and spread from the same scores (drmas, grpo).',
    });
  }
  return advice;
}
