/** The text of `drmas plan`: a run's tokens and memory, and its time if something was played or measured. */
import type { RunForecast, Tokens } from '../../../runs/studies.js';
import { expectedLines } from '../spending-printer.js';
import { labelled } from '../start-printer.js';
import { byteText, duration, grouped, short, table, wrap } from '../text-layout.js';
import { measuredLines } from './forecast-printer.js';
import { playedLines } from './probe-printer.js';

export function planLines(plan: RunForecast, width: number): string[] {
  const { recipe, steps, tokens, agents, countedFrom, memory, memoryElsewhere, notes, played, measured } = plan;
  const { episodes } = tokens;
  const head = [
    ['recipe', `${recipe}, on ${backendText(plan)}`],
    [
      'episodes',
      `${grouped(episodes.training)} in ${grouped(steps)} steps, ${grouped(episodes.evaluation)} in evaluations`,
    ],
    ['tokens', tokensText(tokens.run)],
    ...(tokens.warmStart > 0 ? [['', `${short(tokens.warmStart)} trained in the warm start, at most`]] : []),
    ...(memory === undefined
      ? []
      : [
          [
            'memory',
            `about ${byteText(memory.total)}: keys and values ${byteText(memory.cache)}${memory.bases > 0 ? `, shared bases ${byteText(memory.bases)}` : ''}, policies below`,
          ],
        ]),
    ...timeRows(plan),
  ];
  const agentRows = Object.entries(agents).map(([agent, { calls, promptTokens, responseTokens }]) => [
    agent,
    calls.toFixed(2),
    promptTokens.toFixed(0),
    responseTokens.toFixed(0),
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
    ...table(policyRows(plan)),
    ...wrap(`a step${countedFrom === 'episodes' ? '' : '; written: if each answer has all of its maxTokens'}`, width),
    '',
    ...table(memoryRows(plan)),
    ...(memoryElsewhere === undefined ? [] : wrap(memoryElsewhere, width)),
    ...(played === undefined ? [] : ['', ...playedLines(played, width)]),
    ...(measured === undefined ? [] : ['', ...measuredLines(measured, width)]),
    '',
    ...notes.flatMap((note) => wrap(note, width - 2).map((line, i) => (i === 0 ? `- ${line}` : `  ${line}`))),
  ];
}

function timeRows({ time, memoryHeld, played, measured }: RunForecast): string[][] {
  const warmStart = measured?.warmStartSeconds ?? played?.projection.warmStart ?? 0;
  return [
    ...(memoryHeld === undefined ? [] : [['', `${byteText(memoryHeld)} at most so far`]]),
    ...(time === undefined
      ? []
      : [['the run', `about ${duration(time.seconds)} on this machine, ${duration(time.stepSeconds)} a step`]]),
    ...(warmStart > 0 ? [['', `and the warm start, ${duration(warmStart)}, which is in the cache now`]] : []),
  ];
}

function backendText({ backend, backends }: RunForecast): string {
  if (backends === undefined) return `the backend '${backend}'`;
  return backends.map(({ type, policies }) => `the backend '${type}' for ${policies.join(', ')}`).join(' and ');
}

/** A run's tokens in a sentence. */
const tokensText = ({ read, generated, trained }: Tokens): string =>
  `${short(read)} of prompts, ${short(generated)} written, at most ${short(trained)} trained`;

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
