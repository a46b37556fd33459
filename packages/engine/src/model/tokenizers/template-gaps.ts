/** Messages that chat templates refuse, or leave out without a word, and how agents read them all the same. */
import { system, user } from '../../base/core/message.js';
import type { Message, Tool } from '../../nouns.js';
import { type ToolFormatName, toolFormat } from '../tool-formats/index.js';

type Write = (messages: readonly Message[], tools?: readonly Tool[]) => string;

const MARK = '\ue000';
const marksIn = (text: string) => text.split(MARK).length - 1;
const BETWEEN = '\n\n';
const answer: Message = { role: 'assistant', content: 'a' };
const call = { id: 'call', name: MARK, arguments: '{}' };

const TOOLS: readonly Tool[] = [{ name: 'f', parameters: { type: 'object', properties: {} } }];
const ONLY_SYSTEM = [system(MARK)];
const TWO_SYSTEMS = [system(MARK), system(MARK), user('u')];
const LATER_SYSTEM = [system('s'), user('u'), answer, system(MARK), user('u')];
const TWO_USERS = [user(MARK), user(MARK)];
const CALL: readonly Message[] = [
  user('u'),
  { role: 'assistant', content: '', toolCalls: [call] },
  { role: 'tool', content: 'r', toolCallId: call.id },
  user('u'),
];

/**
 * Writes conversations by a template. If the template does not write both of two system messages at the beginning, or
 * of two user messages in a row, one message has their texts. If it leaves out the calls of earlier messages, their
 * texts have them in the model's format.
 * @throws Error for other system messages that the template would leave out: alone, or after another message
 */
export function withoutGaps(write: Write, format: ToolFormatName | undefined): Write {
  const fates = new Map<readonly Message[], 'written' | 'dropped' | 'refused'>();
  const fateOf = (conversation: readonly Message[], offered?: readonly Tool[]) => {
    let fate = fates.get(conversation);
    if (fate === undefined) {
      try {
        fate = marksIn(write(conversation, offered)) < marksIn(JSON.stringify(conversation)) ? 'dropped' : 'written';
      } catch {
        fate = 'refused';
      }
      fates.set(conversation, fate);
    }
    return fate;
  };
  return (messages, tools) => {
    const other = messages.findIndex(({ role }) => role !== 'system');
    const begin = other < 0 ? messages.length : other;
    const others = messages.slice(begin);
    const rest = others.some(followsUser) && fateOf(TWO_USERS) !== 'written' ? withJoinedUsers(others) : others;
    if (rest.some(({ role }) => role === 'system') && fateOf(LATER_SYSTEM) === 'dropped')
      throw new Error('it leaves out system messages after the first other message');
    if (other < 0 && begin > 0 && fateOf(ONLY_SYSTEM) === 'dropped')
      throw new Error('it leaves out a system message without another message');
    const systems = messages.slice(0, begin);
    const isJoined = begin > 1 && fateOf(TWO_SYSTEMS) !== 'written';
    const hasLostCalls = rest.some(({ toolCalls = [] }) => toolCalls.length > 0) && fateOf(CALL, TOOLS) === 'dropped';
    const joined = isJoined ? [system(textOf(systems))] : systems;
    return write(
      [...joined, ...(hasLostCalls && format ? rest.map((each) => withCalls(each, format, tools)) : rest)],
      tools,
    );
  };
}

const textOf = (messages: readonly Message[]) => messages.map(({ content }) => content).join(BETWEEN);

const followsUser = ({ role }: Message, i: number, messages: readonly Message[]) =>
  role === 'user' && messages[i - 1]?.role === 'user';

function withJoinedUsers(messages: readonly Message[]): Message[] {
  const runs: Message[][] = [];
  for (const [i, message] of messages.entries())
    if (followsUser(message, i, messages)) runs.at(-1)?.push(message);
    else runs.push([message]);
  return runs.flatMap((run) => (run.length > 1 ? user(textOf(run)) : run));
}

function withCalls(
  { toolCalls = [], ...message }: Message,
  format: ToolFormatName,
  tools: readonly Tool[] = [],
): Message {
  if (toolCalls.length === 0) return message;
  return { ...message, content: toolFormat(format).write({ content: message.content, calls: toolCalls }, tools) };
}
