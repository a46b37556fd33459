import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EndpointError } from '@drmas/engine/errors';
import { system, type TaskSource, user } from '@drmas/engine/nouns';
import { nodeFiles, nodeHost } from '@drmas/engine/platform';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { chatServer, refuse, say } from '../../../../test/support/chat-server.js';
import { drmas, plainRecipe } from '../../../../test/support/command-line.js';
import { temporaryRoot, tinyDefinition, trainTiny } from '../../../../test/support/tiny-run.js';
import { improvementLines, roundLines } from '../../../cli/reporter/comparison/improvement-printer.js';
import { defineRecipe } from '../../../method/recipe/define.js';
import { frozen } from '../../../method/recipe/frozen.js';
import { type Recipe, systemPromptOf } from '../../../method/recipe/recipe.js';
import { overridesOf } from '../../../method/recipe/settings-file.js';
import {
  type ImprovementRecord,
  type ImprovementRound,
  PROMPTS,
  readImprovement,
  readRounds,
} from '../../../method/store/improvement-record.js';
import { agent } from '../../../teams/team/agent.js';
import { defineTeam } from '../../../teams/team/team.js';
import { resolveRecipe } from '../../composition/resolve-recipe.js';
import { type Improvement, improvePrompts } from './improve-prompts.js';
import { bestOf, parentOf, poolScore } from './prompt-pool.js';

const root = temporaryRoot();
const host = nodeHost({ threads: 1 });

const team = defineTeam({
  name: 'adders',
  task: z.object({ question: z.number() }),
  agents: { adder: agent({ system: 'Add one.' }), checker: agent({ system: 'Copy.' }) },
  async play({ task, agents }) {
    const sum = await agents.adder(`${task.question}`);
    return (await agents.checker(sum.text)).text;
  },
  reward: ({ task, outcome }) => outcome === `${task.question + 1}`,
});

const numbers: TaskSource = {
  name: 'numbers',
  load: async (split) => ({
    name: 'numbers',
    size: 1000,
    at: (index) => ({ id: `${split}-${index}`, data: { question: index } }),
  }),
};

type Answer = (text: string, index: number) => string;

/**
 * A server with two models. `actor` adds one only to even numbers; to all numbers if its prompt has the words "any
 * number", and to none if it has "no number". `writer` proposes the prompts of the test, in order.
 */
async function servers(
  proposals: readonly (string | ((write: Answer) => string) | 'down')[],
  isSolved = (system: string, input: string) =>
    !system.includes('no number') && (Number(input) % 2 === 0 || system.includes('any number')),
) {
  let count = 0;
  const read: string[] = [];
  const systems: string[] = [];
  const server = await chatServer(({ body: { model, messages } }, response) => {
    const [system, input] = [messages[0]?.content ?? '', messages.at(-1)?.content ?? ''];
    systems.push(system);
    if (model === 'writer') {
      read.push(input);
      const proposal = proposals[count++] ?? '';
      return proposal === 'down' ? refuse(response, 401) : say(response, proposal as string);
    }
    if (system.startsWith('Copy')) return say(response, input);
    say(response, isSolved(system, input) ? `${Number(input) + 1}` : 'What?');
  });
  return { url: server.url, read, systems, answered: () => count, requests: () => systems.length };
}

const recipeAt = (url: string, overrides: readonly string[] = []): Recipe =>
  resolveRecipe(
    defineRecipe({
      team,
      tasks: numbers,
      assign: { adder: frozen({ url, model: 'actor' }), checker: frozen({ url, model: 'actor' }) },
      evaluation: { tasks: 20, samples: 1 },
    }),
    { overrides, allFrozen: true },
  );

const recordOf = (changes: Partial<ImprovementRecord> = {}): ImprovementRecord => ({
  version: 1,
  source: 'adders',
  codeHash: '',
  overrides: [],
  agents: ['adder'],
  endpoint: { url: 'http://127.0.0.1:1/v1', model: 'writer' },
  proposals: 2,
  tasks: 16,
  samples: 2,
  ...changes,
});

async function improvement(url: string, changes: Partial<ImprovementRecord> = {}): Promise<Improvement> {
  const directory = join(await mkdtemp(join(root, 'improvement-')), 'prompts');
  const endpoint = { type: 'endpoint', url, model: 'writer', timeoutMs: 5000, retries: 0 } as const;
  const recipe = recipeAt(url);
  return { recipe, directory, record: recordOf(changes), endpoint: { ...endpoint, concurrency: 8, body: {} } };
}

const proposal = (prompt: string) => `The adder fails on odd numbers.\n<prompt>\n${prompt}\n</prompt>`;
const better = 'Add one to any number.';

describe('improving prompts', () => {
  it('keeps a prompt that wins on the same tasks, and reports its score on held-out tasks', async () => {
    const { url, read, requests } = await servers([proposal('Add one to no number.'), proposal(better)]);
    const request = await improvement(url);
    const { prompts, rounds, heldOut } = await improvePrompts(request, host);
    expect(prompts).toEqual({ adder: better });
    expect(rounds.map(({ round, kept }) => [round, kept])).toEqual([
      [0, false],
      [1, false],
      [2, true],
    ]);
    const [first, worse, won] = rounds;
    expect(first?.failures.length).toBeGreaterThan(0);
    expect(worse?.comparison?.mean).toBeCloseTo(-(worse?.score ?? 0), 12);
    expect(worse?.comparison?.interval?.high).toBeLessThan(0);
    expect(won?.comparison?.after).toEqual(Array(16).fill(1));
    expect(won?.comparison?.interval?.low).toBeGreaterThan(0);
    expect(won).toMatchObject({ score: 1, failures: [] });
    expect(heldOut).toMatchObject({ first: { averageAtK: 0.5, tasks: 20 }, last: { averageAtK: 1 }, mean: 0.5 });
    // The language model reads the failures, the prompts and earlier proposals.
    expect(read[0]).toMatch(/task: \{"question":\d*[13579]\}\nadder reads \(user\): \d+\nadder writes: What\?/);
    expect(read[0]).not.toContain('<tried');
    expect(read[1]).toMatch(/<tried result="not kept" difference="-[\d.]+ points">\nAdd one to no number\.\n<\/tried>/);
    // The directory stores all rounds, and the prompts as settings for `--set @FILE`.
    const record = await readImprovement(nodeFiles, request.directory);
    expect(record).toMatchObject({ agents: ['adder'], result: { mean: 0.5 } });
    expect(await readRounds(nodeFiles, request.directory)).toEqual(rounds);
    expect(await readdir(join(request.directory, 'episodes'))).toContain('round-2-after.jsonl');
    const overrides = overridesOf(join(request.directory, PROMPTS));
    expect(overrides).toEqual([`agents.adder.system="${better}"`]);
    const improved = recipeAt(url, overrides);
    expect([systemPromptOf(improved, 'adder'), systemPromptOf(improved, 'checker')]).toEqual([better, 'Copy.']);

    // Started again, it plays nothing, asks nothing, and keeps its result.
    const [stored, calls] = [await readFile(join(request.directory, 'improvement.json'), 'utf8'), requests()];
    const seen: ImprovementRound[] = [];
    const again = await improvePrompts({ ...request, onRound: (round) => void seen.push(round) }, host);
    expect(again).toMatchObject({ prompts, rounds, isStored: true, heldOut: { mean: 0.5 } });
    expect([seen, requests()]).toEqual([rounds, calls]);
    expect(await readFile(join(request.directory, 'improvement.json'), 'utf8')).toBe(stored);
    const printed = improvementLines(again, request, 200).join('\n');
    expect(printed).toMatch(/^the improvement had ended, so nothing was played; --proposals N allows more/);
    // No agent of it trains. Long commands are folded.
    expect(printed.replace(/ \\\n\s*/g, ' ')).toMatch(/drmas evaluate .*adders'? --set '?@.+prompts\.json'?$/);
    // With more proposals it ends at once, since nothing fails any more, and says so.
    const more = { ...request, record: { ...request.record, proposals: 5 } };
    expect(improvementLines(await improvePrompts(more, host), more, 200).join('\n')).toContain(
      'ended after 2 of at most 5 proposals: no episode failed any more',
    );
    expect(requests()).toBe(calls);
  });

  it('shows the language model the schema that play adds to a prompt, once and apart', async () => {
    const responseSchema = { type: 'object', properties: { sum: { type: 'integer' } }, required: ['sum'] };
    const { url, read, systems } = await servers([
      proposal('Add one to any number.\nAnswer with JSON of this schema alone: {"type":"object"}'),
    ]);
    const request = await improvement(url, { proposals: 1, tasks: 16, samples: 1 });
    const play: typeof team.play = async ({ task, agents }) =>
      (await agents.adder([system('Add one.'), user(`${task.question}`)], { responseSchema })).text;
    const { system: _, ...bare } = team.agents.adder;
    const asking = { ...team, agents: { ...team.agents, adder: bare }, play } as never;
    const recipe = resolveRecipe(
      defineRecipe({
        team: asking,
        tasks: numbers,
        assign: { adder: frozen({ url, model: 'actor' }), checker: frozen({ url, model: 'actor' }) },
        evaluation: { tasks: 4, samples: 1 },
      }),
      { allFrozen: true },
    );
    const { rounds } = await improvePrompts({ ...request, recipe }, host);
    const shown = read[0] ?? '';
    expect(shown).toContain('<agent name="adder">\nAdd one.\n</agent>');
    expect(shown.split(JSON.stringify(responseSchema))).toHaveLength(2);
    expect(shown).toContain("adds the demand for JSON of this schema to the prompt of 'adder'; do not repeat it");
    expect(rounds[1]?.prompt).toBe('Add one to any number.');
    const played = systems.filter((each) => each.startsWith('Add one to any'));
    expect(new Set(played)).toEqual(
      new Set([`Add one to any number.\nAnswer with JSON of this schema alone: ${JSON.stringify(responseSchema)}`]),
    );
  });

  it('plays both prompts on the same tasks with the same numbers of samples, new tasks in each round', {
    tags: 'verify',
  }, async () => {
    const { url } = await servers([proposal('Add one to the number.'), proposal('Add 1.')]);
    const request = await improvement(url);
    const { rounds, prompts, heldOut } = await improvePrompts(request, host);
    expect(rounds.slice(1).map(({ comparison, kept }) => [comparison?.mean, kept])).toEqual([
      [0, false],
      [0, false],
    ]);
    expect([prompts, heldOut]).toEqual([{}, undefined]);
    const tasksOf = async (name: string) =>
      (await readFile(join(request.directory, 'episodes', `${name}.jsonl`), 'utf8'))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).task.id as string);
    const [first, before, after] = await Promise.all(['round-0-first', 'round-1-before', 'round-1-after'].map(tasksOf));
    expect(after).toEqual(before);
    expect(new Set([...(first ?? []), ...(before ?? [])]).size).toBe(32);
  });

  it('counts answers without a prompt as proposals, and plays nothing for them', async () => {
    const answers = [
      'garbage',
      "I'm sorry, I can't help with that.",
      '<prompt> </prompt>',
      proposal('Add one.'),
      '{"a"',
    ];
    const { url, answered } = await servers(answers);
    const { rounds, prompts } = await improvePrompts(await improvement(url, { proposals: 5 }), host);
    expect(rounds.slice(1).map(({ problem }) => problem)).toEqual([
      expect.stringContaining("no prompt between <prompt> and </prompt> in the answer: 'garbage'"),
      expect.stringContaining("can't help"),
      'the prompt is empty',
      'it is the prompt that the agent has',
      expect.stringContaining('no prompt'),
    ]);
    expect([prompts, answered()]).toEqual([{}, 5]);
  });

  it('improves agents in turns, and does not play a rejected prompt again', { tags: 'verify' }, async () => {
    const { url, read } = await servers([proposal('Add!'), proposal('Copy it.'), proposal('Add!')]);
    const request = await improvement(url, { agents: ['adder', 'checker'], proposals: 3 });
    const { rounds } = await improvePrompts(request, host);
    expect(rounds.slice(1).map(({ agent }) => agent)).toEqual(['adder', 'checker', 'adder']);
    expect(read.map((text) => /for the agent '(\w+)'/.exec(text)?.[1])).toEqual(['adder', 'checker', 'adder']);
    expect(rounds.at(-1)?.problem).toBe('it was tried before');
  });

  it('leaves out episodes whose reward failed, and says how many have a score', { tags: 'verify' }, async () => {
    const { url } = await servers([proposal(better)]);
    const request = await improvement(url, { proposals: 1 });
    const { reward: whole } = team;
    if (whole === undefined) throw new Error('the team has a reward');
    const reward: typeof whole = (episode) => {
      if (episode.task.question % 4 === 1) throw new Error('the scorer is down');
      return whole(episode);
    };
    const failing = { ...request, recipe: { ...request.recipe, team: { ...team, reward } } };
    const { rounds, heldOut } = await improvePrompts(failing, host);
    const [first, won] = rounds;
    expect(first?.failures.join()).not.toContain('the scorer is down');
    expect(won?.comparison?.after).toEqual(won?.comparison?.before.map(() => 1));
    const { episodes = 0, unscored = 0 } = won?.comparison ?? {};
    expect(episodes).toBe(64);
    expect(won?.comparison?.before).toHaveLength((episodes - unscored) / 4); // two samples with each set
    expect(won).toMatchObject({ kept: true, score: 1, failures: [] });
    expect(heldOut).toMatchObject({ episodes: 40, unscored: 2 * (heldOut?.first.unscored ?? 0) });
    expect(heldOut?.last).toMatchObject({ averageAtK: 1 });
    const text = roundLines(won as ImprovementRound, 200).join();
    expect(text).toContain(`(${episodes - unscored} of 64 episodes scored): kept`);
  });

  it('ends if nothing fails', async () => {
    const { url, answered } = await servers([]);
    const done = await improvement(url);
    const recipe = recipeAt(url, [`agents.adder.system=${better}`]);
    const { rounds } = await improvePrompts({ ...done, recipe }, host);
    expect([rounds.length, rounds[0]?.score, answered()]).toEqual([1, 1, 0]);
  });

  it('keeps in a pool prompts that are good at different tasks, and changes others than the best too', {
    tags: 'verify',
  }, async () => {
    const [first, last, wrong, both] = ['Add one below 5.', 'Add one above 2.', 'Add one to no number.', better];
    const { url, read } = await servers([first, last, wrong, both].map(proposal), (system, input) => {
      const digit = Number(input) % 10;
      const isBelow = digit < 5 && system.includes('below 5');
      return isBelow || (digit > 2 && system.includes('above 2')) || system.includes('any number');
    });
    const request = await improvement(url, { proposals: 6, tasks: 12, samples: 1, pool: 20 });
    const { prompts, rounds, heldOut } = await improvePrompts(request, host);
    expect(prompts).toEqual({ adder: both });
    expect(rounds.map(({ kept, parent }) => [kept, parent])).toEqual([
      [false, undefined],
      [true, 0],
      [true, 1],
      [false, 1], // the second candidate solves more, the first other tasks
      [true, 1],
    ]);
    const scores = rounds.map((round) => round.scores && [round.scores.length, poolScore({ scores: round.scores })]);
    expect([scores[0], scores[3], scores[4]]).toEqual([[20, 0], undefined, [20, 1]]);
    expect(scores[2]?.[1]).toBeGreaterThan(scores[1]?.[1] ?? 1);
    const tasksOf = async (name: string) =>
      (await readFile(join(request.directory, 'episodes', `${name}.jsonl`), 'utf8'))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).task.id as string);
    const pool = new Set(await tasksOf('round-0-pool'));
    expect(new Set(await tasksOf('round-4-pool'))).toEqual(pool);
    expect((await tasksOf('round-4-after')).filter((task) => pool.has(task))).toEqual([]);
    expect(read.at(-1)).toContain(`<tried result="not kept"`);
    expect(heldOut).toMatchObject({ first: { averageAtK: 0 }, last: { averageAtK: 1 } });
    expect(roundLines(rounds[4] as ImprovementRound, 200).join()).toContain("kept, 100.0 % of the pool's tasks");
    const again = await improvePrompts(request, host); // all rounds are there: nothing is asked or played again
    expect(again.rounds).toEqual(rounds);
    expect(read).toHaveLength(4);
  });

  it('stops if the language model does not answer, and resumes there', { tags: 'verify' }, async () => {
    const { url } = await servers([proposal('Add!'), 'down', proposal(better)]);
    const request = await improvement(url);
    await expect(improvePrompts(request, host)).rejects.toThrow(EndpointError);
    expect(await readRounds(nodeFiles, request.directory)).toHaveLength(2);
    const { prompts, rounds } = await improvePrompts(request, host);
    expect([prompts, rounds.length]).toEqual([{ adder: better }, 3]);
  });

  it('resumes after an interruption without a difference', { tags: 'verify' }, async () => {
    const proposals = [proposal('Add!'), proposal(better)];
    const whole = await improvePrompts(await improvement((await servers(proposals)).url), host);
    const { url } = await servers([...proposals.slice(0, 1), ...proposals]);
    const controller = new AbortController();
    const request = await improvement(url);
    let begun = 0;
    const listener = {
      episode: () => ({ ended: () => void (++begun === 50 && controller.abort(new Error('Ctrl-C'))) }),
    };
    const interrupted = nodeHost({ threads: 1, signal: controller.signal, listener });
    await expect(improvePrompts(request, interrupted)).rejects.toThrow('Ctrl-C');
    expect(await readRounds(nodeFiles, request.directory)).toHaveLength(1);
    const { rounds, prompts } = await improvePrompts(request, host);
    const timeless = (all: readonly object[]) => JSON.parse(JSON.stringify(all));
    expect([timeless(rounds), prompts]).toEqual([timeless(whole.rounds), whole.prompts]);
  });

  it('refuses a directory with other content, or with another improvement', async () => {
    const { url } = await servers([]);
    const request = await improvement(url, { proposals: 1 });
    await improvePrompts(request, host);
    const other = { ...request, record: { ...request.record, tasks: 8 } };
    await expect(improvePrompts(other, host)).rejects.toThrow(/was begun with other settings/);
    const full = await mkdtemp(join(root, 'full-'));
    await writeFile(join(full, 'notes'), '');
    await expect(improvePrompts({ ...request, directory: full }, host)).rejects.toThrow(/is not an improvement/);
  });
});

describe('the pool of an improvement', () => {
  const candidate = (round: number, ...scores: (number | null)[]) => ({ round, prompts: {}, scores });
  const drawn = (...pool: ReturnType<typeof candidate>[]) =>
    Array.from({ length: 100 }, (_, i) => parentOf(pool, i / 100).round);
  const count = (rounds: readonly number[], round: number) => rounds.filter((one) => one === round).length;

  it('draws a candidate as often as the number of tasks at which it is best', () => {
    const rounds = drawn(candidate(0, 0, 0, 0, 0), candidate(1, 1, 1, 1, 0), candidate(2, 0, 0, 0, 0.5));
    expect([0, 1, 2].map((round) => count(rounds, round))).toEqual([0, 75, 25]);
  });

  it('leaves out a candidate if others are as good at each of its tasks', () => {
    expect(drawn(candidate(0, 1, 0, 0), candidate(1, 1, 1, 0), candidate(2, 0, 0, 1))).not.toContain(0);
    expect(new Set(drawn(candidate(0, 0, 0), candidate(1, 0, 0)))).toEqual(new Set([0]));
  });

  it('takes no notice of tasks without a score', () => {
    expect(new Set(drawn(candidate(0, null, 0.5), candidate(1, null, 1)))).toEqual(new Set([1]));
    expect(parentOf([candidate(0, null), candidate(1, null)], 0.9).round).toBe(0);
    expect(bestOf([candidate(0, 1, null), candidate(1, 1, 1), candidate(2, 0, 1)]).round).toBe(0);
  });
});

describe('improving the prompts of a run', () => {
  it('plays its checkpoint, and refuses prompts that its models cannot read', { tags: 'verify' }, async () => {
    const { url } = await servers([proposal('Add one!'), proposal('<verifier>')]);
    const definition = tinyDefinition();
    const recipe = resolveRecipe(definition);
    const checkpoint = await (await trainTiny(root, recipe)).latestCheckpoint();
    const request = await improvement(url, { agents: ['solver'], tasks: 4 });
    const { rounds } = await improvePrompts({ ...request, recipe, checkpoint }, host);
    expect(rounds[1]?.problem).toMatch(/^the agent's model cannot read it: /);
    expect(rounds[2]?.comparison?.after).toHaveLength(4);
    const firstTurn = async ({ directory }: Improvement, round: string) => {
      const [line] = (await readFile(join(directory, 'episodes', `${round}.jsonl`), 'utf8')).split('\n');
      return JSON.parse(line ?? '').turns[0];
    };
    const [system] = (await firstTurn(request, 'round-2-after')).messages;
    expect(system).toEqual({ role: 'system', content: '<verifier>' });
    const untrained = await improvement(url, { agents: ['solver'], tasks: 4 });
    await improvePrompts({ ...untrained, recipe }, host);
    const [after, before] = await Promise.all([request, untrained].map((each) => firstTurn(each, 'round-0-first')));
    expect(after.prompt).toEqual(before.prompt);
    expect(after.logprobs).not.toEqual(before.logprobs);
  });
});

describe('drmas improve', () => {
  const url = 'http://127.0.0.1:9/v1';
  const words = ['improve', 'math', '--endpoint', url, '--model', 'writer'];

  it('reports its cost with --dry-run, and sends no request', async () => {
    const { code, out } = await drmas([...words, '--dry-run', '--tasks', '10', '--samples', '2', '--proposals', '3']);
    expect(code).toBe(0);
    expect(out).toContain('prompts   of solver, verifier in math, at the start of reinforcement');
    expect(out).toContain('at most 3 times');
    expect(out).toContain('at most 140 in rounds of 10 tasks x 2');
    // The recipe has one held-out task.
    const file = join(root, 'plain.ts');
    await writeFile(file, plainRecipe);
    const plain = ['improve', file, ...words.slice(2), '--set', 'evaluation.samples=3', '--dry-run'];
    expect((await drmas(plain)).out).toContain('and 6 on held-out tasks');
  });

  it('takes the former --prompts, which is unnecessary now', async () => {
    const { code, err } = await drmas([...words, '--dry-run', '--prompts']);
    expect({ code, err }).toEqual({
      code: 0,
      err: '--prompts is now unnecessary; the old name works in this version only\n',
    });
  });

  it.each([
    [['improve', 'math'], /who proposes\? --endpoint names/],
    [[...words, '--agents', 'solvr'], /no agent 'solvr'; did you mean 'solver'/],
    [[...words, '--set', '@nowhere.json'], /nowhere\.json holds no settings/],
    [['improve', 'math', '--endpoint', 'nowhere', '--model', 'writer'], /endpoint\.url/],
  ])('refuses %j before anything is created', async (given, message) => {
    const { code, out, err } = await drmas(given);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
  });

  it('improves, is interrupted, and explains how to resume', { tags: 'verify' }, async () => {
    const rounds = { round: 1, agent: 'solver', problem: 'the prompt is empty', kept: false, score: 0.5, failures: [] };
    const controller = new AbortController();
    const improvePrompts = async ({ directory, onRound }: Improvement) => {
      onRound?.(rounds);
      if (directory.endsWith('cut')) {
        controller.abort(new Error('interrupted'));
        throw controller.signal.reason;
      }
      return { directory, prompts: {}, rounds: [rounds] };
    };
    const typed = { improvePrompts, signal: controller.signal };
    const done = await drmas([...words, '--run', join(root, 'whole')], typed);
    expect(done).toMatchObject({ code: 0, err: '' });
    expect(done.out).toMatch(/proposal 1, solver: not tried: the prompt is empty\n\nno episode failed/);
    const json = await drmas([...words, '--run', join(root, 'whole'), '--json'], typed);
    expect(
      json.out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).type),
    ).toEqual(['round', 'improvement']);
    const cut = await drmas([...words, '--run', join(root, 'cut')], typed);
    expect(cut.code).toBe(130);
    expect(cut.out).toMatch(/interrupted; resume with: npx drmas improve .*cut\n/);
  });
});
