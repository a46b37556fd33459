import { resumeWith } from '../../run/api.js';
import type { CommandContext } from '../command-context.js';
import { reportRun, typedRequest } from '../report-run.js';

export interface ResumeFlags {
  readonly acceptChanges?: boolean;
  readonly threads?: number;
  readonly json?: boolean;
}

/** `drmas resume <run>`: goes on from the last checkpoint as if the run had never stopped. */
export function resumeCommand(context: CommandContext, path: string, flags: ResumeFlags): Promise<number> {
  const { json = false, ...options } = flags;
  const request = ({ source, overrides }: { source: string; overrides: readonly string[] }) =>
    typedRequest(source, overrides);
  return reportRun(context, json, request, (reporting) =>
    resumeWith(context.work, path, undefined, { ...options, ...reporting }),
  );
}
