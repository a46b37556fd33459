import { excerpt } from '@drmas/engine/host';
import type { Split, TaskSet } from '@drmas/engine/nouns';
import { loadTasks } from '../../method/index.js';
import { requestStudy } from '../../runs/index.js';
import { jsonText } from '../command-context.js';
import { argument, defineCommand } from '../define-command.js';
import { choice, integer, json, set } from '../flags.js';
import { screenOf } from '../reporter/screen.js';
import { grouped, wrap } from '../reporter/text-layout.js';

/** The tasks that are shown of a family without an end. */
const SOME = 20;

export const tasks = defineCommand({
  name: 'tasks',
  description: 'list the tasks of a recipe that are held out, or those of training',
  details:
    'lists the tasks of a split: the held-out ones, which evaluations play and training never sees, or with `--split train` those of training. A generated family has no end, so the command shows its first tasks',
  arguments: [argument('recipe', 'name or file')],
  flags: {
    split: choice('split', ['test', 'train'], 'test', 'test: the held-out tasks; train: those of training'),
    count: integer(1, 'show at most so many tasks (default: all; 20 of a generated family)'),
    set,
    json: { ...json, description: 'print each task as a JSON line, and nothing else' },
  },
  examples: ['drmas tasks my-team.ts', 'drmas tasks my-team.ts --split train --count 5'],
  async run(context, [source], { split, count, set: overrides, json: asJson = false }) {
    const recipe = await requestStudy(source, { set: overrides });
    // People look which tasks are held out before they write demonstrations of the others.
    const options = { signal: context.signal, withoutDemonstrations: true };
    const load = (each: Split) => loadTasks(recipe.tasks[each], each, recipe.team.task, options);
    const chosen = await load(split);
    const other = await load(split === 'test' ? 'train' : 'test');
    const most = count ?? (Number.isFinite(chosen.size) ? chosen.size : SOME);
    const { width } = screenOf(context.stdout, context.environment);
    const say = (text: string) => void context.stdout.write(`${text}\n`);
    if (!asJson) for (const line of headLines(split, chosen, other.size, width)) say(line);
    for (let index = 0; index < Math.min(most, chosen.size); index++) {
      const { id, data } = chosen.at(index);
      if (asJson) say(jsonText({ id, data }));
      else say(excerpt(`  ${id}  ${typeof data === 'string' ? data : JSON.stringify(data)}`, width));
    }
    if (!asJson && most < chosen.size) say(`  ... (--count ${most * 2} shows more)`);
    return 0;
  },
});

function headLines(split: Split, { name, size, warnings = [] }: TaskSet, other: number, width: number): string[] {
  const text = (count: number) => (Number.isFinite(count) ? grouped(count) : 'endlessly many');
  const heading =
    split === 'test'
      ? `${name}: ${text(size)} tasks are held out for evaluations, ${text(other)} are for training`
      : `${name}: ${text(size)} tasks are for training, ${text(other)} are held out for evaluations`;
  return [...wrap(heading, width), ...warnings.flatMap((warning) => wrap(`warning: ${warning}`, width))];
}
