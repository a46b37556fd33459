import { INTERRUPTED } from './command-context.js';

/** After this long an interrupted run is ended; checkpoints are atomic, so the run directory is consistent at any time. */
const PATIENCE_MS = 4500;

/**
 * Ctrl-C and termination as an AbortSignal. The first one asks, so that a checkpoint can be written; a second one, or
 * running out of patience, ends the process. A reader that goes away (`drmas train math | head`) counts as the first.
 */
export function interruptSignal(process: NodeJS.Process): AbortSignal {
  const controller = new AbortController();
  const exit = () => process.exit(INTERRUPTED);
  const interrupt = () => {
    if (controller.signal.aborted) exit();
    setTimeout(exit, PATIENCE_MS).unref();
    controller.abort(new Error('interrupted'));
  };
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      if (!controller.signal.aborted) interrupt();
    });
  }
  return controller.signal;
}
