import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { startEmbedded } from '@drmas/engine/internal/embedded/start-embedded';
import { randomKey } from '@drmas/engine/math';
import { completeWhole, lora, wholeWeights } from '@drmas/engine/model';
import { nodeFiles, nodeHost } from '@drmas/engine/platform';
import { bytesTokenizer } from '@drmas/engine/tokens';
import { beforeAll, describe, expect, it } from 'vitest';
import { drmas } from '../../../../test/support/command-line.js';
import { eventually } from '../../../../test/support/time-and-chance.js';
import {
  digitTeam,
  temporaryRoot,
  tinyModel,
  tinyRecipe,
  trainTiny,
  useCache,
} from '../../../../test/support/tiny-run.js';
import { scriptedSampler } from '../../../runs/testing/scripted-sampler.js';
import { Chat } from '../../../serve/models/chat.js';
import { openAgentModels } from '../../../serve/models/open-agent-models.js';
import { talk } from './chat-command.js';

const root = temporaryRoot();
let run: string;
beforeAll(async () => {
  run = (await trainTiny(root, tinyRecipe({ model: lora(tinyModel, { rank: 2 }) }, ['training.steps=1']))).path;
});

describe('chat', () => {
  it('answers every line of a pipe, with what was said before unless /reset came', async () => {
    const words = ['chat', run, '--agent', 'solver', '--greedy'];
    const { code, out, err } = await drmas(words, { input: '1+2\n3\n\n/reset\n1+2\n/quit\n4\n' });
    expect({ code, err }).toEqual({ code: 0, err: '' });
    const [first, , again, ...rest] = out.split('\n');
    expect(first).not.toBe('');
    expect(again).toBe(first);
    expect(rest).toEqual(['']);
    const ofWindows = await drmas(words, { input: '\ufeff1+2\r\n' });
    expect(ofWindows.out).toBe(`${first}\n`);
  });

  it('takes a name below runs for a missing run and never for a model of a hub', async () => {
    const { HF_HUB_OFFLINE: before } = process.env;
    process.env.HF_HUB_OFFLINE = '1';
    try {
      for (const name of ['runs/frist', 'runs/a/b']) {
        const { code, err } = await drmas(['chat', name]);
        expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(/^error: there is no run runs\//) });
        expect(err).not.toMatch(/hub/);
      }
      const other = await drmas(['chat', 'rans/first']);
      expect(other.err).toMatch(/^error: there is no directory rans\/first, and as a model of a hub: /);
    } finally {
      if (before === undefined) delete process.env.HF_HUB_OFFLINE;
      else process.env.HF_HUB_OFFLINE = before;
    }
  });

  it('says that an agent whose instructions come from a program gets none here', async () => {
    const solver = { ...digitTeam.agents.solver, system: undefined };
    const team = { ...digitTeam, agents: { ...digitTeam.agents, solver } };
    const { path } = await trainTiny(root, tinyRecipe({ team }, ['training.steps=1']));
    const { code, err } = await drmas(['chat', path, '--agent', 'solver'], { input: '1+2\n' });
    expect({ code, err }).toMatchObject({ code: 0, err: expect.stringContaining("'solver' has no system prompt") });
  });

  it('shows what was answered before training: by the warm start, else by the base of an adapter', {
    tags: 'verify',
  }, async () => {
    const words = ['chat', run, '--agent', 'solver', '--seed', '1', '--beside-untrained'];
    const { code, out } = await drmas(words, { input: '1+2\n' });
    expect(code).toBe(0);
    expect(out).toMatch(/^solver: .*\nuntrained: .*\n$/);
    const request = { from: run, agent: 'solver', untrained: true };
    const whats = async () => {
      const { untrained, dispose } = await openAgentModels(request, nodeHost({ threads: 1 }));
      await dispose();
      return untrained.get('solver')?.what;
    };
    expect(await whats()).toBe('warm start');
    const { DRMAS_CACHE: cache = '' } = process.env;
    useCache(join(root, 'empty'));
    expect(await whats()).toBe('base model');
    process.env.DRMAS_CACHE = cache;
  });

  it('shows what the first weights answered that the seed drew', { tags: 'verify' }, async () => {
    const recipe = tinyRecipe({}, ['training.steps=1', 'seed=3', 'warmStart=null']);
    const { path } = await trainTiny(root, recipe);
    const { untrained, dispose } = await openAgentModels({ from: path, untrained: true }, nodeHost({ threads: 1 }));
    const backend = await startEmbedded({ threads: 1, files: nodeFiles });
    const first = await backend.open(wholeWeights(completeWhole(tinyModel), 3), 'frozen', 'first');
    await first.publish();
    const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 20, stopTokens: [], key: randomKey('first', 1) };
    const { what, agentModel } = untrained.get('solver') ?? {};
    expect(what).toBe('random weights');
    const request = { ...sampling, prompt: [3, 4, 5] };
    expect(await agentModel?.model.generate(request)).toEqual(await first.generate(request));
    await Promise.all([dispose(), backend.dispose()]);
  });

  it('says when the conversation has outgrown the context, and goes on after /reset', async () => {
    const input = `${'1+2\n'.repeat(12)}/reset\n1\n`;
    const { code, out, err } = await drmas(['chat', run, '--agent', 'solver', '--seed', '3'], { input });
    expect(code).toBe(0);
    expect(err).toMatch(/the conversation has \d+ tokens, the model reads 64: \/reset begins a new one/);
    expect(out.split('\n')).toHaveLength(14);
  });

  it('refuses a line that has no end', async () => {
    const refused = await drmas(['chat', run, '--agent', 'solver'], { input: '\0'.repeat(2 ** 24 + 1) });
    expect(refused).toEqual({ code: 2, out: '', err: expect.stringMatching(/^error: stdin: a line has more than/) });
  });

  it.each([
    [[], /has several agents; choose one with --agent: solver, verifier/],
    [['--agent', 'solvr'], /has no trained agent 'solvr'; did you mean 'solver'/],
    [['--agent', 'solver', '--checkpoint', '7'], /has no checkpoint '7'; it has step-000001/],
  ])('refuses %j', async (words, message) => {
    expect(await drmas(['chat', run, ...words])).toMatchObject({ code: 2, err: expect.stringMatching(message) });
  });
});

/** A terminal with a person who types. The agent repeats its prompt letter by letter, and waits on request. */
function terminal() {
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => {} });
  let shown = '';
  const screen = { write: (text: string) => (shown += text), width: 49, live: true, colour: false };
  const sampler = scriptedSampler(() => '');
  const model = sampler.policy('echo');
  const tokenizer = bytesTokenizer();
  const generate: typeof model.generate = async ({ prompt }, signal, onTokens) => {
    const text = tokenizer.decode(prompt).match(/.*<\|user\|>(.*)<\|end\|>/)?.[1] ?? '';
    const tokens = tokenizer.encode(text);
    onTokens?.(tokens);
    if (text === 'long')
      await new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
    return { tokens, logprobs: tokens.map(() => 0), finishReason: 'length', policyVersion: 0 };
  };
  const chat = new Chat({ agent: undefined, model: { ...model, generate } }, { seed: 1 });
  const controller = new AbortController();
  const talking = talk([{ name: 'echo', chat }], {
    screen,
    keyboard: { input, output: new PassThrough() },
    notify: screen.write,
    signal: controller.signal,
    greeting: 'hello',
  });
  const until = (text: string) => eventually(() => shown.endsWith(text));
  return { type: (keys: string) => void input.write(keys), until, talking, controller, shown: () => shown };
}

const CTRL_C = '\u0003';

describe('a terminal', () => {
  it('shows who answers; Ctrl-C stops the answer first, then the conversation', async () => {
    const { type, until, talking, shown } = terminal();
    await until('hello\n');
    type('one\r');
    await until('echo: one\n');
    type('long\r');
    await until('echo: long');
    type(CTRL_C);
    await until('echo: long\n');
    type('two\r');
    await until('echo: two\n');
    type(CTRL_C);
    await talking;
    expect(shown()).toBe('hello\necho: one\necho: long\necho: two\n');
  });

  it('ends with the end of its input, and with the process', async () => {
    const first = terminal();
    await first.until('hello\n');
    first.type('\u0004');
    await first.talking;
    const second = terminal();
    await second.until('hello\n');
    second.type('long\r');
    await second.until('echo: long');
    second.controller.abort(new Error('terminated'));
    await second.talking;
  });
});
