/**
 * The packages as a user gets them: packed, unpacked into an empty folder, and used from projects that are set up in
 * the ways that people have. A page is followed as a reader types it. npm installs the engine alone into another
 * folder, and its README is followed there. It needs a build (`npm run build`).
 */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { LIBRARIES } from './support/libraries.js';
import { packAll, type Tarballs, unpackInto } from './support/packed-packages.js';
import { typedPage } from './support/typed-page.js';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Compiler settings of users' projects. The file that `drmas init` writes must compile with each of them. */
const projects: Record<string, ts.CompilerOptions> = {
  'as init writes it': { module: ts.ModuleKind.NodeNext, noEmit: true },
  'a library with declarations': { module: ts.ModuleKind.NodeNext, declaration: true },
  'part of a composite project': { module: ts.ModuleKind.NodeNext, composite: true, declarationMap: true },
  'resolution by a bundler': {
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    declaration: true,
  },
  'every strict setting, and the declarations of packages': {
    module: ts.ModuleKind.NodeNext,
    declaration: true,
    exactOptionalPropertyTypes: true,
    noPropertyAccessFromIndexSignature: true,
    verbatimModuleSyntax: true,
    skipLibCheck: false,
  },
};

/** A value of each kind whose type a user's declarations must be able to name. */
const EXPORTED_VALUES = `import {
  ablate, agent, boxed, checkpoint, evaluate, file, jsonl, lora, oneOf, pipeline, plannerExecutorVerifier,
  policyLoss, searchTeam, solverVerifier, tinyDecoder, train, valueLoss, entropyBonus, klPenalty,
  loadPolicy, bootstrapInterval, estimateAdvantages, filterGroups,
} from 'drmas';
import { lossGradient } from 'drmas/backends';
import { openEngine, openModel, trainingSample } from 'drmas/engine';
import { supportDesk } from 'drmas/recipes/desk/team';
import { toolboxSandbox } from 'drmas/recipes/repair/sandbox';
import { encyclopediaSearch } from 'drmas/recipes/search/world';
import { calculate } from 'drmas/tasks';
import { playScripted, scriptedSampler, trainTiny } from 'drmas/testing';

export const judge = agent({ parse: oneOf('yes', 'no') });
export const solver = agent({ parse: boxed });
export const teams = { pair: solverVerifier(), plan: plannerExecutorVerifier(), desk: supportDesk() };
export const line = pipeline({ agents: { first: {}, second: {} } });
export const models = { tiny: tinyDecoder, lora: lora(checkpoint('a/b'), { rank: 4 }) };
export const sources = { file: file('a.csv'), jsonl: jsonl('a.jsonl') };
export const run = () => train('math');
export const score = () => evaluate('runs/one');
export const study = (recipe: string) => ablate(recipe, { vary: {} });
export const losses = { policyLoss, valueLoss, entropyBonus, klPenalty, bootstrapInterval, estimateAdvantages, filterGroups };
export const load = () => loadPolicy('a');
export const search = [searchTeam, encyclopediaSearch, calculate, toolboxSandbox];
export const engine = { openEngine, openModel, trainingSample };
export const testing = { playScripted, scriptedSampler, trainTiny };
`;

/** The compiler's messages about a project, one line each. */
function complaints(directory: string, files: readonly string[], chosen: ts.CompilerOptions): string[] {
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2023,
    lib: ['lib.es2023.d.ts'],
    types: ['node'],
    strict: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: true,
    rootDir: directory,
    outDir: join(directory, 'out'),
    ...chosen,
  };
  const program = ts.createProgram({ rootNames: files.map((file) => join(directory, file)), options });
  const said = ts
    .getPreEmitDiagnostics(program)
    .map(({ file, messageText }) => `${file?.fileName ?? ''}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`);
  return [...new Set(said)];
}

/** Settings of public types whose declarations have no comment to show, as `Type.setting`. */
function undocumented(declarations: readonly string[]): string[] {
  const program = ts.createProgram([...declarations], { module: ts.ModuleKind.NodeNext, skipLibCheck: true });
  const checker = program.getTypeChecker();
  return declarations.flatMap((file) => {
    const source = program.getSourceFile(file);
    const module = source && checker.getSymbolAtLocation(source);
    if (module === undefined) throw new Error(`${file} declares nothing`);
    return checker
      .getExportsOfModule(module)
      .filter(({ name }) => /(Input|Options|AgentSpec|Definition|Sampling|SymbolsSpec)$/.test(name))
      .flatMap((symbol) => {
        const named = (symbol.flags & ts.SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol);
        const type = checker.getDeclaredTypeOfSymbol(named);
        const members = type.isUnion() ? type.types : [type];
        return members
          .flatMap((member) => member.getProperties())
          .filter(({ name }) => name !== 'type' && name !== 'input')
          .filter((property) => property.getDocumentationComment(checker).length === 0)
          .map(({ name }) => `${symbol.name}.${name}`);
      });
  });
}

/** Sources that maps point to and that a package lacks. */
function missingSources(installed: string): string[] {
  const maps = readdirSync(join(installed, 'dist'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.map'),
  );
  return maps.flatMap((map) => {
    const path = join(installed, 'dist', map);
    const { sources } = JSON.parse(readFileSync(path, 'utf8')) as { readonly sources: readonly string[] };
    return sources.filter((source) => !existsSync(resolve(dirname(path), source))).map((source) => `${map}: ${source}`);
  });
}

function node(directory: string, ...words: readonly string[]): string {
  return execFileSync(process.execPath, [...words], {
    cwd: directory,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** The other versions of Node that the package promises, as npm packages have them for this kind of machine. */
const OTHER_NODES = ['20.20', '22', '24'];

/** Programs of Node by version: the running one, and the others if npm has them for this machine. */
function nodes(place: string): Map<string, string> {
  const programs = new Map([[process.version, process.execPath]]);
  const kind = `node-${process.platform}-${process.arch}`;
  for (const version of OTHER_NODES) {
    if (process.version.startsWith(`v${version}.`)) continue;
    const folder = join(place, `node-${version}`);
    mkdirSync(folder);
    writeFileSync(join(folder, 'package.json'), '{}\n');
    try {
      execFileSync('npm', ['install', '--silent', '--no-audit', '--no-fund', `${kind}@${version}`], { cwd: folder });
      programs.set(`v${version}`, join(folder, 'node_modules', kind, 'bin', 'node'));
    } catch {
      console.log(`SKIPPED: Node ${version}, because npm cannot install ${kind}@${version}`);
    }
  }
  return programs;
}

/** The `package.json` of the folders in which people write a recipe; undefined is none. */
const MANIFESTS = [undefined, '{ "name": "x" }', '{ "type": "commonjs" }', '{ "type": "module" }'];

/** The faults that appear when recipes with an import of their own, in either language, are loaded in such folders. */
function unloadable(place: string, installed: string): string[] {
  const recipe = readFileSync(join(installed, 'templates/project/team.ts'), 'utf8');
  const plain = ts.transpileModule(recipe, { compilerOptions: { target: ts.ScriptTarget.ES2023 } }).outputText;
  const programs = nodes(place);
  return MANIFESTS.flatMap((manifest, i) => {
    const folder = join(place, `recipes ü ${i}`);
    mkdirSync(folder);
    if (manifest !== undefined) writeFileSync(join(folder, 'package.json'), manifest);
    writeFileSync(join(folder, 'steps.ts'), 'export const steps: number = 7;\n');
    writeFileSync(join(folder, 'other.js'), 'export const steps = 7;\n');
    const using = (text: string, file: string) =>
      `import { steps } from './${file}.js';\n${text.replace('steps: 100, tasksPerStep', 'steps, tasksPerStep')}`;
    for (const name of ['team.ts', 'team.mts']) writeFileSync(join(folder, name), using(recipe, 'steps'));
    for (const name of ['team.js', 'team.mjs']) writeFileSync(join(folder, name), using(plain, 'other'));
    const files = manifest?.includes('commonjs')
      ? ['team.ts', 'team.mts', 'team.js', 'team.mjs']
      : ['team.ts', 'team.js'];
    return [...programs].flatMap(([version, program]) =>
      files.flatMap((file) => {
        const words = [join(installed, 'dist/src/cli/main.js'), 'recipes', 'show', join(folder, file)];
        const { stdout, stderr } = spawnSync(program, words, { encoding: 'utf8' });
        const loaded = /"steps": 7,/.test(stdout);
        return loaded ? [] : [`Node ${version} cannot load ${file} beside ${manifest ?? 'no package.json'}: ${stderr}`];
      }),
    );
  });
}

/** The page that a reader follows from an empty folder to trained agents in an app. */
const PAGE = 'docs/ai-sdk.md';

/** The faults of the page when it is typed in an empty folder beside the installed package. */
function unfollowable(place: string, installed: string): string[] {
  const packages = join(place, 'packages');
  const programs = join(packages, '.bin');
  mkdirSync(programs, { recursive: true });
  const shared = join(root, 'node_modules');
  for (const name of readdirSync(shared))
    if (name !== '.bin' && name !== '@drmas') symlinkSync(join(shared, name), join(packages, name), 'junction');
  for (const name of ['drmas', '@drmas']) symlinkSync(join(installed, '..', name), join(packages, name), 'junction');
  const bin = join(installed, 'dist/src/cli/drmas.cjs');
  chmodSync(bin, 0o755); // as npm does
  symlinkSync(bin, join(programs, 'drmas'));
  symlinkSync(join(shared, '.bin/tsx'), join(programs, 'tsx'));
  const script = typedPage(readFileSync(join(installed, PAGE), 'utf8'), 'ln -s ../packages node_modules');
  const folder = join(place, 'page');
  mkdirSync(folder);
  symlinkSync(packages, join(folder, 'packages'), 'junction');
  const { status, stdout, stderr } = spawnSync('bash', ['-c', script], { cwd: folder, encoding: 'utf8' });
  const said = `${stdout}\n${stderr}`;
  const [, before, after] = /^score ([\d.]+) % -> ([\d.]+) %/m.exec(stdout) ?? [];
  const expected: Readonly<Record<string, boolean>> = {
    'its commands succeed': status === 0,
    // Not that it rises: kernels round differently, and the page has one seed and 24 tasks.
    'it prints both held-out scores': before !== undefined && after !== undefined,
    'the app answers': /^(coat|hat|no answer: .*)$/m.test(stdout),
    'the server answers': stdout.includes('"chat.completion"'),
  };
  const failed = Object.keys(expected).filter((what) => expected[what] !== true);
  return failed.length === 0 ? [] : [`${PAGE}: not true any more: ${failed.join(', ')}\n${said.slice(-4000)}`];
}

/** The faults if a reader installs the packed packages into an empty folder, as the pages say. */
function uninstallable(place: string, tarballs: Tarballs): string[] {
  const folder = join(place, 'an empty folder');
  mkdirSync(folder);
  const words = ['install', '--silent', '--prefer-offline', '--no-audit', '--no-fund', ...Object.values(tarballs)];
  execFileSync('npm', words, { cwd: folder });
  execFileSync('npx', ['drmas', 'init', 'my-team'], { cwd: folder });
  execFileSync('npm', ['install', '--silent', '--prefer-offline', '--no-audit', '--no-fund'], {
    cwd: join(folder, 'my-team'),
  });
  const { status, stderr } = spawnSync('npx', ['drmas', 'recipes', 'show', 'team.ts'], {
    cwd: join(folder, 'my-team'),
    encoding: 'utf8',
  });
  return status === 0 ? [] : [`the team of init does not load from the installed package: ${stderr}`];
}

/** The faults if Yarn installs the packages as Plug'n'Play does: from archives, with a file system of its own. */
function unusableInYarn(place: string, tarballs: Tarballs): string[] {
  const folder = join(place, 'yarn');
  const project = join(folder, 'project');
  mkdirSync(project, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{}\n');
  const yarnPackage = '@yarnpkg/cli-dist@4';
  execFileSync('npm', ['install', '--silent', '--no-audit', '--no-fund', yarnPackage], { cwd: folder });
  writeFileSync(join(project, 'yarn.lock'), '');
  const files = Object.fromEntries(Object.entries(tarballs).map(([name, file]) => [name, `file:${file}`]));
  const dependencies = { drmas: files.drmas, '@drmas/engine': files['@drmas/engine'] };
  const manifest = { type: 'module', dependencies, resolutions: files };
  writeFileSync(join(project, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(project, 'program.js'), IN_YARN);
  const yarn = join(folder, 'node_modules/@yarnpkg/cli-dist/bin/yarn.js');
  const env = {
    ...process.env,
    YARN_ENABLE_TELEMETRY: '0',
    YARN_GLOBAL_FOLDER: folder,
    YARN_NODE_LINKER: 'pnp',
    CI: '',
  };
  const run = (...words: string[]) =>
    spawnSync(process.execPath, [yarn, ...words], { cwd: project, env, encoding: 'utf8' });
  const outputs = [
    run('install'),
    run('drmas', 'init', '.'),
    run('drmas', 'plan', 'team.ts'),
    run('node', 'program.js'),
  ];
  const failed = outputs.find(({ status }) => status !== 0);
  return failed === undefined ? [] : [`Yarn's Plug'n'Play: ${failed.stdout}${failed.stderr}`];
}

/** Saves a model, and fails if a library or the project itself has another engine. */
const IN_YARN = `import { createRequire } from 'node:module';
import { tinyDecoder } from 'drmas';
import { openModel } from 'drmas/engine';
const project = createRequire(import.meta.url);
const drmas = createRequire(project.resolve('drmas'));
const engineOf = (name) => createRequire(drmas.resolve(name)).resolve('@drmas/engine');
if (project.resolve('@drmas/engine') !== drmas.resolve('@drmas/engine')) throw new Error('there are two engines');
for (const name of ['@drmas/tinker', '@drmas/webgpu'])
  if (engineOf(name) !== drmas.resolve('@drmas/engine')) throw new Error(name + ' has another engine than drmas');
const sizes = { width: 48, layers: 1, heads: 3, feedForward: 64, context: 64 };
const model = await openModel(tinyDecoder({ ...sizes, tokenizer: { type: 'bytes' } }), { seed: 7, threads: 1 });
await model.save('model');
await model.dispose();
`;

/** The faults if npm installs the engine alone, and its README is followed. */
function unusableAlone(place: string, tarballs: Tarballs): string[] {
  const folder = join(place, 'the engine alone');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
  const engine = [tarballs['@drmas/engine'], tarballs['@drmas/webgpu']];
  execFileSync('npm', ['install', '--silent', '--prefer-offline', '--no-audit', '--no-fund', ...engine], {
    cwd: folder,
  });
  if (existsSync(join(folder, 'node_modules/drmas'))) return ['@drmas/engine brings drmas'];
  const readme = readFileSync(join(folder, 'node_modules/@drmas/engine/README.md'), 'utf8');
  const [, program] = /^```ts\n([\s\S]*?)^```$/m.exec(readme) ?? [];
  if (program === undefined) return ['the README of @drmas/engine has no program'];
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
  writeFileSync(join(folder, 'program.js'), ts.transpileModule(program, { compilerOptions }).outputText);
  return [...nodes(mkdtempSync(join(place, 'nodes-')))].flatMap(([version, node]) => {
    const { stdout, stderr } = spawnSync(node, ['program.js'], { cwd: folder, encoding: 'utf8' });
    const learnt = /^loss -?[\d.e-]+, norm of the gradient [\d.e-]+$/m.test(stdout);
    return learnt ? [] : [`Node ${version}: the README of @drmas/engine does not hold: ${stdout}${stderr}`];
  });
}

/** A program for which the names of both packages must be the same things. */
const BOTH = `import * as engine from '@drmas/engine';
import * as errors from '@drmas/engine/errors';
import * as drmas from 'drmas';
import * as through from 'drmas/engine';
const failure = await drmas.loadPolicy('nowhere').catch((error) => error);
const raised = failure instanceof engine.DrmasError && failure instanceof errors.DrmasError;
const same = Object.keys(engine).filter((name) => engine[name] !== through[name]);
console.log(raised && same.length === 0 && drmas.ArgumentError === engine.ArgumentError ? 'one engine' : failure);
`;

const place = mkdtempSync(join(tmpdir(), 'drmas-package-'));
try {
  const tarballs = packAll(place);
  const directory = join(place, 'project');
  const installed = join(directory, 'node_modules', 'drmas');
  const libraries = Object.keys(LIBRARIES).map((name) => join(directory, 'node_modules', name));
  unpackInto(join(directory, 'node_modules'), tarballs);
  // The package's dependencies are found in a parent folder, in this clone's packages.
  symlinkSync(join(root, 'node_modules'), join(place, 'node_modules'), 'junction');
  const team = readFileSync(join(installed, 'templates/project/team.ts'), 'utf8');
  writeFileSync(join(directory, 'package.json'), '{ "type": "module" }\n');
  writeFileSync(join(directory, 'team.ts'), team);
  writeFileSync(join(directory, 'values.ts'), EXPORTED_VALUES);

  const problems = [
    ...Object.entries(projects).flatMap(([name, options]) =>
      complaints(directory, ['team.ts', 'values.ts'], options).map((line) => `${name}: ${line}`),
    ),
    ...undocumented([
      ...['index.d.ts', 'runs/testing/index.d.ts'].map((file) => join(installed, 'dist/src', file)),
      ...libraries.map((folder) => join(folder, 'dist/index.d.ts')),
    ]).map((setting) => `${setting} shows no documentation in an editor`),
    ...unloadable(place, installed),
    ...uninstallable(place, tarballs),
    ...unfollowable(place, installed),
    ...unusableAlone(place, tarballs),
    ...unusableInYarn(place, tarballs),
    ...[installed, ...libraries]
      .flatMap(missingSources)
      .map((line) => `a source map points to a file that does not ship: ${line}`),
    ...[
      'docs/getting-started.md',
      'docs/reference/settings.md',
      'recipes/math/recipe.ts',
      'recipes/repair/world.ts',
      'LICENSE',
      ...libraries.flatMap((folder) => ['README.md', 'LICENSE'].map((file) => relative(installed, join(folder, file)))),
      ...['native/kernels.cpp', 'native/drmas.wasm', 'python/drmas_torch/__main__.py'].map(
        (file) => `../@drmas/engine/${file}`,
      ),
    ]
      .filter((file) => !existsSync(join(installed, file)))
      .map((file) => `${file} does not ship`),
  ];
  // A CommonJS program gets the same module by `require`, which Node 20.19 and newer can do.
  const required = node(directory, '--no-warnings', '-e', 'console.log(typeof require("drmas").defineTeam)').trim();
  if (required !== 'function') problems.push(`require('drmas').defineTeam is ${required}`);
  writeFileSync(join(directory, 'both.js'), BOTH);
  const both = node(directory, 'both.js').trim();
  if (both !== 'one engine') problems.push(`drmas and @drmas/engine differ: ${both}`);
  for (const problem of problems) console.error(problem);
  if (problems.length === 0)
    console.log(`the packages are whole: ${Object.keys(projects).length} kinds of projects compile`);
  process.exitCode = problems.length === 0 ? 0 : 1;
} finally {
  rmSync(place, { recursive: true });
}
