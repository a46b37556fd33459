import { mkdir, mkdtemp, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { checkpoint, lora, tinyDecoder } from '@drmas/engine/model';
import type { TaskSource } from '@drmas/engine/nouns';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { remoteRecipe } from '../../../../test/support/tinker-fake/open.js';
import { digitTeam, temporaryRoot, tinyRecipe } from '../../../../test/support/tiny-run.js';
import { mix } from '../../../teams/tasks/mix.js';
import { agent } from '../../../teams/team/agent.js';
import { defineTeam } from '../../../teams/team/team.js';
import { prepareTasks } from '../../run/open/prepare-tasks.js';
import { tinySizes } from '../../testing/train-tiny.js';
import { planRun } from './dry-run.js';

const root = temporaryRoot();
let bare: string;
beforeAll(async () => {
  bare = await mkdtemp(join(root, 'nothing-'));
});

const plan = async (recipe = tinyRecipe()) => planRun(recipe, await prepareTasks(recipe));

/** A directory with the files of a model, but no weights. */
async function modelOf(architecture: string, dtype = 'float32'): Promise<string> {
  const directory = join(root, `${architecture} ${dtype}`);
  await mkdir(directory);
  const config = {
    architectures: [architecture],
    dtype,
    vocab_size: 260,
    hidden_size: 8,
    num_hidden_layers: 1,
    num_attention_heads: 1,
    num_key_value_heads: 1,
    head_dim: 8,
    intermediate_size: 8,
    max_position_embeddings: 256,
    rms_norm_eps: 1e-6,
    tie_word_embeddings: true,
  };
  await writeFile(join(directory, 'config.json'), JSON.stringify(config));
  await writeFile(join(directory, 'drmas_tokenizer.json'), JSON.stringify({ type: 'bytes' }));
  return directory;
}

describe('planRun', () => {
  it('counts the tokens of a run with full-length answers, and writes nothing', async () => {
    const before = await readdir(root, { recursive: true });
    const { agents, tokens, policies, memory, notes } = await plan();
    expect(await readdir(root, { recursive: true })).toEqual(before);
    expect(agents).toMatchObject({ solver: { responseTokens: 6 }, verifier: { calls: 1, responseTokens: 2 } });
    expect(agents.solver?.promptTokens).toBeGreaterThan(2);
    expect(tokens.episodes).toEqual({ step: 8, training: 32, evaluation: 18 });
    expect(tokens.policies.verifier?.step.generated).toBe(8 * 2);
    expect(tokens.warmStart).toBeGreaterThan(12 * 4 * 3);
    expect(policies.solver?.trained).toBe(policies.solver?.whole);
    expect(policies.solver?.memory?.optimizer).toBe(8 * (policies.solver?.trained ?? 0));
    expect(memory?.total).toBeGreaterThan(memory?.cache ?? Number.POSITIVE_INFINITY);
    expect(notes[0]).toMatch(/a rehearsal of 2 tasks/);
  });

  it('counts the tasks of evaluations as they are played: of each benchmark, and no more than there are', async () => {
    const evaluated = async (tasks: TaskSource) => (await plan(tinyRecipe({ tasks }))).tokens.episodes.evaluation;
    const few = (size: number): TaskSource => ({
      name: 'few',
      load: async () => ({
        name: 'few',
        size,
        at: (i) => ({ id: `${i}`, data: { question: `${i}+1`, answer: `${i + 1}` } }),
      }),
    });
    // Three tasks of each, of two samples, at steps 0, 2 and 4.
    expect(await evaluated(mix({ a: few(9), b: few(9) }))).toBe(6 * 2 * 3);
    expect(await evaluated(mix({ a: few(9), b: few(2) }))).toBe(5 * 2 * 3);
    expect(await evaluated(few(2))).toBe(2 * 2 * 3);
  });

  it('counts the memory of each device, and two words for one card as one', async () => {
    const one = ['backend.device=cuda', 'policies.verifier.device=cuda:0', 'warmStart.share=policy'];
    expect((await plan(tinyRecipe({}, one))).memoryByDevice).toBeUndefined();
    const two = ['backend.device=cuda', 'policies.verifier.device=cuda:1', 'warmStart.share=policy'];
    const { memory, memoryByDevice = {} } = await plan(tinyRecipe({}, two));
    expect(Object.keys(memoryByDevice)).toEqual(['cuda', 'cuda:1']);
    const totals = Object.values(memoryByDevice).map(({ total }) => total);
    expect(Math.min(...totals)).toBeGreaterThan(0);
    expect(totals.reduce((sum, bytes) => sum + bytes)).toBe(memory?.total);
  });

  it('names the agents that the rehearsal never called', async () => {
    const team = defineTeam({
      task: digitTeam.task,
      agents: digitTeam.agents,
      async play({ agents: { solver, verifier } }) {
        const { value } = await solver('1');
        return value === '0' ? (await verifier('2')).text : '';
      },
      reward: () => 0,
    });
    const { notes, agents, tokens } = await plan(tinyRecipe({ team }));
    expect(notes.join()).toMatch(/never reached verifier.*Their tokens are missing/);
    expect([agents.verifier?.calls, tokens.agents.verifier?.run.read]).toEqual([0, 0]);
    expect((await plan()).notes.join()).not.toContain('never reached');
  });

  it("runs none of the team's rewards, which may ask a judge for money", async () => {
    const judges: string[] = [];
    const judge = (name: string) => () => {
      judges.push(name);
      return [0];
    };
    const rewards = { reward: () => judge('reward')()[0] ?? 0, rewardGroup: judge('rewardGroup') };
    await plan(tinyRecipe({ team: defineTeam({ ...digitTeam, ...rewards }) }));
    expect(judges).toEqual([]);
  });

  it('answers a demanded schema with JSON that fits, each option in its turn', async () => {
    const lengths: number[] = [];
    const eighty = agent({ sampling: { maxTokens: 80 } });
    const item = z.object({ n: z.int().min(3) });
    const routes = z.object({ queue: z.enum(['order', 'refund']), note: z.string().min(2), items: z.array(item) });
    const verdicts = z.object({ answer: z.union([z.literal('yes'), z.boolean()]), more: z.number().optional() });
    const of = (schema: z.ZodType) => ({ responseSchema: { ...z.toJSONSchema(schema) } });
    const team = defineTeam({
      task: digitTeam.task,
      agents: { router: eighty, order: eighty, refund: eighty },
      async play({ agents: { router, order, refund } }) {
        const { text } = await router('"{', of(routes));
        const { queue } = routes.parse(JSON.parse(text));
        await (queue === 'order' ? order : refund)('1', of(verdicts));
        lengths.push(text.length);
      },
      reward: () => 0,
    });
    const at = (index: number) => ({ id: String(index), data: { question: '1+1', answer: '2' } });
    const tasks = { name: 'sums', load: async () => ({ name: 'sums', size: 4, at }) };
    const model = tinyDecoder({ ...tinySizes, context: 2048, tokenizer: { type: 'bytes' } });
    const { notes, agents } = await plan(tinyRecipe({ team, model, tasks }));
    expect(notes.join()).not.toMatch(/failed|never reached/);
    expect([agents.order?.calls, agents.refund?.calls]).toEqual([0.5, 0.5]);
    expect(agents.refund?.responseTokens).toBe(80);
    expect(lengths).toEqual([79, 79]);
  });

  it('counts longer answers of evaluations separately', async () => {
    const [as, apart] = [await plan(), await plan(tinyRecipe({}, ['evaluation.sampling.maxTokens=20']))];
    expect(apart.agents).toEqual(as.agents);
    expect(apart.tokens.run.trained).toBe(as.tokens.run.trained);
    expect(apart.tokens.run.generated).toBeGreaterThan(as.tokens.run.generated);
  });

  it('holds the base of adapters once', async () => {
    const { model } = tinyRecipe().policies.solver as { model: Parameters<typeof lora>[0] };
    const { policies, memory } = await plan(tinyRecipe({ model: lora(model, { rank: 2 }) }));
    expect(policies.solver?.trained).toBeLessThan(policies.solver?.whole ?? 0);
    expect(memory?.bases).toBeGreaterThan(4 * (policies.solver?.whole ?? 0));
  });

  it('counts the adapters of a policy’s agents, and a trunk if it is trained', async () => {
    const planned = async (...settings: string[]) =>
      (await plan(tinyRecipe({ assign: 'shared' }, ['policies.shared.agentAdapters.rank=2', ...settings]))).policies
        .shared;
    const [trained, kept] = [await planned(), await planned('policies.shared.agentAdapters.trunkRate=0')];
    expect(kept?.trained).toBeGreaterThan(0);
    expect((trained?.trained ?? 0) - (kept?.trained ?? 0)).toBe(trained?.whole);
    expect(trained?.memory?.optimizer).toBe(8 * (trained?.trained ?? 0));
  });

  it('counts half the bytes for a base in bfloat16', async () => {
    const [fine = 0, coarse = 0] = await Promise.all(
      ['float32', 'bfloat16'].map(async (dtype) => {
        const model = lora(checkpoint(await modelOf('LlamaForCausalLM', dtype)), { rank: 2 });
        return (await plan(tinyRecipe({ model }, ['warmStart=null']))).memory?.bases;
      }),
    );
    expect(coarse).toBeGreaterThan(0.5 * fine);
    expect(coarse).toBeLessThan(0.54 * fine); // norms and buffers are in float32 either way
  });

  it('names the unknown facts about a model that is not on this machine', async () => {
    const cache = process.env.HF_HUB_CACHE;
    process.env.HF_HUB_CACHE = bare;
    try {
      const { warmStart, ...recipe } = tinyRecipe();
      const away = Object.fromEntries(
        Object.entries(recipe.policies).map(([name, policy]) => [
          name,
          { ...policy, model: { type: 'checkpoint' as const, path: 'some/model' } },
        ]),
      );
      const { policies, memory, notes, tokens } = await plan({ ...recipe, policies: away });
      expect([policies.solver, memory]).toEqual([undefined, undefined]);
      expect(tokens.run.generated).toBeGreaterThan(0);
      expect(notes.join()).toContain('some/model is not on this machine');
    } finally {
      if (cache === undefined) delete process.env.HF_HUB_CACHE;
      else process.env.HF_HUB_CACHE = cache;
    }
  });

  it('notes that one episode has nothing to be compared with', async () => {
    const notesOf = async (...settings: readonly string[]) =>
      (await plan(tinyRecipe({}, settings))).notes.filter((note) => note.startsWith('training.groupSize'));
    expect(await notesOf('training.groupSize=1', 'advantage.singleton=zero')).toHaveLength(1);
    expect(await notesOf('training.groupSize=1')).toHaveLength(1); // compared with the whole step
    expect(await notesOf('training.groupSize=2', 'advantage.singleton=zero')).toEqual([]);
    expect(await notesOf('training.groupSize=1', 'advantage.type=counterfactual')).toEqual([]); // of the lab
  });

  it('reads the sizes of a model on this machine', async () => {
    const directory = await modelOf('Qwen3ForCausalLM');
    const { warmStart, ...recipe } = tinyRecipe({ model: { type: 'checkpoint', path: directory } });
    const { policies } = await plan(recipe);
    expect(policies.solver?.whole).toBe(260 * 8 + 4 * 64 + 3 * 64 + 2 * 8 + 2 * 8 + 8);
  });

  it('counts the tokens of a model that only a server can run, with a note that the rest is unknown', async () => {
    const directory = await modelOf('SomeOtherForCausalLM');
    const { policies, notes, agents } = await plan(remoteRecipe(directory, { url: 'http://127.0.0.1:1' }));
    expect(policies).toEqual({ solver: undefined, verifier: undefined });
    expect(agents.solver?.responseTokens).toBe(6);
    expect(notes.join()).toContain(`${directory} is of a family whose layers are not known here`);
    const { warmStart, ...recipe } = tinyRecipe({ model: { type: 'checkpoint', path: directory } });
    await expect(plan(recipe)).rejects.toThrow(/SomeOtherForCausalLM/); // the embedded engine cannot run it
  });
});
