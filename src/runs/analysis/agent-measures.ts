/** The measurements of each agent at each step, for charts. */

import type { AgentStep, Step } from '@drmas/engine/events';
import { shareOfForeign } from '@drmas/engine/nouns';

export interface AgentMeasure {
  readonly key: string;
  readonly title: string;
  readonly hint: string;
  readonly of: (agent: AgentStep, step: Step) => number | null | undefined;
  readonly unit: 'number' | 'share';
  /** Values that the axis must include. */
  readonly include?: readonly number[];
  readonly logarithmic?: true;
  /** The value of a horizontal line. */
  readonly reference?: number;
  readonly spikes?: true;
  /** True if it is meaningless for agents that do not train. */
  readonly learning?: true;
  readonly main?: true;
}

const fromZero = { unit: 'number', include: [0] } as const;
const share = { unit: 'share', include: [0] } as const;
const learning = { learning: true } as const;

/** The measurements in the order of the charts. Logs of earlier versions lack some. */
export const agentMeasures: readonly AgentMeasure[] = [
  {
    key: 'reward',
    title: 'reward',
    hint: "Mean over the agent's turns: the episode's reward for it, plus the turn's own reward, minus penalties.",
    of: (agent) => agent.rewardMean,
    unit: 'number',
    main: true,
  },
  {
    key: 'norm',
    title: 'gradient norm',
    hint: 'Before clipping. Rings mark spikes, which are far above the running median.',
    of: (agent) => agent.gradientNorm,
    ...fromZero,
    ...learning,
    logarithmic: true,
    spikes: true,
    main: true,
  },
  {
    key: 'gradient-share',
    title: 'share of the gradient',
    hint: "The agent's squared norm divided by the sum over all agents: its share in the update of this step.",
    of: (agent, step) => gradientShare(agent, step),
    unit: 'share',
    include: [0, 1],
    ...learning,
    main: true,
  },
  {
    key: 'agreement',
    title: 'agreement of gradients',
    hint: 'The cosine with the gradients of the agents that share its policy; below 0 the gradients conflict.',
    of: (agent) => agent.agreement,
    unit: 'number',
    include: [-1, 1],
    reference: 0,
    ...learning,
  },
  {
    key: 'predicted-inflation',
    title: 'predicted inflation',
    hint: 'Shared statistics multiply the second moment of its gradient by this (Lemma 4.2); 1 is no inflation.',
    of: (agent) => agent.inflation?.predicted,
    ...fromZero,
    ...learning,
    reference: 1,
    main: true,
  },
  {
    key: 'own-share',
    title: 'own share',
    hint: 'The share of its squared shared scores that its own rewards explain; below 50 % other rewards decide.',
    of: (agent) => agent.inflation?.ownShare,
    ...share,
    include: [0, 1],
    reference: 0.5,
    ...learning,
  },
  {
    key: 'measured-inflation',
    title: 'measured inflation',
    hint: 'The same factor, measured with the gradients of up to 32 turns, every training.measureInflation steps.',
    of: (agent) => agent.inflation?.measured,
    ...fromZero,
    ...learning,
    reference: 1,
    main: true,
  },
  {
    key: 'entropy',
    title: 'entropy',
    hint: 'Nats a token. A fall without more reward is a collapse.',
    of: (agent) => agent.entropy,
    ...fromZero,
    ...learning,
    main: true,
  },
  {
    key: 'sampled-entropy',
    title: 'entropy, sampled',
    hint: 'Nats a token, estimated from the log-probs of all sampled tokens, also of turns that teach nothing.',
    of: (agent) => agent.sampledEntropy,
    ...fromZero,
  },
  {
    key: 'cut',
    title: 'outputs that are cut off',
    hint: 'The share of turns that ended at the limit of tokens instead of a stop.',
    of: (agent) => agent.cut,
    ...share,
  },
  {
    key: 'invalid',
    title: 'invalid outputs',
    hint: "The share of turns that the agent's parser refused.",
    of: (agent) => agent.invalid,
    ...share,
    main: true,
  },
  {
    key: 'length',
    title: 'response tokens a turn',
    hint: 'Mean length of its responses.',
    of: (agent) => agent.responseTokens,
    ...fromZero,
    main: true,
  },
  {
    key: 'advantage',
    title: 'largest |advantage|',
    hint: 'The largest over the turns of the step.',
    of: (agent) => agent.maxAbsAdvantage,
    ...fromZero,
    ...learning,
    logarithmic: true,
  },
  {
    key: 'called',
    title: 'called in',
    hint: 'The share of the episodes in which it is called.',
    of: (agent) => agent.calls?.share,
    ...share,
  },
  {
    key: 'reward-there',
    title: 'reward of those episodes',
    hint: "The team's mean reward in the episodes in which the agent is called.",
    of: (agent) => agent.calls?.success,
    ...fromZero,
  },
  {
    key: 'rewarded-invalid',
    title: 'invalid outputs that were rewarded',
    hint: 'The share of its invalid turns that got a positive advantage.',
    of: (agent) => agent.health?.rewardedInvalid,
    ...share,
  },
  {
    key: 'foreign',
    title: 'messages in prompts that no turn wrote',
    hint: "The share of the assistants' messages in its prompts that were read as text, not as the sampled token ids.",
    of: ({ history }) => (history === undefined ? undefined : shareOfForeign([history])),
    ...share,
  },
  {
    key: 'tokens-read',
    title: 'tokens read',
    hint: 'Tokens of all prompts of the step; a shared prefix counts for each prompt.',
    of: (agent) => agent.tokens?.read,
    ...fromZero,
  },
  {
    key: 'tokens-trained',
    title: 'tokens trained',
    hint: 'Prompts and responses that went through updates of the step.',
    of: (agent) => agent.tokens?.trained,
    ...fromZero,
    ...learning,
  },
  {
    key: 'cost',
    title: 'cost',
    hint: "The cost of the step's tokens, at the price of its policy.",
    of: (agent) => agent.cost,
    ...fromZero,
  },
  {
    key: 'spread',
    title: 'spread of rewards within a group',
    hint: 'Standard deviation; if it is 0, nothing is learnt.',
    of: (agent) => agent.health?.groupSpread,
    ...fromZero,
  },
  {
    key: 'duplicates',
    title: "turns that repeat a sibling's",
    hint: 'Same task, same call, same words.',
    of: (agent) => agent.health?.duplicates,
    ...share,
  },
  {
    key: 'chance',
    title: 'chance in the rewards',
    hint: 'The variance of rewards of equal texts, over that of all texts of a task; near 1, the text decides nothing.',
    of: (agent) => agent.health?.chance,
    ...fromZero,
  },
  {
    key: 'penalty-only',
    title: 'groups that differ by penalties alone',
    hint: 'They teach only the format.',
    of: (agent) => agent.health?.groups.penaltyOnly,
    ...fromZero,
  },
  { key: 'turns', title: 'turns a step', hint: 'Calls of the agent.', of: (agent) => agent.turns, ...fromZero },
  {
    key: 'kl',
    title: 'KL from the sampling policy',
    hint: 'Over the updates of a step; 0 for a single one.',
    of: (agent) => agent.kl,
    ...fromZero,
    ...learning,
  },
  {
    key: 'clip',
    title: 'clip fraction',
    hint: 'The share of tokens for which the loss used the clipped term.',
    of: (agent) => agent.clipFraction,
    ...share,
    ...learning,
  },
];

/** The measurements that pages show first. */
export const mainMeasures = agentMeasures.filter(({ main }) => main === true);

function gradientShare({ gradientNorm }: AgentStep, { agents }: Step): number | undefined {
  const squares = Object.values(agents)
    .filter(({ frozen }) => frozen !== true)
    .map((agent) => agent.gradientNorm ** 2);
  const sum = squares.reduce((a, b) => a + b, 0);
  return squares.length > 1 && sum > 0 ? gradientNorm ** 2 / sum : undefined;
}

/** The values of a measurement at each step. NaN if there is none. */
export function valuesOf(measure: AgentMeasure, agent: string, steps: readonly Step[]): number[] {
  return steps.map((step) => {
    const of = step.agents?.[agent];
    if (of === undefined || (measure.learning === true && of.frozen === true)) return Number.NaN;
    return measure.of(of, step) ?? Number.NaN;
  });
}
