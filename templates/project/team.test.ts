import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RandomStream } from 'drmas';
import { team } from './team.js';

const task = { question: '3 or 7', answer: '7' };
const { signal } = new AbortController();

/** An agent that says these texts, one a call. */
function says<Value>(parse: (text: string) => Value | undefined, ...texts: string[]) {
  return async () => {
    const text = texts.shift() ?? '';
    const said = { text, finishReason: 'stop' as const, turn: 0 };
    const value = parse(text);
    return value === undefined
      ? { ...said, valid: false as const, value: undefined }
      : { ...said, valid: true as const, value };
  };
}

async function play(answers: string[], verdict: string) {
  const { answerer, checker } = team.agents;
  const agents = { answerer: says(answerer.parse, ...answers), checker: says(checker.parse, verdict) };
  const outcome = await team.play({ task, agents, random: new RandomStream('test'), signal });
  return {
    outcome,
    reward: await team.reward({
      task,
      outcome,
      episode: { task: { id: '1', data: task }, sample: 0, turns: [] },
      signal,
    }),
  };
}

test('a right answer that the checker lets pass', async () => {
  const { outcome, reward } = await play(['7'], '<yes>');
  assert.equal(outcome.answer, 7);
  assert.deepEqual(reward, { team: { correct: true }, agents: { checker: true } });
});

test('a no buys a second answer', async () => {
  const { outcome, reward } = await play(['3', '7'], '<no>');
  assert.deepEqual([outcome.first, outcome.answer], [3, 7]);
  assert.deepEqual(reward, { team: { correct: true }, agents: { checker: true } });
});

test('what cannot be read is no verdict', async () => {
  const { outcome, reward } = await play(['3'], 'perhaps');
  assert.equal(outcome.verdict, undefined);
  assert.deepEqual(reward, { team: { correct: false }, agents: { checker: false } });
});
