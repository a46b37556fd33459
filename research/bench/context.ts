/** The context of every part of the benchmark: its options, the results so far, and the peers. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Device } from '@drmas/engine';
import type { Precision } from '@drmas/engine/contract';
import { messageOf } from '@drmas/engine/errors';
import type { Contestant, Schedule, Series } from './measure/interleave.js';
import { Peer, type PeerCommand } from './peers/peer.js';
import { amount } from './report.js';
import { peakMemory, type Results, type Row, skippedOf, threadsText } from './results.js';
import { LARGE_MEMORY, largeShapes, type Shape } from './workload.js';

/** The precisions of models that begin with random weights: `int8` is for a base in blocks. */
export const TRAIN_PRECISIONS = ['float32', 'bfloat16'] as const satisfies readonly Precision[];
export type TrainPrecision = (typeof TRAIN_PRECISIONS)[number];

export interface Options {
  readonly threads: readonly number[];
  /** The shapes for training and decoding. */
  readonly device: Device;
  readonly repetitions: number;
  readonly shapes: readonly Shape[];
  /** The precisions of this package's products in measurements of training. */
  readonly precisions: readonly TrainPrecision[];
  readonly peers: boolean;
  /** The device of the peers; without a GPU for them, `cpu` tries their scripts. */
  readonly peerDevice: Device;
  /** The path of a Python that has the packages of the peers; without it they are installed. */
  readonly python: string | undefined;
  /** The number of requests that are decoded, in place of the shape's. */
  readonly requests: number | undefined;
  /** The path of llama.cpp's server, which serving is compared with. */
  readonly llamaServer: string | undefined;
  /** The path of a checkout of the paper's code, for the estimators. */
  readonly drmas: string | undefined;
}

export interface Context {
  readonly options: Options;
  readonly results: Results;
  /** Prints progress. */
  readonly say: (message: string) => void;
}

/**
 * The context for one shape. A large shape is measured on the largest number of threads, one engine alone, since two
 * would not fit its memory limit; beside peers, where a part has them for it, in every precision, and without that
 * limit. The measurements that are left out are noted.
 */
export function forShape(context: Context, part: string, shape: Shape, besidePeers = false): Context {
  const { options, results } = context;
  if (!largeShapes.includes(shape) || options.device === 'gpu') return context;
  const most = Math.max(...options.threads);
  const fewer = options.threads.filter((threads) => threads !== most).map(threadsText);
  const reason = 'of this shape one engine is measured at a time; ask for --threads';
  if (fewer.length > 0) results.skipped.push({ what: `${part} ${shape.name}: ${fewer.join(', ')}`, reason });
  if (besidePeers && options.peers) return { ...context, options: { ...options, threads: [most] } };
  results.skipped.push({ what: `${part} ${shape.name}: peers`, reason: 'this shape is measured without them' });
  return {
    ...context,
    options: { ...options, threads: [most], precisions: options.precisions.slice(0, 1), peers: false },
  };
}

/** Records the results of a part for a shape; for a large shape without peers together with the peak memory. */
export function noteRows({ options, results }: Context, shape: Shape, rows: readonly Row[]): void {
  if (!largeShapes.includes(shape) || options.device === 'gpu' || options.peers) return void results.rows.push(...rows);
  const bytes = 1024 * process.resourceUsage().maxRSS; // which is in KiB
  const measured = peakMemory(rows, bytes, LARGE_MEMORY);
  results.rows.push(...measured.rows);
  results.ratios.push(...measured.ratios);
}

/** The schedule of repetitions from the options, which announces them one by one. */
export function schedule({ options, say }: Context, what: string, budgetSeconds: number): Schedule {
  return {
    repetitions: options.repetitions,
    budgetSeconds,
    onRepetition: ({ name, threads, unit }: Contestant, { rate, clean, otherCores }) => {
      const flag = clean === false ? `  NOT ALONE: others kept ${otherCores?.toFixed(2)} cores busy` : '';
      say(`${what}: ${name}, ${threadsText(threads)}: ${amount(rate)} ${unit}/s${flag}`);
    },
  };
}

export function noteSkipped({ results }: Context, part: string, shape: string, series: readonly Series[]): void {
  results.skipped.push(...skippedOf(part, shape, series));
}

/** Starts peers one after the other, since starting takes all cores; a peer that fails is noted and left out. */
export async function startPeers(context: Context, what: string, peers: readonly PeerCommand[]): Promise<Peer[]> {
  const started: Peer[] = [];
  for (const peer of peers) {
    const named = `${what}: ${peer.name}, ${threadsText(peer.threads)}`;
    context.say(`${named}: getting ready`);
    try {
      started.push(await Peer.start(peer));
    } catch (error) {
      context.results.skipped.push({ what: named, reason: messageOf(error) });
      context.say(`${named}: left out: ${messageOf(error)}`);
    }
  }
  return started;
}

/** The result of `make`; undefined, with a note, when it fails. */
export async function attempt<T>(context: Context, what: string, make: () => Promise<T>): Promise<T | undefined> {
  try {
    return await make();
  } catch (error) {
    context.results.skipped.push({ what, reason: messageOf(error) });
    context.say(`${what}: left out: ${messageOf(error)}`);
    return undefined;
  }
}

/** Calls `use` with a temporary directory, which is removed afterwards. */
export async function withDirectory<T>(use: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'drmas-bench-'));
  try {
    return await use(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
