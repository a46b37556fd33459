/** A short run of the command line, and the parts of it that are compared. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../dist/src/cli/main.js', import.meta.url));
const INJECT = new URL('inject.mjs', import.meta.url).href;

const SETTINGS = [
  ...['warmStart.steps=20', 'training.steps=4', 'training.tasksPerStep=2', 'training.groupSize=4'],
  ...['training.checkpointEvery=1', 'training.keepCheckpoints=3'],
  ...['evaluation.every=2', 'evaluation.tasks=4', 'evaluation.samples=2'],
].flatMap((override) => ['--set', override]);

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly err: string;
  readonly seconds: number;
}

export type Environment = Readonly<Record<string, string>>;

/** Starts or resumes the run at the path. `more` are further arguments for a start. */
export function start(
  run: string,
  environment: Environment,
  injected = false,
  more: readonly string[] = [],
): ChildProcess {
  const begin = ['train', 'math', '--run', run, ...SETTINGS, ...more];
  const words = existsSync(join(run, 'recipe.json')) ? ['resume', run] : begin;
  return drmas([...words, '--threads', '1', '--json'], environment, injected);
}

export function drmas(words: readonly string[], environment: Environment, injected = false): ChildProcess {
  const preload = injected ? ['--import', INJECT] : [];
  const env = { ...process.env, ...environment };
  return spawn(process.execPath, [...preload, MAIN, ...words], { env, stdio: ['ignore', 'ignore', 'pipe'] });
}

/** Waits for the end of a process; one that takes much longer than a run may is killed, and has hung. */
export async function ended(child: ChildProcess): Promise<Ended> {
  const began = performance.now();
  let err = '';
  child.stderr?.on('data', (text) => {
    err += text;
  });
  const patience = new AbortController();
  wait(600_000, undefined, { signal: patience.signal }).then(
    () => child.kill('SIGKILL'),
    () => {},
  );
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  patience.abort();
  return { code, signal, err, seconds: (performance.now() - began) / 1000 };
}

export function isComplete(run: string): boolean {
  const path = join(run, 'events.jsonl');
  return existsSync(path) && readFileSync(path, 'utf8').includes('"type":"run.finished","reason":"completed"');
}

/**
 * All that has to be equal, by name: events without times, every file of episodes and of the last checkpoint.
 * @param without A type of events that may differ, such as one with paths
 */
export function fingerprint(run: string, without?: string): string {
  const hash = createHash('sha256');
  for (const line of readFileSync(join(run, 'events.jsonl'), 'utf8').trimEnd().split('\n')) {
    const { time: _, seconds: _seconds, phaseSeconds: _phases, ...lasting } = JSON.parse(line);
    if (lasting.type === without) continue;
    hash.update(`${JSON.stringify(lasting)}\n`);
  }
  const checkpoints = readdirSync(join(run, 'checkpoints')).sort();
  for (const folder of ['episodes', join('checkpoints', checkpoints.at(-1) ?? '')])
    for (const name of readdirSync(join(run, folder), { recursive: true, encoding: 'utf8' }).sort()) {
      if (!/\.(safetensors|jsonl)$|(config|state)\.json$/.test(name)) continue;
      hash.update(name).update(readFileSync(join(run, folder, name)));
    }
  return hash.digest('hex');
}
