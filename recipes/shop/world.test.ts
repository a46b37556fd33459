import { RecipeError } from '@drmas/engine/errors';
import { symbolsTokenizer } from '@drmas/engine/internal/model/tokenizers/symbols';
import { RandomStream } from '@drmas/engine/math';
import { type Split, system, type Trace } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { amountOf, amountText, itemList, listText, orderSymbols, orders, orderText, twoDigitAmount } from './world.js';

const drawn = async (split: Split, count: number, options = {}) => {
  const { at } = await orders(options).load(split);
  return Array.from({ length: count }, (_, index) => at(index));
};
const traces = (count: number, options = {}, split: Split = 'train'): Trace[] => {
  const { trace } = orders(options);
  const random = new RandomStream('test');
  return Array.from({ length: count }, () => trace?.(random, split) as Trace);
};
/** The items of a text such as `2 fig7 pear`. */
const itemsOf = (text: string) => [...text.matchAll(/\d ([a-z]+)/g)].map(([, item = '']) => item);

describe('orders', () => {
  it('have different items, counts from 1 to 9, and no order in both splits', async () => {
    const [train, test] = [await drawn('train', 400), await drawn('test', 400)];
    for (const { id, data } of [...train, ...test]) {
      const { order } = data;
      expect(order).toHaveLength(3);
      expect(new Set(order.map(({ item }) => item)).size).toBe(3);
      expect(order.every(({ count }) => count >= 1 && count <= 9)).toBe(true);
      expect(id).toBe(orderText(order));
      expect(itemsOf(id)).toEqual(order.map(({ item }) => item));
    }
    const ids = new Set(train.map(({ id }) => id));
    expect(test.filter(({ id }) => ids.has(id))).toEqual([]);
    expect(await drawn('train', 5)).toEqual(train.slice(0, 5));
    expect(await drawn('train', 5, { seed: 1 })).not.toEqual(train.slice(0, 5));
    expect((await drawn('test', 3, { items: 2 })).map(({ data }) => data.order.length)).toEqual([2, 2, 2]);
  });

  it('are listed, priced and added up in texts that can be read again', async () => {
    for (const { data } of await drawn('train', 50)) {
      expect(itemList(listText(data.order.map(({ item }) => item)))).toEqual(data.order.map(({ item }) => item));
      for (const item of data.order) {
        const [count = Number.NaN, price = Number.NaN] = amountText(item).split('x').map(Number);
        expect(count * price).toBe(amountOf(item));
        expect(twoDigitAmount(String(amountOf(item)).padStart(2, '0'))).toBe(amountOf(item));
      }
    }
    for (const text of ['', 'fig', ' fig fig', ' fig2', ' apple', ' fig ']) expect(itemList(text)).toBeUndefined();
    for (const text of ['7', '123', 'x1', '']) expect(twoDigitAmount(text)).toBeUndefined();
    expect(() => amountOf({ item: 'apple', count: 1 })).toThrow("there is no price of 'apple'");
  });

  it('are demonstrated by a planner that forgets, an executor that adds, a verifier that guesses', () => {
    const tokenizer = symbolsTokenizer({
      type: 'symbols',
      symbols: orderSymbols,
      stop: '<end>',
      endOfUser: '<ask>',
      endOfAssistant: '<end>',
    });
    const shares = { complete: [] as boolean[], right: [] as boolean[], judged: [] as boolean[] };
    for (const { agent, messages, response } of traces(3000)) {
      expect(tokenizer.chat([system(`<${agent}>`), ...messages]).length).toBeLessThan(20);
      expect(tokenizer.encode(response).length).toBeLessThan(5);
      const question = messages[0]?.content ?? '';
      if (agent === 'planner') {
        const list = itemList(response) ?? [];
        expect(itemsOf(question).slice(0, list.length)).toEqual(list);
        shares.complete.push(list.length === 3);
      } else if (agent === 'executor') {
        const [count = 0, price = 0] = question.split('x').map(Number);
        expect([count * price, count + price]).toContain(twoDigitAmount(response));
        shares.right.push(twoDigitAmount(response) === count * price);
      } else {
        const complete = itemList(messages[1]?.content ?? '')?.length === 3;
        shares.judged.push(complete === (response === '<complete>'));
      }
    }
    for (const share of Object.values(shares)) {
      expect(share.length).toBeGreaterThan(500);
      expect(share.filter(Boolean).length / share.length).toBeCloseTo(0.5, 1);
    }
  });

  it('are demonstrated without faults where the settings say so', () => {
    const faultless = { demonstrations: { forgotten: 0, added: 0, guessed: 0 } };
    for (const { agent, messages, response } of traces(300, faultless)) {
      if (agent === 'planner') expect(itemList(response)).toHaveLength(3);
      if (agent === 'verifier') expect(response).toBe('<complete>');
      if (agent === 'executor') {
        const [count = 0, price = 0] = (messages[0]?.content ?? '').split('x').map(Number);
        expect(Number(response)).toBe(count * price);
      }
    }
    expect(() => orders({ demonstrations: { planner: 0.6, executor: 0.6 } })).toThrow(/together exceed 1/);
    expect(() => orders({ items: 9 })).toThrow(RecipeError);
  });
});
