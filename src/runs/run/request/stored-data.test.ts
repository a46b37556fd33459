import { mkdtempSync, readFileSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { RunError } from '@drmas/engine/errors';
import { withLocalModels } from '@drmas/engine/formats';
import { shellWord } from '@drmas/engine/host';
import { nodeFiles } from '@drmas/engine/platform';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { temporaryRoot, tinyDefinition, tinyRecipe, trainTiny } from '../../../../test/support/tiny-run.js';
import { settingsSchema } from '../../../method/recipe/recipe-schema.js';
import { RunDirectory } from '../../../method/store/run-directory.js';
import { lockRun } from '../../../method/store/run-lock.js';
import { standard } from '../../composition/standard.js';
import { evaluate, resume, train } from '../api.js';
import { loadTeam } from '../load-team.js';
import { requestContinuation } from './continuation.js';
import { requestEvaluation } from './evaluation.js';
import { agentsOfRun, requireServerOfRun, serverKeyOfRun } from './recipe-of-run.js';
import {
  ALLOW_VARIABLE,
  allowStored,
  rememberTyped,
  requireOwnAblation,
  requireOwnRecipe,
  requireOwnSettings,
  storedPlaces,
  storedSettings,
} from './stored-data.js';

const root = temporaryRoot();
const configBefore = process.env.XDG_CONFIG_HOME;
const requests: string[] = [];
const server = createServer((request, response) => {
  requests.push(`${request.url} ${request.headers.authorization}`);
  response.writeHead(404).end();
});
let stranger = '';

beforeAll(async () => {
  process.env.XDG_CONFIG_HOME = join(root, 'config');
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  stranger = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
});
afterAll(() => {
  if (configBefore === undefined) delete process.env.XDG_CONFIG_HOME;
  else process.env.XDG_CONFIG_HOME = configBefore;
  vi.unstubAllEnvs();
  server.close();
});

let count = 0;
/** A value that nobody has named yet, of the form that the field has. */
function freshValue(field: string): string {
  count++;
  if (/folder/.test(field)) return `/srv/stranger-${count}`;
  if (/host/.test(field)) return `10.9.8.${count}`;
  if (field === 'rollout.url') return `redis://stranger-${count}.example:6379`;
  return `http://stranger-${count}.example/v1`;
}

const pathOf = (field: string) => field.replaceAll('**', 'text').replaceAll('*', 'solver');

/** The paths of all settings that are texts. */
function textSettings(node: Node, path: readonly string[] = [], depth = 0): string[] {
  if (depth > 9 || node.enum !== undefined || node.const !== undefined) return [];
  const below = (next: Node | undefined, ...more: string[]) =>
    typeof next === 'object' ? textSettings(next, [...path, ...more], depth + 1) : [];
  return [
    ...(node.type === 'string' ? [path.join('.')] : []),
    ...Object.entries(node.properties ?? {}).flatMap(([key, next]) => below(next, key)),
    ...below(node.additionalProperties, 'any'),
    ...below(node.items, '0'),
    ...[...(node.anyOf ?? []), ...(node.oneOf ?? [])].flatMap((next) => below(next)),
  ];
}
interface Node {
  readonly type?: string;
  readonly enum?: unknown;
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly additionalProperties?: Node;
  readonly items?: Node;
  readonly anyOf?: readonly Node[];
  readonly oneOf?: readonly Node[];
}

describe('the table of stored settings', () => {
  const json = (assign: unknown) =>
    z.toJSONSchema(settingsSchema(standard, ['solver'], ['solver'], { solver: assign }), {
      io: 'input',
      unrepresentable: 'any',
    }) as Node;
  const fields = [...new Set([...textSettings(json({})), ...textSettings(json('solver'))])];
  // Names by which a schema says that a text leads somewhere.
  const leads = fields.filter((field) => /(url|host|folder|endpoint|address|command|webhook)$/i.test(field));

  it('has a row for each setting of the schema that leads out of this machine or writes', () => {
    expect(leads.length).toBeGreaterThan(9);
    const asked = storedSettings.filter(({ rule }) => rule === 'asked').map(({ field }) => pathOf(field));
    expect(leads.filter((field) => !asked.includes(field))).toEqual([]);
    expect(asked.filter((field) => !leads.includes(field))).toEqual([]);
  });

  it('asks for an address in each other text of a recipe except the body of an allowed endpoint', async () => {
    const others = fields.filter((field) => !leads.includes(field) && !/apiKey|\.body\./.test(field));
    expect(others.length).toBeGreaterThan(20);
    for (const field of [...others, 'tasks.train.url', 'tasks.test.file'])
      await expect(requireOwnSettings('theirs', [`${field}=${freshValue('url')}`]), field).rejects.toThrow(
        /^theirs names http/,
      );
  });

  it.each([
    "http://evil.example/'; touch out; '",
    'http://evil.example/$(touch out)',
    'http://evil.example/`a`\u202e\u001b[2J',
  ])('quotes an address for the shell into which people copy the advice: %j', async (url) => {
    const { message } = await requireOwnSettings('theirs', [`backend.url=${JSON.stringify(url)}`]).catch(
      (error) => error,
    );
    expect(message).toContain(`add --allow-endpoint ${shellWord(url)} (`);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are looked for
    expect(message).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
  });

  for (const { field, rule } of storedSettings) {
    if (rule === 'asked')
      it(`asks before it uses ${field}, also inside an object`, async () => {
        const [path, value] = [pathOf(field), freshValue(field)];
        const nested = path
          .split('.')
          .slice(1)
          .reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);
        for (const override of [`${path}=${value}`, `${path.split('.')[0]}=${JSON.stringify(nested)}`]) {
          const check = (own = {}) => requireOwnSettings('theirs', [override], own);
          await expect(check()).rejects.toThrow(RunError);
          await expect(check()).rejects.toThrow(`add --allow-endpoint ${value}`);
          await expect(check({ typed: [`name=${value}`] })).resolves.toBeUndefined();
        }
        allowStored([value]);
        await requireOwnSettings('theirs', [`${path}=${value}`]);
      });
    else if (rule === 'harmless')
      it(`uses a name or a path in ${field}`, async () => {
        for (const value of ['./model', 'org/name', 'Answer: yes'])
          await requireOwnSettings('theirs', [`${pathOf(field)}=${value}`]);
      });
    else
      it(`refuses ${field}`, async () => {
        await expect(requireOwnSettings('theirs', ['assign.solver.apiKey=sk-1'])).rejects.toThrow(/recipe.json/);
      });
  }
});

describe('an address in stored data', () => {
  const asked = (value: string) => requireOwnSettings('theirs', [`assign.solver.url=${value}`]);

  it('may be the own service of the key, and nothing that only looks like it', async () => {
    await asked('https://api.openai.com/v1');
    for (const url of [
      'http://api.openai.com/v1',
      'https://api.openai.com.evil.example/v1',
      'https://api.openai.com@evil.example/v1',
      'https://api.openai.com:8443/v1',
      'https://tinker.thinkingmachines.dev/v1', // the service of another key
    ])
      await expect(asked(url), url).rejects.toThrow(RunError);
  });

  it.each([
    ['a control character', '\u0001http://evil.example'],
    ['a tab in the scheme', 'ht\ttp://evil.example'],
  ])('is found behind %s', async (_, value) => {
    await expect(requireOwnSettings('theirs', [`model.path=${JSON.stringify(value)}`])).rejects.toThrow(RunError);
  });

  it('may be a share of another machine on Windows, and is a name or a formula elsewhere', async () => {
    const { platform } = process;
    const check = (text: string) => requireOwnSettings('theirs', [`model.path=${JSON.stringify(text)}`]);
    try {
      for (const text of ['\\\\evil.example\\share\\model', '\\\\evil.example', '//evil.example/share']) {
        Object.defineProperty(process, 'platform', { value: 'win32' });
        await expect(check(text), text).rejects.toThrow(RunError);
        Object.defineProperty(process, 'platform', { value: 'linux' });
        await check(text);
      }
    } finally {
      Object.defineProperty(process, 'platform', { value: platform });
    }
  });

  it('is used if the environment allows its server', async () => {
    vi.stubEnv(ALLOW_VARIABLE, 'http://a.example:1, http://b.example');
    await asked('http://b.example/v1');
    await expect(asked('http://b.example:81/v1')).rejects.toThrow(RunError);
    vi.unstubAllEnvs();
  });

  it('is remembered when this user typed it', async () => {
    await rememberTyped(['assign.solver={"type":"endpoint","url":"http://typed.example/v1","model":"m"}']);
    expect(readFileSync(join(root, 'config', 'drmas', 'endpoints'), 'utf8')).toBe('http://typed.example/v1\n');
    await asked('http://typed.example/v1');
  });

  it('does not open ports to others', async () => {
    for (const section of ['rollout', 'gateway']) {
      await requireOwnSettings('theirs', [`${section}.host=127.0.0.1`]);
      await expect(requireOwnSettings('theirs', [`${section}.host=0.0.0.0`])).rejects.toThrow(RunError);
    }
  });
});

/** The other places, each with what must be refused. */
const places: Readonly<Record<string, () => Promise<unknown>>> = {
  'recipe.json: recipe.source': async () => {
    const bundle = mkdtempSync(join(root, 'bundle-'));
    writeFileSync(join(bundle, 'recipe.mjs'), 'globalThis.ranTheirs = true;');
    symlinkSync(bundle, `${bundle}-link`);
    for (const source of [
      join(bundle, 'recipe.mjs'),
      `${basename(bundle)}/recipe.mjs`,
      join(`${bundle}-link`, 'recipe.mjs'),
      '/proc/self/cwd/recipe.mjs',
      '/tmp/../proc/self/cwd/recipe.mjs',
      '\\\\machine\\share\\recipe.mjs',
    ])
      await expect(requireOwnRecipe(bundle, source), source).rejects.toThrow(/came with the data/);
    for (const own of ['math', '/dev/shm/recipe.mjs', '/process/recipe.mjs'])
      await expect(requireOwnRecipe(bundle, own), own).resolves.toBeUndefined();
    return requireOwnRecipe(bundle, './recipe.mjs');
  },
  'ablation.json: recipe.source': () => ablation({ source: 'theirs.mjs' }),
  'ablation.json: recipe.overrides': () => ablation({ overrides: [`backend.url=${freshValue('url')}`] }),
  'ablation.json: vary, bundles': () => ablation({}, [freshValue('url')]),
  'checkpoints: tinker.json: url': async () => {
    const run = await strangersRun();
    return requireServerOfRun(run, freshValue('url'));
  },
  'recipe.json: resolved, agents': async () => {
    const { path } = await strangersRun();
    const file = join(path, 'recipe.json');
    const record = JSON.parse(readFileSync(file, 'utf8').replaceAll('tiny', stranger));
    record.agents = { solver: { name: 'solver', system: stranger, sampling: { temperature: 1, topP: 1, topK: 0 } } };
    record.agents.solver.sampling.maxTokens = 4;
    writeFileSync(file, JSON.stringify(record));
    await agentsOfRun(await RunDirectory.open(path));
    await strangersRun();
  },
  'adapter_config.json: base_model_name_or_path': () =>
    Promise.allSettled([withLocalModels({ type: 'checkpoint', path: stranger }, {})]),
  'symbolic links': async () => {
    for (const name of ['events.jsonl', 'episodes', 'lock']) {
      const directory = mkdtempSync(join(root, 'links-'));
      const target = mkdtempSync(join(root, 'home-'));
      writeFileSync(join(target, 'rc'), 'mine');
      symlinkSync(name === 'episodes' ? target : join(target, 'rc'), join(directory, name));
      await expect(lockRun(nodeFiles, directory), name).rejects.toThrow(/is a link that leads out of/);
      expect(readFileSync(join(target, 'rc'), 'utf8')).toBe('mine');
    }
    const run = await strangersRun();
    const link = join(run.path, 'episodes', 'more');
    symlinkSync('/etc', link);
    return run.writeOtherEpisodes([], new Date(0)).finally(() => unlinkSync(link));
  },
};

const ablation = (recipe: object, values: readonly string[] = []) =>
  requireOwnAblation('theirs', {
    recipe: { source: 'math', codeHash: '', overrides: [], ...recipe },
    vary: [{ key: 'assign.verifier.url', values: [...values] }],
  });

describe('the table of other places', () => {
  for (const { field, rule } of storedPlaces)
    it(`is kept for ${field}`, async () => {
      const place = places[field]?.() ?? Promise.reject(new Error('no test'));
      if (rule === 'harmless') await place;
      else await expect(place).rejects.toThrow(RunError);
      expect(requests).toEqual([]);
    });
});

let trained: Promise<string> | undefined;
/** A finished run whose recipe.json somebody has changed: its verifier plays at the server of this test. */
async function strangersRun(source = 'math'): Promise<RunDirectory> {
  trained ??= trainTiny(root, tinyRecipe()).then(async (run) => {
    await run.close();
    return run.path;
  });
  const path = await trained;
  const file = join(path, 'recipe.json');
  const { digest: _, agents: __, ...record } = JSON.parse(readFileSync(file, 'utf8'));
  const verifier = { type: 'endpoint', url: stranger, model: 'm', retries: 0 };
  record.recipe = { source, codeHash: '', overrides: [`assign=${JSON.stringify({ solver: 'solver', verifier })}`] };
  writeFileSync(file, JSON.stringify(record));
  return RunDirectory.open(path);
}

describe("a stranger's run", () => {
  it('gets no request, no prompt and no key by any function that opens it', async () => {
    vi.stubEnv('OPENAI_API_KEY', 'sk-victim-0123456789');
    const run = await strangersRun();
    const opens: Record<string, () => Promise<unknown>> = {
      evaluate: () => evaluate(run.path, { recipe: tinyDefinition() }),
      'evaluate a recipe that ships': () => evaluate(run.path, { acceptChanges: true }),
      resume: () => resume(run.path, tinyDefinition(), { from: '2', acceptChanges: true }),
      loadTeam: () => loadTeam(run.path, { recipe: tinyDefinition() }),
      agents: () => agentsOfRun(run, true),
      key: () => serverKeyOfRun(run, 'solver'),
      continuation: () => requestContinuation(run, { acceptChanges: true, from: '2' }),
      evaluation: () => requestEvaluation(run.path, { acceptChanges: true }, async () => {}),
    };
    for (const [name, open] of Object.entries(opens))
      await expect(open(), name).rejects.toThrow(`add --allow-endpoint ${stranger}`);
    expect(requests).toEqual([]);
  });

  it('plays when this user has allowed its server, and says first what goes where', async () => {
    vi.stubEnv('OPENAI_API_KEY', 'sk-victim-0123456789');
    vi.stubEnv(ALLOW_VARIABLE, stranger);
    const run = await strangersRun();
    const notices: string[] = [];
    const onNotice = (message: string) => void notices.push(`${requests.length} ${message}`);
    await evaluate(run.path, { recipe: tinyDefinition(), onNotice, tasks: 1, samples: 1 }).catch(() => {});
    expect(notices).toContain(`0 ${stranger} gets the prompts of verifier, with OPENAI_API_KEY`);
    vi.unstubAllEnvs();
  });
});

describe('an own run', () => {
  it('goes on without a question if its address was typed for `train`', async () => {
    const url = 'http://127.0.0.1:9/v1';
    const path = join(root, 'own');
    const set = [`assign=${JSON.stringify({ solver: 'solver', verifier: { type: 'endpoint', url, model: 'm' } })}`];
    const signal = AbortSignal.abort(new Error('enough'));
    await expect(train(tinyDefinition(), { run: path, set, threads: 1, signal })).rejects.toThrow('enough');
    await requireOwnSettings(path, set);
  });

  it('asks later if the file of addresses cannot be written', async () => {
    writeFileSync(join(root, 'a-file'), '');
    vi.stubEnv('XDG_CONFIG_HOME', join(root, 'a-file'));
    await expect(rememberTyped(['sampler.url=http://later.example'])).resolves.toBeUndefined();
    vi.unstubAllEnvs();
  });
});
