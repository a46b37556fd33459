import { expect, it } from 'vitest';
import { madeUpEpisode } from '../../../test/support/recorded-run.js';
import { storedEpisode } from '../../method/store/episode-files.js';
import { shownGroup } from './shown-episodes.js';

const episode = madeUpEpisode('sum', 0, 1, 'an answer');
const [solver, verifier] = episode.turns;
if (solver === undefined || verifier === undefined) throw new Error('the fixture has no turns');

it('says which earlier turns a turn read: by their words, or by their names', () => {
  const question = { role: 'user' as const, content: 'is this right?\nan answer' };
  const turns = [
    { ...solver, id: 'a' },
    { ...verifier, id: 'b', text: 'no', messages: [question] },
    { ...verifier, messages: [{ role: 'system' as const, content: 'an answer' }] },
    { ...solver, messages: [{ role: 'assistant' as const, content: 'rewritten', turnId: 'b' }] },
    { ...solver, messages: [] },
  ];
  const [shown] = shownGroup('sum', [storedEpisode({ ...episode, turns })]).episodes;
  expect(shown?.turns.map(({ reads }) => reads)).toEqual([[], [0], [], [1], []]);
});

it('shows rewards by their parts, what was logged and what was returned, and cuts what is too long', () => {
  const score = { team: 1, agents: { verifier: 0.5 }, parts: { a: 0.25, b: 0.75 }, metrics: { tries: 2 } };
  const log = [
    { name: 'tool', value: { hits: 3 } },
    { name: 'page', value: 'x'.repeat(9000) },
  ];
  const [shown] = shownGroup('sum', [storedEpisode({ ...episode, score, log })]).episodes;
  expect(shown).toMatchObject({ agents: { verifier: 0.5 }, parts: { a: 0.25 }, metrics: { tries: 2 } });
  expect(shown?.outcome).toBe('{"answer":"an answer"}');
  expect(shown?.log[0]).toEqual(['tool', '{"hits":3}']);
  expect(shown?.log[1]?.[1]).toMatch(/^x{6000}\n… \(3000 more characters in the episode file\)$/);
});
