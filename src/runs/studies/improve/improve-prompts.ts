/**
 * Improves the system prompts of a team; the weights stay the same. A language model reads failed episodes and proposes
 * a prompt for one agent. The improvement keeps the prompt if it wins a paired evaluation. Sources: Pryzant et al.,
 * arXiv 2305.03495 (textual gradients); Yuksekgonul et al., arXiv 2406.07496 (TextGrad). The pool: see prompt-pool.ts.
 */

import type { TextBackend } from '@drmas/engine/contract';
import type { EndpointSpec } from '@drmas/engine/endpoints';
import { messageOf, RunError } from '@drmas/engine/errors';
import type { Host } from '@drmas/engine/host';
import { mean, randomKey, uniformAt } from '@drmas/engine/math';
import { openEndpoint } from '@drmas/engine/node';
import { type EpisodeGroup, successOf, withoutUnscored } from '@drmas/engine/nouns';
import { commitsOf } from '../../../method/checkpoints.js';
import type { OpenRun } from '../../../method/index.js';
import { type Recipe, systemPromptOf } from '../../../method/recipe.js';
import type { Checkpoint } from '../../../method/store.js';
import {
  type ImprovementRecord,
  type ImprovementRound,
  lockRun,
  readImprovement,
  readRounds,
  requireSameImprovement,
  writeImprovement,
  writePrompts,
  writeRound,
} from '../../../method/store.js';
import { demandedSchema, type SystemPrompts, undemanded } from '../../../teams/rollout.js';
import { openRun, prepareTasks, publishAll } from '../../run/open-run.js';
import { startingWeights } from '../../run/starting-weights.js';
import {
  comparedPrompts,
  type HeldOutComparison,
  heldOutComparison,
  playedWith,
  requireWorking,
  scoresOfTasks,
  tasksOfPool,
  tasksOfRound,
} from './paired-rounds.js';
import { bestOf, type Candidate, parentOf, poolScore } from './prompt-pool.js';
import { failuresOf, type Proposal, proposalMessages, readProposal, type TriedPrompt } from './proposals.js';

/** Settings of the request to the language model. */
const ASKED = { temperature: 1, topP: 1, topK: 0, maxTokens: 4096 };

export interface Improvement {
  readonly recipe: Recipe;
  /** The policies' checkpoint. Default: the recipe's warm start, or first weights. */
  readonly checkpoint?: Checkpoint | undefined;
  readonly endpoint: EndpointSpec;
  /** The request, as the directory stores it. */
  readonly record: ImprovementRecord;
  readonly directory: string;
  /** Receives each finished round. A resumed improvement starts with its earlier rounds. */
  readonly onRound?: (round: ImprovementRound) => void;
}

export interface ImprovementResult {
  readonly directory: string;
  /** The accepted prompts, by agent. */
  readonly prompts: SystemPrompts;
  readonly rounds: readonly ImprovementRound[];
  /** The first and the accepted prompts on held-out tasks; absent if none was accepted. */
  readonly heldOut?: HeldOutComparison;
  /** Whether the improvement had been finished before, so that nothing was played. */
  readonly isStored?: true;
}

/**
 * Improves prompts in a new directory, or resumes an interrupted improvement after its last whole round. A finished one
 * gives its stored result. An unusable answer of the language model counts as a proposal, so that the improvement ends.
 * @throws RecipeError, TaskError, RunError if the request is wrong, before anything is played; EndpointError or Error
 *   if the request to the language model fails; the signal's reason if interrupted. The directory can be resumed
 */
export async function improvePrompts(improvement: Improvement, host: Host): Promise<ImprovementResult> {
  const { recipe, checkpoint, directory, endpoint } = improvement;
  const before = await begunIn(improvement, host);
  const finished = before === undefined ? undefined : await storedResult(improvement, before, host);
  if (finished !== undefined) return finished;
  const tasks = await prepareTasks(recipe, 'evaluation', host);
  await host.files.makeDirectory(directory);
  const lock = await lockRun(host.files, directory);
  try {
    if (lock.unguarded !== undefined) host.notify(lock.unguarded);
    await writeImprovement(host.files, directory, improvement.record);
    const commits = await commitsOf(host.files, checkpoint);
    const run = await openRun(recipe, tasks, host, { commits, purpose: 'evaluation' });
    try {
      for (const { message } of run.warnings) host.notify(message);
      await startingWeights(run, recipe.warmStart, { checkpoint });
      await publishAll(run);
      return await improve(run, improvement, openEndpoint(endpoint));
    } finally {
      await run.dispose();
    }
  } finally {
    await lock.release();
  }
}

/** The record of an improvement that has begun in the directory. @throws RunError for a directory with other content */
async function begunIn({ directory, record }: Improvement, { files }: Host): Promise<ImprovementRecord | undefined> {
  const before = await readImprovement(files, directory);
  if (before !== undefined) requireSameImprovement(directory, before, record);
  else if ((await files.exists(directory)) && (await files.list(directory)).length > 0)
    throw new RunError(`${directory} exists and is not an improvement; choose another directory with --run`);
  return before;
}

/** The result of an improvement whose rounds and last comparison are over; undefined if something is left to play. */
async function storedResult(
  { directory, record, onRound }: Improvement,
  { result }: ImprovementRecord,
  { files }: Host,
): Promise<ImprovementResult | undefined> {
  const rounds = new Rounds();
  for (const round of await readRounds(files, directory)) rounds.add(round);
  const { all, prompts } = rounds;
  const isDone = all.length > record.proposals || (all.length > 0 && rounds.isPerfect);
  const isCompared = Object.keys(prompts).length === 0 || result !== undefined;
  if (!isDone || !isCompared) return undefined;
  for (const round of all) onRound?.(round);
  const heldOut = result === undefined ? {} : { heldOut: result as HeldOutComparison };
  return { directory, prompts, rounds: all, ...heldOut, isStored: true };
}

/** The rounds of an improvement, and their result. With a pool, each round changes one of its candidates. */
class Rounds {
  readonly all: ImprovementRound[] = [];
  readonly tried: TriedPrompt[] = [];
  readonly pool: Candidate[] = [];
  #prompts: SystemPrompts = {};

  add(round: ImprovementRound): void {
    this.all.push(round);
    const { round: number, agent, prompt, kept, comparison, parent, scores } = round;
    const proposed = agent === undefined || prompt === undefined ? {} : { [agent]: prompt };
    if (kept) this.#prompts = { ...this.#prompts, ...proposed };
    if (scores !== undefined)
      this.pool.push({ round: number, prompts: { ...this.candidate(parent)?.prompts, ...proposed }, scores });
    if (agent !== undefined && prompt !== undefined && comparison !== undefined)
      this.tried.push({ agent, prompt, kept, mean: comparison.mean });
  }

  /** The best prompts so far. */
  get prompts(): SystemPrompts {
    return this.pool.length === 0 ? this.#prompts : bestOf(this.pool).prompts;
  }

  get last(): ImprovementRound {
    return this.all.at(-1) as ImprovementRound;
  }

  /** Whether no proposal can win any more. */
  get isPerfect(): boolean {
    return this.pool.length === 0 ? this.last.failures.length === 0 : poolScore(bestOf(this.pool)) === 1;
  }

  candidate(round: number | undefined): Candidate | undefined {
    return this.pool.find((candidate) => candidate.round === round);
  }
}

async function improve(
  run: OpenRun,
  { directory, record, onRound }: Improvement,
  model: TextBackend,
): Promise<ImprovementResult> {
  const { files } = run.host;
  const rounds = new Rounds();
  for (const round of await readRounds(files, directory)) {
    rounds.add(round);
    onRound?.(round);
  }
  const end = async (round: ImprovementRound) => {
    await writeRound(files, directory, round);
    rounds.add(round);
    await writePrompts(files, directory, rounds.prompts);
    onRound?.(round);
  };
  const improving: Improving = { run, directory, record, model, rounds };
  if (rounds.all.length === 0) await end(await firstRound(improving));
  const { agents, proposals, pool } = record;
  while (rounds.all.length <= proposals && !rounds.isPerfect) {
    const agent = agents[(rounds.all.length - 1) % agents.length] as string;
    await end(await (pool === undefined ? roundOfBest(improving, agent) : roundOfPool(improving, agent)));
  }
  const { prompts, all } = rounds;
  if (Object.keys(prompts).length === 0) return { directory, prompts, rounds: all };
  const heldOut = await heldOutComparison(run, directory, prompts);
  await writeImprovement(files, directory, { ...record, result: heldOut });
  return { directory, prompts, rounds: all, heldOut };
}

interface Improving extends Pick<Improvement, 'directory' | 'record'> {
  readonly run: OpenRun;
  readonly model: TextBackend;
  readonly rounds: Rounds;
}

/** Plays a round's tasks. */
function playedInRound({ run, directory, record }: Improving, round: number, prompts: SystemPrompts, name: string) {
  const { samples } = record;
  const tasks = tasksOfRound(run, round, record);
  return playedWith({ run, directory, tasks, samples, step: round }, prompts, `round-${round}-${name}`);
}

/** Plays the tasks of the pool. */
function playedInPool({ run, directory, record }: Improving, round: number, prompts: SystemPrompts) {
  const { samples } = record;
  const tasks = tasksOfPool(run, record);
  return playedWith({ run, directory, tasks, samples, step: 0 }, prompts, `round-${round}-pool`);
}

/** The round that plays only the first prompts. */
async function firstRound(improving: Improving): Promise<ImprovementRound> {
  const hasPool = improving.record.pool !== undefined;
  const first = requireWorking(
    await (hasPool ? playedInPool(improving, 0, {}) : playedInRound(improving, 0, {}, 'first')),
  );
  const scores = hasPool ? { scores: scoresOfTasks(first) } : {};
  return { round: 0, kept: false, ...standingOf(first), brought: promptsRead(first), ...scores };
}

/** Changes the best prompts so far. They are replaced by prompts whose gain excludes 0. */
async function roundOfBest(improving: Improving, agent: string): Promise<ImprovementRound> {
  const { run, rounds } = improving;
  const round = rounds.all.length;
  const { prompts, last } = rounds;
  const { answer, ...proposal } = await proposed(improving, agent, prompts, last);
  if ('problem' in proposal) {
    const { score, failures } = last;
    return { round, agent, answer, problem: proposal.problem, kept: false, score, failures };
  }
  const { prompt } = proposal;
  const before = requireWorking(await playedInRound(improving, round, prompts, 'before'));
  const after = await playedInRound(improving, round, { ...prompts, [agent]: prompt }, 'after');
  const comparison = comparedPrompts(before, after, run.evaluation.level);
  const kept = comparison.interval !== undefined && comparison.interval.low > 0;
  return { round, agent, answer, prompt, comparison, kept, ...standingOf(kept ? after : before) };
}

/** Changes a candidate of the pool. The new one joins the pool if its mean is higher on the round's tasks. */
async function roundOfPool(improving: Improving, agent: string): Promise<ImprovementRound> {
  const { run, rounds } = improving;
  const round = rounds.all.length;
  const parent = parentOf(rounds.pool, uniformAt(randomKey('parent', run.seed), round));
  const before = requireWorking(await playedInRound(improving, round, parent.prompts, 'before'));
  const standing = standingOf(before);
  const unchanged = { round, agent, parent: parent.round, kept: false, ...standing };
  if (standing.failures.length === 0) return { ...unchanged, problem: 'no episode of the candidate failed' };
  const { answer, ...proposal } = await proposed(improving, agent, parent.prompts, standing);
  if ('problem' in proposal) return { ...unchanged, answer, problem: proposal.problem };
  const { prompt } = proposal;
  const prompts = { ...parent.prompts, [agent]: prompt };
  const after = await playedInRound(improving, round, prompts, 'after');
  const comparison = comparedPrompts(before, after, run.evaluation.level);
  if (!(comparison.mean > 0)) return { ...unchanged, answer, prompt, comparison };
  const scores = scoresOfTasks(await playedInPool(improving, round, prompts));
  return { ...unchanged, answer, prompt, comparison, kept: true, scores };
}

/** The state that one round passes to the next. An episode without a score is neither solved nor unsolved. */
function standingOf(groups: readonly EpisodeGroup[]): Pick<ImprovementRound, 'score' | 'failures'> {
  const episodes = withoutUnscored(groups).flatMap((group) => group.episodes);
  return { score: mean(episodes.map(successOf)), failures: failuresOf(episodes) };
}

/** The system prompt that each agent read; agents without one, and agents with several, are missing. */
function promptsRead(groups: readonly EpisodeGroup[]): SystemPrompts {
  const read = new Map<string, Set<string | undefined>>();
  for (const { agent, messages } of groups.flatMap(({ episodes }) => episodes.flatMap(({ turns }) => turns))) {
    const [first] = messages;
    read.set(agent, (read.get(agent) ?? new Set()).add(first?.role === 'system' ? first.content : undefined));
  }
  return Object.fromEntries(
    [...read].flatMap(([agent, prompts]) => {
      const [only, another] = [...prompts];
      return only === undefined || another !== undefined ? [] : [[agent, only]];
    }),
  );
}

/** Requests a prompt for the agent from the language model, which reads these prompts and their failures. */
async function proposed(
  { run, rounds, model }: Pick<Improving, 'run' | 'rounds' | 'model'>,
  agent: string,
  prompts: SystemPrompts,
  { score, failures }: Pick<ImprovementRound, 'score' | 'failures'>,
): Promise<Proposal & { readonly answer: string }> {
  const { team, agents, host } = run;
  const { all, tried } = rounds;
  const brought = all[0]?.brought ?? {};
  const now = Object.fromEntries(
    Object.keys(team.agents).map((name) => {
      const prompt = prompts[name] ?? systemPromptOf({ team, agents }, name) ?? brought[name];
      return [name, prompt === undefined ? undefined : undemanded(prompt)];
    }),
  );
  const demands = Object.fromEntries(
    Object.entries(brought).flatMap(([name, prompt]) => {
      const schema = demandedSchema(prompt);
      return schema === undefined ? [] : [[name, schema]];
    }),
  );
  const messages = proposalMessages({ team: team.name, agent, prompts: now, demands, score, failures, tried });
  const [seed = 0] = randomKey('proposal', run.seed, all.length);
  const utterance = await model.complete({ ...ASKED, messages, seed: seed >>> 1 }, host.signal);
  const proposal = readProposal(utterance);
  const problem = 'problem' in proposal ? proposal.problem : problemOf(run, agent, proposal.prompt, now[agent], tried);
  return { answer: utterance.text, ...(problem === undefined ? proposal : { problem }) };
}

/** The reason why a prompt cannot be played. Undefined if it can. */
function problemOf(
  { models, assignment }: OpenRun,
  agent: string,
  prompt: string,
  current: string | undefined,
  tried: readonly TriedPrompt[],
): string | undefined {
  if (prompt === current) return 'it is the prompt that the agent has';
  if (tried.some((one) => one.agent === agent && one.prompt === prompt)) return 'it was tried before';
  const model = models[assignment.speakerOf[agent] as string];
  if (model === undefined) return undefined; // an endpoint, whose tokenizer is not known
  try {
    const { length } = model.tokenizer.encode(prompt);
    return length < model.context ? undefined : `it has ${length} tokens, and the agent's context is ${model.context}`;
  } catch (error) {
    return `the agent's model cannot read it: ${messageOf(error)}`;
  }
}
