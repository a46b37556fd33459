/** What is measured of each agent at each step, as charts show it. */
import { shareOfForeign } from '../../core/episode.js';
import type { AgentStep, Step } from '../../core/events.js';

/** One measurement of an agent. */
export interface AgentMeasure {
  readonly key: string;
  readonly title: string;
  /** What it is and what it means, in a sentence. */
  readonly hint: string;
  readonly of: (agent: AgentStep, step: Step) => number | null | undefined;
  readonly unit: 'number' | 'share';
  /** Values that the axis must include. */
  readonly include?: readonly number[];
  /** True where values may be orders of magnitude apart. */
  readonly logarithmic?: true;
  /** A line across at this value. */
  readonly reference?: number;
  /** True for the measurement on which spikes are marked. */
  readonly spikes?: true;
  /** True for one that says nothing of agents that do not train. */
  readonly learning?: true;
  /** True for those that come first. */
  readonly main?: true;
}

const fromZero = { unit: 'number', include: [0] } as const;
const share = { unit: 'share', include: [0] } as const;
const learning = { learning: true } as const;

/** The measurements in the order in which they are shown. Logs of earlier versions lack some. */
export const agentMeasures: readonly AgentMeasure[] = [
  {
    key: 'reward',
    title: 'reward',
    hint: "Mean of the agent's turns: the episode's reward for it, the turn's own, less penalties.",
    of: (agent) => agent.rewardMean,
    unit: 'number',
    main: true,
  },
  {
    key: 'norm',
    title: 'gradient norm',
    hint: 'Before clipping. Rings mark spikes: far above the running median.',
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
    hint: "The agent's squared norm over that of all agents: who moves the weights of this step.",
    of: (agent, step) => gradientShare(agent, step),
    unit: 'share',
    include: [0, 1],
    ...learning,
    main: true,
  },
  {
    key: 'agreement',
    title: 'agreement of gradients',
    hint: 'The cosine with the gradients of the agents that share its policy; below 0 they pull against each other.',
    of: (agent) => agent.agreement,
    unit: 'number',
    include: [-1, 1],
    reference: 0,
    ...learning,
  },
  {
    key: 'predicted-inflation',
    title: 'predicted inflation',
    hint: 'How much larger shared statistics make the second moment of its gradient (Lemma 4.2); 1 is no inflation.',
    of: (agent) => agent.inflation?.predicted,
    ...fromZero,
    ...learning,
    reference: 1,
    main: true,
  },
  {
    key: 'own-share',
    title: 'own share',
    hint: 'How much of its squared scores under shared statistics follows its own rewards; below 50 %, what the others earn decides.',
    of: (agent) => agent.inflation?.ownShare,
    ...share,
    include: [0, 1],
    reference: 0.5,
    ...learning,
  },
  {
    key: 'measured-inflation',
    title: 'measured inflation',
    hint: 'The same with the gradients of up to 32 turns, every training.measureInflation steps.',
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
    hint: 'Mean length of what it wrote.',
    of: (agent) => agent.responseTokens,
    ...fromZero,
    main: true,
  },
  {
    key: 'advantage',
    title: 'largest |advantage|',
    hint: 'Of the turns of the step.',
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
    hint: "The share of the assistants' messages in its prompts that were read as text, not with the ids that were sampled.",
    of: ({ history }) => (history === undefined ? undefined : shareOfForeign([history])),
    ...share,
  },
  {
    key: 'tokens-read',
    title: 'tokens read',
    hint: 'Of all prompts of the step, shared prefixes counted each time.',
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
    hint: "Of the step's tokens, at the price of its policy.",
    of: (agent) => agent.cost,
    ...fromZero,
  },
  {
    key: 'spread',
    title: 'spread of rewards within a group',
    hint: 'Standard deviation; without any, nothing is learnt.',
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
    key: 'penalty-only',
    title: 'groups that differ by penalties alone',
    hint: 'They teach form and nothing else.',
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
    hint: 'The share of tokens whose clipped side counted.',
    of: (agent) => agent.clipFraction,
    ...share,
    ...learning,
  },
];

/** The share of the squared gradient norm of all agents; undefined where nobody has a gradient. */
function gradientShare({ gradientNorm }: AgentStep, { agents }: Step): number | undefined {
  const squares = Object.values(agents)
    .filter(({ frozen }) => frozen !== true)
    .map((agent) => agent.gradientNorm ** 2);
  const sum = squares.reduce((a, b) => a + b, 0);
  return squares.length > 1 && sum > 0 ? gradientNorm ** 2 / sum : undefined;
}

/** The values of a measurement at each step, NaN where there is none. */
export function valuesOf(measure: AgentMeasure, agent: string, steps: readonly Step[]): number[] {
  return steps.map((step) => {
    const of = step.agents?.[agent];
    if (of === undefined || (measure.learning === true && of.frozen === true)) return Number.NaN;
    return measure.of(of, step) ?? Number.NaN;
  });
}
