/** Episodes on a queue of several machines, which share nothing but a network that fails. */
import { execFile } from 'node:child_process';
import { mkdir, readFile, realpath } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';
import { cacheDirectory } from '@drmas/engine/platform';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type CompiledProgram, compiledProgram } from '../support/compiled-program.js';
import { takesTime } from '../support/time-and-chance.js';
import { temporaryRoot } from '../support/tiny-run.js';
import { type HostOptions, Network, noHosts, type Program } from './hosts.js';

const execute = promisify(execFile);
const PASSWORD = 'known to the hosts';
const STEPS = 12;
const LEASE_SECONDS = 1;

const unavailable = (await noHosts()) ?? (await noRedis());
if (unavailable !== undefined) console.log(`SKIPPED: a queue of several hosts, because ${unavailable}`);

const root = temporaryRoot();
let program: CompiledProgram;
let network: Network;
beforeAll(async () => {
  if (unavailable !== undefined) return;
  program = await compiledProgram();
  network = await Network.make();
});
afterAll(async () => {
  await network?.stop();
  await program?.remove();
});

it.skipIf(unavailable !== undefined)(
  'plays what one process plays, although a host is cut off and one dies',
  async () => {
    const keys = await certificate(join(root, 'keys'));
    const recipe = await readFile(new URL('../queue/team.ts', import.meta.url), 'utf8');
    const alone = recipe
      .replace('../../src/index.js', 'drmas')
      .replace(
        "{ takesTime } from '../support/time-and-chance.js'",
        "{ setTimeout as takesTime } from 'node:timers/promises'",
      );
    const files = { 'mine.ts': alone };
    const packed = join(program.main, '../../../..');
    const modules = dirname(await realpath(join(packed, 'node_modules/zod')));
    const folders = {
      package: packed,
      'cache/native': join(cacheDirectory(), 'native'),
      ...(await foldersBelowTmp([join(packed, 'packages/engine/native'), modules])),
    };
    const redis = await network.add({ folders: { keys } });
    const [certificateFile, keyFile] = [join('/tmp/keys', 'cert.pem'), join('/tmp/keys', 'key.pem')];
    redis.start([
      ...[
        'redis-server',
        '--port',
        '0',
        '--tls-port',
        '6380',
        '--tls-auth-clients',
        'no',
        '--save',
        '',
        '--dir',
        '/tmp',
      ],
      ...['--tls-cert-file', certificateFile, '--tls-key-file', keyFile, '--requirepass', PASSWORD],
    ]);

    const main = '/tmp/package/dist/src/cli/main.js';
    const secrets = {
      DRMAS_QUEUE_KEY: 'the key that the hosts have in common',
      REDIS_PASSWORD: PASSWORD,
      NODE_EXTRA_CA_CERTS: '/tmp/cert.pem',
      DRMAS_TEST_TOOL_MS: '100',
    };
    const host: HostOptions = {
      folders,
      files: { ...files, 'cert.pem': await readFile(join(keys, 'cert.pem'), 'utf8') },
    };
    const trainer = await network.add(host);
    const url = `rediss://${redis.address}:6380`;
    const train = (run: string, ...words: string[]) =>
      ['node', main, 'train', '/tmp/mine.ts', '--run', run, '--threads', '1', '--json'].concat([
        '--set',
        `training.steps=${STEPS}`,
        ...words,
      ]);
    const rollout = [
      ...['type=queue', `url=${url}`, 'host=0.0.0.0', 'port=7000', `publicUrl=http://${trainer.address}:7000`],
      `leaseSeconds=${LEASE_SECONDS}`,
    ];
    const away = trainer.start(train('/tmp/away', ...rollout.flatMap((word) => ['--set', `rollout.${word}`])), secrets);

    const worker = async () => {
      const machine = await network.add(host);
      const words = ['serve', 'worker', '/tmp/mine.ts', '--url', url, '--concurrency', '4'];
      return { machine, playing: machine.start(['node', main, ...words], secrets) };
    };
    const [cut, dies] = [await worker(), await worker()];
    // They share nothing: neither the run's files nor the trainer's loopback.
    await expect(cut.machine.run(['ls', '/tmp/away'])).rejects.toThrow('No such file');

    await stepsMade(away, 2);
    await cut.machine.plug('down');
    // The other one plays on, with the episodes that the lost host had.
    await Promise.all([stepsMade(away, steps(away).length + 2), takesTime(2000 * LEASE_SECONDS)]);
    await cut.machine.plug('up');
    await dies.machine.plug('down'); // a machine without power closes no connection
    await dies.playing.kill();
    const left = steps(away).length;
    const code = await away.ended;
    expect(code, away.printed.err).toBe(0);
    // Only the host that had been cut off can have played the remaining episodes.
    expect(left).toBeLessThan(STEPS - 2);

    const home = trainer.start(train('/tmp/home/run'), { DRMAS_TEST_TOOL_MS: '0' });
    expect(await home.ended).toBe(0);
    expect(lasting(away)).toEqual(lasting(home));
    const episodes = 'cd "$1/episodes" && sha256sum *';
    const played = (run: string) => trainer.run(['sh', '-c', episodes, 'sh', run]);
    expect(await played('/tmp/away')).toBe(await played('/tmp/home/run'));
  },
);

/** Where links lead below /tmp, as in a checkout there: a host has a /tmp of its own, in which they have to lie too. */
async function foldersBelowTmp(links: readonly string[]): Promise<Record<string, string>> {
  const real = await Promise.all(links.map((link) => realpath(link)));
  return Object.fromEntries(
    real.filter((path) => path.startsWith('/tmp/')).map((path) => [relative('/tmp', path), path]),
  );
}

/** Waits until a run has made so many steps. @throws Error when it ends before */
async function stepsMade(run: Program, count: number): Promise<void> {
  while (steps(run).length < count) {
    if (run.child.exitCode !== null) throw new Error(`the run ended: ${run.printed.err}`);
    await takesTime(50);
  }
}

const eventsOf = ({ printed }: Program) =>
  printed.out
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as RunEvent);

const steps = (run: Program) => eventsOf(run).filter(({ type }) => type === 'step');

/** The events, without times. */
const lasting = (run: Program) =>
  eventsOf(run)
    .filter(({ type }) => type === 'step' || type === 'evaluation')
    .map(({ time: _, ...event }) => ({ ...event, seconds: 0, phaseSeconds: 0 }));

async function noRedis(): Promise<string | undefined> {
  return execute('redis-server', ['--version']).then(
    () => undefined,
    (error: unknown) => `there is no redis-server: ${messageOf(error)}`,
  );
}

/** A certificate of the first host, which its clients have to know. */
async function certificate(folder: string): Promise<string> {
  await mkdir(folder);
  await execute('openssl', [
    ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=redis'],
    ...['-addext', 'subjectAltName=IP:10.77.0.1', '-keyout', join(folder, 'key.pem'), '-out', join(folder, 'cert.pem')],
  ]);
  return folder;
}
