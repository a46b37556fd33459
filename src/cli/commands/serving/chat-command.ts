import { randomInt } from 'node:crypto';
import { RunError } from '../../../core/errors.js';
import { nodeHost } from '../../../platform/node-host.js';
import { Chat } from '../../../serve/chat.js';
import { openVoices } from '../../../serve/open-voices.js';
import { INTERRUPTED } from '../../command-context.js';
import { argument, defineCommand } from '../../define-command.js';
import { device, integer, text, threads, toggle } from '../../flags.js';
import { screenOf } from '../../reporter/screen.js';
import { talk } from './talk.js';

/** Talks to a trained agent in a terminal; from a pipe every line is a message. */
export const chat = defineCommand({
  name: 'chat',
  description: 'talk to a trained agent in a terminal, or send it one message a line',
  details:
    'a conversation with a trained agent, with its system prompt and sampling. `/reset` begins a new one, `/quit` ends it, Ctrl-C stops an answer; from a pipe every line is a message. `--agent`, `--checkpoint`, `--beside-untrained`',
  arguments: [argument('run', 'directory of the run, or of an exported agent')],
  flags: {
    agent: text('name', 'agent of the team; not needed where there is one'),
    checkpoint: text('step', 'checkpoint of this step (default: the last)'),
    besideUntrained: toggle('show what the model answered before it was trained, too'),
    greedy: toggle('take the most probable token each time'),
    seed: integer(0, 'seed of sampling (default: another one each time)'),
    acceptChanges: toggle('load the recipe of a run of an earlier version although its code has changed'),
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
    const { voices, untrained, origin, dispose } = await openVoices(
      { from, ...request, untrained: besideUntrained },
      host,
    );
    try {
      const [name, ...others] = [...voices.keys()];
      if (name === undefined || others.length > 0)
        throw new RunError(`${from} has several agents, say which with --agent: ${[...voices.keys()].join(', ')}`);
      const sampling = { seed, ...(greedy === true ? { temperature: 0 } : {}) };
      const before = untrained.get(name);
      if (before !== undefined && before.voice === undefined) throw new RunError(before.what);
      const speakers = [[name, voices.get(name)] as const, ['untrained', before?.voice] as const].flatMap(
        ([speaker, voice]) => (voice === undefined ? [] : [{ name: speaker, chat: new Chat(voice, sampling) }]),
      );
      const beside = before === undefined ? '' : `, untrained: ${before.what}`;
      await talk(speakers, {
        keyboard: context.stdin(),
        screen: screenOf(context.stdout, context.environment),
        notify,
        signal: context.signal,
        greeting: `${name} of ${origin}${beside}; /reset begins a new conversation, /quit ends`,
      });
      return context.signal.aborted ? INTERRUPTED : 0;
    } finally {
      await dispose();
    }
  },
});
