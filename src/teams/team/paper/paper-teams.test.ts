/** The paper's form of both teams against transcripts of the paper's own code (test/goldens/README.md, paper-teams). */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { golden, goldenNames } from '../../../../test/goldens.js';
import { playScripted, scriptedContext } from '../../../runs/testing/play-scripted.js';
import { scriptedSampler } from '../../../runs/testing/scripted-sampler.js';
import { playEpisode } from '../../rollout/play-episode.js';
import { passageOf } from '../../tasks/retrieval/corpus.js';
import { searchTeam } from '../search.js';
import { solverVerifier } from '../solver-verifier.js';
import type { Reply, Team } from '../team.js';
import { playPaperSearch } from './paper-search.js';

type Messages = { role: string; content: string }[];

interface Suite {
  readonly agents: readonly string[];
  readonly loops: number;
  readonly penalty: number;
  /** The retrieval server's passages by query. */
  readonly passages: Readonly<Record<string, readonly string[]>>;
  readonly replies: readonly string[];
  readonly episodes: readonly {
    readonly question: string;
    readonly truth: string | string[];
    readonly reward: number;
    /** Agent, reply, whether it is valid, the reward that trains it, the environment's step, the prompt or its hash. */
    readonly rows: readonly (readonly [number, number, boolean, number, number, string | Messages])[];
  }[];
}

const names: Readonly<Record<string, string>> = {
  'Solver Agent': 'solver',
  'Verifier Agent': 'verifier',
  'Search Agent': 'searcher',
  'Answer Agent': 'answerer',
};

function teamOf(name: string, { passages, ...suite }: Suite): Team {
  const options = { form: 'paper', prompts: 'paper', invalidPenalty: suite.penalty } as const;
  if (name.startsWith('math')) return solverVerifier({ ...options, maxLoops: suite.loops }) as Team;
  const search = async (query: string, topk: number) =>
    (passages[query] ?? [`"About"\nA page about ${query}.`]).slice(0, topk).map(passageOf);
  return searchTeam({ ...options, retriever: { search }, maxTurns: suite.loops }) as Team;
}

const digest = (messages: Messages) =>
  createHash('sha256')
    .update(messages.map(({ role, content }) => `${role}:${content}`).join(''))
    .digest('hex')
    .slice(0, 12);

describe("the paper's form", () => {
  it.each(goldenNames('paper-teams'))('repeats the original: %s', async (name) => {
    const suite = golden<Suite>(`paper-teams/${name}`);
    const team = teamOf(name, suite);
    for (const { question, truth, reward, rows } of suite.episodes) {
      const sampler = scriptedSampler(({ index }) => suite.replies[rows[index]?.[1] ?? -1] ?? '');
      const roomy = Object.keys(team.agents).map((agent) => [agent, sampler.policy(agent, 2 ** 20)]);
      const context = scriptedContext(team, sampler, { policies: Object.fromEntries(roomy) });
      const task = { id: 'task', data: { question, answer: truth } };
      const episode = await playEpisode(context, { team, task, sample: 0, phase: 'training', step: 1 });
      expect(episode.failure).toBeUndefined();
      const played = episode.turns.map(({ agent, valid, penalty, envStep, messages }, n) => ({
        agent,
        valid,
        envStep,
        reward: (episode.score.team ?? 0) - penalty,
        prompt: typeof rows[n]?.[5] === 'string' ? digest([...messages]) : messages,
      }));
      expect(played, question).toEqual(
        rows.map(([agent, _, valid, reward, envStep, prompt]) => ({
          agent: names[suite.agents[agent] ?? ''],
          valid,
          envStep,
          reward: expect.closeTo(reward, 6),
          prompt: typeof prompt === 'string' ? prompt : prompt.map(({ role, content }) => ({ role, content })),
        })),
      );
      expect(episode.score.team, question).toBe(reward);
    }
  });

  it('takes prompts of the user, and shows the searcher the verdict', async () => {
    const requests: string[] = [];
    const team = searchTeam({
      form: 'paper',
      retriever: { search: async () => [{ text: 'Ada reads.' }] },
      prompt: ({ agent, evidence, teammates }) => {
        requests.push(`${agent}: ${evidence.length} searches${teammates ?? ''}`);
        return agent;
      },
    });
    const lines = {
      verifier: ['<verify> no </verify>', 'unreadable'],
      searcher: ['<think>x</think><search>Ada</search>'],
      answerer: ['<think>x</think><answer>Bo</answer>'],
    };
    const { score } = await playScripted(team, { question: 'Who?', answer: 'Bo' }, lines);
    expect(score.team).toBe(1);
    expect(requests).toEqual([
      'verifier: 0 searches',
      'searcher: 0 searches\nThe output of "Verifier Agent": <verify>no</verify>\n',
      'verifier: 1 searches',
      'answerer: 1 searches',
    ]);
    const plain = solverVerifier({ form: 'paper', maxLoops: 2 });
    const { turns } = await playScripted(
      plain,
      { question: '1+1', answer: '2' },
      {
        solver: ['\\boxed{3}', '\\boxed{2}'],
        verifier: ['<verify>reject</verify>'],
      },
    );
    expect(turns.at(-1)?.messages.at(-1)?.content).toMatch(/^1\+1\n.*boxed\{3\}.*<verify>reject<\/verify>/s);
  });

  it('takes the last answer that ends, among many that only begin', async () => {
    const says = (value: string) => async () => ({ text: value, value, valid: true }) as Reply<never>;
    const answerOf = (query: string) =>
      playPaperSearch({
        question: 'Who?',
        agents: { verifier: says('no'), searcher: says(query), answerer: says('') },
        retriever: { search: async () => [] },
        maxTurns: 2,
        topk: 1,
        signal: new AbortController().signal,
        prompt: () => '',
      });
    const begun = '<answer>'.repeat(100_000);
    expect(await answerOf(begun)).toEqual({ answer: undefined });
    expect(await answerOf(`<answer>Al</answer> <answer>\n Bo <answer></answer>${begun}`)).toEqual({
      answer: 'Bo <answer>',
    });
  });

  it('refuses options of the other form', () => {
    const retriever = { search: async () => [] };
    expect(() => searchTeam({ retriever, form: 'paper', onLastTurn: 'fail' })).toThrow(
      "form: 'paper' decides onLastTurn",
    );
    expect(() => searchTeam({ retriever, prompts: 'paper' })).toThrow("prompts: 'paper' needs form: 'paper'");
    const both = { retriever, form: 'paper', prompts: 'paper' } as const;
    expect(() => searchTeam({ ...both, verifier: { system: 'x' } })).toThrow('decides system and prompt');
    expect(() => searchTeam({ ...both, prompt: () => '' })).toThrow('decides system and prompt');
    expect(() => solverVerifier({ form: 'paper', approve: '<yes>', reject: '<no>' })).toThrow(
      'decides approve, reject',
    );
  });
});
