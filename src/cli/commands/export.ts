import { copyFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { messageOf, RunError } from '../../core/errors.js';
import { suggestion } from '../../recipe/explain.js';
import { writeDirectory } from '../../runs/atomic.js';
import { type Checkpoint, Checkpoints } from '../../runs/checkpoints.js';
import { nodeFiles } from '../../runs/node-files.js';
import { RunDirectory } from '../../runs/run-directory.js';
import type { CommandContext } from '../context.js';

export interface ExportFlags {
  readonly agent: string;
  readonly to: string;
  readonly step?: number;
}

/** `drmas export <run> --agent NAME --to DIR`: an agent's policy as a Hugging Face directory of its own. */
export async function exportCommand(context: CommandContext, path: string, flags: ExportFlags): Promise<number> {
  const { record } = await RunDirectory.open(path);
  const policy = policyOf(record.resolved.assign, flags.agent);
  const checkpoint = await checkpointOf(path, flags.step);
  const from = join(checkpoint.directory, policy);
  const names = (await nodeFiles.list(from)).filter((name) => !name.startsWith('optimizer'));
  if (!names.includes('config.json')) throw new RunError(`${from} holds no model`);
  await copy(from, names, flags.to);
  const who = policy === flags.agent ? `policy '${policy}'` : `policy '${policy}', which speaks for ${flags.agent},`;
  const lines = [
    `${who} of step ${checkpoint.step} lies in ${flags.to}: ${names.join(', ')}`,
    '',
    ...howToLoad(flags.to, names.includes('tokenizer.json')),
  ];
  for (const line of lines) context.stdout.write(`${line}\n`);
  return 0;
}

/** @throws RunError naming the agents that there are */
function policyOf(assign: unknown, agent: string): string {
  const policies = new Map<string, unknown>(
    Object.entries(typeof assign === 'object' && assign !== null ? assign : {}),
  );
  const policy = policies.get(agent);
  if (typeof policy === 'string') return policy;
  throw new RunError(`the run has no agent '${agent}'${suggestion(agent, [...policies.keys()])}`);
}

/** @throws RunError naming the steps that there are */
async function checkpointOf(path: string, step: number | undefined): Promise<Checkpoint> {
  const checkpoints = await new Checkpoints(nodeFiles, join(path, 'checkpoints')).list();
  const found = step === undefined ? checkpoints.at(-1) : checkpoints.find((checkpoint) => checkpoint.step === step);
  if (found !== undefined) return found;
  if (checkpoints.length === 0) throw new RunError(`${path} has no checkpoint to export`);
  const steps = checkpoints.map((checkpoint) => checkpoint.step).join(', ');
  throw new RunError(`${path} has no checkpoint of step ${step}; there are those of ${steps}`);
}

/** Complete or not there. @throws RunError when the target exists or cannot be written */
async function copy(from: string, names: readonly string[], to: string): Promise<void> {
  const target = resolve(to);
  if (await nodeFiles.exists(target)) throw new RunError(`${to} exists; nothing is overwritten`);
  try {
    await nodeFiles.makeDirectory(dirname(target));
    await writeDirectory(nodeFiles, dirname(target), basename(target), async (directory) => {
      for (const name of names) await copyFile(join(from, name), join(directory, name));
    });
  } catch (error) {
    throw new RunError(`${to} cannot be written: ${messageOf(error)}`);
  }
}

function howToLoad(to: string, hasTokenizer: boolean): string[] {
  const path = JSON.stringify(to);
  return [
    'with transformers, in Python',
    `  from transformers import AutoModelForCausalLM${hasTokenizer ? ', AutoTokenizer' : ''}`,
    `  model = AutoModelForCausalLM.from_pretrained(${path})`,
    ...(hasTokenizer
      ? [`  tokenizer = AutoTokenizer.from_pretrained(${path})`]
      : ['  # its tokenizer is one of drmas (drmas_tokenizer.json): feed token ids']),
    '',
    'with drmas',
    "  import { loadPolicy, user } from 'drmas';",
    `  const policy = await loadPolicy(${path});`,
    "  const prompt = policy.tokenizer.chat([user('...')]);",
    '  const { tokens } = await policy.generate({ prompt, maxTokens: 64, temperature: 1, seed: 1 });',
    '  console.log(policy.tokenizer.decode(tokens));',
    '  await policy.dispose();',
    ...(hasTokenizer ? ['', 'served with the protocol of OpenAI', `  vllm serve ${path}`] : []),
  ];
}
