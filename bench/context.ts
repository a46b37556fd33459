/** What every part of the benchmark gets: what was asked for, where results go, and peers where they are wanted. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../src/core/errors.js';
import type { Contestant, Schedule, Series } from './measure/interleave.js';
import { Peer, type PeerCommand } from './peers/peer.js';
import { amount } from './report.js';
import { type Results, skippedOf, threadsText } from './results.js';
import type { Shape } from './workload.js';

export interface Options {
  readonly threads: readonly number[];
  readonly repetitions: number;
  readonly shapes: readonly Shape[];
  readonly peers: boolean;
  /** A checkout of the paper's code, for the estimators. */
  readonly drmas: string | undefined;
}

export interface Context {
  readonly options: Options;
  readonly results: Results;
  /** Progress, for people. */
  readonly say: (message: string) => void;
}

/** Repetitions as asked for, announced one by one. */
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

/** Starts peers one after the other, since getting ready takes all cores; whoever fails is noted and left out. */
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

/** What `make` gives, or undefined, with a note, when it fails. */
export async function attempt<T>(context: Context, what: string, make: () => Promise<T>): Promise<T | undefined> {
  try {
    return await make();
  } catch (error) {
    context.results.skipped.push({ what, reason: messageOf(error) });
    context.say(`${what}: left out: ${messageOf(error)}`);
    return undefined;
  }
}

/** Calls `use` with a temporary directory that is gone afterwards. */
export async function withDirectory<T>(use: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'drmas-bench-'));
  try {
    return await use(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
