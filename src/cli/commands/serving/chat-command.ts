import { randomInt } from 'node:crypto';
import { RunError } from '../../../base/errors.js';
import { nodeHost } from '../../../base/platform.js';
import { Chat, openAgentModels } from '../../../serve/index.js';
import { INTERRUPTED } from '../../command-context.js';
import { argument, defineCommand } from '../../define-command.js';
import { checkpoint, device, integer, text, threads, toggle } from '../../flags.js';
import { screenOf } from '../../reporter/screen.js';
import { talk } from './talk.js';

/** Talks to a trained agent in a terminal. From a pipe each line is a message. */
export const chat = defineCommand({
  name: 'chat',
  description: 'talk to a trained agent in a terminal, or send it one message a line',
  details:
    'starts a conversation with a trained agent, with its system prompt and sampling. `/reset` starts a new conversation, `/quit` ends it, Ctrl-C stops an answer. From a pipe, each line is a message',
  arguments: [argument('run', 'directory of the run, or of an exported agent')],
  flags: {
    agent: text('name', 'agent of the team; needed if there are several'),
    checkpoint,
    besideUntrained: toggle('also show the answer of the untrained model'),
    greedy: toggle('sample the most probable token each time'),
    seed: integer(0, 'seed of sampling (default: random)'),
    acceptChanges: toggle('load the recipe of an old run although its code has changed'),
    device,
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
