import { randomInt } from 'node:crypto';
import { DrmasError, RunError } from '@drmas/engine/errors';
import { visible } from '@drmas/engine/host';
import { nodeHost } from '@drmas/engine/platform';
import { Chat, openAgentModels } from '../../../serve/index.js';
import { INTERRUPTED, type Keyboard } from '../../command-context.js';
import { argument, defineCommand } from '../../define-command.js';
import { allowEndpoint, checkpoint, integer, ownDevice, text, threads, toggle } from '../../flags.js';
import { type InputLines, inputLines } from '../../input-lines.js';
import { type Screen, screenOf, tone } from '../../reporter/screen.js';

export const chat = defineCommand({
  name: 'chat',
  description: 'talk to a trained agent in a terminal, or send it one message a line',
  details:
    'starts a conversation with a trained agent, with its system prompt and sampling. `/reset` starts a new conversation, `/quit` ends it, Ctrl-C stops an answer. From a pipe, each line is a message or one of these commands',
  arguments: [argument('run', 'directory of the run, or of an exported agent')],
  flags: {
    agent: text('name', 'agent of the team; needed if there are several'),
    checkpoint,
    besideUntrained: toggle(
      'also show the answer of the model before reinforcement: after its warm start, if there was one',
    ),
    greedy: toggle('sample the most probable token each time'),
    seed: integer(0, 'seed of sampling (default: random)'),
    allowEndpoint,
    acceptChanges: toggle('load the recipe of an old run although its code has changed'),
    device: ownDevice,
    threads,
  },
  examples: [
    'drmas chat runs/first --agent solver',
    'drmas chat models/solver --beside-untrained',
    'echo "12+7" | drmas chat runs/first --agent solver --greedy',
  ],
  async run(context, [from], { greedy, device, threads, besideUntrained, seed = randomInt(2 ** 32), ...request }) {
    const notify = (message: string) => void context.stderr.write(`${message}\n`);
    const host = nodeHost({ device, threads, notify, signal: context.signal });
    const { agentModels, untrained, origin, dispose } = await openAgentModels(
      { from, ...request, untrained: besideUntrained },
      host,
    );
    try {
      const [name, ...others] = [...agentModels.keys()];
      if (name === undefined || others.length > 0)
        throw new RunError(
          `${from} has several agents; choose one with --agent: ${[...agentModels.keys()].join(', ')}`,
        );
      const profile = agentModels.get(name)?.agent;
      if (profile !== undefined && profile.system === undefined)
        notify(
          `'${name}' has no system prompt of its own, so it reads your message alone. If your program gives it ` +
            `instructions or tools, call it from there with trainedAgents('${from}').`,
        );
      const sampling = { seed, ...(greedy === true ? { temperature: 0 } : {}) };
      const before = untrained.get(name);
      if (before !== undefined && before.agentModel === undefined) throw new RunError(before.what);
      const conversations = [
        [name, agentModels.get(name)] as const,
        ['untrained', before?.agentModel] as const,
      ].flatMap(([model, agentModel]) =>
        agentModel === undefined ? [] : [{ name: model, chat: new Chat(agentModel, sampling) }],
      );
      const beside = before === undefined ? '' : `, untrained: ${before.what}`;
      await talk(conversations, {
        keyboard: context.stdin(),
        screen: screenOf(context.stdout, context.environment),
        notify,
        signal: context.signal,
        greeting: `${name} of ${origin}${beside}; /reset starts a new conversation, /quit ends it`,
      });
      return context.signal.aborted ? INTERRUPTED : 0;
    } finally {
      await dispose();
    }
  },
});

interface NamedChat {
  readonly name: string;
  readonly chat: Chat;
}

interface Surroundings {
  readonly keyboard: Keyboard;
  readonly screen: Screen;
  /** Receives messages that are not answers. */
  readonly notify: (message: string) => void;
  readonly signal: AbortSignal;
  readonly greeting: string;
}

/** Answers line by line until the input ends, a person types /quit, or presses Ctrl-C between answers. */
export async function talk(conversations: readonly NamedChat[], surroundings: Surroundings): Promise<void> {
  const { keyboard, screen, notify, signal, greeting } = surroundings;
  const isTerminal = keyboard.input.isTTY === true && screen.live;
  const typed = inputLines(keyboard, isTerminal);
  let answering: AbortController | undefined;
  const leave = () => typed.editor.close();
  signal.addEventListener('abort', leave, { once: true });
  // A terminal in raw mode sends no signal.
  typed.editor.on('SIGINT', () => (answering === undefined ? leave() : answering.abort()));
  if (isTerminal) screen.write(`${greeting}\n`);
  try {
    for await (const line of prompted(typed, isTerminal)) {
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
          await conversation.chat.say(line, AbortSignal.any([signal, answering.signal]), (text) =>
            screen.write(visible(text)),
          );
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
    leave();
  }
}

/** The input's lines, each after a prompt if a person types them. */
async function* prompted({ editor, lines }: InputLines, isTerminal: boolean): AsyncGenerator<string, void> {
  if (isTerminal) editor.prompt();
  for await (const line of lines) {
    yield line;
    if (isTerminal) editor.prompt();
  }
}
