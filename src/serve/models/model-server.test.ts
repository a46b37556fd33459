import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { basename, join } from 'node:path';
import type { AgentModel } from '@drmas/engine/endpoints';
import type { Listening } from '@drmas/engine/internal/base/platform/servers/listen';
import { randomKey } from '@drmas/engine/math';
import type { Turn } from '@drmas/engine/nouns';
import { listen, nodeHost } from '@drmas/engine/platform';
import { bytesTokenizer } from '@drmas/engine/tokens';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/support/time-and-chance.js';
import { createRun, temporaryRoot, tinyRecipe, trainTiny } from '../../../test/support/tiny-run.js';
import type { RunDirectory } from '../../method/store/run-directory.js';
import { evaluateCheckpoint } from '../../runs/run/execute/evaluate-run.js';
import { executeRun } from '../../runs/run/execute/execute-run.js';
import { wholeCheckpoint } from '../../runs/run/request/checkpoint-names.js';
import { type Script, scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { followRun } from './follow-run.js';
import { type ModelServer, type ModelServerOptions, modelServer } from './model-server.js';
import { type OpenAgentModels, openAgentModels } from './open-agent-models.js';

const root = temporaryRoot();
const open: Listening[] = [];
afterAll(async () => {
  for (const port of open) await port.close();
});

/** A server of these agents, and the official client of it. */
async function served(options: Partial<ModelServerOptions> & Pick<ModelServerOptions, 'agentModels'>) {
  const server: ModelServer = modelServer({ most: 256, ...options });
  const port = await listen(server, { host: '127.0.0.1', port: 0 });
  open.push(port);
  const client = new OpenAI({ baseURL: `${port.url}/v1`, apiKey: options.token ?? 'none', maxRetries: 0 });
  const health = async (): Promise<unknown> => (await fetch(`${port.url}/health`)).json();
  return { server, port, client, health };
}

const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 40 };
/** A model whose replies come from a script. */
function scripted(script: Script, context = 512): AgentModel {
  const model = scriptedSampler(script, bytesTokenizer()).policy('scripted', context);
  return { model, agent: { name: 'scripted', system: 'Be brief.', sampling, tools: 'plain' } };
}

const add = {
  type: 'function' as const,
  function: {
    name: 'add',
    parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
  },
};
const question = [{ role: 'user' as const, content: 'one and two?' }];

it('reports a field that it ignores once for each agent', async () => {
  const notices: string[] = [];
  const agentModels = new Map([['solver', scripted(() => 'three')]]);
  const { client } = await served({ agentModels, notify: (message) => notices.push(message) });
  for (const presence_penalty of [1, 2])
    await client.chat.completions.create({
      model: 'solver',
      messages: question,
      ...{ presence_penalty, temperature: 0.5, top_p: 1, seed: 1, stop: ['!'] },
    });
  expect(notices).toEqual(['solver: requests set presence_penalty, which the server ignores']);
});

it("puts the agent's system prompt in the place of a program's own, as in training", async () => {
  const prompts: string[] = [];
  const model = scripted(({ prompt }) => {
    prompts.push(prompt);
    return 'three';
  });
  const { client } = await served({ agentModels: new Map([['solver', model]]) });
  const ask = (...messages: { role: 'system' | 'user'; content: string }[]) =>
    client.chat.completions.create({ model: 'solver', messages });
  await ask(...question);
  await ask({ role: 'system', content: 'You are a helpful assistant.' }, ...question);
  await ask({ role: 'system', content: 'Be brief.' }, ...question);
  expect(prompts[0]).toContain('Be brief.');
  expect(prompts).toEqual([prompts[0], prompts[0], prompts[0]]);
});

describe('the agents of a run', () => {
  let run: RunDirectory;
  let turns: readonly Turn[];
  let agentModels: OpenAgentModels;
  beforeAll(async () => {
    run = await trainTiny(root, tinyRecipe({}, ['training.steps=2']));
    const recipe = tinyRecipe({}, ['evaluation.sampling.temperature=0']);
    const { episodes } = await evaluateCheckpoint(
      recipe,
      await wholeCheckpoint(run, undefined, 'evaluate'),
      nodeHost(),
    );
    turns = episodes.flatMap((episode) => episode.turns);
    agentModels = await openAgentModels({ from: run.path }, nodeHost({ threads: 1 }));
  });
  afterAll(() => agentModels.dispose());

  it('give the same greedy answers as in an evaluation, token by token', async () => {
    const { client } = await served(agentModels);
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['solver', 'verifier']);
    expect(turns.map(({ agent }) => agent)).toContain('verifier');
    for (const { agent: model, messages, text, response, prompt } of turns) {
      const sent = { model, messages: messages.slice(1) as typeof question, temperature: 0 };
      const ids = { return_token_ids: true };
      const { choices, usage } = await client.chat.completions.create({ ...sent, ...ids });
      expect(choices[0]?.message.content).toBe(text);
      expect(choices[0]).toMatchObject({ token_ids: response });
      expect(usage).toMatchObject({ prompt_tokens: prompt.length, completion_tokens: response.length });
      const stream = await client.chat.completions.create({ ...sent, stream: true });
      const pieces: string[] = [];
      for await (const chunk of stream) pieces.push(chunk.choices[0]?.delta.content ?? '');
      expect(pieces.join('')).toBe(text);
      expect((await client.responses.create({ model, input: sent.messages, temperature: 0 })).output_text).toBe(text);
    }
  });

  it('answer 64 streams at once, each as it would be answered alone', async () => {
    const { client } = await served(agentModels);
    const body = (seed: number) => ({
      model: seed % 2 === 0 ? 'solver' : 'verifier',
      seed,
      max_tokens: 6,
      messages: [{ role: 'user' as const, content: `${seed % 10}+${seed % 7}` }],
    });
    const streamed = async (seed: number) => {
      let text = '';
      let ended: string | null = null;
      for await (const { choices } of await client.chat.completions.create({ ...body(seed), stream: true })) {
        text += choices[0]?.delta.content ?? '';
        ended = choices[0]?.finish_reason ?? ended;
      }
      return { text, ended };
    };
    const all = await Promise.all(Array.from({ length: 64 }, (_, seed) => streamed(seed)));
    for (const [seed, { text, ended }] of all.entries()) {
      expect(ended).toMatch(/stop|length/);
      if (seed % 8 === 0)
        expect((await client.chat.completions.create(body(seed))).choices[0]?.message.content).toBe(text);
    }
  });

  it('give several answers to one request, each with the next seed', async () => {
    const { client } = await served({ ...agentModels, most: 3 });
    const body = { model: 'solver', messages: [{ role: 'user' as const, content: '3+4' }], temperature: 2 };
    const ask = async (more: object) => await client.chat.completions.create({ ...body, ...more });
    const alone = await Promise.all([7, 8, 9].map((seed) => ask({ seed, logprobs: true })));
    const together = await ask({ seed: 7, n: 3, logprobs: true });
    const choices = alone.flatMap(({ choices: [choice] }, index) => (choice ? [{ ...choice, index }] : []));
    expect(new Set(choices.map(({ message }) => message.content)).size).toBeGreaterThan(1);
    expect(together.choices).toEqual(choices);
    const tokens = alone.reduce((sum, { usage }) => sum + (usage?.completion_tokens ?? 0), 0);
    expect(together.usage).toMatchObject({ prompt_tokens: alone[0]?.usage?.prompt_tokens, completion_tokens: tokens });
    await expect(ask({ n: 4 })).rejects.toThrow('400 n: a request gives at most 3 here, got 4');
  });

  it('can be opened one by one and by checkpoint, and refuses unknown ones by name', async () => {
    const host = nodeHost({ threads: 1 });
    const one = await openAgentModels({ from: run.path, agent: 'verifier', checkpoint: '2' }, host);
    expect([...one.agentModels.keys()]).toEqual(['verifier']);
    expect(one.origin).toBe(`${run.path}, step-000002`);
    await one.dispose();
    const refused = (request: object) => expect(openAgentModels({ from: run.path, ...request }, host)).rejects;
    await refused({ agent: 'solvr' }).toThrow(/has no trained agent 'solvr'; did you mean 'solver'/);
    await refused({ checkpoint: '9' }).toThrow(/has no checkpoint '9'; it has step-000002/);
    await refused({ mostBytes: 1000 }).toThrow(/the weights take \d.* but the limit is 1\.0 kB/);
    await refused({ from: root }).toThrow(/is neither a run nor a model/);
  });
});

describe('a served agent', () => {
  it('is offered tools and calls them; its text comes before the call', async () => {
    const prompts: string[] = [];
    const agentModel = scripted(({ prompt }) => {
      prompts.push(prompt);
      return 'Let me see.\n@add(1, 2)';
    });
    const { client } = await served({ agentModels: new Map([['scripted', agentModel]]) });
    const sent = { model: 'openai/scripted', messages: question, tools: [add] };
    const { choices } = await client.chat.completions.create(sent);
    expect(choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { content: 'Let me see.', tool_calls: [{ function: { name: 'add', arguments: '{"a":1,"b":2}' } }] },
    });
    expect(prompts[0]).toContain('Be brief.\n@add(a, b)');
    const id = choices[0]?.message.tool_calls?.[0]?.id ?? '';
    expect(id).toMatch(/^call_[0-9a-f]+_0$/);
    const texts: string[] = [];
    const calls: unknown[] = [];
    for await (const chunk of await client.chat.completions.create({ ...sent, stream: true })) {
      texts.push(chunk.choices[0]?.delta.content ?? '');
      calls.push(...(chunk.choices[0]?.delta.tool_calls ?? []));
    }
    expect(texts.filter(Boolean).length).toBeGreaterThan(3);
    expect(texts.join('')).toBe('Let me see.');
    expect(calls).toMatchObject([{ index: 0, function: { name: 'add', arguments: '{"a":1,"b":2}' } }]);
    await client.chat.completions.create({ ...sent, tool_choice: { type: 'function', function: { name: 'add' } } });
    expect(prompts.at(-1)?.endsWith('@add(')).toBe(true);
    const result = { role: 'tool' as const, tool_call_id: id, content: '3' };
    const call = { id, type: 'function' as const, function: { name: 'add', arguments: '{"a":1,"b":2}' } };
    const called = { role: 'assistant' as const, content: 'Let me see.', tool_calls: [call] };
    await client.chat.completions.create({ ...sent, messages: [...question, called, result], tool_choice: 'none' });
    expect(prompts.at(-1)).toMatch(/Let me see\.\n@add\(1, ?2\)/);
  });

  it('calls tools and reads their results over responses, streamed too', async () => {
    const agentModel = scripted(({ prompt }) =>
      prompt.includes('three') ? 'It is three.' : 'Let me see.\n@add(1, 2)',
    );
    const { client } = await served({ agentModels: new Map([['scripted', agentModel]]) });
    const { name, parameters } = add.function;
    const tools = [{ type: 'function' as const, name, parameters, strict: false }];
    const input: OpenAI.Responses.ResponseInputItem[] = [{ role: 'user', content: 'one and two?' }];
    const ask = { model: 'scripted', tools };
    const first = await client.responses.create({ ...ask, input });
    expect(first.output).toMatchObject([
      { type: 'message', content: [{ text: 'Let me see.' }] },
      { type: 'function_call', name: 'add', arguments: '{"a":1,"b":2}' },
    ]);
    const stream = client.responses.stream({ ...ask, input });
    const texts: string[] = [];
    stream.on('response.output_text.delta', ({ delta }) => texts.push(delta));
    const { output } = await stream.finalResponse();
    expect(texts.length).toBeGreaterThan(3);
    expect(texts.join('')).toBe('Let me see.');
    expect(output).toMatchObject([{ type: 'message' }, { type: 'function_call', arguments: '{"a":1,"b":2}' }]);
    const call = output.at(-1) as OpenAI.Responses.ResponseFunctionToolCall;
    const result = { type: 'function_call_output' as const, call_id: call.call_id, output: 'three' };
    const items = output as OpenAI.Responses.ResponseInputItem[];
    const second = await client.responses.create({ ...ask, input: [...input, ...items, result] });
    expect(second.output_text).toBe('It is three.');
  });

  it('survives the schema of a tool that takes too long to check', async () => {
    const { client } = await served({ agentModels: new Map([['scripted', scripted(() => '@add(1, 2)')]]) });
    const doubled = Object.fromEntries(
      Array.from({ length: 40 }, (_, i) => [`a${i}`, { allOf: [1, 2].map(() => ({ $ref: `#/$defs/a${i + 1}` })) }]),
    );
    const parameters = { ...add.function.parameters, $ref: '#/$defs/a0', $defs: doubled };
    const costly = { ...add, function: { ...add.function, parameters } };
    const sent = { model: 'scripted', messages: question, tools: [costly] };
    const refused = { code: 'costly_schema', message: expect.stringContaining('more than 300000 steps') };
    await expect(client.chat.completions.create(sent)).rejects.toMatchObject(refused);
    const read = async () => {
      for await (const _ of await client.chat.completions.create({ ...sent, stream: true }));
    };
    await expect(read()).rejects.toMatchObject(refused);
    await client.chat.completions.create({ ...sent, tools: [add] });
  });

  it("reads the answer's schema in the same place as in training", async () => {
    const prompts: string[] = [];
    const agentModel = scripted(({ prompt }) => `${prompts.push(prompt)}`);
    const { client } = await served({ agentModels: new Map([['scripted', agentModel]]) });
    const schema = { type: 'object', properties: { sum: { type: 'number' } } };
    const format = { type: 'json_schema' as const, json_schema: { name: 'sum', schema } };
    await client.chat.completions.create({ model: 'scripted', messages: question, response_format: format });
    expect(prompts[0]).toContain(`Be brief.\nAnswer with JSON of this schema alone: ${JSON.stringify(schema)}<|end|>`);
  });

  it('ends at the stop texts of the client, and does not stream them', async () => {
    const agentModel = scripted(() => 'one, two. Observation: three');
    const { client, health } = await served({ agentModels: new Map([['scripted', agentModel]]) });
    const sent = { model: 'scripted', messages: question, stop: ['Observation:', 'never'] };
    const whole = await client.chat.completions.create(sent);
    expect(whole.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'one, two. ' } });
    let text = '';
    for await (const chunk of await client.chat.completions.create({ ...sent, stream: true }))
      text += chunk.choices[0]?.delta.content ?? '';
    expect(text).toBe('one, two. ');
    expect(await health()).toMatchObject({ running: 0 });
  });

  it('says which stop text ended an answer, in each dialect, streamed or not', async () => {
    const { port } = await served({
      agentModels: new Map([['scripted', scripted(() => 'one, two. Observation: three')]]),
    });
    const ask = async (route: string, body: object): Promise<string> => {
      const headers = { 'content-type': 'application/json' };
      const sent = { model: 'scripted', messages: question, max_tokens: 40, ...body };
      return (await fetch(`${port.url}/v1/${route}`, { method: 'POST', headers, body: JSON.stringify(sent) })).text();
    };
    const stops = ['never', 'two', 'Observation:'];
    for (const stream of [false, true]) {
      const message = await ask('messages', { stream, stop_sequences: stops });
      expect(message).toContain('"stop_reason":"stop_sequence","stop_sequence":"two"');
      expect(await ask('messages', { stream })).toContain('"stop_reason":"end_turn","stop_sequence":null');
      const chat = await ask('chat/completions', { stream, stop: stops });
      expect(chat).toContain('"finish_reason":"stop"');
      expect(chat).toContain('"stop_reason":"two"'); // the name of vLLM
      expect(await ask('chat/completions', { stream })).not.toContain('stop_reason');
    }
  });

  it('asks for JSON alone if a request brings no schema, and reads an answer of any object', async () => {
    const prompts: string[] = [];
    const agentModel = scripted(({ prompt }) => `{"n": ${prompts.push(prompt)}}`);
    const { client } = await served({ agentModels: new Map([['scripted', agentModel]]) });
    const model = 'scripted';
    await client.chat.completions.create({ model, messages: question, response_format: { type: 'json_object' } });
    await client.responses.create({ model, input: 'one?', text: { format: { type: 'json_object' } } });
    await client.chat.completions.create({
      ...{ model, messages: question },
      response_format: { type: 'json_schema', json_schema: { name: 'any' } },
    });
    for (const prompt of prompts) {
      expect(prompt).toContain('Be brief.\nAnswer with JSON alone.<|end|>');
      expect(prompt).not.toContain('schema');
    }
    expect(prompts).toHaveLength(3);
  });

  it('that was trained with a schema gets it in requests for JSON without one, and says so once', async () => {
    const prompts: string[] = [];
    const agentModel = scripted(({ prompt }) => `${prompts.push(prompt)}`);
    const schema = { type: 'object', properties: { city: { type: 'string' } } };
    const notices: string[] = [];
    const options = { schemas: new Map([['scripted', schema]]), notify: (message: string) => notices.push(message) };
    const { client } = await served({ agentModels: new Map([['scripted', agentModel]]), ...options });
    const sent = { model: 'scripted', messages: question };
    const other = { type: 'json_schema' as const, json_schema: { name: 'a', schema: { type: 'array' } } };
    await client.chat.completions.create({ ...sent, response_format: other });
    expect(notices).toEqual([]);
    await client.chat.completions.create({ ...sent, response_format: { type: 'json_object' } });
    await client.chat.completions.create(sent);
    expect(prompts[0]).toContain('alone: {"type":"array"}');
    expect(prompts[1]).toContain(`Be brief.\nAnswer with JSON of this schema alone: ${JSON.stringify(schema)}<|end|>`);
    expect(prompts[2]).not.toContain('JSON');
    expect(notices).toEqual([
      expect.stringMatching(/^scripted: was trained with a JSON schema.*supportsStructuredOutputs/),
    ]);
  });

  it('has its models by name, in the forms of OpenAI and of Anthropic', async () => {
    const { client, port } = await served({
      agentModels: new Map([['scripted', scripted(() => 'ok')]]),
      token: 'secret',
    });
    for (const name of ['scripted', 'openai/scripted'])
      expect(await client.models.retrieve(name)).toMatchObject({ id: 'scripted', object: 'model', owned_by: 'drmas' });
    const unknown = client.models.retrieve('scriptd');
    await expect(unknown).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
      message: /did you mean 'scripted'/,
    });
    const headers = { 'anthropic-version': '2023-06-01', 'x-api-key': 'secret' };
    const read = async (path: string): Promise<unknown> =>
      (await fetch(`${port.url}/v1/models${path}`, { headers })).json();
    expect(await read('/scripted')).toMatchObject({ type: 'model', id: 'scripted', display_name: 'scripted' });
    expect(await read('')).toMatchObject({
      data: [{ type: 'model', id: 'scripted' }],
      has_more: false,
      first_id: 'scripted',
    });
    expect((await fetch(`${port.url}/v1/models/scripted`)).status).toBe(401);
    // Errors have the form of the client, whichever part of the server refuses the request.
    const refusedAs = async (path: string, key: string): Promise<unknown> => {
      const answer = await fetch(`${port.url}/v1/${path}`, { headers: { ...headers, 'x-api-key': key } });
      return answer.json();
    };
    expect(await read('/%E2%80%AEx')).toMatchObject({ type: 'error', error: { type: 'not_found_error' } });
    const unauthorised = { type: 'error', error: { type: 'authentication_error', code: 'invalid_api_key' } };
    expect(await refusedAs('models', 'guess')).toMatchObject(unauthorised);
    const missing = { type: 'error', error: { type: 'not_found_error', code: 'unknown_url' } };
    expect(await refusedAs('files', 'secret')).toMatchObject(missing);
  });

  it('refuses invalid requests, in the format of the dialect', async () => {
    const agentModel = scripted(() => 'ok', 64);
    const toolless = { ...agentModel, agent: { name: 'plain', sampling } };
    const agentModels = new Map([['scripted', agentModel], ['toolless', toolless]]); // biome-ignore format: a table
    const { client, port } = await served({ agentModels, token: 'secret' });
    const refused = (change: object) =>
      expect(client.chat.completions.create({ model: 'scripted', messages: question, ...change })).rejects;
    await refused({ model: 'other' }).toMatchObject({ status: 404, code: 'model_not_found' });
    await refused({ temperature: -1 }).toMatchObject({ status: 400, code: 'invalid_value', param: 'temperature' });
    await refused({ top_p: 2 }).toMatchObject({ status: 400, code: 'invalid_value', param: 'top_p' });
    await refused({ messages: [{ role: 'user', content: 'x'.repeat(60) }] }).toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
      message: expect.stringContaining('which leave no room in a context of 64 tokens'),
    });
    await refused({ messages: [{ role: 'user', content: 'x'.repeat(1e5) }] }).toMatchObject({ status: 400 });
    await refused({ messages: [] }).toMatchObject({ status: 400 });
    await refused({ stop: Array.from({ length: 5e5 }, () => '~') }).toMatchObject({
      status: 400,
      message: expect.stringContaining('stop: expected at most 256 stop texts'),
    });
    await refused({ model: 'toolless', tools: [add] }).toMatchObject({ status: 400, code: 'no_tools', param: 'tools' });
    const other = new OpenAI({ baseURL: `${port.url}/v1`, apiKey: 'guess', maxRetries: 0 });
    await expect(other.models.list()).rejects.toMatchObject({ status: 401, code: 'invalid_api_key' });
    const path = `${port.url}/e/1/a/scripted/v1/models`;
    expect((await fetch(path, { headers: { authorization: 'Bearer secret' } })).status).toBe(404);
  });
});

describe('a server', () => {
  /** A model that writes a word, then waits for a signal. It counts clients that disconnected. */
  function slow() {
    const state = { begun: 0, given: 0, finish: () => {} };
    const { model, agent } = scripted(() => '');
    const generate: AgentModel['model']['generate'] = (_, signal, onTokens) =>
      new Promise((resolve, reject) => {
        state.begun++;
        onTokens?.([104, 105]);
        signal?.addEventListener('abort', () => {
          state.given++;
          reject(signal.reason);
        });
        state.finish = () => resolve({ tokens: [104, 105], logprobs: [0, 0], finishReason: 'stop', policyVersion: 0 });
      });
    return { state, agentModels: new Map([['scripted', { agent, model: { ...model, generate } }]]) };
  }
  const body = JSON.stringify({ model: 'scripted', messages: question, stream: true });
  const headers = { 'content-type': 'application/json' };

  it('ends the sampling for a client that goes away, streamed or not', async () => {
    const { state, agentModels } = slow();
    const { port, health } = await served({ agentModels });
    for (const stream of [true, false]) {
      const before = state.given;
      const sent = httpRequest(`${port.url}/v1/chat/completions`, { method: 'POST', headers });
      sent.on('error', () => {});
      sent.end(JSON.stringify({ model: 'scripted', messages: question, stream }));
      await eventually(() => state.begun > before);
      expect(await health()).toMatchObject({ running: 1 });
      sent.destroy();
      await eventually(() => state.given > before);
      expect(await health()).toMatchObject({ running: 0 });
    }
  });

  it('refuses long bodies beyond its room in the form of their interface', async () => {
    const server = modelServer({ agentModels: slow().agentModels, most: 9 });
    const port = await listen(server, { host: '127.0.0.1', port: 0, room: { bodyBytes: 1e5 } });
    open.push(port);
    const long = { method: 'POST', headers: { ...headers, 'content-length': '99999' } };
    const first = httpRequest(`${port.url}/v1/messages`, long).on('error', () => {});
    first.write('{');
    const sent = { method: 'POST', headers, body: 'x'.repeat(99_999) };
    const refused = async (route: string): Promise<unknown> => {
      const answer = await fetch(`${port.url}/v1/${route}`, sent);
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
      return answer.json();
    };
    await eventually(async () =>
      expect(await refused('messages')).toMatchObject({
        type: 'error',
        error: { type: 'overloaded_error', code: 'busy' },
      }),
    );
    const error = { type: 'server_error', code: 'busy', param: null };
    expect(await refused('chat/completions')).toMatchObject({ error });
    first.destroy();
  });

  it('refuses more requests than it may have, and those that come while it stops; the others are finished', async () => {
    const { state, agentModels } = slow();
    const { server, port, health } = await served({ agentModels, most: 1 });
    const ask = () => fetch(`${port.url}/v1/chat/completions`, { method: 'POST', headers, body });
    const first = await ask();
    const refused = await ask();
    expect([refused.status, refused.headers.get('x-should-retry')]).toEqual([503, null]); // waiting may help
    let drained = false;
    const draining = server.drain().then(() => {
      drained = true;
    });
    const late = await ask();
    expect(late.status).toBe(503);
    expect(await late.json()).toMatchObject({ error: { code: 'stopping' } });
    expect(await health()).toMatchObject({ status: 'stopping', running: 1 });
    expect(drained).toBe(false);
    state.finish();
    expect(await first.text()).toMatch(/"hi"[\s\S]*\[DONE\]/);
    await draining;
  });
});

describe('a server that follows a run', () => {
  const never = new AbortController().signal;
  const everyStep = ['training.steps=3', 'training.checkpointEvery=1', 'policies.solver.optimizer.learningRate=0.05'];
  const host = (notices: string[]) => nodeHost({ threads: 1, notify: (text) => void notices.push(text) });

  /** The server of a followed run, and its greedy answer to a question. */
  async function following(path: string, notices: string[], checkpoint?: 'best') {
    const followed = await followRun({ from: path, agent: 'solver', checkpoint }, host(notices), 20);
    const { client, health } = await served({ ...followed, hold: followed.hold });
    const ask = async (content = '1+2') => {
      const messages = [{ role: 'user' as const, content }];
      const { choices } = await client.chat.completions.create({ model: 'solver', temperature: 0, messages });
      return choices[0]?.message.content;
    };
    return { followed, client, health, ask };
  }

  /** The greedy answer of each checkpoint. */
  async function answersOf(run: RunDirectory): Promise<Map<string, string | null | undefined>> {
    const answers = new Map<string, string | null | undefined>();
    for (const { directory } of await run.checkpoints()) {
      const checkpoint = basename(directory);
      const opened = await openAgentModels({ from: run.path, agent: 'solver', checkpoint }, nodeHost({ threads: 1 }));
      const { client } = await served(opened);
      const messages = [{ role: 'user' as const, content: '1+2' }];
      const { choices } = await client.chat.completions.create({ model: 'solver', temperature: 0, messages });
      answers.set(checkpoint, choices[0]?.message.content);
      await opened.dispose();
    }
    return answers;
  }

  it('answers with the newest whole checkpoint, and skips broken and unfinished ones with a notice', {
    tags: 'verify',
  }, async () => {
    const run = await trainTiny(root, tinyRecipe({}, everyStep));
    const answers = await answersOf(run);
    const copy = `${run.path}-copy`;
    await mkdir(join(copy, 'checkpoints'), { recursive: true });
    await cp(join(run.path, 'recipe.json'), join(copy, 'recipe.json'));
    const notices: string[] = [];
    const give = (name: string, filter?: (path: string) => boolean) =>
      cp(join(run.path, 'checkpoints', name), join(copy, 'checkpoints', name), { recursive: true, filter });

    const opening = following(copy, notices);
    await eventually(() => expect(notices).toEqual([`waiting for the first checkpoint of ${copy}`]));
    await give('step-000001');
    const { followed, ask, health, client } = await opening;
    expect(await health()).toEqual({ status: 'ok', running: 0, models: ['solver'], checkpoint: 'step-000001' });
    expect(await ask()).toBe(answers.get('step-000001'));

    const withoutDigests = (path: string) => !path.endsWith('digests.json');
    const first = followed.agentModels.get('solver') as AgentModel;
    const release = followed.hold(first); // an answer is under way
    await give('step-000002', withoutDigests);
    await eventually(() => expect(notices.at(-1)).toMatch(/step-000002 .* is skipped: .*digests.json is missing/));
    expect(await ask()).toBe(answers.get('step-000001'));
    await give('step-000002');
    await eventually(() => expect(followed.checkpoint()).toBe('step-000002'));
    expect(await ask()).toBe(answers.get('step-000002'));
    const { tokenizer } = first.model;
    const sent = { ...sampling, temperature: 0, prompt: tokenizer.encode('1+2'), stopTokens: tokenizer.stopTokens };
    const generated = () => first.model.generate({ ...sent, maxTokens: 2, key: randomKey('answer', 1) }, never);
    await expect(generated()).resolves.toHaveProperty('tokens');
    release();
    release(); // a second call has no effect
    await eventually(() => expect(generated()).rejects.toThrow());

    await rm(join(copy, 'checkpoints', 'step-000001'), { recursive: true });
    const weights = join('checkpoints', 'step-000003', 'solver', 'model.safetensors');
    const bytes = await readFile(join(run.path, weights));
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    await give('step-000003', (path) => withoutDigests(path) && !path.endsWith('model.safetensors'));
    await writeFile(join(copy, weights), bytes);
    await give('step-000003', (path) => !path.endsWith('model.safetensors')); // never whole, whenever the run is read
    const skipped = /step-000003 .* is skipped/;
    await eventually(() => expect(notices.at(-1)).toMatch(skipped));
    expect(await ask()).toBe(answers.get('step-000002'));
    const spoken = client.chat.completions.create({ model: 'verifier', messages: [{ role: 'user', content: '1' }] });
    await expect(spoken).rejects.toMatchObject({ status: 404 });
    await give('step-000003'); // whole again
    await eventually(() => expect(followed.checkpoint()).toBe('step-000003'));
    expect(await ask()).toBe(answers.get('step-000003'));
    await followed.dispose();
    await expect(ask()).rejects.toThrow();
  });

  it('refuses what it cannot follow, by name', async () => {
    const run = await createRun(root, tinyRecipe());
    const refused = (request: object) => expect(followRun({ from: run.path, ...request }, nodeHost())).rejects;
    await refused({ checkpoint: '3' }).toThrow(/--follow serves the newest checkpoint: .* got '3'/);
    await refused({ agent: 'sover' }).toThrow(/no trained agent 'sover'; did you mean 'solver'/);
    await refused({ from: root }).toThrow(/is not a run: it has no recipe.json/);
    const stop = new AbortController();
    const waiting = followRun({ from: run.path }, nodeHost({ signal: stop.signal }), 20);
    stop.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
  });

  it('streams answers while the run trains, each with the weights of one checkpoint', {
    tags: 'verify',
  }, async () => {
    const steps = ['training.steps=8', 'training.keepBest=true', ...everyStep.slice(1)];
    const recipe = tinyRecipe({}, [...steps, 'evaluation.every=4']);
    const run = await createRun(root, recipe);
    let training = true;
    const trained = executeRun(recipe, run, nodeHost({ threads: 1 })).finally(() => {
      training = false;
    });
    const notices: string[] = [];
    const { followed, client } = await following(run.path, notices);
    const texts: string[] = [];
    const stream = async () => {
      while (training) {
        let text = '';
        const messages = [{ role: 'user' as const, content: '1+2' }];
        const body = { model: 'solver', temperature: 0, messages, stream: true as const };
        for await (const { choices } of await client.chat.completions.create(body))
          text += choices[0]?.delta.content ?? '';
        texts.push(text);
      }
    };
    await Promise.all([trained, stream(), stream()]);
    await eventually(() => expect(followed.checkpoint()).toBe('step-000008'));
    const answers = new Set((await answersOf(run)).values());
    expect(texts.length).toBeGreaterThan(8);
    expect(texts.filter((text) => !answers.has(text))).toEqual([]);
    expect(notices.filter((text) => text.includes('answers new requests')).length).toBeGreaterThan(2);
    expect(notices.filter((text) => text.includes('skipped'))).toEqual([]);
    await followed.dispose();
  });
});
