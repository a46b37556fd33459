/**
 * Finds the agent in which a run's trouble began: the order in which the agents' measurements left their first values.
 */
import type { AgentStep, RunStarted, Step } from '@drmas/engine/events';
import { isSilent, percent, ROUNDING, significant } from '@drmas/engine/host';
import { finite, mean, meanOfFinite } from '@drmas/engine/math';
import type { Headline } from '@drmas/engine/nouns';

/** The number of steps at the beginning, and at the end, that are averaged. The same as in the stability watch. */
const STEPS = 5;
/** A norm below this does not deserve a warning, for any earlier norm. */
const SMALLEST_NORM = 0.1;

/** Means of measurements. NaN if no step has it, so that no comparison holds. */
type StepReading = Readonly<
  Record<'rewardMean' | 'rewardStd' | 'gradientNorm' | 'maxAbsAdvantage' | 'entropy' | 'invalid', number>
>;

export type TroubleSign = 'norm' | 'advantage' | 'entropy' | 'invalid' | 'reward';

interface TroubleRule {
  readonly sign: TroubleSign;
  readonly reading: keyof StepReading;
  readonly words: string;
  readonly crossed: (first: StepReading, now: StepReading) => boolean;
  /** Whether the crossing is acceptable if the reward has risen, because learning itself causes it. */
  readonly excused: boolean;
}

/** The rules, in the order in which trouble usually shows. */
const RULES: readonly TroubleRule[] = [
  {
    sign: 'norm',
    reading: 'gradientNorm',
    words: 'gradient norm',
    crossed: (first, now) => now.gradientNorm > 3 * first.gradientNorm && now.gradientNorm > SMALLEST_NORM,
    excused: true,
  },
  {
    sign: 'advantage',
    reading: 'maxAbsAdvantage',
    words: 'largest |advantage|',
    crossed: (first, now) => first.maxAbsAdvantage > 0 && now.maxAbsAdvantage > 2 * first.maxAbsAdvantage,
    excused: true,
  },
  {
    sign: 'entropy',
    reading: 'entropy',
    words: 'entropy',
    crossed: (first, now) => now.entropy < 0.1 * first.entropy,
    excused: true,
  },
  {
    sign: 'invalid',
    reading: 'invalid',
    words: 'invalid outputs',
    crossed: (first, now) => now.invalid > Math.max(first.invalid + 0.05, 2 * first.invalid),
    excused: false,
  },
  {
    sign: 'reward',
    reading: 'rewardMean',
    words: 'reward',
    crossed: (first, now) => now.rewardMean < first.rewardMean - 0.25 * first.rewardStd && first.rewardStd > 0,
    excused: false,
  },
];

/** The first step at which a measurement of an agent, averaged over the latest steps, had left its first values. */
export interface Crossing {
  readonly agent: string;
  readonly sign: TroubleSign;
  readonly step: number;
  readonly before: number;
  readonly after: number;
  /** The change in words: `gradient norm 0.56 -> 1.91`. */
  readonly text: string;
  /** Whether the latest steps are still beyond the limit. */
  readonly lasts: boolean;
}

/**
 * The first crossings of all agents that train, in the order of their steps. Learning itself causes larger norms and
 * less entropy. These count only if the agent's reward has not risen by a quarter of its first standard deviation.
 */
export function firstCrossings(steps: readonly Pick<Step, 'step' | 'agents'>[]): Crossing[] {
  const names = [...new Set(steps.flatMap(({ agents }) => Object.keys(agents ?? {})))].sort();
  const all = names.flatMap((agent) => crossingsOf(agent, steps));
  const rank = ({ sign }: Crossing) => RULES.findIndex((rule) => rule.sign === sign);
  return all.sort((a, b) => a.step - b.step || rank(a) - rank(b));
}

/**
 * The agent in which trouble began: the agent of the first crossing, if the latest steps show trouble. Trouble is
 * invalid output, a fall of reward, or two different signs. A single large norm is not trouble, and neither is a
 * crossing that has passed: an agent that explores other words writes invalid outputs at first.
 */
export function patientZero(crossings: readonly Crossing[]): Crossing | undefined {
  const signs = new Set(crossings.filter(({ lasts }) => lasts).map(({ sign }) => sign));
  return signs.has('invalid') || signs.has('reward') || signs.size > 1 ? crossings[0] : undefined;
}

/** Fewer steps say nothing about a policy that learns slowly. */
const STEPS_TO_MOVE = 30;
/** From this share of solved tasks on, a policy need not move. */
const SOLVED = 0.95;

interface Evaluated {
  readonly headline: Headline;
  readonly last: { readonly averageAtK: number } | null | undefined;
}

/**
 * The agents whose policy has hardly moved: their entropy is within 3 % of its first value, and their reward within a
 * tenth of its first standard deviation, although their turns have advantages. Each with its values in words. Mostly
 * the learning rate is too low. If the team solves nearly all tasks, the list is empty. A run whose headline is the
 * reward does not say which tasks are solved.
 */
export function unmovedAgents(
  steps: readonly Pick<Step, 'step' | 'agents'>[],
  { headline, last }: Evaluated,
): string[] {
  if (headline === 'score' && (last?.averageAtK ?? 0) >= SOLVED) return [];
  return [...stillAgents(steps)].map(([agent, values]) => `${agent}: ${values}`);
}

/** The agents that have hardly moved, each with its values in words. */
function stillAgents(steps: readonly Pick<Step, 'agents'>[]): ReadonlyMap<string, string> {
  const names = [...new Set(steps.flatMap(({ agents }) => Object.keys(agents ?? {})))].sort();
  const still = names.flatMap((agent): (readonly [string, string])[] => {
    const readings = steps.flatMap(({ agents }) => agents?.[agent] ?? []);
    if (readings.length < STEPS_TO_MOVE || readings.some(({ frozen }) => frozen === true)) return [];
    const [first, now] = [averaged(readings.slice(0, 2 * STEPS)), averaged(readings.slice(-2 * STEPS))];
    const same =
      now.entropy > 0.97 * first.entropy &&
      now.entropy < 1.03 * first.entropy &&
      Math.abs(now.rewardMean - first.rewardMean) < 0.1 * first.rewardStd;
    if (!same || !(first.maxAbsAdvantage > 0)) return [];
    return [
      [
        agent,
        `entropy ${significant(first.entropy)} -> ${significant(now.entropy)}, reward ${significant(first.rewardMean)} -> ${significant(now.rewardMean)}`,
      ],
    ];
  });
  return new Map(still);
}

/**
 * From this coefficient on a KL penalty or an entropy bonus holds a policy where it is: the best policy under
 * advantages A is the reference, or an equal chance of all texts, times exp(A / coefficient), and advantages are about
 * 1.
 */
const HOLDING = 1;
/** Decay of so many times a weight's size leaves a tenth of the weights with which the run began. */
const DECAYED = Math.log(10);
/** A gradient that clipping scales down by more than this factor moves a policy only with a larger learning rate. */
const CLIPPED = 100;
/** AdamW and its kind divide gradients by their size, so that only gradients near their epsilon count as clipped. */
const NEAR_EPSILON = 1e-6;

/**
 * From this share of chance on, the reward hardly depends on the texts. If a right text of four wins in 70 % and others
 * in 30 %, it is 0.88.
 */
const CHANCE = 0.95;

const toolErrorsOf = (agents: Step['agents']) => Object.values(agents).flatMap(({ toolErrors }) => toolErrors ?? []);

/** From this share on, errors of tools are a likelier cause than the learning rate. */
const FAILING = 0.25;

/** The smallest share of chance in an agent's rewards, over the run. NaN if no step has it. */
function leastChance(steps: readonly Pick<Step, 'agents'>[]): number {
  const agents = steps.flatMap((step) => Object.entries(step.agents ?? {}));
  const trained = agents.filter(([, { frozen }]) => frozen !== true);
  const shares = [...new Set(trained.map(([name]) => name))].map((name) => {
    return meanOfFinite(trained.flatMap(([agent, { health }]) => (agent === name ? (health?.chance ?? []) : [])));
  });
  return shares.length === 0 ? Number.NaN : Math.min(...shares);
}

type Learning = Pick<RunStarted, 'learning'>;

type Movement = readonly Pick<Step, 'policies' | 'agents'>[];

/**
 * Advice about agents that have not moved: of their policies and rewards, and not of those of agents that learn beside
 * them.
 * @param started The first event of the run. Logs of earlier versions do not say there who plays with which policy
 */
export function howToMove(steps: Movement, started: Learning = {}): string {
  const still = [...stillAgents(steps).keys()];
  const names = [...new Set(steps.flatMap(({ policies = {} }) => Object.keys(policies)))];
  const unmoved = names.map((name) => {
    const players = started.learning?.[name]?.agents;
    return { name, agents: players === undefined ? still : still.filter((agent) => players.includes(agent)) };
  });
  const concerned = unmoved.some(({ agents }) => agents.length > 0)
    ? unmoved.filter(({ agents }) => agents.length > 0)
    : unmoved;
  const advice = concerned.map(({ name, agents }) => ({ name, holds: holding(name, steps, started), agents }));
  const held = advice.filter(({ holds }) => holds !== undefined);
  const knows = Object.values(started.learning ?? {}).some(({ agents }) => agents !== undefined);
  // Without the names of the players, the first policy that is held is the likeliest one.
  const told = knows || held.length === 0 ? advice : held.slice(0, 1);
  const texts = told.map(({ name, holds, agents }) => {
    return [name, holds ?? causeFor(steps, agents, started.learning?.[name]?.optimizer)] as const;
  });
  const [first = causeFor(steps, [])] = texts.map(([, text]) => text);
  if (texts.every(([, text]) => text === first)) return `The policy hardly moves. ${first}`;
  return `The policies hardly move. ${texts.map(([name, text]) => `${name}: ${text}`).join(' ')}`;
}

/** The setting that keeps a policy from moving. Undefined if none does. */
function holding(name: string, steps: Movement, started: Learning): string | undefined {
  const { klCoefficient = 0 } = steps.findLast((step) => step.policies?.[name] !== undefined)?.policies[name] ?? {};
  const { optimizer, clipNorm = 0, entropyCoefficient = 0, weightDecay = 0 } = started.learning?.[name] ?? {};
  const path = `policies.${name}`;
  if (klCoefficient >= HOLDING)
    return `Its KL penalty holds it: ${path}.kl.coefficient is ${significant(klCoefficient)} at the end, ${LESS}`;
  if (entropyCoefficient >= HOLDING)
    return `Its entropy bonus holds it: ${path}.entropyCoefficient is ${significant(entropyCoefficient)}, ${LESS}`;
  const rates = steps.flatMap((step) => step.policies?.[name]?.learningRate ?? []);
  if (weightDecay * rates.reduce((sum, rate) => sum + rate, 0) > DECAYED)
    return `Its weight decay holds it: ${path}.optimizer.weightDecay is ${weightDecay}, ${LESS}`;
  const norms = finite(steps.flatMap((step) => step.policies?.[name]?.gradientNorm ?? []));
  const norm = norms.length === 0 ? 0 : mean(norms);
  if (clipNorm > 0 && norm > CLIPPED * clipNorm && (optimizer === 'sgd' || clipNorm < NEAR_EPSILON))
    return `Clipping holds it: ${path}.clipNorm is ${clipNorm}, and its gradients have norms of ${significant(norm)}.`;
  return undefined;
}

/** The likeliest cause that lies in no setting of a policy. @param only Agents that have not moved; empty for all */
function causeFor(steps: Movement, only: readonly string[], optimizer?: string): string {
  const seen = steps.map(({ agents = {} }) => ({
    agents: Object.fromEntries(Object.entries(agents).filter(([agent]) => only.length === 0 || only.includes(agent))),
  }));
  const chance = leastChance(seen);
  const failing = mean(seen.map(({ agents }) => Math.max(0, ...toolErrorsOf(agents))));
  if (failing > FAILING) return `${percent(failing, 0)} of the results of its tools are errors. Mend the tools first.`;
  if (chance > CHANCE)
    return (
      `Its reward looks like chance: rewards of equal texts vary as much as those of different texts ` +
      `(${percent(chance, 0)}). Look at the team's reward and its judge.`
    );
  const sizes = finite(
    seen.flatMap(({ agents }) => Object.values(agents).map(({ maxAbsAdvantage }) => maxAbsAdvantage)),
  );
  const largest = sizes.reduce((a, b) => Math.max(a, b), 0);
  if (sizes.length > 0 && largest < (optimizer === 'sgd' ? TINY : NEAR_EPSILON))
    return `Its advantages are at most ${significant(largest)}: rewards hardly differ, or the estimator's settings scale them down (such as advantage.epsilon).`;
  const isBlind = (agent: AgentStep) => agent.health?.samePrompt === true;
  if (seen.every(({ agents }) => Object.values(agents).some(isBlind))) return `${BLIND} Else: ${TOO_SLOW}`;
  return TOO_SLOW;
}

/** Advantages are about 1. Some of this size move only policies whose optimiser takes out the size of gradients. */
const TINY = 0.01;
const BLIND =
  'It begins each task with the same prompt. If it is to solve different tasks, write the task into its prompt.';
const LESS = 'try a hundredth of it.';
const TOO_SLOW =
  'Mostly its learning rate is too low: try one that is 3 to 10 times as high. If that changes nothing, see whether ' +
  'the reward depends on what it writes, or on chance.';

function crossingsOf(agent: string, steps: readonly Pick<Step, 'step' | 'agents'>[]): Crossing[] {
  const readings = steps.flatMap(({ step, agents }) => {
    const reading = agents?.[agent];
    return reading === undefined || reading.frozen === true ? [] : [{ step, reading }];
  });
  const begin = averaged(readings.slice(0, STEPS).map(({ reading }) => reading));
  const until = (end: number) => averaged(readings.slice(end - STEPS, end).map(({ reading }) => reading));
  const beyond = ({ crossed, excused }: TroubleRule, now: StepReading) =>
    crossed(begin, now) && !(excused && now.rewardMean > begin.rewardMean + 0.25 * begin.rewardStd);
  const latest = until(readings.length);
  const crossings = new Map<TroubleSign, Crossing>();
  for (let end = 2 * STEPS; end <= readings.length; end++) {
    const now = until(end);
    for (const rule of RULES) {
      const { sign, reading, words } = rule;
      if (crossings.has(sign) || !beyond(rule, now)) continue;
      const [before, after] = [begin[reading], now[reading]];
      const shown = sign === 'invalid' ? percent : significant;
      const step = readings[end - 1]?.step ?? 0;
      const text = `${words} ${shown(before)} -> ${shown(after)}`;
      crossings.set(sign, { agent, sign, step, before, after, text, lasts: beyond(rule, latest) });
    }
  }
  return [...crossings.values()];
}

/**
 * The means of each measurement. Values that are absent or not finite are ignored, and so are norms and advantages of
 * steps in which the agent learnt nothing, such as those in which its policy waits for its critic: they are 0, and all
 * others are far above.
 */
function averaged(readings: readonly Pick<AgentStep, keyof StepReading | 'sampledEntropy'>[]): StepReading {
  const compared = readings.filter(({ maxAbsAdvantage }) => maxAbsAdvantage >= ROUNDING);
  const of = (key: keyof StepReading, among = readings) => {
    return meanOfFinite(among.flatMap((reading) => reading[key] ?? []));
  };
  return {
    rewardMean: of('rewardMean'),
    rewardStd: of('rewardStd'),
    gradientNorm: of(
      'gradientNorm',
      compared.filter((reading) => !isSilent(reading)),
    ),
    maxAbsAdvantage: of('maxAbsAdvantage', compared),
    // Of all turns. The entropy of an update is of the turns that differ from their siblings.
    entropy: meanOfFinite(readings.flatMap(({ sampledEntropy, entropy = Number.NaN }) => sampledEntropy ?? entropy)),
    invalid: of('invalid'),
  };
}
