/**
 * The behaviour of a client of OpenAI's API in unusual cases: refusals, answers that take long, calls that it
 * gives up. One suite for every client, with the retries that it has by default.
 */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { adaptAgents } from '../../src/gateway/agents/adapt-agents.js';
import { gatewaySchema } from '../../src/gateway/agents/gateway/gateway-settings.js';
import { type OpenGateway, openGateway } from '../../src/gateway/agents/gateway/open-gateway.js';
import { boundFetch } from '../../src/gateway/agents/index.js';
import { scriptedContext } from '../../src/runs/testing/play-scripted.js';
import { type Script, scriptedSampler } from '../../src/runs/testing/scripted-sampler.js';
import { playEpisode } from '../../src/teams/rollout/play-episode.js';
import { agent } from '../../src/teams/team/agent.js';
import { defineTeam, type PlayContext } from '../../src/teams/team/team.js';

const agents = { solver: agent() };
type Context = PlayContext<object, typeof agents>;

/** Where a client sends its requests. */
export interface Connection {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly fetch: typeof fetch;
  readonly model: string;
}

/** Makes one call of a model and gives the text that it answered with. */
export type Call = (connection: Connection, options: { stream: boolean; signal?: AbortSignal }) => Promise<string>;

let gateway: OpenGateway | undefined;

/** Plays an episode in which `act` calls the solver, over HTTP if a gateway is open. */
function played(act: (context: Context) => Promise<unknown>, script: Script = () => 'fine') {
  const team = defineTeam({ task: z.object({}), agents, play: act, reward: () => 1 });
  const context = scriptedContext(team, scriptedSampler(script), {
    timeoutMs: 1e9,
    adaptAgents: (episode, asks, measure) => adaptAgents(episode, asks, measure, gateway),
  });
  const task = { id: 'one', data: {} };
  return playEpisode(context, { team, task, sample: 0, phase: 'training', step: 0 });
}

/** A connection that counts its requests. */
function counting(connection: Connection): Connection & { readonly sent: () => number } {
  let sent = 0;
  const counted: typeof fetch = (input, init) => {
    sent++;
    return connection.fetch(input, init);
  };
  return { ...connection, fetch: counted, sent: () => sent };
}

const inProcess = ({ agents }: Context): Connection => agents.solver.openai;
const overHttp = ({ gateway: { url, secret } }: Context): Connection => {
  return { baseURL: `${url}/v1`, apiKey: secret, fetch, model: 'solver' };
};

/** Connections on which calls are refused, by reason. `over` belongs to an episode that has ended. */
const refusals: readonly [string, (context: Context, over: readonly [Connection, Connection]) => Connection][] = [
  ['an agent that the team does not have', (context) => ({ ...context.openai, model: 'nobody' })],
  ['an agent that the team does not have, over HTTP', (context) => ({ ...overHttp(context), model: 'nobody' })],
  ['an episode that is over', (_, [connection]) => connection],
  ['an episode that is over, over HTTP', (_, [, connection]) => connection],
  ['an unknown secret', (context) => ({ ...overHttp(context), apiKey: 'somebody' })],
];

/** The suite for a client. */
export function clientContract(client: string, call: Call): void {
  describe(`${client} in unusual cases`, () => {
    // Here and not next to the imports: files share this module, which runs once for all of them.
    afterEach(async () => {
      vi.useRealTimers();
      await gateway?.close();
      gateway = undefined;
    });

    it.each(refusals)('sends a call once that is refused for %s', async (_, connect) => {
      gateway = await openGateway(gatewaySchema.parse({}), { maxTurns: 16, warn: () => {} });
      const { outcome: over } = await played(async (context) => [inProcess(context), overHttp(context)]);
      const { turns, failure, outcome } = await played(async (context) => {
        const connection = counting(connect(context, over as [Connection, Connection]));
        for (const stream of [false, true]) await expect(call(connection, { stream })).rejects.toThrow();
        return connection.sent();
      });
      expect(failure).toBeUndefined();
      expect(outcome).toBe(2);
      expect(turns).toEqual([]);
    });

    it('sends a call once if no episode is played', async () => {
      const outside = counting({ baseURL: 'http://drmas/v1', apiKey: 'drmas', fetch: boundFetch, model: 'solver' });
      await expect(call(outside, { stream: false })).rejects.toThrow(/no episode is played/);
      expect(outside.sent()).toBe(1);
    });

    it('reads the text that ends an episode whose calls are spent, and sends the next call once', async () => {
      gateway = await openGateway(gatewaySchema.parse({ maxCalls: 1 }), { maxTurns: 16, warn: () => {} });
      const { turns, outcome } = await played(async (context) => {
        const connection = counting(overHttp(context));
        const texts = [await call(connection, { stream: false }), await call(connection, { stream: true })];
        await expect(call(connection, { stream: true })).rejects.toThrow();
        return [...texts, connection.sent()];
      });
      expect(outcome).toEqual(['fine', expect.stringContaining('no more calls'), 3]);
      expect(turns).toHaveLength(1);
    });

    it.each([false, true])('waits for an answer that takes long (streamed: %s)', async (stream) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      const { outcome, turns } = await played(
        async (context) => {
          const connection = counting(inProcess(context));
          return [await call(connection, { stream }), connection.sent()];
        },
        async () => {
          for (let i = 0; i < 40; i++) await vi.advanceTimersByTimeAsync(10_000); // more than Node's fetch waits
          return 'late';
        },
      );
      expect(outcome).toEqual(['late', 1]);
      expect(turns).toHaveLength(1);
    });

    it.each([
      ['in process', false, inProcess],
      ['in process, streamed', true, inProcess],
      ['over HTTP', false, overHttp],
      ['over HTTP, streamed', true, overHttp],
    ] as const)('gives a call up, and nothing of it is kept: %s', async (_, stream, connect) => {
      gateway = await openGateway(gatewaySchema.parse({}), { maxTurns: 16, warn: () => {} });
      const controller = new AbortController();
      let ended = false;
      const { turns, failure, outcome } = await played(
        async (context) => {
          await expect(call(connect(context), { stream, signal: controller.signal })).rejects.toThrow();
          return call(connect(context), { stream });
        },
        ({ index, signal }) => {
          if (index > 0) return 'kept';
          setImmediate(() => controller.abort());
          return new Promise((_, reject) =>
            signal?.addEventListener('abort', () => {
              ended = true;
              reject(signal.reason);
            }),
          );
        },
      );
      expect(failure).toBeUndefined();
      expect([outcome, ended]).toEqual(['kept', true]);
      expect(turns.map(({ text }) => text)).toEqual(['kept']);
    });

    it.each([false, true])('tells of a call that was given up as it does over HTTP (streamed: %s)', async (stream) => {
      gateway = await openGateway(gatewaySchema.parse({}), { maxTurns: 16, warn: () => {} });
      const tellsOf = async (connect: (context: Context) => Connection) => {
        const controller = new AbortController();
        const { outcome } = await played(
          async (context) => {
            const error = await call(connect(context), { stream, signal: controller.signal }).catch((e: Error) => e);
            await call(connect(context), { stream });
            return String(error);
          },
          ({ index, signal }) => {
            if (index > 0) return 'kept';
            setImmediate(() => controller.abort());
            return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
          },
        );
        return outcome;
      };
      const told = await tellsOf(inProcess);
      expect(told).toMatch(/Error/);
      expect(told).toBe(await tellsOf(overHttp));
    });
  });
}
