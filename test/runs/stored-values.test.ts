// @module-tag verify
/** Each value that a run or an ablation stores, changed at random: commands refuse it by name, or read on. */
import { createHash } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { contentHash, digestOf } from '@drmas/engine/disk';
import { RandomStream } from '@drmas/engine/math';
import { nodeFiles } from '@drmas/engine/platform';
import { beforeAll, describe, expect, it } from 'vitest';
import { followRuns } from '../../src/dashboard/watch/event-feed.js';
import { RunCatalog } from '../../src/dashboard/watch/run-catalog.js';
import { TalkService } from '../../src/dashboard/watch/talk/talk-service.js';
import { watchApp } from '../../src/dashboard/watch/watch-server.js';
import { drmas } from '../support/command-line.js';
import { temporaryRoot } from '../support/tiny-run.js';
import { writeTinyStudy } from '../support/tiny-study.js';

/** Changed values that each command reads. */
const CHANGES = 40;

const root = temporaryRoot();
const [one, study] = [join(root, 'one'), join(root, 'study')];
let recipe: string;

beforeAll(async () => {
  const home = await mkdtemp(join(root, 'home-'));
  recipe = await writeTinyStudy(home);
  const set = ['--set', 'training.steps=4', '--set', 'training.tasksPerStep=2', '--threads', '1', '--json'];
  const vary = ['--vary', 'advantage.type=grpo,drmas', '--seeds', '1'];
  expect(await drmas(['train', recipe, '--run', one, ...set])).toMatchObject({ code: 0 });
  expect(await drmas(['ablate', recipe, ...vary, '--run', study, ...set])).toMatchObject({ code: 0 });
}, 120_000);

type Holder = Record<string, unknown>;
type Place = readonly [holder: Holder, key: string, path: string];

function placesOf(value: unknown, path = ''): Place[] {
  if (typeof value !== 'object' || value === null) return [];
  const holder = value as Holder;
  return Object.keys(holder).flatMap((key): Place[] => [
    [holder, key, `${path}.${key}`],
    ...placesOf(holder[key], `${path}.${key}`),
  ]);
}

const nested = (depth: number): unknown => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`);
const values: readonly unknown[] = [
  ...[undefined, null, true, 'x', '', '../../out', '/etc/passwd', '__proto__', 'toString', '\u001b[2J'],
  ...[-1, 0, 1.5, 2 ** 53, 1e308, [], {}, [null], ['x'], { a: 1 }, nested(600), JSON.parse('{"__proto__":1}')],
];

/** Changes one value of a file, and all digests, as somebody who means harm would. Returns the place. */
async function change(run: string, files: readonly string[], random: RandomStream): Promise<string> {
  const draw = <T>(list: readonly T[]) => list[Math.floor(random.uniform() * list.length)] as T;
  const file = draw(files);
  const text = await readFile(join(run, file), 'utf8');
  const lines = file.endsWith('.jsonl') ? text.split('\n').slice(0, -1) : [text];
  const line = Math.floor(random.uniform() * lines.length);
  const row: unknown = JSON.parse(lines[line] as string);
  const [holder, key, path] = draw(placesOf(row));
  const value = draw(values);
  if (value === undefined) delete holder[key];
  else holder[key] = value;
  lines[line] = JSON.stringify(row);
  await writeFile(join(run, file), file.endsWith('.jsonl') ? `${lines.join('\n')}\n` : lines.join(''));
  if (run.endsWith('run')) await seal(run);
  return `${file}:${line + 1} ${path} = ${String(JSON.stringify(value)).slice(0, 30)}`;
}

const jsonOf = async (path: string): Promise<Holder> => JSON.parse(await readFile(path, 'utf8')) as Holder;

async function seal(run: string): Promise<void> {
  const { digest: _, ...record } = await jsonOf(join(run, 'recipe.json'));
  await writeFile(join(run, 'recipe.json'), JSON.stringify({ ...record, digest: contentHash(record) }));
  for (const name of await readdir(join(run, 'checkpoints'))) {
    const at = join(run, 'checkpoints', name);
    const cursor = await jsonOf(join(at, 'cursor.json'));
    const place = cursor.events as { lines?: number } | null;
    if (typeof place?.lines === 'number') {
      const events = (await readFile(join(run, 'events.jsonl'), 'utf8')).split('\n').slice(0, place.lines);
      const past = events.map((event) => `${event}\n`).join('');
      const sha256 = createHash('sha256').update(past).digest('hex');
      Object.assign(cursor, { events: { ...place, bytes: Buffer.byteLength(past), sha256 } });
      await writeFile(join(at, 'cursor.json'), JSON.stringify(cursor));
    }
    const files: Record<string, unknown> = {};
    const below = await readdir(at, { recursive: true });
    for (const file of below)
      if (file !== 'digests.json' && (await stat(join(at, file))).isFile())
        files[file] = await digestOf(nodeFiles, join(at, file));
    const sealed = { version: 1, files };
    await writeFile(join(at, 'digests.json'), JSON.stringify({ ...sealed, digest: contentHash(sealed) }));
  }
}

/** The fault of an answer. Undefined for one that reads on, or refuses on one line without a stack. */
function complaint({ code, out, err }: Awaited<ReturnType<typeof drmas>>): string | undefined {
  if (code === 0) return /\bNaN\b|\bundefined\b|\[object /.exec(out + err)?.input.slice(0, 500);
  const message = /^error: ([\s\S]*)\n$/m.exec(err)?.[1] ?? err;
  const isPlain = code === 2 && !message.includes('\n') && message.length < 1000;
  return isPlain && !/Cannot read|is not a function|not iterable|call stack/.test(err) ? undefined : `${code} ${err}`;
}

const RUN = /^(recipe\.json|events\.jsonl|episodes\/(step-000001|evaluation-000004)\.jsonl)$/;
const CHECKPOINT = /^(recipe\.json|checkpoints\/step-000004\/(state|cursor)\.json|.*solver\/config\.json)$/;

type Command = readonly [words: (run: string) => string[], files: RegExp, input?: string];
const commands: Readonly<Record<string, Command>> = {
  runs: [(run) => ['runs', run], RUN],
  inspect: [(run) => ['inspect', run], RUN],
  report: [(run) => ['report', run, '--to', join(run, 'report.html')], RUN],
  export: [(run) => ['export', run, '--agent', 'solver', '--to', join(run, 'out')], CHECKPOINT],
  evaluate: [(run) => ['evaluate', run, '--tasks', '1', '--samples', '1', '--threads', '1'], CHECKPOINT],
  chat: [(run) => ['chat', run, '--agent', 'solver', '--threads', '1', '--greedy'], CHECKPOINT, '1+1\n'],
  plan: [(run) => ['plan', recipe, '--play', '--tasks', '1', '--from', run, '--threads', '1'], CHECKPOINT],
  resume: [(run) => ['resume', run, '--checkpoint', '2', '--threads', '1'], /^(recipe\.json|events\.jsonl)$/],
  ablate: [(run) => ['ablate', run, '--threads', '1'], /^ablation\.json$/],
};

it('the dashboard shows and asks a run with a changed value, or says what is wrong with it', {
  timeout: 300_000,
}, async () => {
  const files = (await readdir(one, { recursive: true }))
    .filter((file) => /^(recipe\.json|events\.jsonl|checkpoints\/step-000004\/.*\.json|episodes\/.*)$/.test(file))
    .filter((file) => /json/.test(file))
    .sort();
  const random = new RandomStream('stored', 'dashboard');
  const found: string[] = [];
  for (let i = 0; i < 2 * CHANGES; i++) {
    const home = await mkdtemp(join(root, 'shown-'));
    await cp(one, join(home, 'run'), { recursive: true });
    const place = await change(join(home, 'run'), files, random);
    const catalog = new RunCatalog(home);
    await catalog.refresh();
    const talk = new TalkService();
    const app = watchApp({ catalog, talk, page: root, signal: new AbortController().signal });
    const question = { run: 'run', agent: 'solver', messages: [{ role: 'user', content: '1+1' }], maxTokens: 2 };
    const body = JSON.stringify(question);
    const file = 'run=run&file=step-000001';
    const headers = { 'content-type': 'application/json' };
    const requests: (readonly [string, RequestInit?])[] = [
      ['/api/talk?run=run'],
      ['/api/talk', { method: 'POST', body, headers }],
      [`/api/groups?${file}`],
      [`/api/groups?${file}&text=a`],
    ];
    const groups = (await (await app.request(`/api/groups?${file}`)).json()) as { rows?: { task: string }[] };
    for (const { task } of groups.rows ?? [])
      requests.push(
        [`/api/group?${file}&task=${encodeURIComponent(task)}`],
        [`/api/tokens?${file}&task=${encodeURIComponent(task)}&sample=0&turn=0`],
      );
    for (const [path, options] of requests) {
      const answer = await app.request(path, options);
      const said = await answer.text();
      const isNamed = answer.status < 500 || said.includes(home);
      const isPlain = isNamed && !/Cannot read|is not a function|not iterable|call stack|undefined/.test(said);
      if (!isPlain) found.push(`${place}: ${path}: ${answer.status} ${said.slice(0, 300)}`);
    }
    const ending = new AbortController();
    for await (const message of followRuns(catalog, ['run'], ending.signal)) {
      if (/Cannot read|is not a function|not iterable/.test(JSON.stringify(message)))
        found.push(`${place}: ${JSON.stringify(message).slice(0, 300)}`);
      if (message.type === 'files') ending.abort();
    }
    await talk.close();
    await rm(home, { recursive: true });
  }
  expect(found).toEqual([]);
});

describe('a changed value is refused by name or read on', () => {
  it.each(Object.entries(commands))('%s', { timeout: 300_000 }, async (name, [words, pattern, input = '']) => {
    const source = name === 'ablate' ? study : one;
    const files = (await readdir(source, { recursive: true })).filter((file) => pattern.test(file)).sort();
    const random = new RandomStream('stored', name);
    const found: string[] = [];
    for (let i = 0; i < CHANGES; i++) {
      const home = await mkdtemp(join(root, 'changed-'));
      const run = join(home, name === 'ablate' ? 'study' : 'run');
      await mkdir(home, { recursive: true });
      await cp(source, run, { recursive: true });
      const place = await change(run, files, random);
      const wrong = complaint(await drmas(words(run), { input }));
      if (wrong !== undefined) found.push(`${place}: ${wrong}`);
      expect(await readdir(home)).toEqual([run.slice(home.length + 1)]);
      await rm(home, { recursive: true });
    }
    expect(found).toEqual([]);
  });
});
