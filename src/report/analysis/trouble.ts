/** In which agent a run's trouble began: the order in which measurements of agents left what they were at first. */
import type { AgentStep, Step } from '../../core/events.js';
import { percent, significant } from '../../core/format.js';
import { mean } from '../../core/statistics.js';

/** Number of steps at the beginning, and of the latest, that are averaged: as in the stability watch. */
const STEPS = 5;
/** A norm below this is not worth a warning, whatever it was before. */
const SMALLEST_NORM = 0.1;

type Reading = Pick<AgentStep, 'rewardMean' | 'rewardStd' | 'gradientNorm' | 'maxAbsAdvantage' | 'entropy' | 'invalid'>;

/** A measurement that can leave its first values. */
export type TroubleSign = 'norm' | 'advantage' | 'entropy' | 'invalid' | 'reward';

interface Rule {
  readonly sign: TroubleSign;
  readonly crossed: (first: Reading, now: Reading) => boolean;
  readonly of: (reading: Reading) => number;
  readonly text: (value: number) => string;
  /** Whether more reward excuses it, as it does for what learning itself does to an agent. */
  readonly excused: boolean;
}

/** The rules, in the order in which trouble usually shows. */
const RULES: readonly Rule[] = [
  {
    sign: 'norm',
    crossed: (first, now) => now.gradientNorm > 3 * first.gradientNorm && now.gradientNorm > SMALLEST_NORM,
    of: ({ gradientNorm }) => gradientNorm,
    text: significant,
    excused: true,
  },
  {
    sign: 'advantage',
    crossed: (first, now) => first.maxAbsAdvantage > 0 && now.maxAbsAdvantage > 2 * first.maxAbsAdvantage,
    of: ({ maxAbsAdvantage }) => maxAbsAdvantage,
    text: significant,
    excused: true,
  },
  {
    sign: 'entropy',
    crossed: (first, now) => now.entropy < 0.1 * first.entropy,
    of: ({ entropy }) => entropy,
    text: significant,
    excused: true,
  },
  {
    sign: 'invalid',
    crossed: (first, now) => now.invalid > Math.max(first.invalid + 0.05, 2 * first.invalid),
    of: ({ invalid }) => invalid,
    text: (value) => percent(value),
    excused: false,
  },
  {
    sign: 'reward',
    crossed: (first, now) => now.rewardMean < first.rewardMean - 0.25 * first.rewardStd && first.rewardStd > 0,
    of: ({ rewardMean }) => rewardMean,
    text: significant,
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
  /** What happened, in words: `gradient norm 0.56 -> 1.91`. */
  readonly text: string;
  /** Whether the latest steps are still beyond it. */
  readonly lasts: boolean;
}

/**
 * The first crossings of all agents that train, in the order of their steps. What learning itself does (larger norms,
 * less entropy) counts only while the agent's reward has not risen by a quarter of its first standard deviation.
 */
export function firstCrossings(steps: readonly Pick<Step, 'step' | 'agents'>[]): Crossing[] {
  const names = [...new Set(steps.flatMap(({ agents }) => Object.keys(agents ?? {})))].sort();
  const all = names.flatMap((agent) => crossingsOf(agent, steps));
  const rank = ({ sign }: Crossing) => RULES.findIndex((rule) => rule.sign === sign);
  return all.sort((a, b) => a.step - b.step || rank(a) - rank(b));
}

/**
 * The agent in which trouble began: that of the first crossing, where anything is wrong in the latest steps, which is
 * invalid output, a fall of reward or two different signs. A single large norm is none, and what has passed is none:
 * an agent that tries other words writes invalid ones at first.
 */
export function patientZero(crossings: readonly Crossing[]): Crossing | undefined {
  const signs = new Set(crossings.filter(({ lasts }) => lasts).map(({ sign }) => sign));
  return signs.has('invalid') || signs.has('reward') || signs.size > 1 ? crossings[0] : undefined;
}

const WORDS: Readonly<Record<TroubleSign, string>> = {
  norm: 'gradient norm',
  advantage: 'largest |advantage|',
  entropy: 'entropy',
  invalid: 'invalid outputs',
  reward: 'reward',
};

function crossingsOf(agent: string, steps: readonly Pick<Step, 'step' | 'agents'>[]): Crossing[] {
  const readings = steps.flatMap(({ step, agents }) => {
    const reading = agents?.[agent];
    return reading === undefined || reading.frozen === true ? [] : [{ step, reading }];
  });
  const begin = averaged(readings.slice(0, STEPS).map(({ reading }) => reading));
  const until = (end: number) => averaged(readings.slice(end - STEPS, end).map(({ reading }) => reading));
  const beyond = ({ crossed, excused }: Rule, now: Reading) =>
    crossed(begin, now) && !(excused && now.rewardMean > begin.rewardMean + 0.25 * begin.rewardStd);
  const latest = until(readings.length);
  const crossings = new Map<TroubleSign, Crossing>();
  for (let end = 2 * STEPS; end <= readings.length; end++) {
    const now = until(end);
    for (const rule of RULES) {
      const { sign, of, text } = rule;
      if (crossings.has(sign) || !beyond(rule, now)) continue;
      const [before, after] = [of(begin), of(now)];
      const step = readings[end - 1]?.step ?? 0;
      const words = `${WORDS[sign]} ${text(before)} -> ${text(after)}`;
      crossings.set(sign, { agent, sign, step, before, after, text: words, lasts: beyond(rule, latest) });
    }
  }
  return [...crossings.values()];
}

/** The means of each measurement, without values that are no finite numbers. */
function averaged(readings: readonly Reading[]): Reading {
  const of = (key: keyof Reading) => mean(readings.map((reading) => reading[key]).filter(Number.isFinite));
  return {
    rewardMean: of('rewardMean'),
    rewardStd: of('rewardStd'),
    gradientNorm: of('gradientNorm'),
    maxAbsAdvantage: of('maxAbsAdvantage'),
    entropy: of('entropy'),
    invalid: of('invalid'),
  };
}
