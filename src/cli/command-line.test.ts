import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { HubError, TaskError, TrainingError } from '@drmas/engine/errors';
import { nodeFiles } from '@drmas/engine/platform';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { evaluation, finished, started, step, warmup } from '../../test/fixtures/run-events.js';
import { keyboardOf } from '../../test/support/command-line.js';
import { webServer } from '../../test/support/web-server.js';
import type { RunPlace } from '../runs/run/execute/start-run.js';
import { runCommandLine } from './command-line.js';
import { commandGroups, commands, otherFlags, otherWords } from './commands/index.js';
import { argumentText, type Command, flagName, optionalArgument, usageOf } from './define-command.js';

const recipeText = `
const agent = () => ({ system: undefined, parse: (text) => text, sampling: {}, invalidPenalty: 0 });
export default {
  type: 'recipe',
  input: {
    team: { name: 'pair', agents: { solver: agent(), verifier: agent() }, play: async () => 0, reward: () => 0 },
    tasks: { name: 'sums', load: async () => ({ name: 'sums', size: 1, at: () => ({ id: '1', data: null }) }) },
    model: { type: 'tiny-decoder', width: 8, layers: 1, heads: 1, feedForward: 8, context: 1024, tokenizer: { type: 'bytes' } },
    training: { steps: 3 },
  },
};`;

let root: string;
let file: string;
let run: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-cli-'));
  file = join(root, 'mine.ts');
  run = join(root, 'run');
  await writeFile(file, recipeText);
});
afterEach(() => rm(root, { recursive: true }));

/** Emits the events of a short run, and a checkpoint. */
const short: RunPlace = {
  requireKernels: async () => {},
  async executeRun(_recipe, run, { notify }, { checkpoint } = {}) {
    notify('a notice');
    if (checkpoint === undefined) run.emit(started);
    run.emit(evaluation(checkpoint?.step ?? 0, 0.5));
    run.emit(step((checkpoint?.step ?? 0) + 1));
    await run.writeCheckpoint((checkpoint?.step ?? 0) + 1, (directory) => writeFile(join(directory, 'state'), ''));
  },
  evaluateCheckpoint: async ({ evaluation: { samples } }) => ({
    event: { ...evaluation(1, 0.5), samples },
    episodes: [],
  }),
};
const complete: RunPlace = {
  ...short,
  async executeRun(...request) {
    const [, run] = request;
    await short.executeRun(...request);
    run.emit(finished);
  },
};

async function drmas(words: readonly string[], place: Partial<RunPlace> = {}, signal = new AbortController().signal) {
  let [out, err] = ['', ''];
  const context = {
    stdout: { write: (text: string) => (out += text) },
    stderr: { write: (text: string) => (err += text) },
    environment: { DRMAS_KERNELS: 'reference', DRMAS_CACHE: join(root, 'cache') },
    signal,
    stdin: () => keyboardOf(''),
    protect: <Result>(perform: () => Promise<Result>) => perform(),
    place: { ...short, ...place },
    forecastRun: () => Promise.reject(new Error('nothing to forecast')),
    openDashboard: () => ({ show: () => {}, close: () => {} }),
  };
  return { code: await runCommandLine(context, words), out, err };
}

describe('words', () => {
  it('are explained', async () => {
    expect(await drmas([])).toMatchObject({ code: 0, out: expect.stringMatching(/Usage: drmas/) });
    expect(await drmas(['train', '--help'])).toMatchObject({ code: 0, out: expect.stringMatching(/Examples:/) });
    expect(await drmas(['help'])).toEqual(await drmas([]));
    expect(await drmas(['help', 'train'])).toEqual(await drmas(['train', '--help']));
    expect((await drmas(['--version'])).out).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it.each([
    [['trian', 'math'], /unknown command 'trian'/],
    [['dashboard'], /^error: unknown command 'dashboard'\n\(Did you mean watch\?\)\n/],
    [['train', 'math', '--steps', '9'], /unknown option '--steps'\n\(Did you mean --set training\.steps=VALUE\?\)\n/],
    [['ablate', 'math', '--group-size=4'], /\(Did you mean --set training\.groupSize=VALUE\?\)/],
    [['train', 'math', '--clip-low', '1'], /\(Did you mean --set loss\.clipLow=VALUE\?\)/],
    [['runs', '--steps', '9'], /unknown option '--steps'\n\(drmas runs --help/],
    [['train'], /missing required argument/],
    [['train', 'math', '--sed', '1'], /unknown option '--sed'[\s\S]*\(drmas train --help lists its flags\)/],
    [['train', 'math', '--threads', '0'], /expected an integer >= 1, got '0'/],
    [['train', 'math', '--seed', 'x'], /expected an integer >= 0, got 'x'/],
  ])('%j are refused with exit code 2', async (words, message) => {
    const { code, out, err } = await drmas(words);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
  });
});

describe('words of other tools', () => {
  it.each([
    [['train', 'math', '--dry-run'], 'drmas plan'],
    [['probe', 'math'], 'plan --play'],
    [['dashboard'], 'watch'],
    [['train', 'math', '--group-size', '4'], '--set training.groupSize=VALUE'],
  ])('%j names what to type', async (words, typed) => {
    const { code, out, err } = await drmas(words);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(`(Did you mean ${typed}?)`);
  });

  it('name commands that there are', async () => {
    for (const words of [...Object.values(otherWords), ...Object.values(otherFlags)]) {
      const named = words.split(' ').filter((word) => word !== 'drmas');
      expect(await drmas([...named, '--help'])).toMatchObject({ code: 0, err: '' });
    }
  });
});

describe('the commands', () => {
  it('stand under headings in the help, each once, with a line for each short name', async () => {
    const { out } = await drmas(['--help']);
    const [listed = '', short = ''] = out.split(/^(?:Short names|Examples):$/m);
    for (const [heading, group] of Object.entries(commandGroups)) {
      const [, lines = ''] = listed.split(`\n${heading}\n`);
      const names = [...(lines.split('\n\n')[0] ?? '').matchAll(/^ {2}([a-z-]+)/gm)].map(([, name]) => name);
      expect(names.filter((name) => name !== 'help')).toEqual(group.map(({ name }) => name));
    }
    expect(listed).not.toMatch(/^Commands:/m);
    expect(commands.length).toBeLessThan(23);
    expect(short.trim()).toBe('compare  drmas ablate <recipe> --vary advantage.type=drmas,grpo --seeds 1');
  });

  it('have the check of a Tinker server below doctor, and a worker of a queue below serve', async () => {
    expect(await drmas(['doctor', 'server', 'ftp://x'])).toMatchObject({
      ...{ code: 2, out: '' },
      err: expect.stringContaining('expected the URL of a server'),
    });
    const secret = await drmas(['doctor', 'server', 'http://user:hunter2@x']);
    expect(secret.err).toMatch(/^error: the server's address: has a password in it/);
    expect(secret.err).not.toContain('hunter2');
    expect(await drmas(['serve', 'worker', '--url', 'nonsense'])).toMatchObject({
      ...{ code: 2, out: '' },
      err: expect.stringContaining('expected an address such as redis:'),
    });
  });
});

describe('train', () => {
  it('keeps the recipe, its overrides and its events, and prints a report for people', async () => {
    const { code, out, err } = await drmas(
      ['train', file, '--run', run, '--seed', '7', '--set', 'training.steps=5'],
      complete,
    );
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/a notice[\s\S]*step 1\/5[\s\S]*the run is in/);
    const record = JSON.parse(await readFile(join(run, 'recipe.json'), 'utf8'));
    expect(record.recipe).toMatchObject({ source: file, overrides: ['training.steps=5', 'seed=7'] });
    expect(record.resolved).toMatchObject({ name: 'mine', seed: 7, training: { steps: 5, groupSize: 8 } });
  });

  it('prints with --json nothing but the events on stdout', async () => {
    const { code, out, err } = await drmas(['train', file, '--run', run, '--json'], complete);
    expect({ code, err }).toEqual({ code: 0, err: 'a notice\n' });
    expect(out).toBe(await readFile(join(run, 'events.jsonl'), 'utf8'));
  });

  it.each([
    [['no-such-recipe'], /there is no recipe 'no-such-recipe'/],
    [['no-such-file.ts'], /there is no recipe file/],
    [['FILE', '--set', 'training.stepz=1'], /training\.stepz: unknown key 'stepz'; did you mean 'steps'/],
    [['FILE', '--set', 'training.steps=-1'], /training\.steps: expected a number >= 0, got -1/],
    [['FILE', '--set', 'agents.judge.invalidPenalty=1'], /the team has no agent 'judge'/],
  ])('refuses %j and creates nothing', async (words, message) => {
    const { code, out, err } = await drmas([
      'train',
      ...words.map((word) => (word === 'FILE' ? file : word)),
      '--run',
      run,
    ]);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
    expect(err).toMatch(/^error: [^\n]*\n$/);
    expect(await readdir(root)).toEqual(['mine.ts']);
  });

  it('creates nothing either when the tasks are bad', async () => {
    const error = new TaskError('expected JSON', { file: 'tasks.jsonl', line: 3 });
    await writeFile(file, recipeText.replace(/load: .*\}\)/, 'load: () => Promise.reject(globalThis.badTasks)'));
    Object.assign(globalThis, { badTasks: error });
    const { code, err } = await drmas(['train', file, '--run', run]);
    Object.assign(globalThis, { badTasks: undefined });
    expect({ code, err }).toEqual({ code: 2, err: 'error: tasks.jsonl:3: expected JSON\n' });
    expect(await readdir(root)).toEqual(['mine.ts']);
  });

  it('leaves a directory that is in use alone', async () => {
    const { code, err } = await drmas(['train', file, '--run', root]);
    expect(code).toBe(2);
    expect(err).toMatch(/exists and is not empty/);
    expect(await readdir(root)).toEqual(['mine.ts']);
  });

  it('ends with 1 when the run fails, with the stack only when asked', async () => {
    const executeRun = async () => {
      throw new TrainingError('three steps in a row were not a number');
    };
    const { code, err } = await drmas(['train', file, '--run', run], { executeRun });
    expect({ code, err }).toEqual({ code: 1, err: 'error: three steps in a row were not a number\n' });
  });

  it('prints how to resume a run that failed after a checkpoint', async () => {
    const executeRun: RunPlace['executeRun'] = async (_recipe, log) => {
      log.emit(started);
      log.emit({ type: 'checkpoint', step: 2, path: 'checkpoints/step-000002' });
      throw new TrainingError('the disk is full');
    };
    const { code, out, err } = await drmas(['train', file, '--run', run, '--threads', '1'], { executeRun });
    expect({ code, err }).toEqual({ code: 1, err: 'error: the disk is full\n' });
    expect(out).toMatch(
      /failed; remove the cause, then resume from the checkpoint of step 2 with:\n {2}npx drmas resume .+ --threads 1\n/,
    );
  });

  it('ends with 130 when interrupted, and prints how to resume', async () => {
    const controller = new AbortController();
    const interrupted: RunPlace['executeRun'] = async (_recipe, log) => {
      log.emit(started);
      log.emit(warmup(1));
      controller.abort();
      throw controller.signal.reason;
    };
    const answer = { experiment: { experiment_id: '1' }, run: { info: { run_id: 'a' }, data: {} } };
    const { url } = await webServer((_, response) => void response.end(JSON.stringify(answer)));
    const address = `mlflow=${url.replace('//', '//me:secret-word@')}/?key=secret-key`;
    const request = ['train', file, '--run', run, '--threads', '1', '--track', 'tensorboard', '--track', address];
    const { code, out, err } = await drmas(request, { executeRun: interrupted }, controller.signal);
    expect(code).toBe(130);
    expect(out).toMatch(/interrupted; resume with: npx drmas resume .+ --threads 1 --track tensorboard --track /);
    expect(out).toContain(`--track 'mlflow=${url.replace('//', '//...@')}/?key=...'\n`);
    expect(out + err).not.toContain('secret');
    expect(out).toMatch(/The warm start had not ended. It starts again/);
  });

  it('leaves no directory if nothing was started, and prints that', async () => {
    const controller = new AbortController();
    const early: RunPlace['executeRun'] = async () => {
      controller.abort();
      throw controller.signal.reason;
    };
    const stopped = await drmas(['train', file, '--run', run], { executeRun: early }, controller.signal);
    expect(stopped.code).toBe(130);
    expect(stopped.out).toMatch(/interrupted before the run began; .* start the same command again/);
    const failing: RunPlace['executeRun'] = async (_recipe, log) => {
      log.emit({ type: 'run.finished', reason: 'failed', steps: 0, seconds: 0 });
      throw new HubError('missing', 'org/name has no model.safetensors');
    };
    const failed = await drmas(['train', file, '--run', run], { executeRun: failing });
    expect(failed.err).toMatch(/org\/name has no model\.safetensors/);
    expect(existsSync(run)).toBe(false);
  });

  it('ends with 0 when Ctrl-C comes after the last step', async () => {
    const controller = new AbortController();
    const late: RunPlace['executeRun'] = async (...all) => {
      await short.executeRun(...all);
      controller.abort();
    };
    expect((await drmas(['train', file, '--run', run], { executeRun: late }, controller.signal)).code).toBe(0);
  });
});

describe('resume', () => {
  beforeEach(async () => {
    await drmas(['train', file, '--run', run, '--seed', '7']);
  });

  it('resumes from the last checkpoint with the same recipe', async () => {
    let seed = 0;
    const executeRun: RunPlace['executeRun'] = (recipe, ...rest) => {
      seed = recipe.seed;
      return short.executeRun(recipe, ...rest);
    };
    expect((await drmas(['resume', run], { executeRun })).code).toBe(0);
    expect(seed).toBe(7);
    expect(await readdir(join(run, 'checkpoints'))).toEqual(['step-000001', 'step-000002']);
  });

  it('refuses changed code unless it is accepted, and records that', async () => {
    await writeFile(file, recipeText.replace('steps: 3', 'steps: 4'));
    const refused = await drmas(['resume', run]);
    expect(refused).toMatchObject({
      code: 2,
      err: expect.stringMatching(/the code .* has changed .*--accept-changes/),
    });
    await writeFile(file, `${recipeText}\nthrow new Error('the changed file was run');`);
    for (const command of ['resume', 'evaluate'])
      expect(await drmas([command, run])).toMatchObject({ code: 2, err: expect.stringMatching(/the code .* changed/) });
    await writeFile(file, recipeText.replace('steps: 3', 'steps: 4'));
    expect((await drmas(['evaluate', run, '--accept-changes'])).code).toBe(0);
    expect((await drmas(['resume', run, '--accept-changes'])).code).toBe(0);
    const record = JSON.parse(await readFile(join(run, 'recipe.json'), 'utf8'));
    expect(record).toMatchObject({ acceptedChanges: [{ step: 1 }] });
    expect((await drmas(['resume', run])).code).toBe(0);
  });

  it('refuses a complete run and a directory without a run', async () => {
    expect((await drmas(['resume', run], complete)).code).toBe(0);
    expect(await drmas(['resume', run])).toMatchObject({ code: 2, err: expect.stringMatching(/is complete/) });
    expect(await drmas(['resume', root])).toMatchObject({ code: 2, err: expect.stringMatching(/is not a run/) });
  });
});

describe('evaluate', () => {
  it('plays the last checkpoint and keeps the episodes', async () => {
    await drmas(['train', file, '--run', run]);
    const person = await drmas(['evaluate', run, '--samples', '2']);
    expect(person).toMatchObject({
      code: 0,
      out: expect.stringMatching(/50\.0 % .*pass@2[\s\S]*episodes: .*evaluate-/),
    });
    expect((await readdir(join(run, 'episodes'))).some((name) => name.startsWith('evaluate-'))).toBe(true);
    const machine = await drmas(['evaluate', run, '--samples', '2', '--json']);
    expect(JSON.parse(machine.out)).toMatchObject({ type: 'evaluation', samples: 2, version: 1 });
    expect(await drmas(['evaluate', run, '--by', 'level,'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('evaluation.by.1: expected a text that is not empty'),
    });
  });

  it('is a check for CI: exit code 1 below the score, with the verdict as JSON and as JUnit', async () => {
    await drmas(['train', file, '--run', run]);
    const junit = join(root, 'junit.xml');
    const words = ['evaluate', run, '--samples', '2', '--junit', junit, '--at-least'];
    expect(await drmas([...words, '0.5'])).toMatchObject({ code: 0, err: '' }); // the score is 0.5
    const passed = await readFile(junit, 'utf8');
    expect(passed).toContain('<testsuite name="drmas evaluate" tests="1" failures="0"');
    expect(passed).not.toContain('<failure');
    expect(await drmas([...words, '0.51'])).toMatchObject({
      code: 1,
      out: expect.stringContaining('episodes: '),
      err: 'avg@2 is 50.0 %, below the 51 % of --at-least\n',
    });
    expect(await readFile(junit, 'utf8')).toMatch(/failures="1"[\s\S]*<failure message="avg@2 is 50.0 % on .*51 %"/);
    const machine = await drmas([...words, '0.51', '--json']);
    expect([machine.code, JSON.parse(machine.out)]).toMatchObject([1, { atLeast: 0.51, passed: false }]);
  });

  it('refuses a score to check that is none, and JUnit without one', async () => {
    const refusal = async (...words: string[]) => await drmas(['evaluate', run, ...words]);
    expect((await refusal('--at-least', '90')).err).toMatch(/from 0 to 1, got '90'; for 90 % write 0.9/);
    for (const word of ['', 'x', '-0.1', 'NaN']) expect((await refusal(`--at-least=${word}`)).code).toBe(2);
    expect(await refusal('--junit', 'x.xml')).toMatchObject({ code: 2, err: expect.stringMatching(/add --at-least/) });
  });

  it('prints the scores if the episodes cannot be stored', async () => {
    await drmas(['train', file, '--run', run]);
    const episodes = join(run, 'episodes');
    await rm(episodes, { recursive: true });
    await writeFile(episodes, 'no directory');
    expect(await drmas(['evaluate', run, '--samples', '2'])).toMatchObject({
      code: 1,
      out: expect.stringMatching(/50\.0 % .*pass@2/),
      err: expect.stringMatching(/^cannot store the episodes: ENOTDIR/),
    });
  });

  it('leaves no cut file of episodes that would be in the way of the next attempt', async () => {
    const { write } = nodeFiles;
    const full = vi.spyOn(nodeFiles, 'write').mockImplementation(async (path) => {
      await write(path, '{"task":');
      throw new Error('ENOSPC: no space left on device');
    });
    const episodes = join(root, 'baseline', 'episodes.jsonl');
    const words = ['evaluate', file, '--episodes', episodes];
    try {
      const { code, out, err } = await drmas(words);
      expect([code, out, err]).toEqual([1, expect.stringMatching(/50\.0 %/), expect.stringMatching(/: ENOSPC/)]);
    } finally {
      full.mockRestore();
    }
    expect(await readdir(join(root, 'baseline'))).toEqual([]);
    expect(await drmas(words)).toMatchObject({ code: 0, out: expect.stringContaining(`episodes: ${episodes}`) });
    expect(await readdir(join(root, 'baseline'))).toEqual(['episodes.jsonl']);
  });

  it.each([
    ['ENOSPC: no space left on device', 'The disk is full. Make room'],
    ['EDQUOT: disk quota exceeded', 'Your quota of the disk is used up. Make room'],
    ['EFBIG: file too large', 'A file has reached the largest size that is allowed. Raise the limit (see `ulimit -f`)'],
  ])('says how to go on when the disk refuses to write: %s', async (refusal, says) => {
    const replace = vi.spyOn(nodeFiles, 'replace').mockRejectedValue(new Error(`${refusal}, write 'x'`));
    try {
      const { code, err } = await drmas(['train', file, '--run', join(root, 'full')]);
      expect(code).not.toBe(0);
      expect(err).toContain(`${refusal}, write 'x'\n${says}, then type the command again; a run`);
      expect(err).toMatch(/npx drmas resume RUN\n$/);
    } finally {
      replace.mockRestore();
    }
  });

  it('takes a path with backslashes, as on Windows, for one with slashes', async () => {
    await drmas(['train', file, '--run', run]);
    const typed = (path: string) => path.replaceAll('/', '\\');
    for (const words of [
      ['runs', typed(root)],
      ['recipes', 'show', typed(file)],
    ])
      expect(await drmas(words)).toMatchObject({ code: 0, err: '' });
    expect(await drmas(['recipes', 'show', typed(`${file}x.ts`)])).toMatchObject({ code: 2 });
  });

  it('refuses --episodes for a run, and for what is neither a run nor a recipe', async () => {
    await drmas(['train', file, '--run', run]);
    const refusal = async (subject: string) => (await drmas(['evaluate', subject, '--episodes', file])).err;
    expect(await refusal(run)).toBe('error: --episodes is for a recipe; a run keeps its episodes in its directory\n');
    expect(await refusal('mahts')).toMatch(/there is no run mahts/);
  });

  it('needs a checkpoint', async () => {
    await drmas(['train', file, '--run', run], { executeRun: async () => {} });
    expect(await drmas(['evaluate', run])).toMatchObject({ code: 2, err: expect.stringMatching(/no checkpoint/) });
  });
});

it('recipes show prints the resolved whole', async () => {
  const { code, out } = await drmas(['recipes', 'show', file, '--set', 'seed=3']);
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ name: 'mine', seed: 3, evaluation: { every: 20 } });
});

describe('recipes files', () => {
  const names = [
    'HuggingFaceH4/aime_2024/data/train-00000-of-00001.parquet',
    'HuggingFaceH4/aime_2024/data/training-00000-of-00001.parquet',
    'hub/datasets--HuggingFaceH4--MATH-500/snapshots/6e4/test.jsonl',
    'minerva/simplerl-minerva-math/test.jsonl',
    'olympiadbench/test-00000-of-00002.parquet',
    'olympiadbench/test-00001-of-00002.parquet',
  ];
  const words = (...more: string[]) => [
    ...['recipes', 'files', 'paper-math', '--json', ...more],
    ...[
      'train',
      ...['aime24', 'aime25', 'amc23', 'math500', 'minerva', 'olympiadbench'].map((set) => `test.${set}`),
    ].flatMap((set) => {
      const extension = set === 'test.math500' ? 'jsonl' : 'parquet';
      return ['--set', `tasks.${set}.file=${join(root, 'data', `${set}.${extension}`)}`];
    }),
  ];
  const statesOf = (out: string) =>
    Object.fromEntries(
      JSON.parse(out).files.map(({ file, state }: { file: string; state: string }) => [
        file.slice(join(root, 'data/').length),
        state.replaceAll(`${root}/`, ''),
      ]),
    );

  it('copies what a folder of downloads has, and names what is missing', async () => {
    for (const name of names) {
      await mkdir(dirname(join(root, 'downloads', name)), { recursive: true });
      await writeFile(join(root, 'downloads', name), name);
    }
    const before = await drmas(words());
    expect(before.code).toBe(1);
    expect(statesOf(before.out)).toMatchObject({
      'train.parquet': 'missing: aaabiao/dapo_filter:train of the Hugging Face hub',
    });
    const { code, out } = await drmas(words('--from', join(root, 'downloads')));
    expect(code).toBe(1);
    expect(statesOf(out)).toEqual({
      'train.parquet': 'missing: aaabiao/dapo_filter:train is not in downloads',
      'test.aime24.parquet': `copied from downloads/${names[0]}`,
      'test.aime25.parquet': 'missing: MathArena/aime_2025:train is not in downloads',
      'test.amc23.parquet': 'missing: knoveleng/AMC-23:train is not in downloads',
      'test.math500.jsonl': `copied from downloads/${names[2]}`,
      'test.minerva.parquet': `missing: downloads/${names[3]} has another format; use it with --set tasks.test.minerva.file=downloads/${names[3]}`,
      'test.olympiadbench.parquet': `missing: realtreetune/olympiadbench:test could be 2 files: downloads/${names[4]}, downloads/${names[5]}`,
    });
    expect(await readFile(join(root, 'data/test.aime24.parquet'), 'utf8')).toBe(names[0]);
    expect(statesOf((await drmas(words())).out)['test.aime24.parquet']).toBe('is here');
  });

  it('keeps files that are there, and refuses a folder that is not', async () => {
    await mkdir(join(root, 'data'));
    await writeFile(join(root, 'data/test.aime24.parquet'), 'mine');
    await mkdir(join(root, 'downloads/aime_2024'), { recursive: true });
    await writeFile(join(root, 'downloads/aime_2024/train.parquet'), 'theirs');
    await drmas(words('--from', join(root, 'downloads')));
    expect(await readFile(join(root, 'data/test.aime24.parquet'), 'utf8')).toBe('mine');
    expect(await drmas(words('--from', join(root, 'nowhere')))).toMatchObject({
      code: 2,
      err: expect.stringContaining('cannot read the folder of downloads'),
    });
    expect(await drmas(['recipes', 'files', file])).toMatchObject({ code: 0, out: 'the recipe reads no task files\n' });
  });
});

it('doctor prints the kernels in use', async () => {
  const { code, out } = await drmas(['doctor', '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ kernels: 'reference', node: process.versions.node, cacheWritable: true });
  expect((await drmas(['doctor'])).out).toMatch(/^kernels +reference/m);
});

describe('the declared commands', () => {
  const named = (name: string) => commands.find((command) => command.name === name) as Command;

  describe('commands', () => {
    it('have names and sentences of their own', () => {
      for (const of of [commands.map(({ name }) => name), commands.map(({ description }) => description)])
        expect(new Set(of).size).toBe(commands.length);
      for (const { details } of commands) expect(details).toMatch(/\S/);
    });

    it.each(commands.map(({ name }) => name))('%s explains its arguments and flags, with examples', async (name) => {
      const { code, out } = await drmas([name, '--help']);
      const { arguments: args, examples } = named(name);
      expect(code).toBe(0);
      expect(out).toContain(`Usage: drmas ${name}`);
      for (const argument of args) expect(out).toContain(`  ${argument.name} `);
      for (const [key, { value }] of Object.entries(named(name).flags))
        expect(out).toContain(`  ${flagName(key)}${value === undefined ? '' : ` <${value}>`} `);
      for (const example of examples) expect(out).toContain(`  $ ${example}\n`);
    });

    it('are written with what they cannot do without', () => {
      expect(usageOf(named('export'))).toBe('drmas export <run> --to <directory>');
      expect(usageOf(named('report'))).toBe('drmas report [run...]');
      expect(usageOf(named('doctor'))).toBe('drmas doctor');
      expect(argumentText(optionalArgument('folder', 'where'))).toBe('[folder]');
    });
  });
});
