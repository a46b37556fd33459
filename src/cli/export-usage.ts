/** Code and commands that load, serve and call an exported policy. They work as printed. */

import type { Message } from '../base/nouns.js';
import { commandText } from '../base/platform.js';
import type { ExportFormat } from '../engine/backends.js';
import type { AgentProfile } from '../engine/model.js';

export interface ExportedPolicy {
  readonly agent: string;
  /** The directory as the person typed it. */
  readonly to: string;
  readonly format: ExportFormat;
  /** The names of its files. */
  readonly files: readonly string[];
  /** The adapter's base model. */
  readonly base?: string;
  readonly profile: AgentProfile | undefined;
  /** A conversation of the agent in its run, without its system prompt. */
  readonly example: readonly Message[];
}

/** The lines that show how to use an exported policy. */
export function howToUse(exported: ExportedPolicy): string[] {
  if (exported.format === 'gguf') return withLlama(exported);
  const isTiny = exported.files.includes('drmas_tokenizer.json'); // servers have no kernels for a model this small
  const whole = isTiny ? [withTransformers(exported)] : [withTransformers(exported), served(exported)];
  const blocks = exported.format === 'peft' ? [withPeft(exported)] : whole;
  return [...blocks, ...withDrmas(exported)].flatMap((block) => [...block, '']).slice(0, -1);
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

function withPeft({ to, base = '', agent }: ExportedPolicy): string[] {
  const [path, whole] = [JSON.stringify(to), JSON.stringify(base)];
  return [
    'with transformers and peft, in Python',
    '  from transformers import AutoModelForCausalLM',
    '  from peft import PeftModel',
    `  base = AutoModelForCausalLM.from_pretrained(${whole})`,
    `  model = PeftModel.from_pretrained(base, ${path})`,
    '',
    'an OpenAI-compatible server',
    `  ${commandText(['vllm', 'serve', base, '--enable-lora', '--lora-modules', `${agent}=${to}`])}`,
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

/** Ollama's Modelfile with the agent's system prompt and sampling. */
export function modelfile(profile: AgentProfile | undefined): string {
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

function withDrmas({ to, profile, example }: ExportedPolicy): string[][] {
  const sampling = profile === undefined ? 'maxTokens: 64, temperature: 1, seed: 1' : 'seed: 1';
  const prompt = profile?.system === undefined ? '' : ', which adds the system prompt';
  const [first, ...more] = example;
  const conversation = first?.role === 'user' && more.length === 0 ? JSON.stringify(first.content) : literal(example);
  return [
    [
      `with drmas${prompt}`,
      "  import { loadPolicy } from 'drmas';",
      `  const policy = await loadPolicy(${JSON.stringify(to)});`,
      `  const { text } = await policy.answer(${conversation}, { ${sampling} });`,
      '  console.log(text);',
      '  await policy.dispose();',
    ],
    [
      'in a terminal, and as an OpenAI-compatible server',
      `  ${commandText(['drmas', 'chat', to])}`,
      `  ${commandText(['drmas', 'serve', to])}`,
    ],
  ];
}

/** Messages as a literal of JavaScript and Python. */
function literal(messages: readonly Message[]): string {
  const written = messages.map(({ role, content }) => `{"role": "${role}", "content": ${JSON.stringify(content)}}`);
  return `[${written.join(', ')}]`;
}
