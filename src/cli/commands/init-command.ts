import { existsSync, readFileSync, statSync } from 'node:fs';
import { lstat, rm } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ArgumentError, HubError, messageOf } from '@drmas/engine/errors';
import { describeModel, modelDirectory } from '@drmas/engine/formats';
import { commandText, nodeFiles, requireLoadablePath } from '@drmas/engine/platform';
import { defineCommand, optionalArgument } from '../define-command.js';
import { text } from '../flags.js';
import { aroundProgram, MODEL } from '../init/around-program.js';
import { exampleOf } from '../init/examples.js';
import {
  extendedManifest,
  newManifest,
  type PlannedManifest,
  type ProjectKind,
  packageRoot,
  projectName,
  recipeScripts,
  templateKind,
} from '../init/project-manifest.js';

const template = join(packageRoot, 'templates', 'project');

const TEAM = ['team.ts', 'team.test.ts', 'tasks/train.jsonl', 'tasks/test.jsonl'];

const AROUND = ['README.md', 'tsconfig.json'];

/** No file of the template, because npm leaves files of this name out of a package. */
const ignored = { name: '.gitignore', text: 'node_modules/\nruns/\n' };

/** The template's file of a team whose agents are adapters on a model. In a project it is the team's file. */
const ON_MODEL = 'team-on-model.ts';

/** The README's sentences about the model and its training, and the lines that say what to do next. */
const TOY = {
  training: 'seconds: from about 35 % to about 97 % right answers',
  plan: 'will reinforcement help?',
  about: `The model is a toy that knows seventeen symbols. For any other text use \`tokenizer: { type: 'bytes' }\` or a language
   model: \`model: checkpoint('path/to/model')\`. A model that can already answer needs no demonstrations: remove \`trace\`
   and \`warmStart\`.`,
};
const LANGUAGE_MODEL = {
  training: 'minutes to hours, by the size of the model',
  plan: 'plays 32 tasks: will reinforcement help, and how long does it take?',
  about: `The agents are adapters on the model in \`checkpoint(...)\`; its path starts at the recipe's file. A model that
   does not keep to the form of an answer needs demonstrations: \`trace\` and \`warmStart\`.`,
};

interface ProjectModel {
  /** Its path or name in the recipe. */
  readonly path: string;
  /** False if a hub has it, so that the first run downloads it. */
  readonly here: boolean;
}

interface Project {
  /** Files that belong together. If one of them exists, `init` writes nothing. */
  readonly files: readonly { readonly name: string; readonly text: string }[];
  /** Files of any project, which are kept if they exist. */
  readonly around: readonly { readonly name: string; readonly text: string }[];
  readonly next: readonly string[];
}

export const init = defineCommand({
  name: 'init',
  description: 'create a project: team, recipe, tasks, a test; or a recipe around a program of yours; or an example',
  details:
    'creates a project with a team, a recipe, tasks and a test, or adds them to a project that has a package.json. With `--model` the agents are LoRA adapters on that model instead of a toy; if the model is on this machine, drmas first reads its header. It asks no network. With `--from` it writes a recipe and tasks around your agents of AI SDK or your graph of LangGraph, with settings for a small pretrained model; it reads the program as text and does not run it. With `--example` it writes one of the examples instead. It adds to package.json and changes no other file',
  arguments: [
    optionalArgument('directory', 'a new directory, or the directory of a project (with --example: its name)'),
  ],
  flags: {
    model: text(
      'model',
      'the agents are LoRA adapters on this model: a GGUF file, a directory, a name in Ollama or LM Studio, org/name on a hub',
    ),
    from: text('file', 'write a recipe and tasks around this program: agents of AI SDK, or a graph of LangGraph'),
    example: text('name', 'write this example instead; a wrong name lists the known ones'),
  },
  examples: [
    'drmas init my-team',
    'drmas init my-team --model path/to/model.gguf',
    'drmas init --from src/graph.ts --model path/to/model.gguf',
    'drmas init .',
    'drmas init --example judge',
  ],
  async run(context, [named], { example, from, model: modelName }) {
    const directory = named ?? example ?? (from === undefined ? undefined : '.');
    // An empty name may come from a variable of a shell that is not set.
    if (directory === undefined || directory === '')
      throw new ArgumentError('init: expected a directory, as in drmas init my-team, or --example <name>');
    if (example !== undefined) exampleOf(example, 'ts'); // a wrong name must leave no directory behind
    if (example !== undefined && (modelName ?? from) !== undefined)
      throw new ArgumentError('init: an example has a model and a program of its own: --example stands alone');
    const target = resolve(directory);
    const model = modelName === undefined ? undefined : await modelOf(modelName, target, context.environment);
    if (from !== undefined) aroundProgram(resolve(from), target, { extension: 'ts' }); // before there is a directory
    try {
      requireLoadablePath(pathToFileURL(join(target, 'team.ts')).href);
      await nodeFiles.makeDirectory(target);
      if (!statSync(target).isDirectory()) throw new Error('it is a file');
    } catch (error) {
      throw new ArgumentError(`cannot write ${directory}: ${messageOf(error)}`);
    }
    const present = async (file: string) => (await nodeFiles.exists(join(target, file))) || isLink(join(target, file));
    const isProject = await present('package.json');
    const kind = from !== undefined ? aroundKind : example === undefined ? templateKind : kindOf(example);
    const manifest = isProject ? extendedManifest(target, kind) : newManifest(target, kind);
    const { files, around, next } =
      from !== undefined
        ? aroundProject(target, resolve(from), manifest, model)
        : example === undefined
          ? teamProject(target, manifest, model)
          : exampleProject(target, example, manifest);
    for (const { name } of files)
      if (await present(name)) throw new ArgumentError(`${join(directory, name)} exists; drmas overwrites nothing`);

    const [written, kept]: [string[], string[]] = [[], []];
    try {
      for (const { name, text } of [...files, ...around]) {
        if (await present(name)) {
          kept.push(name);
          continue;
        }
        await nodeFiles.makeDirectory(dirname(join(target, name)));
        written.push(name); // first: a write that fails leaves a part
        await nodeFiles.write(join(target, name), text);
      }
      await nodeFiles.replace(join(target, 'package.json'), manifest.text);
    } catch (error) {
      // None of them was there, and the next attempt would refuse them.
      await Promise.allSettled(written.map((name) => rm(join(target, name), { force: true })));
      throw new ArgumentError(`cannot write ${directory}: ${messageOf(error)}`);
    }
    const { added, extension, scripts } = manifest;
    const renamed = Object.entries(scripts).filter(([purpose, name]) => purpose !== name);
    const lines = [
      `${directory}: ${(isProject ? written : ['package.json', ...written]).join(', ')}`,
      ...(added.length > 0 ? [`package.json: added ${added.join(', ')}`] : []),
      ...renamed.map(([taken, name]) => `package.json: the script ${taken} stays as it is; drmas's is ${name}`),
      ...(kept.length > 0 ? [`unchanged: ${kept.join(', ')}`] : []),
      ...(kept.includes('.gitignore') ? ['add runs/ to .gitignore: drmas writes runs there'] : []),
      ...(model?.here === false ? [`model: ${model.path} of the hub, which drmas downloads when a run begins`] : []),
      ...(extension === 'mts' ? ['the files end in .mts, because package.json has no "type": "module"'] : []),
      '',
      'next',
      ...(target === resolve('.') ? [] : [`  ${commandText(['cd', directory])}`]),
      '  npm install',
      ...next,
    ];
    for (const line of lines) context.stdout.write(`${line}\n`);
    return 0;
  },
});

/** Whether a path is a link, which may lead nowhere: writing to it would make a file elsewhere. */
const isLink = (path: string): Promise<boolean> =>
  lstat(path).then(
    (status) => status.isSymbolicLink(),
    () => false,
  );

/**
 * Looks a model up and reads its header, but no weights. A relative path starts at the project from here on.
 * @throws ArgumentError, CheckpointError if there is no such model, or if drmas cannot compute it, with the reason
 */
async function modelOf(named: string, target: string, environment: NodeJS.ProcessEnv): Promise<ProjectModel> {
  const offline = { ...environment, HF_HUB_OFFLINE: '1' };
  try {
    await describeModel(nodeFiles, await modelDirectory(named, { files: 'tokenizer', environment: offline }));
  } catch (error) {
    if (!(error instanceof HubError)) throw error;
    if (named.endsWith('.gguf')) throw new ArgumentError(`${named}: there is no such file`);
    return { path: named, here: false };
  }
  if (isAbsolute(named) || !existsSync(named)) return { path: named, here: true };
  const path = relative(target, resolve(named)).split(sep).join('/');
  return { path: path.startsWith('../') ? path : `./${path}`, here: true };
}

function teamProject(target: string, { scripts, extension }: PlannedManifest, model?: ProjectModel): Project {
  const words = model === undefined ? TOY : LANGUAGE_MODEL;
  const values: readonly (readonly [placeholder: string, value: string])[] = [
    ['{{name}}', projectName(target)],
    ['{{training}}', words.training],
    ['{{about the model}}', words.about.replace('<recipe>', `team.${extension}`)],
    ['{{model}}', (model?.path ?? '').replaceAll(/['\\]/g, '\\$&')],
  ];
  const fileOf = (file: string) => {
    const source = file === 'team.ts' && model !== undefined ? ON_MODEL : file;
    return {
      name: file.replace(/^(team.*)\.ts$/, `$1.${extension}`),
      text: withNames(filled(readFileSync(join(template, source), 'utf8'), values, extension), scripts),
    };
  };
  return {
    files: TEAM.map(fileOf),
    around: [...AROUND.map(fileOf), ignored],
    next: [
      `  npm run ${scripts.plan}     ${words.plan}`,
      `  npm run ${scripts.train}    ${words.training}`,
      `  npm run ${scripts.watch}    a live dashboard in the browser`,
      `  npm run ${scripts.report}   one HTML page about the last run`,
      '',
      `then change team.${extension} and tasks/ (see README.md)`,
    ],
  };
}

const aroundKind: ProjectKind = {
  scripts: (extension) => recipeScripts(`recipe.${extension}`),
  packages: [],
};

/** The recipe and the tasks around a program of the user's. Tasks that are there stay. */
function aroundProject(
  target: string,
  program: string,
  { scripts, extension }: PlannedManifest,
  model?: ProjectModel,
): Project {
  const { recipe, tasks } = aroundProgram(program, target, { extension, model: model?.path });
  return {
    files: [recipe],
    around: [{ name: 'tasks.jsonl', text: tasks }, ignored],
    next: [
      ...(model === undefined
        ? [`  put a small model into ${MODEL}   docs/train-your-production-agent.md#3-choose-the-open-model`]
        : []),
      '  write your tasks into tasks.jsonl, one a line: 20 or more',
      `  npx drmas demonstrate ${recipe.name} --min-score 1   you answer for the agents, on a few tasks`,
      `  npm run ${scripts.plan}     does the model write what the program reads? will reinforcement help?`,
      `  npm run ${scripts.train}`,
    ],
  };
}

function kindOf(example: string): ProjectKind {
  const { packages } = exampleOf(example, 'ts');
  return {
    packages,
    scripts: (extension) => {
      const { recipes, files } = exampleOf(example, extension);
      const [recipe] = recipes;
      const [program] = files;
      if (recipe === undefined) return { start: `tsx ${program?.name}`, check: 'tsc' };
      return { ...(recipes.length > 1 ? {} : recipeScripts(recipe)), check: 'tsc' };
    },
  };
}

/** The project of an example, which is explained by the comment at its top. */
function exampleProject(target: string, example: string, { scripts, extension }: PlannedManifest): Project {
  const { files, recipes } = exampleOf(example, extension);
  const { around } = teamProject(target, { scripts, extension, text: '', added: [] });
  const [first] = recipes;
  const runs =
    first === undefined
      ? [`  npm run ${scripts.start}`]
      : recipes.length > 1
        ? recipes.map((file) => `  ${commandText(['npx', 'drmas', 'train', file])}`)
        : [`  npm run ${scripts.plan}`, `  npm run ${scripts.train}`];
  return {
    files,
    around: around.filter(({ name }) => name !== 'README.md'),
    next: [...runs, '', `The comment at the top of ${first ?? files[0]?.name} says what the example shows and needs.`],
  };
}

function filled(
  text: string,
  values: readonly (readonly [placeholder: string, value: string])[],
  extension: 'ts' | 'mts',
): string {
  const here = values.reduce((all, [placeholder, value]) => all.replaceAll(placeholder, () => value), text);
  if (extension === 'ts') return here;
  return here
    .replaceAll('./team.js', './team.mjs')
    .replaceAll(/\b(team(?:\.test)?)\.ts\b/g, '$1.mts')
    .replace('"*.ts"', '"*.mts"');
}

const withNames = (text: string, scripts: PlannedManifest['scripts']): string =>
  Object.entries(scripts).reduce(
    (all, [purpose, name]) =>
      purpose === name ? all : all.replaceAll(new RegExp(`\\bnpm (?:run )?${purpose}\\b`, 'g'), `npm run ${name}`),
    text,
  );
