/** The progress of a run, and its form in a checkpoint. */
import { isObject } from '@drmas/engine/errors';
import { z } from 'zod';
import type { MadeUnder } from '../run/made-under.js';
import type { OpenRun } from '../run/run-state.js';
import { KlCoefficients } from '../signals/kl-penalty.js';
import { StabilityWatch, type WatchedRun } from '../stability/stability-watch.js';
import { symptomState } from '../stability/symptoms.js';
import { UpdateCounts } from '../update/update-counts.js';
import { StopRules, stopSchema } from './stop-rules.js';

/** The parts of a run that its progress depends on. */
export type ProgressRun = WatchedRun & Pick<OpenRun, 'under'>;

/** A part of a run's progress, under its name in a checkpoint's `state.json`. */
export interface Stateful<Value, Kept> {
  readonly schema: z.ZodType<Kept>;
  /** The part from a checkpoint; the initial value if `kept` is undefined. */
  load(kept: Kept | undefined, run: ProgressRun): Value;
  /** The JSON value of the part; undefined to omit it. */
  save(value: Value): Kept | undefined;
}

const stateful = <Value, Kept>(part: Stateful<Value, Kept>): Stateful<Value, Kept> => part;

const plain = <Value>(schema: z.ZodType<Value>, first: Value): Stateful<Value, Value> => ({
  schema,
  load: (kept) => kept ?? first,
  save: (value) => value,
});

/** A hash or a commit. It names a folder of the cache, so it must not lead out of it. */
export const FOLDER = /^\w[\w.-]*$/;

const numbers = z.record(z.string(), z.number()).default({});

/** Numbers by name. An empty record is omitted. */
const plainNumbers = (): Stateful<Readonly<Record<string, number>>, Readonly<Record<string, number>>> => ({
  ...plain<Readonly<Record<string, number>>>(numbers, {}),
  save: (value) => (Object.keys(value).length === 0 ? undefined : value),
});

const watchSchema = z.object({
  norms: z.record(z.string(), z.array(z.number())),
  dropped: z.record(z.string(), z.number()),
  symptoms: z.record(z.string(), symptomState).default({}),
  silent: numbers,
  learnt: z.boolean().optional(),
});

/**
 * The parts of a run's progress. A new part is a row here. Random numbers follow from the step, so no part stores any.
 */
const parts = {
  step: plain(z.int().min(0), 0),
  /** The last step that was evaluated, -1 for none. */
  evaluated: plain(z.int().min(-1), -1),
  watch: stateful({
    schema: watchSchema,
    load: (kept, run) => new StabilityWatch(run, kept),
    save: ({ state }) => state as z.output<typeof watchSchema>, // nothing changes the arrays
  }),
  /** The KL coefficients that a controller has changed, by policy. */
  kl: stateful({
    schema: numbers,
    load: (kept) => new KlCoefficients(kept),
    save: ({ state }) => state,
  }),
  made: stateful({
    schema: z.record(z.string(), z.int().min(0)).optional(),
    load: (kept) => new UpdateCounts(kept),
    save: ({ state }) => state,
  }),
  estimator: plainNumbers(),
  /** The steps in a row in which most, or all, episodes failed, by kind of failure. */
  failing: plainNumbers(),
  predictions: plainNumbers(),
  /** The settings that other parts were made under. */
  under: stateful<MadeUnder, MadeUnder>({
    schema: z.record(z.string(), z.string()).default({}),
    load: (_, run) => run.under,
    save: (under) => under,
  }),
  stops: stateful({
    schema: stopSchema.optional(),
    load: (kept, run) => new StopRules(run.training, kept),
    save: ({ state }) => state,
  }),
  warmStart: plain<string | undefined>(z.string().regex(FOLDER).optional(), undefined),
};

type Parts = typeof parts;

export type Progress = { -readonly [Name in keyof Parts]: ReturnType<Parts[Name]['load']> };

type KeptParts = { [Name in keyof Parts]: NonNullable<ReturnType<Parts[Name]['save']>> };

const rows = Object.entries(parts) as unknown as [keyof Parts, Stateful<unknown, unknown>][];

export const keptSchema = z.object(
  Object.fromEntries(rows.map(([name, { schema }]) => [name, schema])) as {
    [Name in keyof Parts]: Parts[Name]['schema'];
  },
);

/** The progress of a run before its first step. `warmStart` is the hash of the warm start of its policies. */
export function firstProgress(run: ProgressRun, warmStart?: string): Progress {
  return { ...loadProgress(run, {}), warmStart };
}

/**
 * The progress in a checkpoint. A missing part gets its initial value. So does one that was made under other settings:
 * predictions of levels of another field, numbers of another estimator or of other rewards, norms of gradients of
 * another loss, the best of evaluations that measured something else, a KL coefficient that a controller has led away
 * from another one.
 */
export function loadProgress(run: ProgressRun, inCheckpoint: Partial<Record<keyof Parts, unknown>>): Progress {
  const now = run.under;
  const before = (inCheckpoint.under ?? {}) as MadeUnder;
  const outdated = (name: string) => before[name] !== undefined && before[name] !== now[name];
  const kept = (name: string, value: unknown) => {
    if (outdated(name)) return undefined;
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).filter(([key]) => !outdated(`${name}.${key}`)));
  };
  return Object.fromEntries(
    rows.map(([name, part]) => [name, part.load(kept(name, inCheckpoint[name]), run)]),
  ) as unknown as Progress;
}

export function keptProgress(progress: Progress): Partial<KeptParts> {
  const kept = rows.map(([name, part]) => [name, part.save(progress[name])] as const);
  return Object.fromEntries(kept.filter(([, value]) => value !== undefined)) as Partial<KeptParts>;
}
