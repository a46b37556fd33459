import { join } from 'node:path';
import { ArgumentError, BackendError, EpisodeError, RunError } from '@drmas/engine/errors';
import { lora } from '@drmas/engine/model';
import type { Episode } from '@drmas/engine/nouns';
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest';
import { digitTeam, temporaryRoot, tinyDefinition, tinyModel } from '../../../test/support/tiny-run.js';
import { agent } from '../../teams/team/agent.js';
import { evaluateRun, train } from './api.js';
import { type LoadedTeam, loadTeam } from './load-team.js';

const root = temporaryRoot();
const definition = tinyDefinition();
const sampling = { temperature: 0 };
const path = join(root, 'run');
let episodes: readonly Episode[];
let team: LoadedTeam<{ question: string; answer: string }, { text: string }>;
beforeAll(async () => {
  await train(definition, { run: path, threads: 1, set: ['training.steps=2'] });
  const set = ['evaluation.sampling.temperature=0'];
  ({ episodes } = await evaluateRun(path, { recipe: definition, samples: 1, set, threads: 1 }));
  team = await loadTeam<typeof digitTeam>(path, { recipe: definition, threads: 1 });
});
afterAll(() => team.dispose());

const question = { question: '1+2', answer: '' };

describe('a loaded team', () => {
  it('plays as in an evaluation: prompts, parsers, ids, rewards where they are asked for', async () => {
    expect(team.agents).toEqual(['solver', 'verifier']);
    for (const { task, turns, outcome, score } of episodes) {
      const data = task.data as typeof question;
      const played = await team.play(data, { sampling, score: true });
      expectTypeOf(played.outcome).toEqualTypeOf<{ text: string }>();
      expect(played.outcome).toEqual(outcome);
      expect(played.episode.score).toEqual(score);
      const facts = (all: Episode['turns']) =>
        all.map(({ agent: name, prompt, response, logprobs, value }) => ({ name, prompt, response, logprobs, value }));
      expect(facts(played.episode.turns)).toEqual(facts(turns));
    }
    expect((await team.play(question)).episode.score).toEqual({ team: 0, agents: {}, parts: {} });
  });

  it('plays equal samples alike and others otherwise, also at once', async () => {
    const texts = ({ episode }: Awaited<ReturnType<typeof team.play>>) => episode.turns.map(({ text }) => text).join();
    const alone = texts(await team.play(question, { sample: 3 }));
    const all = await Promise.all(Array.from({ length: 8 }, (_, sample) => team.play(question, { sample })));
    expect(texts(all[3] as (typeof all)[number])).toBe(alone);
    expect(new Set(all.map(texts)).size).toBeGreaterThan(1);
    const further = await Promise.all([team.play(question), team.play(question)]);
    expect(further[0]?.episode.sample).not.toBe(further[1]?.episode.sample);
  });

  it('rewards no group unless a score is asked for', async () => {
    const rewardGroup = () => {
      throw new Error('no right answer to rank by');
    };
    const { reward: _, ...unrewarded } = digitTeam;
    const ranked = tinyDefinition({ team: { ...unrewarded, rewardGroup } as unknown as typeof digitTeam });
    await using loaded = await loadTeam(path, { recipe: ranked, checkpoint: 2, threads: 1 });
    expect((await loaded.play(question, { sample: 3 })).outcome).toEqual(
      (await team.play(question, { sample: 3 })).outcome,
    );
    await expect(loaded.play(question, { score: true })).rejects.toThrow('no right answer to rank by');
  });

  it('refuses a task that does not fit, and is interrupted', async () => {
    const wrong = { question: 1 } as unknown as typeof question;
    await expect(team.play(wrong)).rejects.toThrow(ArgumentError);
    await expect(team.play(wrong)).rejects.toThrow(/the task does not fit the team: question: .*; answer/);
    const controller = new AbortController();
    const played = team.play(question, { signal: controller.signal });
    const reason = new Error('no longer wanted');
    controller.abort(reason);
    await expect(played).rejects.toBe(reason);
  });

  it('says where its code threw, with the turns until then; nothing plays once it is disposed of', async () => {
    const play: typeof digitTeam.play = async ({ task, agents: { solver } }) => {
      await solver(task.question);
      throw new Error('out of order');
    };
    const broken = tinyDefinition({ team: { ...digitTeam, play } });
    const loaded = await loadTeam(path, { recipe: broken, checkpoint: 2, threads: 1 });
    const failed = await loaded.play(question).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(EpisodeError);
    expect(failed).toMatchObject({ message: 'the episode failed (error): out of order', failure: { reason: 'error' } });
    expect((failed as EpisodeError).episode.turns).toHaveLength(1);
    expect((failed as EpisodeError).failure.stack).toContain('load-team.test.ts');
    const under = loaded.play(question).catch((error: unknown) => error);
    await loaded.dispose();
    expect(await under).toBeInstanceOf(Error);
    await expect(loaded.play(question)).rejects.toThrow(BackendError);
  });

  it('brings adapters, and is disposed of at the end of a block', { tags: 'verify' }, async () => {
    const adapted = tinyDefinition({ model: lora(tinyModel, { rank: 2 }), team: withoutSystem() });
    const { run } = await train(adapted, { run: join(root, 'adapted'), threads: 1, set: ['training.steps=1'] });
    const options = { recipe: adapted, samples: 1, tasks: 1, threads: 1 };
    const set = ['evaluation.sampling.temperature=0'];
    const [episode] = (await evaluateRun(run, { ...options, set })).episodes;
    let gone: LoadedTeam;
    {
      await using loaded = await loadTeam(run, { recipe: adapted, threads: 1 });
      gone = loaded;
      expect((await loaded.play(episode?.task.data, { sampling })).outcome).toEqual(episode?.outcome);
    }
    await expect(gone.play(question)).rejects.toThrow(/the team was disposed of/);
  });

  it('is refused where there is no such run, checkpoint or definition', async () => {
    await expect(loadTeam(path)).rejects.toThrow(/was started by a program/);
    await expect(loadTeam(root)).rejects.toThrow(RunError);
    await expect(loadTeam(path, { recipe: definition, checkpoint: 9 })).rejects.toThrow(/has no checkpoint '9'/);
  });
});

/** A prompt that a model may have without any system prompt. */
const withoutSystem = () => ({
  ...digitTeam,
  agents: { ...digitTeam.agents, solver: agent({ sampling: { maxTokens: 6 } }) },
});
