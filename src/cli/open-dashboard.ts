import { spawn } from 'node:child_process';
import { extname } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const ownExtension = extname(fileURLToPath(import.meta.url));
const main = fileURLToPath(new URL(`./main${ownExtension}`, import.meta.url));

/**
 * Serves the dashboard of a run in a separate process, so that it takes no time from the training. The process ends
 * when this one ends.
 * @param say Receives the dashboard's address, or an error
 * @returns A function that stops the dashboard
 */
export function openDashboard(run: string, say: (message: string) => void): () => void {
  const child = spawn(process.execPath, [...process.execArgv, main, 'watch', run], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  child.on('error', (error) => say(`no dashboard: ${error.message}`));
  const { stdout, stderr } = child;
  if (stdout !== null) createInterface(stdout).once('line', (url) => say(`dashboard: ${url}`));
  if (stderr !== null) createInterface(stderr).on('line', (line) => say(`dashboard: ${line}`));
  child.unref();
  child.channel?.unref();
  return () => void child.kill();
}
