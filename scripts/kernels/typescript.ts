import {
  everyKernel,
  GENERATED,
  holdsIndices,
  isSizeFunction,
  type Kernel,
  kernels,
  objectOf,
  type Parameter,
  rewriteCalls,
  versionsOf,
} from './declarations.js';

const file = (lines: readonly string[]) => `// ${GENERATED}\n${lines.join('\n')}\n`;

const HEADS = ['heads', 'kvHeads', 'headDim', 'window ?? 0'];
const ADAMW = ['learningRate', 'beta1', 'beta2', 'epsilon', 'weightDecay', 'step', 'gradientScale'];

/** An argument as the addon and the module take it: structs number by number. */
function flattened({ kind, name }: Parameter): string {
  const fields = kind === 'heads' ? HEADS : kind === 'adamw' ? ADAMW : undefined;
  return fields?.map((field) => `${name}.${field}`).join(', ') ?? name;
}

const names = (parameters: readonly Parameter[]) => parameters.map(({ name }) => name).join(', ');

/** The parameter of a function that takes a kernel's arguments as one object. */
const destructured = (parameters: readonly Parameter[]) => `({ ${names(parameters)} })`;

/**
 * packages/engine/src/tensor/native/addon-kernels.ts: the kernels over the addon's functions, whose arguments have
 * positions.
 */
export function addonKernels(): string {
  return file([
    "import type { HostMemoryKinds, WeightArray } from '../kernel-arguments.js';",
    "import type { KernelOperations, NativeOperations, ProcessorOperations } from '../kernel-operations.js';",
    '',
    `type Name = ${kernels.map(({ name }) => `'${name}'`).join(' | ')};`,
    '',
    '/** A function of the addon: arguments by position, structures number by number. */',
    'type AddonKernel = (...values: (WeightArray | Int32Array | number | boolean)[]) => number;',
    '',
    '/** The kernels as the addon has them. */',
    'export type AddonKernels = { readonly [name in Name]: AddonKernel };',
    '',
    '/** The kernels over the functions of the addon. */',
    'export function addonKernels(addon: AddonKernels): Pick<',
    'KernelOperations<HostMemoryKinds> & ProcessorOperations<HostMemoryKinds> & NativeOperations,',
    'Name> {',
    '  return {',
    ...kernels.map(({ name, parameters, returns }) => {
      const call = `addon.${name}(${parameters.map(flattened).join(', ')})`;
      return `    ${name}: ${destructured(parameters)} => ${returns === 'nothing' ? `void ${call}` : call},`;
    }),
    '  };',
    '}',
  ]);
}

/** Without regard to case, as the linter sorts names. */
const alphabetically = (a: string, b: string) => a.localeCompare(b, 'en');

/** packages/engine/src/tensor/reference/reference-kernels.ts: all kernels of the reference, from their modules. */
export function referenceKernels(): string {
  const modules = [...new Set(everyKernel.flatMap(({ reference }) => reference ?? []))].sort();
  const listed = (module: string) =>
    everyKernel.filter(({ reference }) => reference === module).map(({ name }) => name);
  return file([
    ...modules.map(
      (module) =>
        `import { ${listed(module).sort(alphabetically).join(', ')} } from './${module.replace('.ts', '.js')}';`,
    ),
    '',
    '/** Every kernel in plain TypeScript. */',
    `export const referenceKernels = { ${everyKernel.map(({ name }) => name).join(', ')} };`,
  ]);
}

// ---- WebAssembly ---------------------------------------------------------------------------------------------------

/** A length of the manifest as TypeScript computes it. */
const expressionOf = (kernel: Kernel, expression: string): string =>
  rewriteCalls(expression, (name, values) => {
    if (isSizeFunction(name)) return `${name}(${objectOf(name, values)})`;
    if (name === 'qkvWidth') return `${name}(${values})`;
    if (name === 'max') return `Math.max(${values})`;
    // Both are computed when the buffer is checked.
    if (name === 'indexed' || name === 'last') return `${values}${name === 'last' ? 'Last' : 'Indexed'}`;
    throw new Error(`${kernel.name}: ${name} is no function of lengths`);
  });

/** The method that checks a buffer, by its elements. */
const READERS = { f32: 'floats', bf16: 'bfloat16', i32: 'integers' } as const;

/** The statement that checks an argument; buffers become addresses. */
function checkArgument(kernel: Kernel, parameter: Parameter, firstWeights: string | undefined): string {
  const { name } = parameter;
  const label = `'${kernel.name}(${name})'`;
  switch (parameter.kind) {
    case 'size':
      return `a.size(${label}, ${name});`;
    case 'heads':
      return `a.heads(${label}, ${name});`;
    case 'f32':
    case 'bool':
    case 'adamw':
      return '';
    case 'buffer': {
      const least = expressionOf(kernel, parameter.length);
      const { element, below } = parameter;
      const at = `const ${name}At = a.`;
      if (element === 'offsets') return `${at}offsets(${label}, ${name}, ${least});`;
      if (element === 'i32' && below !== undefined) {
        const limit = below === 'none' ? '' : `, ${expressionOf(kernel, below)}`;
        return `${at}indices(${label}, ${name}, ${least}${limit});`;
      }
      if (element === 'weights') {
        const like = firstWeights === undefined || firstWeights === name ? '' : `, ${firstWeights}`;
        return `${at}weights(${label}, ${name}, ${least}${like});`;
      }
      return `${at}${READERS[element]}(${label}, ${name}, ${least});`;
    }
  }
}

/** Numbers that lengths read off the contents of buffers. */
function derived(kernel: Kernel): string[] {
  const lengths = kernel.parameters.flatMap((each) => (each.kind === 'buffer' ? [each.length] : []));
  const calls = new Set(lengths.flatMap((length) => length.match(/\b(indexed|last)\(\w+\)/g) ?? []));
  return [...calls].map((call) => {
    const [, name = '', buffer = ''] = /(\w+)\((\w+)\)/.exec(call) ?? [];
    const count = kernel.parameters.find((each) => each.kind === 'buffer' && each.name === buffer);
    const length = count?.kind === 'buffer' ? count.length : '';
    return name === 'last'
      ? `const ${buffer}Last = ${buffer}[${length}] as number;`
      : `const ${buffer}Indexed = indexed(${buffer}, ${length});`;
  });
}

const wasmArgument = (parameter: Parameter): string =>
  parameter.kind === 'buffer' ? `${parameter.name}At` : flattened(parameter);

function checkedBody(kernel: Kernel): string[] {
  const { name, parameters, most, returns, hasBfloat16 } = kernel;
  const firstWeights = parameters.find((each) => each.kind === 'buffer' && each.element === 'weights')?.name;
  const check = (some: readonly Parameter[]) =>
    some.map((parameter) => checkArgument(kernel, parameter, firstWeights)).filter((line) => line !== '');
  const isIndex = (each: Parameter) => each.kind === 'buffer' && holdsIndices(each);
  const call = (callee: string) => `${callee}(${parameters.map(wasmArgument).join(', ')})`;
  return [
    ...check(parameters.filter(({ kind }) => kind !== 'buffer')),
    ...parameters.flatMap((each) =>
      each.kind === 'size' && each.most !== undefined
        ? [`a.atMost('${name}(${each.name})', ${each.name}, ${expressionOf(kernel, each.most)});`]
        : [],
    ),
    ...(most === undefined ? [] : [`a.size('${name}', ${expressionOf(kernel, most)});`]),
    ...check(parameters.filter(isIndex)),
    ...derived(kernel),
    ...check(parameters.filter((each) => each.kind === 'buffer' && !isIndex(each))),
    ...(hasBfloat16 ? [`const kernel = isBfloat16(${firstWeights}) ? wasm.${name}Bfloat16 : wasm.${name};`] : []),
    `${returns === 'nothing' ? '' : 'return '}${call(hasBfloat16 ? 'kernel' : `wasm.${name}`)};`,
  ];
}

/**
 * packages/engine/src/tensor/wasm/checked-kernels.ts: every kernel, which checks its arguments and passes addresses.
 */
export function checkedKernels(): string {
  const versions = everyKernel.flatMap(versionsOf).map((name) => `'${name}'`);
  const sizes = everyKernel.filter(({ returns }) => returns === 'size');
  return file([
    "import { isBfloat16 } from '../bfloat16.js';",
    "import type { HostKernels } from '../kernels.js';",
    "import { type Arguments, indexed, qkvWidth } from './arguments.js';",
    '',
    `type Name = ${everyKernel.map(({ name }) => `'${name}'`).join(' | ')};`,
    '',
    '/** The exports of the module, one function a version of a kernel: they take addresses and numbers. */',
    `export type ModuleKernels = { readonly [name in ${versions.join(' | ')}]: ModuleKernel };`,
    'export type ModuleKernel = (...values: (number | boolean)[]) => number;',
    '',
    '/** The kernels on the functions of the module. Each kernel checks its arguments and passes their addresses. */',
    'export function checkedKernels(a: Arguments, wasm: ModuleKernels): Pick<HostKernels, Name> {',
    ...sizes.map(
      (kernel) =>
        `const ${kernel.name}: HostKernels['${kernel.name}'] = ${destructured(kernel.parameters)} => {\n${checkedBody(kernel).join('\n')}\n};\n`,
    ),
    'return {',
    ...everyKernel.map((kernel) =>
      kernel.returns === 'size'
        ? `${kernel.name},`
        : `${kernel.name}: ${destructured(kernel.parameters)} => {\n${checkedBody(kernel).join('\n')}\n},`,
    ),
    '};',
    '}',
  ]);
}
