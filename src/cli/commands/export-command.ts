import { basename, dirname, join, resolve } from 'node:path';
import { EXPORT_FORMATS } from '../../backends/backend-declaration.js';
import { backendNamed } from '../../backends/registry.js';
import { DrmasError, messageOf, RunError } from '../../core/errors.js';
import { isObject } from '../../core/validation/objects.js';
import { type AgentProfile, writeAgentProfile } from '../../model/agent-profile.js';
import { nodeFiles } from '../../platform/node-files.js';
import { shown, suggestion } from '../../recipe/explain.js';
import { agentsOfRun, checkpointOf } from '../../run/request.js';
import { isNoOptimizer, requireWhole } from '../../store/files/digests.js';
import { writeDirectory } from '../../store/files/write-directory.js';
import { RunDirectory } from '../../store/run-directory.js';
import { argument, defineCommand } from '../define-command.js';
import { choice, integer, requiredText } from '../flags.js';

export const exportPolicy = defineCommand({
  name: 'export',
  description: "an agent's policy as a directory of its own, for transformers, peft, servers and loadPolicy",
  details:
    "an agent's policy as a Hugging Face directory, or its adapter as PEFT's (`--format peft`), without the optimiser, and how to load and serve it. `--step`",
  arguments: [argument('run', 'directory of the run')],
  flags: {
    agent: requiredText('name', 'agent of the team'),
    to: requiredText('directory', 'where to; must not exist'),
    step: integer(0, 'checkpoint of this step (default: the last)'),
    format: choice(
      'format',
      EXPORT_FORMATS,
      'hf',
      'hf: a whole model, an adapter merged into its base; peft: the adapter',
    ),
  },
  examples: [
    'drmas export runs/first --agent solver --to models/solver',
    'drmas export runs/first --agent solver --step 40 --to models/solver-40',
  ],
  async run(context, [path], { agent, to, step, format }) {
    const run = await RunDirectory.open(path);
    const { record } = run;
    const policy = policyOf(record.resolved.assign, agent);
    const checkpoint = await checkpointOf(run, step === undefined ? undefined : String(step), 'export');
    const tell = (why: string) => context.stderr.write(`${why}\n`);
    const profile = await profileOf(run, agent, tell);
    const from = join(checkpoint.directory, policy);
    await requireWhole(nodeFiles, checkpoint.directory, (file) => file.startsWith(`${policy}/`) && isNoOptimizer(file));
    const prepared = await backendOfRun(record.resolved, policy).prepareExport({
      policy,
      from,
      format,
      settings: entryOf(record.resolved.policies, policy),
      environment: context.environment,
      tell,
    });
    await create(to, async (directory) => {
      await prepared.write(directory);
      if (profile !== undefined) await writeAgentProfile(nodeFiles, directory, profile);
    });
    const who = policy === agent ? `policy '${policy}'` : `policy '${policy}', which speaks for ${agent},`;
    const names = await nodeFiles.list(to);
    const lines = [`${who} of step ${checkpoint.step} lies in ${to}: ${names.join(', ')}`, ''];
    const hasTokenizer = names.includes('tokenizer.json');
    if (format === 'peft') lines.push(...howToAdapt(to, await prepared.baseOf(to), agent));
    else lines.push(...howToLoad(to, hasTokenizer, profile));
    lines.push(...withDrmas(to, profile));
    for (const line of lines) context.stdout.write(`${line}\n`);
    return 0;
  },
});

/** The agent without its weights; where it cannot be known the export goes on without, and `tell` hears why. */
async function profileOf(
  run: RunDirectory,
  agent: string,
  tell: (why: string) => void,
): Promise<AgentProfile | undefined> {
  try {
    return (await agentsOfRun(run))[agent];
  } catch (error) {
    tell(`the system prompt and sampling of ${agent} are not exported: ${messageOf(error)}`);
    return undefined;
  }
}

/** The backend that trained a policy of a run, by what the run recorded. @throws RunError */
function backendOfRun({ backend, policies }: Readonly<Record<string, unknown>>, policy: string) {
  const type = entryOf(entryOf(entryOf(policies, policy), 'backend') ?? backend, 'type');
  const row = typeof type === 'string' ? backendNamed(type) : undefined;
  if (row === undefined) throw new RunError(`the run was trained on a backend that there is not: ${shown(type)}`);
  return row;
}

function entryOf(section: unknown, key: string): unknown {
  return isObject(section) ? section[key] : undefined;
}

/** The policy of an agent. @throws RunError naming the agents that there are */
function policyOf(assign: unknown, agent: string): string {
  const policies = new Map<string, unknown>(
    Object.entries(typeof assign === 'object' && assign !== null ? assign : {}),
  );
  const policy = policies.get(agent);
  if (typeof policy === 'string') return policy;
  if (policies.has(agent)) throw new RunError(`agent '${agent}' is frozen: the run has trained no policy of its`);
  throw new RunError(`the run has no agent '${agent}'${suggestion(agent, [...policies.keys()])}`);
}

/** Creates a directory that is complete or not there. @throws RunError when the target exists or cannot be written */
async function create(to: string, fill: (directory: string) => Promise<void>): Promise<void> {
  const target = resolve(to);
  if (await nodeFiles.exists(target)) throw new RunError(`${to} exists; nothing is overwritten`);
  try {
    await nodeFiles.makeDirectory(dirname(target));
    await writeDirectory(nodeFiles, dirname(target), basename(target), fill);
  } catch (error) {
    if (error instanceof DrmasError) throw error;
    throw new RunError(`${to} cannot be written: ${messageOf(error)}`);
  }
}

function howToLoad(to: string, hasTokenizer: boolean, profile: AgentProfile | undefined): string[] {
  const path = JSON.stringify(to);
  const load = [
    'with transformers, in Python',
    `  from transformers import AutoModelForCausalLM${hasTokenizer ? ', AutoTokenizer' : ''}`,
    `  model = AutoModelForCausalLM.from_pretrained(${path})`,
  ];
  if (!hasTokenizer) return [...load, '  # its tokenizer is one of drmas (drmas_tokenizer.json): feed token ids', ''];
  const role = (name: string, content: string) => `{"role": "${name}", "content": ${JSON.stringify(content)}}`;
  const { system } = profile ?? {};
  const messages = [...(system === undefined ? [] : [role('system', system)]), role('user', '...')];
  return [
    ...load,
    `  tokenizer = AutoTokenizer.from_pretrained(${path})`,
    `  messages = [${messages.join(', ')}]`,
    '  prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True, return_tensors="pt")',
    '  answer = model.generate(**prompt)[0, prompt["input_ids"].shape[1]:]',
    '  print(tokenizer.decode(answer))',
    '',
    `served with the protocol of OpenAI${system === undefined ? '' : '; conversations begin with the same system prompt'}`,
    `  vllm serve ${path}`,
    '',
  ];
}

function howToAdapt(to: string, base: string, agent: string): string[] {
  const [path, whole] = [JSON.stringify(to), JSON.stringify(base)];
  return [
    'with transformers and peft, in Python',
    '  from transformers import AutoModelForCausalLM',
    '  from peft import PeftModel',
    `  base = AutoModelForCausalLM.from_pretrained(${whole})`,
    `  model = PeftModel.from_pretrained(base, ${path})`,
    '',
    'served with the protocol of OpenAI',
    `  vllm serve ${whole} --enable-lora --lora-modules ${agent}=${path}`,
    '',
  ];
}

function withDrmas(to: string, profile: AgentProfile | undefined): string[] {
  const sampling = profile === undefined ? 'maxTokens: 64, temperature: 1, seed: 1' : 'seed: 1';
  return [
    'with drmas',
    "  import { loadPolicy } from 'drmas';",
    `  const policy = await loadPolicy(${JSON.stringify(to)});`,
    `  const { text } = await policy.answer('...', { ${sampling} });`,
    '  console.log(text);',
    '  await policy.dispose();',
    '',
    'in a terminal, and as a server that clients of OpenAI talk to',
    `  drmas chat ${JSON.stringify(to)}`,
    `  drmas serve ${JSON.stringify(to)}`,
  ];
}
