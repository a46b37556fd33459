// @module-tag verify
/** Models named by a hub's id, in a recipe and in programs. */
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { HubError, TaskError } from '@drmas/engine/errors';
import { startEmbedded } from '@drmas/engine/internal/embedded/start-embedded';
import { checkpoint, lora } from '@drmas/engine/model';
import { loadPolicy, loadTokenizer } from '@drmas/engine/node';
import { nodeFiles, nodeHost } from '@drmas/engine/platform';
import { createTokenizer } from '@drmas/engine/tokens';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { RunDirectory } from '../../src/method/store/run-directory.js';
import { evaluateCheckpoint } from '../../src/runs/run/execute/evaluate-run.js';
import { executeRun } from '../../src/runs/run/execute/execute-run.js';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { jsonl } from '../../src/teams/tasks/files/file-source.js';
import { COMMIT, type HubServer, hubServer } from '../support/hub-server.js';
import { createRun, temporaryRoot, tinyModel, tinyRecipe, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();
const { context, ropeBase = 1e4, ...tiny } = tinyModel;
const tokenizer = createTokenizer(tiny.tokenizer);
const cache = join(root, 'hub');
const snapshot = join(cache, 'models--org--tiny', 'snapshots', COMMIT);

let hub: HubServer;
beforeAll(async () => {
  const model = join(root, 'model');
  await mkdir(model);
  const backend = await startEmbedded({ threads: 1, files: nodeFiles });
  const { width, layers, heads, feedForward } = tiny;
  const sizes = { width, layers, heads, kvHeads: heads, headDim: width / heads, feedForward };
  const config = { vocabSize: tokenizer.vocabSize, ...sizes, context, ropeBase, normEpsilon: 1e-6 };
  const policy = await backend.open({ type: 'random', tokenizer, seed: 1, config }, 'frozen', 'tiny');
  await policy.save(model);
  await backend.dispose();
  const files = readdirSync(model).map((name) => [name, readFileSync(join(model, name))] as const);
  hub = await hubServer('org/tiny', Object.fromEntries(files));
});
afterAll(() => hub.close());
beforeEach(() => {
  hub.requests.length = 0;
  vi.stubEnv('HF_HUB_CACHE', cache);
  vi.stubEnv('HF_ENDPOINT', hub.url);
});
afterEach(() => vi.unstubAllEnvs());

const recipe = (changes = {}) =>
  tinyRecipe({
    model: lora(checkpoint('org/tiny'), { rank: 2 }),
    training: { steps: 1, tasksPerStep: 2, groupSize: 2 },
    ...changes,
  });

describe('a recipe with a model on a hub', () => {
  it('downloads nothing where the rest of it is wrong', async () => {
    const tasks = jsonl(join(root, 'no-such-file.jsonl'));
    await expect(prepareTasks(recipe({ tasks }))).rejects.toThrow(TaskError);
    expect(hub.requests).toEqual([]);
  });

  it('downloads it once, says so, trains, and needs no hub again', async () => {
    const notices: string[] = [];
    const run = await trainTiny(root, recipe(), { notify: (message) => notices.push(message) });
    expect((await run.events()).at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed' });
    expect(notices.filter((notice) => notice.includes('model.safetensors'))).toHaveLength(1);
    expect(hub.requests.filter((request) => request.includes('/revision/'))).toHaveLength(1);
    hub.requests.length = 0;
    vi.stubEnv('HF_HUB_OFFLINE', '1');
    const again = await trainTiny(root, recipe());
    expect((await again.events()).at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed' });
    expect(hub.requests).toEqual([]);
    const adapter = join(run.path, 'checkpoints', 'step-000001', 'solver');
    const written = join(adapter, 'adapter_config.json');
    expect(JSON.parse(readFileSync(written, 'utf8'))).toMatchObject({ base_model_name_or_path: snapshot });
    const policy = await loadPolicy(adapter, { threads: 1, base: 'org/tiny' });
    expect(policy.config).toMatchObject({ width: tiny.width, context });
    await policy.dispose();
  });

  it('goes on, and is evaluated, with the commit it began with', async () => {
    const stop = new AbortController();
    const requested = recipe({ training: { steps: 2, tasksPerStep: 2, groupSize: 2, checkpointEvery: 1 } });
    const run = await createRun(root, requested, {
      listeners: [{ event: ({ type }) => void (type === 'checkpoint' && stop.abort(new Error('enough'))) }],
    });
    await expect(executeRun(requested, run, nodeHost({ threads: 1, signal: stop.signal }))).rejects.toThrow('enough');
    hub.requests.length = 0;
    hub.revisions.set('main', 'd'.repeat(40)); // moved on: that commit's files are not even there
    try {
      const reopened = await RunDirectory.open(run.path);
      const checkpoint = await reopened.latestCheckpoint();
      await reopened.rewind(checkpoint);
      await executeRun(requested, reopened, nodeHost({ threads: 1 }), { checkpoint });
      expect((await reopened.events()).at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed', steps: 2 });
      if (checkpoint === undefined) throw new Error('expected a checkpoint');
      await evaluateCheckpoint(requested, checkpoint, nodeHost({ threads: 1 }));
    } finally {
      hub.revisions.set('main', COMMIT);
    }
    expect(hub.requests.filter((request) => request.includes('/revision/'))).toEqual(
      Array(2).fill(`GET /api/models/org/tiny/revision/${COMMIT}`),
    );
  });

  it('may hold its policies near that model, or near another one there', async () => {
    const kl = (reference: object) => ({ coefficient: 0.1, reference });
    const near = recipe({
      policies: {
        solver: { kl: kl({ type: 'initial' }) },
        verifier: { kl: kl({ type: 'checkpoint', path: 'org/tiny' }) },
      },
    });
    const run = await trainTiny(root, near);
    expect((await run.events()).at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed' });
    expect(hub.requests.filter((request) => request.includes('/revision/'))).toHaveLength(1);
  });

  it('fails with the reason where it cannot be had, in the log too', async () => {
    const missing = recipe({ model: checkpoint('org/other') });
    const run = await createRun(root, missing);
    await expect(executeRun(missing, run, nodeHost({ threads: 1 }))).rejects.toThrow(HubError);
    expect((await run.events()).at(-1)).toMatchObject({ type: 'run.finished', reason: 'failed' });
  });
});

describe('loadPolicy and loadTokenizer', () => {
  it('take a name, and of the tokenizer download no more', async () => {
    vi.stubEnv('HF_HUB_CACHE', join(root, 'another'));
    const loaded = await loadTokenizer('org/tiny');
    expect(loaded.toJSON()).toEqual(tokenizer.toJSON());
    expect(hub.requests.some((request) => request.includes('blob'))).toBe(false);
    const policy = await loadPolicy('org/tiny', { threads: 1 });
    expect(policy.config).toMatchObject({ width: tiny.width, context });
    await policy.dispose();
  });
});
