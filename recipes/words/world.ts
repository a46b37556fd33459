/**
 * The world of the recipe `words`: commands in English, their names in version 2 of the sandbox, and requests for them.
 * The names are English synonyms, so that a pretrained model's own sense of words is where exploration begins.
 */
import type { TaskSource, Trace } from 'drmas';
import { user } from 'drmas';

interface Command {
  readonly name: string;
  /** The name in version 2. */
  readonly renamed: string;
  /** Wordings of a request. The last is never demonstrated: the pretrained model must understand it. */
  readonly requests: readonly [string, string, string];
}

const command = (name: string, renamed: string, ...requests: [string, string, string]): Command => ({
  ...{ name, renamed, requests },
});

const commands: readonly Command[] = [
  command('copy', 'reproduce', 'Copy FILE.', 'Make a second FILE just like it.', 'I need FILE twice.'),
  command('delete', 'erase', 'Delete FILE.', 'I do not need FILE any more.', 'Get rid of FILE.'),
  command('sort', 'order', 'Sort FILE.', 'Put the lines of FILE in order.', 'FILE should be alphabetical.'),
  command(
    ...(['count', 'measure'] as const),
    ...(['Count FILE.', 'How many lines does FILE have?', 'Tell me the number of lines in FILE.'] as const),
  ),
  command('print', 'write', 'Print FILE.', 'I want to read FILE.', 'What is written in FILE?'),
  command('split', 'divide', 'Split FILE.', 'Cut FILE into parts.', 'FILE is too large, make smaller pieces.'),
  command('find', 'locate', 'Find FILE.', 'Where is FILE?', 'I have lost FILE.'),
];
const files = ['notes', 'report', 'letter', 'songs', 'budget', 'recipe', 'diary', 'plan'] as const;
export const commandNames: readonly string[] = commands.map(({ name }) => name);

/** Pairs of verbs with one meaning. None is a command or a command's new name: they show the fixer's format alone. */
const synonyms = `stop halt, stop cease, buy purchase, buy acquire, fix repair, fix mend, start begin, start commence,
close shut, help assist, help aid, ask inquire, answer reply, answer respond, build construct, choose select, choose pick,
end finish, end conclude, get obtain, give donate, give grant, go leave, hide conceal, jump leap, keep retain, keep preserve,
look gaze, make create, make produce, need require, offer propose, pull drag, push shove, rest relax, rush hurry, say state,
say utter, send mail, show reveal, shout yell, talk speak, teach instruct, test check, test examine, throw toss, think ponder,
try attempt, use employ, use utilize, walk stroll, want desire, warn alert, watch observe, win triumph, work labor,
wash clean, cook bake, lift raise, cry weep, change alter, change modify`
  .split(',')
  .map((pair) => pair.trim().split(' ') as [string, string]) as [[string, string]];
const things = ['engine', 'bread', 'car', 'house', 'song', 'door', 'friend', 'garden', 'window', 'story'] as const;

const answered = (line: string, why: string) => `${line}\nError: ${why}.`;
const renaming = (name: string) => `${name} has a new name in version 2`;

/** A line that failed, followed by the message of the sandbox. */
export function failure(line: string, isVersion2: boolean): string {
  const name = line.split(' ')[0]?.slice(0, 20) ?? '';
  if (!commandNames.includes(name)) return answered(line, `${name} is not a command`);
  return answered(line, isVersion2 ? renaming(name) : 'a test failed');
}

/** A request, the command that fulfils it and the chance that the sandbox has version 2. */
export interface Request {
  readonly request: string;
  readonly name: string;
  readonly renamed: string;
  readonly file: string;
  readonly drift: number;
}

const all = commands.flatMap((each) =>
  files.flatMap((file, f) => each.requests.map((request, r) => ({ each, file, request, isHeld: (f + r) % 4 === 0 }))),
);
const demonstrated = all.filter(({ isHeld, each, request }) => !isHeld && request !== each.requests[2]);

/**
 * Requests with demonstrations of the formats: the coder's of two of three wordings, the fixer's with other verbs.
 * @param drift The share of episodes in which the sandbox has version 2
 */
export function requests({ drift = 0.5 }: { readonly drift?: number } = {}): TaskSource<Request> {
  return {
    name: 'commands in English',
    load: async (split) => {
      const chosen = all.filter(({ isHeld }) => isHeld === (split === 'test'));
      return {
        name: `commands in English (${split})`,
        size: chosen.length,
        at: (index) => {
          // 37 is coprime to both sizes, so that neighbours in a step are different commands.
          const { each, file, request } = chosen[(index * 37) % chosen.length] as (typeof all)[0];
          const text = request.replace('FILE', file);
          const data = { request: text, name: each.name, renamed: each.renamed, file, drift };
          return { id: text, data, metadata: { command: each.name } };
        },
      };
    },
    trace(random): Trace {
      if (random.chance(0.5)) {
        const { each, file, request } = random.pick(demonstrated as [(typeof all)[0]]);
        return { agent: 'coder', messages: [user(request.replace('FILE', file))], response: `${each.name} ${file}` };
      }
      const [name, renamed] = random.pick(synonyms);
      const read = answered(`${name} ${random.pick(things)}`, renaming(name));
      return { agent: 'fixer', messages: [user(read)], response: renamed };
    },
  };
}
