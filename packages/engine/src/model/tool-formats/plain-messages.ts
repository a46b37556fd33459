import type { Message, Tool } from '../../nouns.js';
import { plain, SIGN } from './plain.js';
import { propertiesOf } from './schema-properties.js';

/** A message of a template that knows no tools. */
interface PlainMessage {
  readonly role: Exclude<Message['role'], 'tool'>;
  readonly content: string;
  readonly message: Message;
}

/**
 * A conversation in which tools are plain text, for templates that know none: the first system message ends with the
 * tools, one a line, a result is a user's message, and an assistant's calls are in its text.
 */
export function plainMessages(messages: readonly Message[], tools: readonly Tool[] = []): PlainMessage[] {
  const list = tools.map(lineOf).join('\n');
  const hasSystem = messages.some(({ role }) => role === 'system');
  const all: readonly Message[] = list === '' || hasSystem ? messages : [{ role: 'system', content: '' }, ...messages];
  const first = all.findIndex(({ role }) => role === 'system');
  return plainCalls(all, tools).map((plainMessage, i) => {
    const { content } = plainMessage;
    return i === first && list !== ''
      ? { ...plainMessage, content: content === '' ? list : `${content}\n${list}` }
      : plainMessage;
  });
}

/** The same without the list of tools. */
export function plainCalls(messages: readonly Message[], tools: readonly Tool[] = []): PlainMessage[] {
  return messages.map((message) => {
    const { role, content, toolCalls = [] } = message;
    if (role === 'tool') return { role: 'user', content, message };
    const calls = toolCalls.length === 0 ? content : plain.write({ content, calls: toolCalls }, tools);
    return { role, content: calls, message };
  });
}

/** A tool as `@name(property, property): description`. */
function lineOf({ name, description, parameters }: Tool): string {
  const head = `${SIGN}${name}(${Object.keys(propertiesOf(parameters)).join(', ')})`;
  return description === undefined || description === '' ? head : `${head}: ${description}`;
}
