/** The rules that end a run before its last step (`training.stopWhen`), and the best evaluation so far. */

import type { BestEvaluation, EarlyStop, EvaluationEvent, RunEvent, Step } from '@drmas/engine/events';
import {
  type Clock,
  duration,
  grouped,
  playedTokens,
  significant,
  spentTogether,
  type TokenCount,
} from '@drmas/engine/host';
import { isScored, type Turn } from '@drmas/engine/nouns';
import { z } from 'zod';
import type { Recipe } from '../../recipe/recipe.js';
import type { Requirement } from '../run/signal.js';

type Training = Recipe['training'];
type StopSettings = Pick<Training, 'steps' | 'keepBest' | 'bestBy' | 'stopWhen'>;

/** The score that evaluations are compared by, unless the recipe names another one. */
export const DEFAULT_SCORE = 'averageAtK';

const scoreOfStep = z.object({ step: z.int().min(0), score: z.number() });

/**
 * The state of the rules in a checkpoint. It has only the parts that the recipe's rules need, and the tokens and the
 * cost so far, for a run that resumes with a limit of them.
 */
export const stopSchema = z.object({
  by: z.string().optional(),
  best: scoreOfStep.optional(),
  /** The evaluation that the next ones must exceed by `minimumGain`, and how many in a row have not. */
  waiting: scoreOfStep.extend({ evaluations: z.int().min(0) }).optional(),
  /** Steps in a row whose mean reward is below the floor. */
  low: z.int().min(0).optional(),
  /** The `minimumGain` and the floor that these numbers were counted under. Earlier versions did not keep them. */
  gain: z.number().optional(),
  floor: z.number().optional(),
  /** Tokens read and written, cost, and seconds of wall-clock time. */
  tokens: z.number().optional(),
  cost: z.number().optional(),
  seconds: z.number().optional(),
});

type StopState = z.output<typeof stopSchema>;

type Reason = Pick<EarlyStop, 'rule' | 'message'>;

/**
 * Decides after each step and each evaluation whether the run ends. The decision depends only on the settings and on
 * the state, which checkpoints keep: a resumed run decides as the uninterrupted run does. Only the wall-clock time can
 * differ: the time between the last complete step and an interruption does not count.
 */
export class StopRules {
  readonly #settings: StopSettings;
  #state: StopState;
  #clock: Clock | undefined;
  /** The clock's seconds up to which time is counted. */
  #counted = 0;

  constructor(settings: StopSettings, state: StopState = {}) {
    this.#settings = settings;
    const { by, best, waiting, gain, ...rest } = state;
    this.#state = countedUnder(settings, by === this.#by ? state : rest); // scores of another kind cannot be compared
  }

  /** In the order of the schema, so that a resumed run writes the same bytes. */
  get state(): StopState | undefined {
    const state = stopSchema.parse(this.#state);
    return Object.keys(state).length === 0 ? undefined : state;
  }

  get bestStep(): number | undefined {
    return this.#settings.keepBest === true ? this.#state.best?.step : undefined;
  }

  get reason(): Reason | undefined {
    const { stopWhen: { score, patience, rewardFloor, tokens, cost, minutes } = {} } = this.#settings;
    const { best, waiting, low = 0, tokens: used = 0, cost: paid = 0, seconds = 0 } = this.#state;
    const limit = (rule: EarlyStop['rule']) => `training.stopWhen.${rule}`;
    if (score !== undefined && best !== undefined && best.score >= score)
      return {
        rule: 'score',
        message: `${this.#by} of step ${best.step} is ${significant(best.score)}, and ${limit('score')} is ${score}`,
      };
    if (patience !== undefined && waiting !== undefined && waiting.evaluations >= patience)
      return {
        rule: 'patience',
        message: `after step ${waiting.step} (${this.#by} ${significant(waiting.score)}) no evaluation was better, ${waiting.evaluations} in a row (${limit('patience')})${this.#noSuccess(waiting)}`,
      };
    if (rewardFloor !== undefined && low >= rewardFloor.steps)
      return {
        rule: 'rewardFloor',
        message: `the mean reward was below ${rewardFloor.below} in ${low} steps in a row (${limit('rewardFloor')})`,
      };
    if (tokens !== undefined && used >= tokens)
      return {
        rule: 'tokens',
        message: `the agents have read and written ${grouped(used)} tokens, and ${limit('tokens')} is ${grouped(tokens)}`,
      };
    if (cost !== undefined && paid >= cost)
      return { rule: 'cost', message: `the run has cost ${significant(paid)}, and ${limit('cost')} is ${cost}` };
    if (minutes !== undefined && seconds >= 60 * minutes)
      return {
        rule: 'minutes',
        message: `the run has taken ${duration(seconds)}, and ${limit('minutes')} is ${minutes}`,
      };
    return undefined;
  }

  /**
   * Resumes after a step. The time before is that of the events, if the run did not count it because it had no limit of
   * it. Returns the event if a limit is new to the run and reached already.
   */
  resume(step: number, events: readonly RunEvent[]): EarlyStop | undefined {
    if (this.#settings.stopWhen?.minutes !== undefined && this.#state.seconds === undefined) {
      const timed = events.flatMap((event) => (event.type === 'step' || event.type === 'evaluation' ? [event] : []));
      this.#state = { ...this.#state, seconds: timed.reduce((sum, { seconds = 0 }) => sum + seconds, 0) };
    }
    const told = events.some((event) => event.type === 'stop' && event.step === step);
    if (this.reason === undefined || told || step >= this.#settings.steps) return undefined;
    return { type: 'stop', step, ...this.reason };
  }

  /** Starts to count wall-clock time, when reinforcement begins or is resumed. */
  start(clock: Clock): void {
    this.#clock = clock;
    this.#counted = clock.seconds();
  }

  /**
   * Counts a step. Returns the event if the run ends because of it.
   * @param turns All that were played in it, also in failed episodes and baselines
   */
  afterStep(event: Pick<Step, 'step' | 'reward' | 'cost'>, turns: readonly Turn[]): EarlyStop | undefined {
    const { rewardFloor } = this.#settings.stopWhen ?? {};
    return this.#decide(event.step, () => {
      // A step whose every reward failed, while a judge was away say, tells nothing about the reward.
      if (rewardFloor !== undefined && event.reward !== undefined)
        this.#state = {
          ...this.#state,
          low: event.reward.mean < rewardFloor.below ? (this.#state.low ?? 0) + 1 : 0,
          floor: rewardFloor.below,
        };
      this.#spend(playedTokens(turns), event);
    });
  }

  /** Counts an evaluation. Returns the events if it is the best so far, and if the run ends because of it. */
  afterEvaluation(event: EvaluationEvent): (BestEvaluation | EarlyStop)[] {
    const { step } = event;
    const before = this.#state.best;
    const stop = this.#decide(step, () => {
      // Nor does an evaluation of which no episode has a score.
      if (isScored(event)) this.#compare(step, event[this.#by] ?? Number.NaN);
      const counted = Object.values(event.agents).flatMap(({ tokens }) => (tokens === undefined ? [] : [{ tokens }]));
      this.#spend(spentTogether(counted).tokens, event);
    });
    const { best } = this.#state;
    const isBest = this.bestStep !== undefined && best !== undefined && best !== before;
    return [
      ...(isBest ? [{ type: 'best', step, by: this.#by, score: best.score } as const] : []),
      ...(stop === undefined ? [] : [stop]),
    ];
  }

  /** The advice if no episode of the best evaluation succeeded: perhaps none can, whatever it earns. */
  #noSuccess({ step, score }: { readonly step: number; readonly score: number }): string {
    return score > 0 || this.#by === 'reward'
      ? ''
      : `. No episode succeeded after step ${step}: if the team has no \`success\`, that is a reward of at least 1. training.bestBy 'reward' compares rewards`;
  }

  get #by() {
    return this.#settings.bestBy ?? DEFAULT_SCORE;
  }

  #decide(step: number, count: () => void): EarlyStop | undefined {
    const before = this.reason;
    count();
    const after = this.reason;
    const isNews = before === undefined && after !== undefined && step < this.#settings.steps;
    return isNews ? { type: 'stop', step, ...after } : undefined;
  }

  #compare(step: number, score: number): void {
    const { keepBest = false, stopWhen: { score: target, patience, minimumGain = 0 } = {} } = this.#settings;
    const { best, waiting } = this.#state;
    const isScore = Number.isFinite(score); // a reward that is not a number is no better than any other
    if (keepBest || target !== undefined)
      if (isScore && (best === undefined || score > best.score))
        this.#state = { ...this.#state, by: this.#by, best: { step, score } };
    if (patience === undefined) return;
    if (isScore && (waiting === undefined || score > waiting.score + minimumGain))
      this.#state = { ...this.#state, by: this.#by, waiting: { step, score, evaluations: 0 }, gain: minimumGain };
    else if (waiting !== undefined)
      this.#state = { ...this.#state, waiting: { ...waiting, evaluations: waiting.evaluations + 1 } };
  }

  #spend({ read, written }: TokenCount, { cost: more = 0 }: Pick<Step | EvaluationEvent, 'cost'>): void {
    const { minutes } = this.#settings.stopWhen ?? {};
    const now = this.#clock?.seconds() ?? 0;
    const seconds = Math.max(0, now - this.#counted);
    this.#counted = now;
    const { tokens: used = 0, cost: paid = 0, seconds: passed = 0 } = this.#state;
    this.#state = {
      ...this.#state,
      tokens: used + read + written,
      ...(paid + more > 0 && { cost: paid + more }),
      ...(minutes !== undefined && { seconds: passed + seconds }),
    };
  }
}

/** The state without the counts that a rule with other limits begins anew, and without a time that is not counted. */
function countedUnder({ stopWhen = {} }: StopSettings, state: StopState) {
  const { rewardFloor, patience, minimumGain = 0, minutes } = stopWhen;
  const { low, floor = rewardFloor?.below, waiting, gain = minimumGain, seconds, ...rest } = state;
  return {
    ...rest,
    ...(seconds !== undefined && minutes !== undefined && { seconds }),
    ...(low !== undefined && floor === rewardFloor?.below && { low, floor }),
    ...(waiting !== undefined && patience !== undefined && gain === minimumGain && { waiting, gain }),
  };
}

/** Whether the run ends after its last complete step: it is the recipe's last step, or a rule ends the run. */
export function endsAfter(
  { steps }: Pick<Training, 'steps'>,
  { step, stops }: { readonly step: number; readonly stops: Pick<StopRules, 'reason'> },
): boolean {
  return step >= steps || stops.reason !== undefined;
}

export function* stopChecks(
  training: Training,
  { every, samples, samplesDuring = samples }: Recipe['evaluation'],
  { priced, staleness }: { readonly priced: boolean; readonly staleness: number },
): Generator<Requirement> {
  const { keepBest = false, bestBy = DEFAULT_SCORE, stopWhen, checkpointEvery } = training;
  const { score, patience, minimumGain, cost } = stopWhen ?? {};
  const compares = keepBest || score !== undefined || patience !== undefined;
  const path = 'training.stopWhen';
  yield {
    path,
    test: stopWhen === undefined || Object.keys(stopWhen).some((key) => key !== 'minimumGain'),
    message: 'has no rule: expected score, patience, rewardFloor, tokens, cost or minutes',
  };
  yield {
    path: 'training.bestBy',
    test: training.bestBy === undefined || compares,
    message: 'nothing compares evaluations: expected keepBest, stopWhen.score or stopWhen.patience',
  };
  yield {
    path: 'training.bestBy',
    test: !compares || samples === samplesDuring || bestBy === 'averageAtK' || bestBy === 'reward',
    message: `'${bestBy}' depends on the number of samples, which differs between evaluations (evaluation.samples ${samples}, samplesDuring ${samplesDuring}): expected equal numbers, or 'averageAtK'`,
  };
  yield {
    path: `${path}.score`,
    test: score === undefined || bestBy === 'reward' || (score > 0 && score <= 1),
    message: `'${bestBy}' is between 0 and 1: expected a number above 0 and at most 1`,
  };
  yield {
    path: `${path}.minimumGain`,
    test: minimumGain === undefined || patience !== undefined,
    message: 'belongs to patience, which is missing',
  };
  yield {
    path: `${path}.minimumGain`,
    test: bestBy === 'reward' || (minimumGain ?? 0) < 1,
    message: `'${bestBy}' is between 0 and 1, so no evaluation would be an improvement: expected less than 1`,
  };
  yield {
    path: `${path}.cost`,
    test: cost === undefined || priced,
    message: 'no policy and no endpoint has a price, so the cost would stay 0: expected policies.<name>.price',
  };
  yield {
    path: 'training.keepBest',
    test: !keepBest || staleness === 0 || every % checkpointEvery === 0,
    message: `rollouts that begin ahead (rollout.staleness) wait only for checkpoints of checkpointEvery (${checkpointEvery}): expected evaluation.every to be a multiple of it, but it is ${every}`,
  };
}
