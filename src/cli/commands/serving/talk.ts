import { createInterface, type Interface } from 'node:readline';
import { DrmasError } from '../../../base/errors.js';
import type { Chat } from '../../../serve/index.js';
import type { Keyboard } from '../../command-context.js';
import { type Screen, tone } from '../../reporter/screen.js';

/** A model's name, and the conversation with it. */
interface Conversation {
  readonly name: string;
  readonly chat: Chat;
}

interface Surroundings {
  readonly keyboard: Keyboard;
  readonly screen: Screen;
  /** Receives messages that are not answers. */
  readonly notify: (message: string) => void;
  /** Ends the conversation. */
  readonly signal: AbortSignal;
  /** The first line on a terminal. */
  readonly greeting: string;
}

/** Answers line by line until the input ends, a person types /quit, or presses Ctrl-C between answers. */
export async function talk(conversations: readonly Conversation[], surroundings: Surroundings): Promise<void> {
  const { keyboard, screen, notify, signal, greeting } = surroundings;
  const { input, output } = keyboard;
  const isTerminal = input.isTTY === true && screen.live;
  const lines = createInterface(isTerminal ? { input, output, terminal: true } : { input });
  let answering: AbortController | undefined;
  const leave = () => lines.close();
  signal.addEventListener('abort', leave, { once: true });
  // A terminal in raw mode sends no signal.
  lines.on('SIGINT', () => (answering === undefined ? lines.close() : answering.abort()));
  if (isTerminal) screen.write(`${greeting}\n`);
  try {
    for await (const line of linesOf(lines, isTerminal)) {
      if (line === '/quit') break;
      if (line === '/reset') {
        for (const { chat } of conversations) chat.reset();
        continue;
      }
      if (line.trim() === '') continue;
      for (const conversation of conversations) {
        answering = new AbortController();
        const named = isTerminal || conversations.length > 1;
        if (named) screen.write(tone(screen, 'bold', `${conversation.name}: `));
        try {
          await conversation.chat.say(line, AbortSignal.any([signal, answering.signal]), (text) => screen.write(text));
        } catch (error) {
          if (!(error instanceof DrmasError)) throw error;
          notify(error.message);
        }
        screen.write('\n');
        if (answering.signal.aborted || signal.aborted) break;
      }
      answering = undefined;
      if (signal.aborted) break;
    }
  } finally {
    signal.removeEventListener('abort', leave);
    lines.close();
  }
}

/** The input's lines, each after a prompt if a person types them. */
async function* linesOf(lines: Interface, isTerminal: boolean): AsyncGenerator<string, void> {
  if (isTerminal) lines.prompt();
  for await (const line of lines) {
    yield line;
    if (isTerminal) lines.prompt();
  }
}
