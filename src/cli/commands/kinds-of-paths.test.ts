/** A path to something else than a command needs: each command names the thing that it found. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { drmas, plainRecipe } from '../../../test/support/command-line.js';
import { prepareRun } from '../../../test/support/recorded-run.js';

let root: string;
let server: Server;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'drmas-kinds-'));
  writeFileSync(join(root, 'file'), 'text');
  mkdirSync(join(root, 'empty'));
  await (await prepareRun(join(root, 'runs', 'first'), { overrides: ['training.steps=1'] })).close();
  writeFileSync(join(root, 'events.jsonl'), '{"type":"run.started","version":1}\n');
  symlinkSync('nowhere', join(root, 'dangling'));
  symlinkSync('loop', join(root, 'loop'));
  server = createServer();
  await new Promise<void>((listening) => server.listen(join(root, 'socket'), listening));
});
afterAll(async () => {
  await new Promise((closed) => server.close(closed));
  rmSync(root, { recursive: true });
});

const ofRuns = {
  file: 'is a file and no directory',
  socket: 'is a socket and no directory',
  dangling: 'is a link that leads nowhere',
  loop: 'is a link that leads to itself',
  'file/below': 'does not exist: a part of the path is a file',
  missing: 'there is no',
};
const noRun = 'is not a run: it has no recipe.json';
const recipe = "there is no recipe '";
const ofRecipes = {
  empty: 'is a directory without ablation.json, and a recipe is a file or a name',
  'runs/first': 'is a run and no recipe; its recipe: math --set training.steps=1',
  ...{ file: recipe, socket: recipe, dangling: recipe, loop: recipe, 'file/below': recipe, missing: recipe },
};

const commands: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  runs: ofRuns,
  'report PATH --to page.html': { ...ofRuns, empty: noRun },
  'doctor verify': { ...ofRuns, empty: noRun },
  evaluate: { ...ofRuns, empty: noRun },
  resume: { ...ofRuns, empty: noRun },
  'export PATH --to model': { ...ofRuns, empty: noRun },
  ablate: ofRecipes,
  compare: { ...ofRecipes, 'runs/first': 'is a run, and compare trains: it takes a recipe' },
  train: ofRecipes,
  tasks: ofRecipes,
  plan: ofRecipes,
  inspect: {
    'events.jsonl': "the events of a run; name the run's directory, or a file of its episodes",
    empty: 'expected a log (.jsonl, .json), found none',
    file: 'expected one JSON object',
    socket: 'it is not a regular file',
    dangling: 'it is a link that leads nowhere',
    loop: 'it is a link that leads to itself',
    missing: 'no such file or directory',
  },
  import: {
    empty: 'the folder has no .json, .jsonl or .ndjson file',
    file: 'found no spans',
    socket: 'is no regular file, and is read more than once',
    dangling: 'no such file or directory',
    loop: 'too many symbolic links',
    missing: 'no such file or directory',
  },
};

/** Folders and files that cannot be made, each with the reason. */
const newPlaces = { 'file/below': 'not a directory', file: 'file already exists' };

it.each(Object.entries(newPlaces))('drmas import and demonstrate write nothing to %j', async (place, reason) => {
  const recipe = join(root, 'recipe.mjs');
  writeFileSync(recipe, plainRecipe);
  writeFileSync(join(root, 'traces.jsonl'), 'no trace'); // the place is looked at first
  const commands = [
    ['import', join(root, 'traces.jsonl'), '--yes', '--out', join(root, place)],
    ['demonstrate', recipe, '--out', join(root, place, 'demonstrations.jsonl')],
  ];
  for (const words of commands) {
    const { code, err } = await drmas(words, { input: '1\n' });
    expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(/^error: .+ cannot be written: .+\n$/) });
    expect(err).toContain(reason);
  }
});

it('drmas import reads a pipe once or not at all, and leaves no folder', async () => {
  const pipe = join(root, 'pipe.jsonl');
  execFileSync('mkfifo', [pipe]);
  const out = join(root, 'new');
  const { code, err } = await drmas(['import', pipe, '--yes', '--out', out]);
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('is no regular file') });
  expect(existsSync(out)).toBe(false);
});

describe.each(Object.entries(commands))('drmas %s', (command, kinds) => {
  it.each(Object.entries(kinds))('%s', async (kind, message) => {
    const path = join(root, kind);
    const words = (command.includes('PATH') ? command : `${command} PATH`).split(' ');
    const { code, out, err } = await drmas(words.map((word) => (word === 'PATH' ? path : word)));
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(message);
    expect(err).toContain(path);
    expect(err).toMatch(/^error: [^\n]+\n$/);
  });
});
