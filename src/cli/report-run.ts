import { dirname, isAbsolute } from 'node:path';
import { isScored } from '@drmas/engine/nouns';
import { RunDirectory } from '../method/store.js';
import { type ResumeOptions, type RunStart, shownTracker, type TrainOptions, type TrainResult } from '../runs/index.js';
import { readTracedTeam } from '../runs/traces.js';
import { type CommandContext, INTERRUPTED, jsonSink } from './command-context.js';
import { learntLines } from './reporter/planning/traces-printer.js';
import { screenOf } from './reporter/screen.js';
import { TerminalReporter } from './reporter/terminal-reporter.js';
import { nearPath } from './reporter/text-layout.js';

export type Reporting = Pick<TrainOptions, 'sinks' | 'onNotice' | 'onProgress' | 'onStart' | 'signal' | 'protect'>;

/**
 * @param requestOf The words that request the same recipe
 * @param flags Flags to repeat in the command that resumes the run
 */
export async function reportRun(
  context: CommandContext,
  json: boolean,
  requestOf: (start: RunStart) => readonly string[],
  perform: (reporting: Reporting) => Promise<TrainResult>,
  flags: Parameters<typeof repeatedFlags>[0] = {},
): Promise<number> {
  const { signal, protect } = context;
  let reporter: TerminalReporter | undefined;
  const forPrograms: Reporting = {
    sinks: [jsonSink(context)],
    onNotice: (message) => void context.stderr.write(`${message}\n`),
  };
  const forPeople: Reporting = {
    sinks: [{ write: (event) => reporter?.write(event) }],
    // Before the request is checked there is no reporter: a data set may be downloading.
    onNotice: (message) => {
      if (reporter !== undefined) reporter.notify(message);
      else context.stdout.write(`${message}\n`);
    },
    onProgress: (progress) => reporter?.progress(progress),
    onStart: (start) => {
      const screen = screenOf(context.stdout, context.environment);
      reporter = new TerminalReporter(screen, start.recipe, {
        request: requestOf(start),
        seeded: start.overrides.some((override) => override.startsWith('seed=')),
        runPath: start.run,
        flags: repeatedFlags(flags),
      });
      if (start.events.length > 0) reporter.resume(start.events);
    },
  };
  try {
    const { run: path } = await perform({ ...(json ? forPrograms : forPeople), signal, protect });
    if (json) return 0;
    const run = await RunDirectory.open(path);
    await reporter?.finish(run);
    for (const line of await comparisonLines(run)) context.stdout.write(`${line}\n`);
    return 0;
  } catch (error) {
    if (signal.aborted) {
      if (reporter !== undefined) reporter.interrupted();
      else if (!json) context.stdout.write('\ninterrupted before the run began; start the same command again\n');
      return INTERRUPTED;
    }
    reporter?.failed();
    throw error;
  }
}

/** The comparison at the end of a run whose recipe `drmas learn` wrote; no line for other runs. */
async function comparisonLines(run: RunDirectory): Promise<string[]> {
  const { source } = run.record.recipe;
  const traced = isAbsolute(source) ? await readTracedTeam(dirname(source)) : undefined; // others ship with drmas
  if (traced === undefined) return [];
  const evaluations = (await run.events()).flatMap((event) =>
    event.type === 'evaluation' && isScored(event) ? [event] : [],
  );
  const [first, last] = [evaluations[0], evaluations.at(-1)];
  return first === undefined || last === undefined ? [] : learntLines(traced, first, last, nearPath(run.path));
}

/** The words of a recipe with its overrides as a person types them, without seed and estimator. */
export function typedRequest(source: string, overrides: readonly string[]): string[] {
  const repeated = overrides.filter((override) => !/^(seed|advantage\b)/.test(override));
  return [source, ...repeated.flatMap((override) => ['--set', override])];
}

/** The flags of a run that are not part of its recipe, as a person types them, without the secrets of trackers. */
function repeatedFlags({ device, threads, track = [] }: Pick<ResumeOptions, 'device' | 'threads' | 'track'>): string[] {
  return [
    ...(device === undefined ? [] : ['--device', device]),
    ...(threads === undefined ? [] : ['--threads', `${threads}`]),
    ...track.flatMap((tracker) => ['--track', shownTracker(tracker)]),
  ];
}
