/** Exported GGUF files as llama.cpp reads them, with the package node-llama-cpp: the same ids, texts and answers. */
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf } from '@drmas/engine/errors';
import { ggufOf } from '@drmas/engine/internal/model/formats/gguf/gguf-model';
import { openModelDirectory } from '@drmas/engine/internal/model/formats/hugging-face-directory';
import { lora } from '@drmas/engine/model';
import { type LoadedPolicy, loadPolicy } from '@drmas/engine/node';
import { system, user } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { llamaPackage } from '../../research/bench/peers/environment.js';
import { arithmeticSymbols } from '../../src/teams/tasks/generated/arithmetic.js';
import { ggufModels, writeGoldenModel } from '../goldens.js';
import { drmas } from '../support/command-line.js';
import { temporaryRoot, tinyModel, tinyRecipe, trainTiny } from '../support/tiny-run.js';

/** Tokens that each prompt is continued by. */
const LENGTH = 24;

const llama = await llamaPackage(console.log).catch((error: unknown) => {
  console.log(`SKIPPED: exported models in llama.cpp, because ${messageOf(error)}`);
  return undefined;
});

const root = temporaryRoot();

interface Answer {
  readonly written: readonly (readonly number[])[];
  readonly [list: string]: unknown;
}

function ask(settings: unknown): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const script = fileURLToPath(new URL('read_gguf.mjs', import.meta.url));
    const child = spawn(process.execPath, [script], { stdio: ['pipe', 'pipe', 'inherit'] });
    let answer = '';
    child.stdout.on('data', (data: Buffer) => {
      answer += data.toString();
    });
    child.on('error', reject);
    child.on('close', (code) =>
      code === 0 ? resolve(JSON.parse(answer)) : reject(new Error(`llama.cpp ended: ${code}`)),
    );
    child.stdin.end(JSON.stringify(settings));
  });
}

const sample = <T>(arbitrary: fc.Arbitrary<T>, numRuns: number) => fc.sample(arbitrary, { numRuns, seed: 7 });

/** Checks that llama.cpp reads texts, shows tokens and continues prompts from the file as the policy does. */
async function agrees(policy: LoadedPolicy, model: string, texts: readonly string[], chat: readonly number[]) {
  const { tokenizer, config } = policy;
  const { stopTokens, vocabSize } = tokenizer;
  const ids = fc.nat(vocabSize - 1).filter((id) => !stopTokens.includes(id));
  const prompts = [chat, ...sample(fc.array(ids, { minLength: 1, maxLength: config.context - LENGTH - 1 }), 12)];
  const tokens = sample(fc.array(fc.nat(vocabSize - 1), { minLength: 1, maxLength: 20 }), 50);
  const answer = await ask({ package: llama, model, texts, tokens, prompts, stops: stopTokens, length: LENGTH });
  const written: number[][] = [];
  for (const prompt of prompts)
    written.push((await policy.generate({ prompt, maxTokens: LENGTH, temperature: 0, seed: 1 })).tokens);
  expect(answer.written).toEqual(written);
  expect(answer.encoded).toEqual(texts.map((text) => tokenizer.encode(text)));
  expect(answer.decoded).toEqual(tokens.map((some) => tokenizer.decode(some)));
  expect(answer.template).toEqual(expect.any(String));
}

describe.skipIf(llama === undefined)('exported models in llama.cpp', () => {
  const symbols = [...arithmeticSymbols, 'é', '\n', ' ', 'ab', 'abc'];
  const withSymbols = { ...tinyModel, tokenizer: { ...tinyModel.tokenizer, symbols } } as typeof tinyModel;
  const withBytes = { ...tinyModel, context: 256, tokenizer: { type: 'bytes' } } as const;
  const someSymbols = fc.array(fc.constantFrom(...symbols)).map((parts) => parts.join(''));
  const anyText = fc.string({ unit: 'grapheme', maxLength: 30 });

  it.each([
    ['with symbols', withSymbols, someSymbols],
    ['with bytes', withBytes, anyText],
    ['with an adapter', lora(withSymbols, { rank: 2 }), someSymbols],
  ])('are the policies of a run: %s', async (name, model, texts) => {
    const run = await trainTiny(root, tinyRecipe({ model }, ['training.steps=1']));
    const to = join(root, name);
    const words = ['export', run.path, '--agent', 'solver', '--to'];
    expect(await drmas([...words, to, '--format', 'gguf'])).toMatchObject({ code: 0, err: '' });
    await drmas([...words, `${to}-whole`]);
    const policy = await loadPolicy(`${to}-whole`, { threads: 1 });
    const chat = policy.tokenizer.chat([system('<solver>'), user('1+1')]);
    await agrees(policy, join(to, 'model.gguf'), sample(texts, 200), chat);
    await policy.dispose();
  });

  it.each(ggufModels)('are models of the four families: %s', async (name) => {
    const directory = writeGoldenModel(join(root, name), name);
    const policy = await loadPolicy(directory, { threads: 1 });
    const { model, tokenizer, tensors } = await openModelDirectory(nodeFiles, directory);
    const file = join(root, name, 'model.gguf');
    await writeFile(file, ggufOf({ config: model.config, tokenizer, name }, tensors.values()));
    const texts = sample(anyText, 200).map((text) => text.normalize('NFC'));
    await agrees(policy, file, texts, tokenizer.chat([user('Hello 123, what is it?')]));
    await policy.dispose();
  });
});
