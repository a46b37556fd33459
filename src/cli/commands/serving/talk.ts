import { createInterface, type Interface } from 'node:readline';
import { DrmasError } from '../../../core/errors.js';
import type { Chat } from '../../../serve/chat.js';
import type { Keyboard } from '../../command-context.js';
import { type Screen, tone } from '../../reporter/screen.js';

/** One of those who answer what is said. */
interface Speaker {
  readonly name: string;
  readonly chat: Chat;
}

interface Surroundings {
  readonly keyboard: Keyboard;
  readonly screen: Screen;
  /** Receives what is no answer. */
  readonly notify: (message: string) => void;
  /** Ends the conversation. */
  readonly signal: AbortSignal;
  /** A line for a person who sits there. */
  readonly greeting: string;
}

/** Lets everybody answer line by line until the lines end, /quit is typed, or Ctrl-C while nobody answers. */
export async function talk(speakers: readonly Speaker[], surroundings: Surroundings): Promise<void> {
  const { keyboard, screen, notify, signal, greeting } = surroundings;
  const { input, output } = keyboard;
  const isTerminal = input.isTTY === true && screen.live;
  const lines = createInterface(isTerminal ? { input, output, terminal: true } : { input });
  let answering: AbortController | undefined;
  const leave = () => lines.close();
  signal.addEventListener('abort', leave, { once: true });
  // A terminal that is read key by key sends no signal.
  lines.on('SIGINT', () => (answering === undefined ? lines.close() : answering.abort()));
  if (isTerminal) screen.write(`${greeting}\n`);
  try {
    for await (const line of linesOf(lines, isTerminal)) {
      if (line === '/quit') break;
      if (line === '/reset') {
        for (const { chat } of speakers) chat.reset();
        continue;
      }
      if (line.trim() === '') continue;
      for (const speaker of speakers) {
        answering = new AbortController();
        const named = isTerminal || speakers.length > 1;
        if (named) screen.write(tone(screen, 'bold', `${speaker.name}: `));
        try {
          await speaker.chat.say(line, AbortSignal.any([signal, answering.signal]), (text) => screen.write(text));
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

/** Lines as they come, each after a prompt where a person types them. */
async function* linesOf(lines: Interface, isTerminal: boolean): AsyncGenerator<string, void> {
  if (isTerminal) lines.prompt();
  for await (const line of lines) {
    yield line;
    if (isTerminal) lines.prompt();
  }
}
