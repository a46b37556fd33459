/** The text of `drmas plan`: a run's tokens and memory, and its time if something was played. */

import { messageText, turnText } from '@drmas/engine/nouns';
import type { StoredEpisode } from '../../../method/store.js';
import type { ProbeReport, RunForecast, Tokens } from '../../../runs/studies.js';
import { describeTask } from '../conversation-printer.js';
import { expectedLines } from '../score-printer.js';
import { type LabelledRow, labelled } from '../start-printer.js';
import {
  bullet,
  byteText,
  duration,
  fixed,
  grouped,
  percent,
  short,
  significant,
  table,
  visible,
  wrap,
} from '../text-layout.js';

export function planLines(plan: RunForecast, width: number): string[] {
  const { recipe, steps, tokens, agents, countedFrom, memory, memoryByDevice = {}, memoryElsewhere, notes } = plan;
  const { played } = plan;
  const { episodes } = tokens;
  const trains = isTraining(plan);
  const head: LabelledRow[] = [
    ['recipe', `${recipe}, on ${backendText(plan)}`],
    [
      'episodes',
      trains
        ? `${grouped(episodes.training)} in ${grouped(steps)} steps, ${grouped(episodes.evaluation)} in evaluations`
        : `${grouped(episodes.evaluation)} in an evaluation`,
    ],
    trains && ['tokens', tokensText(tokens.run)],
    tokens.warmStart > 0 && ['', `${short(tokens.warmStart)} trained in the warm start, at most`],
    memory !== undefined && [
      'memory',
      `about ${byteText(memory.total)}: keys and values ${byteText(memory.cache)}${memory.bases > 0 ? `, shared bases ${byteText(memory.bases)}` : ''}, policies below`,
    ],
    ...Object.entries(memoryByDevice).map(([device, { total, cache, bases }]) => [
      '',
      `${device}: ${byteText(total)}, of which keys and values ${byteText(cache)}, shared bases ${byteText(bases)}`,
    ]),
    ...timeRows(plan),
  ];
  const agentRows = Object.entries(agents).map(([agent, { calls, promptTokens, responseTokens }]) => [
    agent,
    fixed(calls, 2),
    fixed(promptTokens, 0),
    fixed(responseTokens, 0),
  ]);
  return [
    ...labelled(head, width),
    '',
    ...table([['agent', 'calls', 'prompt', 'response'], ...agentRows]),
    ...wrap(
      `calls: an episode; prompt, response: tokens a call, ${countedFrom === 'episodes' ? 'from played episodes' : 'from a rehearsal'}`,
      width,
    ),
    '',
    ...expectedLines(tokens.agents, tokens.cost, width),
    '',
    ...policyLines(plan, width),
    ...(memoryElsewhere === undefined ? [] : wrap(memoryElsewhere, width)),
    ...(played === undefined ? [] : ['', ...playedLines(played, width, trains)]),
    '',
    ...notes.flatMap((note) => bullet(note, width)),
  ];
}

/** Whether the recipe trains an agent; one whose agents are all frozen is only evaluated. */
const isTraining = ({ policies }: Pick<RunForecast, 'policies'>) => Object.keys(policies).length > 0;

function timeRows(plan: RunForecast): LabelledRow[] {
  const { time, memory, memoryHeld, played } = plan;
  const warmStart = played?.projection.warmStart ?? 0;
  const aStep = time && isTraining(plan) ? `, ${duration(time.stepSeconds)} a step` : '';
  return [
    memoryHeld !== undefined && [memory === undefined ? 'memory' : '', `${byteText(memoryHeld)} at most so far`],
    time !== undefined && [
      'the run',
      `about ${duration(time.seconds)} on this machine${aStep}, without loading and saving`,
    ],
    warmStart > 0 && ['', `and the warm start, ${duration(warmStart)}, which is in the cache now`],
  ];
}

function backendText({ backend, backends }: RunForecast): string {
  if (backends?.length === 0) return 'frozen models alone';
  if (backends === undefined) return `the backend '${backend}'`;
  return backends.map(({ type, policies }) => `the backend '${type}' for ${policies.join(', ')}`).join(' and ');
}

const tokensText = ({ read, generated, trained }: Tokens): string =>
  `${short(read)} of prompts, ${short(generated)} written, at most ${short(trained)} trained`;

function policyLines(plan: RunForecast, width: number): string[] {
  if (!isTraining(plan)) return [];
  const written = plan.countedFrom === 'episodes' ? '' : '; written: if each answer has all of its maxTokens';
  return [...table(policyRows(plan)), ...wrap(`a step${written}`, width), '', ...table(memoryRows(plan))];
}

function policyRows({ tokens, policies }: RunForecast): string[][] {
  const rows = Object.entries(tokens.policies).map(([policy, { samples, step }]) => {
    const plan = policies[policy];
    const parameters = plan === undefined ? ['unknown', 'unknown'] : [short(plan.trained), short(plan.whole)];
    return [policy, ...parameters, grouped(samples), ...[step.read, step.generated, step.trained].map(short)];
  });
  return [['policy', 'parameters', 'of', 'samples', 'read', 'written', 'trained'], ...rows];
}

function memoryRows({ policies }: RunForecast): string[][] {
  const rows = Object.entries(policies).flatMap(([policy, plan]) => {
    if (plan?.memory === undefined) return [];
    const { weights, gradients, optimizer, activations } = plan.memory;
    return [[policy, ...[weights, gradients, optimizer, activations].map(byteText)]];
  });
  return rows.length === 0 ? [] : [['memory', 'weights', 'gradients', 'optimizer', 'activations'], ...rows];
}

// The text of `drmas plan --play`: how the team plays, and advice.

function playedLines(report: ProbeReport, width: number, trains: boolean): string[] {
  return [
    ...labelled(headRows(report, trains), width),
    '',
    ...agentLines(report, width),
    '',
    ...(trains ? [...estimatorLines(report, width), ''] : []),
    ...report.examples.flatMap((episode) => [...wholeEpisode(episode, width), '']),
    ...(trains ? verdictLines(report, width) : []),
  ];
}

function headRows(report: ProbeReport, trains: boolean): LabelledRow[] {
  const { groups, success, best, reward, groupSize, failures, parts, ownRewards, metrics = {} } = report;
  const numbers = (values: Readonly<Record<string, number>>) =>
    Object.entries(values).map(([name, value]) => `${name} ${significant(value)}`);
  const rewards = [
    ...(reward === success.mean ? [] : [`the team ${significant(reward)}`]),
    ...numbers(parts),
    ...Object.entries(ownRewards).map(([agent, value]) => `${agent}'s own ${significant(value)}`),
  ];
  return [
    [
      'played',
      `${report.tasks} tasks x ${groupSize} episodes, without training${trains ? `, from ${from[report.start]}` : ''}`,
    ],
    [
      'success',
      `${percent(success.mean)}  [${fixed(100 * success.low, 1)}, ${fixed(100 * success.high, 1)}]  best of ${groupSize} ${percent(best)}`,
    ],
    ...groupRows(groups, trains),
    report.repeated > 0 && ['', `${percent(report.repeated)} of the episodes repeat another one of their group`],
    rewards.length > 0 && ['rewards', rewards.join(', ')],
    Object.keys(metrics).length > 0 && ['metrics', numbers(metrics).join(', ')],
    Object.keys(failures).length > 0 && ['failed', numbers(failures).join(', ')],
  ];
}

function groupRows(groups: ProbeReport['groups'], trains: boolean): LabelledRow[] {
  const { count, signal, mixed, allRight, allWrong, penaltiesOnly, dropped } = groups;
  if (count === 0) return [['groups', 'none is left: each episode failed']];
  const of = (some: number) => `${some} (${percent(some / count)})`;
  return [
    trains && ['groups', `${of(signal)} of ${count} have a learning signal`],
    [trains ? '' : 'groups', `${of(mixed)} mixed, ${of(allRight)} all right, ${of(allWrong)} all wrong`],
    dropped > 0 && ['', `training.filter drops ${of(dropped)} whose episodes earn different rewards`],
    penaltiesOnly > 0 && ['', `in ${of(penaltiesOnly)} only penalties differ`],
  ];
}

const from: Readonly<Record<ProbeReport['start'], string>> = {
  checkpoint: 'the checkpoint',
  'warm start': 'the warm start',
  'first weights': 'their first weights (no warm start)',
};

function agentLines({ agents }: ProbeReport, width: number): string[] {
  const rows = Object.entries(agents).map(([name, agent]) => [
    name,
    String(agent.turns),
    fixed(agent.callsPerEpisode, 2),
    ...[agent.rewardMean, agent.rewardStd].map((value) => (value === undefined ? '-' : significant(value))),
    fixed(100 * agent.invalid, 1),
    agent.responseTokens?.toFixed(1) ?? '-',
    fixed(100 * agent.cut, 1),
  ]);
  return [
    ...table([['agent', 'turns', 'calls', 'reward', 'std', 'inv %', 'tokens', 'cut %'], ...rows]),
    ...wrap(
      'calls: an episode; tokens: a turn; cut: ended by maxTokens, which is no fault if the output is valid',
      width,
    ),
  ];
}

function estimatorLines({ estimators, agents }: ProbeReport, width: number): string[] {
  const names = Object.keys(agents);
  const rows = Object.entries(estimators).map(([type, byAgent]) => [
    type,
    ...names.flatMap((name) => {
      const findings = byAgent[name];
      const inflation = findings?.inflation ?? null;
      return [inflation === null ? '-' : significant(inflation), significant(findings?.maxAbsAdvantage ?? 0)];
    }),
  ]);
  const head = ['estimator', ...names.flatMap((name) => [name, 'max|A|'])];
  return [
    ...table([head, ...rows]),
    ...wrap(
      "under an agent: predicted inflation of its gradient's second moment, if the estimator's shared statistics were used (an agent-wise estimator does not use them)",
      width,
    ),
    '',
    ...Object.values(agents).flatMap(({ explanation, measuredInflation, covariance }) =>
      explanation === undefined ? [] : bullet(explanation + measuredText(measuredInflation, covariance), width),
    ),
  ];
}

const measuredText = (measured: number | undefined, covariance = 0) =>
  measured === undefined
    ? ''
    : ` Measured: ${significant(measured)}, of which ${significant(covariance)} is the covariance with the size of its gradients.`;

/** All turns of an episode, with the messages that are new to their agent. */
function wholeEpisode(episode: StoredEpisode, width: number): string[] {
  const shown = new Set<string>();
  const lines = [
    ...wrap(`task: ${visible(describeTask(episode))}`, width),
    `reward ${significant(episode.score.team)}${episode.failure ? `, failed: ${episode.failure.message}` : ''}`,
  ];
  for (const turn of episode.turns) {
    for (const message of turn.messages) {
      const content = messageText(message);
      const key = JSON.stringify([turn.agent, message.role, content]);
      if (shown.has(key)) continue;
      shown.add(key);
      lines.push(...block(`${turn.agent} <- ${message.role}: `, visible(content), width));
    }
    shown.add(JSON.stringify([turn.agent, 'assistant', turnText(turn)]));
    const { advantage } = turn;
    const worth = typeof advantage === 'number' ? `, advantage ${significant(advantage)}` : '';
    const text = visible(turnText(turn)) || '(nothing)';
    lines.push(...block(`${turn.agent} -> `, text, width));
    lines.push(`    ${turn.valid ? '' : 'invalid, '}reward ${significant(turn.reward)}${worth}`);
  }
  return lines;
}

const block = (label: string, text: string, width: number): string[] =>
  wrap(`${label}${text}`, width - 4).map((line, i) => `${i === 0 ? '  ' : '    '}${line}`);

function verdictLines({ worthwhile, advice, groups }: ProbeReport, width: number): string[] {
  const share = percent(groups.signal / groups.count);
  const verdict = worthwhile
    ? `Reinforcement can learn from these tasks: ${share} of the groups have a learning signal.`
    : 'Reinforcement will not help with this recipe.';
  return [
    ...wrap(verdict, width),
    ...advice.flatMap(({ says, remedy }) => [
      ...bullet(says, width),
      ...wrap(`What would help: ${remedy}`, width - 2).map((line) => `  ${line}`),
    ]),
  ];
}
