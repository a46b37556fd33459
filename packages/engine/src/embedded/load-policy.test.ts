import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { goldenModelNumbers, goldenModels, packedModels, writeGoldenModel } from '../../../../test/goldens.js';
import { bfloat16Header } from '../../../../test/support/coarse-checkpoints.js';
import { ArgumentError, BackendError, CheckpointError } from '../base/core/errors.js';
import { assistant, toolResult, user } from '../base/core/message.js';
import { nodeFiles } from '../base/platform/node-files.js';
import type { DecoderConfig } from '../contract/architecture.js';
import { writeAgentProfile } from '../model/agent-profile.js';
import { decoderTensors, initialise, parameterCount } from '../model/decoder/weights/decoder-tensors.js';
import { decoderPlaces } from '../model/formats/decoder-layout.js';
import { writeModelDirectory } from '../model/formats/hugging-face-directory.js';
import { expectedTensors } from '../model/formats/tensor-names.js';
import { createTokenizer } from '../model/tokenizers/create-tokenizer.js';
import type { AnsweredText } from './generate-options.js';
import { loadPolicy, loadTokenizer } from './load-policy.js';
import type { LoadedPolicy } from './loaded-policy.js';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'drmas-load-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const config: DecoderConfig = {
  vocabSize: 7,
  width: 16,
  layers: 2,
  heads: 4,
  kvHeads: 2,
  headDim: 6,
  feedForward: 20,
  context: 24,
  ropeBase: 1e4,
  normEpsilon: 1e-6,
  attentionBias: 'qkvo',
  queryKeyNorm: true,
  untiedOutput: true,
  ropeScaling: { type: 'linear', factor: 2 },
};
const tokenizer = createTokenizer({
  type: 'symbols',
  symbols: ['<end>', '<ask>', '1', '2', '+'],
  stop: '<end>',
  endOfUser: '<ask>',
  endOfAssistant: '<end>',
});

async function writeModel(path: string, words = tokenizer): Promise<string> {
  const sizes = words === tokenizer ? config : { ...config, vocabSize: words.vocabSize, context: 96 };
  const tensors = decoderTensors(sizes, new Float32Array(parameterCount(sizes)));
  initialise(sizes, tensors, 1);
  await nodeFiles.makeDirectory(path);
  const model = { config: sizes, tokenizer: words, tensors: decoderPlaces(tensors, sizes) };
  await writeModelDirectory(nodeFiles, path, model);
  return path;
}

describe('loadPolicy', () => {
  let policy: LoadedPolicy;
  beforeAll(async () => {
    policy = await loadPolicy(await writeModel(join(directory, 'model')), { threads: 1 });
  });
  afterAll(() => policy.dispose());

  it('knows what it loaded', () => {
    expect(policy.config).toEqual(config);
    expect(policy.parameters).toBe(parameterCount(config));
    expect(policy.tokenizer.toJSON()).toEqual(tokenizer.toJSON());
  });

  it('samples by seed, and the log-probs of what it sampled are those it computes', async () => {
    const options = { prompt: [2, 4, 3], maxTokens: 12, temperature: 1, ignoreEos: true };
    const [a, b, c] = await Promise.all([7, 7, 8].map((seed) => policy.generate({ ...options, seed })));
    expect(b).toEqual(a);
    expect(c?.tokens).not.toEqual(a?.tokens);
    expect(a?.tokens.length).toBe(12);
    expect(a?.finishReason).toBe('length');
    expect(await policy.logprobs(options.prompt, a?.tokens ?? [])).toEqual(a?.logprobs);
  });

  it('stops where a text ends, or at the end of the context', async () => {
    const options = { prompt: [1], maxTokens: 100, temperature: 1, seed: 3 };
    const ended = await policy.generate(options);
    expect(ended.finishReason).toBe('stop');
    expect(ended.tokens.indexOf(0)).toBe(ended.tokens.length - 1);
    const full = await policy.generate({ ...options, ignoreEos: true });
    expect(full.finishReason).toBe('length');
    expect(full.tokens.length).toBe(config.context - 1);
    expect(full.tokens.slice(0, ended.tokens.length)).toEqual(ended.tokens);
  });

  it('at temperature 0 takes what the logits prefer', async () => {
    const { tokens, logprobs } = await policy.generate({ prompt: [3], maxTokens: 1, temperature: 0 }); // needs no seed
    const logits = await policy.logits(Int32Array.of(3));
    expect(logits.length).toBe(config.vocabSize);
    expect(tokens).toEqual([logits.indexOf(Math.max(...logits))]);
    expect(logprobs).toEqual(await policy.logprobs([3], tokens));
    expect(await policy.logprobs([3], [])).toEqual([]);
  });

  it('is saved and loaded without a bit changed', async () => {
    const copy = join(directory, 'deep', 'copy');
    await policy.save(copy);
    const again = await loadPolicy(copy, { threads: 2 });
    const tokens = [1, 2, 3, 4, 5, 6, 0];
    expect(again.config).toEqual(config);
    expect(await again.logits(tokens)).toEqual(await policy.logits(tokens));
    await again.dispose();
    await expect(again.logits(tokens)).rejects.toThrow(BackendError);
    const options = { prompt: tokens, maxTokens: 1, temperature: 1, seed: 1 };
    await expect(again.generate(options)).rejects.toThrow('disposed of');
    await writeFile(join(directory, 'file'), '');
    await expect(policy.save(join(directory, 'file', 'x'))).rejects.toThrow(CheckpointError);
  });

  it.each<[string, (policy: LoadedPolicy) => Promise<unknown>, string]>([
    ['no tokens', (p) => p.logits([]), 'tokens: expected at least one token'],
    ['text', (p) => p.logits('1+2' as unknown as number[]), 'tokens: expected a list of token ids, found string'],
    ['an id too large', (p) => p.logits([1, 7]), 'tokens: token 7 at position 1 is outside the vocabulary of 7'],
    ['a negative id', (p) => p.logprobs([1], [2, -1]), 'continuation: token -1 at position 1'],
    ['a broken id', (p) => p.logprobs([1.5], [2]), 'prompt: token 1.5 at position 0'],
    ['no prompt', (p) => p.logprobs([], [1]), 'prompt: expected at least one token'],
    ['too many', (p) => p.logits(new Array(25).fill(1)), 'tokens: 25 tokens do not fit a context of 24'],
    [
      'too many together',
      (p) => p.logprobs(new Array(20).fill(1), new Array(5).fill(1)),
      'prompt and continuation: 25 tokens do not fit',
    ],
    ['a full context', (p) => generate(p, { prompt: new Array(24).fill(1) }), 'leave no room in a context of 24'],
    ['nothing to begin with', (p) => generate(p, { prompt: [] }), 'prompt: expected at least one token'],
    ['no length', (p) => generate(p, { maxTokens: 0 }), 'maxTokens: expected a whole number of at least 1, found 0'],
    ['cold', (p) => generate(p, { temperature: -1 }), 'temperature: expected a number of at least 0, found -1'],
    ['no seed', (p) => generate(p, { seed: Number.NaN }), 'seed: expected a whole number, found NaN'],
    ['no seed above temperature 0', (p) => p.generate({ prompt: [1], maxTokens: 1, temperature: 1 }), 'seed: expected'],
  ])('refuses %s', async (_, call, message) => {
    await expect(call(policy)).rejects.toThrow(ArgumentError);
    await expect(call(policy)).rejects.toThrow(message);
  });

  it('refuses a directory that is missing or damaged', async () => {
    await expect(loadPolicy(join(directory, 'nowhere'))).rejects.toThrow(CheckpointError);
    await expect(loadPolicy(join(directory, 'nowhere'))).rejects.toThrow(
      'nowhere: expected a directory with config.json',
    );
    const damaged = await writeModel(join(directory, 'damaged'));
    const weights = join(damaged, 'model.safetensors');
    await writeFile(weights, (await readFile(weights)).subarray(0, -8));
    await expect(loadPolicy(damaged)).rejects.toThrow(CheckpointError);
    await expect(loadPolicy(damaged)).rejects.toThrow(`${weights}: tensor "`);
  });
});

describe('an answer of a model with tools', () => {
  const number = { type: 'number' };
  const tools = [{ name: 'add', parameters: { type: 'object', properties: { a: number, b: number } } }];

  it('reads the tools in the prompt', async () => {
    const bytes = createTokenizer({ type: 'bytes' });
    await using policy = await loadPolicy(await writeModel(join(directory, 'bytes'), bytes), { threads: 1 });
    const prompt = bytes.chat([user('1+2')], undefined, tools);
    expect(prompt.length).toBeGreaterThan(bytes.chat([user('1+2')]).length);
    const sampling = { seed: 1, maxTokens: 8 };
    const { tokens } = await policy.generate({ ...sampling, temperature: 1, prompt });
    expect(await policy.answer('1+2', { ...sampling, tools })).toMatchObject({ tokens, toolCalls: [] });
  });

  it('names its calls, which continue the conversation, and refuses tools for an agent that calls none', async () => {
    const call = '@add(1,2)';
    const symbols = ['<end>', '<ask>', call, '3'];
    const ends = { stop: '<end>', endOfUser: '<ask>', endOfAssistant: '<end>' };
    const path = await writeModel(join(directory, 'calling'), createTokenizer({ type: 'symbols', symbols, ...ends }));
    await using policy = await loadPolicy(path, { threads: 1 });
    const seeds = Array.from({ length: 20 }, (_, seed) => seed);
    const answers = await Promise.all(seeds.map((seed) => policy.answer('3', { seed, tools, maxTokens: 1 })));
    const called = answers.find(({ text }) => text === call);
    const toolCalls = [{ id: 'call_1_0', name: 'add', arguments: '{"a":1,"b":2}' }];
    expect(called).toMatchObject({ content: '', toolCalls });
    expect(answers.find(({ text }) => text === '3')).toMatchObject({ content: '3', toolCalls: [] });
    const messages = [user('3'), assistant(called as AnsweredText)];
    const results = toolCalls.map((one) => toolResult(one, '3'));
    expect((await policy.answer([...messages, ...results], { seed: 1, tools, maxTokens: 1 })).tokens).toHaveLength(1);

    const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 1 };
    await writeAgentProfile(nodeFiles, path, { name: 'solver', sampling });
    await using agent = await loadPolicy(path, { threads: 1 });
    await expect(agent.answer('3', { seed: 1, tools })).rejects.toThrow(
      new ArgumentError("tools: the agent 'solver' has no format for calls"),
    );
  });
});

function generate(policy: LoadedPolicy, change: Partial<Parameters<LoadedPolicy['generate']>[0]>): Promise<unknown> {
  return policy.generate({ prompt: [1], maxTokens: 1, temperature: 1, seed: 1, ...change });
}

describe('loadTokenizer', () => {
  it('reads the tokenizer of a model of ours', async () => {
    const loaded = await loadTokenizer(await writeModel(join(directory, 'tokenizer')));
    expect(loaded.encode('1+2')).toEqual([2, 4, 3]);
    expect(loaded.chat([user('1+2')])).toEqual(tokenizer.chat([user('1+2')]));
  });

  it('refuses a directory without one', async () => {
    await expect(loadTokenizer(join(directory, 'nowhere'))).rejects.toThrow(CheckpointError);
  });
});

describe('checkpoints of Hugging Face', () => {
  /** One of the first family, and the two with the most features of their own. The slow tests have the others. */
  const daily: readonly string[] = ['llama-mini', 'gemma3-mini', 'lfm2-mini'];
  const models = [...goldenModels, ...packedModels];
  it.each(models.filter((name) => daily.includes(name)))('%s continues as there, also when saved', continues);
  it.each(models.filter((name) => !daily.includes(name)))(
    '%s continues as there, also when saved',
    { tags: 'verify' },
    continues,
  );

  async function continues(name: Parameters<typeof goldenModelNumbers>[0]): Promise<void> {
    const policy = await loadPolicy(writeGoldenModel(join(directory, 'goldens', name), name));
    const { greedy, continuation } = goldenModelNumbers<{
      readonly greedy: { readonly prompt: number[]; readonly generated: number[] };
      readonly continuation: {
        readonly prompt: number[];
        readonly continuation: number[];
        readonly logprobs: number[];
      };
    }>(name);
    const options = { prompt: greedy.prompt, maxTokens: greedy.generated.length, temperature: 0, seed: 0 };
    const { tokens, finishReason } = await policy.generate({ ...options, ignoreEos: true });
    expect(tokens).toEqual(greedy.generated);
    expect(finishReason).toBe('length');
    const logprobs = await policy.logprobs(continuation.prompt, continuation.continuation);
    logprobs.forEach((value, i) => {
      expect(Math.abs(value - (continuation.logprobs[i] as number))).toBeLessThan(1e-4);
    });
    const copy = join(directory, name);
    await policy.save(copy);
    const again = await loadPolicy(copy);
    expect(again.config).toEqual(policy.config);
    expect(again.tokenizer.stopTokens).toEqual(policy.tokenizer.stopTokens);
    expect(await again.logits(greedy.prompt)).toEqual(await policy.logits(greedy.prompt));
    await Promise.all([policy.dispose(), again.dispose()]);
  }
});

it('lets a process end that waits for nothing more of its model', { tags: 'verify' }, async () => {
  const path = await writeModel(join(directory, 'undisposed'));
  const script = fileURLToPath(new URL('../../../../test/support/undisposed-policy.ts', import.meta.url));
  const { stdout } = await promisify(execFile)('node', ['--import', 'tsx', script, path], { timeout: 50_000 });
  expect(stdout).toBe('4 tokens\n');
});

/** A model whose weights are zeros, in bfloat16: a file that takes no room. */
async function writeZeros(path: string, sizes: DecoderConfig): Promise<string> {
  await nodeFiles.makeDirectory(path);
  await writeModelDirectory(nodeFiles, path, { config: sizes, tokenizer, tensors: [] });
  const { header, numbers } = bfloat16Header(expectedTensors(sizes));
  const file = join(path, 'model.safetensors');
  await writeFile(file, header);
  await truncate(file, header.length + numbers);
  return path;
}

const large = { ...config, vocabSize: 32_768, width: 512, layers: 12, headDim: 128, feedForward: 1536 };

describe.skipIf(process.platform !== 'linux')('loading a model (measured in /proc)', () => {
  it('takes the memory of its weights and of a few pieces of its file; saving it, of one copy more', {
    tags: 'verify',
  }, async () => {
    const path = await writeZeros(join(directory, 'large'), large);
    const script = fileURLToPath(new URL('../../../../test/support/load-memory.ts', import.meta.url));
    const { stdout } = await promisify(execFile)('node', ['--import', 'tsx', script, path, `${path}-copy`]);
    const { before, loaded, saved } = JSON.parse(stdout) as Record<'before' | 'loaded' | 'saved', number>;
    const weights = 2 * parameterCount(large); // they stay in bfloat16
    expect(weights).toBeGreaterThan(120e6);
    expect(loaded - before).toBeGreaterThan(0.9 * weights);
    expect(loaded - before).toBeLessThan(weights + 200e6);
    expect(saved - before).toBeLessThan(weights + 2 * weights + 250e6); // the copy is in float32
  });
});
