import { RecipeError } from '@drmas/engine/errors';
import { symbolsTokenizer } from '@drmas/engine/internal/model/tokenizers/symbols';
import { RandomStream } from '@drmas/engine/math';
import { type Split, system, type Task, type Trace } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { deskPrompt, fixOf, type TicketTask, ticketFix, ticketLines, ticketSymbols, tickets } from './world.js';

const all = async (split: Split, lines: number): Promise<Task<TicketTask>[]> => {
  const { at, size } = await tickets({ lines }).load(split);
  return Array.from({ length: size }, (_, index) => at(index));
};
const traces = (count: number, options = {}, split: Split = 'train'): Trace[] => {
  const { trace } = tickets(options);
  const random = new RandomStream('test');
  return Array.from({ length: count }, () => trace?.(random, split) as Trace);
};

describe('tickets', () => {
  it.each([2, 4, 8])(
    'are every customer, line and symptom once, divided into train and held out: %i lines',
    async (lines) => {
      const [train, test] = [await all('train', lines), await all('test', lines)];
      const ids = [...train, ...test].map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids).toHaveLength(lines * 80);
      expect(test.length / ids.length).toBeGreaterThan(0.1);
      expect(test.length / ids.length).toBeLessThan(0.3);
      expect([...new Set(test.map(({ data }) => data.line))].sort()).toEqual(ticketLines.slice(0, lines).toSorted());
      for (const { id, data } of train) expect(id.endsWith(`${data.line} ${data.symptom}`)).toBe(true);
    },
  );

  it('have one usual remedy a symptom, and in the rare batch another patch for every symptom of a line', async () => {
    const data = (await all('train', 8)).map((task) => task.data);
    for (const line of ticketLines) {
      const ofLine = data.filter((ticket) => ticket.line === line);
      const pairs = (batch: 'common' | 'rare') =>
        new Set(ofLine.map((each) => `${each.symptom} ${fixOf(each, batch)}`));
      for (const batch of ['common', 'rare'] as const) {
        expect(pairs(batch).size).toBe(8);
        expect(new Set(ofLine.map((each) => fixOf(each, batch))).size).toBe(8);
      }
      for (const each of ofLine) expect(ticketFix(fixOf(each, 'rare'))).toMatch(/^p[1-8]$/);
    }
    const tables = ticketLines.map((line) =>
      ['silent', 'slow', 'hot', 'frozen'].map((symptom) => fixOf({ line, symptom }, 'rare')).join(),
    );
    expect(new Set(tables).size).toBe(ticketLines.length);
    expect(() => fixOf({ line: 'phone', symptom: 'wet' }, 'common')).toThrow("there is no symptom 'wet'");
  });

  it('are written in the symbols of the family, and every fix is one of them', async () => {
    const tokenizer = symbolsTokenizer({
      type: 'symbols',
      symbols: ticketSymbols,
      stop: '<end>',
      endOfUser: '<ask>',
      endOfAssistant: '<end>',
    });
    for (const { agent, messages, response } of traces(500, { lines: 8 })) {
      const prompt = tokenizer.chat([system(deskPrompt(agent)), ...messages]);
      expect(prompt.length + tokenizer.encode(response).length).toBeLessThan(14);
      expect(tokenizer.encode(response)).toHaveLength(1);
    }
    expect(ticketFix('phone')).toBeUndefined();
  });

  it('are demonstrated rightly, but for the patches, which are any; never a ticket of the other split', async () => {
    const held = new Set((await all('test', 4)).map(({ id }) => id));
    const rare: boolean[] = [];
    for (const { agent, messages, response } of traces(2000)) {
      const text = messages[0]?.content ?? '';
      const [, line = '', symptom = ''] = text.split(' ');
      expect(held.has(text)).toBe(false);
      if (agent === 'triage') expect(response).toBe(line);
      else if (agent === 'generalist') expect(response).toBe(fixOf({ line, symptom }, 'common'));
      else {
        expect(agent).toBe(line);
        if (messages.at(-1)?.content.includes('rare')) rare.push(response === fixOf({ line, symptom }, 'rare'));
        else expect(response).toBe(fixOf({ line, symptom }, 'common'));
      }
    }
    expect(rare.length).toBeGreaterThan(600);
    expect(rare.filter(Boolean).length / rare.length).toBeCloseTo(1 / 8, 1);
    for (const { messages } of traces(200, {}, 'test')) expect(held.has(messages[0]?.content ?? '')).toBe(true);
  });

  it('name a setting that makes no sense', () => {
    expect(() => tickets({ lines: 1 })).toThrow(RecipeError);
    expect(() => tickets({ rare: 2 })).toThrow(/tickets: .*rare/);
    expect(tickets().configure?.({ ...tickets().settings, lines: 6 }).settings).toMatchObject({ lines: 6 });
  });
});
