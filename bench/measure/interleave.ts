/** Repetitions of several engines, taken in turns: a machine's speed drifts, so numbers of different times do not compare. */
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../../src/core/statistics.js';
import { processorTime, type Usage, usageBetween } from './processor-time.js';

export interface Work {
  /** In the series' unit. */
  readonly amount: number;
  readonly seconds: number;
  /** Further numbers worth keeping, such as seconds by phase. */
  readonly details?: Readonly<Record<string, number>>;
}

export interface Contestant {
  readonly name: string;
  readonly threads: number;
  /** What `amount` counts; rates are this a second. */
  readonly unit: string;
  /** The process that does the work, where it is not this one. */
  readonly pid?: number;
  /** Does the work once. */
  repeat(): Promise<Work>;
  /** Ends work that is going on, and with it the contestant. Who cannot is waited for. */
  abandon?(): void;
}

export type Repetition = Work & Usage & { readonly rate: number };

export interface Series {
  readonly name: string;
  readonly threads: number;
  readonly unit: string;
  readonly repetitions: readonly Repetition[];
  /** Why a contestant fell out. */
  readonly problem?: string;
}

export interface Schedule {
  /** Clean repetitions wanted of each. */
  readonly repetitions: number;
  /** No further round starts after this many seconds; one repetition of each is made in any case. */
  readonly budgetSeconds: number;
  /** Nobody is given up sooner. */
  readonly patienceSeconds?: number;
  readonly onRepetition?: (contestant: Contestant, repetition: Repetition) => void;
}

/** Unclean repetitions are made up for, until every contestant has had this many times as many as were asked for. */
const MOST_ATTEMPTS = 3;
/** Only an engine's best variant counts: one that takes this many times as long as the quickest, and longer than this, is given up. */
const GIVEN_UP_FACTOR = 4;
const PATIENCE_SECONDS = 10;
/** Lets the threads of the one before fall asleep: some spin for a while when they have nothing to do. */
const SETTLE_MS = 50;

export async function interleave(contestants: readonly Contestant[], schedule: Schedule): Promise<Series[]> {
  const series = contestants.map(({ name, threads, unit }) => ({
    name,
    threads,
    unit,
    repetitions: [] as Repetition[],
    problem: undefined as string | undefined,
  }));
  const wants = (i: number) => {
    const own = series[i];
    if (own === undefined || own.problem !== undefined) return false;
    const clean = own.repetitions.filter((repetition) => repetition.clean !== false).length;
    return clean < schedule.repetitions && own.repetitions.length < MOST_ATTEMPTS * schedule.repetitions;
  };
  const started = performance.now();
  for (let round = 0; contestants.some((_, i) => wants(i)); round++) {
    if (round > 0 && (performance.now() - started) / 1e3 > schedule.budgetSeconds) break;
    for (let k = 0; k < contestants.length; k++) {
      const i = (round + k) % contestants.length; // nobody always follows the same one
      const contestant = contestants[i];
      const own = series[i];
      if (contestant === undefined || own === undefined || !wants(i)) continue;
      await sleep(SETTLE_MS);
      try {
        const repetition = await measure(
          contestant,
          limitFor(contestant, series, schedule.patienceSeconds ?? PATIENCE_SECONDS),
        );
        own.repetitions.push(repetition);
        schedule.onRepetition?.(contestant, repetition);
      } catch (error) {
        own.problem = error instanceof Error ? error.message : String(error);
      }
    }
  }
  return series.map(({ problem, ...rest }) => (problem === undefined ? rest : { ...rest, problem }));
}

/** Variants of one engine are named `engine, variant`. */
const engineOf = (name: string) => name.split(',')[0];

/** Seconds after which a contestant is given up for another variant of its engine; undefined where none is measured yet. */
function limitFor(
  { name, abandon }: Contestant,
  series: readonly Pick<Series, 'name' | 'repetitions'>[],
  patience: number,
): number | undefined {
  const siblings = series.filter((other) => engineOf(other.name) === engineOf(name));
  const seconds = siblings.flatMap(({ repetitions }) => repetitions.map((repetition) => repetition.seconds));
  if (abandon === undefined || seconds.length === 0) return undefined;
  return Math.max(patience, GIVEN_UP_FACTOR * Math.min(...seconds));
}

async function measure(contestant: Contestant, limit: number | undefined): Promise<Repetition> {
  const pids = contestant.pid === undefined ? [] : [contestant.pid];
  const before = processorTime(pids);
  let abandoned = false;
  const abandon = () => {
    abandoned = true;
    contestant.abandon?.();
  };
  const timer = limit === undefined ? undefined : setTimeout(abandon, limit * 1e3);
  const work = await contestant.repeat().catch((error: unknown) => {
    clearTimeout(timer);
    if (!abandoned) throw error;
    throw new Error(`given up after ${limit?.toFixed(0)} s: another variant takes a quarter of that or less`);
  });
  clearTimeout(timer);
  const usage = usageBetween(before, processorTime(pids));
  return { ...work, ...usage, rate: work.amount / work.seconds };
}

export interface Summary {
  readonly median: number;
  readonly low: number;
  readonly high: number;
  /** Repetitions behind these numbers. */
  readonly used: number;
  readonly made: number;
  /** False: no repetition was alone on the machine, so that the numbers do not count. Undefined: it cannot be known. */
  readonly clean: boolean | undefined;
}

/** Of the clean repetitions where there is one, else of all. Undefined when there is none. */
export function summarise({ repetitions }: Series): Summary | undefined {
  if (repetitions.length === 0) return undefined;
  const clean = repetitions.filter((repetition) => repetition.clean !== false);
  const used = clean.length > 0 ? clean : repetitions;
  const rates = used.map(({ rate }) => rate);
  return {
    median: median(rates),
    low: Math.min(...rates),
    high: Math.max(...rates),
    used: used.length,
    made: repetitions.length,
    clean: clean.length === 0 ? false : used.some((repetition) => repetition.clean === undefined) ? undefined : true,
  };
}
