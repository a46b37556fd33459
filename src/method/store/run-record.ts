import { contentHash } from '@drmas/engine/disk';
import { isObject, RunError, shown } from '@drmas/engine/errors';
import { parseStored } from '@drmas/engine/events';
import { agentProfileSchema } from '@drmas/engine/model';
import { z } from 'zod';

/** Folders of checkpoints are called after policies and agents, and every object has fields such as `constructor`. */
const isName = (name: string): boolean =>
  /^[^/\\:\0]+$/.test(name) && !['.', '..'].includes(name) && !(name in Object.prototype);

const shape = z.object({
  version: z.literal(1),
  recipe: z.object({
    /** The name of a shipped recipe, or the absolute path of a recipe file. */
    source: z.string(),
    overrides: z.array(z.string()).readonly(),
    /** The hash of the recipe file and its local imports. */
    codeHash: z.string(),
  }),
  resolved: z.record(z.string(), z.unknown()),
  /** The agents by name, with the settings that only their code contains. Runs of older versions have none. */
  agents: z.record(z.string(), agentProfileSchema).optional(),
  /** One entry for each time that the run was resumed although its code or its recipe had changed. */
  acceptedChanges: z
    .array(z.object({ time: z.string(), codeHash: z.string(), step: z.number() }))
    .readonly()
    .default([]),
});

const recordSchema = shape.superRefine((record, context) => {
  for (const { path, name } of namesIn(record))
    if (!isName(name)) context.addIssue({ code: 'custom', path, message: `expected a name, got ${shown(name)}` });
});

/** The names of agents and policies, and where they stand. */
function namesIn({ resolved: { assign, policies }, agents = {} }: z.output<typeof shape>) {
  const entries = isObject(assign) ? Object.entries(assign) : [];
  const keys = (path: string[], table: unknown) =>
    isObject(table) ? Object.keys(table).map((name) => ({ path, name })) : [];
  return [
    ...keys(['resolved', 'assign'], assign),
    ...entries.flatMap(([agent, name]) =>
      typeof name === 'string' ? [{ path: ['resolved', 'assign', agent], name }] : [],
    ),
    ...keys(['resolved', 'policies'], policies),
    ...keys(['agents'], agents),
  ];
}

/** The content of recipe.json: enough to load the recipe again and to check whether it has changed. */
export type RunRecord = z.output<typeof recordSchema>;

/**
 * The record of a run that resumes with other code. `accepted` has the time and step of an accepted change of the
 * recipe.
 */
export function changedRecord(
  record: RunRecord,
  code: Omit<RunRecord['recipe'], 'overrides'>,
  accepted: readonly { readonly time: string; readonly step: number }[],
): RunRecord {
  const { codeHash } = record.recipe;
  return {
    ...record,
    recipe: { ...record.recipe, ...code },
    acceptedChanges: [...record.acceptedChanges, ...accepted.map((change) => ({ ...change, codeHash }))],
  };
}

/** The text of recipe.json, with a digest of its content. */
export function formatRecord(record: RunRecord): string {
  return `${JSON.stringify({ ...record, digest: contentHash(record) }, null, 2)}\n`;
}

/** Whether recipe.json is unchanged. Undefined if a version without digests wrote it. */
export function isAsWritten(text: string): boolean | undefined {
  const { digest, ...record } = JSON.parse(text) as { digest?: unknown };
  return digest === undefined ? undefined : contentHash(record) === digest;
}

/** Parses recipe.json. @throws RunError with the file and the error */
export const parseRecord = (text: string, path: string): RunRecord =>
  parseStored(recordSchema, text, { path, what: 'the record of a run', fault: (message) => new RunError(message) });
