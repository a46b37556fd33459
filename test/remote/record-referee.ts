/**
 * Writes docs/referee.jsonl: the referee's cases and the speed on drmas's own server and on SkyRL's, with the same tiny
 * model, one after the other.
 *
 *     npx tsx test/remote/record-referee.ts && npm run docs
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secret } from '@drmas/engine/host';
import { loadPolicy } from '@drmas/engine/node';
import { packageVersion } from '@drmas/engine/platform';
import { referee } from '@drmas/tinker';
import { pythonEnvironment } from '../support/python-environment.js';
import { serveTinker } from '../support/serve-tinker.js';
import { timeOfDay } from '../support/time-and-chance.js';
import { writeTinyQwen3 } from './model.js';
import { SkyrlServer } from './server.js';
import { skyrlEnvironment } from './setup.js';

const environment = await pythonEnvironment(skyrlEnvironment);
if ('unavailable' in environment) throw new Error(environment.unavailable);
const root = await mkdtemp(join(tmpdir(), 'drmas-referee-'));
const model = join(root, 'tiny-qwen3');
await writeTinyQwen3(model);

const local = await loadPolicy(model, { threads: 1 });
const reference = (sequences: readonly Int32Array[]) =>
  Promise.all(
    sequences.map(async ([first = 0, ...rest]) => Float32Array.of(0, ...(await local.logprobs([first], rest)))),
  );

async function record(
  server: string,
  request: Pick<Parameters<typeof referee>[0], 'url' | 'apiKey' | 'profile'>,
): Promise<string> {
  const time = new Date(timeOfDay()).toISOString();
  const settings = { budgetSeconds: 1200, tolerance: 1e-3, hostile: true, speed: true, reference };
  const { profile, seconds, findings, speed } = await referee({ ...request, ...settings });
  const short = findings.map(({ name, outcome, detail }) => ({ name, outcome, detail }));
  return JSON.stringify({ server, time, profile, seconds: Math.round(seconds), speed, findings: short });
}

const ours = await serveTinker({ model, store: join(root, 'store') });
const own = await record(`drmas ${packageVersion()}`, {
  url: ours.url,
  apiKey: new Secret(ours.apiKey),
  profile: 'drmas',
});
await ours.close();
const { python } = environment;
const skyrl = await SkyrlServer.start({ python, model, directory: join(root, 'server'), adapters: 8, rank: 8 });
const other = await record('SkyRL 0.3.0 (JAX, CPU)', { url: skyrl.url, apiKey: undefined, profile: 'skyrl-jax' });
await skyrl.stop();
await local.dispose();
await writeFile('docs/referee.jsonl', `${own}\n${other}\n`);
await rm(root, { recursive: true });
