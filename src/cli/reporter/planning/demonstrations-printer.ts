/** The questions, the progress and the summary of `drmas demonstrate`. */
import { messageText } from '@drmas/engine/nouns';
import { commandText } from '@drmas/engine/platform';
import { taskWords } from '../../../runs/analysis.js';
import type { AgentQuestion, Demonstrated, DemonstratedTask, DemonstrationRequest } from '../../../runs/studies.js';
import { type Screen, tone } from '../screen.js';
import { type LabelledRow, labelled } from '../start-printer.js';
import { grouped, nearPath, visible, wrap } from '../text-layout.js';

export function requestLines(request: DemonstrationRequest, width: number): string[] {
  const { recipe, speaker, agents, tasks, chosen, samples, minScore, out, warnings } = request;
  const all = Number.isFinite(tasks.train.size) ? ` of ${grouped(tasks.train.size)}` : '';
  const rows = [
    ['team', `${recipe.team.name}: ${Object.keys(recipe.team.agents).join(', ')}`],
    ['asked', `${agents.join(', ')}: ${speaker}`],
    [
      'tasks',
      `${grouped(chosen.length)}${all} training tasks of ${tasks.train.name} x ${samples}; held-out tasks are not played`,
    ],
    ['kept', Number.isFinite(minScore) ? `episodes with a score of at least ${minScore}` : 'episodes that do not fail'],
    ['file', out],
  ];
  return [
    ...labelled(rows, width),
    ...[...warnings, ...(tasks.train.warnings ?? [])].flatMap((warning) => wrap(`warning: ${warning}`, width)),
  ];
}

/** A question for a person: the task if it is a new one, the conversation, and the tools. */
export function questionLines(question: AgentQuestion, isNewTask: boolean, screen: Screen): string[] {
  const { agent, task, messages, tools = [], toolChoice } = question;
  const { width } = screen;
  const inner = (text: string) => visibleLines(text).flatMap((line) => wrap(`  ${line}`, width));
  const must = toolChoice === undefined || toolChoice === 'auto' || toolChoice === 'none' ? '' : ', one must be called';
  return [
    ...(isNewTask
      ? ['', ...wrap(tone(screen, 'bold', `task: ${visible(taskWords(task) ?? JSON.stringify(task))}`), width)]
      : []),
    '',
    `${agent} reads:`,
    ...messages.flatMap((message) => inner(`${message.role}: ${messageText(message)}`)),
    ...(tools.length === 0 ? [] : [`tools${must}, as /call NAME {"key":"value"}:`]),
    ...tools.flatMap(({ name, description = '', parameters }) =>
      inner(`${name} ${JSON.stringify(parameters.properties ?? {})} ${description}`.trimEnd()),
    ),
  ];
}

/** A score, without digits that say nothing. */
const number = (score: number) => `${Number(score.toFixed(3))}`;

const visibleLines = (text: string) => text.split('\n').map(visible);

export function playedTaskLine({ task, group, kept }: DemonstratedTask, count: number): string {
  const scores = group.episodes.map(({ score, failure }) =>
    failure === undefined ? number(score.success ?? score.team) : `failed (${failure.reason})`,
  );
  const of = group.episodes.length === 1 ? (kept === 1 ? 'kept' : 'not kept') : `${kept} kept`;
  return `task ${task} of ${count}: ${scores.join(', ')}; ${of}`;
}

/** The result, and what to do with the file. @param warmsUp Whether the recipe has a warm start already */
export function demonstratedLines(
  result: Demonstrated,
  { source, warmsUp }: { readonly source: string; readonly warmsUp: boolean },
  width: number,
): string[] {
  const { file, demonstrations, agents, episodes, kept, below, failed, leftOut, scores, failure } = result;
  const { read, written, stopped } = result;
  const ofAgents = Object.entries(agents).map(([agent, count]) => `${agent} ${grouped(count)}`);
  const others = [
    below > 0 && `${grouped(below)} below the score`,
    failed > 0 && `${grouped(failed)} failed`,
    leftOut > 0 && `${grouped(leftOut)} tasks left out`,
  ].filter((text) => text !== false);
  const low = scores === undefined || scores.low === scores.high ? undefined : scores;
  const rows: LabelledRow[] = [
    ['episodes', `${grouped(episodes)}, ${grouped(kept)} kept${others.length === 0 ? '' : `; ${others.join(', ')}`}`],
    scores !== undefined && [
      'score',
      `mean ${number(scores.mean)}${low === undefined ? '' : `, ${number(low.low)} to ${number(low.high)}`}`,
    ],
    failure !== undefined && ['failure', failure.split('\n')[0] ?? ''],
    read + written > 0 && ['tokens', `${grouped(read)} read, ${grouped(written)} written`],
    ['wrote', `${grouped(demonstrations)} demonstrations (${ofAgents.join(', ')})`],
    ['file', file],
    stopped !== undefined && ['stopped', stopped],
  ];
  const silent = Object.keys(agents).filter((agent) => agents[agent] === 0);
  return [
    ...labelled(rows, width),
    ...(silent.length === 0 ? [] : wrap(`warning: no demonstration of ${silent.join(', ')}`, width)),
    '',
    ...(warmsUp
      ? []
      : wrap(`next  in the recipe: tasks: withDemonstrations(tasks, ${JSON.stringify(file)}), warmStart: {}`, width)),
    `${warmsUp ? 'next' : '    '}  ${commandText(['npx', 'drmas', 'plan', nearPath(source), '--play'])}`,
  ];
}
