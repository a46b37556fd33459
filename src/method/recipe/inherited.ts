/** The settings that agents and policies inherit from the recipe's `model`, from the team and from the assignment. */
import { isObject, parseAt } from '@drmas/engine/errors';
import { defaultOptimizer } from '@drmas/engine/model';
import type { Team } from '../../teams/index.js';
import { needOf } from '../advantage/estimators/index.js';
import { type Lists, sectionsOf } from './lists.js';
import type { Plain } from './overrides.js';
import { assignmentMap, assignmentWord } from './recipe-schema.js';

/** The sampling settings that neither the recipe nor the team's agent sets. */
const defaultSampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 256 };

/** Gives each agent and each policy its complete entry: the team's defaults, overridden by the recipe's settings. */
export function withInherited(tree: Plain, team: Team, agents: readonly string[], lists: Lists): Plain {
  const { model } = tree;
  const assign = completeAssignment(tree.assign, agents);
  const estimator = sectionsOf(lists).advantage.safeParse(tree.advantage);
  const valued = estimator.success && needOf(estimator.data, lists.estimators) === 'values';
  const policies = withEntries(tree.policies, policiesOf(assign), (_, written) => policyEntry(model, valued, written));
  const settings = withEntries(tree.agents, agents, (agent, written) => agentEntry(team, agent, written));
  return { ...tree, ...warmStartEntry(tree.warmStart, policies), assign, policies, agents: settings };
}

/**
 * The warm start of adapters on pretrained models is each policy's own unless the recipe says otherwise: one adapter
 * that learned all agents' formats would begin each agent with the habits of the others.
 */
function warmStartEntry(written: unknown, policies: unknown): Plain {
  if (!isObject(written) || 'share' in written || !isObject(policies)) return {};
  const models = Object.values(policies).map((settings) => (isObject(settings) ? settings.model : undefined));
  const adapted = models.every(
    (model) => isObject(model) && model.type === 'lora' && isObject(model.base) && model.base.type === 'checkpoint',
  );
  return adapted ? { warmStart: { ...written, share: 'policy' } } : {};
}

/** A section with an entry for each name. If the value is not an object, the schema reports it. */
function withEntries(
  section: unknown,
  names: readonly string[],
  fill: (name: string, written: Plain) => Plain,
): unknown {
  if (section !== undefined && !isObject(section)) return section;
  const entries = { ...section };
  for (const name of names) {
    const written = entries[name] ?? {};
    entries[name] = isObject(written) ? fill(name, written) : written;
  }
  return entries;
}

function policyEntry(model: unknown, valued: boolean, written: Plain): Plain {
  const { critic = valued ? {} : undefined } = written;
  return {
    ...(model === undefined ? {} : { model: structuredClone(model) }),
    ...withOptimizer(written),
    ...(critic === undefined ? {} : { critic: isObject(critic) ? withOptimizer(critic) : critic }),
  };
}

function withOptimizer(settings: Plain): Plain {
  const { optimizer = {} } = settings;
  return { ...settings, optimizer: isObject(optimizer) ? { type: defaultOptimizer, ...optimizer } : optimizer };
}

function agentEntry(team: Team, agent: string, written: Plain): Plain {
  const defaults = team.agents[agent];
  const sampling = written.sampling ?? {};
  return {
    invalidPenalty: defaults?.invalidPenalty ?? 0,
    ...written,
    sampling: isObject(sampling) ? { ...defaultSampling, ...defaults?.sampling, ...sampling } : sampling,
  };
}

function completeAssignment(assign: unknown, agents: readonly string[]): Plain {
  if (isObject(assign)) {
    parseAt(assignmentMap(agents, assign), assign, ['assign']);
    return assign;
  }
  const word = assign === undefined ? 'separate' : parseAt(assignmentWord, assign, ['assign']);
  return Object.fromEntries(agents.map((agent) => [agent, word === 'shared' ? 'shared' : agent]));
}

/** The names of the policies that an assignment has. */
export function policiesOf(assign: unknown): string[] {
  const named = isObject(assign) ? Object.values(assign).filter((entry) => typeof entry === 'string') : [];
  return [...new Set(named)];
}

/**
 * The settings of policies after `--set assign=shared` or `separate`. If all former policies had equal settings, the
 * new policies get these settings. Otherwise the old settings stay, and the schema refuses them by the policy's name.
 */
export function withMovedPolicies(tree: Plain, agents: readonly string[]): Plain {
  const { policies } = tree;
  if (!isObject(policies)) return tree;
  const names = policiesOf(completeAssignment(tree.assign, agents));
  const gone = Object.entries(policies).flatMap(([name, settings]) => (names.includes(name) ? [] : [settings]));
  if (new Set(gone.map((settings) => JSON.stringify(settings))).size !== 1) return tree;
  const moved = names.map((name) => [name, structuredClone(policies[name] ?? gone[0])]);
  return { ...tree, policies: Object.fromEntries(moved) };
}
