/**
 * Improves the system prompts of a team; the weights stay the same. A language model reads failed episodes and proposes
 * a prompt for one agent. The improvement keeps the prompt if it wins a paired evaluation. Sources: Pryzant et al.,
 * arXiv 2305.03495 (textual gradients); Yuksekgonul et al., arXiv 2406.07496 (TextGrad).
 */

import { messageOf, RunError } from '../../../base/errors.js';
import type { Host } from '../../../base/host.js';
import { mean, randomKey } from '../../../base/math.js';
import { type EpisodeGroup, successOf } from '../../../base/nouns.js';
import type { EndpointSpec } from '../../../engine/backends.js';
import type { TextBackend } from '../../../engine/contract.js';
import { openEndpoint } from '../../../engine/embedded.js';
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
import type { SystemPrompts } from '../../../teams/rollout.js';
import { openRun, prepareTasks, publishAll } from '../../run/open-run.js';
import { startingWeights } from '../plan/probe/starting-weights.js';
import {
  comparedPrompts,
  type HeldOutComparison,
  heldOutComparison,
  playedWith,
  requireWorking,
  tasksOfRound,
} from './paired-rounds.js';
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
}

/**
 * Improves prompts in a new directory, or resumes an interrupted improvement after its last whole round. An unusable
 * answer of the language model counts as a proposal, so that the improvement ends.
 * @throws RecipeError, TaskError, RunError if the request is wrong, before anything is played; EndpointError or Error
 *   if the request to the language model fails; the signal's reason if interrupted. The directory can be resumed
 */
export async function improvePrompts(improvement: Improvement, host: Host): Promise<ImprovementResult> {
  const { recipe, checkpoint, directory, endpoint } = improvement;
  const tasks = await prepareTasks(recipe, 'evaluation');
  await beginIn(improvement, host);
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

/** @throws RunError for a directory with other content */
async function beginIn({ directory, record }: Improvement, { files }: Host): Promise<void> {
  const before = await readImprovement(files, directory);
  if (before !== undefined) return requireSameImprovement(directory, before, record);
  if ((await files.exists(directory)) && (await files.list(directory)).length > 0)
    throw new RunError(`${directory} exists and is not an improvement; choose another directory with --run`);
  await files.makeDirectory(directory);
}

/** The rounds of an improvement, and their result. */
class Rounds {
  readonly all: ImprovementRound[] = [];
  prompts: SystemPrompts = {};
  readonly tried: TriedPrompt[] = [];

  add(round: ImprovementRound): void {
    this.all.push(round);
    const { agent, prompt, kept, comparison } = round;
    if (agent === undefined || prompt === undefined || comparison === undefined) return;
    if (kept) this.prompts = { ...this.prompts, [agent]: prompt };
    this.tried.push({ agent, prompt, kept, mean: comparison.mean });
  }

  get last(): ImprovementRound {
    return this.all.at(-1) as ImprovementRound;
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
  const { tasks: count, samples, agents, proposals } = record;
  const played = (round: number, prompts: SystemPrompts, name: string) => {
    const tasks = tasksOfRound(run, round, count);
    return playedWith({ run, directory, tasks, samples, step: round }, prompts, `round-${round}-${name}`);
  };
  if (rounds.all.length === 0) {
    const first = requireWorking(await played(0, {}, 'first'));
    await end({ round: 0, kept: false, ...standingOf(first) });
  }
  while (rounds.all.length <= proposals && rounds.last.failures.length > 0) {
    const round = rounds.all.length;
    const agent = agents[(round - 1) % agents.length] as string;
    const { answer, ...proposal } = await proposed(run, rounds, agent, model);
    if ('problem' in proposal) {
      const { score, failures } = rounds.last;
      await end({ round, agent, answer, problem: proposal.problem, kept: false, score, failures });
      continue;
    }
    const { prompt } = proposal;
    const before = requireWorking(await played(round, rounds.prompts, 'before'));
    const after = await played(round, { ...rounds.prompts, [agent]: prompt }, 'after');
    const comparison = comparedPrompts(before, after, run.evaluation.level);
    const kept = comparison.interval !== undefined && comparison.interval.low > 0;
    await end({ round, agent, answer, prompt, comparison, kept, ...standingOf(kept ? after : before) });
  }
  const { prompts, all } = rounds;
  if (Object.keys(prompts).length === 0) return { directory, prompts, rounds: all };
  const heldOut = await heldOutComparison(run, directory, prompts);
  await writeImprovement(files, directory, { ...record, result: heldOut });
  return { directory, prompts, rounds: all, heldOut };
}

/** The state that one round passes to the next. */
function standingOf(groups: readonly EpisodeGroup[]): Pick<ImprovementRound, 'score' | 'failures'> {
  const episodes = groups.flatMap((group) => group.episodes);
  return { score: mean(episodes.map(successOf)), failures: failuresOf(episodes) };
}

/** Requests a prompt for the agent from the language model. */
async function proposed(
  run: OpenRun,
  { all, last, prompts, tried }: Rounds,
  agent: string,
  model: TextBackend,
): Promise<Proposal & { readonly answer: string }> {
  const { team, agents, host } = run;
  const { score, failures } = last;
  const now = Object.fromEntries(
    Object.keys(team.agents).map((name) => [name, prompts[name] ?? systemPromptOf({ team, agents }, name)]),
  );
  const messages = proposalMessages({ team: team.name, agent, prompts: now, score, failures, tried });
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
