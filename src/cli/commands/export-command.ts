import { basename, dirname, join, resolve } from 'node:path';
import { EXPORT_FORMATS, type ExportFormat, type PreparedExport } from '@drmas/engine/backends';
import { isNoOptimizer, writeDirectory } from '@drmas/engine/disk';
import { DrmasError, isObject, messageOf, RunError, shown, suggestion } from '@drmas/engine/errors';
import { readAdapterDescription } from '@drmas/engine/formats';
import { type AgentProfile, kindOfType, writeAgentProfile } from '@drmas/engine/model';
import { type Message, type Tool, user } from '@drmas/engine/nouns';
import { commandText, nodeFiles, removeStale, TEMPORARY } from '@drmas/engine/platform';
import { agentModelPath, EPISODES, RunDirectory, readEpisodes, type StoredTurn } from '../../method/store.js';
import { agentsOfRun, backendOfRun, requireServerOfRun, serverKeyOfRun, whileHeld } from '../../runs/index.js';
import { argument, defineCommand } from '../define-command.js';
import { allowEndpoint, checkpoint, choice, requiredText, text } from '../flags.js';

export const exportPolicy = defineCommand({
  name: 'export',
  description: "write an agent's model for transformers, peft, llama.cpp, servers or loadPolicy",
  details:
    "writes an agent's model as a Hugging Face directory, as a PEFT adapter (`--format peft`), or as a file for llama.cpp, Ollama and LM Studio (`--format gguf`), without optimiser state. Prints how to load and serve it",
  arguments: [argument('run', 'directory of the run')],
  flags: {
    agent: text('name', 'agent of the team; required if it has several that train'),
    to: requiredText('directory', 'directory to create; it must not exist'),
    allowEndpoint,
    checkpoint,
    format: choice(
      'format',
      EXPORT_FORMATS,
      'hf',
      'hf: a whole model, with the adapter merged; peft: the adapter; gguf: a whole model for llama.cpp',
    ),
  },
  examples: [
    'drmas export runs/first --agent solver --to models/solver',
    'drmas export runs/first --agent solver --checkpoint 40 --to models/solver-40',
  ],
  async run(context, [path], { agent: wanted, to, checkpoint: name, format }) {
    const run = await RunDirectory.open(path);
    const { record } = run;
    const agent = wanted ?? onlyAgent(path, record.resolved.assign);
    const policy = policyOf(record.resolved.assign, agent);
    const tell = (why: string) => context.stderr.write(`${why}\n`);
    const profile = await profileOf(run, agent, tell);
    const { step, prepared } = await whileHeld(run, name, 'export', async (stored) => {
      const from = join(stored.directory, agentModelPath(record.resolved.policies, policy, agent));
      const unchecked = await run.requireWhole(stored, (file) => file.startsWith(`${policy}/`) && isNoOptimizer(file));
      if (unchecked !== undefined) tell(unchecked);
      const prepared = await (await backendOfPolicy(run, policy)).prepareExport({
        policy,
        from,
        format,
        settings: entryOf(record.resolved.policies, policy),
        environment: context.environment,
        apiKey: () => serverKeyOfRun(run, policy),
        requireServer: (url) => requireServerOfRun(run, url),
        tell,
      });
      await create(to, async (directory) => {
        await prepared.write(directory);
        if (profile !== undefined) await writeAgentProfile(nodeFiles, directory, profile);
        if (format === 'gguf') await nodeFiles.write(join(directory, 'Modelfile'), modelfile(profile));
      });
      return { step: stored.step, prepared };
    });
    const who = policy === agent ? `policy '${policy}'` : `policy '${policy}' of agent ${agent}`;
    const names = await nodeFiles.list(to);
    const turns = await recentTurns(run, agent);
    const [example, tools] = [exampleIn(turns, profile?.system), toolsIn(turns)];
    const adapter = format === 'peft' ? await adapterIn(to, prepared) : {};
    const usage = howToUse({ agent, to, format, files: names, ...adapter, profile, example, tools });
    const lines = [`${who}, step ${step}, written to ${to}: ${names.join(', ')}`, '', ...usage];
    for (const line of lines) context.stdout.write(`${line}\n`);
    return 0;
  },
});

/** The base and the rank of an exported adapter. */
async function adapterIn(directory: string, { baseOf }: PreparedExport) {
  const { rank } = (await readAdapterDescription(nodeFiles, directory)).settings;
  return { base: await baseOf(directory), rank };
}

/** The agent's prompt and sampling. If they are not known, `tell` gets the reason and the export continues. */
async function profileOf(
  run: RunDirectory,
  agent: string,
  tell: (why: string) => void,
): Promise<AgentProfile | undefined> {
  try {
    return (await agentsOfRun(run))[agent];
  } catch (error) {
    tell(`cannot export the system prompt and sampling of ${agent}: ${messageOf(error)}`);
    return undefined;
  }
}

/** Episodes that are searched for an example, and the greatest length of the example in characters. */
const [EXAMPLE_EPISODES, LONGEST_EXAMPLE] = [32, 600];

async function recentTurns(run: RunDirectory, agent: string): Promise<readonly StoredTurn[]> {
  const directory = join(run.path, EPISODES);
  const last = (await nodeFiles.list(directory)).findLast((name) => name.startsWith('evaluation-'));
  const episodes =
    last === undefined ? [] : await readEpisodes(nodeFiles, join(directory, last), EXAMPLE_EPISODES).catch(() => []);
  return episodes.flatMap((episode) => episode.turns).filter((turn) => turn.agent === agent);
}

/** The tools that the agent was offered, each once. */
const toolsIn = (turns: readonly StoredTurn[]): readonly Tool[] => [
  ...new Map(turns.flatMap(({ tools = [] }) => tools.map((tool) => [tool.name, tool] as const))).values(),
];

/**
 * The agent's shortest conversation without a call of a tool, without its system prompt. If there is none, or it is too
 * long, a user's message to fill in.
 */
function exampleIn(turns: readonly StoredTurn[], prompt: string | undefined): readonly Message[] {
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

/** The backend that trained a policy. @throws RunError */
async function backendOfPolicy(run: RunDirectory, policy: string) {
  const { backend, policies } = run.record.resolved;
  const settings = entryOf(policies, policy);
  const kind = kindOfType(entryOf(entryOf(settings, 'model'), 'type'));
  const type = kind !== undefined ? kind.backend : entryOf(entryOf(settings, 'backend') ?? backend, 'type');
  const row = await backendOfRun(run, type);
  if (row === undefined)
    throw new RunError(`neither this version nor the recipe has the backend ${shown(type)}, which trained the run`);
  return row;
}

function entryOf(section: unknown, key: string): unknown {
  return isObject(section) ? section[key] : undefined;
}

/** The agent of a run that trains only one. @throws RunError with the names if there are several */
function onlyAgent(path: string, assign: unknown): string {
  const trained = Object.entries(isObject(assign) ? assign : {}).filter(([, policy]) => typeof policy === 'string');
  const [first, ...others] = trained.map(([name]) => name);
  if (first !== undefined && others.length === 0) return first;
  throw new RunError(
    `${path} has several agents; choose one with --agent: ${trained.map(([name]) => name).join(', ')}`,
  );
}

/** The policy of an agent. @throws RunError with the agents of the run */
function policyOf(assign: unknown, agent: string): string {
  const policies = new Map<string, unknown>(Object.entries(isObject(assign) ? assign : {}));
  const policy = policies.get(agent);
  if (typeof policy === 'string') return policy;
  if (policies.has(agent)) throw new RunError(`agent '${agent}' is frozen: the run trained no policy for it`);
  throw new RunError(`the run has no agent '${agent}'${suggestion(agent, [...policies.keys()])}`);
}

/** Creates a whole directory or none. @throws RunError when the target exists or cannot be written */
async function create(to: string, fill: (directory: string) => Promise<void>): Promise<void> {
  const target = resolve(to);
  if (await nodeFiles.exists(target)) throw new RunError(`${to} exists; drmas overwrites nothing`);
  try {
    await nodeFiles.makeDirectory(dirname(target));
    await removeStale(nodeFiles, dirname(target), `${TEMPORARY}${basename(target)}-`);
    await writeDirectory(nodeFiles, dirname(target), basename(target), fill);
  } catch (error) {
    if (error instanceof DrmasError) throw error;
    throw new RunError(`cannot write ${to}: ${messageOf(error)}`);
  }
}

// Code and commands that load, serve and call an exported policy. They work as printed.

interface ExportedPolicy {
  readonly agent: string;
  /** The directory as the person typed it. */
  readonly to: string;
  readonly format: ExportFormat;
  readonly files: readonly string[];
  /** The base and the rank of an adapter. */
  readonly base?: string;
  readonly rank?: number;
  readonly profile: AgentProfile | undefined;
  /** A conversation of the agent in its run, without its system prompt. */
  readonly example: readonly Message[];
  readonly tools: readonly Tool[];
}

function howToUse(exported: ExportedPolicy): string[] {
  if (exported.format === 'gguf')
    return [...withLlama(exported), ...withTools(exported).flatMap((block) => ['', ...block])];
  const isTiny = exported.files.includes('drmas_tokenizer.json'); // servers have no kernels for a model this small
  const whole = isTiny ? [withTransformers(exported)] : [withTransformers(exported), served(exported)];
  const blocks = exported.format === 'peft' ? [withPeft(exported)] : whole;
  return [...blocks, ...withDrmas(exported), ...withTools(exported)].flatMap((block) => [...block, '']).slice(0, -1);
}

function withTransformers({ to, files, profile, example }: ExportedPolicy): string[] {
  const path = JSON.stringify(to);
  const hasTokenizer = files.includes('tokenizer.json');
  const load = [
    'with transformers, in Python',
    `  from transformers import AutoModelForCausalLM${hasTokenizer ? ', AutoTokenizer' : ''}`,
    `  model = AutoModelForCausalLM.from_pretrained(${path})`,
  ];
  if (!hasTokenizer) return [...load, '  # only drmas has this tokenizer (drmas_tokenizer.json): pass token ids'];
  const system: Message[] = profile?.system === undefined ? [] : [{ role: 'system', content: profile.system }];
  return [
    ...load,
    `  tokenizer = AutoTokenizer.from_pretrained(${path})`,
    `  messages = ${literal([...system, ...example])}`,
    '  prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True, return_tensors="pt")',
    '  answer = model.generate(**prompt)[0, prompt["input_ids"].shape[1]:]',
    '  print(tokenizer.decode(answer, skip_special_tokens=True))',
  ];
}

function served({ to, profile }: ExportedPolicy): string[] {
  const same = profile?.system === undefined ? '' : '; start conversations with the same system prompt';
  return [`an OpenAI-compatible server${same}`, `  ${commandText(['vllm', 'serve', to])}`];
}

/** The limits that vLLM takes for the rank of adapters. Its default is 16. */
const VLLM_RANKS = [16, 32, 64, 128, 256, 320, 512];

function withPeft({ to, base = '', rank = 1, agent }: ExportedPolicy): string[] {
  const inGguf = base.toLowerCase().endsWith('.gguf');
  const place = inGguf
    ? `${JSON.stringify(dirname(base))}, gguf_file=${JSON.stringify(basename(base))}`
    : JSON.stringify(base);
  const limit = rank > 16 ? ['--max-lora-rank', `${VLLM_RANKS.find((each) => each >= rank) ?? rank}`] : [];
  const lora = commandText(['vllm', 'serve', base, '--enable-lora', ...limit, '--lora-modules', `${agent}=${to}`]);
  return [
    'with transformers and peft, in Python',
    '  from transformers import AutoModelForCausalLM',
    '  from peft import PeftModel',
    `  base = AutoModelForCausalLM.from_pretrained(${place})`,
    `  model = PeftModel.from_pretrained(base, ${JSON.stringify(to)})`,
    ...(inGguf ? [] : ['', 'an OpenAI-compatible server', `  ${lora}`]),
  ];
}

/** llama.cpp and Ollama with the agent's evaluation sampling, in place of their own defaults. */
function withLlama({ to, profile, agent, example }: ExportedPolicy): string[] {
  const model = commandText([`${to}/model.gguf`]);
  const { temperature = 1, topP = 1, topK = 0, maxTokens } = profile?.sampling ?? {};
  const sampling = `--temp ${temperature} --top-p ${topP} --top-k ${topK} --min-p 0 --repeat-penalty 1`;
  const flags = maxTokens === undefined ? sampling : `${sampling} -n ${maxTokens}`;
  const prompt: Message[] = profile?.system === undefined ? [] : [{ role: 'system', content: profile.system }];
  const body = JSON.stringify({ messages: [...prompt, ...example] });
  return [
    'with llama.cpp, and a request as in training',
    `  llama-server -m ${model} --jinja ${flags}`,
    `  curl -s localhost:8080/v1/chat/completions -H 'content-type: application/json' -d ${commandText([body])}`,
    '',
    'with Ollama',
    `  ${commandText(['ollama', 'create', agent, '-f', `${to}/Modelfile`])}`,
    '',
    'with LM Studio',
    `  lms import ${model}`,
  ];
}

function modelfile(profile: AgentProfile | undefined): string {
  const lines = ['FROM ./model.gguf'];
  if (profile !== undefined) {
    const { temperature, topP, topK, maxTokens } = profile.sampling;
    const parameters = { temperature, top_p: topP, top_k: topK, min_p: 0, repeat_penalty: 1, num_predict: maxTokens };
    lines.push(...Object.entries(parameters).map(([name, value]) => `PARAMETER ${name} ${value}`));
    const { system } = profile;
    const isQuotable = system === undefined || !/"""|"$/.test(system);
    if (system !== undefined)
      lines.push(isQuotable ? `SYSTEM """${system}"""` : '# SYSTEM is missing: a Modelfile cannot quote this prompt');
  }
  return `${lines.join('\n')}\n`;
}

function withDrmas({ to, profile, example, tools }: ExportedPolicy): string[][] {
  const calls = profile?.tools !== undefined && tools.length > 0;
  const sampling = profile === undefined ? 'maxTokens: 64, temperature: 1, seed: 1' : 'seed: 1';
  const prompt = profile?.system === undefined ? '' : ', which adds the system prompt';
  const [first, ...more] = example;
  const conversation = first?.role === 'user' && more.length === 0 ? JSON.stringify(first.content) : literal(example);
  return [
    [
      `with drmas${prompt}`,
      "  import { loadPolicy } from 'drmas';",
      `  const policy = await loadPolicy(${JSON.stringify(to)});`,
      ...(calls ? [`  const tools = ${JSON.stringify(tools)};`] : []),
      `  const { text${calls ? ', toolCalls' : ''} } = await policy.answer(${conversation}, { ${calls ? 'tools, ' : ''}${sampling} });`,
      `  console.log(text${calls ? ', toolCalls' : ''});`,
      '  await policy.dispose();',
    ],
    [
      'in a terminal, and as an OpenAI-compatible server',
      `  ${commandText(['npx', 'drmas', 'chat', to])}`,
      `  ${commandText(['npx', 'drmas', 'serve', to])}`,
    ],
  ];
}

/** The agent's tools, in the form in which requests name them. The model's files don't hold them. */
function withTools({ tools, format, profile }: ExportedPolicy): string[][] {
  if (tools.length === 0) return [];
  const trained = `the agent was trained with tools: ${tools.map(({ name }) => name).join(', ')}.`;
  const inPython = format === 'gguf' ? '' : ' (transformers: tools=... of apply_chat_template)';
  const use =
    profile?.tools === 'plain'
      ? [
          `${trained} It writes their calls as plain text.`,
          '`drmas serve` and loadPolicy tell it of the tools of a request and read the calls; other programs do neither.',
          'Give each request to drmas these `tools`:',
        ]
      : [
          `${trained} Its model only writes the calls, so your program runs them.`,
          `Give each request to a server these \`tools\`${inPython}:`,
        ];
  return [[...use, `  ${JSON.stringify(tools.map((tool) => ({ type: 'function', function: tool })))}`]];
}

function literal(messages: readonly Message[]): string {
  const written = messages.map(({ role, content }) => `{"role": "${role}", "content": ${JSON.stringify(content)}}`);
  return `[${written.join(', ')}]`;
}
