import { isObject, messageOf, TokenizerError } from '../../errors.js';
import { excerpt } from '../../host.js';
import type { Message, Tokenizer, Tool } from '../../nouns.js';
import { formatOfTemplate } from '../tool-formats/index.js';
import { plainMessages } from '../tool-formats/plain-messages.js';
import { chatTemplate } from './chat-template.js';
import { dateOf } from './named-templates.js';
import { type Pipeline, pipelineOf } from './pipeline/pipeline.js';
import { splice } from './splice.js';
import { withoutGaps } from './template-gaps.js';
import { templateMessage, templateTool } from './template-messages.js';
import type { HuggingFaceSpec } from './tokenizer-spec.js';
import { requireWellFormed } from './well-formed.js';

/**
 * The tokenizer and chat template of a Hugging Face directory. `encode` adds no special tokens but recognises those
 * that are written out in the text, and `decode` shows them, as in `transformers` without `add_special_tokens`.
 * @throws TokenizerError when the files cannot be used.
 */
export function huggingFaceTokenizer(spec: HuggingFaceSpec): Tokenizer {
  requireSmallIds(spec.tokenizer);
  const pipeline = attempt('tokenizer.json cannot be used', () => pipelineOf(spec.tokenizer, spec.config));
  const render = renderer(spec);
  const { size, textOf } = pipeline;
  const { rows = size } = spec;

  const encode = (text: string): number[] => {
    const wellFormed = requireWellFormed(text);
    const ids = attempt('tokenizer.json cannot encode the text', () => pipeline.encode(wellFormed));
    const known = ids.filter((id) => id !== undefined);
    if (known.length < ids.length) {
      throw new TokenizerError(`the vocabulary cannot represent ${JSON.stringify(text.slice(0, 60))}`);
    }
    const beyond = known.find((id) => id >= rows);
    if (beyond !== undefined) {
      const token = JSON.stringify(textOf(beyond));
      throw new TokenizerError(`the text has the token ${token}, id ${beyond}, and the model has only ${rows} rows`);
    }
    return known;
  };

  const stopTokens = stopTokensOf(spec, pipeline, render);

  return {
    vocabSize: Math.min(size, rows),
    stopTokens,
    toolFormat: formatOfTemplate(templatesOf(spec).withTools ?? ''),
    encode,
    // Ids beyond the tokenizer's vocabulary, which padded models can sample, have no text.
    decode: (tokens) => attempt('tokenizer.json cannot decode the tokens', () => pipeline.decode(tokens)),
    chat(messages, exact, tools) {
      const pieces = splice(
        (conversation) => render(conversation, tools),
        messages,
        exact,
        stopTokens.map((id) => textOf(id) ?? ''),
      );
      return pieces.flatMap((piece) => (typeof piece === 'string' ? encode(piece) : [...piece]));
    },
    toJSON: () => spec,
  };
}

/** Tokens of the largest vocabulary that is read. Real ones have some 100,000. */
const LARGEST_VOCABULARY = 2 ** 22;

/** Vocabularies keep a list as long as the largest id. @throws TokenizerError naming the token whose id is too large */
function requireSmallIds({ model, added_tokens: added }: Readonly<Record<string, unknown>>): void {
  const vocabulary = isObject(model) && isObject(model.vocab) ? Object.entries(model.vocab) : [];
  const listed = Array.isArray(added) ? added.map((each) => [each?.content, each?.id]) : [];
  for (const [token, id] of [...vocabulary, ...listed])
    if (typeof id !== 'number' || !Number.isInteger(id) || id < 0 || id >= LARGEST_VOCABULARY)
      throw new TokenizerError(
        `tokenizer.json cannot be used: the id of ${excerpt(String(token))} must be below ${LARGEST_VOCABULARY}, is ${id}`,
      );
}

/**
 * The ids that end a response: those of the model's files, and the tokenizer's own, which files of tuned models may
 * lack. The one that the chat template writes behind an answer comes first, as a model learns to end its answers with
 * it.
 */
function stopTokensOf(spec: HuggingFaceSpec, { idOf, textOf }: Pipeline, render: ConversationRenderer): number[] {
  const text = specialToken(spec.config.eos_token);
  const own = text === undefined ? undefined : idOf(text);
  const ids = [...new Set([...(spec.stopTokens ?? []), ...(own === undefined ? [] : [own])])];
  if (ids.length < 2) return ids;
  const behind = textBehindAnswer(render);
  const placeOf = (id: number) => {
    const at = behind.indexOf(textOf(id) ?? ANSWER);
    return at < 0 ? behind.length : at;
  };
  return ids.toSorted((a, b) => placeOf(a) - placeOf(b));
}

const ANSWER = '\ue000';

/** The text that a template writes behind an assistant's message; empty if it refuses the conversation. */
function textBehindAnswer(render: ConversationRenderer): string {
  const message = (role: Message['role'], content: string): Message => ({ role, content });
  try {
    const text = render([message('user', 'a'), message('assistant', ANSWER), message('user', 'b')]);
    return text.split(ANSWER)[1] ?? '';
  } catch {
    return '';
  }
}

/** The text of a special token, which files give as a string or as an object with its `content`. */
function specialToken(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null || !('content' in value)) return undefined;
  return typeof value.content === 'string' ? value.content : undefined;
}

/**
 * The chat templates of a tokenizer: its only one, or the one named `default` and, for conversations with tools, the
 * one named `tool_use`.
 */
function templatesOf({ chatTemplate: file, config: { chat_template: value } }: HuggingFaceSpec) {
  const only = file ?? (typeof value === 'string' ? value : undefined);
  const named = (name: string): string | undefined => {
    const entry: unknown = Array.isArray(value) ? value.find((each: { name?: unknown }) => each?.name === name) : {};
    return isObject(entry) && typeof entry.template === 'string' ? entry.template : undefined;
  };
  const source = only ?? named('default');
  return { source, withTools: only ?? named('tool_use') ?? source };
}

type ConversationRenderer = (messages: readonly Message[], tools?: readonly Tool[]) => string;

function renderer(spec: HuggingFaceSpec): ConversationRenderer {
  const { source, withTools = source } = templatesOf(spec);
  if (source === undefined || withTools === undefined) {
    return () => {
      throw new TokenizerError(
        "the tokenizer has no chat template, so it cannot format a conversation; checkpoint(path, { chatTemplate: 'plain' }) gives it one",
      );
    };
  }
  const variables: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(spec.config)) {
    if (key.endsWith('_token')) variables[key] = specialToken(value);
  }
  Object.assign(variables, spec.variables, { add_generation_prompt: true });
  const plain = conversationOf(source, variables);
  const tooled = withTools === source ? plain : conversationOf(withTools, variables);
  return (messages, tools) => (usesTools(messages, tools) ? tooled(messages, tools) : plain(messages));
}

const usesTools = (messages: readonly Message[], tools: readonly Tool[] = []) =>
  tools.length > 0 || messages.some(({ role, toolCalls }) => role === 'tool' || toolCalls !== undefined);

function conversationOf(source: string, variables: Readonly<Record<string, unknown>>): ConversationRenderer {
  const render = attempt('the chat template cannot be read', () => chatTemplate(source));
  const date = attempt('the chat template cannot be used', () => dateOf(source));
  const format = formatOfTemplate(source);
  const write = withoutGaps(
    (messages, tools) =>
      render(variables, messages.map(templateMessage), tools?.map(templateTool), date && (() => date)),
    format,
  );
  return (messages, tools) =>
    attempt('the chat template refused the conversation', () =>
      format === 'plain' ? write(plainMessages(messages, tools)) : write(messages, tools),
    );
}

function attempt<T>(complaint: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw new TokenizerError(`${complaint}: ${messageOf(error)}`);
  }
}
