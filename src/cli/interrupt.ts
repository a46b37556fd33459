import type { Host } from '../base/host.js';
import { INTERRUPTED } from './command-context.js';
import { writeError } from './process-guard.js';

/** The process ends this long after an interruption, unless protected work runs. */
const PATIENCE_MS = 4500;

const IMPATIENT =
  `interrupted; the work in progress did not stop within ${PATIENCE_MS / 1000} s. ` +
  'Resume a run from its last checkpoint with npx drmas resume\n';

/** The parts of a host that an interruption concerns. */
export type Interruption = Pick<Host, 'signal' | 'protect'>;

/**
 * Handles Ctrl-C, termination and a closed terminal. The first one fires the signal, so that the run stops and writes a
 * checkpoint. A second one ends the process. After a timeout the process ends too, with a message; the timeout restarts
 * after protected work, such as writing a checkpoint. A closed pipe (`drmas train math | head`) counts as the first
 * one.
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
