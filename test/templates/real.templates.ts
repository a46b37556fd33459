/** Chat templates of real models beside jinja2 as transformers sets it up. */
import { execFile, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { messageOf } from '@drmas/engine/errors';
import { readJson } from '@drmas/engine/internal/model/jinja/json';
import { chatTemplate } from '@drmas/engine/internal/model/tokenizers/chat-template';
import { describe, expect, it } from 'vitest';
import { installedOnce, pythonEnvironment, Unavailable } from '../support/python-environment.js';
import { realTokenizers } from '../support/real-tokenizers.js';
import { type Conversation, randomConversations } from './conversations.js';

const CONVERSATIONS = 60;
const SEED = 9133;
/** The source package of llama.cpp's bindings, which has templates of real models in a folder. */
const SOURCE = 'llama-cpp-python==0.3.36';
const FOLDER = 'vendor/llama.cpp/models/templates';

const run = promisify(execFile);
const python = await pythonEnvironment({
  name: 'templates-python',
  requirements: new URL('requirements.txt', import.meta.url),
  what: 'transformers and jinja2 (150 MB)',
});
const program = 'python' in python ? python.python : '';
const folder = program === '' ? undefined : await sources();
const npm = await realTokenizers();
const reasons = [python, folder, npm].flatMap((each) =>
  typeof each === 'object' && 'unavailable' in each ? each.unavailable : [],
);
const isReady = reasons.length === 0 && typeof folder === 'string';
if (!isReady) console.log(`SKIPPED: chat templates beside jinja2, because ${reasons.join('; ')}`);

async function sources(): Promise<string | { unavailable: string }> {
  try {
    const place = await installedOnce('templates-sources', [SOURCE], async (to) => {
      console.log(`downloading ${SOURCE} (80 MB) into ${to} (once)`);
      const words = ['-m', 'pip', 'download', '--quiet', '--no-deps', '--no-binary', ':all:', '-d', to, SOURCE];
      await run(program, words, { timeout: 8 * 60_000 }).catch((error: unknown) => {
        throw new Unavailable(messageOf(error));
      });
      const unpack = `import glob, tarfile; tarfile.open(glob.glob("${to}/*.tar.gz")[0]).extractall("${to}", filter="data")`;
      await run(program, ['-c', unpack]);
    });
    const [unpacked = ''] = readdirSync(place).filter((name) => !/\.gz$|^complete$/.test(name));
    return join(place, unpacked, FOLDER);
  } catch (error) {
    if (error instanceof Unavailable) return { unavailable: error.message };
    throw error;
  }
}

/** The families that docs/real-models.md lists. */
const LISTED = /Llama-3|Mistral|Ministral|Devstral|Qwen2\.5|Qwen3-0|QwQ|Distill-Qwen|SmolLM3|LFM2|Gemma 3/;

function templates(): { readonly name: string; readonly source: string }[] {
  const here = typeof folder === 'string' ? folder : '';
  const files = readdirSync(here).filter((name) => name.endsWith('.jinja'));
  const config = (name: 'gemma3' | 'deepseek_v3') =>
    'read' in npm ? JSON.parse(npm.read(name, 'tokenizer_config.json')).chat_template : '';
  return [
    ...files.map((name) => ({ name, source: readFileSync(join(here, name), 'utf8') })),
    { name: 'Gemma 3', source: config('gemma3') },
    { name: 'DeepSeek V3', source: config('deepseek_v3') },
  ];
}

const TOKENS = { bos_token: '<s>', eos_token: '</s>', pad_token: '<pad>', unk_token: '<unk>' };

/** The text of transformers for each template and conversation; null: it refuses it. */
function theirs(sources: readonly string[], conversations: readonly Conversation[]): (string | null)[] {
  const lines = sources.flatMap((source) =>
    conversations.map(({ messages, tools, isThinking }) => {
      const variables = JSON.stringify({ ...TOKENS, add_generation_prompt: true, enable_thinking: isThinking });
      return `{"template": ${JSON.stringify(source)}, "variables": ${variables}, "messages": ${messages}, "tools": ${tools}}\n`;
    }),
  );
  const script = fileURLToPath(new URL('render.py', import.meta.url));
  const env = { ...process.env, HF_HUB_OFFLINE: '1', TRANSFORMERS_VERBOSITY: 'error' };
  const options = { input: lines.join(''), encoding: 'utf8', maxBuffer: 2 ** 28, env } as const;
  const { status, stdout, stderr } = spawnSync(program, [script], options);
  if (status !== 0) throw new Error(`transformers failed: ${stderr.slice(-2000)}`);
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

const now = () => new Date(2026, 10, 27, 0, 34, 37);

function ours(source: string, { messages, tools, isThinking }: Conversation): string | null {
  const variables = { ...TOKENS, add_generation_prompt: true, enable_thinking: isThinking };
  // Values of templates, which the function takes beside plain data.
  const read = (text: string) => readJson(text) as never;
  try {
    return chatTemplate(source)(variables, read(messages), tools === 'null' ? undefined : read(tools), now);
  } catch {
    return null;
  }
}

const EXPRESSIONS = 4000;
/** Filters whose outputs are HTML, Python's own form of values, or random; methods of bytes and tables of letters. */
const REFUSED_ALONE = 0.05;

describe.skipIf(program === '')('small expressions', () => {
  it.each([9134, 9135])('have the output of jinja2, or are refused: seed %i', (seed) => {
    const words = [fileURLToPath(new URL('expressions.py', import.meta.url)), `${seed}`, `${EXPRESSIONS}`];
    const env = { ...process.env, HF_HUB_OFFLINE: '1', TRANSFORMERS_VERBOSITY: 'error' };
    const { status, stdout, stderr } = spawnSync(program, words, { encoding: 'utf8', maxBuffer: 2 ** 28, env });
    if (status !== 0) throw new Error(`transformers failed: ${stderr.slice(-2000)}`);
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as [string, string | null]);
    const plain = { messages: '[]', tools: 'null', isThinking: false };
    const all = rows.map(([source, theirs]) => ({ source, theirs, ours: ours(source, plain) }));
    const refused = all.filter(({ ours, theirs }) => ours === null && theirs !== null);
    const accepted = all.filter(({ ours, theirs }) => ours !== null && theirs === null);
    const differing = all.filter(({ ours, theirs }) => ours !== null && theirs !== null && ours !== theirs);
    console.log(`${rows.length} expressions: ${differing.length} differ, ${refused.length} refused alone`);
    expect(differing).toEqual([]);
    expect(accepted.slice(0.01 * rows.length)).toEqual([]);
    expect(refused.slice(REFUSED_ALONE * rows.length)).toEqual([]);
  });
});

describe.skipIf(!isReady)('chat templates of real models', () => {
  it(`render ${CONVERSATIONS} conversations each as jinja2 does`, () => {
    const conversations = randomConversations(CONVERSATIONS, SEED);
    const all = templates();
    const sources = all.map(({ source }) => source);
    const expected = theirs(sources, conversations);
    const renderings = all.flatMap(({ name, source }, i) =>
      conversations.map((each, j) => {
        const theirs = expected[i * CONVERSATIONS + j];
        return { name, each, ours: ours(source, each), theirs };
      }),
    );
    const differing = renderings.filter(({ ours, theirs }) => ours !== theirs);
    console.log(`${all.length} templates, ${renderings.length} renderings, ${differing.length} differ`);
    expect(differing.filter(({ name }) => LISTED.test(name)).slice(0, 5)).toEqual([]);
    expect(differing.slice(0.01 * renderings.length)).toEqual([]);
    // The comparison compares something: most conversations are rendered, and all listed templates are there.
    expect(renderings.filter(({ theirs }) => theirs !== null).length).toBeGreaterThan(renderings.length / 2);
    expect(all.filter(({ name }) => LISTED.test(name)).length).toBeGreaterThan(15);
  });
});
