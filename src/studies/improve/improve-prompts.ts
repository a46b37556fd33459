/**
 * Improves the system prompts of a team whose weights stay as they are: a language model reads episodes that failed and
 * proposes a prompt for one agent, which is kept where it wins a paired evaluation. What is optimised are prompts, by
 * what a model says of failures: Pryzant et al., arXiv 2305.03495 (textual gradients); Yuksekgonul et al., arXiv
 * 2406.07496 (TextGrad).
 */
import { openEndpoint } from '../../backends/endpoint/endpoint-client.js';
import type { EndpointSpec } from '../../backends/endpoint/endpoint-spec.js';
import type { TextBackend } from '../../contract/text-backend.js';
import { type EpisodeGroup, successOf } from '../../core/episode.js';
import { messageOf, RunError } from '../../core/errors.js';
import type { Host } from '../../core/host.js';
import { randomKey } from '../../core/random.js';
import { mean } from '../../core/statistics.js';
import { type Recipe, systemPromptOf } from '../../recipe/recipe.js';
import type { SystemPrompts } from '../../rollout/rollout-context.js';
import { openRun, prepareTasks, publishAll } from '../../run/open-run.js';
import type { Checkpoint } from '../../store/checkpoint-files.js';
import {
  type ImprovementRecord,
  type ImprovementRound,
  readImprovement,
  readRounds,
  requireSameImprovement,
  writeImprovement,
  writePrompts,
  writeRound,
} from '../../store/improvement-record.js';
import { lockRun } from '../../store/run-lock.js';
import { commitsOf } from '../../training/checkpoint.js';
import type { OpenRun } from '../../training/run-state.js';
import { startingWeights } from '../probe/starting-weights.js';
import {
  comparedPrompts,
  type HeldOutComparison,
  heldOutComparison,
  playedWith,
  requireWorking,
  tasksOfRound,
} from './paired-rounds.js';
import { failuresOf, type Proposal, proposalMessages, readProposal, type TriedPrompt } from './proposals.js';

/** How the language model is asked. */
const ASKED = { temperature: 1, topP: 1, topK: 0, maxTokens: 4096 };

export interface Improvement {
  readonly recipe: Recipe;
  /** Where the policies come from; otherwise the recipe's warm start, or their first weights. */
  readonly checkpoint?: Checkpoint | undefined;
  readonly endpoint: EndpointSpec;
  /** What is asked for, as the directory keeps it. */
  readonly record: ImprovementRecord;
  readonly directory: string;
  /** Receives every round that is over, those of an interrupted improvement first. */
  readonly onRound?: (round: ImprovementRound) => void;
}

export interface ImprovementResult {
  readonly directory: string;
  /** The accepted prompts, by agent. */
  readonly prompts: SystemPrompts;
  readonly rounds: readonly ImprovementRound[];
  /** The first and the accepted prompts on held-out tasks; absent where none was accepted. */
  readonly heldOut?: HeldOutComparison;
}

/**
 * Improves prompts in a directory of its own; one that was interrupted goes on after its last whole round. An answer
 * of the language model that cannot be tried counts as a proposal, so that it ends.
 * @throws RecipeError, TaskError, RunError before anything is played when the request is wrong; EndpointError or Error
 *   when the language model cannot be asked; the signal's reason when interrupted. The directory goes on from there
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
      await startingWeights(run, { checkpoint });
      await publishAll(run);
      return await improve(run, improvement, openEndpoint(endpoint));
    } finally {
      await run.dispose();
    }
  } finally {
    await lock.release();
  }
}

/** @throws RunError for a directory that holds something else */
async function beginIn({ directory, record }: Improvement, { files }: Host): Promise<void> {
  const before = await readImprovement(files, directory);
  if (before !== undefined) return requireSameImprovement(directory, before, record);
  if ((await files.exists(directory)) && (await files.list(directory)).length > 0)
    throw new RunError(`${directory} exists and is no improvement; choose another directory with --run`);
  await files.makeDirectory(directory);
}

/** The rounds of an improvement, and what follows from them. */
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
    const comparison = comparedPrompts(before, after, run.recipe.evaluation.level);
    const kept = comparison.interval !== undefined && comparison.interval.low > 0;
    await end({ round, agent, answer, prompt, comparison, kept, ...standingOf(kept ? after : before) });
  }
  const { prompts, all } = rounds;
  if (Object.keys(prompts).length === 0) return { directory, prompts, rounds: all };
  const heldOut = await heldOutComparison(run, directory, prompts);
  await writeImprovement(files, directory, { ...record, result: heldOut });
  return { directory, prompts, rounds: all, heldOut };
}

/** What goes on from a round into the next one. */
function standingOf(groups: readonly EpisodeGroup[]): Pick<ImprovementRound, 'score' | 'failures'> {
  const episodes = groups.flatMap((group) => group.episodes);
  return { score: mean(episodes.map(successOf)), failures: failuresOf(episodes) };
}

/** Asks the language model for a prompt of the agent. */
async function proposed(
  run: OpenRun,
  { all, last, prompts, tried }: Rounds,
  agent: string,
  model: TextBackend,
): Promise<Proposal & { readonly answer: string }> {
  const { recipe, host } = run;
  const { score, failures } = last;
  const now = Object.fromEntries(
    Object.keys(recipe.team.agents).map((name) => [name, prompts[name] ?? systemPromptOf(recipe, name)]),
  );
  const messages = proposalMessages({ team: recipe.team.name, agent, prompts: now, score, failures, tried });
  const [seed = 0] = randomKey('proposal', recipe.seed, all.length);
  const utterance = await model.complete({ ...ASKED, messages, seed: seed >>> 1 }, host.signal);
  const proposal = readProposal(utterance);
  const problem = 'problem' in proposal ? proposal.problem : problemOf(run, agent, proposal.prompt, now[agent], tried);
  return { answer: utterance.text, ...(problem === undefined ? proposal : { problem }) };
}

/** Why a prompt is not worth playing; undefined where it is. */
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
