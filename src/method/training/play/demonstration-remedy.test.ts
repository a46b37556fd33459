import { type Episode, type Failure, system, user } from '@drmas/engine/nouns';
import { expect, it } from 'vitest';
import { remedyBesideDemonstrations } from './demonstration-remedy.js';
import { fatalFailure } from './failures.js';

const failure: Failure = { reason: 'invalid-output', agent: 'reader', message: 'does not fit' };
const turns = [{ agent: 'reader', messages: [system('Which city?\nAnswer with JSON'), user('Oslo')] }];
const played = {
  step: 1,
  all: [{ task: { id: 't', data: {} }, episodes: [{ failure, turns } as unknown as Episode] }],
};

/** The advice at the end of a run whose demonstrations of the agent have this system prompt. */
const advice = (shown: string | undefined, agent = 'reader', warmStartShare: 'policy' | 'none' = 'policy') => {
  const trace = () => ({ agent, system: shown, messages: [user('Oslo')], response: '{}' });
  const train = { name: 'tasks', load: async () => Promise.reject(new Error('not loaded')), trace } as never;
  const demonstrations = { sources: { train, test: train }, systemPrompts: {} };
  return fatalFailure(
    {},
    played,
    remedyBesideDemonstrations({
      demonstrations,
      warmStartShare: warmStartShare === 'none' ? undefined : warmStartShare,
    }),
  );
};

it.each([
  ['another prompt', advice('Which city?'), /another system prompt.*"Which city\?"; in play: "Which city\?\\nAnswer/],
  ['no prompt', advice(undefined), /another system prompt.*In the demonstrations: ""/],
  ['the prompt of play', advice('Which city?\nAnswer with JSON'), /has seen demonstrations with this prompt/],
  ['demonstrations of other agents', advice('Which city?', 'packer'), /show it some answers in a warm start/],
  ['no warm start', advice('Which city?', 'reader', 'none'), /show it some answers in a warm start/],
])('the advice about outputs that do not fit knows %s', (_, text, pattern) => {
  expect(text).toMatch(pattern);
});
