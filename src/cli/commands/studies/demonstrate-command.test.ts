import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Message, Tool } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import { describe, expect, it, vi } from 'vitest';
import { chatServer, refuse, say } from '../../../../test/support/chat-server.js';
import { drmas, unspaced } from '../../../../test/support/command-line.js';
import { temporaryRoot } from '../../../../test/support/tiny-run.js';
import { demandedSchema } from '../../../teams/rollout/prompt-messages.js';

const root = temporaryRoot();
const source = (path: string) => pathToFileURL(join(import.meta.dirname, '../../..', path)).href;

/**
 * A desk: a triage agent whose answer must fit a schema, and a clerk with a tool. Of twenty tasks four are held out.
 * The recipe names a file of demonstrations that does not exist yet.
 */
const recipeText = (file: string, frozen = '') => `
import { z } from '${source('../node_modules/zod/index.js')}';
import { agent } from '${source('teams/team/agent.ts')}';
import { defineTeam } from '${source('teams/team/team.ts')}';
import { jsonl } from '${source('teams/tasks/files/file-source.ts')}';
import { withDemonstrations } from '${source('teams/tasks/files/demonstrations.ts')}';
import { defineRecipe } from '${source('method/recipe/define.ts')}';
import { frozen } from '${source('method/recipe/frozen.ts')}';
import { tinyDecoder } from '${source('../packages/engine/src/model/model-spec.ts')}';
import { user, assistant, toolResult } from '${source('../packages/engine/src/base/core/message.ts')}';

const parameters = { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] };
const look = { name: 'look', description: 'the state of an order', parameters };
const responseSchema = { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] };

const team = defineTeam({
  name: 'desk',
  task: z.object({ message: z.string(), order: z.string(), split: z.string() }),
  agents: { triage: agent({ system: 'Name the order.' }), clerk: agent({ tools: 'plain' }) },
  async play({ task, agents: { triage, clerk } }) {
    const named = await triage(task.message, { responseSchema });
    const { order } = JSON.parse(named.content);
    const asked = [user('Where is ' + order + '?')];
    const reply = await clerk(asked, { tools: [look] });
    const [call] = reply.toolCalls;
    if (call === undefined) return reply.text;
    return (await clerk([...asked, assistant(reply), toolResult(call, 'packed ' + order)], { tools: [look] })).text;
  },
  reward: ({ task, outcome }) => (outcome === 'packed ' + task.order ? 1 : 0),
});

export default defineRecipe({
  team,
  tasks: withDemonstrations(jsonl('${file}', { split: 'split' }), '${join(root, 'missing.jsonl')}'),
  ${frozen || "model: tinyDecoder({ width: 8, layers: 1, heads: 2, feedForward: 12, context: 1024, tokenizer: { type: 'bytes' } }),\n  warmStart: { steps: 2 },"}
});
`;

const rows = Array.from({ length: 20 }, (_, i) => ({
  message: `What about A${i}, please?`,
  order: `A${i}`,
  split: i % 5 === 0 ? 'test' : 'train',
}));

async function folderNamed(name: string, frozen?: string) {
  const folder = join(root, name);
  await mkdir(folder, { recursive: true });
  const tasks = join(folder, 'tasks.jsonl');
  await writeFile(tasks, rows.map((row) => JSON.stringify(row)).join('\n'));
  const recipe = join(folder, 'recipe.ts');
  await writeFile(recipe, recipeText(tasks, frozen));
  const out = join(folder, 'data', 'demonstrations.jsonl');
  return { folder, recipe, out, words: ['demonstrate', recipe, '--out', out] };
}

interface Row {
  readonly agent: string;
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[];
}

const rowsIn = (file: string): Row[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));

/** A script that answers rightly, except for A3; it throws for A4 and leaves A6 out. */
const script = `
export default ({ agent, task, messages, tools }) => {
  if (agent === 'triage') {
    if (task.order === 'A4') throw new Error('no idea');
    if (task.order === 'A6') return;
    return JSON.stringify({ order: task.order });
  }
  if (tools[0].name !== 'look') throw new Error('no tool');
  const last = messages.at(-1);
  if (last.role === 'user') return { toolCalls: [{ name: 'look', arguments: { order: task.order } }] };
  return task.order === 'A3' ? 'lost' : last.content;
};`;

describe('drmas demonstrate', () => {
  it('records the good episodes of a script, with the prompts of play, and no held-out task', async () => {
    const { folder, words, out, recipe } = await folderNamed('script');
    await writeFile(join(folder, 'answers.mjs'), script);
    const typed = [...words, '--script', join(folder, 'answers.mjs'), '--tasks', '100', '--min-score', '1'];
    const plan = await drmas([...typed, '--dry-run']);
    expect(plan).toMatchObject({ code: 0, err: '' });
    expect(unspaced(plan.out)).toMatch(/askedtriage,clerk:.*answers\.mjs.*16of16trainingtasks/);
    expect(existsSync(out)).toBe(false);
    const { code, out: printed, err } = await drmas(typed);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(printed).toMatch(/15, 13 kept; 1 below the score, 1 failed, 1 tasks left out/);
    expect(printed).toMatch(/wrote +39 demonstrations \(triage 13, clerk 26\)/);
    const written = rowsIn(out);
    const asked = written.filter(({ agent }) => agent === 'triage').map(({ messages }) => messages[1]?.content);
    const held = rows.filter(({ split }) => split === 'test').map(({ message }) => message);
    expect(asked.filter((message) => held.includes(message ?? ''))).toEqual([]);
    expect(new Set(asked).size).toBe(13);
    const { messages: [system] = [], ...first } = written[0] as Row;
    expect(system?.content).toMatch(/^Name the order\.\nAnswer with JSON of this schema alone: /);
    expect(demandedSchema(system?.content ?? '')).toMatchObject({ required: ['order'] });
    expect(first.agent).toBe('triage');
    const clerk = written.filter(({ agent }) => agent === 'clerk');
    expect(clerk[0]).toMatchObject({ tools: [{ name: 'look' }] });
    expect(clerk[0]?.messages.at(-1)).toMatchObject({ role: 'assistant', content: '', toolCalls: [{ name: 'look' }] });
    expect(clerk[1]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    // A file that exists stays, and nobody is asked.
    const again = await drmas(typed);
    expect(again).toMatchObject({
      code: 2,
      err: expect.stringMatching(/demonstrations\.jsonl exists; choose another/),
    });
    expect(rowsIn(out)).toEqual(written);
    // The recipe trains on it: its warm start reads the same prompts as play.
    const plays = ['train', recipe, '--run', join(folder, 'run'), '--threads', '1'];
    const settings = ['training.steps=1', 'training.tasksPerStep=2', 'training.groupSize=2', 'evaluation.tasks=1'];
    const named = [...settings, `tasks.train.demonstrationFile=${out}`, `tasks.test.demonstrationFile=${out}`];
    const trained = await drmas([...plays, ...named.flatMap((each) => ['--set', each])]);
    expect(trained.out + trained.err).toMatch(/warm start/);
    expect(trained.out + trained.err).not.toMatch(/another system prompt|not a demonstration/);
  });

  it('asks a hosted model, records the agents that are named, and counts tokens', async () => {
    const { words, out } = await folderNamed('hosted');
    const server = await chatServer(({ body: { messages } }, response) => {
      const last = messages.at(-1)?.content ?? '';
      const order = /A\d+/.exec(last)?.[0] ?? '';
      say(response, messages[0]?.content.startsWith('Name') ? JSON.stringify({ order }) : `packed ${order}`);
    });
    const hosted = ['--endpoint', server.url, '--model', 'large', '--tasks', '3'];
    const { code, out: printed, err } = await drmas([...words, ...hosted, '--min-score', '1', '--json']);
    expect({ code, err }).toEqual({ code: 0, err: expect.stringMatching(/gets the prompts of triage, clerk, with/) });
    const events = printed
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(events.map(({ type }) => type)).toEqual(['task', 'task', 'task', 'demonstrations']);
    expect(events.at(-1)).toMatchObject({ demonstrations: 6, kept: 3, agents: { triage: 3, clerk: 3 }, failed: 0 });
    expect(rowsIn(out)).toHaveLength(6);
    expect(events.at(-1)).toMatchObject({ read: 66, written: 42 });
  });

  it('keeps the answers of a server that refuses later ones, and ends with 1', async () => {
    const { words, out } = await folderNamed('refusing');
    const server = await chatServer(({ body: { messages } }, response, index) => {
      const order = /A\d+/.exec(messages.at(-1)?.content ?? '')?.[0] ?? '';
      if (index >= 24) return refuse(response, 401);
      say(response, messages[0]?.content.startsWith('Name') ? JSON.stringify({ order }) : `packed ${order}`);
    });
    const { code, out: printed } = await drmas([...words, '--endpoint', server.url, '--model', 'large']);
    expect([code, printed]).toEqual([1, expect.stringMatching(/stopped +.*401[\s\S]* of 16 tasks were/)]);
    expect(rowsIn(out).length).toBeGreaterThan(0);
  });

  it('plays a recipe of frozen models with its own ones, and takes frozen(...) of a script', async () => {
    const complete = `async ({ messages }) => ({ text: messages[0].content.startsWith('Name')
      ? JSON.stringify({ order: /A\\d+/.exec(messages.at(-1).content)[0] })
      : 'packed ' + /A\\d+/.exec(messages.at(-1).content)[0] })`;
    const hosted = `frozen({ complete: ${complete} })`;
    const own = await folderNamed('own', `assign: { triage: ${hosted}, clerk: ${hosted} },`);
    const { code, out: printed } = await drmas([...own.words, '--tasks', '2', '--agents', 'clerk']);
    expect([code, printed]).toEqual([0, expect.stringMatching(/2 demonstrations \(clerk 2\)/)]);
    const other = await folderNamed('frozen-script');
    const file = join(other.folder, 'answers.ts');
    await writeFile(
      file,
      `import { frozen } from '${source('method/recipe/frozen.ts')}';\nexport default ${hosted};\n`,
    );
    expect((await drmas([...other.words, '--tasks', '2', '--script', file])).out).toMatch(/triage 2, clerk 2/);
  });

  it('asks the person behind a pipe, and keeps what was answered when the input ends', async () => {
    const { words, out } = await folderNamed('person');
    const input = [
      ...['{"order":"?"}', '/call lok {}', '/call look {"order":', '/call look {"order":"?"}', 'two\\', 'lines'],
      ...['/skip', '{"order":"B"}'],
    ].join('\n');
    const { code, out: printed, err } = await drmas([...words, '--tasks', '4'], { input });
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(printed).toMatch(/task: message: What about A\d+[\s\S]*triage reads:\n {2}system: Name the order\.\n/);
    expect(printed).toMatch(/\/call one of: look[\s\S]*the arguments are a JSON object/);
    expect(printed).toMatch(/tools, as \/call NAME[\s\S]*look \{"order"/);
    expect(printed).toMatch(/stopped +the answers ended; 1 of 4 tasks were played/);
    expect(rowsIn(out).at(-1)?.messages.at(-1)?.content).toBe('two\nlines');
  });

  it('asks a program by JSON lines', async () => {
    const { words, out } = await folderNamed('program');
    const call = { text: '', toolCalls: [{ name: 'look', arguments: { order: 'x' } }] };
    const input = ['{"order":"x"}', call, 'packed'].map((line) => JSON.stringify(line)).join('\n');
    // PowerShell puts a byte order mark before the first line.
    const { code, out: printed } = await drmas([...words, '--tasks', '1', '--json'], { input: `\ufeff${input}` });
    const events = printed
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect([code, events.map(({ type }) => type)]).toEqual([
      0,
      ['question', 'question', 'question', 'task', 'demonstrations'],
    ]);
    expect(events[1]).toMatchObject({ agent: 'clerk', tools: [{ name: 'look' }], task: { split: 'train' } });
    expect(rowsIn(out)).toHaveLength(3);
    const wrong = await drmas([...words.slice(0, 3), `${out}2`, '--json'], { input: 'yes\n' });
    expect(wrong).toMatchObject({ code: 2, err: expect.stringMatching(/stdin: expected an answer as JSON/) });
  });

  it.each([
    ['nobody', [], /nobody answered: --endpoint/],
    ['both', ['--endpoint', 'http://127.0.0.1:9/v1', '--model', 'm', '--script', 'x.ts'], /expected one of them/],
    ['half', ['--model', 'm'], /expected both/],
    ['no file', ['--script', 'nowhere.ts'], /there is no file nowhere\.ts/],
    ['no agent', ['--agents', 'clrk'], /no agent 'clrk'; did you mean 'clerk'/],
    ['a bad url', ['--endpoint', 'nowhere', '--model', 'm'], /endpoint\.url/],
  ])('refuses or ends clearly: %s', async (name, flags, message) => {
    const { words, folder } = await folderNamed(`refused-${name.replaceAll(' ', '-')}`);
    const { code, err } = await drmas([...words, ...flags]);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(message) });
    if (name !== 'nobody') expect(await readdir(folder)).not.toContain('data');
  });

  it.each([
    ['a number', 'export default () => 3;', 2, /answers\.mjs: expected a text, .* got 3/],
    ['no function', 'export default 3;', 2, /expected a function .* got 3/],
    ['an error', "export default () => { throw new Error('down'); };", 1, /same reason: .*answers\.mjs threw: down/],
    [
      'bad answers',
      "export default ({ agent }) => agent === 'clerk' ? 'no' : '{\"order\":\"\"}';",
      2,
      /5 did not reach/,
    ],
  ])('names the mistake of a script: %s', async (name, text, expected, message) => {
    const { words, folder, out } = await folderNamed(`mistake-${name.replaceAll(' ', '-')}`);
    await writeFile(join(folder, 'answers.mjs'), text);
    const file = join(folder, 'answers.mjs');
    const { code, err } = await drmas([...words, '--script', file, '--tasks', '5', '--min-score', '1']);
    expect({ code, err }).toEqual({ code: expected, err: expect.stringMatching(message) });
    expect(existsSync(out)).toBe(false);
  });

  it('writes what was recorded when it is interrupted', async () => {
    const { words, folder, out } = await folderNamed('interrupted');
    const interruption = new AbortController();
    Object.assign(globalThis, { interruptDemonstration: () => interruption.abort(new Error('interrupted')) });
    const counted = script.replace(
      '=> {',
      "=> {\n  if (agent === 'triage' && ++count === 3) globalThis.interruptDemonstration();",
    );
    await writeFile(join(folder, 'answers.mjs'), `let count = 0;\n${counted}`);
    const file = join(folder, 'answers.mjs');
    const { code, out: printed } = await drmas([...words, '--script', file], { signal: interruption.signal });
    expect(code).toBe(130);
    expect(printed).toMatch(/stopped +interrupted; [12] of 16 tasks were played/);
    expect(rowsIn(out).length).toBeGreaterThan(0);
  });

  it('has each answered task in the file before the next question: a killed process loses no answer', async () => {
    const { words, folder, out } = await folderNamed('killed');
    const seen: number[] = [];
    Object.assign(globalThis, { lookAtDemonstrations: () => seen.push(existsSync(out) ? rowsIn(out).length : -1) });
    const looking = script.replace('=> {', "=> {\n  if (agent === 'triage') globalThis.lookAtDemonstrations();");
    await writeFile(join(folder, 'answers.mjs'), looking.replace("=== 'A4'", "=== 'no order'"));
    await drmas([...words, '--script', join(folder, 'answers.mjs'), '--tasks', '4']);
    expect(seen).toEqual([0, 3, 6, 9]);
  });

  it('keeps what is written, stops and tells it if the disk is full', async () => {
    const { words, folder, out } = await folderNamed('full');
    const { append } = nodeFiles;
    let room = 2;
    const spy = vi.spyOn(nodeFiles, 'append').mockImplementation((path, content, at) => {
      if (path === out && room-- <= 0) throw new Error('ENOSPC: no space left on device, write');
      append(path, content, at);
    });
    try {
      await writeFile(join(folder, 'answers.mjs'), script);
      const { code, out: printed } = await drmas([...words, '--script', join(folder, 'answers.mjs')]);
      expect([code, unspaced(printed)]).toEqual([1, expect.stringMatching(/cannotbewritten:ENOSPC.*of16taskswere/)]);
      expect(printed).toMatch(/wrote +6 demonstrations \(triage 2, clerk 4\)/);
    } finally {
      spy.mockRestore();
    }
    expect(rowsIn(out)).toHaveLength(6);
  });
});
