import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { defineBackend, ListPolicy } from '@drmas/engine/backends';
import type { RunEvent, Step } from '@drmas/engine/events';
import { checkpoint, choiceTable, lora } from '@drmas/engine/model';
import { nodeFiles, nodeHost } from '@drmas/engine/platform';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { RecipeDefinition, RecipeInput } from '../../src/method/recipe/define.js';
import { frozen, type PoolOptions, pool } from '../../src/method/recipe/frozen.js';
import type { Recipe } from '../../src/method/recipe/recipe.js';
import { readEpisodes } from '../../src/method/store/episode-files.js';
import { RunDirectory } from '../../src/method/store/run-directory.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { evaluate, loadTeam } from '../../src/runs/index.js';
import { executeRun } from '../../src/runs/run/execute-run.js';
import { prepareTasks } from '../../src/runs/run/open-run.js';
import { agent } from '../../src/teams/team/agent.js';
import { oneOf } from '../../src/teams/team/parsers.js';
import { defineTeam } from '../../src/teams/team/team.js';
import {
  createRun,
  eventsOf,
  filesOf,
  temporaryRoot,
  tinyDefinition,
  tinyModel,
  tinyRecipe,
  trainTiny,
} from '../support/tiny-run.js';

const root = temporaryRoot();
const HANDS = ['rock', 'paper', 'scissors'] as const;
const hand = () => agent({ parse: oneOf(...HANDS), sampling: { maxTokens: 1 } });

/** Rock, paper, scissors between a player and an earlier self. */
const duel = defineTeam({
  name: 'duel',
  task: z.object({ round: z.number() }),
  agents: { player: hand(), past: hand() },
  async play({ agents: { player, past } }) {
    const [own, other] = [await player('show'), await past('show')];
    return HANDS.indexOf(own.value ?? 'rock') - HANDS.indexOf(other.value ?? 'rock');
  },
  reward: ({ outcome }) => {
    const won = [0, 1, -1][(outcome + 3) % 3] as number;
    return { team: 0, agents: { player: won, past: -won } };
  },
});

const rounds = {
  name: 'rounds',
  load: async () => ({ name: 'rounds', size: 8, at: (round: number) => ({ id: `t${round}`, data: { round } }) }),
};

function duelDefinition(options: Partial<PoolOptions> = {}, changes: Partial<RecipeInput> = {}): RecipeDefinition {
  return tinyDefinition({
    team: duel,
    tasks: rounds,
    assign: { player: 'player', past: frozen(pool({ of: 'player', every: 2, keep: 2, ...options })) },
    model: choiceTable({ choices: HANDS }),
    policies: { player: { optimizer: { type: 'sgd', learningRate: 2 } } },
    training: { steps: 7, tasksPerStep: 4, groupSize: 4, checkpointEvery: 3 },
    evaluation: { every: 7, tasks: 2, samples: 2 },
    ...changes,
  } as unknown as Partial<RecipeInput>);
}

const duelRecipe = (options: Partial<PoolOptions> = {}, overrides: readonly string[] = []): Recipe =>
  resolveRecipe(duelDefinition(options), { overrides });

/** A run that is stopped after its first checkpoint, and resumed. */
async function stoppedAndResumed(recipe: Recipe): Promise<RunDirectory> {
  const { path } = await createRun(root, recipe);
  const controller = new AbortController();
  const event = ({ type }: RunEvent) => void (type === 'checkpoint' && controller.abort(new Error('enough')));
  const first = await RunDirectory.open(path, { listeners: [{ event }] });
  const running = executeRun(recipe, first, nodeHost({ threads: 1, signal: controller.signal }));
  await expect(running).rejects.toThrow('enough');
  const run = await RunDirectory.open(path);
  const checkpoint = (await run.checkpoints()).at(-1);
  await run.rewind(checkpoint);
  await executeRun(recipe, run, nodeHost({ threads: 1 }), { checkpoint });
  return run;
}

const stepsOf = (events: readonly { readonly type: string }[]) =>
  events.filter((event): event is Step => event.type === 'step');

describe('an agent played by earlier versions of a policy', () => {
  it('resumes bit for bit after a stop, and one seed gives one run', async () => {
    const recipe = duelRecipe({ draw: 'prioritised' });
    const whole = await trainTiny(root, recipe);
    const resumed = await stoppedAndResumed(recipe);
    const lasting = (events: readonly { readonly type: string }[]) =>
      events.filter(({ type }) => type === 'step' || type === 'evaluation');
    expect(lasting(await eventsOf(resumed))).toEqual(lasting(await eventsOf(whole)));
    expect(await filesOf(resumed)).toEqual(await filesOf(whole));
    expect(await eventsOf(await trainTiny(root, recipe))).toEqual(await eventsOf(whole));
  });

  it('meets the versions that the events count, one for all episodes of a task', async () => {
    const run = await trainTiny(root, duelRecipe({ draw: 'uniform' }));
    const versions = new Set<number>();
    for (const { step, pools, agents } of stepsOf(await eventsOf(run))) {
      const episodes = await readEpisodes(nodeFiles, run.stepEpisodesPath(step));
      const met = new Map<string, Set<number>>();
      for (const { task, turns } of episodes)
        for (const { agent, policyVersion } of turns)
          if (agent === 'past') met.set(task.id, (met.get(task.id) ?? new Set()).add(policyVersion as number));
      for (const drawn of met.values()) expect(drawn.size).toBe(1);
      const rows = pools?.past ?? [];
      expect(rows.map(({ version }) => version)).toEqual(
        [...new Set([...met.values()].flatMap((drawn) => [...drawn]))].sort((a, b) => a - b),
      );
      expect(rows.reduce((sum, row) => sum + row.episodes, 0)).toBe(16);
      expect(rows.reduce((sum, row) => sum + row.scores.length, 0)).toBe(4);
      const all = rows.flatMap(({ scores }) => scores);
      expect(all.reduce((sum, score) => sum + score, 0) / 4).toBeCloseTo(agents.player?.rewardMean as number, 9);
      for (const { version } of rows) {
        versions.add(version);
        expect(version % 2).toBe(0);
        expect(version).toBeLessThan(step);
        expect(version).toBeGreaterThanOrEqual(step - 5); // two versions, the older at most 4 steps old before this one
      }
      expect(agents.past).toMatchObject({ frozen: true, gradientNorm: 0 });
    }
    expect(versions.size).toBeGreaterThan(2);
  });

  it('plays with the weights that the policy had after the step of the version', async () => {
    const run = await trainTiny(root, duelRecipe({ every: 1, keep: 3 }, ['training.checkpointEvery=1']));
    const at = (step: number, ...place: string[]) =>
      join(run.path, 'checkpoints', `step-${String(step).padStart(6, '0')}`, ...place, 'choices.json');
    const logitsIn = async (path: string) => JSON.parse(await nodeFiles.readText(path)).logits;
    const kept = (await readdir(join(run.path, 'checkpoints', 'step-000007', 'past.pool'))).sort();
    expect(kept).toEqual(['5', '6', '7']);
    const own = await logitsIn(at(7, 'player'));
    expect(await logitsIn(at(7, 'past.pool', '7'))).toEqual(own);
    expect(await logitsIn(at(7, 'past.pool', '6'))).not.toEqual(own);
  });

  it('plays its newest version in evaluations of a run, version 0 in those of a recipe, and itself in a team', async () => {
    const { path } = await trainTiny(root, duelRecipe());
    const options = { recipe: duelDefinition(), threads: 1 };
    const played = async () => (await evaluate(path, options)).agents.past?.reward;
    expect(await played()).toBe(await played());
    expect((await evaluate(duelDefinition(), { threads: 1 })).agents.past?.turns).toBe(4);
    await using team = await loadTeam(path, options);
    const { episode } = await team.play({ round: 1 });
    expect(episode.turns.map(({ agent, frozen }) => [agent, frozen])).toEqual([
      ['player', undefined],
      ['past', true],
    ]);
  });
});

describe('recipes with a pool that cannot be played are refused before any work', () => {
  const own = defineBackend({
    type: 'numbers',
    schema: {},
    capabilities: ListPolicy.capabilities,
    open: () => Promise.reject(new Error('opened')),
  });
  const decoder = { model: tinyModel, use: [own], policies: {} };
  const adapters = { player: { agentAdapters: { rank: 2 } } };
  it.each([
    [{}, ['rollout={"type":"program","staleness":1}'], /^rollout\.staleness: .*expected 0 beside a pool, got 1/],
    [
      decoder,
      ['backend={"type":"numbers"}', 'policies.player.optimizer.type=sgd'],
      /^assign\.past\.of: the backend 'numbers' keeps no earlier versions/,
    ],
    [
      { ...decoder, model: lora(checkpoint('base'), { rank: 2 }) },
      ['sampler={"type":"vllm","url":"http://127.0.0.1:8000"}'],
      /^assign\.past\.of: a sampler plays 'player'.*expected no sampler/,
    ],
    [{ ...decoder, policies: adapters }, [], /^assign\.past\.of: 'player' has an adapter for each of its agents/],
  ])('%#', async (changes, overrides, message) => {
    const recipe = resolveRecipe(duelDefinition({}, changes as Partial<RecipeInput>), { overrides });
    await expect(prepareTasks(recipe)).rejects.toThrow(message);
  });
});

describe('a pool of a decoder, or of an adapter', { tags: 'verify', timeout: 900_000 }, () => {
  it.each([
    ['a decoder', tinyModel, 'latest'],
    ['an adapter', lora(tinyModel, { rank: 2 }), 'uniform'],
  ] as const)('%s: a stopped run resumes bit for bit', async (_, model, draw) => {
    const assign = { solver: 'solver', verifier: frozen(pool({ of: 'solver', every: 1, keep: 2, draw })) };
    const recipe = tinyRecipe({ model, assign });
    const whole = await trainTiny(root, recipe);
    const resumed = await stoppedAndResumed(recipe);
    expect(stepsOf(await eventsOf(resumed))).toEqual(stepsOf(await eventsOf(whole)));
    expect(await filesOf(resumed)).toEqual(await filesOf(whole));
    const met = stepsOf(await eventsOf(whole)).flatMap(({ pools }) => pools?.verifier ?? []);
    expect(new Set(met.map(({ version }) => version)).size).toBeGreaterThan(2);
  });
});
