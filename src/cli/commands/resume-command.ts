import { reopenRun, requestContinuation } from '../../run/request.js';
import type { CommandContext } from '../command-context.js';
import { asked, report, work } from './train-command.js';

export interface ResumeFlags {
  readonly acceptChanges?: boolean;
  readonly threads?: number;
  readonly json?: boolean;
}

/** `drmas resume <run>`: goes on from the last checkpoint as if the run had never stopped. */
export async function resumeCommand(context: CommandContext, path: string, flags: ResumeFlags): Promise<number> {
  const request = await requestContinuation(path, { acceptChanges: flags.acceptChanges });
  const { recipe, loaded, overrides } = request;
  const tasks = await context.work.prepareTasks(recipe);
  const to = { request: asked(loaded.source, overrides), path, json: flags.json === true };
  const reporting = report(context, recipe, to);
  const { run, checkpoint } = await reopenRun(request, [reporting.sink]);
  reporting.reporter?.resume(await run.events());
  return work(context, { recipe, tasks, run, reporting, checkpoint, threads: flags.threads });
}
