/**
 * Converts a model of karpathy/llama2.c (its first format, such as stories260K.bin with tok512.bin) into a directory in
 * the Hugging Face layout, which drmas and transformers load, and lets it tell a story.
 *
 *   node --import tsx examples/convert-llama2c.ts MODEL.bin TOKENIZER.bin DIRECTORY
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { loadPolicy } from 'drmas';

const [modelFile, tokenizerFile, directory] = process.argv.slice(2);
if (modelFile === undefined || tokenizerFile === undefined || directory === undefined)
  throw new Error('usage: convert-llama2c.ts MODEL.bin TOKENIZER.bin DIRECTORY');

const model = await readFile(modelFile);
const size = (i: number) => model.readInt32LE(4 * i);
const [width, feedForward, layers, heads, kvHeads] = [size(0), size(1), size(2), size(3), size(4)];
const [signedVocabulary, context] = [size(5), size(6)];
const vocabSize = Math.abs(signedVocabulary);
const tied = signedVocabulary > 0; // the sign encodes this in the format
const headDim = width / heads;

/**
 * Reorders the rows of Wq and Wk: llama2.c rotates neighbouring pairs of a head, Hugging Face elements i and i +
 * headDim / 2.
 */
function splitHalves(weight: Float32Array): Float32Array {
  const turned = new Float32Array(weight.length);
  for (let row = 0; row < weight.length / width; row++) {
    const i = row % headDim;
    const to = row - i + Math.floor(i / 2) + (i % 2) * (headDim / 2);
    turned.set(weight.subarray(row * width, (row + 1) * width), to * width);
  }
  return turned;
}

/** Reads the next tensor of the file, which holds numbers in a fixed order, without names. */
const tensors = new Map<string, { shape: number[]; data: Float32Array }>();
let offset = 28;
function take(name: string, ...shape: number[]): Float32Array {
  const data = new Float32Array(shape.reduce((a, b) => a * b)).map((_, i) => model.readFloatLE(offset + 4 * i));
  offset += data.byteLength;
  tensors.set(`${name}.weight`, { shape, data });
  return data;
}
function takeOfEachLayer(name: string, ...shape: number[]): void {
  for (let layer = 0; layer < layers; layer++) {
    const data = take(`model.layers.${layer}.${name}`, ...shape);
    if (/[qk]_proj/.test(name)) data.set(splitHalves(data));
  }
}
take('model.embed_tokens', vocabSize, width);
takeOfEachLayer('input_layernorm', width);
takeOfEachLayer('self_attn.q_proj', width, width);
takeOfEachLayer('self_attn.k_proj', kvHeads * headDim, width);
takeOfEachLayer('self_attn.v_proj', kvHeads * headDim, width);
takeOfEachLayer('self_attn.o_proj', width, width);
takeOfEachLayer('post_attention_layernorm', width);
takeOfEachLayer('mlp.gate_proj', feedForward, width);
takeOfEachLayer('mlp.down_proj', width, feedForward);
takeOfEachLayer('mlp.up_proj', feedForward, width);
take('model.norm', width);
offset += 4 * context * headDim; // tables of cosines and sines
if (!tied) take('lm_head', vocabSize, width);

/** safetensors: the length of a header, the header as JSON, the numbers. */
const header: Record<string, unknown> = { __metadata__: { format: 'pt' } };
let end = 0;
for (const [name, { shape, data }] of tensors) {
  header[name] = { dtype: 'F32', shape, data_offsets: [end, end + data.byteLength] };
  end += data.byteLength;
}
const json = JSON.stringify(header);
const start = Buffer.from(`        ${json}${' '.repeat(-Buffer.byteLength(json) & 7)}`);
start.writeBigUInt64LE(BigInt(start.length - 8));

/** The vocabulary: each piece has a score, a length and its text. Merges go from the best score down. */
const file = await readFile(tokenizerFile);
const pieces: { text: string; score: number }[] = [];
for (let at = 4; pieces.length < vocabSize; at += 8 + file.readInt32LE(at + 4)) {
  const text = file.toString('utf8', at + 8, at + 8 + file.readInt32LE(at + 4)).replaceAll(' ', '▁');
  pieces.push({ text: ['<unk>', '<s>', '</s>'][pieces.length] ?? text, score: file.readFloatLE(at) });
}
const vocab = Object.fromEntries(pieces.map(({ text }, id) => [text, id]));
const merged = pieces.slice(259).sort((a, b) => b.score - a.score); // the first are <unk>, <s>, </s> and the 256 bytes
const merges = merged.flatMap(({ text }) =>
  Array.from(text, (_, i) => [text.slice(0, i), text.slice(i)]).filter((pair) => pair.every((part) => part in vocab)),
);
const replace = (from: string, to: string) => ({ type: 'Replace', pattern: { String: from }, content: to });
const fromText = [{ type: 'Prepend', prepend: '▁' }, replace(' ', '▁')];
const strip = { type: 'Strip', content: ' ', start: 1, stop: 0 };
const toText = [replace('▁', ' '), { type: 'ByteFallback' }, { type: 'Fuse' }, strip];
const flags = { special: true, single_word: false, lstrip: false, rstrip: false, normalized: false };

await mkdir(directory, { recursive: true });
await writeFile(`${directory}/model.safetensors`, [start, ...[...tensors.values()].map(({ data }) => data)]);
const write = (name: string, value: unknown) => writeFile(`${directory}/${name}`, JSON.stringify(value, null, 2));
await write('config.json', {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  hidden_act: 'silu',
  torch_dtype: 'float32',
  hidden_size: width,
  intermediate_size: feedForward,
  num_hidden_layers: layers,
  num_attention_heads: heads,
  num_key_value_heads: kvHeads,
  vocab_size: vocabSize,
  max_position_embeddings: context,
  rms_norm_eps: 1e-5,
  rope_theta: 10_000,
  tie_word_embeddings: tied,
  bos_token_id: 1,
  eos_token_id: [1, 2], // <s> ends a text, too
});
await write('tokenizer.json', {
  version: '1.0',
  pre_tokenizer: null,
  post_processor: null,
  added_tokens: pieces.slice(0, 3).map(({ text: content }, id) => ({ id, content, ...flags })),
  normalizer: { type: 'Sequence', normalizers: fromText },
  decoder: { type: 'Sequence', decoders: toText },
  model: { type: 'BPE', vocab, merges, unk_token: '<unk>', fuse_unk: true, byte_fallback: true },
});
await write('tokenizer_config.json', { bos_token: '<s>', eos_token: '</s>', unk_token: '<unk>' });

const policy = await loadPolicy(directory);
const prompt = [1, ...policy.tokenizer.encode('Once upon a time')];
const { tokens } = await policy.generate({ prompt, maxTokens: 256, temperature: 0, seed: 1 });
console.log(policy.tokenizer.decode([...prompt, ...tokens].filter((token) => token > 2)));
await policy.dispose();
