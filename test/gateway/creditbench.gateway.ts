/** A trainer in Python fills in a row of CreditBench over HTTP. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { serveFamilies } from '../../research/creditbench/server.js';
import { readSubmission, rowOf, trainingScore } from '../../research/creditbench/submission.js';
import { pythonEnvironment } from '../support/python-environment.js';
import { temporaryRoot } from '../support/tiny-run.js';

const environment = await pythonEnvironment({
  name: 'creditbench',
  requirements: new URL('requirements.txt', import.meta.url),
  further: ['torch==2.13.0'],
  what: 'PyTorch (1 to 6 GB)',
});
const python = 'python' in environment ? environment.python : undefined;
if ('unavailable' in environment) console.log(`SKIPPED: CreditBench in Python, because ${environment.unavailable}`);

const root = temporaryRoot();
const trainer = fileURLToPath(new URL('../../research/creditbench/trainer.py', import.meta.url));

describe.skipIf(python === undefined)('a trainer in Python', () => {
  it('learns over HTTP, the same way twice, and writes a row that the validator takes', async () => {
    const server = await serveFamilies(0);
    try {
      const rowFrom = async (name: string) => {
        const out = join(root, name);
        const words = [trainer, `http://127.0.0.1:${server.port}`, out, '--families', 'first-error', '--seeds', '2'];
        await promisify(execFile)(python as string, words);
        return readSubmission(JSON.parse(await readFile(out, 'utf8')));
      };
      const row = await rowFrom('row.json');
      expect((await rowFrom('again.json')).runs).toEqual(row.runs);
      expect(row.runs.map(({ seed, episodes }) => [seed, episodes])).toEqual([
        [11, 2560],
        [12, 2560],
      ]);
      for (const { curve } of row.runs) expect(trainingScore(curve)).toBeGreaterThan((curve[0] as number) + 0.2);
      expect(rowOf(row)).toMatch(/^\| grpo \(PyTorch\) \|.*\d \(2\)/);
    } finally {
      await server.close();
    }
  });
});
