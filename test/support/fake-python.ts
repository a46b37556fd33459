/** Programs that answer the search for PyTorch as a Python does. */
import { chmod, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const card = { name: 'Card', memory: 24e9, free: 23e9, capability: [8, 9], bandwidth: null, error: null };
const versions = { version: '3.12.1', torch: '2.13.0+cu126', cuda: '12.6' };

/** The report of a Python with PyTorch and one card. */
export const torchReport = { ...versions, cards: [card], mps: false, error: null, uncompiled: null };

/** The path of a program that answers with this report. */
export const fakePython = (report: object): Promise<string> =>
  fakeProgram(`cat <<'END'\na line of a module\ndrmas:${JSON.stringify(report)}\nEND`);

/** The path of a program named `python` that runs these lines of a shell. */
export async function fakeProgram(lines: string): Promise<string> {
  const path = join(await mkdtemp(join(tmpdir(), 'drmas-python-')), 'python');
  await writeFile(path, `#!/bin/sh\n${lines}\n`);
  await chmod(path, 0o755);
  return path;
}
