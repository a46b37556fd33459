/** A study on a real Ray cluster has the result of the same study at home, although a node is switched off. */
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDirectory } from '@drmas/engine/platform';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { drmas } from '../support/command-line.js';
import { type CompiledProgram, compiledProgram } from '../support/compiled-program.js';
import { pythonEnvironment } from '../support/python-environment.js';
import { S3_SECRET, type S3Server, s3Environment, startS3Server } from '../support/s3-server.js';
import { takesTime } from '../support/time-and-chance.js';
import { temporaryRoot } from '../support/tiny-run.js';
import { lines, timeless, twoVariants, WAIT, writeTinyStudy } from '../support/tiny-study.js';
import { type ClusterJob, RayCluster } from './cluster.js';

const environment = await pythonEnvironment({
  name: 'ray',
  requirements: new URL('requirements.txt', import.meta.url),
  what: 'Ray (380 MB)',
});
const available = !('unavailable' in environment);
if (!available) console.log(`SKIPPED: the test on a Ray cluster, because ${environment.unavailable}`);

const storage = available ? await s3Environment() : environment;
const hasS3 = !('unavailable' in storage);
if (available && !hasS3) console.log(`its store is a folder, because ${storage.unavailable}`);

const root = temporaryRoot();
let program: CompiledProgram;
let cluster: RayCluster | undefined;
let s3: S3Server | undefined;
beforeAll(async () => {
  if (!available) return;
  if (hasS3) s3 = await startS3Server(storage.python); // the nodes inherit its keys
  program = await compiledProgram();
  cluster = await RayCluster.start(environment.python);
});
afterAll(async () => {
  await program?.remove();
  expect(await cluster?.stop()).toEqual([]);
  await s3?.stop();
});

it.skipIf(!available)('has the result of the same study at home, although a node dies', async () => {
  if (cluster === undefined) throw new Error('there is no cluster');
  const { url } = cluster;
  // The second node is slow, so that it dies in the middle of a run however busy the machine is.
  const cache = join(root, 'cache-of-second');
  await mkdir(cache);
  await symlink(join(cacheDirectory(), 'native'), join(cache, 'native'));
  const second = await cluster.addNode({ [WAIT]: '1000', DRMAS_CACHE: cache });
  const file = await writeTinyStudy(root);
  const variants = twoVariants(3);
  const home = await drmas(['ablate', file, ...variants, '--run', join(root, 'home')]);
  expect(home.code).toBe(0);

  const store = hasS3 ? 's3://mine/study' : join(root, 'store');
  const there = ['--ray', url, '--store', store, '--ray-command', `node ${program.main}`];
  const study = drmas(['ablate', file, ...variants, '--run', join(root, 'away'), ...there]);
  const victim = await jobWithCheckpoint(cluster, second.id);
  await second.kill();
  const { code, out, err } = await study;
  expect({ code, err }).toEqual({ code: 0, err: expect.stringMatching(/died .*: submitted again/) });
  expect(timeless(out)).toEqual(timeless(home.out));
  expect(lines(home.out).at(-1).runs).toHaveLength(6);

  // One job more than there are runs: the one that died, again. It did not play the step before its checkpoint anew,
  // for it tells it with the time that it had.
  const jobs = (await cluster.jobs()).map(({ submission_id, status }) => ({ submission_id, status }));
  const again = victim.id.replace(/1$/, '2');
  expect(jobs.filter(({ submission_id }) => submission_id.endsWith('-2'))).toEqual([
    { submission_id: again, status: 'SUCCEEDED' },
  ]);
  expect(jobs).toHaveLength(7);
  // Ray shows no keys of its jobs.
  expect(await cluster.shown()).not.toContain(S3_SECRET);
  const secondStep = (printed: string) =>
    printed.split('\n').find((line) => line.startsWith('{"type":"step","step":2,'));
  expect(secondStep(victim.printed)).toBeDefined();
  expect(secondStep(await cluster.printed(again))).toBe(secondStep(victim.printed));
});

/** Waits for a job on a node that has written a checkpoint and continues. */
async function jobWithCheckpoint(cluster: RayCluster, node: string): Promise<{ id: string; printed: string }> {
  const isThere = ({ status, driver_node_id }: ClusterJob) => status === 'RUNNING' && driver_node_id === node;
  for (;;) {
    for (const { submission_id: id } of (await cluster.jobs()).filter(isThere)) {
      const printed = await cluster.printed(id);
      if (printed.includes('"type":"checkpoint"')) return { id, printed };
    }
    await takesTime(200);
  }
}
