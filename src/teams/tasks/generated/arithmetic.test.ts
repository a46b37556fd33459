import { symbolsTokenizer } from '@drmas/engine/internal/model/tokenizers/symbols';
import { RandomStream } from '@drmas/engine/math';
import { assistant, type Split, system, type Trace, user } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arithmetic, arithmeticSymbols } from './arithmetic.js';

/** Reads a chain from left to right, on its own: the total after each step. */
function totals(question: string): number[] {
  const seen = [Number(question.slice(0, 2))];
  const steps = [...question.slice(2).matchAll(/([a-h])([+*-])(\d)/g)];
  expect(question).toBe(question.slice(0, 2) + steps.map(([text]) => text).join(''));
  steps.forEach(([, letter, operator, digit], i) => {
    expect(letter).toBe('abcdefgh'[i]);
    const before = seen.at(-1) ?? 0;
    const operand = Number(digit);
    seen.push(operator === '+' ? before + operand : operator === '-' ? before - operand : before * operand);
  });
  return seen;
}

const answerOf = (question: string) => String(totals(question).at(-1)).padStart(2, '0');

const traces = (split: Split, count: number, options = {}): Trace[] => {
  const random = new RandomStream('test', split);
  const source = arithmetic(options);
  return Array.from({ length: count }, () => source.trace?.(random, split)).filter((trace) => trace !== undefined);
};

const share = <T>(items: readonly T[], holds: (item: T) => boolean) => items.filter(holds).length / items.length;

describe('arithmetic tasks', () => {
  it('are chains whose totals stay in range and whose answer is the last total', async () => {
    const options = fc.record({
      top: fc.integer({ min: 9, max: 99 }),
      operations: fc.tuple(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 8 })).map((range) => range.sort()),
      seed: fc.nat(),
    });
    await fc.assert(
      fc.asyncProperty(options, fc.nat(), fc.constantFrom<Split>('train', 'test'), async (settings, index, split) => {
        const [low = 0, high = 0] = settings.operations;
        const set = await arithmetic({ ...settings, operations: [low, high] }).load(split);
        const { id, data, metadata } = set.at(index);
        const seen = totals(data.question);
        expect(id).toBe(data.question);
        expect(data.answer).toBe(answerOf(data.question));
        expect(Math.min(...seen)).toBeGreaterThanOrEqual(0);
        expect(Math.max(...seen)).toBeLessThanOrEqual(settings.top);
        expect(seen.length - 1).toBeGreaterThanOrEqual(low);
        expect(seen.length - 1).toBeLessThanOrEqual(high);
        expect(metadata).toEqual({ operations: seen.length - 1 });
      }),
      { numRuns: 100 },
    );
  });

  it('are the same whenever they are asked for, others for another seed, and practically endless', async () => {
    const first = await arithmetic().load('train');
    const again = await arithmetic().load('train');
    const other = await arithmetic({ seed: 1 }).load('train');
    const indices = Array.from({ length: 300 }, (_, i) => i);
    const ids = indices.map((i) => first.at(i).id);
    expect(
      indices
        .reverse()
        .map((i) => again.at(i).id)
        .reverse(),
    ).toEqual(ids);
    expect(indices.filter((i) => other.at(i).id === first.at(i).id).length).toBeLessThan(5);
    expect(new Set(ids).size).toBeGreaterThan(295);
    expect(first.size).toBe(Number.POSITIVE_INFINITY);
    expect(first.at(2 ** 53 - 1).id).toMatch(/^\d\da/);
  });

  it('never share a task between the splits, in any setting', async () => {
    const draws = await Promise.all(
      [{}, { seed: 5 }, { operations: [1, 1] as [number, number], top: 19 }].map(async (options) => {
        const [train, test] = await Promise.all([arithmetic(options).load('train'), arithmetic(options).load('test')]);
        const ids = (set: typeof train) => Array.from({ length: 600 }, (_, i) => set.at(i).id);
        return { train: ids(train), test: ids(test) };
      }),
    );
    const held = new Set(draws.flatMap(({ test }) => test));
    const [, , small] = draws; // few enough tasks for 600 draws to show most of them
    expect(new Set(small?.test).size).toBeLessThan(new Set(small?.train).size / 3);
    expect(draws.flatMap(({ train }) => train).filter((id) => held.has(id))).toEqual([]);
  });
});

describe('arithmetic demonstrations', () => {
  const shown = traces('train', 4000);
  const solver = shown.filter(({ agent }) => agent === 'solver');
  const verifier = shown.filter(({ agent }) => agent === 'verifier');

  it('show the solver only right answers, worked line by line or at once', () => {
    for (const { messages, response } of solver) {
      const question = messages[0]?.content ?? '';
      const lines = totals(question).slice(1);
      const steps = [...question.slice(2).matchAll(/[a-h][+*-]\d/g)].map(([step]) => step);
      const boxed = `\\boxed{${answerOf(question)}}`;
      const worked = steps.map((step, i) => `${step}=${String(lines[i]).padStart(2, '0')}`).join('') + boxed;
      expect([worked, boxed]).toContain(response);
      expect(messages.length === 1 || response === worked).toBe(true);
    }
    const first = solver.filter(({ messages }) => messages.length === 1);
    expect(share(first, ({ response }) => response.includes('='))).toBeCloseTo(0.5, 1);
  });

  it('show second attempts only after a wrong and rejected draft', () => {
    const second = solver.filter(({ messages }) => messages.length > 1);
    for (const { messages } of second) {
      const [question, draft, verdict, ...more] = messages;
      expect([question?.role, draft?.role, verdict]).toEqual(['user', 'assistant', user('<reject>')]);
      expect(more).toEqual([]);
      expect(draft?.content).not.toContain(`{${answerOf(question?.content ?? '')}}`);
    }
    // 15 % try to be one; the draft is wrong often enough for about two thirds of them to become one.
    expect(second.length / solver.length).toBeGreaterThan(0.06);
    expect(second.length / solver.length).toBeLessThan(0.15);
  });

  it('show the verifier only true verdicts, about drafts of both kinds and worths', () => {
    for (const { messages, response } of verifier) {
      const [question, draft, ...more] = messages;
      expect([question?.role, draft?.role, more]).toEqual(['user', 'assistant', []]);
      const right = draft?.content.endsWith(`\\boxed{${answerOf(question?.content ?? '')}}`);
      expect(response).toBe(right ? '<approve>' : '<reject>');
    }
    expect(share(verifier, ({ response }) => response === '<approve>')).toBeGreaterThan(0.5);
    expect(share(verifier, ({ response }) => response === '<reject>')).toBeGreaterThan(0.25);
    expect(share(verifier, ({ messages }) => messages[1]?.content.includes('=') === true)).toBeCloseTo(0.5, 1);
    expect(solver.length / shown.length).toBeCloseTo(0.75, 1);
  });

  it('keep to their split, and to the easier chains', async () => {
    const test = await arithmetic({ operations: [3, 3], top: 9 }).load('test');
    const held = new Set(Array.from({ length: 400 }, (_, i) => test.at(i).id));
    const small = { warmStartOperations: [3, 3], top: 9 };
    const questions = (split: Split) => traces(split, 400, small).map(({ messages }) => messages[0]?.content ?? '');
    expect(questions('train').filter((question) => held.has(question))).toEqual([]);
    expect(questions('test').filter((question) => held.has(question)).length).toBeGreaterThan(0);
    const lengths = new Set(shown.map(({ messages }) => totals(messages[0]?.content ?? '').length - 1));
    expect(lengths).toEqual(new Set([3, 4, 5, 6]));
  });

  it('follow the shares that are set', () => {
    const demonstrations = { solver: 1, worked: 0, second: 0 };
    expect(traces('train', 100, { demonstrations }).every(({ response }) => response.startsWith('\\boxed{'))).toBe(
      true,
    );
    const wrong = traces('train', 300, { demonstrations: { solver: 0, corrupted: 1, lineErrors: 1 } });
    expect(share(wrong, ({ response }) => response === '<reject>')).toBeGreaterThan(0.8);
    const right = traces('train', 100, { demonstrations: { solver: 0, corrupted: 0 } });
    expect(right.every(({ response }) => response === '<approve>')).toBe(true);
  });

  it("are written in the family's symbols, in the layout of a conversation", () => {
    const symbols = { type: 'symbols', symbols: arithmeticSymbols } as const;
    const tokenizer = symbolsTokenizer({ ...symbols, stop: '<end>', endOfUser: '<ask>', endOfAssistant: '<end>' });
    for (const { agent, messages, response } of shown.slice(0, 200)) {
      const prompt = tokenizer.chat([system(`<${agent}>`), ...messages]);
      const layout = [`<${agent}>`, messages[0]?.content, '<ask>'];
      if (messages.length > 1) layout.push(messages[1]?.content, '<end>');
      if (messages.length > 2) layout.push('<reject><ask>');
      expect(tokenizer.decode(prompt)).toBe(layout.join(''));
      expect(tokenizer.decode(tokenizer.chat([assistant(response)]))).toBe(`${response}<end>`);
      expect(prompt.length + 48).toBeLessThanOrEqual(128);
    }
  });
});

describe('arithmetic settings', () => {
  it('have defaults, are shown, and can be changed', async () => {
    const source = arithmetic({ top: 19 });
    expect(source.settings).toMatchObject({ operations: [4, 6], warmStartOperations: [3, 6], top: 19, seed: 0 });
    const changed = source.configure?.({ ...source.settings, operations: [1, 1] });
    expect(changed?.settings).toEqual({ ...source.settings, operations: [1, 1] });
    expect((await changed?.load('train'))?.at(0).id).toMatch(/^\d\da.\d$/);
  });

  it.each([
    [{ operations: [5, 4] }, 'arithmetic: operations: expected [fewest, most]'],
    [{ operations: [0, 4] }, 'arithmetic: operations.0: '],
    [{ operations: [4, 9] }, 'arithmetic: operations.1: '],
    [{ top: 100 }, 'arithmetic: top: '],
    [{ demonstrations: { worked: 1.5 } }, 'arithmetic: demonstrations.worked: '],
    [{ digits: 2 }, 'digits'],
  ])('refuse %j', (options, message) => {
    expect(() => arithmetic(options as never)).toThrow(message);
  });
});
