/** The files of a downloaded model: weights, config.json, tokenizers, chat templates, adapters. */
import { readFileSync } from 'node:fs';
import { parseJson, readConfig, writeAdapterConfig } from '@drmas/engine/formats';
import { decoderMetadata } from '@drmas/engine/internal/model/formats/gguf/gguf-decoder';
import { encodeGguf, type GgufMetadata } from '@drmas/engine/internal/model/formats/gguf/gguf-file';
import { ggufName } from '@drmas/engine/internal/model/formats/gguf/gguf-names';
import { readStopTokens } from '@drmas/engine/internal/model/formats/model-config';
import { openAdapterWeights, readAdapterConfig } from '@drmas/engine/internal/model/formats/peft';
import { openSafetensors, readTensor } from '@drmas/engine/internal/model/formats/safetensors';
import { openStoredModel } from '@drmas/engine/internal/model/formats/stored-model';
import { expectedTensors } from '@drmas/engine/internal/model/formats/tensor-names';
import { readAgentProfile } from '@drmas/engine/model';
import { assistant, user } from '@drmas/engine/nouns';
import { createTokenizer } from '@drmas/engine/tokens';
import { goldenModels, goldenPath } from '../../goldens.js';
import { memoryFiles, safetensorsBytes } from '../../support/memory-files.js';
import type { Target } from '../target.js';

const texts = (name: string) =>
  goldenModels.map((model) => readFileSync(goldenPath(`models/${model}/${name}`), 'utf8'));

/** A file of safetensors, by the header that it begins with. */
function stored(header: object, bytes: number): Uint8Array {
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeUInt32LE(json.length);
  return Buffer.concat([length, json, Buffer.alloc(bytes, 1)]);
}

const safetensors: Target = {
  name: 'safetensors',
  seeds: [
    stored({ a: { dtype: 'F32', shape: [2, 3], data_offsets: [0, 24] } }, 24),
    stored(
      {
        __metadata__: { format: 'pt' },
        a: { dtype: 'BF16', shape: [4], data_offsets: [0, 8] },
        'b.weight': { dtype: 'F16', shape: [2, 2], data_offsets: [8, 16] },
        c: { dtype: 'F32', shape: [], data_offsets: [16, 20] },
      },
      20,
    ),
  ],
  words: [
    '"F32"',
    '"BF16"',
    '"F16"',
    '"I64"',
    'data_offsets',
    'dtype',
    'shape',
    '__metadata__',
    '"shape":[]',
    '{',
    '}',
  ],
  inputs: 150_000,
  async run(input) {
    const { tensors } = await openSafetensors(memoryFiles(new Map([['x', input]])), 'x');
    for (const each of tensors.values()) await readTensor(each);
  },
};

/** A file of a tiny Llama model with blocks, by the writer of exports and a change of one tensor's format. */
async function ggufSeed(): Promise<Uint8Array> {
  const { config } = readConfig({ ...JSON.parse(texts('config.json')[0] as string), num_hidden_layers: 1 });
  const tensors = expectedTensors(config).map(({ name, shape }) => ({
    name: ggufName(name),
    shape,
    read: async () => new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(0.5),
  }));
  const metadata: GgufMetadata = {
    ...decoderMetadata(config),
    'tokenizer.ggml.model': { type: 'string', value: 'gpt2' },
    'tokenizer.ggml.pre': { type: 'string', value: 'qwen2' },
    'tokenizer.ggml.tokens': { type: 'strings', value: ['a', 'b', 'ab', '<|im_end|>'] },
    'tokenizer.ggml.token_type': { type: 'int32s', value: [1, 1, 1, 3] },
    'tokenizer.ggml.merges': { type: 'strings', value: ['a b'] },
    'tokenizer.ggml.eos_token_id': { type: 'uint32', value: 3 },
    'tokenizer.chat_template': { type: 'string', value: '{% for m in messages %}{{ m.content }}{% endfor %}' },
  };
  const parts: Uint8Array[] = [];
  for await (const part of encodeGguf(metadata, tensors)) parts.push(Uint8Array.from(part));
  const whole = Buffer.concat(parts);
  const name = 'blk.0.ffn_gate.weight';
  whole.writeUInt32LE(8, whole.indexOf(name) + name.length + 4 + 16); // Q8_0: fewer bytes than it has in float32
  return whole;
}

const gguf: Target = {
  name: 'gguf',
  seeds: [await ggufSeed()],
  words: [
    ...[
      'GGUF',
      'llama.',
      'qwen3',
      'general.alignment',
      'rope.scaling.type',
      'linear',
      'rope_freqs.weight',
      'split.count',
    ],
    ...['blk.0.attn_q.bias', 'output.weight', 'token_embd.weight', '\u0009\0\0\0', '\u000c\0\0\0', '\u000e\0\0\0'],
  ],
  inputs: 20_000,
  async run(input) {
    const { tensors, tokenizer } = await openStoredModel(memoryFiles(new Map([['x.gguf', input]])), 'x.gguf');
    for (const each of tensors.values()) await readTensor(each);
    tokenizer.decode(tokenizer.encode('ab b'));
  },
};

const config: Target = {
  name: 'config',
  seeds: texts('config.json'),
  words: ['rope_scaling', 'linear', 'llama3', 'yarn', 'factor', 'rope_parameters', 'Qwen3ForCausalLM', 'hidden_size'],
  inputs: 75_000,
  run(input) {
    const json = parseJson(input.toString(), 'config.json');
    readStopTokens(json, 'config.json');
    return readConfig(json, 'config.json');
  },
};

const vocab = { a: 0, b: 1, ab: 2, '[UNK]': 3, '[END]': 4, Ġ: 5, c: 6, abc: 7 };
const chatTemplate = '{% for m in messages %}{{ m.content + eos_token }}{% endfor %}';
const tokenizers = [
  {
    tokenizer: {
      version: '1.0',
      added_tokens: [{ id: 4, content: '[END]', special: true, normalized: false }],
      normalizer: null,
      pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
      post_processor: null,
      decoder: { type: 'ByteLevel' },
      model: { type: 'BPE', vocab, merges: ['a b', 'ab c'], unk_token: '[UNK]', byte_fallback: false },
    },
    config: { eos_token: { content: '[END]' }, chat_template: chatTemplate },
  },
  {
    tokenizer: {
      version: '1.0',
      added_tokens: [],
      normalizer: { type: 'Sequence', normalizers: [{ type: 'NFC' }, { type: 'Lowercase' }] },
      pre_tokenizer: { type: 'Split', pattern: { Regex: '\\s+|\\w+' }, behavior: 'Isolated', invert: false },
      post_processor: null,
      decoder: { type: 'Fuse' },
      model: { type: 'WordPiece', vocab, unk_token: '[UNK]', continuing_subword_prefix: '##' },
    },
    config: { chat_template: [{ name: 'default', template: '{{ messages[0].content }}' }] },
  },
] as const;

const tokenizer: Target = {
  name: 'tokenizer',
  seeds: tokenizers.map((each) => JSON.stringify(each)),
  words: 'Unigram WordPiece BPE Metaspace Regex Replace Digits ByteFallback Sequence merges'.split(' '),
  inputs: 30_000,
  run(input) {
    const described = parseJson(input.toString(), 'tokenizer.json') as Partial<(typeof tokenizers)[number]> | null;
    const one = createTokenizer({
      type: 'huggingface',
      tokenizer: described?.tokenizer,
      config: described?.config,
    });
    one.decode(one.encode('ab c [END] xyz \u00e9\ud83d\ude00'));
    one.chat([user('ab'), assistant('c')]);
  },
};

const template: Target = {
  name: 'template',
  seeds: [
    ...texts('tokenizer_config.json').map((text) => String(JSON.parse(text).chat_template)),
    chatTemplate,
    "{% set ns = namespace(x=0) %}{% for m in messages if m.role != 'system' %}{% set ns.x = ns.x + 1 %}" +
      '{{ m | tojson }}{% else %}-{% endfor %}{{ ns.x }}',
    "{% macro f(a, b='c') %}{{ a ~ b }}{% endmacro %}{{ f(messages[0].content[::-1]) | upper | replace('A', 'b') }}",
    "{%- if messages[0]['role'] == 'system' -%}{{ raise_exception('no') }}{%- endif -%}{{ range(3) | join(',') }}",
  ],
  words: [
    ...['{% for x in range(1000000) %}', '{% endfor %}', '{% set x = x ~ x %}', '|tojson', '|upper', '|list', '|join'],
    ...['|sort', '|map', '{{', '}}', '{#', '#}', '(', '[', '[::-1]', '**', 'loop.index', 'range(', 'messages'],
  ],
  inputs: 12_000,
  run(input) {
    const spec = { type: 'huggingface', ...tokenizers[0], chatTemplate: input.toString() };
    return createTokenizer(spec).chat([user('ab'), assistant('c'), user('b')]);
  },
};

const { config: small } = readConfig(JSON.parse(texts('config.json')[0] as string));

const adapters: Target = {
  name: 'adapter',
  seeds: [JSON.stringify(writeAdapterConfig({ settings: { rank: 2, alpha: 4 }, base: 'base' }, ['q_proj', 'up_proj']))],
  words: 'use_rslora use_dora rank_pattern modules_to_save target_modules all-linear q_proj LORA'.split(' '),
  inputs: 75_000,
  async run(input) {
    const { settings } = readAdapterConfig(parseJson(input.toString(), 'adapter_config.json'));
    const files = memoryFiles(new Map([['x/adapter_model.safetensors', safetensorsBytes([])]]));
    await openAdapterWeights(files, 'x', small, settings);
  },
};

const agentProfile: Target = {
  name: 'agent-profile',
  seeds: [
    JSON.stringify({
      version: 1,
      name: 'solver',
      system: 'Solve.',
      tools: 'plain',
      sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 30 },
    }),
    '{"version":1,"name":"a","sampling":{"temperature":0,"topP":0.5,"topK":4,"maxTokens":1}}',
  ],
  words: ['"version":2', 'null', '"sampling":', '"hermes"', '-1', '1e999', '"name":""'],
  inputs: 20_000,
  run: (input) => readAgentProfile(memoryFiles(new Map([['a/drmas-agent.json', input]])), 'a'),
};

export const modelFiles = [safetensors, gguf, config, tokenizer, template, adapters, agentProfile];
