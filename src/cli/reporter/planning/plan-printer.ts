/** The tokens, the memory and the time that a run will take, as `drmas train --dry-run` shows them. */

import type { RunPlan } from '../../../studies/plan/dry-run.js';
import type { Tokens } from '../../../studies/plan/token-budget.js';
import { expectedLines } from '../spending-printer.js';
import { labelled } from '../start-printer.js';
import { byteText, grouped, short, table, wrap } from '../text-layout.js';

export function planLines(plan: RunPlan, width: number): string[] {
  const { recipe, steps, tokens, agents, memory, memoryElsewhere, notes } = plan;
  const { episodes } = tokens;
  const head = [
    ['recipe', `${recipe}, on ${backendText(plan)}; nothing is started`],
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
    ...wrap('calls: an episode; prompt, response: tokens a call', width),
    '',
    ...expectedLines(tokens.agents, tokens.cost, width),
    '',
    ...table(policyRows(plan)),
    ...wrap('a step; written: where every answer has all of its maxTokens', width),
    '',
    ...table(memoryRows(plan)),
    ...(memoryElsewhere === undefined ? [] : wrap(memoryElsewhere, width)),
    '',
    ...notes.flatMap((note) => wrap(note, width - 2).map((line, i) => (i === 0 ? `- ${line}` : `  ${line}`))),
  ];
}

function backendText({ backend, backends }: RunPlan): string {
  if (backends === undefined) return `the backend '${backend}'`;
  return backends.map(({ type, policies }) => `the backend '${type}' for ${policies.join(', ')}`).join(' and ');
}

/** A run's tokens in a sentence. */
export const tokensText = ({ read, generated, trained }: Tokens): string =>
  `${short(read)} of prompts, ${short(generated)} written, ${short(trained)} trained`;

function policyRows({ tokens, policies }: RunPlan): string[][] {
  const rows = Object.entries(tokens.policies).map(([policy, { samples, step }]) => {
    const plan = policies[policy];
    const parameters = plan === undefined ? ['unknown', 'unknown'] : [short(plan.trained), short(plan.whole)];
    return [policy, ...parameters, grouped(samples), ...[step.read, step.generated, step.trained].map(short)];
  });
  return [['policy', 'parameters', 'of', 'samples', 'read', 'written', 'trained'], ...rows];
}

function memoryRows({ policies }: RunPlan): string[][] {
  const rows = Object.entries(policies).flatMap(([policy, plan]) => {
    if (plan?.memory === undefined) return [];
    const { weights, gradients, optimizer, activations } = plan.memory;
    return [[policy, ...[weights, gradients, optimizer, activations].map(byteText)]];
  });
  return rows.length === 0 ? [] : [['memory', 'weights', 'gradients', 'optimizer', 'activations'], ...rows];
}
