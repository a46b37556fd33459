/**
 * The package as a user gets it: packed, unpacked into an empty folder, and used from projects that are set up in the
 * ways that people have. It needs a build (`npm run build`).
 */
import { execFileSync } from 'node:child_process';
import {
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
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

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

/** Sources that maps point to and that the package lacks. */
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

const place = mkdtempSync(join(tmpdir(), 'drmas-package-'));
try {
  execFileSync('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', place], { cwd: root });
  const [tarball = ''] = readdirSync(place);
  const directory = join(place, 'project');
  const installed = join(directory, 'node_modules', 'drmas');
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['xzf', tarball, '-C', installed, '--strip-components=1'], { cwd: place });
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
    ...undocumented(
      ['index.d.ts', 'engine/library/index.d.ts', 'runs/testing/index.d.ts'].map((file) =>
        join(installed, 'dist/src', file),
      ),
    ).map((setting) => `${setting} shows no documentation in an editor`),
    ...missingSources(installed).map((line) => `a source map points to a file that does not ship: ${line}`),
    ...[
      'docs/getting-started.md',
      'docs/reference/settings.md',
      'recipes/math/recipe.ts',
      'recipes/repair/world.ts',
      'native/kernels.cpp',
      'LICENSE',
    ]
      .filter((file) => !existsSync(join(installed, file)))
      .map((file) => `${file} does not ship`),
  ];
  // A CommonJS program gets the same module by `require`, which Node 20.19 and newer can do.
  const required = node(directory, '--no-warnings', '-e', 'console.log(typeof require("drmas").defineTeam)').trim();
  if (required !== 'function') problems.push(`require('drmas').defineTeam is ${required}`);
  for (const problem of problems) console.error(problem);
  if (problems.length === 0)
    console.log(`the package is whole: ${Object.keys(projects).length} kinds of projects compile`);
  process.exitCode = problems.length === 0 ? 0 : 1;
} finally {
  rmSync(place, { recursive: true });
}
