/** Runs that are small enough to be trained many times over in a test: about a thousand parameters, a few steps. */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { mkdtemp, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { EventBody, RunEvent, Step } from '@drmas/engine/events';
import type { HostOptions } from '@drmas/engine/internal/base/platform/node-host';
import { tinyDecoder } from '@drmas/engine/model';
import { assistant, user } from '@drmas/engine/nouns';
import { cacheDirectory, nodeFiles, nodeHost } from '@drmas/engine/platform';
import { afterAll } from 'vitest';
import { z } from 'zod';
import { defineRecipe, type RecipeDefinition, type RecipeInput } from '../../src/method/recipe/define.js';
import { agentProfiles, type Recipe, recipeJson } from '../../src/method/recipe/recipe.js';
import { readEpisodes } from '../../src/method/store/episode-files.js';
import { RunDirectory, type RunDirectoryOptions } from '../../src/method/store/run-directory.js';
import { runSettings } from '../../src/method/training/run/run-settings.js';
import type { ProgressRun } from '../../src/method/training/state/progress.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { executeRun } from '../../src/runs/run/execute/execute-run.js';
import { tinySizes } from '../../src/runs/testing/train-tiny.js';
import { arithmetic, arithmeticSymbols } from '../../src/teams/tasks/generated/arithmetic.js';
import { agent } from '../../src/teams/team/agent.js';
import { oneOf } from '../../src/teams/team/parsers.js';
import { defineTeam, type Team } from '../../src/teams/team/team.js';

/** The cache before any test, and its kernels, which the global setup has built. Files share this module. */
const { DRMAS_CACHE: cacheBefore } = process.env;
const compiled = resolve(cacheDirectory(), 'native');
mkdirSync(compiled, { recursive: true });

/** A team whose agent answers one call, and whose episodes all have the reward 1. */
export const oneCallTeam = defineTeam({
  task: z.unknown(),
  agents: { solver: agent() },
  play: ({ agents: { solver } }) => solver('1+1'),
  reward: () => 1,
}) as unknown as Team;

/** Makes a temporary directory for the tests of a file. Caches lie in it too, all but the compiled kernels. */
export function temporaryRoot(): string {
  const root = mkdtempSync(join(tmpdir(), 'drmas-training-'));
  useCache(join(root, 'cache'));
  afterAll(() => {
    // Another root of the same file may be in use. To go back to a root that is gone would compile the kernels again.
    if (process.env.DRMAS_CACHE?.startsWith(root)) {
      if (cacheBefore === undefined) delete process.env.DRMAS_CACHE;
      else process.env.DRMAS_CACHE = cacheBefore;
    }
    rmSync(root, { recursive: true, force: true });
  });
  return root;
}

/** The parts of a run that its stability watch reads. */
export function watchedRun(recipe: Recipe): ProgressRun {
  const { policies, assign } = recipe;
  const agentsOf = (policy: string) => Object.keys(assign).filter((agent) => assign[agent] === policy);
  const trained = Object.entries(policies).map(([name, settings]) => ({ name, settings, agents: agentsOf(name) }));
  return { ...runSettings(recipe), trained };
}

/** Makes an empty cache directory the one in use. */
export function useCache(directory: string): void {
  mkdirSync(directory, { recursive: true });
  symlinkSync(compiled, join(directory, 'native'));
  process.env.DRMAS_CACHE = directory;
}

const task = z.object({ question: z.string(), answer: z.string() });
const share = (text: string, pattern: RegExp) => (text.match(pattern)?.length ?? 0) / (text.length + 1);
const digit = (text: string) => /\d/.exec(text)?.[0];

const agents = {
  solver: agent({ system: '<solver>', parse: digit, invalidPenalty: 0.1, sampling: { maxTokens: 6 } }),
  verifier: agent({
    system: '<verifier>',
    parse: oneOf('<approve>', '<reject>'),
    invalidPenalty: 0.1,
    sampling: { maxTokens: 2 },
  }),
};

/** A team whose reward grows with its digits, so that even an untrained model gets different rewards to learn from. */
export const digitTeam = defineTeam({
  name: 'digits',
  task,
  agents,
  async play({ task, agents: { solver, verifier } }) {
    const draft = await solver(task.question);
    const messages = [user(task.question), assistant(draft.text)];
    const verdict = await verifier(messages);
    const last = verdict.value === '<approve>' ? draft : await solver([...messages, user(verdict.text)]);
    return { text: last.text };
  },
  reward: ({ outcome: { text } }) => ({
    team: share(text, /[0-4]/g),
    agents: { verifier: share(text, /[3-7]/g) },
  }),
});

/** A team that writes two drafts at once. Each draft is judged as soon as it is ready. */
export const concurrentTeam = defineTeam({
  name: 'concurrent digits',
  task,
  agents,
  async play({ task, agents: { solver, verifier } }) {
    const chain = async (question: string) => {
      const draft = await solver(question);
      const verdict = await verifier([user(question), assistant(draft.text)]);
      return { text: draft.text, verdict: verdict.value };
    };
    const [first, second] = await Promise.all([chain(task.question), chain(task.question.slice(2))]);
    return first.verdict === '<reject>' ? second : first;
  },
  reward: ({ outcome: { text } }) => share(text, /[0-4]/g),
});

/** A recipe of four steps of two tasks by four episodes, evaluated in between, with a checkpoint every second step. */
export function tinyRecipe(changes: Partial<RecipeInput> = {}, overrides: readonly string[] = []): Recipe {
  return resolveRecipe(tinyDefinition(changes), { overrides });
}

/** The model of its policies. */
export const tinyModel = tinyDecoder({
  ...tinySizes,
  context: 64,
  tokenizer: {
    type: 'symbols',
    symbols: arithmeticSymbols,
    stop: '<end>',
    endOfUser: '<ask>',
    endOfAssistant: '<end>',
  },
});

/** The definition of `tinyRecipe`, as a program would write it. */
export function tinyDefinition(changes: Partial<RecipeInput> = {}): RecipeDefinition {
  return defineRecipe({
    name: 'tiny',
    team: digitTeam,
    tasks: arithmetic({ operations: [1, 2], warmStartOperations: [1, 2], top: 19 }),
    model: tinyModel,
    ...(changes.tasks === undefined ? { warmStart: { steps: 12, batch: 4 } } : {}), // other tasks may have no traces
    training: { steps: 4, tasksPerStep: 2, groupSize: 4, checkpointEvery: 2 },
    evaluation: { every: 2, tasks: 3, samples: 2 },
    ...changes,
  } as RecipeInput);
}

/** Creates a new run directory below `root`. */
export async function createRun(
  root: string,
  recipe: Recipe,
  options: RunDirectoryOptions = {},
): Promise<RunDirectory> {
  const record = {
    version: 1 as const,
    recipe: { source: recipe.name, overrides: [], codeHash: '' },
    resolved: recipeJson(recipe),
    agents: agentProfiles(recipe),
    acceptedChanges: [],
  };
  return RunDirectory.create(join(await mkdtemp(join(root, 'run-')), 'run'), record, options);
}

/** Trains a recipe from the beginning to the end in a new run directory. */
export async function trainTiny(root: string, recipe: Recipe, options: HostOptions = {}): Promise<RunDirectory> {
  const run = await createRun(root, recipe);
  await executeRun(recipe, run, nodeHost({ threads: 1, ...options }));
  return run;
}

/**
 * Trains a recipe, interrupted when the checkpoint of `step` was written, and resumed with another number of threads.
 */
export async function resumedTiny(root: string, recipe: Recipe, step: number): Promise<RunDirectory> {
  const enough = new Error('enough');
  const controller = new AbortController();
  const stop = (event: RunEvent) => {
    if (event.type === 'checkpoint' && event.step === step) controller.abort(enough);
  };
  const { path } = await createRun(root, recipe);
  const first = await RunDirectory.open(path, { listeners: [{ event: stop }] });
  const reason = await executeRun(recipe, first, nodeHost({ threads: 2, signal: controller.signal })).catch(
    (error) => error,
  );
  if (reason !== enough) throw new Error(`the run was not interrupted after step ${step}: ${reason}`);
  const run = await RunDirectory.open(path);
  const checkpoint = await run.latestCheckpoint();
  await run.rewind(checkpoint);
  await executeRun(recipe, run, nodeHost({ threads: 1 }), { checkpoint });
  return run;
}

/** The events of a run without times and durations, which differ between two executions. */
export async function eventsOf(run: RunDirectory): Promise<EventBody[]> {
  const events = (await run.events()).filter(({ type }) => type !== 'preparing'); // depends on how busy the machine is
  return events.map((event) => {
    const { time, seconds, phaseSeconds, ...lasting } = { seconds: 0, phaseSeconds: 0, ...event };
    return lasting as EventBody;
  });
}

/** SHA-256 by path of the files that must be equal byte for byte: weights, optimisers, positions, episodes. */
export async function filesOf(run: RunDirectory): Promise<Record<string, string>> {
  const names = (await readdir(run.path, { recursive: true })).filter((name) =>
    /\.safetensors$|state\.json$|^episodes.*jsonl$/.test(name),
  );
  const hashes = names.sort().map(async (name) => {
    const bytes = await readFile(join(run.path, name));
    return [name, createHash('sha256').update(bytes).digest('hex')] as const;
  });
  return Object.fromEntries(await Promise.all(hashes));
}

/** The steps among a run's events. */
export async function stepsOf(run: RunDirectory): Promise<Step[]> {
  return (await eventsOf(run)).filter((event): event is typeof event & Step => event.type === 'step');
}

/** The results of a run, without times and without entropies, which only some backends know. */
export async function playedBits(run: RunDirectory) {
  const events = (await eventsOf(run)).filter(({ type }) => type === 'step' || type === 'evaluation');
  const plain = JSON.stringify(events, (key, value) =>
    /^(seconds|phaseSeconds|entropy)$/.test(key) ? undefined : value,
  );
  const folder = join(run.path, 'episodes');
  const files = (await readdir(folder)).sort();
  const episodes = await Promise.all(files.map((file) => readEpisodes(nodeFiles, join(folder, file))));
  const played = episodes
    .flat()
    .map(({ turns }) => turns.map(({ prompt, response, logprobs }) => ({ prompt, response, logprobs })));
  const failures = episodes.flat().flatMap(({ failure }) => (failure === undefined ? [] : [failure]));
  return { events: JSON.parse(plain) as EventBody[], files, played, failures };
}
