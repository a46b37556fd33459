import { spawn } from 'node:child_process';
import { extname } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const ownExtension = extname(fileURLToPath(import.meta.url));
const main = fileURLToPath(new URL(`./main${ownExtension}`, import.meta.url));

/** The folder of `drmas watch` in a child process whose parent does not know the run's path yet. */
export const AWAITED = '-';

/** A dashboard in a process of its own. */
export interface OpenedDashboard {
  /** Shows the run at a path. Until then the dashboard says that the run is being prepared. */
  show(run: string): void;
  close(): void;
}

/**
 * Serves a dashboard in a separate process, so that it takes no time from the training. The process ends when this one
 * ends.
 * @param say Receives the dashboard's address, or an error
 */
export function openDashboard(say: (message: string) => void): OpenedDashboard {
  const child = spawn(process.execPath, [...process.execArgv, main, 'watch', AWAITED], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  child.on('error', (error) => say(`no dashboard: ${error.message}`));
  const { stdout, stderr } = child;
  if (stdout !== null) createInterface(stdout).once('line', (url) => say(`dashboard: ${url}`));
  if (stderr !== null) createInterface(stderr).on('line', (line) => say(`dashboard: ${line}`));
  child.unref();
  child.channel?.unref();
  return {
    show: (run) => void (child.connected && child.send(run, () => {})), // a dashboard that has ended shows nothing
    close: () => void child.kill(),
  };
}

/**
 * Passes on the path that the parent process sends to `show`. The path may arrive before this is called: Node keeps
 * messages until somebody listens.
 */
export function awaitRun(process: NodeJS.Process, show: (run: string) => void): void {
  process.on('message', (run) => {
    if (typeof run === 'string') show(run);
  });
}
