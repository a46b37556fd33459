/** Steps without learning: no turn has an advantage, or the turns of one agent have none for many steps. */

import { isGreedy, type Sampling } from '@drmas/engine/contract';
import type { AgentStep, Step, Warning } from '@drmas/engine/events';
import { isSilent, percent, ROUNDING, significant } from '@drmas/engine/host';
import type { TrainedModel } from '../run/learner.js';
import type { OpenRun } from '../run/run-state.js';
import type { Updates } from '../update/update-result.js';

/** The number of steps in a row without an advantage (of the whole team, or of one agent) before the first warning. */
const TEAM_STEPS = 3;
const AGENT_STEPS = 10;

type Lesson = Pick<
  Step,
  'step' | 'agents' | 'groups' | 'episodes' | 'filter' | 'reward' | 'parts' | 'success' | 'staleness'
>;

export interface SilenceSettings {
  readonly agents: OpenRun['agents'];
  readonly trained: readonly Pick<TrainedModel, 'name' | 'agents' | 'settings'>[];
  readonly training: Pick<OpenRun['training'], 'groupSize'>;
  readonly warmStartShare?: OpenRun['warmStartShare'];
}

export class Silence {
  readonly #settings: SilenceSettings;
  /** By agent. */
  readonly #steps: Map<string, number>;
  /** Whether a policy has ever learnt. Undefined before the first step, and in checkpoints of earlier versions. */
  #learnt: boolean | undefined;

  constructor(settings: SilenceSettings, state: Readonly<Record<string, number>> = {}, learnt?: boolean) {
    this.#settings = settings;
    this.#steps = new Map(Object.entries(state));
    this.#learnt = learnt;
  }

  get state(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#steps);
  }

  get learnt(): boolean | undefined {
    return this.#learnt;
  }

  /** Returns the warnings after a step. Ignores a policy that waits while its critic learns. */
  judge(lesson: Lesson, updates: Updates): Warning[] {
    const waiting = Object.keys(updates).filter((policy) => Object.keys(updates[policy]?.agents ?? {}).length === 0);
    const learners = learnersOf(this.#settings).filter(([, policy]) => !waiting.includes(policy));
    if (learners.length === 0) return [];
    const { step } = lesson;
    const first = this.#steps.size === 0; // steps in which all policies wait have no counts
    this.#learnt ??= !first && Math.min(...this.#steps.values()) < step - 1;
    const counts = learners.map(([agent]) => {
      const count = isSilent(lesson.agents[agent]) ? (this.#steps.get(agent) ?? 0) + 1 : 0;
      this.#steps.set(agent, count);
      return [agent, count] as const;
    });
    const all = Math.min(...counts.map(([, count]) => count));
    if (counts.some(([, count]) => count === 0)) this.#learnt = true;
    if (all > 0) {
      // A mistake in tasks, rewards or settings shows in the first step.
      if (!first && !isMilestone(all, TEAM_STEPS)) return [];
      const since = all > 1 ? `for ${all} steps no policy has` : 'no policy has';
      const message = `step ${step}: ${since} learnt anything: ${reasonOf(this.#settings, lesson, !this.#learnt)}`;
      return [{ type: 'warning', code: 'nothing-learnt', step, message }];
    }
    return counts
      .filter(([, count]) => isMilestone(count, AGENT_STEPS))
      .map(([agent, count]) => ({
        type: 'warning' as const,
        code: 'agent-learns-nothing',
        step,
        agent,
        message: `step ${step}, ${agent}: it has learnt nothing for ${count} steps: ${reasonOfAgent(lesson.agents[agent])}`,
      }));
  }
}

function learnersOf({ agents, trained }: SilenceSettings): [agent: string, policy: string][] {
  return Object.entries(agents).flatMap(([agent, { rewardWeight }]): [string, string][] => {
    const policy = trained.find((model) => model.settings !== undefined && model.agents.includes(agent));
    return policy === undefined || rewardWeight === 0 ? [] : [[agent, policy.name]];
  });
}

/** Whether a count is `first`, or 2, 4, 8 ... times `first`. */
const isMilestone = (count: number, first: number) => count >= first && Number.isInteger(Math.log2(count / first));

/** An entropy below this, in nats a token, belongs to a policy that writes the same text each time. */
const CERTAIN = 0.05;
/** A share of turns above this is a fault of all texts: they do not fit, or they are cut off. */
const NEARLY_ALL = 0.95;

/** From this share of the probability on, one text is left of most prompts. */
const NARROW = 0.1;

/** The remedy for settings that sample the same text of a prompt each time. Empty for all others. */
function remedyOfSampling({ temperature, topK, topP }: Sampling): string {
  if (isGreedy(temperature)) return 'A temperature above 0: at temperature 0 the episodes of a task are all the same.';
  if (topK === 1)
    return 'A topK above 1, or 0: with one candidate for each token the episodes of a task are all the same.';
  if (topP < NARROW) return `A larger topP, such as 1: at ${topP} the episodes of a task are nearly all the same.`;
  return '';
}

/** The reason why no agent learns, and a remedy. @param always Whether no agent has ever learnt */
function reasonOf(settings: SilenceSettings, lesson: Lesson, always: boolean): string {
  const { groups, filter, episodes, agents: played, staleness = 0 } = lesson;
  if (episodes !== undefined && episodes.failed === episodes.played)
    return 'every episode failed; the events of the failures have the reasons';
  if (episodes !== undefined && episodes.failed > episodes.played / 2)
    return `${episodes.failed} of ${episodes.played} episodes failed; the events of the failures have the reasons`;
  const [unanswered] = Object.entries(episodes?.unanswered ?? {});
  if (unanswered !== undefined && Object.keys(played).length === 0)
    return `\`play\` returned before its calls of '${unanswered[0]}' were answered: \`await\` them`;
  if (episodes !== undefined && episodes.played > 0 && Object.keys(played).length === 0)
    return `\`play\` called no agent in any of ${episodes.played} episodes; what no agent wrote cannot be learnt`;
  const isFiltered = filter?.kept === 0;
  const dropped = isFiltered ? `training.filter left none of ${filter.played} groups: ` : '';
  const { allRight, allWrong, mixed } = groups;
  const fault = allWrong + mixed === 0 ? '' : faultOfTexts(settings, lesson, always);
  if (fault !== '') return dropped + fault;
  const moves = Object.values(played).some((agent) => agent.frozen !== true && agent.maxAbsAdvantage >= ROUNDING);
  if (!isFiltered && moves && staleness > 0)
    return `turns have advantages, but clipping removes the gradient: the weights that wrote them are ${staleness} updates old. A lower rollout.staleness or learning rate keeps them near.`;
  if (!isFiltered && moves)
    return 'turns have advantages, but the gradient is 0: responses are empty, or clipping removes all of it';
  const apart = learnersOf(settings).flatMap(([agent]) => (earnsApart(played[agent]) ? [`'${agent}'`] : []));
  if (mixed === 0 && apart.length === 0) return dropped + reasonOfGroups(settings, lesson, always);
  const differ =
    mixed > 0
      ? `the episodes of ${mixed} of ${allRight + allWrong + mixed} groups earn different rewards`
      : `the team earns the same in each episode of a task, and turns of ${apart.join(', ')} earn different rewards`;
  return isFiltered
    ? `${dropped}${differ}, but are equal in the number that it compares. Another training.filter.score, or no filter.`
    : `${differ}, but the estimator gives all turns the advantage 0: with its settings it compares no turns whose rewards differ, or a bound excludes them. Other settings of \`advantage\`, or another estimator.`;
}

/** Whether an agent's turns on a task differ in rewards that are no penalties: of its own, or of single turns. */
function earnsApart(agent: AgentStep | undefined): boolean {
  if (agent?.health === undefined) return false;
  const { groups, groupSpread = 0 } = agent.health;
  return groups.mixed > 0 || (groups.penaltyOnly === 0 && groupSpread > ROUNDING);
}

/** A fault of the agents' texts that explains why the episodes of a task earn the same. Empty if there is none. */
function faultOfTexts(
  { agents, warmStartShare }: SilenceSettings,
  { agents: played, groups }: Lesson,
  always: boolean,
): string {
  const learners = Object.entries(played).filter(([, { frozen }]) => frozen !== true);
  const share = (part: number) => (part === 1 ? 'all outputs' : `${percent(part, 0)} of the outputs`);
  for (const [agent, { toolErrors = 0 }] of learners)
    if (toolErrors >= NEARLY_ALL)
      return `${share(toolErrors).replace('outputs', 'results')} of the tools that '${agent}' calls are errors. Mend the tools, or say in their descriptions what they accept: npx drmas plan --play shows the results.`;
  for (const [agent, { cut = 0, invalid }] of learners) {
    const { maxTokens } = agents[agent]?.sampling ?? {};
    if (cut >= NEARLY_ALL)
      return `${share(cut)} of '${agent}' are cut off at ${maxTokens} tokens. Raise agents.${agent}.sampling.maxTokens, or ask for shorter outputs.`;
    if (invalid >= NEARLY_ALL)
      return `the parser of '${agent}' refuses ${share(invalid)}. Compare them with what it accepts: npx drmas plan --play shows them.`;
  }
  const remedies = learners.map(([agent]) => agents[agent]?.sampling).map((each) => each && remedyOfSampling(each));
  const samples = learners.filter((_, i) => !remedies[i]);
  if (samples.length === 0) return remedies[0] ?? '';
  const certain = samples.filter(([, { sampledEntropy = CERTAIN }]) => sampledEntropy < CERTAIN);
  if (certain.length < samples.length) return '';
  const names = certain.map(([agent]) => `'${agent}'`).join(', ');
  if (always && warmStartShare !== undefined && groups.allWrong > 0)
    return `the warm start has taught ${names} nearly the same text for a prompt, and it does not succeed in ${groups.allWrong} of ${groups.allWrong + groups.mixed + groups.allRight} groups. Compare the demonstrations with what the team's reward accepts. If they are right, a higher temperature or a shorter warm start.`;
  if (always)
    return `each answer of ${names} is nearly the same whenever it is sampled. A higher temperature${warmStartShare === undefined ? '' : ', or a shorter warm start'}.`;
  return `training has made ${names} nearly certain of each text, so the episodes of a task are the same. A lower learning rate, or an entropy bonus (entropyCoefficient), keeps the policy exploring; begin again from an earlier checkpoint.`;
}

/** The reason that the groups show: their episodes earn the same. */
function reasonOfGroups(
  { agents, training, warmStartShare }: SilenceSettings,
  { groups, episodes, reward, parts = {}, success = 0 }: Lesson,
  always: boolean,
): string {
  const warmStart = warmStartShare !== undefined;
  const count = groups.allRight + groups.allWrong + groups.mixed;
  const { failed = 0, played: all = 0 } = episodes ?? {};
  const left = failed === 0 ? '' : `, and ${failed} of ${all} episodes failed`;
  const equal = `the episodes of each of ${count} groups earn the same`;
  if (groups.allWrong === count) {
    const paid = parts.calls ?? 0; // the cost of calls, which is no success that the reward leaves out
    if (failed === 0 && reward !== undefined && reward.std < ROUNDING && Math.abs(reward.mean - paid) > ROUNDING)
      return `all ${all} episodes earn ${significant(reward.mean)}, whatever the agents write. Look at the team's reward.`;
    if (failed === 0 && success > ROUNDING && reward !== undefined && reward.mean - paid < success - ROUNDING)
      return `${equal}, although their success is ${percent(success, 0)}. Mend the team's reward, or the weights of its parts: it does not count success.`;
    // The episodes that failed may be those that would have succeeded.
    const first = failed === 0 ? '' : 'See first why episodes fail: the events of the failures have the reasons. ';
    return `${equal}, because none of them succeeds${left}. ${first}${remedies.allWrong({ warmStart })} npx drmas plan --play shows their texts.`;
  }
  if (groups.allRight === count && failed > 0)
    return `${equal}: all that did not fail succeed${left}. ${remedies.failed}`;
  if (groups.allRight === count)
    return `${equal}, because all of them succeed. ${always ? remedies.allRight : remedies.solved}`;
  const remedy = remedyForSameness({ agents, warmStart }, training.groupSize);
  return `${equal}${left}. ${remedy}`;
}

function reasonOfAgent(agent: AgentStep | undefined): string {
  if (agent === undefined) return 'the team does not call it';
  if (agent.health === undefined)
    return 'each episode in which it wrote failed, and training.failedEpisodes leaves these out';
  const { allRight, allWrong, mixed } = agent.health.groups;
  const count = Math.max(1, allRight + allWrong + mixed);
  return `its turns on a task all earn the same (${percent(allRight / count, 0)} of its groups are all right, ${percent(allWrong / count, 0)} all wrong), or it is called too rarely to be compared; a larger training.groupSize, or a reward of its own (agents: { ... } in the team's reward), would make its turns differ`;
}

/** Remedies if no task is solved, and if all tasks are. */
export const remedies = {
  allWrong: ({ warmStart }: { readonly warmStart: boolean }) =>
    `If a right answer would earn no more, mend the team's reward. Else: ${warmStart ? 'demonstrations that the reward accepts, a longer warm start' : 'a warm start (`npx drmas demonstrate` records the answers of a hosted model, of a script or of you, see docs/recipes.md)'}, easier tasks, a larger or trained model, or a reward with parts for intermediate steps. More episodes a task find rarer successes.`,
  failed:
    "The failures are the tasks that are left to learn, but training.failedEpisodes leaves them out: mend their reasons (the events have them), or set training.failedEpisodes=zero if the agents' texts cause them.",
  allRight:
    "If a wrong answer would succeed too, mend the team's reward. Else: harder tasks, or a reward that also counts what a solution costs.",
  solved: 'Harder tasks, or a reward that also counts what a solution costs.',
};

/** The remedy if the settings of each agent sample the same text of a prompt each time. Empty if one does not. */
export function remedyOfEqualSamples(agents: OpenRun['agents']): string {
  const remedies = Object.values(agents).map(({ sampling }) => remedyOfSampling(sampling));
  return remedies.every((remedy) => remedy !== '') ? (remedies[0] ?? '') : '';
}

/** The remedy if the episodes of a task earn the same. @param repeated The share that repeat a sibling */
export function remedyForSameness(
  { agents, warmStart }: { readonly agents: OpenRun['agents']; readonly warmStart: boolean },
  groupSize: number,
  repeated = 0,
): string {
  if (groupSize < 2) return 'training.groupSize of at least 2: one episode has nothing to be compared with.';
  const ofSampling = remedyOfEqualSamples(agents);
  if (ofSampling !== '') return ofSampling;
  if (repeated > 0.5)
    return `${percent(repeated, 0)} of the episodes repeat a sibling word for word: a higher temperature${warmStart ? ', or a shorter warm start' : ''}.`;
  return "If that does not depend on what the agents write, mend the team's reward or a parser. Else: tasks of medium difficulty, or more episodes a task (training.groupSize).";
}
