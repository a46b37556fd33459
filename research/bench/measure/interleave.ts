/**
 * Repetitions of several engines in turns, since a machine's speed drifts and numbers of different times do not
 * compare.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '@drmas/engine/math';
import { processorTime, type Usage, usageBetween } from './processor-time.js';

export interface Work {
  /** The rate in the series' unit a second. */
  readonly amount: number;
  readonly seconds: number;
  /** Further numbers, such as seconds by phase. */
  readonly details?: Readonly<Record<string, number>>;
}

export interface Contestant {
  readonly name: string;
  readonly threads: number;
  /** The unit of `amount`; rates are in this unit a second. */
  readonly unit: string;
  /** The process that does the work, if it is not this one. */
  readonly pid?: number;
  /** Does the work once. */
  repeat(): Promise<Work>;
  /** Ends running work, and with it the contestant. A contestant without this method is awaited. */
  abandon?(): void;
}

export type Repetition = Work &
  Usage & {
    readonly rate: number;
    /** The seconds of the whole repetition; `seconds` may belong to one of its steps. */
    readonly wallSeconds: number;
  };

export interface Series {
  readonly name: string;
  readonly threads: number;
  readonly unit: string;
  readonly repetitions: readonly Repetition[];
  /** The reason of a contestant's failure. */
  readonly problem?: string;
}

export interface Schedule {
  /** The number of clean repetitions of each contestant. */
  readonly repetitions: number;
  /** The seconds after which no further round starts; each contestant has at least one repetition. */
  readonly budgetSeconds: number;
  /** The seconds before which no contestant is abandoned. */
  readonly patienceSeconds?: number;
  readonly onRepetition?: (contestant: Contestant, repetition: Repetition) => void;
}

/** The most repetitions of a contestant, clean or not, as a multiple of the requested number. */
const MOST_ATTEMPTS = 3;
/**
 * An engine's variant that takes this many times as long as the quickest, and longer than the patience, is abandoned,
 * since only the best variant counts.
 */
const GIVEN_UP_FACTOR = 4;
const PATIENCE_SECONDS = 10;
/** The pause in which threads of the contestant before fall asleep; some spin for a while when they are idle. */
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
    const entry = series[i];
    if (entry === undefined || entry.problem !== undefined) return false;
    const clean = entry.repetitions.filter((repetition) => repetition.clean !== false).length;
    return clean < schedule.repetitions && entry.repetitions.length < MOST_ATTEMPTS * schedule.repetitions;
  };
  const started = performance.now();
  for (let round = 0; contestants.some((_, i) => wants(i)); round++) {
    if (round > 0 && (performance.now() - started) / 1e3 > schedule.budgetSeconds) break;
    for (let k = 0; k < contestants.length; k++) {
      const i = (round + k) % contestants.length; // each contestant follows different ones
      const contestant = contestants[i];
      const entry = series[i];
      if (contestant === undefined || entry === undefined || !wants(i)) continue;
      await sleep(SETTLE_MS);
      try {
        const repetition = await measure(
          contestant,
          limitFor(contestant, series, schedule.patienceSeconds ?? PATIENCE_SECONDS),
        );
        entry.repetitions.push(repetition);
        schedule.onRepetition?.(contestant, repetition);
      } catch (error) {
        entry.problem = error instanceof Error ? error.message : String(error);
      }
    }
  }
  return series.map(({ problem, ...rest }) => (problem === undefined ? rest : { ...rest, problem }));
}

/** Variants of one engine are named `engine, variant`. */
const engineOf = (name: string) => name.split(',')[0];

/**
 * The seconds after which a contestant is abandoned for another variant of its engine; undefined until one was
 * measured.
 */
function limitFor(
  { name, abandon }: Contestant,
  series: readonly Pick<Series, 'name' | 'repetitions'>[],
  patience: number,
): number | undefined {
  const siblings = series.filter((other) => engineOf(other.name) === engineOf(name));
  const seconds = siblings.flatMap(({ repetitions }) => repetitions.map(({ wallSeconds }) => wallSeconds));
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
  const after = processorTime(pids);
  const usage = usageBetween(before, after);
  return { ...work, ...usage, rate: work.amount / work.seconds, wallSeconds: after.wall - before.wall };
}

export interface Summary {
  readonly median: number;
  readonly low: number;
  readonly high: number;
  /** The repetitions behind these numbers. */
  readonly used: number;
  readonly total: number;
  /**
   * False when no repetition was alone on the machine, so that the numbers do not count; undefined when that is
   * unknown.
   */
  readonly clean: boolean | undefined;
}

/** The summary of the clean repetitions, or of all if none is clean. Undefined if there is no repetition. */
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
    total: repetitions.length,
    clean: clean.length === 0 ? false : used.some((repetition) => repetition.clean === undefined) ? undefined : true,
  };
}
