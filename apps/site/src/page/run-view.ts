import type { Step, Warmup } from '@drmas/engine/events';
import type { PlayProgress } from '@drmas/engine/host';
import { mean } from '@drmas/engine/math';
import type { FromTab, NameTry, ShownEpisode } from '../run/protocol.js';

/** A run as the page shows it. */
export interface RunView {
  readonly state: 'starting' | 'training' | 'done' | 'failed';
  /** The last news of the warm start. */
  readonly warmup?: Warmup;
  readonly steps: readonly Step[];
  /** How far the episodes that are being played have come. */
  readonly progress?: PlayProgress;
  /** An episode of the last step in which an agent was called after another. */
  readonly episode?: { readonly step: number; readonly episode: ShownEpisode };
  /** The latest tries for each removed name: whether they passed. */
  readonly names: Readonly<Record<string, readonly boolean[]>>;
  readonly problem?: string;
}

export const newRun: RunView = { state: 'starting', steps: [], names: {} };

/** A run after a message from its worker. */
export function runAfter(run: RunView, message: FromTab): RunView {
  switch (message.type) {
    case 'event': {
      const { event } = message;
      if (event.type === 'warmup') return { ...run, state: 'training', warmup: event };
      if (event.type === 'step') return { ...run, state: 'training', steps: [...run.steps, event] };
      return run;
    }
    case 'episode':
      return { ...run, episode: { step: message.step, episode: message.episode } };
    case 'tries':
      return { ...run, names: namesAfter(run.names, message.tries) };
    case 'progress':
      return { ...run, state: 'training', progress: message.progress };
    case 'done':
      return { ...run, state: 'done' };
    case 'failed':
      return { ...run, state: 'failed', problem: message.message };
  }
}

/** The tries of a name that count. */
const LATEST_TRIES = 8;

function namesAfter(names: RunView['names'], tries: readonly NameTry[]): RunView['names'] {
  const after: Record<string, readonly boolean[]> = { ...names };
  for (const { former, passed } of tries) after[former] = [...(after[former] ?? []), passed].slice(-LATEST_TRIES);
  return after;
}

/** Whether the fixer has found the new name: half of its latest tries pass. */
export const isFound = (tries: readonly boolean[] = []): boolean =>
  tries.length > 0 && 2 * tries.filter(Boolean).length >= tries.length;

/** The number of steps in a point of a smoothed curve, and in the comparison. */
export const TRAILING = 10;
/** Points between two means below which the page calls neither ahead: a mean of ten steps varies by about one. */
const CLOSE = 3;

/** The mean of each step and of up to nine before it. */
export function trailingMeans(values: readonly number[]): number[] {
  return values.map((_, i) => mean(values.slice(Math.max(0, i + 1 - TRAILING), i + 1)));
}

export const successes = ({ steps }: RunView) => steps.map(({ success = Number.NaN }) => success);

/** How two runs compare over the last ten steps that both have; undefined before they have as many. */
export interface Comparison {
  /** The last of the steps. */
  readonly step: number;
  /** The mean success of each run. */
  readonly means: readonly [number, number];
  /** Percentage points of the first above the second. */
  readonly points: number;
  readonly ahead: 0 | 1 | undefined;
}

export function compared(first: RunView, second: RunView): Comparison | undefined {
  const step = Math.min(first.steps.length, second.steps.length);
  if (step < TRAILING) return undefined;
  const meanOf = (run: RunView) => mean(successes(run).slice(step - TRAILING, step));
  const means = [meanOf(first), meanOf(second)] as const;
  const points = 100 * (means[0] - means[1]);
  return { step, means, points, ahead: Math.abs(points) < CLOSE ? undefined : points > 0 ? 0 : 1 };
}
