/** A tiny Qwen3 with random weights and a byte-level tokenizer in Hugging Face's files, for servers that read such. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DecoderConfig } from '@drmas/engine/contract';
import { decoderTensors, initialise } from '@drmas/engine/internal/model/decoder/weights/decoder-tensors';
import { decoderPlaces } from '@drmas/engine/internal/model/formats/decoder-layout';
import { writeConfig } from '@drmas/engine/internal/model/formats/model-config';
import { encodeSafetensors } from '@drmas/engine/internal/model/formats/safetensors';
import { parameterCount } from '@drmas/engine/model';

const SPECIAL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'] as const;
const STOP = 256 + SPECIAL.indexOf('<|im_end|>');

const CHAT_TEMPLATE =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}" +
  "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

const tinyQwen3: DecoderConfig = {
  vocabSize: 272, // more than the tokenizer's 259, as in real models
  width: 64,
  layers: 2,
  heads: 4,
  kvHeads: 2,
  headDim: 16,
  feedForward: 128,
  context: 512,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
  queryKeyNorm: true,
};

export async function writeTinyQwen3(directory: string, seed = 0): Promise<void> {
  const weights = new Float32Array(parameterCount(tinyQwen3));
  const tensors = decoderTensors(tinyQwen3, weights);
  initialise(tinyQwen3, tensors, seed);
  await mkdir(directory, { recursive: true });
  const write = (name: string, content: unknown) => writeFile(join(directory, name), JSON.stringify(content));
  await write('config.json', writeConfig(tinyQwen3, [STOP]));
  await writeFile(
    join(directory, 'model.safetensors'),
    encodeSafetensors(decoderPlaces(tensors, tinyQwen3), { format: 'pt' }),
  );
  await write('tokenizer.json', tokenizer());
  await write('tokenizer_config.json', {
    tokenizer_class: 'PreTrainedTokenizerFast',
    eos_token: '<|im_end|>',
    pad_token: '<|endoftext|>',
    chat_template: CHAT_TEMPLATE,
  });
}

/** One token a byte, no merges. */
function tokenizer() {
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false };
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: SPECIAL.map((content, i) => ({
      id: 256 + i,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: null,
    decoder: byteLevel,
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      vocab: Object.fromEntries(byteAlphabet().map((character, byte) => [character, byte])),
      merges: [],
    },
  };
}

/**
 * The printable character that stands for each byte in GPT-2's byte-level vocabularies. A printable byte stands for
 * itself.
 */
function byteAlphabet(): string[] {
  const printable = (byte: number) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte !== 173);
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++));
}
