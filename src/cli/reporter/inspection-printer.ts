/** The text of `drmas inspect`. */
import { isNotable } from '../../method/advantage.js';
import type { GroupFindings, Inspection } from '../../runs/studies.js';
import { columns, leftAligned } from './columns.js';
import { labelled } from './start-printer.js';
import { bullet, fixed, grouped, percent, significant, table, wrap } from './text-layout.js';

export function inspectionLines(inspection: Inspection, path: string, width: number): string[] {
  const { groups, agents } = inspection;
  const counts = [
    `${grouped(inspection.turns)} turns of ${grouped(inspection.episodes)} episodes in ${grouped(groups.count)} group${groups.count === 1 ? '' : 's'}`,
    `${Object.keys(agents).length} agent${Object.keys(agents).length === 1 ? '' : 's'}`,
  ];
  return [
    ...labelled(
      [
        ['log', `${path}, ${inspection.layout}${inspection.files > 1 ? `, ${inspection.files} files` : ''}`],
        ['holds', counts.join(', ')],
        ...inspection.notices.map((notice) => ['note', notice]),
      ],
      width,
    ),
    '',
    ...agentLines(inspection, width),
    '',
    ...groupLines(groups),
    '',
    ...estimatorLines(inspection),
    '',
    ...findings(inspection).flatMap((finding) => bullet(finding, width)),
  ];
}

function agentLines({ agents }: Inspection, width: number): string[] {
  const rows = Object.entries(agents).map(([name, agent]) => [
    name,
    grouped(agent.turns),
    fixed(agent.callsPerEpisode, 2),
    significant(agent.rewardMean),
    significant(agent.rewardStd),
    fixed(100 * agent.penalised, 1),
    ratio(agent.inflation.byEpisodes),
    ratio(agent.inflation.byTurns),
  ]);
  return [
    ...table([['agent', 'turns', 'calls', 'reward', 'std', 'pen. %', 'infl.', 'by turns'], ...rows]),
    ...wrap(
      "calls: an episode; pen.: turns that paid a penalty; infl.: predicted inflation of the agent's second moment under statistics shared over episodes (GRPO), or over turns",
      width,
    ),
  ];
}

const ratio = (value: number | null) => (value === null ? '-' : significant(value));

function groupLines(groups: GroupFindings): string[] {
  const row = (name: string, count: number) => [name, grouped(count), percent(count / groups.count)];
  return table([
    ['groups', grouped(groups.count), ''],
    row('  mixed outcomes', groups.mixed),
    row('  all right', groups.allRight),
    row('  all wrong', groups.allWrong),
    ['groups with equal outcomes', '', ''],
    row('  no learning signal', groups.nothing),
    row('  differ by penalties only', groups.penaltiesOnly),
    row("  differ by agents' own rewards", groups.ownRewardsOnly),
    ['nothing to compare with', '', ''],
    row('  groups of one episode', groups.singleEpisode),
    ["  an agent's only turn on a task", grouped(groups.singleTurnOfAgent), ''],
  ]);
}

function estimatorLines({ estimators }: Inspection): string[] {
  const rows = Object.entries(estimators).flatMap(([type, agents]) =>
    Object.entries(agents).map(([name, sizes], index) => [
      index === 0 ? type : '',
      name,
      significant(sizes.meanAbs),
      significant(sizes.maxAbs),
      fixed(100 * sizes.zero, 1),
      significant(sizes.secondMoment),
    ]),
  );
  const widest = Math.max(...rows.map((row) => columns(row[1] ?? '')));
  const cells = [['estimator', 'agent', 'mean |A|', 'max |A|', 'zero %', 'mean A²'], ...rows];
  return table(cells.map(([type = '', name = '', ...numbers]) => [type, leftAligned(name, widest), ...numbers]));
}

/** The findings in sentences: inflated agents, groups without a learning signal, advice. */
function findings({ agents, groups, estimators }: Inspection): string[] {
  const sentences: string[] = [];
  const names = Object.keys(agents);
  const inflations = names.flatMap((name) => agents[name]?.inflation.byEpisodes ?? []);
  for (const { inflation, ownShare, explanation } of Object.values(agents)) {
    if (!isNotable({ inflation: inflation.byEpisodes, ownShare })) continue;
    sentences.push(`GRPO: ${explanation}`);
  }
  if (sentences.length === 0 && inflations.length > 0) {
    sentences.push(
      `No agent is inflated much (largest ${significant(Math.max(...inflations))}): GRPO and Dr. MAS give their gradients about the same size.`,
    );
  }
  if (inflations.length === 0) sentences.push('No group has scores that differ: inflation cannot be measured.');
  if (names.length === 1)
    sentences.push('There is one agent. If this was a team, name the field with --agent (and --episode).');
  const share = (count: number) =>
    `${grouped(count)} of ${grouped(groups.count)} groups (${percent(count / groups.count)})`;
  if (groups.nothing > 0)
    sentences.push(`${share(groups.nothing)} have no learning signal: all their rewards are equal.`);
  if (groups.penaltiesOnly > 0) {
    sentences.push(
      `${share(groups.penaltiesOnly)} differ by penalties only. GRPO scales these small differences to full size and gives them to every turn of the episode; try dropping such groups (DAPO's filter) or drmas.`,
    );
  }
  if (groups.singleEpisode > groups.count / 2) {
    sentences.push(
      `${share(groups.singleEpisode)} have one episode, so there is nothing to compare. Is --task the field that names the problem?`,
    );
  }
  const largest = Object.entries(estimators).map(([type, byAgent]) => ({
    type,
    max: Math.max(...Object.values(byAgent).map(({ maxAbs }) => maxAbs)),
  }));
  const wild = largest.filter(({ max }) => max > 20);
  if (wild.length > 0) {
    sentences.push(
      `Very large advantages: ${wild.map(({ type, max }) => `${type} up to ${significant(max)}`).join(', ')}.`,
    );
  }
  return sentences;
}
