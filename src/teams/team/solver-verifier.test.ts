import { symbolsTokenizer } from '@drmas/engine/internal/model/tokenizers/symbols';
import { describe, expect, it } from 'vitest';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { playEpisode } from '../rollout/play-episode.js';
import { arithmeticSymbols } from '../tasks/generated/arithmetic.js';
import { type SolverVerifierOptions, solverVerifier } from './solver-verifier.js';
import type { Team } from './team.js';

const symbols = { type: 'symbols', symbols: arithmeticSymbols, stop: '<end>', endOfUser: '<ask>' } as const;
const tokenizer = symbolsTokenizer({ ...symbols, endOfAssistant: '<end>' });
const roles = { solver: { system: '<solver>' }, verifier: { system: '<verifier>' } };

/** Plays one episode with these answers, in order. Returns the episode with the text of each prompt. */
async function play(answers: string[], options: SolverVerifierOptions = {}) {
  const team = solverVerifier({ ...roles, ...options }) as Team;
  const sampler = scriptedSampler(({ index }) => answers[index] ?? '<pad>', tokenizer);
  const task = { id: 'task', data: { question: '16a+8', answer: '24' } };
  const context = scriptedContext(team, sampler);
  const episode = await playEpisode(context, { team, task, sample: 0, phase: 'training', step: 1 });
  return {
    prompts: sampler.calls.map(({ prompt }) => prompt),
    outcome: episode.outcome,
    penalties: episode.turns.map(({ penalty }) => penalty),
    score: episode.score,
  };
}

const solve = '<solver>16a+8<ask>';
const verify = (draft: string) => `<verifier>16a+8<ask>${draft}<end>`;
const again = (draft: string, verdict: string) => `<solver>16a+8<ask>${draft}<end>${verdict}<ask>`;
const right = '\\boxed{24}';
const wrong = '\\boxed{12}';

describe('solver and verifier', () => {
  it('end with an approved draft', async () => {
    expect(await play([right, '<approve>'])).toEqual({
      prompts: [solve, verify(right)],
      outcome: { answer: '24', attempts: 1, verdicts: [{ answer: '24', approved: true }] },
      penalties: [0, 0],
      score: { team: 1, agents: {}, parts: { correct: 1 }, metrics: { trueVerdicts: 1 } },
    });
  });

  it('end with a wrong draft too, if it is approved', async () => {
    expect(await play([wrong, '<approve>'])).toMatchObject({ outcome: { answer: '12' }, score: { team: 0 } });
  });

  it('send a rejected draft back with the feedback; the last attempt is not judged and counts', async () => {
    expect(await play([wrong, '<reject>', right])).toMatchObject({
      prompts: [solve, verify(wrong), again(wrong, '<reject>')],
      outcome: { answer: '24', attempts: 2 },
      penalties: [0, 0, 0],
      score: { team: 1 },
    });
    expect(await play([right, '<reject>', wrong])).toMatchObject({ outcome: { answer: '12' }, score: { team: 0 } });
  });

  it('try up to maxLoops times, each time with only the latest draft', async () => {
    expect((await play([right], { maxLoops: 1 })).prompts).toEqual([solve]);
    expect(await play([wrong, '<reject>', '\\boxed{13}', '<reject>', right], { maxLoops: 3 })).toMatchObject({
      prompts: [
        solve,
        verify(wrong),
        again(wrong, '<reject>'),
        verify('\\boxed{13}'),
        again('\\boxed{13}', '<reject>'),
      ],
      outcome: { answer: '24', attempts: 3 },
    });
  });

  it('take an unreadable verdict for approval, or by option for rejection, and charge for it', async () => {
    const both = '<approve><reject>';
    for (const verdict of ['7', both, '']) {
      const approved = await play([right, verdict]);
      expect(approved).toMatchObject({ prompts: [solve, verify(right)], penalties: [0, 0.1] });
      const rejected = await play([wrong, verdict, right], { onUnreadableVerdict: 'reject' });
      expect(rejected.prompts).toEqual([solve, verify(wrong), again(wrong, verdict || '<reject>')]);
      expect(rejected.penalties).toEqual([0, 0.1, 0]);
    }
  });

  it('measure the share of true verdicts, unreadable ones among the false', async () => {
    const share = async (answers: string[], options?: SolverVerifierOptions) =>
      (await play(answers, options)).score.metrics?.trueVerdicts;
    expect(await share([wrong, '<approve>'])).toBe(0);
    expect(await share([right, '<reject>', right])).toBe(0);
    expect(await share([wrong, '<reject>', wrong])).toBe(1);
    expect(await share([right, '7'])).toBe(0);
    expect(await share([wrong, '<reject>', wrong, '<approve>'], { maxLoops: 3 })).toBe(0.5);
    expect(await share([right], { maxLoops: 1 })).toBeUndefined();
  });

  it('have different rewards if verdicts are rewarded, and pay for more drafts', async () => {
    const options = { maxLoops: 3, verdictReward: 0.5, attemptCost: 0.25 };
    expect((await play([wrong, '<reject>', right, '<reject>', right], options)).score).toEqual({
      team: 0.5,
      agents: { verifier: 0.25 },
      parts: { correct: 1, attempts: -0.5 },
      agentParts: { verifier: { verdicts: 0.25 } },
      metrics: { trueVerdicts: 0.5 },
    });
    expect((await play([right], { ...options, maxLoops: 1 })).score).toMatchObject({
      team: 1,
      agents: { verifier: 0 },
    });
  });

  it('charge for a draft without an answer, which the verifier judges all the same', async () => {
    expect(await play(['a+8=24', '<approve>'], { invalidPenalty: 0.5 })).toMatchObject({
      prompts: [solve, verify('a+8=24')],
      outcome: { answer: undefined, attempts: 1 },
      penalties: [0.5, 0],
      score: { team: 0 },
    });
  });

  it('accept other words and feedback', async () => {
    const words = { approve: '=', reject: '-', feedback: ({ text }: { text: string }) => `${text}+` };
    expect((await play([wrong, '-7', right], words)).prompts).toEqual([solve, verify(wrong), again(wrong, '-7+')]);
    expect((await play([wrong, '=', right], words)).prompts).toEqual([solve, verify(wrong)]);
  });

  it('refuse options that make no sense', () => {
    expect(() => solverVerifier({ maxLoops: 0 })).toThrow(/^solverVerifier\(\.\.\.\): maxLoops: /);
    expect(() => solverVerifier({ approve: 'x', reject: 'x' })).toThrow('approve and reject must differ');
    expect(() => solverVerifier({ loops: 2 } as SolverVerifierOptions)).toThrow('loops');
  });
});
