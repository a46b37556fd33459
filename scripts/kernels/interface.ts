import { type AnyKernel, type AnyParameter, allKernels, GENERATED } from './declarations.js';

type AnyBuffer = Extract<AnyParameter, { kind: 'buffer' }>;

const WIDTH = 120;

const ELEMENTS: Readonly<Record<AnyBuffer['element'], string>> = {
  f32: "M['floats']",
  f64: 'Float64Array',
  bf16: "M['bfloat16']",
  i32: "M['integers']",
  offsets: "M['integers']",
  weights: "M['floats'] | M['bfloat16']",
};

const VALUES: Readonly<Record<Exclude<AnyParameter['kind'], 'buffer'>, string>> = {
  size: 'number',
  f32: 'number',
  bool: 'boolean',
  heads: 'Heads',
  adamw: 'AdamWStep',
  sgd: 'SgdStep',
  nigt: 'NigtStep',
  before: "Before<M['floats']>",
  share: "Share<M['floats'], M['floats'] | M['bfloat16']>",
};

/** The text as a comment, broken where a line is full. */
function comment(indent: string, paragraphs: readonly string[]): string[] {
  const [only] = paragraphs;
  if (only !== undefined && paragraphs.length === 1 && indent.length + only.length + 7 <= WIDTH)
    return [`${indent}/** ${only} */`];
  const lines = paragraphs.flatMap((paragraph) => {
    const broken: string[] = [];
    let line = `${indent} *`;
    for (const word of paragraph.split(' ')) {
      if (line.length + 1 + word.length > WIDTH) {
        broken.push(line);
        line = `${indent} *`;
      }
      line += ` ${word}`;
    }
    return [...broken, line];
  });
  return [`${indent}/**`, ...lines, `${indent} */`];
}

/** Two words of prose begin with a capital letter, a formula does not. */
const sentence = (text: string) =>
  `${/^[a-z-]+ [a-z]/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text}.`;

function documentationOf({ computes, details, sums }: AnyKernel): string[] {
  return [
    sentence(computes),
    ...(details === undefined ? [] : [details]),
    ...(sums === undefined ? [] : [`Order of the sums in C++: ${sums}.`]),
  ];
}

/** The least length of a buffer, for people. */
const lengthOf = (kernel: AnyKernel, { length, element }: AnyBuffer): string => {
  const least = element === 'offsets' ? `${length} + 1` : length;
  return least.replace(/indexed\((\w+)\)/g, '(1 + max $1)').replace(/last\((\w+)\)/g, (_, name: string) => {
    const offsets = kernel.parameters.find((each) => each.kind === 'buffer' && each.name === name);
    return `${name}[${offsets?.kind === 'buffer' ? offsets.length : ''}]`;
  });
};

function argumentComment(kernel: AnyKernel, parameter: AnyParameter): string | undefined {
  if (parameter.kind === 'size') return parameter.most && `At most ${parameter.most}.`;
  if (parameter.kind !== 'buffer') return undefined;
  const { below, readOnly } = parameter;
  const limit = below === undefined ? '' : below === 'none' ? ', each at least 0' : `, each in [0, ${below})`;
  return `[${lengthOf(kernel, parameter)}]${limit}${readOnly ? '' : '; written'}`;
}

function argument(kernel: AnyKernel, parameter: AnyParameter): string[] {
  const type = parameter.kind === 'buffer' ? ELEMENTS[parameter.element] : VALUES[parameter.kind];
  const optional = 'optional' in parameter && parameter.optional;
  const text = argumentComment(kernel, parameter);
  return [
    ...(text === undefined ? [] : comment('    ', [text])),
    `    readonly ${parameter.name}${optional ? '?' : ''}: ${type}${optional ? ' | undefined' : ''};`,
  ];
}

const returned = ({ returns, only }: AnyKernel) =>
  returns === 'nothing' ? 'void' : returns === 'size' || only === 'native' ? 'number' : "M['sum']";

function methods(some: readonly AnyKernel[]): string[] {
  let family = '';
  return some.flatMap((kernel) => {
    const heading = kernel.family === family ? [] : ['', `  // ---- ${kernel.family}`, ''];
    family = kernel.family;
    return [
      ...heading,
      ...comment('  ', documentationOf(kernel)),
      `  ${kernel.name}(given: {`,
      ...kernel.parameters.flatMap((each) => argument(kernel, each)),
      `  }): ${returned(kernel)};`,
    ];
  });
}

const named = (only: AnyKernel['only']) => allKernels.filter((kernel) => kernel.only === only);

/** packages/engine/src/tensor/kernel-operations.ts: the interface that every set of kernels implements. */
export function kernelInterface(): string {
  return [
    `// ${GENERATED}`,
    "import type { AdamWStep, Before, Heads, MemoryKinds, NigtStep, SgdStep, Share } from './kernel-arguments.js';",
    '',
    ...comment('', [
      'The kernels: one interface for C++, WebAssembly, TypeScript and WGSL. Each takes one object. Lengths in brackets are the least number of elements; a buffer may be longer. See kernels.ts for the promises that hold for all of them.',
    ]),
    'export interface KernelOperations<M extends MemoryKinds> extends HostOperations<M> {',
    ...methods(named(undefined)),
    '}',
    '',
    '/** The kernels that have no C++: all sets on the processor share one implementation. */',
    'export interface HostOperations<M extends MemoryKinds> {',
    ...methods(named('host')),
    '}',
    '',
    ...comment('', [
      'Several calls in one, for devices whose calls are expensive. Each gives the bits of the calls that it replaces.',
    ]),
    'export interface FusedKernels<M extends MemoryKinds> {',
    ...methods(named('fused')),
    '}',
    '',
    '/** The kernels that all sets on the processor have, and devices do not. */',
    'export interface ProcessorOperations<M extends MemoryKinds> {',
    ...methods(named('processor')),
    '}',
    '',
    '/** The kernels that only the native set has. */',
    'export interface NativeOperations {',
    ...methods(named('native')),
    '}',
    '',
  ].join('\n');
}
