import assert from 'node:assert/strict';
import { test } from 'node:test';
import { playScripted, trainTiny } from 'drmas/testing';
import recipe, { team } from './team.js';

const task = { question: '3 or 7', answer: '7' };

test('the checker accepts a right answer', async () => {
  const { outcome, score } = await playScripted(team, task, { answerer: ['7'], checker: ['<yes>'] });
  assert.equal(outcome.answer, 7);
  assert.deepEqual([score.team, score.agents.checker], [1, 1]);
});

test('the answerer answers again after a no', async () => {
  const { outcome, score } = await playScripted(team, task, { answerer: ['3', '7'], checker: ['<no>'] });
  assert.deepEqual([outcome.first, outcome.answer], [3, 7]);
  assert.deepEqual([score.team, score.agents.checker], [1, 1]);
});

test('an unreadable answer is no verdict', async () => {
  const { outcome, score, turns } = await playScripted(team, task, { answerer: ['3'], checker: ['perhaps'] });
  assert.equal(outcome.verdict, undefined);
  assert.deepEqual([score.team, score.agents.checker], [0, 0]);
  assert.equal(turns[1]?.valid, false);
});

test('team, tasks and settings train together', async () => {
  const { events, episodes } = await trainTiny(recipe);
  assert.equal(events.at(-1)?.type, 'run.finished');
  assert.deepEqual(
    episodes.map(({ length }) => length),
    [8, 8], // two steps of two tasks by four episodes
  );
});
