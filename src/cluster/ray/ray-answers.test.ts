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

const busy = { status: 503, text: 'the head starts' };

interface Failure {
  readonly status: number;
  readonly text: string;
}

/** Follows a job that succeeds. Ray has it, or gets it from the run. `fault` decides on failures of Ray. */
async function followed({
  isThere = true,
  fault = (_method: string, _path: string): Failure | undefined => undefined,
  write = (_: unknown) => {},
}) {
  let has = isThere;
  const ray = await webServer(({ method, path }, response) => {
    const failure = fault(method, path);
    if (failure !== undefined) return void response.writeHead(failure.status).end(failure.text);
    if (method === 'GET' && !has) return void response.writeHead(404).end();
    if (method === 'POST') has = true;
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
    let failures = 1;
    const fault = () => (failures-- > 0 ? busy : undefined);
    const { said, outcome } = await followed({ fault, write: (event) => void written.push(event) });
    expect(outcome).toBeUndefined();
    expect(said).toEqual([expect.stringMatching(/^Ray does not answer \(.*503/), 'Ray answers again']);
    expect(written).toHaveLength(2);
  });

  it.each([
    ['GET', /jobs\/[^/]+$/],
    ['GET', /packages/],
    ['PUT', /packages/],
    ['POST', /jobs\/$/],
    ['GET', /logs$/],
  ] as const)('repeats a request that the head is too busy for: %s %s', async (wanted, where) => {
    let failures = 1;
    const fault = (method: string, path: string) =>
      method === wanted && where.test(path) && failures-- > 0 ? busy : undefined;
    expect((await followed({ isThere: false, fault })).outcome).toBeUndefined();
    expect(failures).toBeLessThan(1);
  });

  it('is refused at once if Ray takes no package of its size', async () => {
    const text = 'Traceback:\naiohttp.web_exceptions.HTTPRequestEntityTooLarge: Request Entity Too Large';
    let puts = 0;
    const fault = (method: string) => (method === 'PUT' && ++puts > 0 ? { status: 500, text } : undefined);
    const { outcome } = await followed({ isThere: false, fault });
    expect(outcome).toMatchObject({
      name: 'RunError',
      message: expect.stringMatching(/takes no package of .* absolute/),
    });
    expect(puts).toBe(1);
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
