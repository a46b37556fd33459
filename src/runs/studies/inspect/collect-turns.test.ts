import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { LogError } from '@drmas/engine/errors';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { collectLog } from './collect-turns.js';
import { inspect } from './inspect-log.js';

let root: string;
let count = 0;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-logs-'));
});
afterAll(() => rm(root, { recursive: true }));

async function file(content: string | Uint8Array, name = 'log.jsonl'): Promise<string> {
  const path = join(root, `${count++}-${name}`);
  await writeFile(path, content);
  return path;
}
const lines = (...rows: unknown[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

describe('layouts that are recognised', () => {
  it('our own episodes: penalties, the team reward and failed episodes apart', async () => {
    const turn = { agent: 'solver', turn: 0, penalty: 0.1, reward: 0.9, advantage: 1.5 };
    const episode = {
      task: { id: 't', data: {} },
      sample: 0,
      score: { team: 1, agents: {}, parts: {} },
      turns: [turn],
    };
    const failure = { reason: 'timeout', message: '' };
    const { advantage: _, ...untaught } = turn;
    const left = { ...episode, sample: 1, failure, turns: [untaught] };
    const log = await collectLog([await file(lines(episode, left))]);
    expect(log.layout).toBe('drmas episodes');
    expect(log.batch.turns).toEqual([{ task: 't', episode: '0', agent: 'solver', turn: 0, reward: 0.9, outcome: 1 }]);
    expect([...log.penalties]).toEqual([0.1]);
    expect(Array.from(log.logged ?? [])).toEqual([1.5]);
  });

  it('our own episodes: groups are right if their episodes succeed, as in the events of steps', async () => {
    const turn = { agent: 'solver', turn: 0, penalty: 0 };
    const episode = (id: string, sample: number, score: object) => ({
      ...{ task: { id, data: {} }, sample, score: { team: 0.2, agents: {}, parts: {}, ...score } },
      turns: [{ ...turn, reward: 0.2 }],
    });
    const groupsOf = async (score: object) =>
      inspect(await collectLog([await file(lines(episode('t', 0, score), episode('t', 1, score)))])).groups;
    expect(await groupsOf({})).toMatchObject({ allRight: 0, allWrong: 1, mixed: 0 });
    expect(await groupsOf({ parts: { correct: 1, calls: -0.8 } })).toMatchObject({ allRight: 1, allWrong: 0 });
    expect(await groupsOf({ success: 0.7 })).toMatchObject({ allRight: 1, allWrong: 0 });
  });

  it('our own episodes: failed ones that policies learn from', async () => {
    const turn = { agent: 'solver', turn: 0, penalty: 0, reward: 0 };
    const frozen = { ...turn, frozen: true };
    const failed = (sample: number, failure: object, turns: readonly object[] = [turn]) => ({
      task: { id: 't', data: {} },
      sample,
      score: { team: 0, agents: {}, parts: {} },
      failure: { message: '', ...failure },
      turns,
    });
    const log = await collectLog([
      await file(
        lines(
          failed(0, { reason: 'invalid-output' }),
          failed(1, { reason: 'too-many-turns' }),
          failed(2, { reason: 'overlong', scoring: true }),
          failed(3, { reason: 'overlong' }, [frozen]),
          failed(4, { reason: 'reward' }),
          failed(5, { reason: 'timeout' }, [{ ...turn, advantage: -1 }]), // training.failedEpisodes was zero
        ),
      ),
    ]);
    expect(log.batch.turns.map(({ episode }) => episode)).toEqual(['0', '1', '5']);
  });

  it('verl: the input names the task, and the step separates groups', async () => {
    const row = { input: 'q', output: 'a', gts: '1', score: 1, step: 3 };
    const log = await collectLog([await file(lines(row, { ...row, score: 0 }, { ...row, step: 4 }))]);
    expect(log.layout).toBe('verl rollouts');
    expect(log.batch.turns.map(({ task, reward }) => [task, reward])).toEqual([
      ['3/q', 1],
      ['3/q', 0],
      ['4/q', 1],
    ]);
    expect(log.batch.episodes.count).toBe(3);
  });

  it('TRL: one column for each reward function, messages as prompts', async () => {
    const prompt = [{ role: 'user', content: 'q' }];
    const row = { step: 1, prompt, completion: 'c', accuracy_reward: 1, format_reward: 0.5, advantage: 0.7 };
    const log = await collectLog([await file(lines(row, { ...row, accuracy_reward: null }))]);
    expect(log.layout).toBe('TRL completions');
    expect(Array.from(log.batch.rewards)).toEqual([1.5, 0.5]);
    expect(log.notices.join()).toMatch(/accuracy_reward \+ format_reward/);
    expect(log.batch.tasks.count).toBe(1);
  });

  it('verifiers rollouts, gzipped, a step a file', async () => {
    const row = { example_id: 7, prompt: [], completion: [], reward: 0.25 };
    const packed = gzipSync(lines(row, row));
    const files = [await file(packed, 'train.jsonl.gz'), await file(packed, 'train.jsonl.gz')];
    const log = await collectLog(files);
    expect(log.layout).toMatch(/^verifiers rollouts/);
    expect(log.batch.tasks.count).toBe(2);
    expect(log.batch.turns).toHaveLength(4);
  });

  it('verifiers traces: weighted rewards, a turn for each sampled message', async () => {
    const trace = {
      id: 'x',
      task: { type: 'T', data: { q: 1 }, key: 'k' },
      agent: { name: 'solver' },
      nodes: [{ sampled: false }, { sampled: true }, { sampled: true }],
      rewards: { right: { score: 1, weight: 0.5 }, style: { score: 2 }, late: null },
    };
    const log = await collectLog([await file(lines(trace))]);
    expect(log.batch.turns).toMatchObject([
      { task: 'k', episode: 'x', agent: 'solver', turn: 0, reward: 2.5 },
      { task: 'k', episode: 'x', agent: 'solver', turn: 1, reward: 2.5 },
    ]);
  });

  it('rLLM episodes: indented documents, a trajectory an agent', async () => {
    const episode = {
      training_step: 2,
      episode_id: 'e:0',
      task: { q: 1 },
      task_hash: 'h',
      is_correct: true,
      trajectories: [
        { name: 'solver', reward: 1, steps: [{}, {}] },
        { name: 'judge', reward: null, steps: [{}] },
      ],
    };
    const log = await collectLog([await file(JSON.stringify(episode, null, 2), 'episode.json')]);
    expect(log.batch.turns.map(({ task, agent, turn, reward }) => [task, agent, turn, reward])).toEqual([
      ['2/h', 'solver', 0, 1],
      ['2/h', 'solver', 1, 1],
      ['2/h', 'judge', 2, 1],
    ]);
    const { is_correct: _, ...unmeasured } = episode;
    await expect(collectLog([await file(JSON.stringify(unmeasured), 'unmeasured.json')])).rejects.toThrow(/reward/);
  });
});

describe('given fields', () => {
  it('can be nested, override the recognised layout, and count true as 1', async () => {
    const row = { input: 'q', output: 'a', score: 0, meta: { ok: true, who: 'critic', id: 'e1' } };
    const given = { reward: 'meta.ok', agent: 'meta.who', episode: 'meta.id' };
    const log = await collectLog([await file(lines(row))], given);
    expect(log.batch.turns).toMatchObject([{ task: 'q', episode: 'e1', agent: 'critic', reward: 1 }]);
  });

  it('leave the other recognised fields as they are', async () => {
    const rows = [1, 2].map((step) => ({ input: 'q', output: 'a', score: 0, step, ok: step, q: 't' }));
    const log = await collectLog([await file(lines(...rows))], { task: 'q', reward: 'ok' });
    expect(log.batch.turns).toMatchObject([
      { task: '1/t', reward: 1 },
      { task: '2/t', reward: 2 },
    ]);
    expect([...log.steps]).toEqual([0, 1]);
  });

  it('subtract the penalty from the reward', async () => {
    const log = await collectLog([await file(lines({ t: 1, r: 1, p: 0.25 }))], {
      task: 't',
      reward: 'r',
      penalty: 'p',
    });
    expect(log.batch.turns).toMatchObject([{ task: '1', reward: 0.75 }]);
  });
});

describe('unreadable logs', () => {
  const given = { task: 't', reward: 'r' };
  it('a byte order mark is no fault, in lines and in a document; other encodings are', async () => {
    const row = '\ufeff{"t": 1, "r": 1}';
    for (const path of [await file(row), await file(row, 'log.json')])
      expect((await collectLog([path], given)).batch.turns).toMatchObject([{ task: '1', reward: 1 }]);
    const wide = await file(Buffer.from(row, 'utf16le'));
    await expect(collectLog([wide], given)).rejects.toThrow(/:1: expected UTF-8 text/);
  });

  it.each([
    ['{"t": 1, "r": 1}\n{"t": 1, oops}\n', /:2: expected one JSON object, got .*oops/],
    ['{"t": 1, "r": NaN}\n', /:1: .*NaN and Infinity are not JSON/],
    ['{"t": 1, "r": 1}\n\n[1]\n', /:3: expected a JSON object, got "\[1\]"/],
    ['{"t": 1, "r": "much"}\n', /:1: r: expected a number, got "\\"much\\""/],
    ['{"r": 1}\n', /:1: t: expected a name, got nothing; the row has r$/],
    ['', /expected at least one turn, found none/],
  ])('%j', async (content, message) => {
    const failed = collectLog([await file(content)], given);
    await expect(failed).rejects.toThrow(message);
    await expect(failed).rejects.toThrow(LogError);
  });

  it('unknown layouts: the error lists the fields and the flags', async () => {
    const failed = collectLog([await file(lines({ question: 'q', points: 1 }))]);
    await expect(failed).rejects.toThrow(/:1: unknown layout: .*--task and --reward.*question, points/);
  });

  it('agents without episodes; nested logs with field names', async () => {
    const flat = await file(lines({ t: 1, r: 1, a: 'x' }));
    await expect(collectLog([flat], { ...given, agent: 'a' })).rejects.toThrow(/--agent needs --episode/);
    const nested = await file(lines({ task: { id: 't' }, sample: 0, score: { team: 1 }, turns: [] }));
    await expect(collectLog([nested], { agent: 'a' })).rejects.toThrow(/need no field names/);
  });

  it('omits a last line that was cut off, with a notice', async () => {
    const log = await collectLog([await file('{"t":1,"r":1}\n{"t":1,"r')], given);
    expect(log.batch.turns).toHaveLength(1);
    expect(log.notices.join()).toMatch(/last line is cut off/);
  });

  it('tells of steps that come again, as in the log of a resumed run', async () => {
    const rows = (...steps: number[]) =>
      lines(...steps.map((step) => ({ prompt: 'p', completion: 'c', step, reward: 1 })));
    const noticesOf = async (...steps: number[]) => (await collectLog([await file(rows(...steps))])).notices;
    expect((await noticesOf(1, 1, 2, 2, 3, 2, 3)).at(-1)).toMatch(
      /^rows of step 2 follow rows of later steps; .*twice$/,
    );
    expect((await noticesOf(3, 3, 1, 2, 2)).join()).not.toContain('follow');
  });

  it('joins lines that span chunks', async () => {
    const text = 'ä'.repeat(700_000);
    const log = await collectLog(
      [await file(lines({ t: 1, r: 1, text }, { t: 2, r: 0, text }, { t: 3, r: 1 }))],
      given,
    );
    expect(log.batch.turns.map(({ task }) => task)).toEqual(['1', '2', '3']);
  });
});
