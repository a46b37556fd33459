import { existsSync } from 'node:fs';
import { cp, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { shellWord } from '@drmas/engine/host';
import { lora } from '@drmas/engine/model';
import { loadPolicy } from '@drmas/engine/node';
import { system, user } from '@drmas/engine/nouns';
import { nodeHost } from '@drmas/engine/platform';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { drmas } from '../../../test/support/command-line.js';
import { createRun, temporaryRoot, tinyModel, tinyRecipe, trainTiny } from '../../../test/support/tiny-run.js';
import type { RunDirectory } from '../../method/store/run-directory.js';
import { openAgentModels } from '../../serve/models/open-agent-models.js';
import { arithmeticSymbols } from '../../teams/tasks/generated/arithmetic.js';

const root = temporaryRoot();
let run: RunDirectory;
beforeAll(async () => {
  run = await trainTiny(root, tinyRecipe());
});
let targets = 0;
const target = () => join(root, 'exports', `model-${targets++}`);

/** Runs the printed code; returns its output and the policy that it loads. */
async function runSnippet(out: string) {
  const [, code = ''] = /^with drmas.*\n((?: {2}.*\n)+)/m.exec(out) ?? [];
  const file = join(root, `pasted-${targets++}.ts`);
  await writeFile(file, code);
  const log = vi.spyOn(console, 'log').mockImplementation(() => {});
  try {
    await import(file);
    const [, directory = ''] = /loadPolicy\("(.+)"\)/.exec(code) ?? [];
    return { lines: log.mock.calls.map(String), policy: await loadPolicy(directory, { threads: 1 }) };
  } finally {
    log.mockRestore();
  }
}

describe('export', () => {
  it('copies the last policy of an agent without its optimiser, and says how to load it', async () => {
    const to = target();
    const { code, out, err } = await drmas(['export', run.path, '--agent', 'verifier', '--to', to]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(await readdir(to)).toEqual([
      'config.json',
      'drmas-agent.json',
      'drmas_tokenizer.json',
      'generation_config.json',
      'model.safetensors',
      'tokenizer.json',
      'tokenizer_config.json',
    ]);
    const source = join(run.path, 'checkpoints', 'step-000004', 'verifier', 'model.safetensors');
    expect(await readFile(join(to, 'model.safetensors'))).toEqual(await readFile(source));
    expect(out).toContain(`policy 'verifier', step 4, written to ${to}`);
    expect(out).toContain(`AutoModelForCausalLM.from_pretrained("${to}")`);
    expect(out).toContain(`AutoTokenizer.from_pretrained("${to}")`);
    expect(out).toContain(`npx drmas chat ${shellWord(to)}`);

    const policy = await loadPolicy(to, { threads: 1 });
    const prompt = policy.tokenizer.chat([user('1')]);
    expect((await policy.generate({ prompt, maxTokens: 3, temperature: 1, seed: 1 })).tokens.length).toBeGreaterThan(0);
    await policy.dispose();
  });

  it('lets the system prompt and the sampling of evaluations travel, which loadPolicy and transformers take up', async () => {
    const to = target();
    await drmas(['export', run.path, '--agent', 'solver', '--to', to]);
    const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 6 };
    const policy = await loadPolicy(to, { threads: 1 });
    expect(policy.agent).toEqual({ name: 'solver', system: '<solver>', sampling });
    expect(JSON.parse(await readFile(join(to, 'generation_config.json'), 'utf8'))).toEqual({
      do_sample: true,
      temperature: 1,
      top_p: 1,
      top_k: 0,
      max_new_tokens: 6,
      eos_token_id: policy.tokenizer.stopTokens[0],
    });
    const prompt = policy.tokenizer.chat([system('<solver>'), user('1')]);
    const { tokens } = await policy.generate({ prompt, seed: 2 });
    expect(tokens.length).toBeLessThanOrEqual(6);
    const pieces: string[] = [];
    const answered = await policy.answer('1', { seed: 2, onText: (piece) => pieces.push(piece) });
    expect(answered.tokens).toEqual(tokens);
    expect(pieces.join('')).toBe(answered.text);
    expect(await policy.answer([system('<solver>'), user('1')], { seed: 2 })).toEqual(answered);
    expect((await policy.answer('1', { seed: 2, maxTokens: 1, temperature: 0 })).tokens).toHaveLength(1);
    await expect(policy.answer('1', { seed: 2, topP: 2 })).rejects.toThrow('topP: expected a number above 0 and at');
    await policy.dispose();
  });

  it("prints code that answers a question of the run with the agent's prompt and sampling where it is pasted", async () => {
    const to = target();
    const { out } = await drmas(['export', run.path, '--agent', 'solver', '--to', to]);
    const { lines, policy } = await runSnippet(out);
    const question = /policy\.answer\("(.+)", \{ seed: 1 \}\)/.exec(out)?.[1] ?? '';
    expect(question).toMatch(/^\d+a[-+*]\d+$/);
    const prompt = policy.tokenizer.chat([system('<solver>'), user(question)]);
    const { tokens } = await policy.generate({ ...policy.agent?.sampling, prompt, seed: 1 });
    const [stop] = policy.tokenizer.stopTokens;
    expect(lines).toEqual([policy.tokenizer.decode(tokens.filter((token) => token !== stop))]);
    const messages = `[{"role": "system", "content": "<solver>"}, {"role": "user", "content": "${question}"}]`;
    expect(out).toContain(`  messages = ${messages}\n`);
    await policy.dispose();
  });

  it('names the tools that the agent was offered, as requests take them', async () => {
    const path = join(root, 'with-tools');
    await cp(run.path, path, { recursive: true });
    const file = join(path, 'episodes', 'evaluation-000004.jsonl');
    const tool = { name: 'price', parameters: { type: 'object' } };
    const episodes = (await readFile(file, 'utf8')).replaceAll('{"id":', `{"tools":${JSON.stringify([tool])},"id":`);
    await writeFile(file, episodes);
    for (const format of ['hf', 'gguf']) {
      const { out } = await drmas(['export', path, '--agent', 'solver', '--format', format, '--to', target()]);
      expect(out).toContain('the agent was trained with tools: price.');
      expect(out).toContain(`\n  ${JSON.stringify([{ type: 'function', function: tool }])}\n`);
    }
    expect((await drmas(['export', run.path, '--agent', 'solver', '--to', target()])).out).not.toContain('tools');
  });

  it('prints code that offers these tools to an agent that calls them', async () => {
    const path = join(root, 'with-calls');
    await cp(run.path, path, { recursive: true });
    const tool = { name: 'price', parameters: { type: 'object' } };
    const episodes = join(path, 'episodes', 'evaluation-000004.jsonl');
    const text = (await readFile(episodes, 'utf8')).replaceAll('{"id":', `{"tools":${JSON.stringify([tool])},"id":`);
    await writeFile(episodes, text);
    const { digest, ...record } = JSON.parse(await readFile(join(path, 'recipe.json'), 'utf8'));
    record.agents.solver.tools = 'plain';
    await writeFile(join(path, 'recipe.json'), JSON.stringify(record));
    const { out } = await drmas(['export', path, '--agent', 'solver', '--to', target()]);
    expect(out).toContain(`  const tools = ${JSON.stringify([tool])};\n`);
    expect(out).toContain('read the calls; other programs do neither.');
    expect(out).toMatch(/const \{ text, toolCalls \} = await policy\.answer\(.*, \{ tools, seed: 1 \}\);\n/);
    const { lines, policy } = await runSnippet(out);
    expect(lines).toHaveLength(1);
    await policy.dispose();
  });

  it('prints such code for an agent that reads what another one wrote', { tags: 'verify' }, async () => {
    const { out } = await drmas(['export', run.path, '--agent', 'verifier', '--to', target()]);
    expect(out).toMatch(
      /policy\.answer\(\[\{"role": "user", "content": ".+"\}, \{"role": "assistant", "content": ".*"\}\],/,
    );
    const { policy, lines } = await runSnippet(out);
    expect(lines).toHaveLength(1);
    await policy.dispose();
  });

  it('goes on without them, and says why, where an earlier version recorded none and the recipe is not there', {
    tags: 'verify',
  }, async () => {
    const old = await trainTiny(root, tinyRecipe({}, ['training.steps=1']));
    const file = join(old.path, 'recipe.json');
    const { agents: _, digest, ...record } = JSON.parse(await readFile(file, 'utf8'));
    await writeFile(file, JSON.stringify(record));
    const to = target();
    const { code, err } = await drmas(['export', old.path, '--agent', 'solver', '--to', to]);
    expect(code).toBe(0);
    expect(err).toMatch(/^cannot export the system prompt and sampling of solver: there is no recipe 'tiny'/);
    expect(await readdir(to)).toEqual([
      ...['config.json', 'drmas_tokenizer.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json'],
    ]);
    const policy = await loadPolicy(to, { threads: 1 });
    expect(policy.agent).toBeUndefined();
    await expect(policy.generate({ prompt: [1], seed: 1 })).rejects.toThrow(/maxTokens: expected .* found undefined/);
    await policy.dispose();
  });

  it('takes an earlier step', async () => {
    const to = target();
    const { out } = await drmas(['export', run.path, '--agent', 'solver', '--checkpoint', '2', '--to', to]);
    expect(out).toContain("policy 'solver', step 2, written to");
    const source = join(run.path, 'checkpoints', 'step-000002', 'solver', 'model.safetensors');
    expect(await readFile(join(to, 'model.safetensors'))).toEqual(await readFile(source));
  });

  it('finds the policy that agents share', async () => {
    const shared = await trainTiny(root, tinyRecipe({ assign: 'shared' }, ['training.steps=1']));
    const { code, out } = await drmas(['export', shared.path, '--agent', 'solver', '--to', target()]);
    expect(code).toBe(0);
    expect(out).toMatch(/^policy 'shared' of agent solver, step 1, written to/);
  });

  it('copies an adapter as one, or merged into its base, with the same logits', { tags: 'verify' }, async () => {
    const model = lora(tinyModel, { rank: 2 });
    const adapted = await trainTiny(root, tinyRecipe({ model }, ['training.steps=1']));
    const [apart, whole] = [target(), target()];
    const words = ['export', adapted.path, '--agent', 'solver', '--to'];
    const { out } = await drmas([...words, apart, '--format', 'peft']);
    expect(await readdir(apart)).toEqual([
      'adapter_config.json',
      'adapter_model.safetensors',
      'base',
      'drmas-agent.json',
      'drmas_adapter.json',
    ]);
    expect(out).toContain(`base = AutoModelForCausalLM.from_pretrained("${join(apart, 'base')}")`);
    expect(out).toContain(`--enable-lora --lora-modules solver=${apart}`);
    expect(await drmas([...words, whole])).toMatchObject({ code: 0, err: '' });
    expect(await readdir(whole)).toContain('generation_config.json');

    const policies = await Promise.all([apart, whole].map((directory) => loadPolicy(directory, { threads: 1 })));
    const [a, b] = await Promise.all(policies.map((policy) => policy.logits([1, 2, 3])));
    for (const [i, logit] of (a ?? []).entries()) expect(b?.[i]).toBeCloseTo(logit, 4);
    for (const policy of policies) await policy.dispose();
  });

  it('names the limit of vLLM for an adapter of a rank above its default', { tags: 'verify' }, async () => {
    const model = lora(tinyModel, { rank: 17 });
    const { path } = await trainTiny(root, tinyRecipe({ model }, ['training.steps=1']));
    const { out } = await drmas(['export', path, '--agent', 'solver', '--to', target(), '--format', 'peft']);
    expect(out).toContain('--enable-lora --max-lora-rank 32 --lora-modules');
  });

  it('writes a file for llama.cpp, with prompt and sampling for Ollama, and says how to serve it', async () => {
    const to = target();
    const words = ['export', run.path, '--agent', 'solver', '--format', 'gguf', '--to', to];
    const { code, out, err } = await drmas(words);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(await readdir(to)).toEqual(['Modelfile', 'drmas-agent.json', 'model.gguf']);
    expect((await readFile(join(to, 'model.gguf'))).subarray(0, 4).toString()).toBe('GGUF');
    const parameters = ['temperature 1', 'top_p 1', 'top_k 0', 'min_p 0', 'repeat_penalty 1', 'num_predict 6'];
    expect((await readFile(join(to, 'Modelfile'), 'utf8')).split('\n')).toEqual([
      ...['FROM ./model.gguf', ...parameters.map((line) => `PARAMETER ${line}`), 'SYSTEM """<solver>"""', ''],
    ]);
    expect(out).toContain('--jinja --temp 1 --top-p 1 --top-k 0 --min-p 0 --repeat-penalty 1 -n 6');
    const body = /-d '(.+)'/.exec(out)?.[1] ?? '';
    expect(JSON.parse(body).messages[0]).toEqual({ role: 'system', content: '<solver>' });
    expect(await drmas(words)).toMatchObject({ code: 2, err: `error: ${to} exists; drmas overwrites nothing\n` });

    // The agent in this directory, or the file by its path, answers with the run's prompt as the run does.
    const chat = (...from: string[]) => drmas(['chat', ...from, '--greedy', '--threads', '1'], { input: '1+2\n' });
    const inRun = await chat(run.path, '--agent', 'solver');
    expect(inRun).toMatchObject({ code: 0, err: '' });
    for (const from of [to, join(to, 'model.gguf')]) expect(await chat(from)).toEqual(inRun);
    const { bytes, dispose } = await openAgentModels({ from: to }, nodeHost({ threads: 1 }));
    await dispose();
    expect(bytes).toBe((await stat(join(to, 'model.gguf'))).size);
  });

  it('says what other programs cannot read of a vocabulary, before anything is written where it is all', {
    tags: 'verify',
  }, async () => {
    const symbols = [...arithmeticSymbols, '0<'];
    const model = { ...tinyModel, tokenizer: { ...tinyModel.tokenizer, symbols } } as typeof tinyModel;
    const { path } = await trainTiny(root, tinyRecipe({ model }, ['training.steps=1']));
    const [file, directory] = [target(), target()];
    const words = ['export', path, '--agent', 'solver', '--to'];
    expect(await drmas([...words, file, '--format', 'gguf'])).toEqual({
      code: 2,
      out: '',
      err: expect.stringMatching(/^error: a GGUF file cannot express the symbols: "0<" ends as "<.*" begins\n$/),
    });
    expect(existsSync(file)).toBe(false);
    expect(await drmas([...words, directory])).toMatchObject({
      code: 0,
      err: 'there is no tokenizer.json, since symbol "0<" overlaps "<end>", which ends a response\n',
    });
    expect(existsSync(join(directory, 'tokenizer.json'))).toBe(false);
  });

  it('refuses weights that cannot be read, of a whole model and of an adapter', { tags: 'verify' }, async () => {
    const adapted = await trainTiny(root, tinyRecipe({ model: lora(tinyModel, { rank: 2 }) }, ['training.steps=1']));
    for (const [{ path }, name, format] of [
      [await trainTiny(root, tinyRecipe({}, ['training.steps=1'])), 'model', 'hf'],
      [adapted, 'adapter_model', 'peft'],
    ] as const) {
      const file = join(path, 'checkpoints', 'step-000001', 'solver', `${name}.safetensors`);
      await truncate(file, 300);
      const to = target();
      const { code, err } = await drmas(['export', path, '--agent', 'solver', '--to', to, '--format', format]);
      expect({ code, err }).toEqual({
        code: 2,
        err: expect.stringContaining(`error: ${file} has 300 bytes, was written with`),
      });
      expect(existsSync(to)).toBe(false);
    }
  });

  it('overwrites nothing', async () => {
    const to = join(root, 'precious');
    await writeFile(to, 'mine');
    const { code, err } = await drmas(['export', run.path, '--agent', 'solver', '--to', to]);
    expect({ code, err }).toEqual({ code: 2, err: `error: ${to} exists; drmas overwrites nothing\n` });
    expect(await readFile(to, 'utf8')).toBe('mine');
  });

  it.each([
    [['--agent', 'verifyer'], /the run has no agent 'verifyer'; did you mean 'verifier'\? \(known: solver, verifier\)/],
    [['--agent', 'solver', '--checkpoint', '3'], /has no checkpoint '3'; it has step-000002, step-000004/],
    [['--agent', 'solver', '--format', 'onnx'], /Allowed choices are hf, peft, gguf/],
    [['--agent', 'solver', '--format', 'peft'], /policy 'solver' is a whole model, no adapter: --format hf/],
    [[], /run has several agents; choose one with --agent: solver, verifier\n$/],
  ])('refuses %j', async (words, message) => {
    const to = target();
    const { code, out, err } = await drmas(['export', run.path, ...words, '--to', to]);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
    expect(existsSync(to)).toBe(false);
  });

  it('refuses a run without a checkpoint, and what is no run', async () => {
    const empty = await createRun(root, tinyRecipe());
    const words = (path: string) => ['export', path, '--agent', 'solver', '--to', target()];
    expect(await drmas(words(empty.path))).toMatchObject({
      code: 2,
      err: expect.stringMatching(/no checkpoint to export/),
    });
    expect(await drmas(words(root))).toMatchObject({ code: 2, err: expect.stringMatching(/is not a run/) });
  });
});
