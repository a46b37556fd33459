/** Evaluations as rewards: scorers of other packages as named parts, and the reward of a team as their scorer. */

import { ArgumentError, DrmasError, faultsText, isObject, messageOf, nearName, suggestion } from '@drmas/engine/errors';
import { contentText } from '@drmas/engine/nouns';
import pLimit from 'p-limit';
import pRetry from 'p-retry';
import { z } from 'zod';
import { share, sumOf } from '../rollout/reward-values.js';
import type { Reward, RewardContext, RewardParts, Team } from '../team/team.js';
import { callsModel, callsOf, type Scorer, type ScorerCalls, type ScorerInput, scoreIn } from './foreign-scorers.js';

/** A scorer with its name and weight. */
export interface NamedScorer {
  readonly scorer: Scorer;
  /** The name of the reward's part. Default: the scorer's own name. */
  readonly name?: string;
  /** Multiplies the score. Default 1. */
  readonly weight?: number;
  /** Set for a scorer that calls a hosted model, with the price of a call (default 0). */
  readonly judge?: boolean | { readonly price?: number };
}

/** The options of `fromScorers`. */
export interface ScorersOptions<Data, Outcome> {
  /**
   * Makes the input of the scorers. Default: `input` is the task's `input` or `question`, `expected` its `expected` or
   * `answer`, else the whole task; `output` is the outcome's `output`, `answer` or `text`, else the outcome.
   */
  readonly args?: (context: RewardContext<Data, Outcome>) => ScorerInput;
  /** The most calls of judges at the same time. Default 4. */
  readonly concurrency?: number;
  /** The most calls of judges a minute. Default: no limit. */
  readonly perMinute?: number;
  /** Repetitions of a judge's call that throws. Default 3. */
  readonly retries?: number;
  /** The number of latest verdicts of judges to keep, for equal questions. Default 10,000. */
  readonly cache?: number;
}

const optionsSchema = z
  .strictObject({
    args: z.custom((value) => typeof value === 'function', 'expected a function'),
    concurrency: z.int().min(1),
    perMinute: z.union([z.number().gt(0), z.literal(Number.POSITIVE_INFINITY)]),
    retries: z.int().min(0),
    cache: z.int().min(0),
  } satisfies Record<keyof ScorersOptions<unknown, unknown>, z.ZodType>)
  .partial();

/** Scorers of other packages, such as evalite, have further fields. */
const namedSchema = z.looseObject({
  scorer: z.unknown(),
  name: z.string().optional(),
  weight: z.number().optional(),
  judge: z.union([z.boolean(), z.strictObject({ price: z.number().min(0).optional() })]).optional(),
} satisfies Record<keyof NamedScorer, z.ZodType>);

/** @throws ArgumentError for options that are unknown or wrong */
function requireFit(schema: z.ZodType, value: unknown, place: string): void {
  const faults = faultsText(schema, value);
  if (faults !== undefined) throw new ArgumentError(`${place}: ${faults}`);
}

/** A scorer that calls a hosted model. Its verdicts may differ when they are asked for again. */
export interface Judge {
  readonly name: string;
  /** The price of a call. */
  readonly price: number;
}

/** A reward made of scorers. */
export interface ScorerReward<Data, Outcome> {
  (context: RewardContext<Data, Outcome>): Promise<RewardParts>;
  /** The calls of judges in an episode, those that the cache answered, and their cost: for the team's `metrics`. */
  readonly metrics: (context: RewardContext<Data, Outcome>) => Promise<Readonly<Record<string, number>>>;
  /** The scorers that call models. A run with one of them does not repeat bit for bit. */
  readonly judges: readonly Judge[];
}

interface Checked extends Required<Pick<NamedScorer, 'weight'>> {
  readonly name: string;
  readonly calls: ScorerCalls;
  readonly judge: Judge | undefined;
}

/** A question to a judge, by the episode that asked it first. */
interface Asked {
  readonly signal: AbortSignal;
  readonly verdict: Promise<number>;
}

interface Spent {
  calls: number;
  cached: number;
  cost: number;
}

/**
 * Makes a reward of scorers; each is a named part of it, for estimators and fronts over several rewards. Calls of
 * judges are limited, repeated and remembered, counted by `metrics`, and forecast by `drmas plan`. If a scorer gives no
 * score, or a judge fails `retries` times, the reward throws, and the episode counts as unscored.
 * @throws ArgumentError for an empty list, an unknown kind of scorer, or two scorers of one name
 *
 * @example
 * ```ts
 * import { agent, defineTeam } from 'drmas';
 * import { fromScorers } from 'drmas/tasks';
 * import { z } from 'zod';
 *
 * const question = z.object({ question: z.string(), answer: z.string() });
 * const exact = ({ output, expected }: { output: string; expected: string }) => Number(output === expected);
 * const reward = fromScorers<z.infer<typeof question>, string>([{ name: 'exact', scorer: exact }]);
 * const team = defineTeam({
 *   task: question,
 *   agents: { solver: agent() },
 *   play: async ({ task, agents: { solver } }) => (await solver(task.question)).text,
 *   reward,
 *   metrics: reward.metrics,
 * });
 * ```
 */
export function fromScorers<Data = unknown, Outcome = unknown>(
  scorers: readonly (Scorer | NamedScorer)[],
  options: ScorersOptions<Data, Outcome> = {},
): ScorerReward<Data, Outcome> {
  const {
    args = usualArgs,
    concurrency = 4,
    perMinute = Number.POSITIVE_INFINITY,
    retries = 3,
    cache = 10_000,
  } = options;
  requireFit(optionsSchema, options, 'fromScorers');
  requireFit(z.array(z.unknown()), scorers, 'fromScorers');
  const checked = scorers.map(checkedScorer);
  const names = checked.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (checked.length === 0) throw new ArgumentError('fromScorers: expected at least one scorer');
  if (twice !== undefined)
    throw new ArgumentError(`fromScorers: two scorers are named '${twice}'; set another \`name\``);
  const limit = pLimit(concurrency);
  const pace = paced(perMinute);
  const verdicts = new Map<string | symbol, Asked>(); // the least recent first
  const scored = new WeakMap<object, { readonly parts: Promise<RewardParts>; readonly spent: Spent }>();

  const judged = (each: Checked, reading: object, signal: AbortSignal, spent: Spent): Promise<number> => {
    const { name, calls, judge } = each;
    const ask = async () => scoreIn(await calls.ask(reading, signal), name);
    if (judge === undefined) return ask();
    const key = contentText([name, reading]) ?? Symbol('a question that cannot be read'); // equal to no other
    const known = verdicts.get(key);
    if (known !== undefined) spent.cached++;
    const asked = known ?? {
      signal,
      verdict: limit(() =>
        pRetry(
          async () => {
            await pace(signal);
            spent.calls++;
            spent.cost += judge.price;
            return await ask();
          },
          { retries, signal, minTimeout: 500 },
        ),
      ),
    };
    verdicts.delete(key);
    verdicts.set(key, asked);
    const oldest = verdicts.keys().next();
    if (verdicts.size > cache && oldest.done !== true) verdicts.delete(oldest.value);
    return asked.verdict.catch((error: unknown) => {
      if (verdicts.get(key) === asked) verdicts.delete(key);
      // The episode that asked first is over, and this one is not.
      if (asked.signal.aborted && !signal.aborted) return judged(each, reading, signal, spent);
      throw error;
    });
  };

  /** The reward and the metrics of an episode share one set of calls. A repetition after an error makes new ones. */
  const score = (context: RewardContext<Data, Outcome>) => {
    const known = scored.get(context);
    if (known !== undefined) return known;
    const spent: Spent = { calls: 0, cached: 0, cost: 0 };
    const given = args(context);
    const { signal, episode } = context;
    const partOf = async (each: Checked) => {
      try {
        const reading = each.calls.read(given, episode.turns);
        return [each.name, each.weight * (await judged(each, reading, signal, spent))] as const;
      } catch (cause) {
        if (cause instanceof DrmasError || signal.aborted) throw cause;
        throw new Error(`the scorer '${each.name}' failed: ${messageOf(cause)}`, { cause });
      }
    };
    const parts = Promise.all(checked.map(partOf)).then((pairs) => Object.fromEntries(pairs));
    const judgement = { parts, spent };
    scored.set(context, judgement);
    parts.catch(() => scored.delete(context));
    return judgement;
  };

  const judges = checked.flatMap(({ judge }) => judge ?? []);
  const metrics: ScorerReward<Data, Outcome>['metrics'] = async (context) => {
    const { parts, spent } = score(context);
    await parts;
    return judges.length === 0
      ? {}
      : { judge_calls: spent.calls, judge_cached: spent.cached, ...(spent.cost > 0 ? { judge_cost: spent.cost } : {}) };
  };
  return Object.assign(async (context: RewardContext<Data, Outcome>) => await score(context).parts, {
    metrics,
    judges,
  });
}

/** The team's reward as a scorer of other packages. */
export type TeamScorer<Data, Outcome> = (args: {
  readonly input: Data;
  readonly output: Outcome;
}) => Promise<{ readonly name: string; readonly score: number; readonly metadata: Readonly<Record<string, number>> }>;

/**
 * The reward of a team as a function that evalite's runner, `createJudge` of vitest-evals or a scorer of Mastra can
 * call: `input` is the task, `output` what `play` returned. The score is the team's success, else its reward; the parts
 * are in `metadata`. The team must judge the outcome alone: there are no turns and no agents.
 * The scorer rejects with an EpisodeFailure for a reward that is no number, as a run fails the episode.
 * @throws ArgumentError for a team that rewards groups of episodes
 *
 * @example
 * ```ts
 * import { solverVerifier } from 'drmas';
 * import { asScorer } from 'drmas/tasks';
 *
 * const scorer = asScorer(solverVerifier());
 * ```
 */
export function asScorer<Data, Outcome>(
  team: Pick<Team<Data, never, Outcome>, 'name' | 'reward' | 'success'>,
): TeamScorer<Data, Outcome> {
  const { reward: rewardOf } = team;
  if (rewardOf === undefined)
    throw new ArgumentError(`the team '${team.name}' rewards groups of episodes, expected a reward of one episode`);
  return async ({ input, output }) => {
    const episode = { task: { id: 'scored', data: input }, sample: 0, turns: [] };
    const context = {
      task: input,
      outcome: output,
      episode,
      agents: {},
      signal: new AbortController().signal,
    } as never;
    const reward: Reward = await rewardOf(context);
    const ofTeam = isObject(reward) && 'team' in reward ? (reward.team as number | boolean | RewardParts) : reward;
    const { sum, parts = {} } = sumOf(ofTeam, 'the reward');
    const success = await team.success?.(context);
    return { name: team.name, score: success === undefined ? sum : share(success, 'the success'), metadata: parts };
  };
}

/** The scorers of a team's reward that call hosted models; none if the reward is not made by `fromScorers`. */
export function judgesOf({ reward }: Pick<Team, 'reward'>): readonly Judge[] {
  return reward !== undefined && 'judges' in reward && Array.isArray(reward.judges)
    ? (reward.judges as readonly Judge[])
    : [];
}

function checkedScorer(entry: Scorer | NamedScorer, index: number): Checked {
  const named: NamedScorer =
    isObject(entry) && 'scorer' in entry ? (entry as NamedScorer) : { scorer: entry as Scorer };
  const place = `fromScorers: scorer ${index + 1}`;
  requireFit(namedSchema, named, place);
  const known = Object.keys(namedSchema.shape);
  const misspelt = Object.keys(named).find((key) => !known.includes(key) && nearName(key, known) !== undefined);
  if (misspelt !== undefined)
    throw new ArgumentError(`${place}: unknown key '${misspelt}'${suggestion(misspelt, known)}`);
  const { scorer, weight = 1 } = named;
  const calls = callsOf(scorer);
  const functionName = (typeof scorer === 'function' || isObject(scorer)) && 'name' in scorer ? scorer.name : undefined;
  const name = named.name ?? functionName;
  if (calls === undefined) throw new ArgumentError(`${place} is no function, and has neither run nor assess`);
  if (typeof name !== 'string' || name === '') throw new ArgumentError(`${place} needs a \`name\``);
  const { judge = callsModel(scorer) } = named;
  const price = isObject(judge) ? (judge.price ?? 0) : 0;
  return { name, weight, calls, judge: judge === false ? undefined : { name, price } };
}

function usualArgs({ task, outcome }: RewardContext<unknown, unknown>): ScorerInput {
  const fieldOf = (value: unknown, names: readonly string[]) => {
    const name = isObject(value) ? names.find((each) => value[each] !== undefined) : undefined;
    return name === undefined ? undefined : (value as Readonly<Record<string, unknown>>)[name];
  };
  const expected = fieldOf(task, ['expected', 'answer']);
  return {
    input: fieldOf(task, ['input', 'question']) ?? task,
    output: fieldOf(outcome, ['output', 'answer', 'text']) ?? outcome,
    ...(expected === undefined ? {} : { expected }),
  };
}

/** Waits until a call may begin, so that calls are at least a minute's share apart. */
function paced(perMinute: number): (signal: AbortSignal) => Promise<void> {
  const gap = 60_000 / perMinute;
  let next = 0;
  return async (signal) => {
    const now = performance.now();
    const wait = Math.max(0, next - now);
    next = now + wait + gap;
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    signal.throwIfAborted();
  };
}
