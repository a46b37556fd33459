/** The requests that every server of drmas refuses, tried on the app and guard of each. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { nodeHost } from '@drmas/engine/platform';
import { bytesTokenizer } from '@drmas/engine/tokens';
import { openTinker } from '@drmas/tinker/server';
import { afterAll } from 'vitest';
import { RunCatalog } from '../../src/dashboard/watch/run-catalog.js';
import { TalkService } from '../../src/dashboard/watch/talk/talk-service.js';
import { watchApp, watchGuard } from '../../src/dashboard/watch/watch-server.js';
import { Gateway } from '../../src/gateway/agents/gateway/gateway.js';
import { scriptedSampler } from '../../src/runs/testing/scripted-sampler.js';
import { modelServer } from '../../src/serve/models/model-server.js';
import { serverContract } from '../contracts/server.js';
import { writeBaseModel } from '../support/tinker-fake/base-model.js';
import { temporaryRoot } from '../support/tiny-run.js';

const root = temporaryRoot();
const ending = new AbortController();
const disposals: (() => Promise<void>)[] = [];
afterAll(async () => {
  ending.abort();
  for (const dispose of disposals) await dispose();
});
const KEY = 'a-token-of-mine';
const slow = { tags: 'verify' };

async function watching(key?: string) {
  await mkdir(join(root, 'runs'), { recursive: true });
  const talk = new TalkService();
  disposals.push(() => talk.close());
  const app = watchApp({ catalog: new RunCatalog(join(root, 'runs')), talk, page: root, signal: ending.signal });
  const routes = { get: '/api/talk', post: '/api/talk', entrance: true, mostBytes: 256e3 } as const;
  return { app, guard: watchGuard(key), ...routes, ...(key === undefined ? {} : { key }) };
}
serverContract('the dashboard', () => watching(), slow);
serverContract('the dashboard with a token', () => watching(KEY), slow);

const chat = { get: '/v1/models', post: '/v1/chat/completions', mostBytes: 16e6 } as const;
async function serving(key?: string) {
  const model = scriptedSampler(() => 'ok', bytesTokenizer()).policy('scripted', 512);
  const server = modelServer({
    agentModels: new Map([['scripted', { model, agent: undefined }]]),
    token: key,
    most: 8,
  });
  return { ...server, ...chat, ...(key === undefined ? {} : { key }) };
}
serverContract('the server of trained agents', () => serving(), slow);
serverContract('the server of trained agents with a token', () => serving(KEY), slow);

serverContract(
  'the Tinker server',
  async () => {
    const store = join(root, 'store');
    const request = { model: await writeBaseModel(root), store, token: KEY, most: 8, mostModels: 2, idleSeconds: 60 };
    const opened = await openTinker(request, nodeHost({ threads: 1 }));
    disposals.push(() => opened.dispose());
    const routes = { get: '/api/v1/get_server_capabilities', post: '/api/v1/create_session', mostBytes: 64e6 };
    return { ...opened, ...routes, key: KEY };
  },
  slow,
);

serverContract(
  'the gateway of a run',
  async () => {
    const gateway = new Gateway({ limits: { maxCalls: 8, maxTurns: 8 }, onIgnored: () => {} });
    const episode = { signal: ending.signal, turns: [], calls: 0 };
    const calls = { agents: ['solver'], recall: () => undefined };
    const { secret } = gateway.connect(episode as never, calls as never, 'http://localhost');
    return { app: gateway.app, guard: gateway.guard, ...chat, key: secret, checks: 'app' };
  },
  slow,
);
