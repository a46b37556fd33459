import type { Message, Tool } from '../../core/message.js';
import { propertiesOf } from './fits-schema.js';
import { plain, SIGN } from './plain.js';

/** A message of a template that knows no tools. */
interface PlainMessage {
  readonly role: Exclude<Message['role'], 'tool'>;
  readonly content: string;
  /** The message that it stands for. */
  readonly message: Message;
}

/**
 * A conversation in which tools are plain text, for templates that know none: the first system message ends with the
 * tools, one a line, a result is a user's message, and an assistant's calls are in its text.
 */
export function plainMessages(messages: readonly Message[], tools: readonly Tool[] = []): PlainMessage[] {
  const listed = messages.some(({ role }) => role === 'system')
    ? messages
    : [...(tools.length === 0 ? [] : [{ role: 'system', content: '' } as const]), ...messages];
  const first = listed.find(({ role }) => role === 'system');
  return listed.map((message) => {
    const { role, content, toolCalls = [] } = message;
    if (role === 'tool') return { role: 'user', content, message };
    if (message === first)
      return { role, content: [content, ...tools.map(lineOf)].filter(Boolean).join('\n'), message };
    return {
      role,
      content: toolCalls.length === 0 ? content : plain.write({ content, calls: toolCalls }, tools),
      message,
    };
  });
}

/** A tool as `@name(property, property): description`. */
function lineOf({ name, description, parameters }: Tool): string {
  const head = `${SIGN}${name}(${Object.keys(propertiesOf(parameters)).join(', ')})`;
  return description === undefined || description === '' ? head : `${head}: ${description}`;
}
