/** The tokenizer and the chat template in the metadata of a GGUF file. */
import { TokenizerError } from '../../../errors.js';
import type { HuggingFaceSpec } from '../../tokenizers/tokenizer-spec.js';
import type { GgufHeader, GgufMetadataValue } from './gguf-header.js';
import { splitNames, splitterNamed } from './gguf-splits.js';
import { KIND } from './gguf-vocabulary.js';

/** Control tokens that end a response in llama.cpp, whether or not the metadata name them. */
const ENDS = new Set([
  ...['<|im_end|>', '<|endoftext|>', '<|eot_id|>', '<|eom_id|>', '<|end_of_text|>', '<|end|>', '<end_of_turn>'],
  '<\uff5cend\u2581of\u2581sentence\uff5c>',
]);
/** The keys of tokens that end a response, the most usual first. */
const STOPS = ['eos', 'eot', 'eom'] as const;

/**
 * Reads the tokenizer into the form of Hugging Face's files: byte-level BPE, after special tokens were cut out of the
 * text, and the chat template. The vocabulary has the special tokens too, since Hugging Face's library gives new ids to
 * those that it lacks. Tokens of type unused are left out, and may come twice.
 * @throws TokenizerError naming the key that is missing or malformed, or the tokenizer that is not supported
 */
export function ggufTokenizer(metadata: GgufHeader['metadata'], file: string): HuggingFaceSpec {
  const model = metadata.get('tokenizer.ggml.model');
  if (model !== 'gpt2')
    throw new TokenizerError(
      `${file}: tokenizer.ggml.model "${text(model) ?? 'none'}" is not supported, expected gpt2, which is byte-level BPE`,
    );
  const pre = text(metadata.get('tokenizer.ggml.pre'));
  const splitter = splitterNamed(pre ?? '');
  if (splitter === undefined)
    throw new TokenizerError(
      `${file}: tokenizer.ggml.pre "${pre ?? 'none'}" is not supported, expected one of ${splitNames.join(', ')}`,
    );
  const list = (key: string, type: 'string' | 'number'): readonly unknown[] => {
    const value = metadata.get(key);
    if (Array.isArray(value) && value.every((each) => typeof each === type)) return value;
    throw new TokenizerError(`${file}: ${key}: expected a list of ${type}s`);
  };
  const tokens = list('tokenizer.ggml.tokens', 'string') as readonly string[];
  const merges = list('tokenizer.ggml.merges', 'string') as readonly string[];
  const kinds = metadata.has('tokenizer.ggml.token_type') ? list('tokenizer.ggml.token_type', 'number') : [];
  const vocab: [string, number][] = [];
  const special: { id: number; content: string; special: boolean }[] = [];
  tokens.forEach((content, id) => {
    const kind = kinds[id] ?? KIND.normal;
    if (kind === KIND.unused) return;
    vocab.push([content, id]);
    if (kind !== KIND.normal) special.push({ id, content, special: kind !== KIND.userDefined });
  });
  const used = new Map(vocab);
  const twice = vocab.find(([content, id]) => used.get(content) !== id);
  if (twice) throw new TokenizerError(`${file}: the token ${JSON.stringify(twice[0].slice(0, 80))} comes twice`);
  const idOf = (name: string): number | undefined => {
    const id = metadata.get(`tokenizer.ggml.${name}_token_id`);
    return typeof id === 'number' && tokens[id] !== undefined ? id : undefined;
  };
  const named = STOPS.flatMap((name) => idOf(name) ?? []);
  const usual = special.flatMap(({ id, content }) => (ENDS.has(content) ? id : []));
  const textOf = (name: string) => tokens[idOf(name) ?? -1];
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false };
  const template = templatesOf(metadata);
  return {
    type: 'huggingface',
    tokenizer: {
      version: '1.0',
      truncation: null,
      padding: null,
      post_processor: null,
      added_tokens: special.map((token) => ({ ...token, ...flags })),
      normalizer: splitter.normalizer,
      pre_tokenizer: splitter.pre_tokenizer,
      decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
      model: {
        type: 'BPE',
        dropout: null,
        unk_token: null,
        continuing_subword_prefix: null,
        end_of_word_suffix: null,
        fuse_unk: false,
        byte_fallback: false,
        ignore_merges: splitter.ignoreMerges,
        vocab: Object.fromEntries(used),
        merges,
      },
    },
    config: {
      tokenizer_class: 'PreTrainedTokenizerFast',
      clean_up_tokenization_spaces: false,
      bos_token: textOf('bos'),
      eos_token: textOf('eos'),
      pad_token: textOf('padding'),
      ...(template !== undefined && { chat_template: template }),
    },
    stopTokens: [...new Set([...named, ...usual])],
  };
}

/** The chat template, with the one for tools if the file has a second. */
function templatesOf(metadata: GgufHeader['metadata']): unknown {
  const usual = text(metadata.get('tokenizer.chat_template'));
  const tools = text(metadata.get('tokenizer.chat_template.tool_use'));
  if (usual === undefined || tools === undefined) return usual;
  return [
    { name: 'default', template: usual },
    { name: 'tool_use', template: tools },
  ];
}

const text = (value: GgufMetadataValue | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined;
