import { type Episode, user } from '@drmas/engine/nouns';
import { OpenAI } from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { eventually, timeForMishaps } from '../../../../test/support/time-and-chance.js';
import { scriptedContext } from '../../../runs/testing/play-scripted.js';
import { type Script, type ScriptedSampler, scriptedSampler } from '../../../runs/testing/scripted-sampler.js';
import { playEpisode } from '../../../teams/rollout/play-episode.js';
import { agent } from '../../../teams/team/agent.js';
import type { GatewayConnection } from '../../../teams/team/agent-adapters.js';
import { defineTeam, type PlayContext } from '../../../teams/team/team.js';
import type { ModelRequest } from '../../dialects/dialect.js';
import { adaptAgents } from '../adapt-agents.js';
import { gatewaySchema } from './gateway-settings.js';
import { type OpenGateway, openGateway } from './open-gateway.js';

const agents = {
  solver: agent({ system: 'Solve.', tools: 'plain' }),
  judge: agent(),
};
type Play = (context: PlayContext<{ question: string }, typeof agents>) => Promise<unknown>;
const teamOf = (play: Play) => defineTeam({ task: z.object({ question: z.string() }), agents, play, reward: () => 1 });
const task = { id: 'one', data: { question: 'What is in a?' } };

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

interface Opened {
  readonly gateway: OpenGateway;
  readonly warnings: readonly string[];
  readonly sampler: ScriptedSampler;
  play(play: Play, sample?: number): Promise<Episode<{ question: string }>>;
}

/** A gateway before scripted agents, with what plays episodes through it. */
async function opened(script: Script, settings: object = {}, limits: { maxTurns?: number } = {}): Promise<Opened> {
  const sampler = scriptedSampler(script);
  const warnings: string[] = [];
  const context = scriptedContext(
    teamOf(async () => 0),
    sampler,
    limits,
  );
  const warn = (message: string) => void warnings.push(message);
  const gateway = await openGateway(gatewaySchema.parse(settings), { maxTurns: context.maxTurns, warn });
  open.push(gateway);
  const withGateway = {
    ...context,
    adaptAgents: (episode, asks, counts) => adaptAgents(episode, asks, counts, gateway),
  } satisfies typeof context;
  const play = (act: Play, sample = 0) =>
    playEpisode(withGateway, { team: teamOf(act), task, sample, phase: 'training', step: 0 });
  return { gateway, warnings, sampler, play };
}

const clientOf = ({ env }: GatewayConnection, options = {}) =>
  new OpenAI({ baseURL: env.OPENAI_BASE_URL, apiKey: env.OPENAI_API_KEY, maxRetries: 0, ...options });

const post = (url: string, secret: string, body: object, init: { headers?: object; signal?: AbortSignal } = {}) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify(body),
    ...init,
    headers: { authorization: `Bearer ${secret}`, ...init.headers },
  });
const hi = (model: string) => ({ model, messages: [{ role: 'user' as const, content: 'Hi' }] });
const completion = z.object({ choices: z.array(z.object({ message: z.object({ content: z.string() }) })).min(1) });
const textOf = async (answer: Response) => completion.parse(await answer.json()).choices[0]?.message.content;
const codeOf = async (response: Response) => {
  const { error } = z
    .object({ error: z.object({ code: z.string(), message: z.string() }) })
    .parse(await response.json());
  return [response.status, error.code, error.message];
};

const lookTool = { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } };
/** Calls the tool first, then answers. */
const looking: Script = ({ policy, prompt }) => {
  if (policy === 'judge') return 'fine';
  return prompt.includes('seven') ? 'It is seven.' : 'Let me see.\n@look()';
};

/** The solver looks something up and answers; the judge comments on the answer. */
const plainly: Play = async ({ agents: { solver, judge } }) => {
  const tools = [lookTool];
  const question = user('What is in a?');
  const first = await solver([question], { tools });
  const calls = first.toolCalls.map(({ id, name, arguments: text }) => ({ id, name, arguments: text }));
  const spoken = { role: 'assistant', content: first.content, toolCalls: calls } as const;
  const result = { role: 'tool', content: 'seven', toolCallId: calls[0]?.id ?? '' } as const;
  const second = await solver([question, spoken, result], { tools });
  return (await judge([user(second.text)])).text;
};
const overChat: Play = async ({ gateway }) => {
  const { chat } = clientOf(gateway);
  const tools = [{ type: 'function' as const, function: lookTool }];
  const question = { role: 'user' as const, content: 'What is in a?' };
  const first = await chat.completions.create({ model: 'solver', messages: [question], tools });
  const spoken = first.choices[0]?.message ?? { role: 'assistant' as const, content: '', refusal: null };
  const call = spoken.tool_calls?.[0]?.id ?? '';
  const result = { role: 'tool' as const, content: 'seven', tool_call_id: call };
  const second = await chat.completions.create({ model: 'solver', messages: [question, spoken, result], tools });
  const answer = { role: 'user' as const, content: second.choices[0]?.message.content ?? '' };
  const verdict = await chat.completions.create({ model: 'judge', messages: [answer] });
  return verdict.choices[0]?.message.content;
};
/** @param refer Whether earlier answers are named by their ids instead of being repeated */
const overResponses =
  (refer: boolean): Play =>
  async ({ gateway }) => {
    const { responses } = clientOf(gateway);
    const tools = [{ type: 'function' as const, strict: null, ...lookTool }];
    const input: OpenAI.Responses.ResponseInputItem[] = [{ role: 'user', content: 'What is in a?' }];
    const first = await responses.create({ model: 'solver', input, tools });
    for (const item of first.output)
      input.push(refer ? { type: 'item_reference', id: item.id ?? '' } : (item as (typeof input)[number]));
    const call = first.output.find(({ type }) => type === 'function_call') as OpenAI.Responses.ResponseFunctionToolCall;
    input.push({ type: 'function_call_output', call_id: call.call_id, output: 'seven' });
    const second = await responses.create({ model: 'solver', input, tools });
    return (await responses.create({ model: 'judge', input: second.output_text })).output_text;
  };
const block = z.looseObject({ type: z.string(), id: z.string().optional(), text: z.string().optional() });
const overMessages: Play = async ({ gateway: { url, secret } }) => {
  const ask = async (model: string, messages: object[], more = {}) => {
    const body = JSON.stringify({ model, messages, max_tokens: 64_000, ...more });
    const answer = await fetch(`${url}/v1/messages`, { method: 'POST', headers: { 'x-api-key': secret }, body });
    return z.object({ content: z.array(block) }).parse(await answer.json()).content;
  };
  const { name, description, parameters } = lookTool;
  const tools = [{ name, description, input_schema: parameters }];
  const question = { role: 'user', content: 'What is in a?' };
  const first = await ask('solver', [question], { tools });
  const call = first.find(({ type }) => type === 'tool_use')?.id;
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: call, content: 'seven' }] };
  const second = await ask('solver', [question, { role: 'assistant', content: first }, result], { tools });
  return (await ask('judge', [{ role: 'user', content: second[0]?.text }]))[0]?.text;
};

describe('an episode over HTTP', () => {
  it.each<[string, Play]>([
    ['chat completions', overChat],
    ['responses', overResponses(false)],
    ['responses that name earlier answers', overResponses(true)],
    ['messages', overMessages],
  ])('has the same turns, ids and log-probs as in plain play: %s', async (_, act) => {
    const { play } = await opened(looking);
    const plain = await play(plainly);
    expect(plain.failure).toBeUndefined();
    expect(plain.turns.map(({ toolCalls = [] }) => toolCalls.length)).toEqual([1, 0, 0]);
    expect(plain.turns[1]?.history).toMatchObject({ exact: 1 });
    // The ids of turns come back in some dialects and not in others; prompts and responses are the same.
    const withoutIds = ({ turns, ...rest }: typeof plain) => ({
      ...rest,
      turns: turns.map((turn) => ({ ...turn, messages: turn.messages.map(({ turnId: _, ...message }) => message) })),
    });
    expect(withoutIds(await play(act))).toEqual(withoutIds(plain));
  });

  it('cannot name an answer of another episode', async () => {
    const { play } = await opened(() => 'fine');
    const other = await play(async ({ gateway }) => {
      return (await clientOf(gateway).responses.create({ model: 'judge', input: 'Hi' })).output[0]?.id ?? '';
    });
    const { outcome } = await play(async ({ gateway }) => {
      const response = await clientOf(gateway).responses.create({ model: 'judge', input: 'Well?' });
      const answers = [response.output[0]?.id ?? '', `${other.outcome}`].map((id) =>
        clientOf(gateway)
          .responses.create({ model: 'judge', input: [{ type: 'item_reference', id }] })
          .then(({ output_text }) => output_text)
          .catch(({ status, message }) => `${status} ${message}`),
      );
      return Promise.all(answers);
    }, 1);
    expect(outcome).toEqual(['fine', expect.stringContaining('400 input.0: nothing is kept')]);
  });

  it('serves every dialect, streamed too, and returns token ids on request', async () => {
    const { play } = await opened(() => 'fine');
    const { outcome, turns } = await play(async ({ gateway }) => {
      const client = clientOf(gateway);
      const stream = client.chat.completions.stream(hi('judge'));
      const responses = await client.responses.create({ model: 'intercepted/judge', input: 'Hi' });
      const messages = await fetch(`${gateway.env.ANTHROPIC_BASE_URL}/v1/messages`, {
        method: 'POST',
        headers: { 'x-api-key': gateway.env.ANTHROPIC_API_KEY ?? '' },
        body: JSON.stringify({ ...hi('judge'), max_tokens: 5 }),
      });
      const ids = await post(gateway.url, gateway.secret, { ...hi('judge'), return_token_ids: true });
      return [await stream.finalContent(), responses.output_text, await messages.json(), await ids.json()];
    });
    const { prompt, response, logprobs } = turns[0] ?? {};
    expect(outcome).toMatchObject([
      'fine',
      'fine',
      { content: [{ type: 'text', text: 'fine' }] },
      {
        prompt_token_ids: prompt,
        choices: [{ token_ids: response, logprobs: { content: logprobs?.map((logprob) => ({ logprob })) } }],
      },
    ]);
    expect(turns).toHaveLength(4);
  });

  it('answers a probe of OpenEnv, which is no turn: the episode is the same without it', async () => {
    const headers = { 'user-agent': 'OpenEnv-provider-probe/1.0' };
    const ask = { ...hi('judge'), return_token_ids: true };
    const playOnce = async (probes: number) => {
      const { play, warnings } = await opened(() => 'fine', { maxCalls: 1 });
      const played = await play(async ({ gateway: { url, secret } }) => {
        const answers = [];
        for (let i = 0; i < probes; i++) answers.push(await (await post(url, secret, ask, { headers })).json());
        // An agent without a format for calls cannot use tools: the probe is refused, and the episode goes on.
        const tools = [{ type: 'function', function: lookTool }];
        if (probes > 0) answers.push(await codeOf(await post(url, secret, { ...ask, tools }, { headers })));
        return [await (await post(url, secret, ask)).json(), ...answers];
      });
      return { ...played, warnings };
    };
    const [without, probed] = [await playOnce(0), await playOnce(2)];
    expect(probed.failure).toBeUndefined();
    expect(probed.turns).toEqual(without.turns);
    expect([probed.refused, probed.turns.length]).toEqual([undefined, 1]);
    const { prompt, response } = probed.turns[0] ?? {};
    const tokens = { prompt_token_ids: prompt, choices: [{ token_ids: response }] };
    const refusal = [400, 'invalid_request', expect.stringContaining('is offered tools, but has no format for calls')];
    expect(probed.outcome).toMatchObject([tokens, tokens, tokens, refusal]);
    const { outcome } = await (await opened(() => 'fine')).play(async ({ gateway: { url, secret } }) => {
      const requests = Array.from({ length: 17 }, () => post(url, secret, ask, { headers }));
      return (await Promise.all(requests)).filter(({ status }) => status === 400).length;
    });
    expect(outcome).toBe(1);
  });

  it('counts tokens without a turn', async () => {
    const { play } = await opened(() => 'fine');
    const { outcome, turns } = await play(async ({ gateway: { url, secret }, agents: { judge } }) => {
      await judge('Hi');
      const answer = await fetch(`${url}/v1/messages/count_tokens`, {
        method: 'POST',
        headers: { 'x-api-key': secret },
        body: JSON.stringify(hi('judge')),
      });
      return answer.json();
    });
    expect(outcome).toEqual({ input_tokens: turns[0]?.prompt.length });
    expect(turns).toHaveLength(1);
  });
});

describe('whose call it is', () => {
  it('is identified by the path before the model, and by the secret before both', async () => {
    const { play } = await opened(({ policy }) => policy);
    let others: GatewayConnection | undefined;
    let leave = () => {};
    const other = play(async ({ gateway }) => {
      others = gateway;
      await new Promise<void>((resolve) => {
        leave = resolve;
      });
    }, 1);
    const { outcome, turns } = await play(async ({ gateway }) => {
      const say = async (url: string, model: string) => {
        const answer = await post(url, gateway.secret, hi(model));
        return answer.ok ? textOf(answer) : codeOf(answer);
      };
      return [
        await say(gateway.urlOf('judge'), 'gpt-5'),
        await say(gateway.url, 'solver'),
        await say(gateway.url, 'gpt-5'),
        await say(others?.urlOf('judge') ?? '', 'solver'),
        await say(gateway.urlOf('judge').replace('judge', 'nobody'), 'solver'),
      ];
    });
    const nobody = (name: string) => [
      404,
      'model_not_found',
      `there is no agent '${name}'; the team has solver, judge`,
    ];
    expect(outcome).toEqual(['judge', 'solver', nobody('gpt-5'), 'solver', nobody('nobody')]);
    expect(turns.map(({ agent }) => agent)).toEqual(['judge', 'solver', 'solver']);
    leave();
    expect((await other).failure).toBeUndefined();
  });

  it('is identified by either key of a client that sends two', async () => {
    const { play } = await opened(() => 'fine');
    const { outcome } = await play(async ({ gateway: { url, secret } }) => {
      // Clients of Anthropic send ANTHROPIC_AUTH_TOKEN of the user's environment beside the key of the gateway.
      const keys = [
        { authorization: 'Bearer of-another-server', 'x-api-key': secret },
        { authorization: `Bearer ${secret}`, 'x-api-key': 'of-another-server' },
        { authorization: 'Bearer of-another-server', 'x-api-key': 'x' },
      ];
      return Promise.all(keys.map(async (headers) => (await post(url, secret, hi('judge'), { headers })).status));
    });
    expect(outcome).toEqual([200, 200, 401]);
  });

  it('is unknown without the right secret, and after the end of the episode', async () => {
    const { play } = await opened(() => 'fine');
    let past: GatewayConnection | undefined;
    await play(async ({ gateway }) => {
      past = gateway;
    });
    const { url = '', secret = '' } = past ?? {};
    const forged = secret.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'));
    for (const wrong of ['', 'x', forged, 'drmas-1-00', secret.replace('drmas-0-', 'drmas-1-')])
      expect((await codeOf(await post(url, wrong, hi('judge')))).slice(0, 2)).toEqual([401, 'unknown_secret']);
    expect(await codeOf(await post(url, secret, hi('judge')))).toEqual([400, 'episode_over', 'the episode is over']);
    const models = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${forged}` } });
    expect(models.status).toBe(401);
  });
});

describe('a request', () => {
  it("samples with the recipe's settings, and names each ignored setting once", async () => {
    const { play, sampler, warnings } = await opened(() => 'fine');
    const { turns } = await play(async ({ gateway }) => {
      const { chat } = clientOf(gateway);
      for (const temperature of [0.1, 0.2])
        await chat.completions.create({ ...hi('judge'), temperature, top_p: 0.5, max_tokens: 64_000 });
      await chat.completions.create({ ...hi('judge'), max_completion_tokens: 3 });
    });
    const sampled = sampler.calls.map(({ request: { temperature, topP, maxTokens } }) => [
      temperature,
      topP,
      maxTokens,
    ]);
    expect(sampled).toEqual([...[0, 1].map(() => [1, 1, 16]), [1, 1, 3]]);
    expect(turns.map(({ ignored }) => ignored)).toEqual([...[0, 1].map(() => ['temperature', 'top_p']), undefined]);
    expect(warnings).toEqual([
      'judge: requests set temperature, which is ignored: the recipe controls how the agent samples',
      'judge: requests set top_p, which is ignored: the recipe controls how the agent samples',
    ]);
  });

  it('for several answers is refused: a call is one turn', async () => {
    const { play, sampler } = await opened(() => 'fine');
    const { outcome } = await play(
      async ({ gateway: { url, secret } }) => await codeOf(await post(url, secret, { ...hi('judge'), n: 2 })),
    );
    expect(outcome).toEqual([400, 'invalid_request', 'n: a request gives at most 1 here, got 2']);
    expect(sampler.calls).toEqual([]);
  });

  it('that does not fit the context is refused, and the episode continues', async () => {
    const { play, sampler } = await opened(() => 'fine');
    const { outcome, failure } = await play(async ({ gateway: { url, secret } }) => {
      const long = { model: 'judge', messages: [{ role: 'user', content: 'x'.repeat(5000) }] };
      const refused = await codeOf(await post(url, secret, long));
      const close = { model: 'judge', messages: [{ role: 'user', content: 'x'.repeat(4085) }] };
      return [refused, (await post(url, secret, close)).status];
    });
    expect(failure).toBeUndefined();
    expect(outcome).toMatchObject([[400, 'context_length_exceeded', expect.stringContaining('4096 tokens')], 200]);
    const { prompt, maxTokens } = sampler.calls[0]?.request ?? { prompt: [], maxTokens: 0 };
    expect(maxTokens).toBeLessThan(16);
    expect(prompt.length + maxTokens).toBe(4096);
  });

  it('beyond the budget is answered once by a text, and refused from then on', async () => {
    const { play } = await opened(() => 'fine', { maxCalls: 2 });
    const { outcome, turns, failure } = await play(async ({ gateway: { url, secret }, agents: { judge } }) => {
      await judge('Hi'); // comes another way
      await post(url, secret, hi('judge'));
      await post(url, secret, hi('judge'));
      const streamed = await post(url, secret, { ...hi('judge'), stream: true });
      return [await streamed.text(), await codeOf(await post(url, secret, hi('judge')))];
    });
    expect(failure).toBeUndefined();
    expect(turns).toHaveLength(3);
    expect(outcome).toEqual([
      expect.stringMatching(/"content":"[^"]{9,}".*"finish_reason":"stop".*\[DONE\]/s),
      [400, 'calls_spent', 'the episode has made its 2 calls'],
    ]);
  });

  it.each(['answered', 'given up'])(
    'ends at training.maxTurns too, with the calls of play that were %s',
    async (how) => {
      const { play } = await opened(() => 'fine', { maxCalls: 9 }, { maxTurns: 3 });
      const { outcome, failure } = await play(async ({ gateway: { url, secret }, agents: { judge } }) => {
        for (let i = 0; i < 2; i++) {
          const controller = new AbortController();
          const call = judge('Hi', { signal: controller.signal }).catch(() => {});
          if (how === 'given up') controller.abort(new Error('enough'));
          await call;
        }
        const texts = [];
        for (let i = 0; i < 2; i++) texts.push(await textOf(await post(url, secret, hi('judge'))));
        return [...texts, await codeOf(await post(url, secret, hi('judge')))];
      });
      expect(failure).toBeUndefined();
      expect(outcome).toEqual([
        'fine',
        expect.stringContaining('no more calls'),
        [400, 'calls_spent', 'the episode has made its 3 calls'],
      ]);
    },
  );
});

describe('a request that is sent again', () => {
  const resent = { headers: { 'x-stainless-retry-count': '1' } };

  it('gets the answer that was made, or waits for it; an equal new one is another call', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { play } = await opened(async ({ index }) => {
      if (index === 2) await held;
      return `answer ${index}`;
    });
    const { outcome, turns } = await play(async ({ gateway: { url, secret } }) => {
      const say = async (content: string, init = {}) => {
        return textOf(await post(url, secret, { model: 'judge', messages: [{ role: 'user', content }] }, init));
      };
      const stored = [await say('a'), await say('a', resent), await say('a'), await say('a', resent)];
      const joined = [say('b'), say('b', resent)];
      await timeForMishaps(20);
      release();
      return [...stored, ...(await Promise.all(joined))];
    });
    expect(outcome).toEqual(['answer 0', 'answer 0', 'answer 1', 'answer 1', 'answer 2', 'answer 2']);
    expect(turns).toHaveLength(3);
  });

  it('is sampled again, with the same random numbers, if its client had disconnected', async () => {
    const { play, sampler } = await opened(({ index, signal }) => {
      if (index > 0) return 'fine';
      return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
    });
    const { turns, failure } = await play(async ({ gateway: { url, secret } }) => {
      const controller = new AbortController();
      const gone = post(url, secret, hi('judge'), { signal: controller.signal });
      await eventually(() => sampler.calls.length > 0);
      controller.abort();
      await expect(gone).rejects.toThrow(/aborted/);
      await eventually(() => sampler.calls[0]?.signal?.aborted !== false);
      await (await post(url, secret, hi('judge'), resent)).json();
    });
    expect(failure).toBeUndefined();
    expect(turns).toHaveLength(1);
    expect(sampler.calls.map(({ request }) => request.key)).toEqual(
      [turns[0], turns[0]].map(() => sampler.calls[0]?.request.key),
    );
  });
});

describe('a gateway', () => {
  it('names the fault of its port', async () => {
    const { gateway } = await opened(() => '');
    let url = '';
    const episode = {
      name: 'x',
      signal: new AbortController().signal,
      turns: [],
      calls: 0,
      noteRefusal: () => {},
      stray: () => {},
    };
    const calls = {
      agents: ['judge'],
      measure: () => undefined,
      recall: () => undefined,
      noteRefusal: () => {},
      complete: async (_: string, __: ModelRequest) => Promise.reject(new Error()),
    };
    ({ url } = gateway.connect(episode, calls));
    const port = Number(new URL(url).port);
    await expect(opened(() => '', { port })).rejects.toThrow(/^gateway: .*EADDRINUSE/);
    await expect(opened(() => '', { host: '192.0.2.1' })).rejects.toThrow(/^gateway: .*EADDRNOTAVAIL/);
  });

  it('is reached under the address that the recipe names', async () => {
    const { play } = await opened(() => '', { publicUrl: 'https://train.example/drmas/' });
    const { outcome } = await play(async ({ gateway }) => [gateway.url, gateway.envOf('judge').OPENAI_BASE_URL]);
    expect(outcome).toEqual(['https://train.example/drmas', 'https://train.example/drmas/e/0/a/judge/v1']);
  });

  it('throws as soon as a team uses it without a gateway in the recipe', async () => {
    const team = teamOf(async ({ gateway }) => gateway.env);
    const context = scriptedContext(
      team,
      scriptedSampler(() => ''),
    );
    const { failure } = await playEpisode(context, { team, task, sample: 0, phase: 'training', step: 0 });
    expect(failure?.message).toMatch(/the recipe has none: give it `gateway: \{\}`/);
  });

  it('has no way to an agent that the team has not', async () => {
    const { play } = await opened(() => '');
    const { failure } = await play(async ({ gateway }) => gateway.urlOf('nobody'));
    expect(failure?.message).toBe("gateway: there is no agent 'nobody'; the team has solver, judge");
  });
});
