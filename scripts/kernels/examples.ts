import { wrapped } from './cpp.js';
import {
  type BufferParameter,
  buffersOf,
  countOf,
  everyKernel,
  GENERATED,
  holdsIndices,
  isSizeFunction,
  type Kernel,
  objectOf,
  type Parameter,
  rewriteCalls,
  versionsOf,
} from './declarations.js';

/** The sizes that a test program has: whatever the manifest calls a `size` must be one of them or have an example. */
const SIZES = ['rows', 'inputs', 'outputs', 'width', 'feedForward', 'vocabSize', 'capacity', 'sequences', 'length'];

const file = (lines: readonly string[]) => `// ${GENERATED}\n${lines.join('\n')}\n`;

/** The value of a size. @throws if none is declared */
function sizeOf(kernel: Kernel, name: string): string {
  const example = kernel.examples?.[name];
  if (example !== undefined) return example;
  if (!SIZES.includes(name)) throw new Error(`${kernel.name}: the size ${name} needs an example`);
  return `s.${name}`;
}

/** The contents of a buffer: an expression of `r`. */
function contentsOf(kernel: Kernel, { name, element, below }: BufferParameter): string {
  const example = kernel.examples?.[name];
  if (example !== undefined) return example;
  if (below === 'none') throw new Error(`${kernel.name}: the indices ${name} need an example`);
  if (below !== undefined) return `below(${below})`;
  return element === 'i32' ? '0' : 'noise()';
}

/** The sizes that a kernel's expressions use and that are no parameters of it. */
function usedSizes({ examples = {}, parameters }: Kernel): string[] {
  const texts = [
    ...Object.values(examples),
    ...parameters.flatMap((each) => (each.kind === 'buffer' ? [each.length] : [])),
  ];
  const declared = new Set(parameters.map(({ name }) => name));
  return SIZES.filter((size) => !declared.has(size) && texts.some((text) => new RegExp(`\\b${size}\\b`).test(text)));
}

/** The names of a kernel's flags; a test program runs it with each of them false and true. */
const flagsOf = ({ parameters }: Kernel) => parameters.filter(({ kind }) => kind === 'bool').map(({ name }) => name);

/** Whether the buffer is a matrix in the private layout that `pack` writes, which a kernel reads. */
const isPacked = ({ element, readOnly, ...rest }: BufferParameter) =>
  (element === 'weights' || element === 'bf16') && readOnly && rest.private;

/** The function that makes such a matrix. */
const packing = ({ element }: BufferParameter, version: string): string =>
  element === 'bf16' ? 'bfloat16PackedMatrix' : `packedMatrix${version.endsWith('Bfloat16') ? 'Bfloat16' : ''}`;

const isCoarse = ({ element }: BufferParameter, version: string): boolean =>
  element === 'bf16' || (element === 'weights' && version.endsWith('Bfloat16'));

// ---- C++ -----------------------------------------------------------------------------------------------------------

const cppExpression = (kernel: Kernel, expression: string): string =>
  rewriteCalls(expression.replaceAll('===', '=='), (name, values) => {
    if (isSizeFunction(name)) return `long(k.${name}(${values}))`;
    if (name === 'max') return `std::max(${values})`;
    if (name === 'indexed') return `indexed(${values})`;
    if (name === 'last') return `${values}[size_t(${countOf(kernel, values)})]`;
    if (name === 'qkvWidth') return `${values}.stride()`;
    return `${name}(${values})`;
  });

/** The statement that makes an argument of a version of a kernel. */
function cppArgument(kernel: Kernel, parameter: Parameter, version: string, indent: string): string[] {
  const { name } = parameter;
  if (parameter.kind === 'size')
    return [`${indent}const long ${name} = ${cppExpression(kernel, sizeOf(kernel, name))};`];
  if (parameter.kind === 'heads') return [`${indent}const Heads ${name} = s.heads;`];
  if (parameter.kind !== 'buffer') return [];
  const length = cppExpression(kernel, parameter.length);
  const { element, readOnly } = parameter;
  if (element === 'offsets') return [`${indent}const Integers ${name} = evenOffsets(${length}, s.rows);`];
  const coarse = isCoarse(parameter, version);
  if (isPacked(parameter))
    return [`${indent}const auto ${name} = ${packing(parameter, version)}(k, pool, inputs, outputs);`];
  const contents = cppExpression(kernel, contentsOf(kernel, parameter));
  const [type, cast] = coarse
    ? ['Coarse', 'upperHalf']
    : element === 'i32'
      ? ['Integers', 'int32_t']
      : ['Floats', 'float'];
  const body = `[&](${/\br\b/.test(contents) ? 'long r' : 'long'}) { return ${cast}(${contents}); });`;
  return [wrapped(`${indent}${readOnly ? 'const ' : ''}${type} ${name} = filled<${type}>(`, [length, body], '')];
}

/** Scalars first, the ones with examples last; then indices, then buffers whose lengths depend on all of these. */
const ordered = ({ parameters, examples = {} }: Kernel) => [
  ...parameters.filter(({ kind, name }) => kind !== 'buffer' && examples[name] === undefined),
  ...parameters.filter(({ kind, name }) => kind !== 'buffer' && examples[name] !== undefined),
  ...parameters.filter((each) => each.kind === 'buffer' && holdsIndices(each)),
  ...parameters.filter((each) => each.kind === 'buffer' && !holdsIndices(each)),
];

function cppValue(parameter: Parameter): string {
  if (parameter.kind === 'buffer') return `${parameter.name}.data()`;
  if (parameter.kind === 'f32') return '1e-5f';
  return parameter.kind === 'adamw' ? 'kSettings' : parameter.name;
}

const cppName = (version: string) => `run${version.charAt(0).toUpperCase()}${version.slice(1)}`;

function cppRun(kernel: Kernel, version: string): string {
  const flags = flagsOf(kernel);
  const indent = '  '.repeat(flags.length + 1);
  const written = buffersOf(kernel).filter(({ readOnly }) => !readOnly);
  const values = kernel.parameters.map(cppValue);
  const call = wrapped(
    `${indent}${kernel.returns === 'nothing' ? '' : 'const auto result = '}k.${version}(`,
    kernel.returns === 'size' ? values : ['pool', ...values],
    ');',
  );
  return [
    `void ${cppName(version)}(const KernelTable& k, ${kernel.returns === 'size' ? 'Pool&' : 'Pool& pool'}, const Sizes& s) {`,
    ...usedSizes(kernel).map((size) => `  const long ${size} = s.${size};`),
    ...flags.map((flag, depth) => `${'  '.repeat(depth + 1)}for (const bool ${flag} : {false, true}) {`),
    ...ordered(kernel).flatMap((parameter) => cppArgument(kernel, parameter, version, indent)),
    call,
    ...(kernel.returns === 'nothing' ? [] : [`${indent}keep(s, "${version}", Floats{float(result)});`]),
    ...written.map(({ name }) => `${indent}keep(s, "${version}(${name})", ${name});`),
    ...flags.map((_, depth) => `${'  '.repeat(flags.length - depth)}}`),
    '}',
    '',
  ].join('\n');
}

/** test/native/every-kernel.h: a function a version of a kernel, which runs it on example arguments. */
export function nativeExamples(): string {
  const versions = everyKernel.flatMap((kernel) => versionsOf(kernel).map((version) => ({ kernel, version })));
  return file([
    '// Runs every kernel on examples of its arguments. every-kernel.cpp includes this after what makes them.',
    '#pragma once',
    '',
    ...versions.map(({ kernel, version }) => cppRun(kernel, version)),
    'void runAll(const KernelTable& k, Pool& pool, const Sizes& s) {',
    ...versions.map(({ version }) => `  ${cppName(version)}(k, pool, s);`),
    '}',
  ]);
}

// ---- TypeScript ----------------------------------------------------------------------------------------------------

const expressionOf = (kernel: Kernel, expression: string): string =>
  rewriteCalls(expression, (name, values) => {
    if (isSizeFunction(name)) return `kernels.${name}(${objectOf(name, values)})`;
    if (name === 'max') return `Math.max(${values})`;
    if (name === 'last') return `(${values}[${countOf(kernel, values)}] as number)`;
    return `${['indexed', 'qkvWidth'].includes(name) ? '' : 'e.'}${name}(${values})`;
  });

function argumentOf(kernel: Kernel, parameter: Parameter, version: string): string[] {
  const { name } = parameter;
  if (parameter.kind === 'size') return [`const ${name} = ${expressionOf(kernel, sizeOf(kernel, name))};`];
  if (parameter.kind === 'heads') return [`const ${name} = s.heads;`];
  if (parameter.kind !== 'buffer') return [];
  const length = expressionOf(kernel, parameter.length);
  if (parameter.element === 'offsets') return [`const ${name} = e.offsets(${length}, s.rows);`];
  const coarse = isCoarse(parameter, version);
  if (isPacked(parameter)) return [`const ${name} = e.${packing(parameter, version)}(inputs, outputs);`];
  const contents = expressionOf(kernel, contentsOf(kernel, parameter));
  const method = coarse ? 'bfloat16' : parameter.element === 'i32' ? 'integers' : 'floats';
  return [`const ${name} = e.${method}(${length}, (${/\br\b/.test(contents) ? 'r' : ''}) => ${contents});`];
}

function runOf(kernel: Kernel, version: string): string {
  const flags = flagsOf(kernel);
  const values = kernel.parameters.map(({ kind, name }) =>
    kind === 'f32' ? `${name}: 1e-5` : kind === 'adamw' ? `${name}: SETTINGS` : name,
  );
  const call = `kernels.${kernel.name}({ ${values.join(', ')} })`;
  const suffix = flags.map((flag) => `, \${${flag} ? '' : 'no '}${flag}`).join('');
  const label = (name: string) => (suffix === '' ? `'${version}(${name})'` : `\`${version}(${name})${suffix}\``);
  return [
    `(e) => {`,
    'const { kernels, sizes: s } = e;',
    ...usedSizes(kernel).map((size) => `const { ${size} } = s;`),
    ...flags.map((flag) => `for (const ${flag} of [false, true]) {`),
    ...ordered(kernel).flatMap((parameter) => argumentOf(kernel, parameter, version)),
    ...(kernel.returns === 'nothing'
      ? [`${call};`]
      : [`e.${kernel.returns === 'size' ? 'keepPrivate' : 'keep'}('${version}', Float32Array.of(${call}));`]),
    ...buffersOf(kernel)
      .filter(({ readOnly }) => !readOnly)
      .map((buffer) => `e.${buffer.private ? 'keepPrivate' : 'keep'}(${label(buffer.name)}, ${buffer.name});`),
    ...flags.map(() => '}'),
    '},',
  ].join('\n');
}

const runsOf = (only: Kernel['only']) =>
  everyKernel
    .filter((kernel) => kernel.only === only)
    .flatMap((kernel) => versionsOf(kernel).map((version) => runOf(kernel, version)));

/** test/contracts/kernels/every-kernel.ts: a function a version of a kernel, which runs it on example arguments. */
export function kernelExamples(): string {
  return file([
    "import { type Examples, indexed, qkvWidth, SETTINGS } from './examples.js';",
    '',
    '/** Each runs one version of a kernel on examples of its arguments. */',
    'export const RUNS: readonly ((e: Examples) => void)[] = [',
    ...runsOf(undefined),
    '];',
    '',
    '/** The same for the kernels that devices do not have. */',
    'export const PROCESSOR_RUNS: readonly ((e: Examples) => void)[] = [',
    ...runsOf('processor'),
    '];',
  ]);
}
