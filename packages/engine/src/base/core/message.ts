/** A JSON schema as plain data. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A tool that a model may call. */
export interface Tool {
  readonly name: string;
  readonly description?: string;
  /** The JSON schema of its arguments, which form an object. */
  readonly parameters: JsonSchema;
  /** Whether a hosted model shall be held to the schema. drmas only sends it on to servers of frozen agents. */
  readonly strict?: boolean;
}

/** A tool call, as a model wrote it. */
export interface ToolCall {
  /** In tool calls of drmas `call_<id of the turn>_<n>`, n from 0. */
  readonly id: string;
  readonly name: string;
  /** The arguments as the JSON text that the model wrote. */
  readonly arguments: string;
}

/** The arguments of a call in which servers and clients may write nothing if there are none. */
export const argumentsText = (written: string | null | undefined): string => (written?.trim() ? written : '{}');

/** Which tools a model is to call: its choice, none, at least one, or the named one. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string };

/** A chat message. A model's chat template turns a list of them into token ids. */
export interface Message {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string;
  /** An assistant's reasoning before its content. Chat templates decide whether a model reads it again. */
  readonly reasoning?: string;
  /** The tools that an assistant called. */
  readonly toolCalls?: readonly ToolCall[];
  /** In a tool's message: the id of the call. */
  readonly toolCallId?: string;
  /** The tool's name, in a tool's message. */
  readonly name?: string;
  /** In an assistant's message: the turn whose reply it repeats. */
  readonly turnId?: string;
}

/** A message with instructions, before the conversation. */
export const system = (content: string): Message => ({ role: 'system', content });
/** A message that a user wrote. */
export const user = (content: string): Message => ({ role: 'user', content });
/**
 * A message that an assistant wrote: a text, or an agent's reply with its tool calls. drmas reads a reply with exactly
 * the ids that were sampled.
 */
export function assistant(
  reply: string | { readonly id?: string; readonly content: string; readonly toolCalls: readonly ToolCall[] },
): Message {
  if (typeof reply === 'string') return { role: 'assistant', content: reply };
  const { id, content, toolCalls } = reply;
  return {
    role: 'assistant',
    content,
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
    ...(id === undefined ? {} : { turnId: id }),
  };
}

/** A message in words: its text, and a line for each tool call, such as `price({"fruit":"fig"})`. */
export function messageText({ content, toolCalls = [] }: Pick<Message, 'content' | 'toolCalls'>): string {
  const calls = toolCalls.map(({ name, arguments: values }) => `${name}(${values})`);
  return [content, ...calls].filter((line) => line !== '').join('\n');
}

/** The result of a call of a tool, as a message. */
export const toolResult = ({ id, name }: Pick<ToolCall, 'id' | 'name'>, content: string): Message => ({
  role: 'tool',
  content,
  toolCallId: id,
  name,
});
