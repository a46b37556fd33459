import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { chatServer, json, say } from '../../../test/support/chat-server.js';
import { drmas, plainRecipe } from '../../../test/support/command-line.js';
import { fakePython, torchReport } from '../../../test/support/fake-python.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';

describe('plan --play', () => {
  const root = temporaryRoot();
  const file = join(root, 'mine.ts');
  beforeAll(() => writeFile(file, talkative));

  /** It calls its solver once; a random model gives no right answer. */
  const talkative = plainRecipe
    .replace('play: async () => 0', 'play: async ({ agents }) => { await agents.solver("Hello?"); return 0; }')
    .replaceAll('sampling: {}', 'sampling: { maxTokens: 4 }');

  /** A recipe whose agents are all frozen models of a server. */
  function hostedOn(url: string, recipe: string): string {
    const endpoint = `{ type: 'endpoint', url: '${url}', model: 'big', price: { read: 1e6, write: 2e6 } }`;
    return recipe
      .replace('model: {', `assign: { solver: ${endpoint}, verifier: ${endpoint} }, _: {`)
      .replace(/ _: \{.*\},\n/, '\n');
  }

  it("prints an agent's call of a tool and the tool's answer", async () => {
    const call = { id: 'c', type: 'function', function: { name: 'price', arguments: '{"of":"fig"}' } };
    const { url } = await chatServer(({ body: { messages } }, response) =>
      messages.at(-1)?.role === 'tool'
        ? say(response, 'It is 5.')
        : json(response, { choices: [{ index: 0, message: { content: null, tool_calls: [call] } }] }),
    );
    const calling = join(root, 'calling.ts');
    const play = `async ({ agents }) => {
      const tools = [{ name: 'price', parameters: { type: 'object' } }];
      const question = { role: 'user', content: 'A fig?' };
      const { content, toolCalls } = await agents.solver([question], { tools });
      const answer = { role: 'tool', content: '5', toolCallId: toolCalls[0].id };
      await agents.solver([question, { role: 'assistant', content, toolCalls }, answer], { tools });
      return 0;
    }`;
    const recipe = plainRecipe
      .replace('play: async () => 0', `play: ${play}`)
      .replace('parse:', "tools: 'plain', parse:");
    await writeFile(calling, hostedOn(url, recipe));
    const settings = ['--set', 'training.groupSize=1', '--set', 'evaluation.tasks=1'];
    const { code, out, err } = await drmas(['plan', calling, '--play', '--tasks', '1', ...settings]);
    expect({ code, err }).toEqual({ code: 0, err: `${url} gets the prompts of solver, verifier, with no key\n` });
    expect(out).toMatch(
      /user: A fig\?\n {2}solver -> price\(\{"of":"fig"\}\)\n.*\n {2}solver <- tool: 5\n {2}solver -> It is 5\./,
    );
  });

  it('ends with the error, and with nothing else, if all episodes throw', async () => {
    const broken = join(root, 'broken.ts');
    await writeFile(broken, talkative.replace('return 0;', 'throw new Error("the calculator is away");'));
    const { code, out, err } = await drmas(['plan', broken, '--play', '--tasks', '1']);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(/^error: all episodes failed for the same reason: \(error\) the calculator is away\n/);
    expect(err).toMatch(/\nFix the team first/);
  });

  it('says that no group is left if each episode fails for another reason', async () => {
    const broken = join(root, 'brittle.ts');
    const failing = talkative
      .replace('return 0;', 'if (tries++ % 2 === 0) throw new Error("away"); return 0;')
      .replace('reward: () => 0', 'reward: () => "late"');
    await writeFile(broken, `let tries = 0;\n${failing}`);
    const { code, out } = await drmas(['plan', broken, '--play', '--tasks', '1', '--set', 'training.groupSize=2']);
    expect(code).toBe(0);
    expect(out).not.toContain('NaN');
    expect(out).toMatch(/groups +none is left: each episode failed/);
  });

  it('prints the learning signal, three episodes in full, and that reinforcement will not help', async () => {
    const { code, out, err } = await drmas(['plan', file, '--play', '--tasks', '2', '--set', 'training.groupSize=3']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/played +2 tasks x 3 episodes, without training/);
    expect(out).toMatch(/2 \(100\.0 %\) all wrong/);
    expect(out).toMatch(/drmas +- +0\ngrpo +- +0/);
    expect(out.match(/solver <- user: Hello\?/g)).toHaveLength(3);
    expect(out).toMatch(/Reinforcement will not help with this recipe\.\n- Hardly a task is ever solved/);
    expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it('counts on a terminal the episodes that are over, and leaves nothing of it behind', {
    tags: 'verify',
  }, async () => {
    const words = ['plan', file, '--play', '--tasks', '40', '--set', 'training.groupSize=4'];
    const { out, err } = await drmas(words, { terminal: true });
    expect(err).toMatch(/^\rplayed \d+ of 160 episodes/);
    expect(err).toMatch(/\r +\r$/);
    expect(out).not.toContain('played 1 of');
    expect((await drmas([...words, '--json'], { terminal: true })).err).toBe('');
  });

  it('prints with --json the findings, and nothing else', async () => {
    const { code, out } = await drmas(['plan', file, '--play', '--tasks', '1', '--seed', '5', '--json']);
    expect(code).toBe(0);
    const findings = {
      tasks: 1,
      worthwhile: false,
      advice: [
        { code: 'all-wrong', weight: 'stops' },
        { code: 'not-called', weight: 'hinders' }, // the verifier, which no episode reaches
      ],
      groups: { count: 1, signal: 0, allWrong: 1 },
    };
    expect(JSON.parse(out)).toMatchObject({
      type: 'plan',
      countedFrom: 'episodes',
      agents: { solver: { calls: 1 } },
      played: findings,
      time: { seconds: expect.any(Number) },
    });
  });

  it('plays a team whose agents are all frozen, with the cost of its endpoint and nothing to train', async () => {
    const { url } = await chatServer((_, response) => say(response, 'Hi.'));
    const hosted = join(root, 'hosted.ts');
    await writeFile(hosted, hostedOn(url, talkative));
    const { code, out, err } = await drmas([
      'plan',
      hosted,
      '--play',
      '--tasks',
      '2',
      '--set',
      'training.groupSize=3',
      '--set',
      'evaluation.tasks=1',
    ]);
    expect(code).toBe(0);
    expect(err).toMatch(/^http:\S+ gets the prompts of solver, verifier, with no key\n$/);
    expect(out).toMatch(/played +2 tasks x 3 episodes, without training/);
    expect(out).toMatch(/episodes +4 in an evaluation/);
    expect(out).not.toMatch(/Reinforcement|estimator|a step|first weights/);
    expect(out).toMatch(/recipe +hosted, on frozen models alone/);
    expect(out).toMatch(/solver +1\.00 +11 +7/);
    expect(out).toMatch(/the run costs about 100/); // 4 episodes of 11 tokens read at 1 and 7 written at 2

    const episodes = join(root, 'baseline.jsonl');
    const evaluated = await drmas(['evaluate', hosted, '--tasks', '1', '--samples', '2', '--episodes', episodes]);
    expect(evaluated).toMatchObject({ code: 0, err });
    expect(evaluated.out).toMatch(/avg@2 +0\.0 % +\[0\.0, 97\.5\]/);
    expect(evaluated.out).toMatch(/all +22 +14 +0 +18 +50\.0/);
    expect((await readFile(episodes, 'utf8')).match(/"agent":"solver"/g)).toHaveLength(2);
    const again = await drmas(['evaluate', hosted, '--episodes', episodes]);
    expect(again).toMatchObject({
      code: 2,
      err: expect.stringMatching(/exists; --episodes needs the name of a new file/),
    });
    const wrong = await drmas(['evaluate', hosted, '--checkpoint', '4']);
    expect(wrong).toMatchObject({ code: 2, err: expect.stringMatching(/need the directory of a run/) });
  });

  it.each([
    [['no-such-recipe'], /there is no recipe 'no-such-recipe'/],
    [['FILE', '--tasks', '0'], /expected an integer >= 1, got '0'/],
    [['FILE', '--from', root], /is not a run/],
    [['FILE', '--set', 'training.stepz=1'], /training\.stepz: unknown key/],
  ])('refuses %j', async (words, message) => {
    const { code, out, err } = await drmas(['plan', '--play', ...words.map((word) => (word === 'FILE' ? file : word))]);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
  });

  it('refuses its flags without it', async () => {
    const { code, out, err } = await drmas(['plan', file, '--tasks', '4']);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(/--tasks and --from need --play/);
  });

  it('ends with 130 when interrupted, and says that nothing is kept', async () => {
    const controller = new AbortController();
    controller.abort(new Error('Ctrl-C'));
    expect(await drmas(['plan', file, '--play'], { signal: controller.signal })).toMatchObject({
      code: 130,
      out: '',
      err: 'interrupted; the command stored nothing, start it again\n',
    });
  });
});

describe('plan --device cuda', () => {
  const file = join(temporaryRoot(), 'small.ts');
  beforeAll(() => writeFile(file, plainRecipe));
  afterEach(() => void vi.unstubAllEnvs());

  it.each([
    [23e9, 0, true, 'so the run fits'],
    [1e6, 1, false, 'so the run does not fit'],
  ])('has an exit code for a card with %d bytes free', async (free, exit, fits, note) => {
    vi.stubEnv('DRMAS_PYTHON', await fakePython({ ...torchReport, cards: [{ ...torchReport.cards[0], free }] }));
    const plan = await drmas(['plan', file, '--device', 'cuda', '--json']);
    expect({ code: plan.code, err: plan.err }).toEqual({ code: exit, err: '' });
    expect(JSON.parse(plan.out)).toMatchObject({
      fits,
      notes: expect.arrayContaining([expect.stringContaining(note)]),
    });
  });
});
