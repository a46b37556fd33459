/**
 * One law: a number of JSON has the digits that were written, wherever it comes in and wherever it goes out. Texts are
 * compared, since JSON.parse would round both sides alike.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { endpointSchema } from '@drmas/engine/endpoints';
import { fitsJsonSchema, parseWithSource } from '@drmas/engine/errors';
import { RandomStream } from '@drmas/engine/math';
import { openEndpoint } from '@drmas/engine/node';
import type { JsonSchema, Tool } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import { callsIn, toolFormat, toolFormatNames } from '@drmas/engine/tool-calls';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { storedEpisode, writeEpisodes } from '../src/method/store/episode-files.js';
import { playScripted } from '../src/runs/testing/play-scripted.js';
import { scriptedSampler } from '../src/runs/testing/scripted-sampler.js';
import { recordDemonstrations } from '../src/runs/traces/demonstration-rows.js';
import { importTraces } from '../src/runs/traces/import-traces.js';
import { modelServer } from '../src/serve/models/model-server.js';
import { demandedSchema, promptMessages } from '../src/teams/rollout/prompt-messages.js';
import { withDemonstrations } from '../src/teams/tasks/files/demonstrations.js';
import { arithmetic } from '../src/teams/tasks/generated/arithmetic.js';
import { agent } from '../src/teams/team/agent.js';
import { defineTeam } from '../src/teams/team/team.js';
import { chatServer, say } from './support/chat-server.js';
import { miniTokenizer } from './support/qwen3-mini.js';
import { temporaryRoot } from './support/tiny-run.js';

const root = temporaryRoot();

/** Numbers that JavaScript writes otherwise. Floats are out: Hugging Face's templates write them as Python does. */
const NUMBERS = ['9007199254740993', '-9223372036854775807', '123456789012345678901234567890', '5.0'];

/** A JSON schema that has a number under each keyword that takes one, and keys that are whole numbers. */
const schemaText = (number: string) =>
  `{"type":"object","properties":{"id":{"const":${number}},"10":{"enum":[${number},"a"]},"2":{"type":"array","items":{` +
  `"type":"integer","minimum":${number},"maximum":${number},"exclusiveMaximum":${number},"multipleOf":${number}}},` +
  `"d":{"type":"integer","default":${number},"examples":[${number}]}}}`;
const argumentsText = (number: string) => `{"id":${number},"10":[${number}],"2":{"of":${number}}}`;
/** Texts without white space, which templates and serializers put at other places. */
const bare = (text: string) => text.replaceAll(/\s/g, '');

const tokenizer = miniTokenizer();

/** The prompt that a server of an agent in Qwen3's format makes of a body of JSON, and its answer. */
async function served(route: string, body: string, reply: string) {
  const prompts: string[] = [];
  const sampler = scriptedSampler(({ prompt }) => {
    prompts.push(prompt);
    return reply;
  }, tokenizer);
  const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 1000 };
  const agentModel = { agent: { name: 'a', sampling, tools: 'hermes' as const }, model: sampler.policy('a', 100_000) };
  const { app } = modelServer({ agentModels: new Map([['a', agentModel]]), most: 4 });
  const headers = { 'content-type': 'application/json' };
  const response = await app.request(`http://localhost/v1/${route}`, { method: 'POST', headers, body });
  const sent = await response.text();
  return { prompt: bare(prompts[0] ?? ''), sent, status: response.status };
}

const calling = (values: string) => `<tool_call>\n{"name": "f", "arguments": ${values}}\n</tool_call>`;

/** Requests in each dialect: a tool and a demanded schema, and a conversation that has a call with its result. */
const DIALECTS: Readonly<Record<string, (schema: string, values: string, stream: boolean) => string>> = {
  'chat/completions': (schema, values, stream) =>
    `{"model":"a","stream":${stream},"tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}],
      "response_format":{"type":"json_schema","json_schema":{"name":"s","schema":${schema}}},
      "messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":[
        {"id":"c","type":"function","function":{"name":"f","arguments":${JSON.stringify(values)}}}]},
        {"role":"tool","tool_call_id":"c","content":"ok"}]}`,
  responses: (schema, values, stream) =>
    `{"model":"a","stream":${stream},"tools":[{"type":"function","name":"f","parameters":${schema}}],
      "text":{"format":{"type":"json_schema","name":"s","schema":${schema}}},
      "input":[{"role":"user","content":"Hi"},
        {"type":"function_call","call_id":"c","name":"f","arguments":${JSON.stringify(values)}},
        {"type":"function_call_output","call_id":"c","output":"ok"}]}`,
  messages: (schema, values, stream) =>
    `{"model":"a","stream":${stream},"max_tokens":900,"tools":[{"name":"f","input_schema":${schema}}],
      "output_config":{"format":{"type":"json_schema","schema":${schema}}},
      "messages":[{"role":"user","content":"Hi"},
        {"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":${values}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"ok"}]}]}`,
};

describe.each(NUMBERS)('the number %s', (number) => {
  const [schema, values] = [schemaText(number), argumentsText(number)];
  const another = number.replace(/\d(?=\.|$)/, (digit) => `${(Number(digit) + 1) % 10}`);
  const count = (text: string, part: string) => text.split(part).length - 1;

  describe.each(Object.keys(DIALECTS))('in a request to %s', (route) => {
    it.each([false, true])('reaches the model and the client (streamed: %s)', async (stream) => {
      const answer = '{"type":"object","properties":{"id":{}}}'; // any object is a call of the tool below
      const body = DIALECTS[route]?.(schema, values, stream) ?? '';
      const { prompt, status } = await served(route, body, 'no call');
      expect(status).toBe(200);
      expect(count(prompt, schema)).toBe(2); // the tool and the demand
      expect(prompt).toContain(bare(`"arguments": ${values}`));
      const { sent } = await served(route, DIALECTS[route]?.(answer, values, stream) ?? '', calling(values));
      const written = route === 'messages' && !stream ? values : JSON.stringify(values).slice(1, -1);
      expect(sent.replaceAll(' ', '')).toContain(written);
    });

    it('is what an argument of a call is compared with', async () => {
      const exact = `{"type":"object","properties":{"id":{"const":${number}}},"required":["id"]}`;
      const isCall = async (given: string) => {
        const body = DIALECTS[route]?.(exact, '{}', false) ?? '';
        return /"(?:tool_use|tool_calls|function_call)"/.test(
          (await served(route, body, calling(`{"id":${given}}`))).sent,
        );
      };
      expect(await isCall(number)).toBe(true);
      expect(await isCall(another)).toBe(false);
    });
  });

  it('in a schema of a tool reaches a server that answers for a frozen agent', async () => {
    const { requests, url } = await chatServer((_, response) => say(response, 'Me.'));
    const tool: Tool = { name: 'f', parameters: parseWithSource(schema) as Tool['parameters'] };
    const endpoint = openEndpoint(endpointSchema.parse({ type: 'endpoint', url, model: 'm' }), {});
    const asked = { messages: [{ role: 'user' as const, content: 'Hi' }], temperature: 1, topP: 1, topK: 0 };
    await endpoint.complete({ ...asked, maxTokens: 5, seed: 1, tools: [tool] }, new AbortController().signal);
    expect(requests[0]?.text).toContain(schema);
  });

  it('of a trace reaches the prompt of a demonstration', async () => {
    // The schema is of a property that the call does not have: calls that do not fit their schema are left out.
    const parameters = `{"type":"object","properties":{"other":${schema}}}`;
    const tool = `{"type":"function","function":{"name":"f","parameters":${parameters}}}`;
    const attributes = {
      'gen_ai.agent.name': JSON.stringify('a'),
      'gen_ai.operation.name': JSON.stringify('chat'),
      'gen_ai.tool.definitions': JSON.stringify(`[${tool}]`),
      'gen_ai.input.messages': `[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]`,
      'gen_ai.output.messages': `[{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"f","arguments":${values}}]}]`,
    };
    const fields = Object.entries(attributes).map(([name, value]) => `${JSON.stringify(name)}:${value}`);
    const file = join(root, `${number}.jsonl`);
    await writeFile(file, `{"traceId":"t","spanId":"s","name":"chat","startTime":1,"attributes":{${fields.join()}}}\n`);
    const out = join(root, number);
    await importTraces(file, {}, out);
    const rows = join(out, 'demonstrations.jsonl');
    const digits = count(schema, number) + count(values, number);
    expect(count(await readFile(rows, 'utf8'), number)).toBe(digits);
    const tasks = withDemonstrations(arithmetic(), rows);
    await tasks.load('train');
    const { messages, tools, toolCalls } = tasks.trace?.(new RandomStream(1), 'train') ?? { messages: [] };
    const answer = { role: 'assistant' as const, content: '', toolCalls: toolCalls ?? [] };
    const prompt = tokenizer.decode(tokenizer.chat([...messages, answer], undefined, tools));
    expect(count(prompt, number)).toBe(digits);
  });

  it('of an episode on disk reaches a demonstration', async () => {
    const tool: Tool = { name: 'f', parameters: parseWithSource(schema) as Tool['parameters'] };
    const agents = { a: agent({ tools: 'plain' }) };
    const team = defineTeam({
      task: z.unknown(),
      agents,
      play: async ({ agents: { a } }) => (await a('Hi', { tools: [tool] })).content,
      reward: () => 1,
    });
    const episode = await playScripted(team, {}, { a: ['yes'] });
    const file = join(root, `episodes${number}.jsonl`);
    await writeEpisodes(nodeFiles, file, [storedEpisode(episode)]);
    const rows = join(root, `rows${number}.jsonl`);
    await recordDemonstrations(rows, file);
    expect(await readFile(rows, 'utf8')).toContain(schema);
  });

  it('of a demanded schema is found again in the prompt', () => {
    const [demand] = promptMessages(undefined, 'Hi', parseWithSource(schema) as JsonSchema);
    const again = demandedSchema(demand?.content ?? '');
    expect(promptMessages(undefined, 'Hi', again)[0]).toEqual(demand);
    expect(fitsJsonSchema(`{"id": ${number}}`, again ?? {})).toBe(true);
    expect(fitsJsonSchema(`{"id": ${another}}`, again ?? {})).toBe(false);
  });

  it.each(toolFormatNames)('stays in a call in the format %s, and keys stay in their order', (name) => {
    // The plain format has values in the order of the schema, and writes an object if the call leaves one out.
    const properties = { id: {}, '10': {}, '2': {}, '1': {} };
    const tool = { name: 'f', parameters: { type: 'object', properties } };
    const format = toolFormat(name);
    const text = format.write({ content: '', calls: [{ name: 'f', arguments: values }] }, [tool]);
    expect(callsIn(text, name, [tool])?.calls).toEqual([{ name: 'f', arguments: values }]);
  });
});
