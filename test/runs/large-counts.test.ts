// @module-tag verify
/** Large counts: drmas refuses those that no memory holds, by their names, and steps of many episodes are recorded. */
import type { Episode, EpisodeGroup, Turn } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { evaluationEvent } from '../../src/method/training/evaluation/evaluate-policies.js';
import { countChains } from '../../src/method/training/samples/chains.js';
import { agentHealth } from '../../src/method/training/stability/agent-health.js';
import { largestNorm } from '../../src/method/training/update/update-result.js';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { choiceRecipe, learnSteps } from '../support/choice-run.js';
import { numericSettings } from '../support/recipe-settings.js';

/** Settings without which others are refused. */
const company: readonly (readonly [RegExp, string])[] = [
  [/curriculum/, 'training.curriculum.by=level'],
  [/staleness/, 'loss.importanceCorrection.cap=2'],
  [/entropySchedule/, 'policies.first.entropyCoefficient=0.1'],
  [/rewardFloor/, 'training.stopWhen.rewardFloor.below=0'],
  [/promptLimit/, 'agents.first.promptLimit.cut=left'],
];
/** Sizes of models, whose kinds have their own checks; other machines; and the policy that is like the first. */
const elsewhere = /\b(model|agentAdapters|critic|warmStart|backend|sampler|second)\b/;

const counts = numericSettings({ first: 'first', second: 'second' }).filter(
  ({ path, values }) => values.every(Number.isInteger) && values.includes(100) && !elsewhere.test(path),
);

describe('a count of a thousand million', () => {
  it.each(counts.map(({ path, chosen }) => [path, chosen] as const))('%s, with %j', async (path, chosen) => {
    const more = company.flatMap(([name, override]) => (name.test(path) ? [override] : []));
    const read = async () => {
      const recipe = choiceRecipe({}, [...more, ...chosen, `${path}=1000000000`]);
      await prepareTasks(recipe);
      return recipe;
    };
    const recipe = await read().catch((error: Error) => error);
    if (recipe instanceof Error) {
      expect(recipe.message).toMatch(new RegExp(`^${path.replaceAll('.', String.raw`\.`)}: `));
      return;
    }
    expect(await learnSteps({ ...recipe, training: { ...recipe.training, steps: 2 } })).toHaveLength(2);
  });
});

describe('a step of 150,000 episodes', () => {
  const count = 150_000;
  const turn = { agent: 'first', policy: 'first', turn: 0, messages: [], prompt: [1], response: [2], logprobs: [-1] };
  const groups = Array.from({ length: count }, (_, i): EpisodeGroup => {
    const task = { id: `t${i}`, data: null };
    const one = { ...turn, call: 0, text: 'a', finishReason: 'stop', valid: true, penalty: 0 };
    const score = { team: i % 2, agents: {}, parts: {} };
    return { task, episodes: [{ task, sample: 0, turns: [one], outcome: null, score } as unknown as Episode] };
  });

  it('has its chains counted', () => {
    const episodes = groups.flatMap((group) => group.episodes);
    expect(countChains(episodes)).toEqual({ first: { perEpisode: 1, turns: 1, longest: 1 } });
  });

  it('is evaluated, of one task', () => {
    const played = [{ task: { id: 't', data: null }, episodes: groups.flatMap(({ episodes }) => episodes) }];
    const request = { step: 0, tasks: 1, samples: count, level: 0.95 };
    expect(evaluationEvent(played, request, 0)).toMatchObject({ averageAtK: 0.5, passAtK: 1 });
  });

  it('makes as many updates, and has responses of as many tokens', () => {
    const norms = Array.from({ length: count }, (_, norm) => ({ applied: true, norm }) as const);
    expect(largestNorm(norms)).toBe(count - 1);
    const [episode] = groups[0]?.episodes ?? [];
    const invalid = { ...episode?.turns[0], valid: false } as Turn;
    const advantage = norms.map(({ norm }) => norm);
    expect(agentHealth([{ episode: episode as Episode, turn: invalid, advantage }]).rewardedInvalid).toBe(1);
  });
});
