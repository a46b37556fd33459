/** The text of `drmas plan --play`: how the untrained team plays, and advice. */
import type { StoredEpisode } from '../../../method/store.js';
import type { ProbeReport } from '../../../runs/studies.js';
import { describeTask } from '../conversation-printer.js';
import { labelled } from '../start-printer.js';
import { percent, significant, table, visible, wrap } from '../text-layout.js';

export function playedLines(report: ProbeReport, width: number): string[] {
  return [
    ...labelled(headRows(report), width),
    '',
    ...agentLines(report, width),
    '',
    ...estimatorLines(report, width),
    '',
    ...report.examples.flatMap((episode) => [...wholeEpisode(episode, width), '']),
    ...verdictLines(report, width),
  ];
}

function headRows(report: ProbeReport): string[][] {
  const { groups, success, best, reward, groupSize, failures, parts, ownRewards, metrics = {} } = report;
  const of = (count: number) => `${count} (${percent(count / groups.count)})`;
  const numbers = (values: Readonly<Record<string, number>>) =>
    Object.entries(values).map(([name, value]) => `${name} ${significant(value)}`);
  const rewards = [
    ...(reward === success.mean ? [] : [`the team ${significant(reward)}`]),
    ...numbers(parts),
    ...Object.entries(ownRewards).map(([agent, value]) => `${agent}'s own ${significant(value)}`),
  ];
  return [
    ['played', `${report.tasks} tasks x ${groupSize} episodes, without training, from ${from[report.start]}`],
    [
      'success',
      `${percent(success.mean)}  [${(100 * success.low).toFixed(1)}, ${(100 * success.high).toFixed(1)}]  best of ${groupSize} ${percent(best)}`,
    ],
    ['groups', `${of(groups.signal)} of ${groups.count} have a learning signal`],
    ['', `${of(groups.mixed)} mixed, ${of(groups.allRight)} all right, ${of(groups.allWrong)} all wrong`],
    ...(groups.penaltiesOnly > 0 ? [['', `in ${of(groups.penaltiesOnly)} only penalties differ`]] : []),
    ...(report.repeated > 0
      ? [['', `${percent(report.repeated)} of the episodes repeat another one of their group`]]
      : []),
    ...(rewards.length > 0 ? [['rewards', rewards.join(', ')]] : []),
    ...(Object.keys(metrics).length > 0 ? [['metrics', numbers(metrics).join(', ')]] : []),
    ...(Object.keys(failures).length > 0 ? [['failed', numbers(failures).join(', ')]] : []),
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
    agent.callsPerEpisode.toFixed(2),
    significant(agent.rewardMean),
    significant(agent.rewardStd),
    (100 * agent.invalid).toFixed(1),
    agent.responseTokens.toFixed(1),
    (100 * agent.cut).toFixed(1),
  ]);
  return [
    ...table([['agent', 'turns', 'calls', 'reward', 'std', 'inv %', 'tokens', 'cut %'], ...rows]),
    ...wrap('calls: an episode; tokens: a turn; cut: at maxTokens', width),
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
      explanation === undefined ? [] : sentence(explanation + measuredText(measuredInflation, covariance), width),
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
    for (const { role, content } of turn.messages) {
      const key = JSON.stringify([turn.agent, role, content]);
      if (shown.has(key)) continue;
      shown.add(key);
      lines.push(...block(`${turn.agent} <- ${role}: `, visible(content), width));
    }
    shown.add(JSON.stringify([turn.agent, 'assistant', turn.text]));
    const { advantage } = turn;
    const worth = typeof advantage === 'number' ? `, advantage ${significant(advantage)}` : '';
    const text = visible(turn.text) || '(nothing)';
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
      ...sentence(says, width),
      ...wrap(`What would help: ${remedy}`, width - 2).map((line) => `  ${line}`),
    ]),
  ];
}

const sentence = (text: string, width: number): string[] =>
  wrap(text, width - 2).map((line, i) => (i === 0 ? `- ${line}` : `  ${line}`));
