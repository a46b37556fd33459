/**
 * SIGKILL of other commands at random moments: `learn`, `evaluate`, `serve` and `serve --follow`. The files
 * that were there stay as they are, and the same command works afterwards, with the result of an undisturbed one.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join, sep } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { drmas, type Ended, type Environment, ended, fingerprint, isComplete, start } from './trial.js';

/** The folder, the run and the randomness that the trials share. */
export interface Surroundings {
  /** A folder for files that all trials read. */
  readonly root: string;
  /** A finished run. */
  readonly whole: string;
  readonly environment: Environment;
  /** A random number from 0 to 1. */
  uniform(): number;
  /** Requires that a run is complete and equal to the undisturbed one, after resuming it if it is not complete. */
  expectWhole(run: string): Promise<void>;
}

/** A trial of a killed command. `run` is a path of its own. Returns what happened. */
export type KilledCommand = (run: string) => Promise<string>;

const SMALL = [
  ...['warmStart.steps=4', 'training.steps=2', 'training.tasksPerStep=2', 'training.groupSize=2'],
  ...['training.checkpointEvery=1', 'evaluation.every=2', 'evaluation.tasks=2', 'evaluation.samples=1'],
].flatMap((override) => ['--set', override]);

/**
 * The content of all files below a directory, by path. The lock's note names its last holder, and files of killed
 * processes stay for a day, under temporary names.
 */
function treeOf(directory: string): string {
  const hash = createHash('sha256');
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort()) {
    const path = join(directory, name);
    const isNamed = name !== 'lock' && !name.split(sep).some((part) => part.startsWith('.tmp-'));
    if (isNamed && statSync(path).isFile()) hash.update(`${name}\n`).update(readFileSync(path));
  }
  return hash.digest('hex');
}

/** Kills a command at a random moment of its usual time. Undefined if it had ended before. */
async function killedWithin(words: readonly string[], seconds: number, around: Surroundings) {
  const child = drmas(words, around.environment);
  const end = ended(child);
  await wait(1000 * seconds * around.uniform());
  child.kill('SIGKILL');
  return end;
}

function requireSuccess({ code, signal, err }: Ended, what: string): void {
  if (code !== 0) throw new Error(`${what} ends with ${code ?? signal}: ${err.trim().slice(-500)}`);
}

const shown = ({ code, signal }: Ended) => String(code ?? signal);

/** `learn`, killed up to twice: the same command or `resume` gives the files and the run of an undisturbed one. */
export function killedLearn(around: Surroundings): KilledCommand {
  const { root, environment } = around;
  const [traces, recipe] = [join(root, 'solved.jsonl'), join(root, 'recipe.ts')];
  let undisturbed: Promise<{ files: string; run: string; seconds: number }> | undefined;
  const wordsFor = (run: string) => {
    const words = ['learn', traces, '--recipe', recipe, '--out', `${run}-data`, '--run', run, '--yes'];
    return [...words, '--threads', '1', ...SMALL];
  };
  const first = async () => {
    writeFileSync(recipe, "import recipe from 'drmas/recipes/math/recipe';\nexport default recipe;\n");
    writeFileSync(traces, Array.from({ length: 40 }, (_, i) => `${JSON.stringify(solved(i))}\n`).join(''));
    const run = join(root, 'learnt');
    const end = await ended(drmas(wordsFor(run), environment));
    requireSuccess(end, 'an undisturbed learn');
    return { files: treeOf(`${run}-data`), run: fingerprint(run, 'run.started'), seconds: end.seconds };
  };
  return async (run) => {
    undisturbed ??= first();
    const { files, run: expected, seconds } = await undisturbed;
    const ends: string[] = [];
    for (let i = 0; i < 2 && !existsSync(join(run, 'recipe.json')); i++)
      ends.push(shown(await killedWithin(wordsFor(run), seconds, around)));
    const words = existsSync(join(run, 'recipe.json')) ? ['resume', run, '--threads', '1'] : wordsFor(run);
    if (!isComplete(run)) requireSuccess(await ended(drmas(words, environment)), words[0] ?? '');
    const data = `${run}-data`;
    const left = readdirSync(data).filter((name) => !name.startsWith('.tmp-'));
    if (left.length !== 4) throw new Error(`the folder of the data has ${left.join(', ')}`);
    if (treeOf(data) !== files) throw new Error('the files differ from those of an undisturbed learn');
    if (fingerprint(run, 'run.started') !== expected)
      throw new Error('the run differs from that of an undisturbed learn');
    return ends.join(' ');
  };
}

/** A trace of Langfuse in which the solver adds two digits. */
function solved(i: number) {
  const [question, answer] = [`${1 + (i >> 3)}+${1 + (i & 7)}`, String(2 + (i >> 3) + (i & 7))];
  const call = {
    ...{ id: '1', traceId: `${i}`, type: 'GENERATION', startTime: '2026-01-01T00:00:00Z', model: 'large' },
    input: [
      { role: 'system', content: '<solver>' },
      { role: 'user', content: question },
    ],
    output: { role: 'assistant', content: answer },
    metadata: { attributes: { 'gen_ai.agent.name': 'solver' } },
  };
  return { id: `${i}`, input: { question, answer }, scores: [{ name: 'success', value: 1 }], observations: [call] };
}

/** `evaluate` of a recipe into a new file: the file is absent or whole, and a finished run keeps all of its files. */
export function killedEvaluate(around: Surroundings): KilledCommand {
  const { root, whole, environment } = around;
  let undisturbed: Promise<{ episodes: Buffer; seconds: number }> | undefined;
  const wordsFor = (file: string) => ['evaluate', 'math', '--episodes', file, '--threads', '1', ...SMALL, '--json'];
  const first = async () => {
    const file = join(root, 'evaluated.jsonl');
    const end = await ended(drmas(wordsFor(file), environment));
    requireSuccess(end, 'an undisturbed evaluate');
    return { episodes: readFileSync(file), seconds: end.seconds };
  };
  return async (run) => {
    undisturbed ??= first();
    const { episodes, seconds } = await undisturbed;
    const file = `${run}.jsonl`;
    const end = await killedWithin(wordsFor(file), seconds, around);
    if (existsSync(file)) {
      if (!readFileSync(file).equals(episodes)) throw new Error('the episodes are not whole');
    } else requireSuccess(await ended(drmas(wordsFor(file), environment)), 'evaluate');
    if (!readFileSync(file).equals(episodes)) throw new Error('the episodes differ from those of an undisturbed one');
    const before = treeOf(whole);
    await killedWithin(['evaluate', whole, '--tasks', '4', '--samples', '1', '--threads', '1'], seconds, around);
    const verified = await ended(drmas(['doctor', 'verify', whole], environment));
    requireSuccess(verified, 'doctor verify');
    if (treeOf(whole) !== before && !readdirSync(join(whole, 'episodes')).some((name) => name.startsWith('evaluate')))
      throw new Error('the evaluated run has changed');
    return shown(end);
  };
}

/** Whether something listens on a port of this machine. */
async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Waits until the server answers. */
async function untilServed(port: number, end: Promise<Ended>): Promise<void> {
  let over: Ended | undefined;
  end.then((each) => {
    over = each;
  });
  while (!(await isOpen(port))) {
    if (over !== undefined) throw new Error(`serve ends with ${shown(over)}: ${over.err}`);
    await wait(50);
  }
}

/**
 * `serve` of a run that trains, killed with and without `--follow`: the run is not disturbed, the port is free, and the
 * next server answers.
 */
export function killedServe(around: Surroundings, follow: boolean): KilledCommand {
  const { whole, environment, uniform } = around;
  return async (run) => {
    const training = follow ? ended(start(run, environment)) : undefined;
    const served = follow ? run : whole;
    const before = follow ? '' : treeOf(whole);
    while (follow && !existsSync(join(run, 'checkpoints', 'step-000001'))) await wait(20);
    const port = 20_000 + Math.floor(30_000 * uniform());
    const words = ['serve', served, '--port', String(port), '--threads', '1', ...(follow ? ['--follow'] : [])];
    const ends: string[] = [];
    for (let i = 0; i < 2; i++) {
      const child = drmas(words, environment);
      const end = ended(child);
      if (uniform() < 0.7) {
        await untilServed(port, end);
        const model = 'solver';
        const body = JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: '1+1' }] });
        const headers = { 'content-type': 'application/json' };
        const url = `http://127.0.0.1:${port}/v1/chat/completions`;
        fetch(url, { method: 'POST', headers, body })
          .then((answer) => answer.text())
          .catch(() => {}); // the server is killed
      }
      await wait(1000 * uniform());
      child.kill('SIGKILL');
      ends.push(shown(await end));
      if (await isOpen(port)) throw new Error('the port of a killed server is taken');
    }
    const child = drmas(words, environment);
    const end = ended(child);
    await untilServed(port, end);
    const models = await fetch(`http://127.0.0.1:${port}/v1/models`);
    if (models.status !== 200) throw new Error(`the next server answers ${models.status}`);
    child.kill('SIGTERM');
    requireSuccess(await end, 'serve after SIGTERM');
    if (training !== undefined) {
      requireSuccess(await training, 'the run beside the server');
      await around.expectWhole(run);
    } else if (treeOf(whole) !== before) throw new Error('the served run has changed');
    return ends.join(' ');
  };
}
