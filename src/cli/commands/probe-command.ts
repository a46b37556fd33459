import type { Warmup } from '../../core/events.js';
import { nodeHost } from '../../platform/node-host.js';
import { lastCheckpoint, requestRecipe } from '../../run/request.js';
import { RunDirectory } from '../../store/run-directory.js';
import { type CommandContext, INTERRUPTED } from '../command-context.js';
import { probeLines } from '../reporter/probe-printer.js';
import { warmupLine } from '../reporter/progress-printer.js';
import { screenOf } from '../reporter/screen.js';
import { wrap } from '../reporter/text-layout.js';

export interface ProbeFlags {
  readonly set: readonly string[];
  readonly tasks?: number;
  readonly from?: string;
  readonly seed?: number;
  readonly threads?: number;
  readonly json?: boolean;
}

/** Tasks played where nobody says how many. */
const TASKS = 32;
/** Seconds between lines about the warm start. */
const SECONDS_BETWEEN_LINES = 10;

/** `drmas probe <recipe>`: what reinforcement would have to work with. Trains at most the warm start, which is kept. */
export async function probeCommand(context: CommandContext, source: string, flags: ProbeFlags): Promise<number> {
  const { recipe } = await requestRecipe(source, flags);
  const checkpoint =
    flags.from === undefined ? undefined : await lastCheckpoint(await RunDirectory.open(flags.from), 'probe');
  const { width } = screenOf(context.stdout, context.environment);
  const tell = (...lines: string[]) => {
    for (const line of lines) context.stderr.write(`${line}\n`);
  };
  const { signal } = context;
  try {
    const host = nodeHost({ threads: flags.threads, signal, notify: (message) => tell(...wrap(message, width)) });
    const report = await context.work.probeRecipe(recipe, host, {
      tasks: flags.tasks ?? TASKS,
      checkpoint,
      onWarmup: now(tell, width),
    });
    const lines = flags.json === true ? [JSON.stringify({ type: 'probe', ...report })] : probeLines(report, width);
    for (const line of lines) context.stdout.write(`${line}\n`);
    return 0;
  } catch (error) {
    if (!signal.aborted) throw error;
    return INTERRUPTED;
  }
}

/** Tells of the warm start now and then. */
function now(tell: (line: string) => void, width: number): (event: Warmup) => void {
  let [told, before] = [Number.NEGATIVE_INFINITY, 0];
  return (event) => {
    const seconds = performance.now() / 1000;
    if (seconds - told >= SECONDS_BETWEEN_LINES || event.step === event.steps) {
      tell(warmupLine(event, before, width));
      told = seconds;
    }
    before = event.step % event.steps;
  };
}
