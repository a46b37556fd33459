/**
 * The official Python client of the Tinker protocol trains on our own server: the last version that speaks JSON, and a
 * new one that speaks protobuf.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { loadPolicy } from '@drmas/engine/node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pythonEnvironment } from '../support/python-environment.js';
import { serveTinker, type TinkerServer } from '../support/serve-tinker.js';
import { writeBaseModel } from '../support/tinker-fake/base-model.js';

const run = promisify(execFile);

/** The output of the script. */
interface Seen {
  readonly losses: readonly number[];
  readonly forward: number;
  readonly repeats: boolean;
  readonly gap: number;
  readonly prompt_nll: number;
  readonly rewarded: number;
  readonly restored: number;
}

describe.each(['0.24.1', '0.38.0'])('tinker %s from PyPI', (version) => {
  let root: string;
  let server: TinkerServer;
  let model: string;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'drmas-tinker-sdk-'));
    model = await writeBaseModel(root);
    server = await serveTinker({ model, store: join(root, 'store'), token: 'tml-test' });
  });
  afterAll(async () => {
    await server.close();
    await rm(root, { recursive: true, force: true });
  });

  it('trains, samples, saves and loads, and gets errors that name the fault', async ({ skip }) => {
    const environment = await pythonEnvironment({
      name: 'tinker',
      requirements: new URL('requirements.txt', import.meta.url),
      further: [`tinker==${version}`],
      what: `tinker ${version} (240 MB)`,
    });
    if ('unavailable' in environment) {
      console.log(`SKIPPED: the official client, because ${environment.unavailable}`);
      return skip(environment.unavailable);
    }
    const script = fileURLToPath(new URL('train.py', import.meta.url));
    const env = { ...process.env, TINKER_TELEMETRY: '0', HF_HUB_OFFLINE: '1', HOME: root };
    const { stdout } = await run(environment.python, ['-W', 'ignore', script, server.url, model], {
      env,
      timeout: 300_000,
    });
    const seen = JSON.parse(stdout) as Seen;
    expect(seen).toMatchObject({
      sdk: version,
      rank: 4,
      repeats: true,
      prompt_first: null,
      kept: 4,
      base: 4,
      checkpoints: ['sampler_weights/kept', 'weights/before-rl'],
      refused: expect.stringMatching(/99999/),
    });
    const { losses, forward, gap, rewarded, restored } = seen;
    expect(losses[7]).toBeLessThan(0.8 * (losses[0] as number));
    expect(forward).toBeLessThan(losses[7] as number);
    expect(gap).toBe(0); // the sampler and the trainer are of one engine
    expect(rewarded).toBeGreaterThan(0.5); // the words that earned something became more probable
    expect(restored).toBe(forward);
    // Its first log-probs are the log-probs of our own engine.
    const ours = await loadPolicy(model, { threads: 1 });
    const logprobs = await Promise.all([ours.logprobs([1], [2, 3, 4, 5, 6]), ours.logprobs([1], [7, 8, 9])]);
    await ours.dispose();
    const expected = -logprobs.flatMap((row) => Array.from(row)).reduce((sum, logprob) => sum + logprob, 0);
    expect(losses[0]).toBeCloseTo(expected, 10);
  });
});
