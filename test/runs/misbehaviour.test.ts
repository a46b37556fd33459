/**
 * Code of teams that misbehaves, in a process of its own and isolated: each kind ends, is named, and does no harm to
 * the others. The daily test plays a sample of the kinds; the slow tests play all.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { EpisodeFailed, RunEvent } from '@drmas/engine/events';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Kind, kinds } from '../fixtures/misbehaviour/kinds.js';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const all = Object.entries(kinds);
const deadly = all.filter(([, { deadly }]) => deadly !== undefined);
const harmless = all.filter(([, { deadly }]) => deadly === undefined);

let root: string;
let recipe: string;
let runs = 0;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-misbehaviour-'));
  recipe = join(root, 'team.mjs');
  // One file, as a thread loads it quickly.
  const entryPoints = [path('../fixtures/misbehaviour/team.ts')];
  const format = { bundle: true, platform: 'node', format: 'esm', packages: 'external' } as const;
  await build({ entryPoints, outfile: recipe, ...format });
  await symlink(path('../../node_modules'), join(root, 'node_modules'));
});
afterAll(() => rm(root, { recursive: true }));

interface Ended {
  readonly exit: number | string | null;
  readonly output: string;
  readonly failures: ReadonlyMap<string, EpisodeFailed>;
  readonly events: readonly RunEvent[];
}

/** Trains on the kinds with the command line. @param act is called with what the process has said so far */
async function trained(
  names: readonly string[],
  { set = [], timeoutMs = 10_000, act }: { set?: readonly string[]; timeoutMs?: number; act?: Act } = {},
): Promise<Ended> {
  const run = join(root, `run-${runs++}`);
  const words = [...['train', recipe, '--run', run, '--threads', '1'], ...set.flatMap((each) => ['--set', each])];
  const env = {
    ...process.env,
    DRMAS_TEST_KINDS: JSON.stringify(names),
    DRMAS_TEST_TIMEOUT: String(timeoutMs),
    NODE_OPTIONS: '--max-old-space-size=400',
  };
  const child = spawn(process.execPath, ['--import', 'tsx', path('../../src/cli/main.ts'), ...words], {
    cwd: path('../..'),
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (text) => {
      output += text;
      act?.(output, (signal) => void child.kill(signal));
    });
  const [exitCode, signal] = await once(child, 'close');
  const log = await readFile(join(run, 'events.jsonl'), 'utf8').catch(() => '');
  const events = log.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as RunEvent]));
  const failures = new Map(events.flatMap((event) => (event.type === 'episode.failed' ? [[event.task, event]] : [])));
  return { exit: exitCode ?? signal, output, failures, events };
}
type Act = (output: string, signal: (name: NodeJS.Signals) => void) => void;

/** The kinds whose episodes did not end as they should. */
function surprises(
  played: readonly (readonly [string, Kind])[],
  { failures }: Ended,
  expected: (kind: Kind) => Kind['fails'] = ({ fails }) => fails,
): string[] {
  return played.flatMap(([name, kind]) => {
    const failure = failures.get(name);
    const [reason, message] = expected(kind) ?? [];
    const isRight = failure?.reason === reason && (message === undefined || message.test(failure?.message ?? ''));
    return isRight
      ? []
      : [`${name}: ${failure === undefined ? 'whole' : `${failure.reason}: ${failure.message.slice(0, 200)}`}`];
  });
}

function completed({ events, exit, output }: Ended): void {
  expect(events.at(-1), output).toMatchObject({ type: 'run.finished', reason: 'completed' });
  expect(exit, output).toBe(0);
}

/**
 * Allowed for code that does not return, and for nothing else. The watchdog ends the process from inside that code by
 * `process.reallyExit`, since nothing else gives an exit code there. Node then takes V8 down while the watchdog's
 * thread and those of the kernels still run, and V8 may abort (seen once, on a busy machine). By then the message is
 * out and all files are written.
 */
const ABORTED = 'SIGABRT';

it('there are more than sixty kinds', () => {
  expect(all.length).toBeGreaterThan(67);
});

describe('in the process of the run', { tags: 'verify' }, () => {
  it('what does not block is the failure of its episode, or none, and the process ends', async () => {
    const ended = await trained(harmless.map(([name]) => name));
    completed(ended);
    expect(surprises(harmless, ended)).toEqual([]);
  });

  it.each(deadly)('%s: is named before the process ends', async (name, { deadly }) => {
    const { says, exit, signal } = deadly as NonNullable<Kind['deadly']>;
    let isSent = false;
    const act: Act = (output, send) => {
      if (signal === undefined || isSent || !says.test(output)) return;
      isSent = true;
      send(signal);
    };
    const timeoutMs = signal === undefined && name !== 'fills the memory' ? 6_000 : 600_000;
    const ended = await trained([name], { act, timeoutMs });
    expect(ended.output).toMatch(says);
    expect(exit === 1 && says.source.startsWith('error') ? [1, ABORTED] : [exit], ended.output).toContain(ended.exit);
  });
});

describe('isolated', { tags: 'verify', timeout: 400_000 }, () => {
  const isolated = ['rollout.isolate=2'];

  it('what does not block is the same failure', async () => {
    const ended = await trained(
      harmless.map(([name]) => name),
      { set: isolated },
    );
    expect(surprises(harmless, ended)).toEqual([]);
    completed(ended);
  });

  it('what blocks or ends its thread fails its own episode only', async () => {
    const lost = deadly.filter(([, { deadly }]) => deadly?.isolated !== undefined);
    const ended = await trained(
      lost.map(([name]) => name),
      { set: isolated },
    );
    expect(surprises(lost, ended, ({ deadly }) => deadly?.isolated)).toEqual([]);
    completed(ended);
  });
});
