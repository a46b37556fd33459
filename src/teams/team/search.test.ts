import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { playEpisode } from '../rollout/play-episode.js';
import { jsonl } from '../tasks/files/file-source.js';
import { bm25Retriever } from '../tasks/retrieval/bm25.js';
import { readCorpus } from '../tasks/retrieval/corpus.js';
import type { Passage } from '../tasks/retrieval/retriever.js';
import { type SearchTask, type SearchTeamOptions, searchTeam } from './search.js';
import type { Team } from './team.js';

const library: Record<string, Passage[]> = {
  'home of Ada': [{ title: 'Ada', text: 'Ada lives in Kodon.' }, { text: 'Ada reads.' }],
  Kodon: [{ title: 'Kodon', text: 'Kodon has a mayor, Bo.' }],
};
const question = 'Who is mayor where Ada lives?';
const evidenceOf = (query: string) =>
  `Search: ${query}\n${(library[query] ?? []).map(({ title, text }) => `- ${title ? `${title}: ` : ''}${text}`).join('\n') || '- nothing found'}`;

/** Plays one episode with these replies, in order. Returns the called agents, their evidence and the episode. */
async function play(replies: string[], options: Partial<SearchTeamOptions> = {}, data: Partial<SearchTask> = {}) {
  const searched: [string, number][] = [];
  const retriever = {
    search: async (query: string, topk: number) => {
      searched.push([query, topk]);
      return (library[query] ?? []).slice(0, topk);
    },
  };
  const team = searchTeam({ retriever, ...options }) as Team;
  const sampler = scriptedSampler(({ index }) => replies[index] ?? '');
  const task = { id: 'task', data: { question, answer: 'Bo', ...data } };
  const episode = await playEpisode(scriptedContext(team, sampler), {
    team,
    task,
    sample: 0,
    phase: 'training',
    step: 1,
  });
  return {
    agents: episode.turns.map(({ agent }) => agent),
    evidence: episode.turns.map(({ messages }) => messages.at(-1)?.content.split('Evidence:\n')[1]),
    penalties: episode.turns.map(({ penalty }) => penalty),
    outcome: episode.outcome,
    score: episode.score.team,
    failure: episode.failure,
    searched,
    episode,
  };
}

const yes = '<verify>yes</verify>';
const no = 'Not yet. <verify> No </verify>';
const search = (query: string) => `<search>${query}</search>`;
const answer = (name: string) => `So <answer>${name}</answer>.`;

describe('the search team', () => {
  it('searches until the verifier is content, then answers from all that was found', async () => {
    const played = await play([no, search('home of Ada'), no, search('Kodon'), yes, answer('Bo')]);
    const [one, two] = [evidenceOf('home of Ada'), evidenceOf('Kodon')];
    expect(played).toMatchObject({
      agents: ['verifier', 'searcher', 'verifier', 'searcher', 'verifier', 'answerer'],
      evidence: ['none yet', 'none yet', one, one, `${one}\n${two}`, `${one}\n${two}`],
      penalties: [0, 0, 0, 0, 0, 0],
      searched: [
        ['home of Ada', 3],
        ['Kodon', 3],
      ],
      outcome: { answer: 'Bo' },
      score: 1,
    });
    expect(played.episode.turns[0]?.messages).toEqual([
      { role: 'system', content: expect.stringContaining('<verify>yes</verify>') },
      { role: 'user', content: `Question: ${question}\nEvidence:\nnone yet` },
    ]);
  });

  it('answers at once after a yes of the verifier', async () => {
    expect(await play([yes, answer('Bo')])).toMatchObject({ agents: ['verifier', 'answerer'], searched: [], score: 1 });
  });

  it('answers after the last turn, with any evidence', async () => {
    const played = await play([no, search('home of Ada'), no, search('Kodon'), answer('Bo')], { maxTurns: 2 });
    expect(played.agents).toEqual(['verifier', 'searcher', 'verifier', 'searcher', 'answerer']);
    expect(played.evidence.at(-1)).toBe(`${evidenceOf('home of Ada')}\n${evidenceOf('Kodon')}`);
    expect((await play(Array(8).fill(no))).agents.length).toBe(9); // four turns by default
  });

  it('ends after a no of the last turn by option, and earns nothing', async () => {
    const replies = [no, search('home of Ada'), no, search('Kodon'), answer('Bo')];
    expect(await play(replies, { maxTurns: 2, onLastTurn: 'fail' })).toMatchObject({
      agents: ['verifier', 'searcher', 'verifier'],
      searched: [['home of Ada', 3]],
      outcome: { answer: undefined },
      score: 0,
      failure: undefined,
    });
    const content = await play([no, search('Kodon'), yes, answer('Bo')], { maxTurns: 2, onLastTurn: 'fail' });
    expect(content).toMatchObject({ agents: ['verifier', 'searcher', 'verifier', 'answerer'], score: 1 });
    expect((await play(Array(8).fill(no), { onLastTurn: 'fail' })).agents.length).toBe(7); // 4 verdicts, 3 searches
    const unreadable = { maxTurns: 1, onLastTurn: 'fail', onUnreadableVerdict: 'answer' } as const;
    expect((await play(['', answer('Bo')], unreadable)).agents).toEqual(['verifier', 'answerer']);
  });

  it('takes an unreadable verdict for no, or by option for yes, and charges for it', async () => {
    for (const verdict of ['', 'yes', '<verify>maybe</verify>', '<verify>yes']) {
      const searching = await play([verdict, search('Kodon'), yes, answer('Bo')]);
      expect(searching.agents).toEqual(['verifier', 'searcher', 'verifier', 'answerer']);
      expect(searching.penalties).toEqual([0.01, 0, 0, 0]);
      const answering = await play([verdict, answer('Bo')], { onUnreadableVerdict: 'answer', invalidPenalty: 0.5 });
      expect(answering).toMatchObject({ agents: ['verifier', 'answerer'], penalties: [0.5, 0] });
    }
  });

  it('skips an empty query, or by option searches the question, and charges for it', async () => {
    for (const query of ['', 'Kodon', search(''), search(' ')]) {
      const passed = await play([no, query, yes, answer('Bo')]);
      expect(passed).toMatchObject({ searched: [], penalties: [0, 0.01, 0, 0] });
      expect(passed.evidence).toEqual(['none yet', 'none yet', 'none yet', 'none yet']);
      const played = await play([no, query, yes, answer('Bo')], { onEmptyQuery: 'question' });
      expect(played).toMatchObject({ searched: [[question, 3]], penalties: [0, 0.01, 0, 0] });
      expect(played.evidence[2]).toBe(evidenceOf(question));
    }
    expect((await play(Array(8).fill(no))).agents).toEqual([
      ...Array(4).fill(['verifier', 'searcher']).flat(),
      'answerer',
    ]); // each spends its turn
  });

  it('notes that a query found nothing, or by option leaves no trace of it', async () => {
    const replies = [no, search('mayor'), no, search('Kodon'), yes, answer('Bo')];
    const noted = await play(replies);
    expect(noted.evidence.slice(2)).toEqual([
      ...Array(2).fill(evidenceOf('mayor')),
      ...Array(2).fill(`${evidenceOf('mayor')}\n${evidenceOf('Kodon')}`),
    ]);
    expect(noted.penalties).toEqual([0, 0, 0, 0, 0, 0]);
    const skipped = await play(replies, { onNoResults: 'skip' });
    expect(skipped.evidence.slice(2)).toEqual(['none yet', 'none yet', evidenceOf('Kodon'), evidenceOf('Kodon')]);
  });

  it('earns for an exact match with any right answer, and charges for an invalid answer', async () => {
    expect(await play([yes, answer(' the BO. ')])).toMatchObject({ score: 1, outcome: { answer: 'the BO.' } });
    expect(await play([yes, answer('Ada')])).toMatchObject({ score: 0, penalties: [0, 0] });
    expect(await play([yes, answer('Ada')], {}, { answer: ['Bo', 'Ada'] })).toMatchObject({ score: 1 });
    expect(await play([yes, 'Bo'])).toMatchObject({ score: 0, penalties: [0, 0.01], outcome: { answer: undefined } });
  });

  it('retrieves the set number of passages, from the retriever of the task', async () => {
    const one = await play([no, search('home of Ada'), yes, answer('Bo')], { topk: 1 });
    expect(one).toMatchObject({ searched: [['home of Ada', 1]] });
    expect(one.evidence[2]).toBe('Search: home of Ada\n- Ada: Ada lives in Kodon.');
    const corpora: unknown[] = [];
    const retriever = (task: SearchTask) => {
      corpora.push(task.corpus);
      return { search: async (query: string) => [{ text: `${query} in ${task.corpus}` }] };
    };
    const played = await play([no, search('q'), yes, answer('Bo')], { retriever }, { corpus: 'wiki' });
    expect([corpora, played.evidence[2]]).toEqual([['wiki'], 'Search: q\n- q in wiki']);
  });

  it('ends when a search fails, and lets a search know when it is over', async () => {
    const failing = { search: async () => Promise.reject(new Error('no index')) };
    expect(await play([no, search('q')], { retriever: failing })).toMatchObject({
      failure: { reason: 'error', message: 'no index' },
      score: 0,
    });
    let signal: AbortSignal | undefined;
    const watching = {
      search: async (_query: string, _topk: number, given: AbortSignal) => {
        signal = given;
        expect(given.aborted).toBe(false);
        return [];
      },
    };
    await play([no, search('q'), yes, answer('Bo')], { retriever: watching });
    expect(signal?.aborted).toBe(true);
  });

  it('accepts prompts, system prompts and parsers', async () => {
    const played = await play(['JA', 'Bo'], {
      verifier: { system: '', parse: (text) => (text === 'JA' ? 'yes' : 'no') },
      answerer: { system: 'Reply.', parse: (text) => text },
      prompt: ({ agent, question, evidence }) => `${agent}|${question}|${evidence.length}`,
    });
    expect(played.episode.turns.map(({ messages }) => messages)).toEqual([
      [{ role: 'user', content: `verifier|${question}|0` }],
      [
        { role: 'system', content: 'Reply.' },
        { role: 'user', content: `answerer|${question}|0` },
      ],
    ]);
    expect(played.score).toBe(1);
  });

  it('refuses options that make no sense', () => {
    const retriever = { search: async () => [] };
    expect(() => searchTeam({} as SearchTeamOptions)).toThrow(/^searchTeam\(\.\.\.\): retriever: expected a retriever/);
    expect(() => searchTeam({ retriever, maxTurns: 0 })).toThrow('maxTurns');
    expect(() => searchTeam({ retriever, topk: 1.5 })).toThrow('topk');
    expect(() => searchTeam({ retriever, onNoResults: 'stop' } as unknown as SearchTeamOptions)).toThrow('onNoResults');
    expect(() => searchTeam({ retriever, onLastTurn: 'stop' } as unknown as SearchTeamOptions)).toThrow('onLastTurn');
    expect(() => searchTeam({ retriever, turns: 3 } as SearchTeamOptions)).toThrow('turns');
    expect(() => searchTeam({ retriever, verifier: { parse: 'yes' } } as unknown as SearchTeamOptions)).toThrow(
      'verifier.parse',
    );
  });
});

const hotpot = join(import.meta.dirname, '../../../test/fixtures/hotpotqa');

describe('HotpotQA', () => {
  it('is played from its files: it searches for the question, and answers from the results', async () => {
    const passages = (await readCorpus(join(hotpot, 'corpus.jsonl'))).slice(0, 500);
    const team = searchTeam({ retriever: bm25Retriever(passages), onEmptyQuery: 'question', topk: 5 });
    const tasks = await jsonl<SearchTask>(join(hotpot, 'questions.jsonl')).load('test', team.task);
    expect(tasks.size).toBe(400);
    const task = tasks.at(0);
    const sampler = scriptedSampler(({ policy, prompt }) => {
      if (policy === 'verifier') return prompt.includes('Scott Derrickson (born') ? yes : no;
      return policy === 'answerer' ? answer('Yes') : '';
    });
    const { policies, ...context } = scriptedContext(team as Team, sampler);
    const roomy = Object.entries(policies).map(([name, policy]) => [name, { ...policy, context: 100_000 }]);
    const request = { team: team as Team, task, sample: 0, phase: 'evaluation', step: 0 } as const;
    const episode = await playEpisode({ ...context, policies: Object.fromEntries(roomy) }, request);
    expect(episode.turns.map(({ agent }) => agent)).toEqual(['verifier', 'searcher', 'verifier', 'answerer']);
    expect(episode.score).toMatchObject({ team: 1 });
  });
});
