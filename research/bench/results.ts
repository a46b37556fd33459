/** The results of the benchmarks as plain data: the tables show them, and `--json` prints them. */
import { availableParallelism, cpus } from 'node:os';
import type { Precision } from '@drmas/engine/contract';
import { type Series, type Summary, summarise } from './measure/interleave.js';
import { PEAK } from './measure/peak.js';

/** The result of one engine on one piece of work. */
export interface Row extends Summary {
  readonly part: string;
  readonly shape: string;
  readonly engine: string;
  readonly threads: number;
  /** The unit that median, low and high count a second. */
  readonly unit: string;
  /** Useful arithmetic as a share of the multiply-add peak of as many threads, if both were measured. */
  readonly peakShare?: number;
  /** The peak resident memory of the process from its start up to this measurement. */
  readonly peakResidentBytes?: number;
  /** The medians of further numbers. */
  readonly details: Readonly<Record<string, number>>;
}

/** A ratio between two results, with its target if there is one. */
export interface Ratio {
  readonly part: string;
  readonly shape: string;
  readonly what: string;
  readonly value: number;
  readonly target?: number;
  /** Whether both sides were measured alone on the machine. */
  readonly clean: boolean | undefined;
}

/** A measurement that was left out, with the reason. */
export interface Skipped {
  readonly what: string;
  readonly reason: string;
}

/** The result of one kernel on one shape against the machine's limit. */
export interface KernelRow {
  readonly shape: string;
  readonly kernel: string;
  readonly sizes: string;
  readonly threads: number;
  /** The median time of one call. */
  readonly seconds: number;
  readonly limitSeconds: number;
  readonly bound: 'arithmetic' | 'memory';
  /** The operations or bytes of one call; `limitRate` is the most that the machine does in a second. */
  readonly work: number;
  readonly limitRate: number;
  readonly clean: boolean | undefined;
}

export interface Results {
  readonly kernels: KernelRow[];
  readonly rows: Row[];
  readonly ratios: Ratio[];
  readonly skipped: Skipped[];
}

/** Further numbers of a row, by their names in reports. */
export const [PROCESSOR, MEMORY] = ['processor ms a token', 'bytes of memory at most'] as const;

/** The processor and the number of its cores, for reports. */
export const machineText = () => `${cpus()[0]?.model ?? 'unknown processor'}, ${availableParallelism()} cores`;

/** The results of a call, with its day, its machine and its arguments. */
export interface BenchRecord {
  /** ISO 8601, without the time. */
  readonly date: string;
  readonly machine: string;
  /** The GPU that computed, with its driver. */
  readonly gpu?: string;
  /** Node's version, and the flags of `NODE_OPTIONS` if there are any. */
  readonly node: string;
  readonly arguments: readonly string[];
  readonly results: Results;
}

export const DRMAS = 'drmas';

/** The name of this engine with products in a precision. */
export const drmasIn = (precision: Precision): string => (precision === 'float32' ? DRMAS : `${DRMAS}, ${precision}`);

/** The rows of a piece of work. `flops` are the useful operations of one unit, for the share of the measured peak. */
export function rowsOf(part: string, shape: string, series: readonly Series[], flops?: number): Row[] {
  const peaks = new Map(
    series.filter(({ name }) => name === PEAK).map((peak) => [peak.threads, summarise(peak)?.high] as const),
  );
  return series.flatMap((one) => {
    const summary = summarise(one);
    if (summary === undefined) return [];
    const peak = peaks.get(one.threads);
    const share = flops === undefined || peak === undefined || one.name === PEAK ? undefined : flops / peak;
    return {
      part,
      shape,
      engine: one.name,
      threads: one.threads,
      unit: one.unit,
      ...summary,
      ...(share === undefined ? {} : { peakShare: share * summary.median }),
      details: detailsOf(one),
    };
  });
}

function detailsOf({ repetitions }: Series): Record<string, number> {
  const keys = Object.keys(repetitions[0]?.details ?? {});
  return Object.fromEntries(
    keys.map((key) => {
      const values = repetitions.map(({ details }) => details?.[key] ?? Number.NaN).sort((a, b) => a - b);
      return [key, values[values.length >> 1] ?? Number.NaN];
    }),
  );
}

/** Adds a process's peak memory to `rows`, and its ratio to `limit`; both in bytes. */
export function peakMemory(rows: readonly Row[], bytes: number, limit: number): { rows: Row[]; ratios: Ratio[] } {
  const what = 'allowed / peak resident memory';
  const ours = rows.filter(({ engine }) => engine === DRMAS);
  return {
    rows: rows.map((row) => (row.engine === DRMAS ? { ...row, peakResidentBytes: bytes } : row)),
    // Other processes on the machine do not affect this process's memory.
    ratios: ours.map(({ part, shape }) => ({ part, shape, what, value: limit / bytes, target: 1, clean: true })),
  };
}

/** The ratios of products in bfloat16 to those in float32, with a target for the most threads. */
export function precisionRatios(rows: readonly Row[], target?: number): Ratio[] {
  const fine = rows.filter(({ engine }) => engine === drmasIn('float32'));
  return fine.flatMap((one, i) => {
    const { part, shape, threads } = one;
    const coarse = rows.find((row) => row.engine === drmasIn('bfloat16') && row.threads === threads);
    if (coarse === undefined) return [];
    const what = `bfloat16 / float32, ${threadsText(threads)}`;
    const aimed = target === undefined || i < fine.length - 1 ? {} : { target };
    return { part, shape, what, value: coarse.median / one.median, ...aimed, clean: both(coarse, one) };
  });
}

/** The contestants that failed. */
export function skippedOf(part: string, shape: string, series: readonly Series[]): Skipped[] {
  return series.flatMap(({ name, threads, problem }) =>
    problem === undefined ? [] : [{ what: `${part} ${shape}: ${name}, ${threadsText(threads)}`, reason: problem }],
  );
}

export const threadsText = (threads: number): string => (threads === 1 ? '1 thread' : `${threads} threads`);

const fastest = (rows: readonly Row[]): Row | undefined =>
  rows.reduce<Row | undefined>((best, row) => (best === undefined || row.median > best.median ? row : best), undefined);

const both = (a: Row, b: Row): boolean | undefined =>
  a.clean === false || b.clean === false ? false : a.clean === undefined || b.clean === undefined ? undefined : true;

/**
 * The ratio of this engine, by its name in a precision, to each kind of peer, both at their best number of threads.
 * `targets` are by a peer's name up to its first comma; undefined for a peer that is compared without a target.
 */
export function peerRatios(
  rows: readonly Row[],
  targets: Readonly<Record<string, number | undefined>>,
  ours: string = DRMAS,
): Ratio[] {
  const fastestOfOurs = fastest(rows.filter(({ engine }) => engine === ours));
  if (fastestOfOurs === undefined) return [];
  return Object.entries(targets).flatMap(([kind, target]) => {
    const peer = fastest(rows.filter(({ engine }) => engine.split(',')[0] === kind));
    if (peer === undefined) return [];
    const what = `${ours} / ${peer.engine}, ${threadsText(peer.threads)} (best of ${kind})`;
    const { part, shape } = fastestOfOurs;
    const value = fastestOfOurs.median / peer.median;
    return { part, shape, what, value, ...(target === undefined ? {} : { target }), clean: both(fastestOfOurs, peer) };
  });
}

/** The ratio of one engine to another on each number of threads, with a target for all of them if there is one. */
export function between(rows: readonly Row[], ours: string, theirs: string, target?: number): Ratio[] {
  return rows
    .filter(({ engine }) => engine === ours)
    .flatMap((one) => {
      const { part, shape, threads } = one;
      const other = rows.find((row) => row.engine === theirs && row.threads === threads);
      if (other === undefined) return [];
      const what = `${ours} / ${theirs}, ${threadsText(threads)}`;
      const value = one.median / other.median;
      return { part, shape, what, value, ...(target === undefined ? {} : { target }), clean: both(one, other) };
    });
}

/** The speed-up of each number of threads over one thread. */
export function threadRatios(rows: readonly Row[], target?: number): Ratio[] {
  const ours = rows.filter(({ engine }) => engine === DRMAS);
  const one = ours.find(({ threads }) => threads === 1);
  if (one === undefined) return [];
  return ours
    .filter(({ threads }) => threads > 1)
    .map((row) => ({
      part: row.part,
      shape: row.shape,
      what: `${threadsText(row.threads)} / 1 thread`,
      value: row.median / one.median,
      ...(target === undefined || row.threads !== 2 ? {} : { target }),
      clean: both(row, one),
    }));
}
