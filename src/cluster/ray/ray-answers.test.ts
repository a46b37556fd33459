import { RecipeError } from '@drmas/engine/errors';
import { describe, expect, it } from 'vitest';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { writeTinyStudy } from '../../../test/support/tiny-study.js';
import { webServer } from '../../../test/support/web-server.js';
import { RayRuns } from './ray-runs.js';

const root = temporaryRoot();
const printed = ['started', 'finished'].map((type) =>
  JSON.stringify({ type: `run.${type}`, time: '', reason: 'completed' }),
);

/** Follows a job that Ray has, and that has succeeded. Ray answers the first requests with 503. */
async function followed({ refusals = 0, write = (_: unknown) => {} }) {
  const ray = await webServer(({ path }, response) => {
    if (ray.requests.length <= refusals) return void response.writeHead(503).end('the head starts');
    response.end(JSON.stringify(path.endsWith('/logs') ? { logs: printed.join('\n') } : { status: 'SUCCEEDED' }));
  });
  const source = await writeTinyStudy(root);
  const said: string[] = [];
  const log = { name: 'run', path: root, record: { recipe: { source, overrides: [] } }, begin: async () => {}, write };
  const host = { signal: new AbortController().signal, notify: (message: string) => void said.push(message) };
  const runs = new RayRuns({ url: ray.url, command: 'drmas' });
  const done = runs.executeRun({ tasks: { train: {}, test: {} } } as never, log as never, host as never);
  return { said, outcome: await done.catch((error: unknown) => error) };
}

describe('a run on Ray', () => {
  it('asks the head of the cluster again if it restarts between two jobs', async () => {
    const written: unknown[] = [];
    const { said, outcome } = await followed({ refusals: 1, write: (event) => void written.push(event) });
    expect(outcome).toBeUndefined();
    expect(said).toEqual([expect.stringMatching(/^Ray does not answer \(.*503/), 'Ray answers again']);
    expect(written).toHaveLength(2);
  });

  it('fails by name if its events cannot be written here, and loses none without a word', async () => {
    let calls = 0;
    const { said, outcome } = await followed({
      write: () => {
        if (calls++ === 0) throw new RecipeError('ENOSPC: no space left on device');
      },
    });
    expect(outcome).toMatchObject({ message: expect.stringContaining('ENOSPC') });
    expect(said).toEqual([]);
  });
});
