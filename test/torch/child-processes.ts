/** Processes of this machine, as Linux tells of them. */
import { readdir, readFile } from 'node:fs/promises';

/** The children of a process whose command has a word. */
export async function childrenOf(parent: number, word: string): Promise<number[]> {
  const found: number[] = [];
  for (const name of await readdir('/proc')) {
    const pid = Number(name);
    const stat = Number.isInteger(pid) ? await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '') : '';
    if (Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) !== parent) continue;
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.includes(word)) found.push(pid);
  }
  return found;
}

/** Whether a process is there and does not wait for its parent. */
export const isAlive = (pid: number) =>
  readFile(`/proc/${pid}/stat`, 'utf8').then(
    (stat) => !/^\d+ \(.*\) Z/.test(stat),
    () => false,
  );
