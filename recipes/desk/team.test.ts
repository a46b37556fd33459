import { ArgumentError } from '@drmas/engine/errors';
import { describe, expect, it } from 'vitest';
import { playScripted } from '../../src/runs/testing/play-scripted.js';
import { type SupportDeskOptions, supportDesk } from './team.js';
import { comebackText, deskPrompt, fixOf, ticketLines, tickets } from './world.js';

const ticket = { ticket: 'ann phone slow', line: 'phone', symptom: 'slow' };
const [usual, patch] = [fixOf(ticket, 'common'), fixOf(ticket, 'rare')];
const play = (rare: number, lines: Readonly<Record<string, string[]>>) =>
  playScripted(supportDesk(), { ...ticket, rare }, lines);

describe('a support desk', () => {
  it('is done when the usual remedy repairs the device', async () => {
    const { score, turns, outcome } = await play(0, { triage: ['router'], generalist: [usual] });
    expect(turns.map(({ agent }) => agent)).toEqual(['triage', 'generalist']);
    expect(outcome).toEqual({ answer: usual, mended: true, routed: 'router', escalated: false });
    expect(score).toEqual({ team: 1, agents: {}, parts: { mended: 1 }, metrics: { routed: 0, escalated: 0 } });
  });

  it('calls the specialist of the line that triage named, and shows it the failed remedy and the batch', async () => {
    const { score, turns } = await play(1, { triage: ['phone'], generalist: [usual], phone: [patch] });
    expect(turns.at(-1)?.messages.map(({ role, content }) => `${role}: ${content}`)).toEqual([
      `system: ${deskPrompt('phone')}`,
      `user: ${ticket.ticket}`,
      `assistant: ${usual}`,
      `user: ${comebackText('rare')}`,
    ]);
    expect(score).toMatchObject({ team: 1, metrics: { routed: 1, escalated: 1, specialists: 1 } });
    const wrong = await play(1, { triage: ['phone'], generalist: [usual], phone: [usual] });
    expect(wrong.score).toMatchObject({ team: 0, metrics: { specialists: 0 } });
    const late = await play(0, { triage: ['phone'], generalist: [patch], phone: [usual] });
    expect(late.score.team).toBe(1);
  });

  it('lets no specialist repair a device of another line, and calls none if triage names no line', async () => {
    const other = await play(1, { triage: ['watch'], generalist: [usual], watch: [patch] });
    expect(other.score).toMatchObject({ team: 0, metrics: { routed: 0, escalated: 1, specialists: 0 } });
    const silent = await play(1, { triage: ['?'], generalist: [usual] });
    expect(silent.score.team).toBe(0);
    expect(silent.turns.map(({ agent }) => agent)).toEqual(['triage', 'generalist']);
  });

  it.each([2, 3, 4, 5, 6, 7, 8])(
    'has a specialist for each of %i lines, and plays every ticket of theirs',
    { tags: 'verify' },
    async (lines) => {
      const team = supportDesk({ lines });
      expect(Object.keys(team.agents)).toEqual([...ticketLines.slice(0, lines), 'triage', 'generalist']);
      const { at, size } = await tickets({ lines, rare: 1 }).load('test');
      for (let index = 0; index < size; index++) {
        const { data } = at(index);
        const script = { triage: [data.line], generalist: [fixOf(data, 'common')], [data.line]: [fixOf(data, 'rare')] };
        expect((await playScripted(team, data, script)).score.team).toBe(1);
      }
    },
  );

  it('refuses options that make no sense', () => {
    for (const options of [{ lines: 1 }, { lines: 9 }, { line: 4 }])
      expect(() => supportDesk(options as SupportDeskOptions)).toThrow(ArgumentError);
  });
});
