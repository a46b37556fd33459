import { basename, dirname, join, resolve } from 'node:path';
import { EXPORT_FORMATS } from '../../backends/backend-declaration.js';
import { backendNamed } from '../../backends/registry.js';
import { DrmasError, messageOf, RunError } from '../../core/errors.js';
import { type Message, user } from '../../core/message.js';
import { isObject } from '../../core/validation/objects.js';
import { type AgentProfile, writeAgentProfile } from '../../model/agent-profile.js';
import { nodeFiles } from '../../platform/node-files.js';
import { shown, suggestion } from '../../recipe/explain.js';
import { agentsOfRun, checkpointOf } from '../../run/request.js';
import { readEpisodes } from '../../store/episode-files.js';
import { isNoOptimizer, requireWhole } from '../../store/files/digests.js';
import { writeDirectory } from '../../store/files/write-directory.js';
import { RunDirectory } from '../../store/run-directory.js';
import { EPISODES } from '../../store/run-files.js';
import { argument, defineCommand } from '../define-command.js';
import { howToUse, modelfile } from '../export-usage.js';
import { choice, integer, requiredText } from '../flags.js';

export const exportPolicy = defineCommand({
  name: 'export',
  description: "an agent's policy as a directory of its own, for transformers, peft, llama.cpp, servers and loadPolicy",
  details:
    "an agent's policy as a Hugging Face directory, its adapter as PEFT's (`--format peft`) or a file for llama.cpp, Ollama and LM Studio (`--format gguf`), without the optimiser, and how to load and serve it. `--step`",
  arguments: [argument('run', 'directory of the run')],
  flags: {
    agent: requiredText('name', 'agent of the team'),
    to: requiredText('directory', 'where to; must not exist'),
    step: integer(0, 'checkpoint of this step (default: the last)'),
    format: choice(
      'format',
      EXPORT_FORMATS,
      'hf',
      'hf: a whole model, an adapter merged into its base; peft: the adapter; gguf: a whole model for llama.cpp',
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
      if (format === 'gguf') await nodeFiles.write(join(directory, 'Modelfile'), modelfile(profile));
    });
    const who = policy === agent ? `policy '${policy}'` : `policy '${policy}', which speaks for ${agent},`;
    const names = await nodeFiles.list(to);
    const example = await exampleOf(run, agent, profile?.system);
    const base = format === 'peft' ? { base: await prepared.baseOf(to) } : {};
    const usage = howToUse({ agent, to, format, files: names, ...base, profile, example });
    const lines = [`${who} of step ${checkpoint.step} lies in ${to}: ${names.join(', ')}`, '', ...usage];
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

/** The episodes in which an example is looked for, and the longest one that is shown, in characters. */
const [EXAMPLE_EPISODES, LONGEST_EXAMPLE] = [32, 600];

/**
 * A conversation that the agent had in the last evaluation, without its system prompt: the shortest one that needs no
 * tools. Where there is none that can be shown, a user's message to fill in.
 */
async function exampleOf(run: RunDirectory, agent: string, prompt: string | undefined): Promise<readonly Message[]> {
  const directory = join(run.path, EPISODES);
  const last = (await nodeFiles.list(directory)).findLast((name) => name.startsWith('evaluation-'));
  const episodes =
    last === undefined ? [] : await readEpisodes(nodeFiles, join(directory, last), EXAMPLE_EPISODES).catch(() => []);
  const turns = episodes.flatMap((episode) => episode.turns).filter((turn) => turn.agent === agent);
  const conversations = turns.map(({ messages: [first, ...rest] }) => {
    const isPrompt = first?.role === 'system' && first.content === prompt;
    return first === undefined || isPrompt ? rest : [first, ...rest];
  });
  const shown = conversations.filter(
    (messages) => messages.length > 0 && messages.every(({ role, toolCalls }) => role !== 'tool' && !toolCalls),
  );
  const lengthOf = (messages: readonly Message[]) => messages.reduce((sum, { content }) => sum + content.length, 0);
  const [shortest] = shown.toSorted((a, b) => lengthOf(a) - lengthOf(b));
  return shortest !== undefined && lengthOf(shortest) <= LONGEST_EXAMPLE ? shortest : [user('...')];
}

/** The backend that trained a policy of a run, by what the run recorded. @throws RunError */
function backendOfRun({ backend, policies }: Readonly<Record<string, unknown>>, policy: string) {
  const settings = entryOf(policies, policy);
  const isTable = entryOf(entryOf(settings, 'model'), 'type') === 'choice-table';
  const type = isTable ? 'table' : entryOf(entryOf(settings, 'backend') ?? backend, 'type');
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
