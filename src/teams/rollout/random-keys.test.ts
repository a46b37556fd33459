import { digestOfIds, randomKey } from '@drmas/engine/math';
import type { Turn } from '@drmas/engine/nouns';
import { bytesTokenizer } from '@drmas/engine/tokens';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { scriptedContext } from '../../runs/testing/play-scripted.js';
import { type Script, scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { agent } from '../team/agent.js';
import { type Ask, defineTeam, type PlayContext } from '../team/team.js';
import { playEpisode } from './play-episode.js';

const agents = { counter: agent(), talker: agent() };
type Play = (context: PlayContext<unknown, typeof agents>) => Promise<unknown>;

/** A response that its random key decides. */
const drawn: Script = ({ request }) => request.key.join(' ');

async function played(play: Play, script: Script = drawn) {
  const team = defineTeam({ task: z.unknown(), agents, play, reward: () => 1 });
  const sampler = scriptedSampler(script);
  const request = { team, task: { id: 'seven', data: {} }, sample: 2, phase: 'training', step: 5 } as const;
  const { turns, failure } = await playEpisode(scriptedContext(team, sampler), request);
  expect(failure).toBeUndefined();
  return { turns, requests: sampler.calls.map(({ request }) => request) };
}

describe('the random numbers of a call', () => {
  const { chat } = bytesTokenizer();
  const keyOf = (name: string, text: string, count: number) =>
    randomKey(1, 'training', 5, 'seven', 2, name, ...digestOfIds(chat([{ role: 'user', content: text }])), count);

  it('are named by seed, phase, step, task, sample, agent, prompt and count of earlier calls with the same', async () => {
    const { requests, turns } = await played(({ agents: { counter, talker } }) =>
      Promise.all([counter('1'), talker('1'), counter('2'), counter('1')]),
    );
    const keys = [
      keyOf('counter', '1', 0),
      keyOf('talker', '1', 0),
      keyOf('counter', '2', 0),
      keyOf('counter', '1', 1),
    ];
    expect(requests.map(({ key }) => key)).toEqual(keys);
    const digits = keys.map((key) => key.map((word) => word.toString(16).padStart(8, '0')).join(''));
    expect(turns.map(({ id }) => id)).toEqual(digits);
  });

  /** An agent's prompts and responses, without the position of the call among the others. */
  const content = ({ turn: _turn, call: _call, ...rest }: Turn) => rest;
  const sorted = (turns: readonly Turn[]) =>
    turns.map(content).sort(({ id: a = '' }, { id: b = '' }) => (a < b ? -1 : Number(a > b)));

  it('do not depend on the order of the calls: a network may decide it', async () => {
    const names = ['a', 'b', 'b', 'c', 'd', 'd'];
    /** Chains of calls, each begun when its moment comes; equal first prompts make equal chains. */
    const playAfter =
      (moments: readonly number[]): Play =>
      async ({ agents: { counter, talker } }) => {
        const chain = async (name: string, moment: number) => {
          for (let i = 0; i < moment; i++) await new Promise(setImmediate);
          const ask: Ask = name < 'c' ? counter : talker;
          const first = await ask(name);
          for (let i = 0; i < moment; i++) await new Promise(setImmediate);
          return ask(`${name} ${first.text}`);
        };
        await Promise.all(names.map((name, i) => chain(name, moments[i] as number)));
      };
    const reference = await played(playAfter(names.map(() => 0)));
    const orders = new Set<string>();
    const moments = fc.array(fc.nat({ max: 9 }), { minLength: names.length, maxLength: names.length });
    await fc.assert(
      fc.asyncProperty(moments, async (delays) => {
        const { turns } = await played(playAfter(delays));
        orders.add(turns.map(({ id }) => id).join());
        expect(sorted(turns)).toEqual(sorted(reference.turns));
      }),
      { numRuns: 40, seed: 1 },
    );
    expect(orders.size).toBeGreaterThan(10); // the calls really came in different orders
  });
});
