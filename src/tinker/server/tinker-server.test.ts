/** Our own client against our own server, over HTTP: the contract of backends, and a run that equals the embedded. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { backendContract } from '../../../test/contracts/backend/index.js';
import { playedBits } from '../../../test/support/played-bits.js';
import { serveTinker, type TinkerServer } from '../../../test/support/serve-tinker.js';
import { writeBaseModel } from '../../../test/support/tinker-fake/base-model.js';
import { adapterOn } from '../../../test/support/tinker-fake/open.js';
import { remoteRecipe, writeSymbolsModel } from '../../../test/support/tinker-fake/run.js';
import { temporaryRoot, tinyRecipe, trainTiny } from '../../../test/support/tiny-run.js';
import { nodeHost } from '../../base/platform/node-host.js';
import { checkpoint, lora } from '../../engine/model/model-spec.js';
import type { RecipeInput } from '../../method/recipe/define.js';
import { TinkerBackend } from '../client/tinker-backend.js';
import type { TinkerSpec } from '../client/tinker-spec.js';

const root = temporaryRoot();
const directory = join(root, 'base-model');
const store = join(root, 'store');
const servers: TinkerServer[] = [];
const serve = async (model: string) => {
  const server = await serveTinker({ model, store });
  servers.push(server);
  return server;
};
beforeAll(async () => {
  await writeBaseModel(root);
});
afterAll(() => Promise.all(servers.map((server) => server.close())));

const connect = ({ url, apiKey }: TinkerServer, spec: Partial<TinkerSpec> = {}) =>
  TinkerBackend.connect(
    { type: 'tinker', url, profile: 'auto', models: {}, concurrency: 8, saveEvery: 1, deadlineSeconds: 30, ...spec },
    { host: nodeHost(), models: [adapterOn(directory)], environment: { TINKER_API_KEY: apiKey } },
  );

backendContract('the client of our own server', {
  open: async () => connect(await serve(directory)),
  weights: (seed) => adapterOn(directory, seed),
  misfit: adapterOn(directory, 1, 4),
  learns: 0.02,
  root,
});

describe('a run through our own server', () => {
  it('is the run of the embedded engine, bit for bit: episodes, events and the next step from a checkpoint', {
    tags: 'verify',
  }, async () => {
    const symbols = await writeSymbolsModel(root, { name: 'symbols' });
    const { url, apiKey } = await serve(symbols);
    const model = lora(checkpoint(symbols), { rank: 4, alpha: 8 });
    const overrides = ['training.steps=3', 'evaluation.tasks=2'];
    const changes = { model, warmStart: undefined } as unknown as Partial<RecipeInput>;
    const there = await trainTiny(root, remoteRecipe(symbols, { url, apiKey }, changes, overrides));
    const here = await trainTiny(root, tinyRecipe(changes, overrides));
    const [served, embedded] = [await playedBits(there), await playedBits(here)];
    expect(embedded.events.length).toBeGreaterThan(4);
    expect(served).toEqual(embedded);
    // The weights changed, and so did the values that must agree.
    const norms = embedded.events.flatMap((event) =>
      event.type === 'step' ? [event.policies.solver?.gradientNorm] : [],
    );
    expect(new Set(norms).size).toBe(norms.length);
  });
});
