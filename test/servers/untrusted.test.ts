/** Clients that ask a server whose TLS they refuse. A retry changes nothing, so each client asks once and says why. */
import { once } from 'node:events';
import { createServer as httpServer } from 'node:http';
import { createServer as httpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEndpoint } from '@drmas/engine/node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { datasetFiles } from '../../packages/engine/src/hub/dataset-files.js';
import { modelDirectory } from '../../packages/engine/src/hub/model-directory.js';
import { EngineHttp } from '../../packages/engine/src/samplers/engine-http.js';
import { defaultTiming } from '../../packages/tinker/src/client/wire/http.js';
import { TinkerClient } from '../../packages/tinker/src/client/wire/tinker-client.js';
import { openObjects } from '../../src/cluster/objects/open-objects.js';
import { EpisodePlayer } from '../../src/cluster/queue/queue-worker.js';
import type { Registered } from '../../src/cluster/queue/wire.js';
import { RayClient } from '../../src/cluster/ray/ray-client.js';
import { mcpTools, openEnv, searchR1Retriever } from '../../src/public/tasks.js';
import { TrackerServer } from '../../src/runs/trackers/tracker-server.js';
import { withEnvironment } from '../support/environment.js';
import { selfSigned } from '../support/self-signed.js';

const restore = withEnvironment({ AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret', AWS_PROFILE: undefined });

const { signal } = new AbortController();
const hubAt = (url: string) => ({
  environment: { HF_ENDPOINT: url, HF_HOME: join(tmpdir(), 'drmas-absent') },
  retryDelayMs: 1,
});
const clients: Readonly<Record<string, (url: string) => Promise<unknown>>> = {
  endpoint: (url) =>
    openEndpoint(
      { type: 'endpoint', url, model: 'm', timeoutMs: 60_000, retries: 4, concurrency: 1, body: {} },
      {},
    ).complete({ messages: [], temperature: 1, topP: 1, topK: 0, maxTokens: 1, seed: 1 }, signal),
  hub: (url) => modelDirectory('org/model', hubAt(url)),
  "a hub's data sets": (url) =>
    datasetFiles({ name: 'org/data', revision: 'main', type: 'dataset' }, (names) => names, hubAt(url)),
  sampler: (url) => new EngineHttp({ url, apiKey: undefined }).ask('/v1/models', undefined),
  Tinker: (url) => new TinkerClient({ url, apiKey: undefined, timing: defaultTiming }).baseModels(),
  tracker: (url) => new TrackerServer({ name: 'the server', url, headers: {}, secret: undefined }).ask('api'),
  Ray: (url) => new RayClient(url).version(),
  S3: (url) => openObjects('s3://bucket/runs', { AWS_ENDPOINT_URL: url }),
  'search server': (url) => searchR1Retriever({ url }).search('query', 3, signal),
  OpenEnv: (url) => openEnv({ url }).schemas(),
  MCP: (url) => mcpTools(url).open({ signal }),
  worker: (url) => {
    const given = { settings: { policies: {} }, secret: 'x' } as unknown as Registered;
    return new EpisodePlayer(url, given, {} as never, undefined).play('e0', signal);
  },
};

const servers = {
  'whose certificate nobody signed': [
    httpsServer(selfSigned),
    /certificate is refused: self-signed certificate; (.*; )?if you trust it, set NODE_EXTRA_CA_CERTS/,
  ],
  'that speaks no TLS': [httpServer(), /the server speaks no TLS: expected an address with http:\/\//],
} as const;

beforeAll(async () => {
  for (const [server] of Object.values(servers)) await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterAll(() => {
  restore();
  for (const [server] of Object.values(servers)) server.close();
});

describe.each(Object.entries(servers))('a server %s', (_, [server, reason]) => {
  it.each(Object.entries(clients))('is asked once by the client: %s', async (_, ask) => {
    let connections = 0;
    const count = () => connections++;
    server.on('connection', count);
    await expect(ask(`https://127.0.0.1:${(server.address() as AddressInfo).port}`)).rejects.toThrow(reason);
    server.off('connection', count);
    expect(connections).toBe(1);
  });
});
