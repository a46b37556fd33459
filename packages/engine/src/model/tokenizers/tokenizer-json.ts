/** The tokenizers of drmas in the form of Hugging Face's files, for programs that read no other. */
import { TokenizerError } from '../../errors.js';
import { BYTES, MARKERS } from './bytes.js';
import { BYTE_CHARACTERS } from './pipeline/part.js';
import type { BytesSpec, HuggingFaceSpec, SymbolsSpec } from './tokenizer-spec.js';
import { requireWellFormed } from './well-formed.js';

/**
 * The contents of a tokenizer.json and a tokenizer_config.json that encode and decode as the tokenizer does. Two things
 * are Hugging Face's way: special tokens that are written out in a text are recognised, and a conversation is one text.
 * @throws TokenizerError when a symbol overlaps the one that ends a response, which those libraries cut out first, or
 *   is no whole character
 */
export function huggingFaceForm(spec: SymbolsSpec | BytesSpec): HuggingFaceSpec {
  return spec.type === 'bytes' ? bytesForm() : symbolsForm(spec);
}

function bytesForm(): HuggingFaceSpec {
  const [pad, end, system, user, assistant] = MARKERS;
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false };
  const closed = `{{ message['content'] + ${literal(end)} }}`;
  return {
    type: 'huggingface',
    tokenizer: {
      ...commonParts(MARKERS.map((content, i) => ({ id: BYTES + i, content }))),
      pre_tokenizer: byteLevel,
      decoder: byteLevel,
      model: {
        type: 'BPE',
        dropout: null,
        unk_token: null,
        continuing_subword_prefix: null,
        end_of_word_suffix: null,
        fuse_unk: false,
        byte_fallback: false,
        ignore_merges: false,
        vocab: Object.fromEntries(BYTE_CHARACTERS.map((character, byte) => [character, byte])),
        merges: [],
      },
    },
    config: {
      ...commonConfig,
      eos_token: end,
      pad_token: pad,
      chat_template:
        `{% for message in messages %}{% if message['role'] == 'system' %}{{ ${literal(system)} }}` +
        `{% elif message['role'] == 'assistant' %}{{ ${literal(assistant)} }}{% else %}{{ ${literal(user)} }}` +
        `{% endif %}${closed}{% endfor %}{% if add_generation_prompt %}{{ ${literal(assistant)} }}{% endif %}`,
    },
  };
}

function symbolsForm({ symbols, stop, endOfUser, endOfAssistant }: SymbolsSpec): HuggingFaceSpec {
  symbols.forEach(requireWellFormed);
  const other = symbols.find((symbol) => symbol !== stop && overlaps(symbol, stop));
  if (other !== undefined)
    throw new TokenizerError(`symbol ${literal(other)} overlaps ${literal(stop)}, which ends a response`);
  // Of the alternatives of a pattern the first that fits is taken.
  const longestFirst = symbols.toSorted((a, b) => b.length - a.length);
  const pattern = longestFirst.map((symbol) => symbol.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')).join('|');
  return {
    type: 'huggingface',
    tokenizer: {
      ...commonParts([{ id: symbols.indexOf(stop), content: stop }]),
      pre_tokenizer: { type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false },
      decoder: { type: 'Fuse' },
      model: {
        // A text with anything that is no symbol is an error, since no vocabulary has a token without text.
        type: 'WordPiece',
        unk_token: '',
        continuing_subword_prefix: '',
        max_input_chars_per_word: 1_000_000,
        vocab: Object.fromEntries(symbols.map((symbol, id) => [symbol, id])),
      },
    },
    config: {
      ...commonConfig,
      eos_token: stop,
      chat_template:
        `{% for message in messages %}{{ message['content'] }}{% if message['role'] == 'assistant' %}` +
        `{{ ${literal(endOfAssistant)} }}{% elif message['role'] != 'system' %}{{ ${literal(endOfUser)} }}` +
        '{% endif %}{% endfor %}',
    },
  };
}

const commonConfig = { tokenizer_class: 'PreTrainedTokenizerFast', clean_up_tokenization_spaces: false };

function commonParts(special: readonly { readonly id: number; readonly content: string }[]) {
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    normalizer: null,
    post_processor: null,
    added_tokens: special.map((token) => ({ ...token, ...flags })),
  };
}

/**
 * Whether cutting `second` out of a text before `first` is looked for can break an occurrence of `first`: one contains
 * the second, or ends as the second begins.
 */
function overlaps(first: string, second: string): boolean {
  if (first.includes(second)) return true;
  for (let length = 1; length < Math.min(first.length, second.length); length++)
    if (first.endsWith(second.slice(0, length))) return true;
  return false;
}

const literal = (text: string) => JSON.stringify(text);
