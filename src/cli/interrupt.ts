import type { Host } from '../core/host.js';
import { INTERRUPTED } from './command-context.js';
import { writeError } from './process-guard.js';

/** An interrupted run is ended after this long, unless protected work is under way. */
const PATIENCE_MS = 4500;

const IMPATIENT =
  `interrupted; what was under way did not end within ${PATIENCE_MS / 1000} s and was left, ` +
  'npx drmas resume goes on with a run from its last checkpoint\n';

/** The parts of a host that an interruption concerns. */
export type Interruption = Pick<Host, 'signal' | 'protect'>;

/**
 * Ctrl-C, termination and a terminal that is closed. The first one fires the signal, so that the run stops and writes a
 * checkpoint. A second one ends the process; so does running out of patience, which waits for protected work, such as a
 * checkpoint that is being written, and then starts anew; that is said. A reader that goes away (`drmas train math |
 * head`) counts as the first.
 */
export function interruption(process: NodeJS.Process, write: (text: string) => void = writeError): Interruption {
  const controller = new AbortController();
  let working = 0;
  let overdue = false;
  const exit = () => process.exit(INTERRUPTED);
  const wait = () => {
    setTimeout(() => {
      overdue = working > 0;
      if (overdue) return;
      write(IMPATIENT);
      exit();
    }, PATIENCE_MS).unref();
  };
  const interrupt = () => {
    if (controller.signal.aborted) exit();
    wait();
    controller.abort(new Error('interrupted'));
  };
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  process.on('SIGHUP', interrupt);
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      if (!controller.signal.aborted) interrupt();
    });
  }
  return {
    signal: controller.signal,
    async protect(work) {
      working++;
      try {
        return await work();
      } finally {
        working--;
        if (overdue && working === 0) {
          overdue = false;
          wait();
        }
      }
    },
  };
}
