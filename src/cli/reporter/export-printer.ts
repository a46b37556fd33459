/** How an exported policy is loaded, served and asked, as code that works where it is pasted. */
import type { ExportFormat } from '../../backends/backend-declaration.js';
import type { Message } from '../../core/message.js';
import type { AgentProfile } from '../../model/agent-profile.js';

export interface ExportedPolicy {
  readonly agent: string;
  /** The directory, as it was named. */
  readonly to: string;
  readonly format: ExportFormat;
  /** The names of its files. */
  readonly files: readonly string[];
  /** The model that an adapter adapts. */
  readonly base?: string;
  readonly profile: AgentProfile | undefined;
  /** A conversation that the agent had in its run, without its system prompt. */
  readonly example: readonly Message[];
}

/** Lines that say how to use what was exported. */
export function howToUse(exported: ExportedPolicy): string[] {
  const isTiny = exported.files.includes('drmas_tokenizer.json'); // too small for the kernels of servers
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
  if (!hasTokenizer) return [...load, '  # its tokenizer is one of drmas (drmas_tokenizer.json): feed token ids'];
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
  const same = profile?.system === undefined ? '' : '; conversations begin with the same system prompt';
  return [`served with the protocol of OpenAI${same}`, `  vllm serve ${JSON.stringify(to)}`];
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
    'served with the protocol of OpenAI',
    `  vllm serve ${whole} --enable-lora --lora-modules ${agent}=${path}`,
  ];
}

function withDrmas({ to, profile, example }: ExportedPolicy): string[][] {
  const sampling = profile === undefined ? 'maxTokens: 64, temperature: 1, seed: 1' : 'seed: 1';
  const prompt = profile?.system === undefined ? '' : ', which puts the system prompt in front';
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
      'in a terminal, and as a server that clients of OpenAI talk to',
      `  drmas chat ${JSON.stringify(to)}`,
      `  drmas serve ${JSON.stringify(to)}`,
    ],
  ];
}

/** Messages as JavaScript and Python write them. */
function literal(messages: readonly Message[]): string {
  const written = messages.map(({ role, content }) => `{"role": "${role}", "content": ${JSON.stringify(content)}}`);
  return `[${written.join(', ')}]`;
}
