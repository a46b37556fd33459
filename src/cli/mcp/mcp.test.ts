/** Runs as tools of a coding agent: the official client over stdio, and the shipped skill, followed word by word. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/client';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commandFaults } from '../../../scripts/docs/typed-commands.js';
import { type CompiledProgram, compiledProgram } from '../../../test/support/compiled-program.js';
import { madeUpEpisode, recordRun } from '../../../test/support/recorded-run.js';
import { eventually } from '../../../test/support/time-and-chance.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { placeIn, type RunTool, runTools } from './run-tools.js';
import { StartedRuns } from './started-runs.js';

const repository = fileURLToPath(new URL('../../..', import.meta.url));
const root = temporaryRoot();
const folder = join(root, 'work');
mkdirSync(folder);
const skill = readFileSync(join(repository, 'skills/drmas/SKILL.md'), 'utf8');
const { signal } = new AbortController();

describe('the tools', () => {
  let tools: RunTool[];
  const call = (name: string, input: object) =>
    (tools.find((tool) => tool.name === name) as RunTool).call(input as Record<string, unknown>, signal);
  beforeAll(async () => {
    await recordRun(join(folder, 'runs/one'), { seed: 1 });
    await recordRun(join(folder, 'runs/two'), { seed: 2, overrides: ['seed=2'] });
    writeFileSync(join(root, 'outside.ts'), 'export default 1;');
    symlinkSync(root, join(folder, 'out'));
    tools = runTools({ folder, started: new StartedRuns(folder, {}, []), allowStart: true });
  });

  it('list runs, give the state of one and compare two', async () => {
    const { runs } = (await call('list_runs', {})) as { runs: { name: string; state: string }[] };
    expect(runs.map(({ name }) => name).sort()).toEqual(['one', 'two']);
    expect(await call('list_runs', { folder: 'none' })).toEqual({ runs: [] });
    const state = (await call('run_state', { run: 'runs/one' })) as Record<string, unknown>;
    expect(state).toMatchObject({ name: 'one', steps: 2, process: null, rewards: expect.any(Array) });
    expect(await call('compare_runs', { one: 'runs/one', other: 'runs/two' })).toMatchObject({
      one: { name: 'one' },
      other: { name: 'two' },
      settings: { seed: ['1', '2'] },
    });
  });

  it('read episodes of a step, of an agent and of a task', async () => {
    const { shown, episodes } = (await call('read_episodes', { run: 'runs/one', most: 1 })) as {
      episodes: number;
      shown: { task: string; reward: number; turns: { agent: string; text: string }[] }[];
    };
    expect(episodes).toBeGreaterThan(1);
    expect(shown.length).toBe(1);
    expect(shown[0]?.turns.map(({ agent }) => agent)).toEqual(['solver', 'verifier']);
    const some = { run: 'runs/one', agent: 'verifier', task: shown[0]?.task };
    const only = (await call('read_episodes', some)) as { shown: typeof shown };
    for (const { task, turns } of only.shown)
      expect([task, turns.map(({ agent }) => agent)]).toEqual([shown[0]?.task, ['verifier']]);
    await expect(call('read_episodes', { run: 'runs/one', step: 99 })).rejects.toThrow(/no such episodes; steps .*: 1/);
  });

  it('read the calls of tools as a page shows them', async () => {
    const recorded = await recordRun(join(folder, 'calls/run'));
    const toolCalls = [{ id: 'c', name: 'price', arguments: '{"of":"fig"}' }];
    const episode = madeUpEpisode('fig', 0, 1, '');
    const messages = [{ role: 'assistant' as const, content: '', toolCalls }];
    const turns = episode.turns.map((turn, i) =>
      i === 0 ? { ...turn, content: '', toolCalls } : { ...turn, messages, text: '5' },
    );
    await recorded.writeStepEpisodes(3, [{ ...episode, turns }]);
    const { shown } = (await call('read_episodes', { run: 'calls/run' })) as { shown: { turns: object[] }[] };
    expect(shown[0]?.turns).toMatchObject([
      { text: 'price({"of":"fig"})' },
      { question: 'price({"of":"fig"})', text: '5' },
    ]);
  });

  it.each(['../x', '/etc/passwd', 'runs/../../x', 'out/outside.ts', 'out/new/place', '..'])(
    'reach nothing outside their folder: %s',
    async (path) => {
      expect(() => placeIn(folder, path)).toThrow(/is outside .*work, the folder of this server/);
      for (const [name, input] of [
        ['list_runs', { folder: path }],
        ['run_state', { run: path }],
        ['compare_runs', { one: 'runs/one', other: path }],
        ['read_episodes', { run: path }],
        ['dry_run', { recipe: path }],
        ['start_run', { recipe: path }],
        ['start_run', { recipe: 'math', run: path }],
        ['stop_run', { run: path }],
      ] as const)
        await expect(call(name, input)).rejects.toThrow(/is outside/);
    },
  );

  it.each([
    ['dry_run', { recipe: 'math', set: ['@/etc/passwd'] }, /expected key=value/],
    ['read_episodes', { run: 'runs/one', most: 1000 }, /Too big/],
    ['stop_run', { run: 'runs/one' }, /did not start .*one; it stops only its own runs/],
    ['start_run', { recipe: 'math', run: 'runs/one' }, /exists already/],
    ['run_state', { run: 'runs/none' }, /./],
  ])('%s refuses %j', async (name, input, message) => {
    await expect(call(name, input)).rejects.toThrow(message);
  });

  it('start and stop nothing without permission', () => {
    const names = runTools({ folder, started: new StartedRuns(folder, {}, []), allowStart: false }).map(
      ({ name }) => name,
    );
    expect(names).toEqual(['list_runs', 'run_state', 'compare_runs', 'read_episodes', 'dry_run']);
  });
});

describe('the skill', () => {
  it('names only commands and flags that exist, and ships with the package', () => {
    expect(skill).toMatch(/^---\nname: drmas\ndescription: >-\n {2}.{40,}\n( {2}.+\n)+---\n/);
    expect(commandFaults('SKILL.md', skill, new Set())).toEqual([]);
    expect(commandFaults('SKILL.md', skill.replace('--json', '--jsn'), new Set())).not.toEqual([]);
    expect(skill.match(/npx drmas \w+/g)?.length).toBeGreaterThan(15);
    expect(JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')).files).toContain('skills');
  });
});

describe('drmas as a program', { tags: 'verify', timeout: 240_000 }, () => {
  let program: CompiledProgram;
  const project = join(root, 'skilled/my-team');
  const run = promisify(execFile);
  beforeAll(async () => {
    program = await compiledProgram();
    symlinkSync(join(repository, 'templates'), join(dirname(program.main), '../../../templates'));
    mkdirSync(dirname(project), { recursive: true });
  }, 120_000);
  afterAll(() => program.remove());

  const install = () => {
    const modules = join(project, 'node_modules');
    mkdirSync(modules);
    symlinkSync(join(dirname(program.main), '../../..'), join(modules, 'drmas'));
    symlinkSync(join(repository, 'node_modules/zod'), join(modules, 'zod'));
  };

  it('runs each command of the skill that is to be tried', async () => {
    const [, block = ''] = /## Try it[\s\S]*?```sh\n([\s\S]*?)```/.exec(skill) ?? [];
    const lines = block.trim().split('\n');
    expect(lines.length).toBe(8);
    let cwd = dirname(project);
    for (const line of lines) {
      const [first, ...words] = line.split(' ');
      if (first === 'cd') cwd = join(cwd, words[0] ?? '');
      else if (line === 'npm install') install();
      else {
        expect([first, words[0]]).toEqual(['npx', 'drmas']);
        const { stdout } = await run(process.execPath, [program.main, ...words.slice(1)], { cwd, maxBuffer: 1e8 });
        if (words.includes('--json')) for (const each of stdout.trim().split('\n')) JSON.parse(each);
      }
    }
    expect(existsSync(join(project, 'runs/first/recipe.json'))).toBe(true);
  });

  const connected = async (...flags: string[]) => {
    const client = new Client({ name: 'test', version: '1' });
    const command = { command: process.execPath, args: [program.main, 'mcp', ...flags], cwd: project };
    const env = { ...getDefaultEnvironment(), DRMAS_CACHE: process.env.DRMAS_CACHE ?? '' };
    await client.connect(new StdioClientTransport({ ...command, env, stderr: 'inherit' }));
    const ask = async (name: string, input: Record<string, unknown> = {}) => {
      const { content, isError } = await client.callTool({ name, arguments: input }, { timeout: 120_000 });
      const [part] = content;
      const text = part?.type === 'text' ? part.text : '';
      return isError === true ? { error: text } : JSON.parse(text);
    };
    return { client, ask };
  };

  it('serves its tools over stdio to the official client', async () => {
    const { client, ask } = await connected();
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      ...['list_runs', 'run_state', 'compare_runs', 'read_episodes', 'dry_run'],
    ]);
    expect(await ask('list_runs')).toMatchObject({ runs: [{ name: 'first', state: 'completed', steps: 4 }] });
    expect(await ask('run_state', { run: 'runs/first' })).toMatchObject({ state: 'completed', process: null });
    const { shown } = await ask('read_episodes', { run: 'runs/first' });
    expect(shown[0].turns.slice(0, 2)).toMatchObject([
      { agent: 'answerer' },
      { agent: 'checker', valid: expect.any(Boolean) },
    ]);
    expect(await ask('dry_run', { recipe: 'team.ts', set: ['training.steps=7'] })).toMatchObject({ type: 'plan' });
    expect(await ask('dry_run', { recipe: 'team.ts', set: ['training.stepz=7'] })).toEqual({
      error: expect.stringMatching(/training\.stepz: unknown key 'stepz'; did you mean 'steps'/),
    });
    expect(await ask('run_state', { run: '../elsewhere' })).toEqual({ error: expect.stringMatching(/is outside/) });
    await expect(client.callTool({ name: 'start_run', arguments: { recipe: 'team.ts' } })).rejects.toThrow(/start_run/);
    await client.close();
  });

  it('says why it ends if a message is too long to be read', async () => {
    const child = spawn(process.execPath, [program.main, 'mcp'], { cwd: project, stdio: ['pipe', 'ignore', 'pipe'] });
    child.stdin.on('error', () => {}); // it is closed before all is written
    child.stdin.write(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"long":"${'x'.repeat(11e6)}`);
    let said = '';
    child.stderr.on('data', (part) => {
      said += part;
    });
    const [code] = await once(child, 'close');
    expect(code).toBe(1);
    expect(said).toMatch(/^error: the messages of the client cannot be read: .*ReadBuffer exceeded/);
  });

  it('starts, follows and stops a run; ends with its client, and leaves runs that can be resumed', async () => {
    const { client, ask } = await connected('--allow-start');
    const set = ['training.steps=100000', 'warmStart.steps=2', 'evaluation.every=100000'];
    const { run: path, pid } = await ask('start_run', { recipe: 'team.ts', run: 'runs/long', seed: 3, set });
    expect(path).toBe(join('runs', 'long'));
    const running = { state: 'running', process: 'running', seed: 3 };
    await eventually(async () => expect(await ask('run_state', { run: 'runs/long' })).toMatchObject(running));
    expect(await ask('start_run', { recipe: 'team.ts', run: 'runs/long' })).toEqual({
      error: expect.stringMatching(/exists already/),
    });
    const log = join(project, 'runs', 'long', 'events.jsonl');
    const begun = () => existsSync(log) && readFileSync(log, 'utf8').includes('"run.started"');
    await eventually(begun);
    expect(await ask('stop_run', { run: 'runs/long' })).toMatchObject({ state: 'stopped' });
    expect(isAlive(pid)).toBe(false);
    expect(existsSync(log)).toBe(true);
    await ask('start_run', { recipe: 'team.ts', run: 'runs/early', set });
    expect(await ask('stop_run', { run: 'runs/early' })).toMatchObject({ state: 'stopped' }); // it may not have begun
    expect(await ask('start_run', { recipe: 'team.ts', run: 'runs/bad', set: ['training.steps=-1'] })).toEqual({
      error: expect.stringMatching(/training\.steps: expected a number >= 0/),
    });
    const other = await ask('start_run', { recipe: 'team.ts', run: 'runs/other', set });
    await client.close();
    await eventually(() => !isAlive(other.pid));
  });

  it('begins no run that cannot be loaded, and survives a recipe that prints or ends its process', async () => {
    writeFileSync(join(project, 'loud.ts'), "console.log('loud'); process.exit(3);");
    const { client, ask } = await connected('--allow-start');
    for (const tool of ['dry_run', 'start_run'])
      expect(await ask(tool, { recipe: 'loud.ts' })).toEqual({ error: expect.stringMatching(/ended the process/) });
    expect(await ask('list_runs')).toMatchObject({ runs: expect.any(Array) });
    await client.close();
  });
});

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
