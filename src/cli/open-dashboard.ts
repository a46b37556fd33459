import { spawn } from 'node:child_process';
import { extname } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const ownExtension = extname(fileURLToPath(import.meta.url));
const main = fileURLToPath(new URL(`./main${ownExtension}`, import.meta.url));

/**
 * Serves the dashboard of a run from a process of its own, so that nobody who looks takes time from the training. It
 * ends with this process, however that ends.
 * @param say Receives where it can be opened, or why it cannot
 * @returns A function that ends it
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
