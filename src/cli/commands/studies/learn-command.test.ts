import { readFileSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { prices } from '../../../../examples/ai-sdk/prices.js';
import { drmas } from '../../../../test/support/command-line.js';
import { temporaryRoot } from '../../../../test/support/tiny-run.js';

const root = temporaryRoot();
const shop = join(import.meta.dirname, '../../../../examples/ai-sdk/recipe.ts');

const page = readFileSync(join(import.meta.dirname, '../../../../docs/train-your-production-agent.md'), 'utf8');

/** A trace of Langfuse: the shop of examples/ai-sdk as a large model played it, nine times out of ten rightly. */
function traceOf(order: string, number: number) {
  const [count = '', fruit = ''] = order.split(' ');
  const price = String(prices[fruit]);
  const cost = Number(count) * Number(price);
  const answer = number % 10 === 0 ? `${count}+${price}` : `${count}*${price}`;
  const call = { type: 'function', id: 'c', function: { name: 'price', arguments: JSON.stringify({ fruit }) } };
  const tools = [
    {
      name: 'price',
      description: 'price of one',
      parameters: { type: 'object', properties: { fruit: { type: 'string' } } },
    },
  ];
  const generation = (agent: string, id: number, input: readonly object[], output: object) => ({
    ...{
      id: `${id}`,
      traceId: order,
      type: 'GENERATION',
      startTime: `2026-01-01T00:00:0${id}Z`,
      model: 'large',
      input,
      output,
    },
    usageDetails: { input: 200, output: 20 },
    metadata: {
      attributes: { 'gen_ai.agent.name': agent, ...(agent === 'buyer' ? { 'gen_ai.tool.definitions': tools } : {}) },
    },
  });
  const buying = [
    { role: 'system', content: 'Say its price.' },
    { role: 'user', content: order },
  ];
  const called = { role: 'assistant', content: '', tool_calls: [call] };
  const paying = [
    { role: 'system', content: 'Write count*price.' },
    { role: 'user', content: `${count} ${price}` },
  ];
  return {
    id: order,
    input: { order, cost },
    scores: [{ name: 'correct', value: number % 10 === 0 ? 0 : 1 }],
    observations: [
      generation('buyer', 1, buying, called),
      generation('buyer', 2, [...buying, called, { role: 'tool', tool_call_id: 'c', content: price }], {
        role: 'assistant',
        content: price,
      }),
      generation('cashier', 3, paying, { role: 'assistant', content: answer }),
    ],
  };
}

const citySchema = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};

async function traced(name: string) {
  const folder = join(root, name);
  await mkdir(folder, { recursive: true });
  const orders = Object.keys(prices).flatMap((fruit) =>
    [1, 2, 3, 4, 5, 6, 7, 8, 9].map((count) => `${count} ${fruit}`),
  );
  const traces = join(folder, 'traces.jsonl');
  await writeFile(traces, orders.map((order, i) => JSON.stringify(traceOf(order, i))).join('\n'));
  const scorers = join(folder, 'evals.ts');
  const right = "[{ name: 'correct', scorer: ({ output, expected }) => ({ score: output === expected ? 1 : 0 }) }]";
  await writeFile(
    scorers,
    `export default ${right.replace('output === expected', 'output.cost === input.cost').replace('output, expected', 'output, input')};\n`,
  );
  const out = join(folder, 'out');
  const run = join(folder, 'run');
  const files: Record<string, string> = { 'traces.jsonl': traces, 'recipe.ts': shop, 'evals.ts': scorers };
  /** The command of the page, with the files of this test. */
  const typed = (command: string) => {
    const line = new RegExp(`^npx drmas (${command} .*)$`, 'm').exec(page)?.[1] ?? '';
    return line.split(' ').map((word) => files[word] ?? word);
  };
  return { words: [...typed('learn'), '--out', out, '--run', run], out, run, typed };
}

/** A part of the printed comparison. */
const comparison = (share: string) =>
  new RegExp(
    `traced +88\\.9 % +600 +60 +0\\.270?\\n.*warm start +[\\d.]+ %[\\s\\S]*trained +[\\d.]+ % +\\d+ +\\d+ +your own machine[\\s\\S]*${share} of the traced team's score\\nserve it: npx drmas serve `,
  );

describe('drmas learn', () => {
  it('imports, trains, and compares the team with the traced one', async () => {
    const { words, out, run, typed } = await traced('short');
    expect(await drmas(typed('import'))).toMatchObject({ code: 0, out: expect.stringMatching(/nothing was written/) });
    for (const screen of [true, false]) {
      const preview = await drmas(
        words.filter((word) => word !== '--yes'),
        { screen },
      );
      expect(preview.out).toMatch(
        /72, \d\d of them become demonstrations[\s\S]*are held out[\s\S]*nothing was started; add --yes/,
      );
    }
    const renamed = await drmas([...words, '--rename', 'buyer=byer']);
    expect(renamed).toMatchObject({ code: 2 });
    expect(renamed.err).toMatch(
      /the traces call 'byer', which is no agent of .*; did you mean 'buyer'\?.*"byer=buyer"/,
    );
    await expect(readdir(out)).rejects.toThrow(); // nothing was written
    const typo = await drmas([...words, '--set', 'training.stepz=3']);
    expect(typo).toMatchObject({ code: 2, err: expect.stringContaining("did you mean 'steps'?") });
    const taken = await drmas([...words.slice(0, -1), root]);
    expect(taken).toMatchObject({ code: 2, err: expect.stringContaining(`${root} exists and is not empty`) });
    const signal = AbortSignal.abort();
    expect(await drmas(words, { signal })).toMatchObject({ code: 130, err: expect.stringContaining('start it again') });
    await expect(readdir(out)).rejects.toThrow(); // so that the corrected command can write
    await mkdir(out);
    await writeFile(join(out, 'recipe.ts'), '// mine');
    expect(await drmas(words)).toMatchObject({ code: 2, err: expect.stringMatching(/recipe\.ts exists; choose/) });
    expect(await readdir(out)).toEqual(['recipe.ts']);
    await rm(join(out, 'recipe.ts'));
    const set = [
      'warmStart.steps=2',
      'training.steps=2',
      'training.checkpointEvery=1',
      'training.tasksPerStep=2',
      'training.groupSize=2',
      'evaluation.tasks=4',
      'evaluation.samples=1',
    ];
    const { code, out: text, err } = await drmas([...words, ...set.flatMap((each) => ['--set', each])]);
    expect({ code, err }).toMatchObject({ code: 0 });
    expect(text).toMatch(comparison('[\\d.]+ %'));
    const linesOf = async (file: string) => (await readFile(file, 'utf8')).trim().split('\n');
    const tasks = (await linesOf(join(out, 'tasks.jsonl'))).map((line) => JSON.parse(line));
    const heldOut = new Set(tasks.flatMap(({ split, id }) => (split === 'test' ? [id] : [])));
    expect(heldOut.size).toBeGreaterThan(7); // a fifth of 72, by chance
    expect(heldOut.size).toBeLessThan(22);
    const rows = await linesOf(join(out, 'demonstrations.jsonl'));
    const isShown = (order: string) => rows.some((row) => row.includes(`"content":"${order}"`));
    const right = tasks.filter(({ score }) => score === 1);
    expect(rows).toHaveLength(3 * right.filter(({ id }) => !heldOut.has(id)).length);
    for (const { id } of right) expect(isShown(id), id).toBe(!heldOut.has(id));
    const playedIn = async (file: string) =>
      (await linesOf(join(run, 'episodes', file))).map((line): string => JSON.parse(line).task.id);
    for (const id of await playedIn('step-000001.jsonl')) expect(heldOut.has(id)).toBe(false);
    for (const id of await playedIn('evaluation-000002.jsonl')) expect(heldOut.has(id)).toBe(true);
    const events = await readFile(join(run, 'events.jsonl'), 'utf8');
    expect(events).toContain('"correct"');
    const resumed = await drmas(['resume', run, '--checkpoint', '1']);
    const tableOf = (printed: string) => printed.slice(printed.lastIndexOf('\nteam '));
    expect(tableOf(resumed.out)).toBe(tableOf(text));

    // A process that was killed before its run began leaves the same files: the same command takes them.
    const again = [...words.slice(0, -1), `${run}-again`];
    const files = await readdir(out);
    expect(files).toEqual(['demonstrations.jsonl', 'recipe.ts', 'tasks.jsonl', 'traced-team.json']);
    expect(await drmas(again, { signal })).toMatchObject({ code: 130 });
    expect(await readdir(out)).toEqual(files);
    await writeFile(join(out, 'tasks.jsonl'), '{}\n');
    expect(await drmas(again)).toMatchObject({ code: 2, err: expect.stringMatching(/tasks\.jsonl exists; choose/) });
    expect(await readdir(out)).toEqual(files);
  });

  it("writes the schema that an agent's program demands into demonstrations of traces that do not have it", async () => {
    const folder = join(root, 'schema');
    await mkdir(folder, { recursive: true });
    const source = `
      import { agent, defineRecipe, defineTeam, jsonl, system, tinyDecoder, user } from 'drmas';
      import { z } from 'zod';
      const responseSchema = ${JSON.stringify(citySchema)};
      const team = defineTeam({
        name: 'trip',
        task: z.object({ question: z.string() }),
        agents: { reader: agent({ parse: (text) => text }) },
        play: ({ task, agents: { reader } }) =>
          reader([system('Which city?'), user(task.question)], { responseSchema }),
        reward: () => 1,
      });
      export default defineRecipe({
        name: 'trip', team, tasks: jsonl('unused.jsonl'),
        model: tinyDecoder({ width: 16, layers: 1, heads: 2, feedForward: 32, context: 512, tokenizer: { type: 'bytes' } }),
        warmStart: { steps: 2, batch: 2 },
        training: { steps: 1, tasksPerStep: 2, groupSize: 2 },
        evaluation: { tasks: 2, samples: 1 },
      });
    `;
    const recipe = join(folder, 'trip.ts');
    await writeFile(recipe, source);
    const spans = (system: string) =>
      [1, 2, 3, 4, 5, 6].map((id) =>
        JSON.stringify({
          traceId: `t${id}`,
          spanId: 's',
          attributes: {
            'gen_ai.operation.name': 'chat',
            'gen_ai.agent.name': 'reader',
            'gen_ai.system_instructions': system,
            'gen_ai.input.messages': [{ role: 'user', content: `To Oslo ${id}.` }],
            'gen_ai.output.messages': [{ role: 'assistant', content: '{"city":"Oslo"}' }],
          },
        }),
      );
    const path = join(folder, 'traces.jsonl');
    const learnt = async (name: string, system: string) => {
      await writeFile(path, spans(system).join('\n'));
      const [out, run] = [join(folder, name), join(folder, `run-${name}`)];
      const printed = await drmas(['learn', path, '--recipe', recipe, '--out', out, '--run', run, '--yes']);
      const rows = (await readFile(join(out, 'demonstrations.jsonl'), 'utf8')).trim().split('\n');
      return { ...printed, prompts: new Set(rows.map((row) => JSON.parse(row).messages[0].content)) };
    };
    const line = `\nAnswer with JSON of this schema alone: ${JSON.stringify(citySchema)}`;
    const same = await learnt('same', 'Which city?');
    expect(same).toMatchObject({ code: 0, err: '' });
    expect(same.prompts).toEqual(new Set([`Which city?${line}`]));
    expect(same.out).not.toContain('another system prompt');
    const older = await learnt('older', 'Name the city.');
    expect(older.prompts).toEqual(new Set([`Name the city.${line}`]));
    expect(older.out).toMatch(/warning: \d demonstrations of 'reader' have another system prompt/);
  });

  it('reaches at least 95 % of the score of the traced team with a tiny model', {
    tags: 'verify',
    timeout: 600_000,
  }, async () => {
    const { words } = await traced('whole');
    const { code, out } = await drmas([
      ...words,
      '--set',
      'warmStart.steps=400',
      '--set',
      'training.steps=20',
      '--set',
      'evaluation.samples=4',
    ]);
    expect(code).toBe(0);
    expect(out).toMatch(comparison('[\\d.]+ %'));
    const [, share] = /([\d.]+) % of the traced team's score/.exec(out) ?? [];
    expect(Number(share)).toBeGreaterThanOrEqual(95);
  });

  it.each([
    [['learn', 'traces.jsonl'], /--recipe names the file with your team/],
    [['learn', 'traces.jsonl', '--recipe', 'gone.ts'], /there is no file gone\.ts/],
    [['learn', 'traces.jsonl', '--recipe', shop, '--scorers', 'gone.ts'], /there is no file gone\.ts/],
    [['learn', 'traces.jsonl', '--recipe', shop, '--redact', 'gone.ts'], /there is no file gone\.ts/],
    [['import', 'traces.jsonl', '--redact', 'gone.ts'], /there is no file gone\.ts/],
    [['learn', 'traces.jsonl', '--recipe', shop, '--price', '3'], /--price 3: expected READ,WRITE/],
    [['learn', 'traces.jsonl', '--recipe', shop, '--price', '1,'], /--price 1,: expected READ,WRITE/],
    [['learn', 'traces.jsonl', '--recipe', shop, '--price', '1e400,1'], /--price 1e400,1: expected READ,WRITE/],
    [['learn', 'traces.jsonl', '--recipe', shop, '--rename', '=buyer'], /--rename =buyer: expected OLD=NEW/],
    [['learn', 'traces.jsonl', '--recipe', shop, '--yes', '--out', shop], /\.ts is a file and no directory/],
    [['learn', 'traces.jsonl', '--recipe', shop, '--yes', '--run', shop], /\.ts is a file and no directory/],
    [['learn', 'traces.jsonl', '--recipe', shop, '--yes', '--out', `${shop}/a`], /a part of the path is a file/],
    [['learn', 'gone.jsonl', '--recipe', shop], /cannot be read/],
  ])('refuses %j', async (words, message) => {
    expect(await drmas(words)).toMatchObject({ code: 2, err: expect.stringMatching(message) });
  });
});
