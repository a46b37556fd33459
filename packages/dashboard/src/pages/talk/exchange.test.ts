import { describe, expect, it } from 'vitest';
import type { ShownTurn } from '../../../../../src/runs/analysis/shown-episode.js';
import type { TalkMessage } from '../../../../../src/runs/analysis/talk-protocol.js';
import { afterMessage, type Exchange } from './exchange.js';
import { askAddress } from './use-talk.js';

const waiting: Exchange = {
  question: { run: 'r', agent: 'solver', step: null, messages: [], temperature: null, maxTokens: null, seed: 0 },
  state: 'waiting',
  answers: {},
};
const heard = (...messages: readonly TalkMessage[]) => messages.reduce(afterMessage, waiting);
const text = (side: 'trained' | 'untrained', words: string): TalkMessage => ({ type: 'text', side, text: words });

describe('an exchange', () => {
  it('grows piece by piece on each side, and ends with the whole answer', () => {
    const growing = heard({ type: 'loading' }, text('trained', 'a'), text('untrained', 'x'), text('trained', 'b'));
    expect(growing).toMatchObject({ state: 'loading', answers: { trained: { text: 'ab' }, untrained: { text: 'x' } } });
    const end: TalkMessage = { type: 'end', side: 'trained', text: 'ab!', tokens: 3, seconds: 1, cut: false };
    expect(afterMessage(growing, end).answers).toEqual({ trained: { text: 'ab!', end }, untrained: { text: 'x' } });
  });

  it('keeps the text from before a failure', () => {
    const failed = heard(text('trained', 'a'), { type: 'failed', message: 'the weights are damaged' });
    expect(failed).toMatchObject({ problem: 'the weights are damaged', answers: { trained: { text: 'a' } } });
  });
});

describe('asking a turn again', () => {
  const place = { file: 'step-000001', task: 'a task', sample: 2, turn: 1 };
  const turn = (messages: ShownTurn['messages'], frozen = false) =>
    ({ agent: 'solver', messages, frozen }) as ShownTurn;

  it('leads to the page that repeats the prompt', () => {
    expect(askAddress('a run', place, turn([['user', 'hello']]))).toBe(
      '#/run/a%20run/talk?agent=solver&file=step-000001&task=a+task&sample=2&turn=1',
    );
  });

  it('is not offered if the whole prompt cannot be sent, or no agent was trained', () => {
    expect(askAddress('r', place, turn([]))).toBeUndefined();
    expect(askAddress('r', place, turn([['tool', '42']]))).toBeUndefined();
    expect(askAddress('r', place, turn([['user', 'x'.repeat(6001)]]))).toBeUndefined();
    expect(askAddress('r', place, turn([['user', 'hello']], true))).toBeUndefined();
  });
});
