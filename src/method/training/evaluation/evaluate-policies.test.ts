import type { EvaluationEvent } from '@drmas/engine/events';
import type { Episode, EpisodeGroup, Turn } from '@drmas/engine/nouns';
import { nodeFiles, nodeHost } from '@drmas/engine/platform';
import { createTokenizer } from '@drmas/engine/tokens';
import { describe, expect, it } from 'vitest';
import {
  filesOf,
  resumedTiny,
  stepsOf,
  temporaryRoot,
  tinyRecipe,
  trainTiny,
} from '../../../../test/support/tiny-run.js';
import { evaluateCheckpoint } from '../../../runs/run/execute/evaluate-run.js';
import { gradeMath } from '../../../teams/tasks/grading/math.js';
import { boxed } from '../../../teams/team/parsers.js';
import { solverVerifier } from '../../../teams/team/solver-verifier.js';
import { readEpisodes } from '../../store/episode-files.js';
import { evaluationEvent } from './evaluate-policies.js';

const root = temporaryRoot();

type Sample = readonly [answer: unknown, score: number];

const group = (id: string, samples: readonly Sample[]): EpisodeGroup => ({
  task: { id, data: {} },
  episodes: samples.map(([answer, team], sample) => ({
    task: { id, data: {} },
    sample,
    turns: [],
    // Two episodes with the same answer vote for the same, also if they found it in different ways.
    outcome: answer === undefined ? undefined : { answer, attempts: sample },
    score: { team, agents: {}, parts: {} },
  })),
});
const request = { step: 3, tasks: 4, samples: 4, level: 0.95 };

describe('an evaluation', () => {
  it('leaves episodes without a score out of all means, and counts them', () => {
    const [right, wrong] = [group('right', [['1', 1]]), group('wrong', [['1', 0]])].map(({ episodes }) => episodes[0]);
    const lost = (failure: object) => ({ ...right, score: { team: 0, agents: {}, parts: {} }, failure });
    const scorer = { reason: 'reward', message: 'fetch failed' };
    const late = { reason: 'timeout', message: 'not over', scoring: true };
    const groups = [
      { task: { id: 'a', data: {} }, episodes: [right, lost(scorer), lost(late)] },
      { task: { id: 'b', data: {} }, episodes: [lost(scorer)] },
      { task: { id: 'c', data: {} }, episodes: [wrong, lost({ reason: 'error', message: 'no' })] },
    ] as unknown as EpisodeGroup[];
    const event = evaluationEvent(groups, request, 0);
    expect(event).toMatchObject({ averageAtK: 0.5, reward: 0.5, tasks: 2, failed: 1, unscored: 3, episodes: 6 });
    const none = evaluationEvent(groups.slice(1, 2), request, 0);
    expect(none).toMatchObject({ tasks: 0, unscored: 1, episodes: 1 });
    for (const name of ['averageAtK', 'passAtK', 'majorityAtK', 'interval', 'passAt', 'reward', 'rewardInterval'])
      expect(none).not.toHaveProperty(name);
  });

  const right = (answer: string): Sample => [answer, 1];
  const wrong = (answer: string): Sample => [answer, 0];
  const failed: Sample = [undefined, 0];
  const groups = [
    group('half', [wrong('B'), right('A'), right('A'), wrong('C')]),
    group('none', [wrong('B'), failed, failed, wrong('C')]),
    group('all', [right('A'), right('A'), right('A'), right('A')]),
    group('tie, the wrong one first', [wrong('B'), right('A'), wrong('B'), right('A')]),
  ];

  it('measures how often a sample, one of the samples, and their majority is right', () => {
    expect(evaluationEvent(groups, request, 7)).toMatchObject({
      step: 3,
      split: 'test',
      tasks: 4,
      samples: 4,
      averageAtK: 0.5,
      passAtK: 0.75,
      majorityAtK: 0.5,
      seconds: 7,
    });
  });

  it('has the interval of the mean over tasks', () => {
    // The means of four draws from 1/2, 0, 1, 1/2 are distributed like eight coins: 95 % lie between 1/8 and 7/8.
    expect(evaluationEvent(groups, request, 0).interval).toEqual({ low: 0.125, high: 0.875, level: 0.95 });
    const ofOne = evaluationEvent([groups[2] as EpisodeGroup], request, 0);
    expect(ofOne.interval).toEqual({ low: expect.closeTo(0.025), high: 1, level: 0.95 });
    expect(ofOne.rewardInterval).toEqual({ low: 1, high: 1 });
  });

  it('has intervals of pass@k and maj@k too, and pass@k of fewer samples', () => {
    const event = evaluationEvent(groups, request, 0);
    // Means of four draws from 1, 0, 1, 1, and from 0, 0, 1, 1... (a tie goes to the answer seen first).
    expect(event.passInterval).toEqual({ low: 0.25, high: 1 });
    expect(event.majorityInterval).toEqual({ low: 0, high: 1 });
    // Two of four right: 1 - C(2, 2) / C(4, 2) = 5/6.
    expect(event.passAt).toEqual({ 1: 0.5, 2: expect.closeTo((5 / 6 + 0 + 1 + 5 / 6) / 4, 12), 4: 0.75 });
    expect(event.passAt?.[4]).toBe(event.passAtK);
    expect(event.passAt?.[1]).toBe(event.averageAtK);
  });

  it('is divided by the fields of its tasks, in order, with a part for those without one', () => {
    const known = groups.map((one, i) => ({
      ...one,
      task: { ...one.task, metadata: { level: [10, 9, undefined, 10][i] } },
    }));
    const { slices } = evaluationEvent(known, { ...request, by: ['level'] }, 0);
    expect(Object.keys(slices ?? {})).toEqual(['level']);
    const scores = Object.entries(slices?.level ?? {}).map(([name, part]) => [name, part.tasks, part.averageAtK]);
    expect(new Map(scores.map(([name, ...rest]) => [name, rest]))).toEqual(
      new Map([
        ['9', [1, 0]],
        ['10', [2, 0.5]],
        ['(none)', [1, 1]],
      ]),
    );
    expect(slices?.level?.['10']).toMatchObject({ passAtK: 1, majorityAtK: 0.5, passInterval: { high: 1 } });
    expect(evaluationEvent(groups, request, 0)).not.toHaveProperty('slices');
  });

  it('counts every benchmark once in their mean, however many tasks it has', () => {
    const named = groups.map((one, i) => ({
      ...one,
      task: { ...one.task, metadata: { benchmark: i < 3 ? 'long' : 'short' } },
    }));
    const { benchmarkMean, averageAtK } = evaluationEvent(named, { ...request, by: ['benchmark'] }, 0);
    expect(averageAtK).toBe(0.5);
    expect(benchmarkMean).toEqual({ averageAtK: 0.5, passAtK: (2 / 3 + 1) / 2, majorityAtK: (2 / 3 + 0) / 2 });
    expect(evaluationEvent(named, request, 0)).not.toHaveProperty('benchmarkMean');
  });

  it('gives failed episodes no vote, and accepts answers that JSON cannot represent', () => {
    const majority = (samples: readonly Sample[]) => evaluationEvent([group('one', samples)], request, 0).majorityAtK;
    expect(majority([failed, failed, failed, right('A')])).toBe(1);
    expect(majority([failed, failed])).toBe(0);
    expect(majority([[2n, 1], [3n, 0], [2n, 1], failed])).toBe(1);
    const found = (x: number) => new Map([['x', x]]);
    expect(
      majority([
        [found(1), 0],
        [found(2), 1],
        [found(2), 1],
      ]),
    ).toBe(1);
  });

  it('takes the mean success of the most frequent answer, whose samples may differ in it', () => {
    const majority = (samples: readonly Sample[]) => evaluationEvent([group('one', samples)], request, 0).majorityAtK;
    const samples: readonly Sample[] = [['A', 0], ['A', 1], ['A', 1], right('B')];
    expect(majority(samples)).toBe(2 / 3);
    expect(majority([...samples].reverse())).toBe(2 / 3);
  });

  it('gives an answer of null no vote, as `majorityAtK` does', () => {
    const { majorityAtK } = evaluationEvent([group('one', [[null, 0], [null, 0], right('A')])], request, 0);
    expect(majorityAtK).toBe(1);
  });

  it('keeps success, reward, parts and metrics apart', () => {
    const score = { team: 1.5, agents: { verifier: 0.3 }, parts: { correct: 1, swift: 0.5 } };
    const judged = { ...score, agentParts: { verifier: { verdicts: 0.3 } }, metrics: { trueVerdicts: 1 } };
    const failed = { team: 0, agents: {}, parts: {} };
    const [first] = group('one', [right('A')]).episodes as [Episode];
    const turns = [{ agent: 'verifier', valid: true, prompt: [0], response: [0] } as unknown as Turn];
    const episodes = [judged, { ...score, metrics: {} }, failed, failed].map((each) => ({
      ...first,
      turns,
      score: each,
    }));
    const event = evaluationEvent([{ task: first.task, episodes }], request, 0);
    expect(event).toMatchObject({
      averageAtK: 0.5,
      passAtK: 1,
      reward: 0.75,
      rewardInterval: { low: 0.75, high: 0.75 },
    });
    // Parts sum to the reward. A metric is averaged over the episodes that have it, an agent's part over those in which
    // it earns.
    expect(event.parts).toEqual({ correct: 0.5, swift: 0.25 });
    expect(event.metrics).toEqual({ trueVerdicts: 1 });
    expect(event.agents.verifier).toMatchObject({ reward: 0.15, parts: { verdicts: 0.3 } });
  });

  it('counts calls, invalid outputs and tokens of every agent', () => {
    const turn = (agent: string, valid: boolean, length: number) =>
      ({ agent, valid, prompt: [1, 2, 3], response: new Array<number>(length).fill(0) }) as unknown as Turn;
    const turns = [turn('solver', true, 4), turn('verifier', false, 1), turn('solver', false, 8)];
    const tokens = (read: number, written: number) => ({ tokens: { read, written, trained: 0 } });
    const earned = (reward: number) => ({ reward, rewardInterval: { low: reward, high: reward } });
    const [first, ...others] = group('one', [right('A'), right('A')]).episodes as [Episode, ...Episode[]];
    const { agents } = evaluationEvent([{ task: first.task, episodes: [{ ...first, turns }, ...others] }], request, 0);
    expect(agents).toEqual({
      solver: { turns: 2, callsPerEpisode: 1, invalid: 0.5, responseTokens: 6, ...tokens(6, 12), ...earned(1) },
      verifier: { turns: 1, callsPerEpisode: 0.5, invalid: 1, responseTokens: 1, ...tokens(3, 1), ...earned(1) },
    });
    const prices = { solver: { read: 1, write: 2, train: 9 } };
    const costly = evaluationEvent([{ task: first.task, episodes: [{ ...first, turns }] }], { ...request, prices }, 0);
    expect([costly.cost, costly.agents.solver?.cost, costly.agents.verifier?.cost]).toEqual([3e-5, 3e-5, undefined]);
    const episode = { ...first, turns, score: { ...first.score, agents: { verifier: 0.25 } } };
    const apart = evaluationEvent([{ task: first.task, episodes: [episode] }], request, 0).agents;
    expect(apart).toMatchObject({ solver: earned(1), verifier: earned(0.25) });
  });
});

describe('the episodes of an evaluation on disk', () => {
  it('can be graded again from their text, and played again from the checkpoint', { tags: 'verify' }, async () => {
    const team = solverVerifier({ solver: { system: '<solver>' }, verifier: { system: '<verifier>' } });
    // Answers at once to questions of one operation can be learnt in a second, well enough for some to be right.
    const sampling = { solver: { sampling: { maxTokens: 8 } }, verifier: { sampling: { maxTokens: 2 } } };
    const recipe = tinyRecipe({ team, agents: sampling }, [
      'tasks.train.operations=[1,1]',
      'tasks.train.warmStartOperations=[1,1]',
      'tasks.train.top=9',
      'tasks.train.demonstrations.worked=0',
      'model.width=16',
      'warmStart.steps=250',
      'warmStart.batch=16',
      'warmStart.learningRate=2e-2',
      'training.steps=1',
      'evaluation.tasks=16',
    ]);
    const run = await trainTiny(root, recipe);
    const events = (await run.events()).filter((event) => event.type === 'evaluation');
    expect(events.map(({ step }) => step)).toEqual([0, 1]);
    const { model } = Object.values(recipe.policies)[0] ?? {};
    if (model?.type !== 'tiny-decoder') throw new Error('expected a tiny decoder');
    const tokenizer = createTokenizer(model.tokenizer);
    for (const event of events) {
      const episodes = await readEpisodes(nodeFiles, run.evaluationEpisodesPath(event.step));
      expect(episodes).toHaveLength(32);
      const scores = episodes.map(({ turns, task, score }) => {
        for (const { response, text, finishReason } of turns)
          expect(tokenizer.decode(response)).toBe(finishReason === 'stop' ? `${text}<end>` : text);
        const last = turns.findLast(({ agent }) => agent === 'solver')?.text ?? '';
        const graded = Number(gradeMath(boxed(last), (task.data as { answer: string }).answer));
        expect(graded).toBe(score.team);
        return graded;
      });
      expect(event.averageAtK).toBeGreaterThan(0);
      expect(event.averageAtK).toBeCloseTo(scores.reduce((sum, score) => sum + score, 0) / scores.length, 12);
    }
    const last = await run.latestCheckpoint();
    if (last === undefined) throw new Error('expected a checkpoint');
    const again = await evaluateCheckpoint(recipe, last, nodeHost({ threads: 1 }));
    const comparable = ({ seconds: _, ...event }: EvaluationEvent) => event;
    expect(events[1]).toMatchObject(comparable(again.event));
  });
});

describe('evaluations with sampling settings of their own', () => {
  const greedy = ['evaluation.sampling.temperature=0', 'agents.verifier.evaluationSampling.maxTokens=1'];

  it('do not change the training, and apply to the run, its resumption and later evaluations', {
    tags: 'verify',
  }, async () => {
    const plain = await trainTiny(root, tinyRecipe());
    const recipe = tinyRecipe({}, greedy);
    const run = await trainTiny(root, recipe);
    expect(await stepsOf(run)).toEqual(await stepsOf(plain));
    const turns = (await readEpisodes(nodeFiles, run.evaluationEpisodesPath(4))).flatMap((episode) => episode.turns);
    expect(new Set(turns.map(({ temperature }) => temperature))).toEqual(new Set([0]));
    const verdicts = turns.filter(({ agent }) => agent === 'verifier');
    expect(Math.max(...verdicts.map(({ response }) => response.length))).toBe(1);
    const resumed = await resumedTiny(root, recipe, 2);
    expect(await filesOf(resumed)).toEqual(await filesOf(run));
    const last = await run.latestCheckpoint();
    if (last === undefined) throw new Error('expected a checkpoint');
    const { episodes } = await evaluateCheckpoint(recipe, last, nodeHost({ threads: 1 }));
    const answers = new Set(episodes.map(({ task, outcome }) => JSON.stringify([task.id, outcome])));
    expect(answers.size).toBe(new Set(episodes.map(({ task }) => task.id)).size);
  });
});
