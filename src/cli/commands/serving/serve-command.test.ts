import { createServer } from 'node:net';
import OpenAI from 'openai';
import { beforeAll, describe, expect, it } from 'vitest';
import { drmas } from '../../../../test/support/command-line.js';
import { eventually } from '../../../../test/support/time-and-chance.js';
import { temporaryRoot, tinyRecipe, trainTiny } from '../../../../test/support/tiny-run.js';

const root = temporaryRoot();
let run: string;
beforeAll(async () => {
  run = (await trainTiny(root, tinyRecipe({}, ['training.steps=1']))).path;
});

/** A free port. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => (typeof address === 'object' && address !== null ? resolve(address.port) : reject(address)));
    });
  });
}

/** Asks everything that a client asks of a server of models, and expects equal answers to equal questions. */
async function usedByTheOfficialClient(client: OpenAI): Promise<void> {
  expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['solver']);
  const options = { model: 'solver', temperature: 0 };
  const messages = [{ role: 'user' as const, content: '1+2' }];
  const { choices, usage } = await client.chat.completions.create({ ...options, messages });
  const text = choices[0]?.message.content ?? '';
  expect(usage?.completion_tokens).toBeGreaterThan(0);
  expect(await client.chat.completions.stream({ ...options, messages }).finalContent()).toBe(text);
  const response = await client.responses.create({ ...options, input: '1+2' });
  expect(response.output_text).toBe(text);
  expect((await client.responses.stream({ ...options, input: messages }).finalResponse()).output_text).toBe(text);
  const tools = [{ type: 'function' as const, function: { name: 'add', parameters: { type: 'object' } } }];
  const offered = client.chat.completions.create({ ...options, messages, tools });
  await expect(offered).rejects.toMatchObject({ status: 400, code: 'no_tools' });
}

describe('serve', () => {
  it('names the runs beside a wrong path, and asks no hub', async () => {
    const near = `${run}x`;
    const { code, err } = await drmas(['serve', near]);
    expect(code).toBe(2);
    expect(err).toContain(`there is no run ${near}; did you mean`);
    expect(err).not.toContain('hub');
  });

  it('answers until it is stopped, and takes the token from the environment', async () => {
    const port = await freePort();
    const controller = new AbortController();
    const environment = { ...process.env, DRMAS_TOKEN: 'secret' };
    const words = ['serve', run, '--agent', 'solver', '--port', `${port}`, '--threads', '1'];
    const ended = drmas(words, { signal: controller.signal, environment });
    const url = `http://127.0.0.1:${port}`;
    const health = () => fetch(`${url}/health`).then((response) => response.json() as Promise<unknown>);
    expect(await eventually(health)).toEqual({ status: 'ok', running: 0, models: ['solver'] });
    expect((await fetch(`${url}/v1/models`)).status).toBe(401);
    const headers = { authorization: 'Bearer secret' };
    const body = JSON.stringify({ model: 'solver', messages: [{ role: 'user', content: '1+2' }], seed: 1 });
    const answered = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body });
    expect(answered.status).toBe(200);
    await usedByTheOfficialClient(new OpenAI({ baseURL: `${url}/v1`, apiKey: 'secret' }));
    expect(await drmas([...words, '--host', '127.0.0.1'], { environment })).toMatchObject({
      code: 2,
      err: expect.stringMatching(/cannot listen on .*EADDRINUSE/),
    });
    controller.abort(new Error('interrupted'));
    const { code, out, err } = await ended;
    expect({ code, out }).toEqual({ code: 0, out: `solver of ${run}, step-000001: ${url}/v1\n` });
    expect(err).toMatch(/accepts no new requests/);
    expect(out + err).not.toContain('secret');
    await expect(fetch(`${url}/health`)).rejects.toThrow();
  });

  it.each([
    [['--host', '0.0.0.0'], /other machines can reach 0.0.0.0: set a token/],
    [['--host', '0.0.0.0', '--token', 'short'], /try tokens: set a token of at least 12 characters .* got 5/],
    [['--token', ''], /it is empty/],
    [['--token', 'two words'], /only letters, digits and signs of ASCII/],
    [['--port', '-1'], /expected an integer from 0 to 65535/],
    [['--checkpoint', '3'], /has no checkpoint '3'; it has step-000001/],
    [['--follow', '--checkpoint', '3'], /--follow serves the newest checkpoint/],
    [['--follow', '--agent', 'sover'], /no trained agent 'sover'; did you mean 'solver'/],
    [['--follow', '--tinker'], /--follow serves a run, and --tinker a model/],
    [['--max-requests', '0'], /expected an integer >= 1/],
  ])('refuses %j before it loads anything', async (words, message) => {
    expect(await drmas(['serve', run, ...words], { environment: {} })).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringMatching(message),
    });
  });
});
