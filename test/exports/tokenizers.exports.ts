/** Exported tokenizers of drmas as `tokenizers` and `transformers` of PyPI read them: the same ids, the same texts. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TinyDecoderInput } from '@drmas/engine';
import { readTokenizer } from '@drmas/engine/formats';
import { assistant, type Message, system, type Tokenizer, user } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arithmeticSymbols } from '../../src/teams/tasks/generated/arithmetic.js';
import { drmas } from '../support/command-line.js';
import { pythonEnvironment } from '../support/python-environment.js';
import { temporaryRoot, tinyModel, tinyRecipe, trainTiny } from '../support/tiny-run.js';

const environment = await pythonEnvironment({
  name: 'tokenizers-python',
  requirements: new URL('requirements.txt', import.meta.url),
  what: 'tokenizers and transformers (150 MB)',
});
const python = 'python' in environment ? environment.python : '';
if ('unavailable' in environment)
  console.log(`SKIPPED: exported tokenizers in Python, because ${environment.unavailable}`);

const root = temporaryRoot();

interface Answer {
  readonly vocabulary: number;
  readonly end: readonly number[];
  readonly [list: string]: unknown;
}

/** Asks a new interpreter. */
function ask(request: unknown): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const script = fileURLToPath(new URL('read_tokenizer.py', import.meta.url));
    const environment = { ...process.env, HF_HUB_OFFLINE: '1', TRANSFORMERS_VERBOSITY: 'error' };
    const child = spawn(python, [script], { stdio: ['pipe', 'pipe', 'inherit'], env: environment });
    let answer = '';
    child.stdout.on('data', (data: Buffer) => {
      answer += data.toString();
    });
    child.on('error', reject);
    child.on('close', (code) =>
      code === 0 ? resolve(JSON.parse(answer)) : reject(new Error(`Python ended: ${code}`)),
    );
    child.stdin.end(`${JSON.stringify(request)}\n`);
  });
}

/** Trains a step with the tokenizer and exports the solver. */
async function exported(name: string, tokenizer: TinyDecoderInput['tokenizer']): Promise<string> {
  const model = { ...tinyModel, context: 256, tokenizer };
  const run = await trainTiny(root, tinyRecipe({ model }, ['training.steps=1']));
  const to = join(root, name);
  const { code, err } = await drmas(['export', run.path, '--agent', 'solver', '--to', to]);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return to;
}

const sample = <T>(arbitrary: fc.Arbitrary<T>) => fc.sample(arbitrary, { numRuns: 500, seed: 7 });

async function agrees(directory: string, texts: readonly string[], literalTexts: readonly string[]): Promise<void> {
  const ours: Tokenizer = await readTokenizer(nodeFiles, directory);
  const tokens = sample(fc.array(fc.nat(ours.vocabSize - 1), { maxLength: 40 }));
  const [a = '', b = '', c = ''] = texts.filter((text) => text !== '');
  const conversations: Message[][] = [[user(a)], [system(a), user(b)], [system(a), user(b), assistant(c), user(a)]];
  const answer = await ask({ directory, texts, literalTexts, tokens, conversations });
  const ids = texts.map((text) => ours.encode(text));
  const decoded = tokens.map((some) => ours.decode(some));
  expect(answer).toEqual({
    vocabulary: ours.vocabSize,
    end: ours.stopTokens,
    plain: ids,
    auto: ids,
    decoded,
    autoDecoded: decoded,
    literal: literalTexts.map((text) => ours.encode(text)),
    chats: conversations.map((conversation) => ours.chat(conversation)),
  });
}

describe.skipIf(python === '')('exported tokenizers in Python', () => {
  it('are the symbols tokenizer', async () => {
    const symbols = [...arithmeticSymbols, 'é', '\n', ' ', '.*', '(?', '12', '123'];
    const tokenizer = { ...tinyModel.tokenizer, symbols } as TinyDecoderInput['tokenizer'];
    const texts = sample(fc.array(fc.constantFrom(...symbols)).map((parts) => parts.join('')));
    await agrees(await exported('symbols', tokenizer), texts, []);
  });

  it('are the bytes tokenizer, except for markers in texts, unless told to leave these', async () => {
    const odd = fc.constantFrom('\ufeff', '\r\n', '<|', '\0', '\u00a0', '  ', 'ﬁ', '👩‍🚀');
    const anyText = fc.array(fc.oneof(fc.string({ unit: 'grapheme' }), odd)).map((parts) => parts.join(''));
    const marked = fc.array(fc.oneof(odd, fc.constantFrom('<|end|>', '<|user|>', 'x'))).map((parts) => parts.join(''));
    await agrees(await exported('bytes', { type: 'bytes' }), sample(anyText), sample(marked));
  });
});
